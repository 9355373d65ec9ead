// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_server_peer.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "base/http/http_server_internal.h"

// Returns whether reading stopped at the end of the text rather than at an invalid certificate.
static bool is_end_of_pem(void)
{
	unsigned long code = ERR_peek_last_error();
	bool end = ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
	ERR_clear_error();
	return end;
}

static int add_all(X509_STORE *store, BIO *bio, struct err *e)
{
	int n = 0;
	X509 *cert;
	ERR_clear_error();
	while ((cert = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		int added = n < TLS_TRUST_CERTS_MAX ? X509_STORE_add_cert(store, cert) : 0;
		X509_free(cert);
		if (n++ == TLS_TRUST_CERTS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d CA certificates", TLS_TRUST_CERTS_MAX);
		if (added != 1) {
			ERR_clear_error();
			return err_set(e, ERR_TLS, "CA certificate %d cannot be used", n);
		}
	}
	if (!is_end_of_pem())
		return err_set(e, ERR_TLS, "CA certificate %d cannot be read", n + 1);
	return n ? 0 : err_set(e, ERR_TLS, "no CA certificate in the PEM text");
}

X509_STORE *tls_trust_new(const char *pem, size_t len, struct err *e)
{
	if (len > TLS_TRUST_BYTES_MAX) {
		err_set(e, ERR_LIMIT, "CA certificates of %zu bytes, the ceiling is %d", len, TLS_TRUST_BYTES_MAX);
		return NULL;
	}
	X509_STORE *store = X509_STORE_new();
	BIO *bio = BIO_new_mem_buf(pem, (int)len);
	int rc = store && bio ? add_all(store, bio, e) : err_set(e, ERR_INTERNAL, "out of memory");
	BIO_free(bio);
	if (rc < 0) {
		X509_STORE_free(store);
		return NULL;
	}
	// As Go's verifier: whatever is in the bundle ends the chain, an intermediate too.
	X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
	return store;
}

// ---- subjects ----

static int copy_name(char out[TLS_SUBJECT_NAME_BYTES], const X509_NAME_ENTRY *entry, struct err *e)
{
	unsigned char *text = NULL;
	int len = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry));
	int rc = 0;
	if (len < 0 || memchr(text, 0, (size_t)len)) // "admin\0.example.com" must not read as "admin"
		rc = err_set(e, ERR_TLS, "the certificate's subject is not text");
	else if (len >= TLS_SUBJECT_NAME_BYTES)
		rc = err_set(e, ERR_LIMIT, "a name of %d bytes in the certificate's subject, the ceiling is %d", len,
		             TLS_SUBJECT_NAME_BYTES - 1);
	else {
		memcpy(out, text, (size_t)len);
		out[len] = '\0';
	}
	OPENSSL_free(text);
	ERR_clear_error();
	return rc;
}

static int read_subject(X509 *cert, struct tls_subject *s, struct err *e)
{
	const X509_NAME *name = X509_get_subject_name(cert);
	s->common_name[0] = '\0';
	s->n_organizations = 0;
	for (int i = 0; i < X509_NAME_entry_count(name); i++) {
		const X509_NAME_ENTRY *entry = X509_NAME_get_entry(name, i);
		int nid = OBJ_obj2nid(X509_NAME_ENTRY_get_object(entry));
		if (nid == NID_organizationName && s->n_organizations == TLS_SUBJECT_ORGANIZATIONS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d organizations in the certificate's subject",
			               TLS_SUBJECT_ORGANIZATIONS_MAX);
		if ((nid == NID_commonName && copy_name(s->common_name, entry, e) < 0) ||
		    (nid == NID_organizationName && copy_name(s->organizations[s->n_organizations++], entry, e) < 0))
			return -1;
	}
	return 0;
}

// ---- verifying ----

static int verify(X509 *cert, STACK_OF(X509) * chain, X509_STORE *trust, struct err *e)
{
	X509_STORE_CTX *ctx = X509_STORE_CTX_new();
	if (!ctx || X509_STORE_CTX_init(ctx, trust, cert, chain) != 1) {
		X509_STORE_CTX_free(ctx);
		return err_set(e, ERR_INTERNAL, "out of memory");
	}
	X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_CLIENT);
	int rc = X509_verify_cert(ctx) == 1 ? 0
	                                    : err_set(e, ERR_TLS, "the client's certificate: %s",
	                                              X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
	X509_STORE_CTX_free(ctx);
	ERR_clear_error();
	return rc;
}

enum tls_peer http_exchange_verify_peer(const struct http_exchange *x, X509_STORE *trust,
                                        struct tls_subject *ret_subject, struct err *e)
{
	SSL *ssl = x->conn ? bufferevent_openssl_get_ssl(x->conn->bev) : NULL;
	X509 *cert = ssl ? SSL_get1_peer_certificate(ssl) : NULL;
	if (!cert)
		return TLS_PEER_NONE;
	int rc = verify(cert, SSL_get_peer_cert_chain(ssl), trust, e);
	if (rc == 0)
		rc = read_subject(cert, ret_subject, e);
	X509_free(cert);
	return rc == 0 ? TLS_PEER_TRUSTED : TLS_PEER_REFUSED;
}
