// SPDX-License-Identifier: Apache-2.0
// Goal: a credential plugin is run as the protocol says, and one that misbehaves costs a bounded time and an error that
// helps, never a hang and never a leaked secret.
#include <errno.h>
#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "k8s/client/k8s_config.h"
#include "k8s/client/k8s_credentials.h"
#include "k8s/client/k8s_exec.h"
#include "test/support/apart.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/on_valgrind.h"

#define RUN_MAX_S 120
#define SPOIL_MS  10
#define V1        "client.authentication.k8s.io/v1"

// ---- what a plugin prints ----

struct decode_case {
	const char *name, *text;
	const char *token, *cert; // of an accepted one
	int64_t expires_ms;
	const char *says; // of a refused one, else NULL
};
#define CREDENTIAL(status) "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}"
static const struct decode_case decode_cases[] = {
        {"a token", CREDENTIAL("{\"token\":\"t\"}"), "t", NULL, 0, NULL},
        {"a token with an end", CREDENTIAL("{\"token\":\"t\",\"expirationTimestamp\":\"2026-01-05T09:00:00Z\"}"), "t",
         NULL, 1767603600000, NULL},
        {"a certificate", CREDENTIAL("{\"clientCertificateData\":\"C\",\"clientKeyData\":\"K\"}"), NULL, "C", 0, NULL},
        {"nothing", "", NULL, NULL, 0, "printed nothing"},
        {"no JSON", "hush-hush", NULL, NULL, 0, "not JSON"},
        {"another kind", "{\"kind\":\"Secret\"}", NULL, NULL, 0, "not an ExecCredential"},
        {"another version", "{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}",
         NULL, NULL, 0, "v1beta1"},
        {"no status", "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\"}", NULL, NULL, 0, "neither a token"},
        {"empty status", CREDENTIAL("{\"token\":\"\"}"), NULL, NULL, 0, "neither a token"},
        {"a certificate without key", CREDENTIAL("{\"clientCertificateData\":\"hush\"}"), NULL, NULL, 0, "only one of"},
        {"a token that is a number", CREDENTIAL("{\"token\":1}"), NULL, NULL, 0, "status.token is not a string"},
        {"a token that would add a header", CREDENTIAL("{\"token\":\"hush\\r\\nX: y\"}"), NULL, NULL, 0,
         "blanks inside"},
        {"a bad time", CREDENTIAL("{\"token\":\"hush\",\"expirationTimestamp\":\"soon\"}"), NULL, NULL, 0, "RFC 3339"},
        {"a time that is a number", CREDENTIAL("{\"token\":\"hush\",\"expirationTimestamp\":1767607200}"), NULL, NULL,
         0, "status.expirationTimestamp is not a string"},
        {"a status that is a list", CREDENTIAL("[\"hush\"]"), NULL, NULL, 0, "neither a token"},
};

static void output_of_a_plugin_is_read_or_refused(void **state)
{
	for (size_t i = 0; i < sizeof decode_cases / sizeof decode_cases[0]; i++) {
		const struct decode_case *c = &decode_cases[i];
		struct k8s_exec_result r;
		struct err e = {0};
		int rc = k8s_exec_decode(V1, c->text, strlen(c->text), &r, &e);
		if ((rc == 0) != (c->says == NULL) || (c->says && (e.kind != ERR_AUTH || !strstr(e.msg, c->says))))
			fail_msg("%s: rc %d %s", c->name, rc, e.msg);
		assert_null(strstr(e.msg, "hush"));
		if (rc == 0) {
			assert_int_equal(r.expires_wall_ms, c->expires_ms);
			if (c->token)
				assert_string_equal(r.token, c->token);
			if (c->cert)
				assert_string_equal(r.cert_pem, c->cert);
		}
		k8s_exec_result_done(&r);
	}
}

