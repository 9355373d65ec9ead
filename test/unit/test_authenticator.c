// SPDX-License-Identifier: Apache-2.0
#include "controller/external/external_metrics_server.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "k8s/server/k8s_user.h"
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

static void member(struct json_writer *w, const char *key, const char *value)
{
	json_write_key(w, key);
	json_write_str(w, value);
}

// Of a cluster with these authenticator (NULL: none) and allowed names (JSON).
static struct authenticator *authorities_of(const char *proxy_ca, const char *client_ca, const char *names)
{
	struct buf b;
	struct json_writer w;
	struct err e;
	buf_init(&b, 65536);
	json_write_init(&w, &b, 0);
	json_write_object_begin(&w);
	json_write_key(&w, "metadata");
	json_write_object_begin(&w);
	member(&w, "name", "extension-apiserver-authentication");
	member(&w, "namespace", "kube-system");
	json_write_object_end(&w);
	json_write_key(&w, "data");
	json_write_object_begin(&w);
	if (client_ca)
		member(&w, "client-ca-file", client_ca);
	if (proxy_ca)
		member(&w, "requestheader-client-ca-file", proxy_ca);
	member(&w, "requestheader-allowed-names", names);
	member(&w, "requestheader-username-headers", "[\"X-Remote-User\",\"X-Other-User\"]");
	member(&w, "requestheader-group-headers", "[\"X-Remote-Group\"]");
	member(&w, "requestheader-extra-headers-prefix", "[\"X-Remote-Extra-\"]");
	json_write_object_end(&w);
	json_write_object_end(&w);
	struct authenticator *a = authenticator_new(buf_str(&b), b.len, &e);
	if (!a)
		fail_msg("%s", e.msg);
	buf_done(&b);
	return a;
}

// Replies with who the request comes from.
static void handle_who(void *arg, struct http_exchange *x)
{
	struct authenticator *const *a = arg;
	struct k8s_user *user;
	const char *token;
	struct err e;
	struct buf b;
	struct json_writer w;
	buf_init(&b, 65536);
	json_write_init(&w, &b, 0);
	switch (authenticator_identify(*a, x, &user, &token, &e)) {
	case IDENTITY_USER:
		json_write_object_begin(&w);
		k8s_user_write(user, &w);
		json_write_object_end(&w);
		k8s_user_unref(user);
		break;
	case IDENTITY_TOKEN:
		buf_printf(&b, "token %s", token);
		break;
	default:
		buf_printf(&b, "none %s", e.msg);
	}
	http_exchange_reply(x, 200, "text/plain", buf_str(&b), b.len);
	buf_done(&b);
}

static const char *ask(struct http_fixture *f, bool with_certificate, const char *const *headers)
{
	char url[64];
	struct http_tls tls = {.ca_pem = certs.pem[CERTS_CA]};
	if (with_certificate) {
		tls.cert_pem = certs.pem[CERTS_CLIENT];
		tls.key_pem = certs.pem[CERTS_CLIENT_KEY];
	}
	snprintf(url, sizeof url, "https://127.0.0.1:%d/who", http_server_port(f->server));
	http_fixture_fetch(f, &(struct http_request){.method = "GET", .url = url, .headers = headers, .tls = &tls});
	if (f->result.status != 200)
		fail_msg("%d %s", f->result.status, f->result.error.msg);
	return f->result.body;
}

