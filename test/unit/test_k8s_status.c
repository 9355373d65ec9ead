// SPDX-License-Identifier: Apache-2.0
// Goal: a failed reply of the API server becomes an error whose kind, text and waiting time are the server's own.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "k8s/client/k8s_client.h"

struct status_case {
	const char *name;
	int http_status;
	const char *body;
	enum err_kind kind;
	int64_t retry_after_ms;
	const char *msg; // exact
};

static const struct status_case cases[] = {
        {"forbidden", 403,
         "{\"kind\":\"Status\",\"status\":\"Failure\",\"message\":\"deployments.apps \\\"web\\\" is forbidden: User "
         "\\\"u\\\" cannot patch\",\"reason\":\"Forbidden\",\"code\":403}",
         ERR_AUTH, 0, "deployments.apps \"web\" is forbidden: User \"u\" cannot patch (HTTP 403)"},
        {"throttled with seconds", 429,
         "{\"kind\":\"Status\",\"message\":\"too many requests\",\"details\":{\"retryAfterSeconds\":2}}", ERR_THROTTLED,
         2000, "too many requests (HTTP 429)"},
        {"conflict", 409, "{\"kind\":\"Status\",\"message\":\"the object has been modified\"}", ERR_CONFLICT, 0,
         "the object has been modified (HTTP 409)"},
        {"reason alone", 500, "{\"kind\":\"Status\",\"reason\":\"InternalError\"}", ERR_SERVER, 0,
         "InternalError (HTTP 500)"},
        {"retryAfterSeconds that is not a number", 503,
         "{\"kind\":\"Status\",\"message\":\"x\",\"details\":{\"retryAfterSeconds\":\"soon\"}}", ERR_SERVER, 0,
         "x (HTTP 503)"},
        {"retryAfterSeconds out of range", 503,
         "{\"kind\":\"Status\",\"message\":\"x\",\"details\":{\"retryAfterSeconds\":-5}}", ERR_SERVER, 0,
         "x (HTTP 503)"},
        {"plain text, first line only", 404, "404 page not found\nmore", ERR_NOT_FOUND, 0,
         "404 page not found (HTTP 404)"},
        {"control characters become blanks", 502, "bad\x1b[31m gateway", ERR_SERVER, 0, "bad [31m gateway (HTTP 502)"},
        {"other JSON says nothing", 404, "{\"paths\":[\"/apis\"]}", ERR_NOT_FOUND, 0,
         "the API server answered HTTP 404 without saying why"},
        {"empty", 401, "", ERR_AUTH, 0, "the API server answered HTTP 401 without saying why"},
        {"cut off JSON is shown as text", 500, "{\"kind\":\"Sta", ERR_SERVER, 0, "{\"kind\":\"Sta (HTTP 500)"},
};

static void every_reply_becomes_its_error(void **state)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		const struct status_case *c = &cases[i];
		struct err e;
		k8s_status_to_err(c->http_status, c->body, strlen(c->body), &e);
		if (e.kind != c->kind || e.code != c->http_status || e.retry_after_ms != c->retry_after_ms ||
		    strcmp(e.msg, c->msg) != 0)
			fail_msg("%s: kind %s code %d retry %lld msg \"%s\"", c->name, err_kind_info(e.kind)->name,
			         e.code, (long long)e.retry_after_ms, e.msg);
	}
}

static void long_message_is_cut_at_a_character(void **state)
{
	char body[2000] = "{\"kind\":\"Status\",\"message\":\"";
	for (int i = 0; i < 500; i++)
		strncat(body, "\xc3\xa4", sizeof body - strlen(body) - 1);
	strncat(body, "\"}", sizeof body - strlen(body) - 1);
	struct err e;
	k8s_status_to_err(500, body, strlen(body), &e);
	const char *end = strstr(e.msg, " (HTTP 500)");
	assert_non_null(end);
	assert_int_equal((end - e.msg) % 2, 0); // whole two-byte characters
	assert_true(end - e.msg > 200);
}

struct class_case {
	const char *path, *class_name;
};
static const struct class_case classes[] = {
        {"/apis/apps/v1/namespaces/ns/deployments/x/scale", "deployments/scale"},
        {"/apis/apps/v1/namespaces/ns/deployments/x", "deployments"},
        {"/apis/apps/v1/namespaces/ns/deployments", "deployments"},
        {"/api/v1/namespaces/ns/pods?limit=500&labelSelector=a/b/c", "pods"},
        {"/api/v1/namespaces/ns", "namespaces"},
        {"/apis/apps/v1", "discovery"},
        {"/api/v1", "discovery"},
        {"/apis", "discovery"},
        {"/apis/example.dev/v1/clusterthings/x/scale", "clusterthings/scale"},
        {"/version", "other"},
        {"/", "other"},
        {"/apis/g/v1/namespaces/ns/"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/x",
         "other"},
};

static void path_class_has_no_names_in_it(void **state)
{
	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
		char out[K8S_RESOURCE_CLASS_BYTES];
		k8s_path_class(classes[i].path, out);
		assert_string_equal(out, classes[i].class_name);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_reply_becomes_its_error),
	        cmocka_unit_test(long_message_is_cut_at_a_character),
	        cmocka_unit_test(path_class_has_no_names_in_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
