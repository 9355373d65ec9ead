// SPDX-License-Identifier: Apache-2.0
#include "base/http/tls_self_signed.h"

#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "base/base.h"

#define SUBJECT_BYTES_MAX   64 // X.520: ub-common-name
#define ALT_NAMES_BYTES_MAX (64 * 1024)
#define DAY_S               86400

// Anything else could smuggle an extension into the list of names.
static bool is_dns_name(const char *s)
{
	size_t len = strlen(s);
	return len > 0 && len <= 253 &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == len;
}

static int add_extension(X509 *cert, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, cert, cert, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	int rc = ext && X509_add_ext(cert, ext, -1) == 1 ? 0 : -1;
	X509_EXTENSION_free(ext);
	return rc;
}

static int set_serial(X509 *cert)
{
	unsigned char bytes[16];
	if (RAND_bytes(bytes, sizeof bytes) != 1)
		return -1;
	bytes[0] &= 0x7F; // positive
	BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
	int rc = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert)) ? 0 : -1;
	BN_free(n);
	return rc;
}

static int fill(X509 *cert, EVP_PKEY *key, const char *subject, const char *alt_names, int64_t wall_ms)
{
	X509_NAME *name = X509_get_subject_name(cert);
	time_t now = (time_t)(wall_ms / 1000);
	int len = (int)strnlen(subject, SUBJECT_BYTES_MAX);
	if (X509_set_version(cert, 2) != 1 || set_serial(cert) < 0 || X509_set_pubkey(cert, key) != 1 ||
	    !X509_time_adj_ex(X509_getm_notBefore(cert), -1, 0, &now) ||
	    !X509_time_adj_ex(X509_getm_notAfter(cert), TLS_SELF_SIGNED_DAYS, 0, &now) ||
	    X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_ASC, (const unsigned char *)subject, len, -1,
	                               0) != 1 ||
	    X509_set_issuer_name(cert, name) != 1)
		return -1;
	if (add_extension(cert, NID_basic_constraints, "critical,CA:TRUE") < 0 ||
	    add_extension(cert, NID_key_usage, "critical,digitalSignature,keyCertSign") < 0 ||
	    add_extension(cert, NID_ext_key_usage, "serverAuth") < 0 ||
	    add_extension(cert, NID_subject_key_identifier, "hash") < 0 ||
	    add_extension(cert, NID_subject_alt_name, alt_names) < 0)
		return -1;
	return X509_sign(cert, key, EVP_sha256()) > 0 ? 0 : -1;
}

// Takes the content of the memory BIO, and wipes it there.
static int take(BIO *bio, struct buf *out)
{
	char *data;
	long len = BIO_get_mem_data(bio, &data);
	int rc = len > 0 ? buf_put(out, data, (size_t)len) : -1;
	if (len > 0)
		OPENSSL_cleanse(data, (size_t)len);
	return rc;
}

static int write_pem(X509 *cert, EVP_PKEY *key, struct buf *ret_cert, struct buf *ret_key)
{
	BIO *cert_bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_secmem());
	int rc = cert_bio && key_bio && PEM_write_bio_X509(cert_bio, cert) == 1 &&
	                         PEM_write_bio_PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL) == 1 &&
	                         take(cert_bio, ret_cert) == 0 && take(key_bio, ret_key) == 0
	                 ? 0
	                 : -1;
	BIO_free(cert_bio);
	BIO_free(key_bio);
	return rc;
}

int tls_self_signed(const char *const *dns_names, size_t n, int64_t wall_ms, struct buf *cert, struct buf *key,
                    struct err *e)
{
	struct buf names;
	buf_init(&names, ALT_NAMES_BYTES_MAX);
	for (size_t i = 0; i < n; i++) {
		if (!is_dns_name(dns_names[i])) {
			buf_done(&names);
			return err_set(e, ERR_INPUT, "\"%.100s\" is not a DNS name", dns_names[i]);
		}
		buf_printf(&names, "%sDNS:%s", i ? "," : "", dns_names[i]);
	}
	EVP_PKEY *pair = EVP_EC_gen("P-256");
	X509 *x509 = X509_new();
	int rc = n && !names.failed && pair && x509 && fill(x509, pair, dns_names[0], buf_str(&names), wall_ms) == 0 &&
	                         write_pem(x509, pair, cert, key) == 0
	                 ? 0
	                 : err_set(e, ERR_TLS, "cannot make a self-signed certificate");
	X509_free(x509);
	EVP_PKEY_free(pair);
	buf_done(&names);
	ERR_clear_error();
	return rc;
}
