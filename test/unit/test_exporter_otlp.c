// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a round becomes valid OTLP/JSON, and an endpoint that fails gets a bounded number of attempts.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cJSON.h>
#include <cmocka.h>
#include <event2/event.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/device.h"
#include "exporter/families.h"
#include "exporter/health_policy.h"
#include "exporter/kubelet/pod_resources.h"
#include "exporter/otlp/otlp_push.h"
#include "exporter/sampler.h"
#include "exporter/xid.h"
#include "test/support/loop.h"
#include "test/support/raw_server.h"

#define NOW_MS 1700000000000LL

struct world {
	struct health_policy health;
	struct xid_store *xids;
	struct device devices[2];
	struct device_sample samples[2];
	struct sampler_round round;
};

static void make_world(struct world *w)
{
	struct err e;
	*w = (struct world){.devices = {{.index = 0, .uuid = "GPU-a", .node = "nvidia0", .model = "A \"B\""},
	                                {.index = 0, .uuid = "GPU-a", .mig_id = "3", .mig_uuid = "MIG-c"}}};
	health_policy_init(&w->health);
	w->xids = xid_store_new(&e);
	sample_set_i64(&w->samples[0], FIELD_GPU_UTIL, 42);
	sample_set_i64(&w->samples[0], FIELD_DEC_UTIL, 7);
	sample_set_i64(&w->samples[0], FIELD_GPU_TEMP, 61);
	sample_set_i64(&w->samples[0], FIELD_TOTAL_ENERGY, 1500);
	sample_set_i64(&w->samples[1], FIELD_FB_USED, 3);
	sample_set_f64(&w->samples[1], FIELD_SM_ACTIVE, 0.5);
	w->round = (struct sampler_round){
	        .devices = w->devices, .samples = w->samples, .n = 2, .driver_version = "1.2", .wall_ms = NOW_MS};
}

static const cJSON *member(const cJSON *node, const char *path)
{
	char name[64];
	for (const char *p = path; node && *p; p += strcspn(p, "/") + (p[strcspn(p, "/")] == '/')) {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(p, "/"), p);
		node = cJSON_IsArray(node) ? cJSON_GetArrayItem(node, name[0] - '0')
		                           : cJSON_GetObjectItemCaseSensitive(node, name);
	}
	return node;
}

static void text_is(const cJSON *root, const char *path, const char *want)
{
	const cJSON *node = member(root, path);
	if (!cJSON_IsString(node))
		fail_msg("%s: no text", path);
	assert_string_equal(node->valuestring, want);
}

static const cJSON *metric_of(const cJSON *root, const char *name)
{
	const cJSON *m;
	cJSON_ArrayForEach(
	        m, member(root, "resourceMetrics/0/scopeMetrics/0/metrics")) if (strcmp(member(m, "name")->valuestring,
	                                                                                name) == 0) return m;
	fail_msg("no metric %s", name);
	return NULL;
}

static void attribute_is(const cJSON *point, const char *key, const char *want)
{
	const cJSON *a;
	cJSON_ArrayForEach(a, member(point, "attributes")) if (strcmp(member(a, "key")->valuestring, key) == 0)
	{
		text_is(a, "value/stringValue", want);
		return;
	}
	if (want[0])
		fail_msg("no attribute %s", key);
}

static void round_becomes_metrics_of_the_conventions(void **state)
{
	(void)state;
	struct world w;
	struct buf out;
	make_world(&w);
	xid_store_count(w.xids, "GPU-a", 79, NOW_MS);
	const struct pod_share pod = {.namespace_ = "ml", .pod = "p", .container = "", .replica = -1};
	const struct otlp_encode_options o = {.hostname = "h", .sidecar_of = &pod, .health = &w.health, .xids = w.xids};
	buf_init(&out, OTLP_BYTES_MAX);
	otlp_encode(&o, &w.round, &out);
	assert_false(out.failed);
	cJSON *root = cJSON_ParseWithLength(out.data, out.len);
	assert_non_null(root);
	text_is(root, "resourceMetrics/0/schemaUrl", NAMING_SCHEMA_URL);
	text_is(root, "resourceMetrics/0/resource/attributes/5/key", "k8s.pod.name");
	assert_null(member(root, "resourceMetrics/0/resource/attributes/6")); // no container

	const cJSON *m = metric_of(root, "hw.gpu.utilization"), *p = member(m, "gauge/dataPoints");
	text_is(m, "unit", "1");
	assert_int_equal(cJSON_GetArraySize(p), 2);
	assert_true(member(p, "0/asDouble")->valuedouble == 0.42);
	text_is(p, "0/timeUnixNano", "1700000000000000000");
	attribute_is(member(p, "0"), "hw.id", "GPU-a");
	attribute_is(member(p, "0"), "hw.model", "A \"B\"");
	attribute_is(member(p, "0"), "hw.driver_version", "1.2");
	attribute_is(member(p, "0"), "hw.gpu.task", "general");
	attribute_is(member(p, "1"), "hw.gpu.task", "decoder");

	m = metric_of(root, "hw.energy");
	assert_true(cJSON_IsTrue(member(m, "sum/isMonotonic")));
	assert_int_equal(member(m, "sum/aggregationTemporality")->valueint, 2);
	assert_true(member(m, "sum/dataPoints/0/asDouble")->valuedouble == 1.5);

	m = metric_of(root, "hw.temperature");
	attribute_is(member(m, "gauge/dataPoints/0"), "hw.id", "GPU-a/gpu");
	attribute_is(member(m, "gauge/dataPoints/0"), "hw.parent", "GPU-a");

	m = metric_of(root, "hw.gpu.memory.usage");
	assert_true(cJSON_IsFalse(member(m, "sum/isMonotonic")));
	text_is(m, "sum/dataPoints/0/asInt", "3145728");
	attribute_is(member(m, "sum/dataPoints/0"), "hw.id", "MIG-c");
	attribute_is(member(m, "sum/dataPoints/0"), "hw.parent", "GPU-a");

	m = metric_of(root, "DCGM_FI_PROF_SM_UTIL_RATIO");
	assert_null(member(m, "unit"));
	attribute_is(member(m, "gauge/dataPoints/0"), "hw.model", "");

	p = member(metric_of(root, "hw.status"), "sum/dataPoints");
	assert_int_equal(cJSON_GetArraySize(p), 3); // the GPU, not its instance
	text_is(p, "0/asInt", "0");
	text_is(p, "2/asInt", "1");
	attribute_is(member(p, "2"), "hw.state", "failed");
	cJSON_Delete(root);
	buf_done(&out);
	xid_store_free(w.xids);
}