static void plugin_receives_the_cluster(void **state)
{
	const struct k8s_exec exec = {.api_version = V1, .command = "x", .provide_cluster_info = true};
	struct k8s_config config = {.server = "https://h", .tls = {.ca_pem = "PEM", .server_name = "n"}, .exec = &exec};
	struct err e = {0};
	char *info = k8s_exec_info(&config, &e);
	assert_non_null(info);
	assert_string_equal(
	        info,
	        "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
	        "\",\"spec\":{\"interactive\":false,\"cluster\":{\"server\":\"https://h\",\"tls-server-name\":\"n\","
	        "\"certificate-authority-data\":\"UEVN\"}}}");
	free(info);
	config.tls = (struct http_tls){.ca_file = "/nowhere/ca"};
	assert_null(k8s_exec_info(&config, &e));
	assert_non_null(strstr(e.msg, "/nowhere/ca"));
}

// ---- running one ----

struct outcome {
	struct event_base *loop;
	bool is_done;
	int turns; // of the loop
	struct k8s_exec_result result;
	struct err error;
};

static void on_done(void *arg, struct k8s_exec_result *result, const struct err *error)
{
	struct outcome *o = arg;
	assert_false(o->is_done);
	o->is_done = true;
	if (result)
		o->result = *result;
	else
		o->error = *error;
}

// What else is on the loop leaves this behind.
static void spoil_errno(evutil_socket_t fd, short what, void *arg)
{
	errno = EAGAIN;
}

// Runs `sh -c script`, at most RUN_MAX_S.
static void run(const char *script, const char *const *env, int64_t deadline_ms, struct outcome *o)
{
	const char *const args[] = {"-c", script, NULL};
	const struct k8s_exec exec = {
	        .api_version = V1, .command = "sh", .args = args, .env = env, .source = "the test"};
	const struct k8s_config config = {.server = "https://h", .exec = &exec};
	*o = (struct outcome){.loop = event_base_new()};
	assert_non_null(o->loop);
	struct timeval often = {.tv_usec = SPOIL_MS * 1000};
	struct event *spoiler = event_new(o->loop, -1, EV_PERSIST, spoil_errno, NULL);
	assert_int_equal(event_add(spoiler, &often), 0);
	int64_t end = test_now_ms() + RUN_MAX_S * 1000;
	if (!k8s_exec_start(o->loop, &config, deadline_ms, on_done, o, &o->error))
		fail_msg("%s", o->error.msg);
	assert_false(o->is_done);
	for (; !o->is_done && test_now_ms() < end; o->turns++)
		event_base_loop(o->loop, EVLOOP_ONCE);
	assert_true(o->is_done);
	event_free(spoiler);
	event_base_free(o->loop);
}

static void plugin_sees_its_environment_and_no_terminal(void **state)
{
	static const char *const env[] = {"GPUSCALE_TEST=from config", NULL};
	struct outcome o;
	setenv("GPUSCALE_TEST", "inherited", 1);
	run("read x; printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
	    "\",\"status\":{\"token\":\"%s-%s-%s\"}}' \"$(env | grep -c GPUSCALE_TEST=)\" \"$(printenv GPUSCALE_TEST | "
	    "tr ' ' _)\" "
	    "\"$(printenv KUBERNETES_EXEC_INFO | grep -c '\"interactive\":false')\"",
	    env, 60000, &o);
	if (o.error.kind)
		fail_msg("%s", o.error.msg);
	assert_string_equal(o.result.token, "1-from_config-1");
	k8s_exec_result_done(&o.result);
}

static void plugin_that_hangs_is_killed_with_its_children(void **state)
{
	struct outcome o;
	struct clock clock;
	clock_init_real(&clock);
	int64_t begin = clock_mono_ms(&clock);
	run("sleep 1000 & echo started >&2; sleep 1000", NULL, 12000, &o);
	assert_int_equal(o.error.kind, ERR_TIMEOUT);
	assert_non_null(
	        strstr(o.error.msg, "credential plugin \"sh\" (the test) did not end in time and was killed: started"));
	assert_true(clock_mono_ms(&clock) - begin < 60000);
}

