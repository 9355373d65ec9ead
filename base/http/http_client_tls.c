// SPDX-License-Identifier: Apache-2.0
// TLS settings of one transfer: CA, client certificate, expected name.
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file_open.h"
#include "base/http/http_client_internal.h"

// The text members, so that copy, compare and free are loops.
static const size_t texts[] = {
        offsetof(struct http_tls, ca_file),     offsetof(struct http_tls, ca_pem),
        offsetof(struct http_tls, cert_file),   offsetof(struct http_tls, cert_pem),
        offsetof(struct http_tls, key_file),    offsetof(struct http_tls, key_pem),
        offsetof(struct http_tls, server_name),
};
#define TLS_TEXTS (sizeof texts / sizeof texts[0])

static const char **text_of(struct http_tls *tls, size_t i)
{
	return (const char **)(void *)((char *)tls + texts[i]);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_tls(struct http_tls *a, struct http_tls *b)
{
	for (size_t i = 0; i < TLS_TEXTS; i++)
		if (!same_text(*text_of(a, i), *text_of(b, i)))
			return false;
	return a->insecure_skip_verify == b->insecure_skip_verify;
}

int http_tls_copy(struct http_tls *to, const struct http_tls *from, struct err *e)
{
	struct http_tls copied = *from;
	*to = (struct http_tls){.insecure_skip_verify = from->insecure_skip_verify};
	for (size_t i = 0; i < TLS_TEXTS; i++)
		if (*text_of(&copied, i) && !(*text_of(to, i) = strdup(*text_of(&copied, i))))
			return err_no_memory(e);
	return 0;
}

void http_tls_free(struct http_tls *tls)
{
	for (size_t i = 0; i < TLS_TEXTS; i++)
		alloc_wipe((char *)(uintptr_t)*text_of(tls, i)); // copied above; one of them may be a private key
}

static void tls_set_free(struct http_tls_set *set)
{
	http_tls_free(&set->tls);
	free(set);
}

int http_tls_get(struct http_client *c, const struct http_tls *tls, struct http_tls_set **ret_set, struct err *e)
{
	struct http_tls wanted = *tls;
	for (size_t i = 0; i < TLS_TEXTS; i++) {
		const char *text = *text_of(&wanted, i);
		if (text && strlen(text) > HTTP_PEM_BYTES_MAX)
			return err_set(e, ERR_LIMIT,
			               "TLS settings: a certificate or key of %zu bytes, the ceiling is %d",
			               strlen(text), HTTP_PEM_BYTES_MAX);
	}
	bool cert = wanted.cert_pem || wanted.cert_file, key = wanted.key_pem || wanted.key_file;
	if (cert != key)
		return err_set(e, ERR_USAGE,
		               "TLS settings: a client certificate needs its key and a key its certificate");
	// libcurl opens the files itself, and would block on a named pipe without a writer.
	const char *const files[] = {wanted.ca_pem ? NULL : wanted.ca_file, wanted.cert_pem ? NULL : wanted.cert_file,
	                             wanted.key_pem ? NULL : wanted.key_file};
	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
		if (files[i] && file_check_regular(files[i], e) < 0)
			return err_wrap(e, "TLS settings");
	struct http_tls_set *set;
	LIST_FOREACH(set, &c->tls_sets, link)
	{
		if (same_tls(&set->tls, &wanted)) {
			set->refs++;
			*ret_set = set;
			return 0;
		}
	}
	set = err_calloc(sizeof *set, e);
	if (!set || http_tls_copy(&set->tls, &wanted, e) < 0) {
		if (set)
			tls_set_free(set);
		return err_wrap(e, "TLS settings");
	}
	set->refs = 1;
	LIST_INSERT_HEAD(&c->tls_sets, set, link);
	*ret_set = set;
	return 0;
}

void http_tls_put(struct http_tls_set *set)
{
	if (set && --set->refs == 0) {
		LIST_REMOVE(set, link);
		tls_set_free(set);
	}
}

static void format_asn1_time(const ASN1_TIME *t, char out[32])
{
	struct tm tm;
	if (!ASN1_TIME_to_tm(t, &tm) || strftime(out, 32, "%Y-%m-%dT%H:%M:%SZ", &tm) == 0)
		memcpy(out, "an unreadable date", sizeof "an unreadable date");
}

static void format_name(X509_NAME *name, char *out, size_t size)
{
	if (!name || X509_NAME_get_text_by_NID(name, NID_commonName, out, (int)size) < 0)
		snprintf(out, size, "unnamed");
	for (char *p = out; *p; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	}
}

// Called by OpenSSL for every certificate of a chain. Leaves the verdict unchanged and records the reason for the error
// message.
static int on_verify(int ok, X509_STORE_CTX *ctx)
{
	if (ok)
		return 1;
	SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct http_tls_note *note = ssl ? SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)) : NULL;
	X509 *cert = X509_STORE_CTX_get_current_cert(ctx);
	if (!note || !cert)
		return 0;
	int code = X509_STORE_CTX_get_error(ctx);
	char subject[64], issuer[64], when[32];
	format_name(X509_get_subject_name(cert), subject, sizeof subject);
	format_name(X509_get_issuer_name(cert), issuer, sizeof issuer);
	note->x509_error = code;
	switch (code) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		format_asn1_time(X509_get0_notAfter(cert), when);
		snprintf(note->text, sizeof note->text,
		         "the certificate of \"%s\" expired on %s; renew it, or set this machine's clock", subject,
		         when);
		break;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		format_asn1_time(X509_get0_notBefore(cert), when);
		snprintf(note->text, sizeof note->text,
		         "the certificate of \"%s\" is valid only from %s on; set this machine's clock", subject, when);
		break;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
		snprintf(note->text, sizeof note->text,
		         "the certificate of \"%s\" is signed by \"%s\", which is not trusted; give the CA certificate "
		         "of this server",
		         subject, issuer);
		break;
	default:
		snprintf(note->text, sizeof note->text, "the certificate of \"%s\": %s", subject,
		         X509_verify_cert_error_string(code));
		break;
	}
	return 0; // the verdict stands
}