// Sends one round, then another, to a server that answers `reply`, and checks the counts after the first.
static void push_to(const char *reply, uint64_t want_sent, uint64_t want_failed, uint64_t want_dropped)
{
	struct event_base *loop = event_base_new();
	struct world w;
	struct err e = {.kind = ERR_NONE};
	char url[64];
	const struct raw_step steps[] = {STEP(RAW_READ_REQUEST), STEP_SEND(reply), STEP(RAW_CLOSE)};
	struct raw_server *server = raw_server_new(loop, steps, 3);
	make_world(&w);
	snprintf(url, sizeof url, "http://127.0.0.1:%u/base/", raw_server_port(server));
	const struct otlp_push_options o = {.loop = loop,
	                                    .endpoint = url,
	                                    .interval_ms = OTLP_INTERVAL_MAX_MS,
	                                    .encode = {.hostname = "", .health = &w.health, .xids = w.xids}};
	struct otlp_push *p = otlp_push_new(&o, &e);
	assert_non_null(p);
	otlp_push_round(p, &w.round);
	otlp_push_round(p, &w.round); // not due
	struct otlp_push_status st;
	TEST_BECOMES(loop, (st = otlp_push_get_status(p), st.sent + st.dropped) == 1);
	assert_int_equal(st.sent, want_sent);
	assert_int_equal(st.failed, want_failed);
	assert_int_equal(st.dropped, want_dropped);
	w.round.wall_ms += OTLP_INTERVAL_MAX_MS;
	otlp_push_round(p, &w.round);
	TEST_BECOMES(loop, (st = otlp_push_get_status(p), st.sent + st.dropped) == 2);
	otlp_push_free(p);
	raw_server_free(server);
	xid_store_free(w.xids);
	event_base_free(loop);
}

static void accepted_round_is_sent_once(void **state)
{
	(void)state;
	push_to("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", 1, 0, 0);
}

static void rejected_round_is_not_sent_again(void **state)
{
	(void)state;
	push_to("HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nno\n", 0, 1, 1);
}

static void busy_endpoint_gets_a_bounded_number_of_attempts(void **state)
{
	(void)state;
	push_to("HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n", 0, OTLP_ATTEMPTS_MAX, 1);
}

static void newer_round_replaces_one_that_waits(void **state)
{
	(void)state;
	struct event_base *loop = event_base_new();
	struct world w;
	struct err e = {.kind = ERR_NONE};
	make_world(&w);
	const struct otlp_push_options o = {.loop = loop,
	                                    .endpoint = "http://127.0.0.1:1/v1/metrics",
	                                    .interval_ms = OTLP_INTERVAL_MIN_MS,
	                                    .encode = {.hostname = "", .health = &w.health, .xids = w.xids}};
	struct otlp_push *p = otlp_push_new(&o, &e);
	assert_non_null(p);
	otlp_push_round(p, &w.round);
	TEST_BECOMES(loop, otlp_push_get_status(p).failed == 1); // waits for its second attempt
	assert_int_equal(otlp_push_get_status(p).dropped, 0);
	w.round.wall_ms += OTLP_INTERVAL_MIN_MS;
	otlp_push_round(p, &w.round);
	TEST_BECOMES(loop, otlp_push_get_status(p).failed == 2);
	assert_int_equal(otlp_push_get_status(p).dropped, 1);
	otlp_push_free(p);
	xid_store_free(w.xids);
	event_base_free(loop);
}

static void endpoint_must_be_a_url(void **state)
{
	(void)state;
	static const char *const wrong[] = {"localhost:4317", "grpc://h:4317", "", "http://user:pass@h:1"};
	struct event_base *loop = event_base_new();
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct err e = {.kind = ERR_NONE};
		const struct otlp_push_options o = {.loop = loop, .endpoint = wrong[i], .interval_ms = 1000};
		assert_null(otlp_push_new(&o, &e));
		assert_int_equal(e.kind, ERR_INPUT);
		assert_non_null(strstr(e.msg, "--otlp-endpoint"));
	}
	event_base_free(loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(round_becomes_metrics_of_the_conventions),
	        cmocka_unit_test(accepted_round_is_sent_once),
	        cmocka_unit_test(rejected_round_is_not_sent_again),
	        cmocka_unit_test(busy_endpoint_gets_a_bounded_number_of_attempts),
	        cmocka_unit_test(newer_round_replaces_one_that_waits),
	        cmocka_unit_test(endpoint_must_be_a_url),
	};
	return cmocka_run_group_tests_name("exporter_otlp", tests, NULL, NULL);
}
