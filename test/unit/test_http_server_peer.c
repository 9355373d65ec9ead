// SPDX-License-Identifier: Apache-2.0
#include "base/http/http_server_peer.h"

#include <event2/event.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/http/tls_self_signed.h"
#include "test/support/certs.h"
#include "test/support/http_fixture.h"

static struct certs certs; // made once: keys cost time

static int make_certs(void **state)
{
	return certs_init(&certs);
}

static int remove_certs(void **state)
{
	certs_done(&certs);
	return 0;
}

static X509_STORE *trust_of(const char *pem)
{
	struct err e;
	X509_STORE *t = tls_trust_new(pem, strlen(pem), &e);
	if (!t)
		fail_msg("%s", e.msg);
	return t;
}

// Replies with what the peer's certificate says, held against the trust in arg.
static void handle_who(void *arg, struct http_exchange *x)
{
	static const char *const verdicts[] = {"none", "refused", "trusted"};
	struct tls_subject s;
	struct err e = {0};
	char text[1024];
	enum tls_peer peer = http_exchange_verify_peer(x, arg, &s, &e);
	if (peer == TLS_PEER_TRUSTED)
		snprintf(text, sizeof text, "trusted CN=%s O=%s n=%zu", s.common_name,
		         s.n_organizations ? s.organizations[0] : "", s.n_organizations);
	else
		snprintf(text, sizeof text, "%s %s", verdicts[peer], e.msg);
	http_exchange_reply_text(x, 200, text);
}

static const char *ask(struct http_fixture *f, const char *path, const struct http_tls *tls)
{
	char url[128];
	snprintf(url, sizeof url, "%s://127.0.0.1:%d%s", tls ? "https" : "http", http_server_port(f->server), path);
	http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = url, .tls = tls});
	if (f->result.status != 200)
		fail_msg("%s: %d %s", path, f->result.status, f->result.error.msg);
	return f->result.body;
}

static void certificate_means_what_the_authority_behind_it_means(void **state)
{
	struct http_fixture *f = *state;
	struct err e;
	char two[16384];
	snprintf(two, sizeof two, "%s%s", certs.pem[CERTS_OTHER_CA], certs.pem[CERTS_CA]);
	X509_STORE *ours = trust_of(certs.pem[CERTS_CA]), *other = trust_of(certs.pem[CERTS_OTHER_CA]),
	           *both = trust_of(two);
	http_fixture_serve(f, (struct http_server_options){.tls_cert_file = certs.path[CERTS_SERVER],
	                                                   .tls_key_file = certs.path[CERTS_SERVER_KEY],
	                                                   .tls_client_auth = HTTP_CLIENT_AUTH_REQUEST});
	assert_int_equal(http_server_route(f->server, "/ours", handle_who, ours, &e), 0);
	assert_int_equal(http_server_route(f->server, "/other", handle_who, other, &e), 0);
	assert_int_equal(http_server_route(f->server, "/both", handle_who, both, &e), 0);
	const struct http_tls with = {.ca_pem = certs.pem[CERTS_CA],
	                              .cert_pem = certs.pem[CERTS_CLIENT],
	                              .key_pem = certs.pem[CERTS_CLIENT_KEY]};
	const struct http_tls without = {.ca_pem = certs.pem[CERTS_CA]};
	const struct http_tls server_as_client = {.ca_pem = certs.pem[CERTS_CA],
	                                          .cert_pem = certs.pem[CERTS_SERVER],
	                                          .key_pem = certs.pem[CERTS_SERVER_KEY]};
	assert_string_equal(ask(f, "/ours", &with), "trusted CN=gpuscale-client O=gpuscale-testers n=1\n");
	assert_string_equal(ask(f, "/both", &with), "trusted CN=gpuscale-client O=gpuscale-testers n=1\n");
	http_fixture_assert_starts(ask(f, "/other", &with), "refused the client's certificate: self-signed");
	http_fixture_assert_starts(ask(f, "/ours", &without), "none");
	http_fixture_assert_starts(ask(f, "/ours", &server_as_client), "refused the client's certificate: unsu");
	X509_STORE_free(ours);
	X509_STORE_free(other);
	X509_STORE_free(both);
}

