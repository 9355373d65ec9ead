// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a tick becomes a trace in OTLP/JSON, and an endpoint that fails, hangs or is not trusted costs
// spans but no tick.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cJSON.h>
#include <cmocka.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/num.h"
#include "base/otlp/otlp_delivery.h"
#include "controller/span_batch.h"
#include "controller/span_export.h"
#include "controller/tick/reconcile.h"
#include "controller/tick_span.h"
#include "policies/explain/explain.h"
#include "policies/schema/binding.h"
#include "test/support/certs.h"
#include "test/support/http_fixture.h"

#define NOW_MS 1700000000000LL
#define SPANS  3 // of the tick of setup_tick()

static const struct scale_target target = {"apps/v1", "Deployment", "llama"};

struct tick {
	struct policy policy;
	struct decision decision;
	struct decided decided;
	struct tick_times times;
	struct tick_result result;
};

static void setup_tick(struct tick *t)
{
	static const struct policy_signal queue = {.name = "queue"};
	*t = (struct tick){
	        .policy = {.namespace_name = "serving",
	                   .name = "llama",
	                   .min_replicas = 1,
	                   .max_replicas = 8,
	                   .n_signals = 1},
	        .decision = {.current = 2,
	                     .ready = -1,
	                     .desired = 4,
	                     .action = ACTION_SCALE_UP,
	                     .reason = REASON_DESIRED_WITHIN_RANGE,
	                     .n_trace = 2},
	        .times = {.started_us = 1000,
	                  .decided_us = 5000,
	                  .entered_us = {[TICK_PHASE_OBSERVE] = 1500, [TICK_PHASE_DECIDE] = 4000}},
	};
	t->policy.signals = &queue;
	t->decision.entries[0] = (struct trace_entry){
	        .stage = STAGE_SIGNALS, .reason = REASON_REPLICAS_REQUESTED, .signal = 0, .before = 2, .after = 4};
	t->decision.entries[1] = (struct trace_entry){
	        .stage = STAGE_BOUNDS, .reason = REASON_TOO_MANY_REPLICAS, .signal = -1, .before = 4, .after = 4};
	t->decided = (struct decided){.policy = &t->policy, .target = &target, .decision = &t->decision};
	t->result = (struct tick_result){.outcome = TICK_SCALED, .decision = &t->decision, .times = &t->times};
}

static const cJSON *member(const cJSON *node, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(node, name);
}

static void text_is(const cJSON *node, const char *name, const char *want)
{
	const cJSON *m = member(node, name);
	if (!cJSON_IsString(m))
		fail_msg("%s: no text", name);
	assert_string_equal(m->valuestring, want);
}

// kind: stringValue or intValue. want NULL: the attribute must be absent.
static void attribute_is(const cJSON *span, const char *key, const char *kind, const char *want)
{
	const cJSON *found = NULL, *a;
	cJSON_ArrayForEach(a, member(span, "attributes")) if (strcmp(member(a, "key")->valuestring, key) == 0) found =
	        a;
	if (!want)
		assert_null(found);
	else
		text_is(member(found, "value"), kind, want);
}