static CURLcode on_ssl_ctx(CURL *easy, void *ssl_ctx, void *arg)
{
	SSL_CTX *ctx = ssl_ctx;
	// The context outlives this call with its connection, so it may point at the client only, never at the call.
	SSL_CTX_set_app_data(ctx, arg);
	SSL_CTX_set_verify(ctx, SSL_CTX_get_verify_mode(ctx), on_verify);
	return CURLE_OK;
}

static bool curl_uses_openssl(void)
{
	const curl_version_info_data *v = curl_version_info(CURLVERSION_NOW);
	return v->ssl_version && strncmp(v->ssl_version, "OpenSSL", 7) == 0;
}

static void set_blob(CURL *easy, CURLoption option, const char *pem, CURLcode *rc)
{
	struct curl_blob blob = {.data = (void *)(uintptr_t)pem, .len = strlen(pem), .flags = CURL_BLOB_NOCOPY};
	if (*rc == CURLE_OK)
		*rc = curl_easy_setopt(easy, option, &blob);
}

CURLcode http_tls_setup(CURL *easy, const struct http_tls *tls, struct http_tls_note *note)
{
	CURLcode rc = curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
#define SET(option, value)                                                                                             \
	do {                                                                                                           \
		if (rc == CURLE_OK)                                                                                    \
			rc = curl_easy_setopt(easy, option, value);                                                    \
	} while (0)
#if LIBCURL_VERSION_NUM >= 0x075700
	// curl would otherwise trust a rotated-away CA file for a day.
	SET(CURLOPT_CA_CACHE_TIMEOUT, 60L);
#endif
	// Without verification the verifier still runs and objects; its objections are not reported.
	if (curl_uses_openssl() && !(tls && tls->insecure_skip_verify)) {
		SET(CURLOPT_SSL_CTX_FUNCTION, on_ssl_ctx);
		SET(CURLOPT_SSL_CTX_DATA, note);
	}
	if (!tls)
		return rc;
	if (tls->ca_pem || tls->ca_file) {
		// Else the system's CA folder would be trusted in addition to the given CA.
		SET(CURLOPT_CAPATH, NULL);
		if (tls->ca_pem)
			set_blob(easy, CURLOPT_CAINFO_BLOB, tls->ca_pem, &rc);
		else
			SET(CURLOPT_CAINFO, tls->ca_file);
	}
	if (tls->cert_pem)
		set_blob(easy, CURLOPT_SSLCERT_BLOB, tls->cert_pem, &rc);
	else if (tls->cert_file)
		SET(CURLOPT_SSLCERT, tls->cert_file);
	if (tls->key_pem)
		set_blob(easy, CURLOPT_SSLKEY_BLOB, tls->key_pem, &rc);
	else if (tls->key_file)
		SET(CURLOPT_SSLKEY, tls->key_file);
	if (tls->insecure_skip_verify) {
		SET(CURLOPT_SSL_VERIFYPEER, 0L);
		SET(CURLOPT_SSL_VERIFYHOST, 0L);
	}
#undef SET
	return rc;
}
