// SPDX-License-Identifier: Apache-2.0
#include "test/support/certs.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const file_names[] = {
        [CERTS_CA] = "ca.pem",
        [CERTS_OTHER_CA] = "other-ca.pem",
        [CERTS_SERVER] = "server.pem",
        [CERTS_SERVER_KEY] = "server-key.pem",
        [CERTS_EXPIRED] = "expired.pem",
        [CERTS_EXPIRED_KEY] = "expired-key.pem",
        [CERTS_OTHER_NAME] = "other-name.pem",
        [CERTS_OTHER_NAME_KEY] = "other-name-key.pem",
        [CERTS_CLIENT] = "client.pem",
        [CERTS_CLIENT_KEY] = "client-key.pem",
};
_Static_assert(sizeof file_names / sizeof file_names[0] == CERTS__COUNT, "one name per file");

struct recipe {
	const char *name, *organization, *alt_names, *usage;
	const char *not_before, *not_after; // ASN.1 generalized time
};

static int add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx_nodb(&ctx);
	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	int rc = ext && X509_add_ext(cert, ext, -1) == 1 ? 0 : -1;
	X509_EXTENSION_free(ext);
	return rc;
}

// Signed by issuer, or by itself when issuer is NULL.
static X509 *make_cert(const struct recipe *r, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key, long serial)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);
	X509_set_version(cert, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
	ASN1_TIME_set_string(X509_getm_notBefore(cert), r->not_before);
	ASN1_TIME_set_string(X509_getm_notAfter(cert), r->not_after);
	X509_set_pubkey(cert, key);
	if (r->organization)
		X509_NAME_add_entry_by_txt(name, "O", MBSTRING_ASC, (const unsigned char *)r->organization, -1, -1, 0);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)r->name, -1, -1, 0);
	X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer) : name);
	X509 *by = issuer ? issuer : cert;
	int rc = add_extension(cert, by, NID_subject_key_identifier, "hash");
	if (!issuer) {
		rc |= add_extension(cert, by, NID_basic_constraints, "critical,CA:TRUE");
		rc |= add_extension(cert, by, NID_key_usage, "critical,keyCertSign,cRLSign");
	}
	rc |= add_extension(cert, by, NID_authority_key_identifier, "keyid");
	if (r->usage)
		rc |= add_extension(cert, by, NID_ext_key_usage, r->usage);
	if (r->alt_names)
		rc |= add_extension(cert, by, NID_subject_alt_name, r->alt_names);
	if (rc != 0 || X509_sign(cert, issuer ? issuer_key : key, EVP_sha256()) == 0) {
		X509_free(cert);
		return NULL;
	}
	return cert;
}

// Keeps what the memory BIO holds as text and as a file.
static int store(struct certs *c, enum certs_file which, BIO *bio)
{
	char *data;
	long len = BIO_get_mem_data(bio, &data);
	c->pem[which] = strndup(data, (size_t)len);
	FILE *f = c->pem[which] ? fopen(c->path[which], "w") : NULL;
	int rc = f && fputs(c->pem[which], f) >= 0 ? 0 : -1;
	if (f && fclose(f) != 0)
		rc = -1;
	BIO_free(bio);
	return rc;
}

static int store_cert(struct certs *c, enum certs_file which, X509 *cert)
{
	BIO *bio = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(bio, cert);
	return store(c, which, bio);
}

static int store_key(struct certs *c, enum certs_file which, EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL);
	return store(c, which, bio);
}

// A certificate and, in the place after it, its key.
static int issue(struct certs *c, enum certs_file which, const struct recipe *r, X509 *ca, EVP_PKEY *ca_key)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = key ? make_cert(r, key, ca, ca_key, 100 + (long)which) : NULL;
	int rc = cert && store_cert(c, which, cert) == 0 && store_key(c, which + 1, key) == 0 ? 0 : -1;
	X509_free(cert);
	EVP_PKEY_free(key);
	return rc;
}

int certs_init(struct certs *c)
{
	static const char from[] = "20200101000000Z", until[] = "20990101000000Z";
	static const char names[] = "DNS:localhost,DNS:api.gpuscale.test,IP:127.0.0.1,IP:::1";
	const struct recipe ca = {.name = "gpuscale test CA", .not_before = from, .not_after = until};
	const struct recipe other_ca = {.name = "gpuscale other CA", .not_before = from, .not_after = until};
	const struct recipe server = {"gpuscale test server", NULL, names, "serverAuth", from, until};
	const struct recipe expired = {"gpuscale expired server", NULL, names, "serverAuth", from, "20210101000000Z"};
	const struct recipe other_name = {
	        "gpuscale other server", NULL, "DNS:other.gpuscale.test", "serverAuth", from, until};
	const struct recipe client = {"gpuscale-client", "gpuscale-testers", NULL, "clientAuth", from, until};
	memset(c, 0, sizeof *c);
	const char *tmp = getenv("TMPDIR");
	char template[64];
	int n = snprintf(template, sizeof template, "%s/gpuscale-certs-XXXXXX", tmp && strlen(tmp) < 32 ? tmp : "/tmp");
	if (n < 0 || !mkdtemp(template))
		return -1;
	memcpy(c->dir, template, sizeof c->dir);
	for (int i = 0; i < CERTS__COUNT; i++)
		snprintf(c->path[i], sizeof c->path[i], "%.63s/%s", template, file_names[i]);
	EVP_PKEY *ca_key = EVP_EC_gen("P-256"), *other_key = EVP_EC_gen("P-256");
	X509 *ca_cert = ca_key ? make_cert(&ca, ca_key, NULL, NULL, 1) : NULL;
	X509 *other_cert = other_key ? make_cert(&other_ca, other_key, NULL, NULL, 2) : NULL;
	int rc = ca_cert && other_cert ? 0 : -1;
	if (rc == 0 && (store_cert(c, CERTS_CA, ca_cert) < 0 || store_cert(c, CERTS_OTHER_CA, other_cert) < 0 ||
	                issue(c, CERTS_SERVER, &server, ca_cert, ca_key) < 0 ||
	                issue(c, CERTS_EXPIRED, &expired, ca_cert, ca_key) < 0 ||
	                issue(c, CERTS_OTHER_NAME, &other_name, ca_cert, ca_key) < 0 ||
	                issue(c, CERTS_CLIENT, &client, ca_cert, ca_key) < 0))
		rc = -1;
	X509_free(ca_cert);
	X509_free(other_cert);
	EVP_PKEY_free(ca_key);
	EVP_PKEY_free(other_key);
	return rc;
}

void certs_done(struct certs *c)
{
	for (int i = 0; i < CERTS__COUNT; i++) {
		if (c->pem[i])
			unlink(c->path[i]);
		free(c->pem[i]);
		c->pem[i] = NULL;
	}
	if (c->dir[0])
		rmdir(c->dir);
	c->dir[0] = '\0';
}