static void tick_becomes_a_span_with_its_stages(void **state)
{
	(void)state;
	struct tick t;
	struct buf spans, list;
	const struct tick_span_id id = {{0x1, 0x2}, 0xab01};
	setup_tick(&t);
	buf_init(&spans, 65536);
	buf_init(&list, 65536);
	assert_int_equal(tick_span_count(&t.result), SPANS);
	tick_span_append(&spans, &id, &t.decided, &t.result, "scaled", NOW_MS * 1000000, 6000);
	assert_false(spans.failed);
	buf_printf(&list, "[%s]", buf_str(&spans));
	cJSON *root = cJSON_Parse(buf_str(&list));
	assert_int_equal(cJSON_GetArraySize(root), SPANS);

	const cJSON *tick = cJSON_GetArrayItem(root, 0);
	text_is(tick, "name", "tick");
	text_is(tick, "traceId", "00000000000000010000000000000002");
	text_is(tick, "spanId", "000000000000ab01");
	assert_null(member(tick, "parentSpanId"));
	text_is(tick, "startTimeUnixNano", "1699999999995000000"); // 5 ms before the end
	text_is(tick, "endTimeUnixNano", "1700000000000000000");
	attribute_is(tick, "k8s.namespace.name", "stringValue", "serving");
	attribute_is(tick, "gpuscale.policy", "stringValue", "llama");
	attribute_is(tick, "gpuscale.result", "stringValue", "scaled");
	attribute_is(tick, "gpuscale.action", "stringValue", "ScaleUp");
	attribute_is(tick, "gpuscale.replicas.desired", "intValue", "4");
	attribute_is(tick, "gpuscale.replicas.ready", "intValue", NULL); // unknown
	const cJSON *events = member(tick, "events");
	assert_int_equal(cJSON_GetArraySize(events), 2);
	text_is(cJSON_GetArrayItem(events, 0), "name", "Observing");
	text_is(cJSON_GetArrayItem(events, 1), "timeUnixNano", "1699999999998000000");

	const cJSON *stage = cJSON_GetArrayItem(root, 1);
	text_is(stage, "name", "signals");
	text_is(stage, "traceId", "00000000000000010000000000000002");
	text_is(stage, "parentSpanId", "000000000000ab01");
	text_is(stage, "spanId", "000000000000ab02");
	text_is(stage, "startTimeUnixNano", "1699999999998000000"); // of decide()
	text_is(stage, "endTimeUnixNano", "1699999999999000000");
	attribute_is(stage, "gpuscale.signal", "stringValue", "queue");
	attribute_is(stage, "gpuscale.replicas.after", "intValue", "4");
	stage = cJSON_GetArrayItem(root, 2);
	text_is(stage, "name", "bounds");
	text_is(stage, "spanId", "000000000000ab03");
	attribute_is(stage, "gpuscale.signal", "stringValue", NULL);
	cJSON_Delete(root);
	buf_done(&spans);
	buf_done(&list);
}

static void failed_tick_is_a_span_with_an_error(void **state)
{
	(void)state;
	struct tick t;
	struct buf span;
	struct err e = {.kind = ERR_NONE};
	const struct tick_span_id id = {{1, 2}, 1};
	setup_tick(&t);
	err_set(&e, ERR_UNREACHABLE, "no \"server\"");
	t.result = (struct tick_result){.outcome = TICK_READ_FAILED, .error = &e, .times = &t.times};
	buf_init(&span, 65536);
	assert_int_equal(tick_span_count(&t.result), 1);
	tick_span_append(&span, &id, &t.decided, &t.result, "error", NOW_MS * 1000000, 6000);
	cJSON *root = cJSON_Parse(buf_str(&span));
	text_is(member(root, "status"), "message", "no \"server\"");
	assert_int_equal(member(member(root, "status"), "code")->valueint, 2);
	attribute_is(root, "gpuscale.action", "stringValue", NULL);
	cJSON_Delete(root);
	buf_done(&span);
}

// ---- sending ----

struct world {
	struct event_base *loop;
	struct clock clock;
	struct raw_server *server;
	struct span_export *spans;
	struct tick tick;
};

static void open_world(struct world *w, const struct raw_step *steps, size_t n)
{
	struct err e = {.kind = ERR_NONE};
	static char url[64];
	w->loop = event_base_new();
	clock_init_real(&w->clock);
	w->server = raw_server_new(w->loop, steps, n);
	snprintf(url, sizeof url, "http://127.0.0.1:%u", raw_server_port(w->server));
	const struct span_export_options o = {.loop = w->loop, .clock = &w->clock, .endpoint = url, .hostname = "h"};
	w->spans = span_export_new(&o, &e);
	assert_non_null(w->spans);
	setup_tick(&w->tick);
}

static void close_world(struct world *w)
{
	span_export_free(w->spans);
	raw_server_free(w->server);
	event_base_free(w->loop);
}

static void tick(struct world *w)
{
	span_export_tick(w->spans, &w->tick.decided, &w->tick.result, "ok");
}

static uint64_t sent(const struct world *w)
{
	return span_export_get_stats(w->spans).sent;
}

static uint64_t dropped(const struct world *w)
{
	return span_export_get_stats(w->spans).dropped;
}

