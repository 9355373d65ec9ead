// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the credentials of a TriggerAuthentication are those that its modes want, each fault is named
// without a secret, and a client uses them for its next query.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "controller/source/trigger_auth.h"
#include "test/support/promql_fixture.h"

#define REF(parameter, key) "{\"parameter\":\"" parameter "\",\"name\":\"s\",\"key\":\"" key "\"}"

static int refer(struct trigger_credentials *c, const char *modes, const char *refs, struct err *e)
{
	char json[2048];
	snprintf(json, sizeof json, "{\"spec\":{\"secretTargetRef\":[%s]}}", refs);
	if (trigger_credentials_init(c, modes, e) < 0)
		return -1;
	return trigger_credentials_refer(c, json, strlen(json), e);
}

static int read_secret(struct trigger_credentials *c, const char *data, struct err *e)
{
	char json[2048];
	snprintf(json, sizeof json, "{\"data\":{%s}}", data);
	return trigger_credentials_read(c, "s", json, strlen(json), e);
}

static void modes_say_what_is_wanted(void **state)
{
	struct trigger_credentials c;
	struct promql_credentials used;
	struct err e;
	assert_int_equal(refer(&c, "basic, custom",
	                       REF("username", "u") "," REF("password", "p") "," REF("customAuthHeader", "h") "," REF(
	                               "customAuthValue", "v") "," REF("bearerToken", "unused"),
	                       &e),
	                 0);
	assert_string_equal(trigger_credentials_missing(&c), "s");
	// "ann", "open sesame\n", "X-Key", "7"
	assert_int_equal(
	        read_secret(&c, "\"u\":\"YW5u\",\"p\":\"b3BlbiBzZXNhbWUK\",\"h\":\"WC1LZXk=\",\"v\":\"Nw==\"", &e), 0);
	assert_null(trigger_credentials_missing(&c));
	assert_int_equal(trigger_credentials_use(&c, &used, &e), 0);
	assert_string_equal(used.basic_user, "ann");
	assert_string_equal(used.basic_password, "open sesame");
	assert_string_equal(used.header, "X-Key: 7");
	assert_null(used.bearer_token);
	assert_null(used.ca_pem);
	trigger_credentials_done(&c);
}

static void fingerprint_follows_the_values(void **state)
{
	struct trigger_credentials c;
	struct err e;
	uint64_t prints[2];
	static const char *const values[] = {"\"t\":\"YQ==\"", "\"t\":\"Yg==\""};
	for (int i = 0; i < 2; i++) {
		assert_int_equal(refer(&c, "bearer", REF("bearerToken", "t"), &e), 0);
		assert_int_equal(read_secret(&c, values[i], &e), 0);
		prints[i] = trigger_credentials_print(&c);
		trigger_credentials_done(&c);
	}
	assert_int_not_equal(prints[0], prints[1]);
}

static void faults_are_named_without_secrets(void **state)
{
	static const struct {
		const char *modes, *refs, *data, *message;
	} rows[] = {
	        {"", "", NULL, "authModes \"\""},
	        {"oauth", "", NULL, "authModes \"oauth\""},
	        {"bearer", "", NULL, "has no secretTargetRef of the parameter bearerToken"},
	        {"tls", REF("cert", "c"), NULL, "has no secretTargetRef of the parameter key"},
	        {"bearer", "{\"parameter\":\"bearerToken\",\"name\":\"../x\",\"key\":\"k\"}", NULL, "needs the name"},
	        {"bearer", "{\"parameter\":\"bearerToken\",\"name\":\"s\"}", NULL, "needs the name and the key"},
	        {"bearer", REF("bearerToken", "t"), "\"other\":\"YQ==\"",
	         "Secret s has no text of up to 16384 bytes under the key t"},
	        {"bearer", REF("bearerToken", "t"), "\"t\":\"c2VjcmV0AHg=\"", "under the key t"}, // a NUL in it
	        {"bearer", REF("bearerToken", "t"), "\"t\":\"*\"", "under the key t"},
	        {"bearer,basic", REF("bearerToken", "t") "," REF("username", "t") "," REF("password", "t"),
	         "\"t\":\"c2VjcmV0\"", "both bearer and basic"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct trigger_credentials c;
		struct promql_credentials used;
		struct err e = {0};
		int rc = refer(&c, rows[i].modes, rows[i].refs, &e);
		if (rc == 0 && rows[i].data)
			rc = read_secret(&c, rows[i].data, &e);
		if (rc == 0 && rows[i].data)
			rc = trigger_credentials_use(&c, &used, &e);
		if (rc != -1 || !strstr(e.msg, rows[i].message) || strstr(e.msg, "secret\""))
			fail_msg("row %zu: %d: %s", i, rc, e.msg);
		trigger_credentials_done(&c);
	}
}

static void client_uses_what_replaced_its_credentials(void **state)
{
	struct promql_fixture *f = *state;
	struct promql *p = promql_fixture_open(f, (struct promql_options){.bearer_token = "old"});
	struct err e;
	assert_int_equal(promql_set_credentials(p,
	                                        &(struct promql_credentials){.basic_user = "aladdin",
	                                                                     .basic_password = "open sesame",
	                                                                     .header = "X-Scope-OrgID: tenant-7"},
	                                        &e),
	                 0);
	promql_fixture_ask(f, p);
	promql_fixture_expect_ok(f);
	assert_string_equal(f->requests[0].authorization, "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ==");
	assert_string_equal(f->requests[0].extra, "tenant-7");
	assert_int_equal(promql_set_credentials(p, &(struct promql_credentials){.bearer_token = "a\r\nb"}, &e), -1);
	assert_null(strstr(e.msg, "a\r"));
	promql_fixture_ask(f, p);
	assert_string_equal(f->requests[1].authorization, "Basic YWxhZGRpbjpvcGVuIHNlc2FtZQ=="); // as before
	assert_int_equal(promql_set_credentials(p, &(struct promql_credentials){.bearer_token = "new"}, &e), 0);
	promql_fixture_ask(f, p);
	assert_string_equal(f->requests[2].authorization, "Bearer new");
	assert_string_equal(f->requests[2].extra, "");
	assert_int_equal(promql_set_credentials(p, &(struct promql_credentials){.cert_pem = "x"}, &e), -1);
	promql_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(modes_say_what_is_wanted),
	        cmocka_unit_test(fingerprint_follows_the_values),
	        cmocka_unit_test(faults_are_named_without_secrets),
	        cmocka_unit_test_setup_teardown(client_uses_what_replaced_its_credentials, promql_fixture_setup,
	                                        promql_fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