static void plugin_that_prints_without_end_is_killed(void **state)
{
	struct outcome o;
	run("yes", NULL, 60000, &o);
	assert_int_equal(o.error.kind, ERR_LIMIT);
	assert_non_null(strstr(o.error.msg, "1 MiB"));
}

static void plugin_that_floods_stderr_still_ends(void **state)
{
	struct outcome o;
	run("yes complaint | head -c 1000000 >&2; exit 4", NULL, 60000, &o);
	assert_int_equal(o.error.kind, ERR_AUTH);
	assert_non_null(strstr(o.error.msg, "exited with status 4: complaint"));
}

static void stderr_of_a_plugin_becomes_one_line_without_control_characters(void **state)
{
	struct outcome o;
	run("printf '\\033[2Jd\\303\\251nied\\a\\nX' >&2; exit 1", NULL, 60000, &o);
	assert_int_equal(o.error.kind, ERR_AUTH);
	assert_non_null(strstr(o.error.msg, "exited with status 1: \\x1b[2Jd\xC3\xA9nied\\x07"));
	assert_null(strpbrk(o.error.msg, "\033\a\n"));
}

static void plugin_that_closes_stderr_is_waited_for_without_turning(void **state)
{
	struct outcome o;
	int64_t begin = test_now_ms();
	run("sleep 0.1; exec 2>&-; sleep 2; printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
	    "\",\"status\":{\"token\":\"t\"}}'",
	    NULL, 60000, &o);
	assert_string_equal(o.result.token, "t");
	assert_true(o.turns < 2 * (test_now_ms() - begin) / SPOIL_MS + 100);
	k8s_exec_result_done(&o.result);
}

static void plugin_killed_by_a_signal_is_reported_as_such(void **state)
{
	struct outcome o;
	run("kill -9 $$", NULL, 60000, &o);
	assert_non_null(strstr(o.error.msg, "was killed by signal 9"));
}

static void plugin_that_is_not_there_brings_its_hint(void **state)
{
	const struct k8s_exec exec = {.api_version = V1,
	                              .command = "gpuscale-no-such-plugin",
	                              .install_hint = "Install it from the cloud's package",
	                              .source = "the test"};
	const struct k8s_config config = {.server = "https://h", .exec = &exec};
	if (on_valgrind())
		skip(); // its posix_spawn reports a program that is not there as one that ends with 127
	struct event_base *loop = event_base_new();
	struct err e = {0};
	assert_int_equal(setenv("PATH", "/usr/bin:/bin", 1), 0); // a folder that may not be searched is another error
	assert_null(k8s_exec_start(loop, &config, 1000, on_done, NULL, &e));
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(e.msg, "gpuscale-no-such-plugin"));
	assert_non_null(strstr(e.msg, "Install it from the cloud's package"));
	event_base_free(loop);
}

// ---- expiry ----

struct ready {
	struct event_base *loop;
	int times;
};

static void on_ready(void *arg, const struct err *error)
{
	struct ready *r = arg;
	if (error)
		fail_msg("%s", error->msg);
	r->times++;
}

static void ensure_and_wait(struct k8s_credentials *c, struct ready *r)
{
	struct err e = {0};
	int times = r->times;
	assert_int_equal(k8s_credentials_ensure(c, &e), K8S_READY_LATER);
	assert_int_equal(k8s_credentials_ensure(c, &e), K8S_READY_LATER); // no second process
	assert_true(test_loop_until(r->loop, &r->times, times + 1, TEST_PATIENCE_MS));
	assert_int_equal(k8s_credentials_ensure(c, &e), K8S_READY_NOW);
}