static void headers_count_only_from_the_aggregation_layer(void **state)
{
	struct http_fixture *f = *state;
	static const char *const jane[] = {"X-Remote-User: jane",
	                                   "X-Remote-Group: dev",
	                                   "x-remote-group: ops",
	                                   "X-Remote-Extra-Acme%2FScopes: a b",
	                                   "X-Remote-Extra-Acme%2Fscopes: c",
	                                   NULL};
	static const char *const jane_by_token[] = {"X-Remote-User: jane", "Authorization: Bearer t0ken", NULL};
	static const char *const second_header[] = {"X-Other-User: joe", NULL};
	static const char *const none[] = {NULL};
	static char long_key[2048];
	int at = snprintf(long_key, sizeof long_key, "X-Remote-Extra-");
	memset(long_key + at, 'a', 1100);
	snprintf(long_key + at + 1100, 8, ": 1");
	const char *const too_much[] = {"X-Remote-User: jane", long_key, NULL};
	static const char by_headers[] = "{\"user\":\"jane\",\"groups\":[\"dev\",\"ops\",\"system:authenticated\"],"
	                                 "\"extra\":{\"acme/scopes\":[\"a b\",\"c\"]}}";
	static const char by_certificate[] =
	        "{\"user\":\"gpuscale-client\",\"groups\":[\"gpuscale-testers\",\"system:authenticated\"]}";
	const char *ours = certs.pem[CERTS_CA], *other = certs.pem[CERTS_OTHER_CA];
	const struct {
		const char *proxy_ca, *client_ca, *names;
		bool with_certificate;
		const char *const *headers;
		const char *want;
	} rows[] = {
	        {ours, other, "[\"gpuscale-client\"]", true, jane, by_headers},
	        {ours, other, "[]", true, jane, by_headers},
	        {ours, other, "[\"gpuscale-client\"]", true, second_header,
	         "{\"user\":\"joe\",\"groups\":[\"system:authenticated\"]}"},
	        // The same certificate, but its name is not one that may.
	        {ours, other, "[\"front-proxy\"]", true, jane, "none the client's certificate"},
	        // Of the clients' authority: the certificate says who it is, whatever the headers say.
	        {other, ours, "[]", true, jane, by_certificate},
	        {NULL, ours, "[]", true, jane, by_certificate},
	        {ours, ours, "[\"front-proxy\"]", true, jane, by_certificate},
	        // The aggregation layer names no user: it speaks for itself, if the clients' authority knows it.
	        {ours, ours, "[]", true, none, by_certificate},
	        {ours, other, "[]", true, none, "none"},
	        // Headers above the ceiling: the request has no user, rather than the aggregation layer itself or a
	        // user with only some of the groups.
	        {ours, ours, "[]", true, too_much, "none an extra key of 1100 bytes"},
	        // Of no authority that counts.
	        {other, other, "[]", true, jane, "none the client's certificate"},
	        {NULL, NULL, "[]", true, jane, "none"},
	        // Without a certificate headers are nothing.
	        {ours, ours, "[]", false, jane, "none"},
	        {ours, ours, "[]", false, jane_by_token, "token t0ken"},
	        {other, other, "[]", true, jane_by_token, "token t0ken"},
	        {ours, ours, "[]", false, none, "none"},
	};
	struct authenticator *a = NULL;
	struct err e;
	http_fixture_serve(f, (struct http_server_options){.tls_cert_file = certs.path[CERTS_SERVER],
	                                                   .tls_key_file = certs.path[CERTS_SERVER_KEY],
	                                                   .tls_client_auth = HTTP_CLIENT_AUTH_REQUEST});
	assert_int_equal(http_server_route(f->server, "/who", handle_who, &a, &e), 0);
	// Before anything is known, neither headers nor certificates count.
	http_fixture_assert_starts(ask(f, true, jane), "none");
	assert_string_equal(ask(f, true, jane_by_token), "token t0ken");
	for (size_t i = 0; i < COUNT(rows); i++) {
		a = authorities_of(rows[i].proxy_ca, rows[i].client_ca, rows[i].names);
		const char *got = ask(f, rows[i].with_certificate, rows[i].headers);
		bool exact = rows[i].want[0] == '{';
		if (exact ? strcmp(got, rows[i].want) != 0 : strncmp(got, rows[i].want, strlen(rows[i].want)) != 0)
			fail_msg("row %zu: %s", i, got);
		authenticator_free(a);
		a = NULL;
	}
}

static void authority_that_is_not_a_certificate_is_refused(void **state)
{
	static const char text[] = "{\"metadata\":{\"name\":\"extension-apiserver-authentication\",\"namespace\":"
	                           "\"kube-system\"},\"data\":{\"requestheader-client-ca-file\":\"none\"}}";
	struct err e;
	assert_null(authenticator_new(text, sizeof text - 1, &e));
	assert_non_null(strstr(e.msg, "requestheader-client-ca-file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(headers_count_only_from_the_aggregation_layer, http_fixture_setup,
	                                        http_fixture_teardown),
	        cmocka_unit_test(authority_that_is_not_a_certificate_is_refused),
	};
	return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