// A client's certificate that is its own authority, with this common name and so many organizations.
static void make_client(const char *name, int name_len, int organizations, bool expired, struct buf *cert,
                        struct buf *key)
{
	EVP_PKEY *pair = EVP_EC_gen("P-256");
	X509 *x509 = X509_new();
	X509_NAME *subject = X509_get_subject_name(x509);
	for (int i = 0; i < organizations; i++)
		X509_NAME_add_entry_by_NID(subject, NID_organizationName, MBSTRING_ASC, (const unsigned char *)"o", 1,
		                           -1, 0);
	// As raw bytes: the library itself would not take a NUL, or a name this long.
	ASN1_STRING *text = ASN1_STRING_type_new(V_ASN1_UTF8STRING);
	ASN1_STRING_set(text, name, name_len);
	X509_NAME_ENTRY *entry = X509_NAME_ENTRY_create_by_NID(NULL, NID_commonName, V_ASN1_UTF8STRING,
	                                                       ASN1_STRING_get0_data(text), name_len);
	assert_int_equal(X509_NAME_add_entry(subject, entry, -1, 0), 1);
	X509_set_version(x509, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
	X509_gmtime_adj(X509_getm_notBefore(x509), -7200);
	X509_gmtime_adj(X509_getm_notAfter(x509), expired ? -3600 : 3600);
	X509_set_issuer_name(x509, subject);
	X509_set_pubkey(x509, pair);
	assert_true(X509_sign(x509, pair, EVP_sha256()) > 0);
	BIO *bio = BIO_new(BIO_s_mem());
	char *data;
	PEM_write_bio_X509(bio, x509);
	long len = BIO_get_mem_data(bio, &data);
	buf_put(cert, data, (size_t)len);
	(void)BIO_reset(bio);
	PEM_write_bio_PrivateKey(bio, pair, NULL, NULL, 0, NULL, NULL);
	len = BIO_get_mem_data(bio, &data);
	buf_put(key, data, (size_t)len);
	BIO_free(bio);
	X509_NAME_ENTRY_free(entry);
	ASN1_STRING_free(text);
	X509_free(x509);
	EVP_PKEY_free(pair);
}

static void subject_that_could_be_misread_is_refused(void **state)
{
	struct http_fixture *f = *state;
	char longest[TLS_SUBJECT_NAME_BYTES + 1];
	memset(longest, 'n', sizeof longest);
	const struct {
		const char *name;
		int len, organizations;
		bool expired;
		const char *want;
	} rows[] = {
	        {"jane", 4, 2, false, "trusted CN=jane O=o n=2"},
	        {"jane", 4, TLS_SUBJECT_ORGANIZATIONS_MAX, false, "trusted CN=jane O=o n=32"},
	        {"jane", 4, TLS_SUBJECT_ORGANIZATIONS_MAX + 1, false, "refused more than 32 organizations"},
	        {"admin\0.example.com", 18, 0, false, "refused the certificate's subject is not text"},
	        {longest, TLS_SUBJECT_NAME_BYTES, 0, false, "refused a name of 257 bytes"},
	        {longest, TLS_SUBJECT_NAME_BYTES - 1, 0, false, "trusted CN=nnn"},
	        {"jane", 4, 0, true, "refused the client's certificate: certificate has expired"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct buf cert, key;
		struct err e;
		buf_init(&cert, 65536);
		buf_init(&key, 65536);
		make_client(rows[i].name, rows[i].len, rows[i].organizations, rows[i].expired, &cert, &key);
		X509_STORE *trust = trust_of(buf_str(&cert));
		http_fixture_serve(f, (struct http_server_options){.tls_cert_file = certs.path[CERTS_SERVER],
		                                                   .tls_key_file = certs.path[CERTS_SERVER_KEY],
		                                                   .tls_client_auth = HTTP_CLIENT_AUTH_REQUEST});
		assert_int_equal(http_server_route(f->server, "/who", handle_who, trust, &e), 0);
		const struct http_tls tls = {
		        .ca_pem = certs.pem[CERTS_CA], .cert_pem = buf_str(&cert), .key_pem = buf_str(&key)};
		http_fixture_assert_starts(ask(f, "/who", &tls), rows[i].want);
		X509_STORE_free(trust);
		buf_done(&cert);
		buf_done(&key);
	}
}

static void certificate_is_absent_without_tls(void **state)
{
	struct http_fixture *f = *state;
	struct err e;
	X509_STORE *ours = trust_of(certs.pem[CERTS_CA]);
	http_fixture_serve(f, (struct http_server_options){0});
	assert_int_equal(http_server_route(f->server, "/ours", handle_who, ours, &e), 0);
	http_fixture_assert_starts(ask(f, "/ours", NULL), "none");
	X509_STORE_free(ours);
}

static void bundle_that_is_not_all_certificates_is_refused(void **state)
{
	char cut[16384];
	struct err e;
	assert_null(tls_trust_new("", 0, &e));
	assert_int_equal(e.kind, ERR_TLS);
	assert_null(tls_trust_new("no certificate", 14, &e));
	snprintf(cut, sizeof cut, "%s-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
	         certs.pem[CERTS_CA]);
	assert_null(tls_trust_new(cut, strlen(cut), &e));
	assert_non_null(strstr(e.msg, "CA certificate 2"));
	assert_null(tls_trust_new("", TLS_TRUST_BYTES_MAX + 1, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
}

static void certificate_created_in_memory_is_served(void **state)
{
	struct http_fixture *f = *state;
	static const char *const names[] = {"localhost", "metrics.gpuscale-system.svc"};
	struct buf cert, key;
	struct err e;
	buf_init(&cert, 65536);
	buf_init(&key, 65536);
	int64_t wall_ms = (int64_t)time(NULL) * 1000;
	assert_int_equal(tls_self_signed(names, 2, wall_ms, &cert, &key, &e), 0);
	http_fixture_serve(f,
	                   (struct http_server_options){.tls_cert_pem = buf_str(&cert), .tls_key_pem = buf_str(&key)});
	struct http_tls tls = {.ca_pem = buf_str(&cert), .server_name = "localhost"};
	ask(f, "/headers", &tls);
	tls.server_name = "metrics.gpuscale-system.svc";
	ask(f, "/headers", &tls);
	tls.server_name = "elsewhere";
	char url[128];
	snprintf(url, sizeof url, "https://127.0.0.1:%d/headers", http_server_port(f->server));
	http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = url, .tls = &tls});
	http_fixture_assert_error(f, ERR_TLS, "elsewhere");
	static const char *const bad[] = {"a,DNS:b"};
	assert_int_equal(tls_self_signed(bad, 1, wall_ms, &cert, &key, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	buf_done(&cert);
	buf_done(&key);
}

static void pair_in_memory_that_does_not_fit_is_refused(void **state)
{
	struct http_fixture *f = *state;
	static const struct {
		enum certs_file cert, key;
	} rows[] = {{CERTS_SERVER, CERTS_CLIENT_KEY}, {CERTS_SERVER_KEY, CERTS_SERVER_KEY}, {CERTS_SERVER, CERTS_CA}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = {0};
		struct http_server_options o = {.tls_cert_pem = certs.pem[rows[i].cert],
		                                .tls_key_pem = certs.pem[rows[i].key]};
		http_fixture_serve(f, (struct http_server_options){0});
		assert_int_equal(http_server_set_tls(f->server, &o, &e), -1);
		assert_int_equal(e.kind, ERR_TLS);
		ask(f, "/headers", NULL); // still in plain HTTP
	}
}

static bool admit_paths_with_e(void *arg, struct http_exchange *x)
{
	int *asked = arg;
	++*asked;
	if (strchr(http_exchange_path(x), 'e'))
		return true;
	http_exchange_reply_text(x, 403, "not you");
	return false;
}

static void refused_peer_reaches_no_handler(void **state)
{
	struct http_fixture *f = *state;
	int asked = 0;
	http_fixture_serve(f, (struct http_server_options){0});
	http_server_set_admission(f->server, admit_paths_with_e, &asked);
	http_fixture_get(f, "/echo");
	assert_int_equal(f->result.status, 200);
	assert_int_equal(f->handled, 1);
	http_fixture_get(f, "/hold");
	assert_int_equal(f->result.status, 403);
	assert_int_equal(f->handled, 1);
	http_fixture_get(f, "/no");
	assert_int_equal(f->result.status, 403);
	http_fixture_get(f, "/nowhere");
	assert_int_equal(f->result.status, 404);
	assert_int_equal(asked, 4);
}

static void handle_groups(void *arg, struct http_exchange *x)
{
	char text[256] = "";
	size_t used = 0;
	const char *name, *value;
	for (size_t i = 0; http_exchange_header_at(x, i, &name, &value); i++)
		if (strcasecmp(name, "X-Group") == 0)
			used += (size_t)snprintf(text + used, sizeof text - used, "[%s]", value);
	http_exchange_reply_text(x, 200, text);
}

static void repeated_header_is_available_each_time(void **state)
{
	struct http_fixture *f = *state;
	struct err e;
	http_fixture_serve(f, (struct http_server_options){0});
	assert_int_equal(http_server_route(f->server, "/groups", handle_groups, NULL, &e), 0);
	const char *reply = http_fixture_exchange(f, "GET /groups HTTP/1.1\r\nHost: test\r\nX-Group: a\r\n"
	                                             "x-group: b c \r\nConnection: close\r\n\r\n");
	assert_non_null(strstr(reply, "[a][b c]\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(certificate_means_what_the_authority_behind_it_means,
	                                        http_fixture_setup, http_fixture_teardown),
	        cmocka_unit_test_setup_teardown(subject_that_could_be_misread_is_refused, http_fixture_setup,
	                                        http_fixture_teardown),
	        cmocka_unit_test_setup_teardown(certificate_is_absent_without_tls, http_fixture_setup,
	                                        http_fixture_teardown),
	        cmocka_unit_test(bundle_that_is_not_all_certificates_is_refused),
	        cmocka_unit_test_setup_teardown(certificate_created_in_memory_is_served, http_fixture_setup,
	                                        http_fixture_teardown),
	        cmocka_unit_test_setup_teardown(pair_in_memory_that_does_not_fit_is_refused, http_fixture_setup,
	                                        http_fixture_teardown),
	        cmocka_unit_test_setup_teardown(refused_peer_reaches_no_handler, http_fixture_setup,
	                                        http_fixture_teardown),
	        cmocka_unit_test_setup_teardown(repeated_header_is_available_each_time, http_fixture_setup,
	                                        http_fixture_teardown),
	};
	return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