static void credential_is_renewed_before_it_expires(void **state)
{
	const char *const args[] = {
	        "-c",
	        "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
	        "\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"2026-01-05T10:00:00Z\"}}'",
	        NULL};
	const struct k8s_exec exec = {.api_version = V1, .command = "sh", .args = args, .source = "the test"};
	const struct k8s_config config = {.server = "https://h", .exec = &exec};
	struct ready r = {.loop = event_base_new()};
	struct clock clock;
	struct err e = {0};
	clock_init_manual(&clock, 1767603600000); // 09:00:00Z
	struct k8s_credentials *c = k8s_credentials_new(r.loop, &clock, &config, on_ready, &r, &e);
	assert_non_null(c);
	ensure_and_wait(c, &r);
	clock_advance_ms(&clock, 58 * 60 * 1000);
	assert_int_equal(k8s_credentials_ensure(c, &e), K8S_READY_NOW);
	clock_advance_ms(&clock, 61 * 1000); // a minute before the end
	ensure_and_wait(c, &r);
	assert_int_equal(r.times, 2);
	// It came nearly expired; that must not make every request start a process.
	assert_int_equal(k8s_credentials_ensure(c, &e), K8S_READY_NOW);
	struct http_request request = {.method = "GET"};
	uint64_t generation = k8s_credentials_apply(c, &request);
	assert_string_equal(request.bearer_token, "t");
	assert_true(k8s_credentials_reject(c, generation));
	ensure_and_wait(c, &r);
	assert_true(k8s_credentials_reject(c, generation)); // an old generation: newer ones are here already
	assert_int_equal(k8s_credentials_ensure(c, &e), K8S_READY_NOW);
	k8s_credentials_free(c);
	event_base_free(r.loop);
}

static void clock_that_is_set_back_does_not_put_off_a_renewal(void **state)
{
	const char *const args[] = {
	        "-c",
	        "printf '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1
	        "\",\"status\":{\"token\":\"t\",\"expirationTimestamp\":\"2026-01-05T10:00:00Z\"}}'",
	        NULL};
	const struct k8s_exec exec = {.api_version = V1, .command = "sh", .args = args, .source = "the test"};
	const struct k8s_config config = {.server = "https://h", .exec = &exec};
	struct ready r = {.loop = event_base_new()};
	struct clock clock;
	struct err e = {0};
	clock_init_manual(&clock, 1767603600000); // 09:00:00Z
	struct k8s_credentials *c = k8s_credentials_new(r.loop, &clock, &config, on_ready, &r, &e);
	assert_non_null(c);
	ensure_and_wait(c, &r);
	clock.manual_wall_ms -= 24 * 3600000;
	clock_advance_ms(&clock, 58 * 60 * 1000);
	assert_int_equal(k8s_credentials_ensure(c, &e), K8S_READY_NOW);
	clock_advance_ms(&clock, 61 * 1000); // a minute before the end
	ensure_and_wait(c, &r);
	assert_int_equal(r.times, 2);
	k8s_credentials_free(c);
	event_base_free(r.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(output_of_a_plugin_is_read_or_refused),
	        cmocka_unit_test(plugin_receives_the_cluster),
	        cmocka_unit_test(plugin_sees_its_environment_and_no_terminal),
	        cmocka_unit_test(plugin_that_hangs_is_killed_with_its_children),
	        cmocka_unit_test(plugin_that_prints_without_end_is_killed),
	        cmocka_unit_test(plugin_that_floods_stderr_still_ends),
	        cmocka_unit_test(stderr_of_a_plugin_becomes_one_line_without_control_characters),
	        cmocka_unit_test(plugin_that_closes_stderr_is_waited_for_without_turning),
	        cmocka_unit_test(plugin_killed_by_a_signal_is_reported_as_such),
	        cmocka_unit_test(plugin_that_is_not_there_brings_its_hint),
	        cmocka_unit_test(credential_is_renewed_before_it_expires),
	        cmocka_unit_test(clock_that_is_set_back_does_not_put_off_a_renewal),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
