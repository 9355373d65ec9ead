// SPDX-License-Identifier: Apache-2.0
// Goal of this test: answers of the token endpoints become credentials, unusable ones become errors that do not quote
// them, and a token is never requested over an unsafe endpoint.
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/err.h"
#include "promql/promql_private.h"

#define NOW_MS 1767603600000 // 2026-01-05T09:00:00Z

static int take(enum promql_identity kind, const char *text, struct identity_token *t, struct err *e)
{
	err_clear(e);
	return identity_answer_read(kind, text, strlen(text), NOW_MS, t, e);
}

static void answers_become_credentials(void **state)
{
	(void)state;
	struct identity_token t;
	struct err e;
	assert_int_equal(take(PROMQL_IDENTITY_GOOGLE, "{\"access_token\":\"g\",\"expires_in\":60}", &t, &e), 0);
	assert_string_equal(t.secret, "g");
	assert_null(t.key_id);
	assert_int_equal(t.lifetime_ms, 60000);
	identity_token_done(&t);
	assert_int_equal(take(PROMQL_IDENTITY_AZURE, "{\"access_token\":\"a\",\"expires_in\":\"3599\"}", &t, &e), 0);
	assert_int_equal(t.lifetime_ms, 3599000);
	identity_token_done(&t);
	assert_int_equal(take(PROMQL_IDENTITY_AMAZON,
	                      "{\"AccessKeyId\":\"k\",\"SecretAccessKey\":\"s/+=\",\"Token\":\"t\","
	                      "\"Expiration\":\"2026-01-05T09:30:00Z\"}",
	                      &t, &e),
	                 0);
	assert_string_equal(t.key_id, "k");
	assert_string_equal(t.secret, "s/+=");
	assert_string_equal(t.session, "t");
	assert_int_equal(t.lifetime_ms, 1800000);
	identity_token_done(&t);
	assert_int_equal(take(PROMQL_IDENTITY_AMAZON,
	                      "<A><SessionToken>t</SessionToken><SecretAccessKey>s/+=</SecretAccessKey>"
	                      "<Expiration>2026-01-05T09:30:00Z</Expiration><AccessKeyId>k</AccessKeyId></A>",
	                      &t, &e),
	                 0);
	assert_string_equal(t.secret, "s/+=");
	assert_int_equal(t.lifetime_ms, 1800000);
	identity_token_done(&t);
}