// The body of `request`, which must be compressed.
static cJSON *parse_body(const char *request)
{
	static char text[65536];
	const char *length = strstr(request, "Content-Length: ");
	int64_t len = 0;
	assert_non_null(strstr(request, "Content-Encoding: gzip\r\n"));
	assert_non_null(length);
	length += strlen("Content-Length: ");
	assert_int_equal(num_parse_i64(length, strcspn(length, "\r"), 1, 65536, &len, NULL), 0);
	z_stream z = {.next_in = (unsigned char *)(uintptr_t)(strstr(request, "\r\n\r\n") + 4),
	              .avail_in = (uInt)len,
	              .next_out = (unsigned char *)text,
	              .avail_out = sizeof text - 1};
	assert_int_equal(inflateInit2(&z, 16 + MAX_WBITS), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.avail_in, 0);
	text[z.total_out] = '\0';
	inflateEnd(&z);
	return cJSON_Parse(text);
}

static void ticks_are_sent_together(void **state)
{
	(void)state;
	const struct raw_step steps[] = {STEP(RAW_READ_REQUEST),
	                                 STEP_SEND("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"), STEP(RAW_REPEAT)};
	struct world w;
	open_world(&w, steps, 3);
	tick(&w);
	tick(&w);
	TEST_BECOMES(w.loop, sent(&w) == 2 * SPANS);
	assert_int_equal(raw_server_stats(w.server).requests, 1);
	const char *request = raw_server_request(w.server);
	http_fixture_assert_starts(request, "POST /v1/traces HTTP/1.1\r\n");
	assert_non_null(strstr(request, "Content-Type: application/json\r\n"));
	cJSON *root = parse_body(request);
	const cJSON *resource = cJSON_GetArrayItem(member(root, "resourceSpans"), 0);
	const cJSON *scope = cJSON_GetArrayItem(member(resource, "scopeSpans"), 0);
	attribute_is(member(resource, "resource"), "service.name", "stringValue", "gpuscale");
	assert_int_equal(cJSON_GetArraySize(member(scope, "spans")), 2 * SPANS);
	cJSON_Delete(root);
	tick(&w);
	TEST_BECOMES(w.loop, sent(&w) == 3 * SPANS);
	assert_int_equal(dropped(&w), 0);
	root = parse_body(raw_server_request(w.server)); // a buffer that was used before
	resource = cJSON_GetArrayItem(member(root, "resourceSpans"), 0);
	scope = cJSON_GetArrayItem(member(resource, "scopeSpans"), 0);
	assert_int_equal(cJSON_GetArraySize(member(scope, "spans")), SPANS);
	cJSON_Delete(root);
	close_world(&w);
}

static void rejected_spans_count_as_dropped(void **state)
{
	(void)state;
	const struct raw_step steps[] = {STEP(RAW_READ_REQUEST),
	                                 STEP_SEND("HTTP/1.1 200 OK\r\nContent-Length: "
	                                           "42\r\n\r\n{\"partialSuccess\":{\"rejectedSpans\":\"1\"  }}"),
	                                 STEP(RAW_REPEAT)};
	struct world w;
	open_world(&w, steps, 3);
	tick(&w);
	TEST_BECOMES(w.loop, sent(&w) + dropped(&w) == SPANS);
	assert_int_equal(dropped(&w), 1);
	close_world(&w);
}

static void request_is_repeated_while_the_endpoint_is_busy(void **state)
{
	(void)state;
	const struct raw_step steps[] = {
	        STEP(RAW_READ_REQUEST), STEP_SEND("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"),
	        STEP(RAW_READ_REQUEST), STEP_SEND("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), STEP(RAW_REPEAT)};
	struct world w;
	open_world(&w, steps, 5);
	tick(&w);
	TEST_BECOMES(w.loop, sent(&w) == SPANS);
	assert_int_equal(raw_server_stats(w.server).requests, 2);
	assert_int_equal(span_export_get_stats(w.spans).failed, 1);
	assert_int_equal(dropped(&w), 0);
	close_world(&w);
}

static void hanging_endpoint_costs_spans_and_bounded_memory(void **state)
{
	(void)state;
	const struct raw_step steps[] = {STEP(RAW_READ_REQUEST)}; // and silence
	struct world w;
	uint64_t n = 0;
	open_world(&w, steps, 1);
	tick(&w);
	TEST_BECOMES(w.loop, raw_server_stats(w.server).requests == 1);
	for (; dropped(&w) == 0 && n < SPAN_BATCH_FULL_BYTES; n++) // the loop does not run: nothing waits
		tick(&w);
	assert_int_equal(dropped(&w), SPANS);
	assert_true(n > SPAN_BATCH_FULL_BYTES / 1000);
	tick(&w);
	assert_int_equal(dropped(&w), 2 * SPANS); // until the buffer is sent
	span_export_drain(w.spans);               // returns although no reply comes
	assert_int_equal(sent(&w), 0);
	close_world(&w);
}

static void drain_sends_what_is_queued(void **state)
{
	(void)state;
	const struct raw_step steps[] = {STEP(RAW_READ_REQUEST),
	                                 STEP_SEND("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), STEP(RAW_REPEAT)};
	struct world w;
	open_world(&w, steps, 3);
	span_export_drain(w.spans); // nothing to send
	assert_int_equal(raw_server_stats(w.server).requests, 0);
	tick(&w);
	while (sent(&w) == 0) // a slow machine may need more than one deadline
		span_export_drain(w.spans);
	assert_int_equal(sent(&w), SPANS);
	close_world(&w);
	span_export_drain(NULL);
}

static void endpoint_must_be_usable(void **state)
{
	(void)state;
	static const struct {
		const char *endpoint, *ca_file;
	} wrong[] = {
	        {"localhost:4318", NULL},
	        {"grpc://h:4317", NULL},
	        {"", NULL},
	        {"https://h", "/nonexistent/ca.pem"},
	        {"https://user:hidden@h:4318/prefix", NULL},
	        {"user:hidden@h:4318", NULL},
	};
	struct event_base *loop = event_base_new();
	struct clock clock;
	clock_init_real(&clock);
	for (size_t i = 0; i < COUNT(wrong); i++) {
		struct err e = {.kind = ERR_NONE};
		const struct span_export_options o = {.loop = loop,
		                                      .clock = &clock,
		                                      .endpoint = wrong[i].endpoint,
		                                      .ca_file = wrong[i].ca_file,
		                                      .hostname = ""};
		assert_null(span_export_new(&o, &e));
		assert_non_null(strstr(e.msg, "--otlp-endpoint"));
		assert_null(strstr(e.msg, "hidden"));
	}
	event_base_free(loop);
}

static void https_needs_a_trusted_certificate(void **state)
{
	struct http_fixture *f = *state;
	struct certs c;
	struct clock clock;
	assert_int_equal(certs_init(&c), 0);
	clock_init_real(&clock);
	http_fixture_serve(f, (struct http_server_options){.tls_cert_file = c.path[CERTS_SERVER],
	                                                   .tls_key_file = c.path[CERTS_SERVER_KEY]});
	const enum certs_file trusted[] = {CERTS_CA, CERTS_OTHER_CA};
	for (size_t i = 0; i < COUNT(trusted); i++) {
		char url[300];
		struct err e = {.kind = ERR_NONE};
		struct tick t;
		setup_tick(&t);
		snprintf(url, sizeof url, "https://127.0.0.1:%d/echo?path=/v1/traces", http_server_port(f->server));
		const struct span_export_options o = {.loop = f->loop,
		                                      .clock = &clock,
		                                      .endpoint = url,
		                                      .ca_file = c.path[trusted[i]],
		                                      .hostname = ""};
		struct span_export *x = span_export_new(&o, &e);
		assert_non_null(x);
		span_export_tick(x, &t.decided, &t.result, "ok");
		TEST_BECOMES(f->loop, span_export_get_stats(x).sent + span_export_get_stats(x).failed > 0);
		assert_int_equal(span_export_get_stats(x).sent, i == 0 ? SPANS : 0);
		span_export_free(x);
	}
	assert_int_equal(f->handled, 1);
	certs_done(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(tick_becomes_a_span_with_its_stages),
	        cmocka_unit_test(failed_tick_is_a_span_with_an_error),
	        cmocka_unit_test(ticks_are_sent_together),
	        cmocka_unit_test(rejected_spans_count_as_dropped),
	        cmocka_unit_test(request_is_repeated_while_the_endpoint_is_busy),
	        cmocka_unit_test(hanging_endpoint_costs_spans_and_bounded_memory),
	        cmocka_unit_test(drain_sends_what_is_queued),
	        cmocka_unit_test(endpoint_must_be_usable),
	        cmocka_unit_test_setup_teardown(https_needs_a_trusted_certificate, http_fixture_setup,
	                                        http_fixture_teardown),
	};
	return cmocka_run_group_tests_name("span_export", tests, NULL, NULL);
}