static void unusable_answers_are_errors_without_their_text(void **state)
{
	(void)state;
	static const struct {
		enum promql_identity kind;
		const char *text, *says;
	} rows[] = {
	        {PROMQL_IDENTITY_GOOGLE, "", "no usable JSON"},
	        {PROMQL_IDENTITY_GOOGLE, "hunter2", "no usable JSON"},
	        {PROMQL_IDENTITY_GOOGLE, "{\"access_token\":\"hunter2\"}", "no usable expires_in"},
	        {PROMQL_IDENTITY_GOOGLE, "{\"expires_in\":60}", "no usable access_token"},
	        {PROMQL_IDENTITY_GOOGLE, "{\"access_token\":\"hunter2\\n\",\"expires_in\":60}",
	         "no usable access_token"},
	        {PROMQL_IDENTITY_GOOGLE, "{\"access_token\":\"hunter2\",\"expires_in\":0}", "has expired"},
	        {PROMQL_IDENTITY_GOOGLE, "{\"access_token\":\"hunter2\",\"expires_in\":\"x\"}", "has expired"},
	        {PROMQL_IDENTITY_AMAZON,
	         "{\"AccessKeyId\":\"k\",\"SecretAccessKey\":\"hunter2\",\"Token\":\"t\","
	         "\"Expiration\":\"2026-01-05T08:59:00Z\"}",
	         "has expired"},
	        {PROMQL_IDENTITY_AMAZON, "{\"AccessKeyId\":\"k\",\"SecretAccessKey\":\"hunter2\",\"Token\":\"t\"}",
	         "no usable Expiration"},
	        {PROMQL_IDENTITY_AMAZON, "<SecretAccessKey>hunter2</SecretAccessKey>", "no usable AccessKeyId"},
	        {PROMQL_IDENTITY_AMAZON, "<AccessKeyId>k</AccessKeyId><SecretAccessKey>hunter2",
	         "no usable SecretAccessKey"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct identity_token t;
		struct err e;
		assert_int_equal(take(rows[i].kind, rows[i].text, &t, &e), -1);
		assert_null(t.secret);
		if (!strstr(e.msg, rows[i].says) || strstr(e.msg, "hunter2"))
			fail_msg("%s: %s", rows[i].text, e.msg);
	}
}

static void token_endpoint_in_plain_text_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *url;
		bool is_safe;
	} rows[] = {
	        {"http://169.254.170.23/v1/credentials", true},
	        {"http://127.0.0.1:80/x", true},
	        {"https://sts.example/x", true},
	        {"http://sts.example/x", false},
	        {"http://127.0.0.1.example/x", false},
	        {"http://127.0.0.1@example/x", false},
	        {"http://localhostx/", false},
	        {"ftp://127.0.0.1/", false},
	};
	unsetenv("AWS_ROLE_ARN");
	unsetenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct identity_request r;
		struct err e;
		setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", rows[i].url, 1);
		int rc = identity_request_fill(&r, PROMQL_IDENTITY_AMAZON, "eu-west-1", &e);
		if ((rc == 0) != rows[i].is_safe)
			fail_msg("%s: %s", rows[i].url, rc ? e.msg : "accepted");
		identity_request_done(&r);
	}
	unsetenv("AWS_CONTAINER_CREDENTIALS_FULL_URI");
}

static void region_of_amazon_becomes_the_scope(void **state)
{
	(void)state;
	char scope[PROMQL_REGION_MAX + 16];
	struct err e;
	unsetenv("AWS_REGION");
	assert_int_equal(identity_check(PROMQL_IDENTITY_AMAZON, NULL, scope, &e), -1);
	assert_int_equal(identity_check(PROMQL_IDENTITY_AMAZON, "eu-west-1:x", scope, &e), -1);
	assert_int_equal(identity_check(PROMQL_IDENTITY_AMAZON, "eu-west-1", scope, &e), 0);
	assert_string_equal(scope, "aws:amz:eu-west-1:aps");
	setenv("AWS_REGION", "us-east-1", 1);
	assert_int_equal(identity_check(PROMQL_IDENTITY_AMAZON, NULL, scope, &e), 0);
	assert_string_equal(scope, "aws:amz:us-east-1:aps");
	unsetenv("AWS_REGION");
}

// The file is read again at each request for a token.
static void invalid_token_file_costs_no_memory(void **state)
{
	(void)state;
	char path[] = "/tmp/identity-XXXXXX";
	struct identity_request r;
	struct err e;
	size_t before = 0;
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "hunter 2", 8), 8);
	close(fd);
	setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
	setenv("AWS_WEB_IDENTITY_TOKEN_FILE", path, 1);
	unsetenv("AWS_ENDPOINT_URL_STS");
	for (int i = 0; i < 100; i++) {
		assert_int_equal(identity_request_fill(&r, PROMQL_IDENTITY_AMAZON, "eu-west-1", &e), -1);
		assert_non_null(strstr(e.msg, "blank"));
		identity_request_done(&r);
		if (i == 0)
			before = mallinfo2().uordblks;
	}
	assert_int_equal(mallinfo2().uordblks, before);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(answers_become_credentials),
	        cmocka_unit_test(unusable_answers_are_errors_without_their_text),
	        cmocka_unit_test(token_endpoint_in_plain_text_is_refused),
	        cmocka_unit_test(region_of_amazon_becomes_the_scope),
	        cmocka_unit_test(invalid_token_file_costs_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
