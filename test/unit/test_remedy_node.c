// SPDX-License-Identifier: Apache-2.0
// Goal: the remediation agent reads nodes and pods strictly, changes its own taint only, and evicts the pod that it
// means.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "remedy/agent/node_view.h"

#define NODE(spec, annotations)                                                                                        \
	"{\"metadata\":{\"name\":\"a\",\"uid\":\"u1\",\"resourceVersion\":\"7\"" annotations "},\"spec\":{" spec       \
	"},\"status\":{\"capacity\":{\"cpu\":\"8\",\"nvidia.com/"                                                      \
	"gpu\":\"2\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"                                                 \
	"\"True\"}]}}"

static struct node_view read_ok(const char *json)
{
	struct node_view v;
	struct err e = {0};
	if (node_view_read(json, strlen(json), &v, &e) < 0)
		fail_msg("%s", e.msg);
	return v;
}

static void node_is_read(void **state)
{
	(void)state;
	struct node_view v = read_ok(NODE("", ""));
	assert_true(v.is_ready && v.has_gpus && !node_view_is_cordoned(&v) && !v.is_tainted);
	assert_null(v.record);
	assert_string_equal(v.other_taints, "");
	node_view_done(&v);
	v = read_ok("{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"1\"},\"status\":{\"capacity\":{\"nvidia.com/"
	            "gpu\":\"0\"}}}");
	assert_false(v.is_ready || v.has_gpus);
	node_view_done(&v);
}

static void patch_sets_taint_and_annotation_together(void **state)
{
	(void)state;
	struct node_view v = read_ok(NODE("\"taints\":[{\"key\":\"x\",\"effect\":\"NoExecute\"}]", ""));
	struct buf out;
	buf_init(&out, 4096);
	node_view_patch(&v, &(struct node_view_change){.record = "{\"v\":1}", .is_out = true, .fault = "XID79"}, &out);
	assert_string_equal(buf_str(&out),
	                    "{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"gpuscale.dev/remediation\":"
	                    "\"{\\\"v\\\":1}\"}},\"spec\":{\"taints\":[{\"key\":\"x\",\"effect\":\"NoExecute\"},"
	                    "{\"key\":\"gpuscale.dev/failing-gpu\",\"value\":\"XID79\",\"effect\":\"NoSchedule\"}]}}");
	buf_done(&out);
	node_view_done(&v);
}

static void patch_removes_only_our_taint(void **state)
{
	(void)state;
	struct node_view v = read_ok(NODE("\"taints\":[{\"key\":\"gpuscale.dev/failing-gpu\"},{\"key\":\"x\"}]", ""));
	struct buf out;
	buf_init(&out, 4096);
	assert_true(v.is_tainted);
	node_view_patch(&v, &(struct node_view_change){.record = "{}"}, &out);
	assert_non_null(strstr(buf_str(&out), "\"spec\":{\"taints\":[{\"key\":\"x\"}]}"));
	buf_reset(&out);
	node_view_patch(&v, &(struct node_view_change){.record = "{}", .is_out = true, .fault = "XID79"},
	                &out); // the taint is there, so the taints of others are not written
	assert_null(strstr(buf_str(&out), "spec"));
	buf_done(&out);
	node_view_done(&v);
}

static void patch(const struct node_view *v, const struct node_view_change *change, const char *want)
{
	struct buf out;
	buf_init(&out, 4096);
	node_view_patch(v, change, &out);
	assert_string_equal(buf_str(&out), want);
	buf_done(&out);
}

#define PATCH(notes, spec)                                                                                             \
	"{\"metadata\":{\"resourceVersion\":\"7\",\"annotations\":{\"gpuscale.dev/remediation\":\"{}\"" notes          \
	"}}" spec "}"
#define TAINTED(key) ",\"spec\":{\"taints\":[{\"key\":\"" key "\",\"value\":\"XID79\",\"effect\":\"NoSchedule\"}]}"

static void cordon_is_undone_only_by_the_one_that_set_it(void **state)
{
	(void)state;
	const struct node_view_change out = {.record = "{}", .is_out = true, .cordons = true, .fault = "XID79"};
	const struct node_view_change in = {.record = "{}", .cordons = true, .fault = "Unknown"};
	struct node_view v = read_ok(NODE("", ""));
	patch(&v, &out, PATCH(",\"gpuscale.dev/cordoned-for\":\"XID79\"", ",\"spec\":{\"unschedulable\":true}"));
	node_view_done(&v);
	// The agent cordoned it.
	v = read_ok(NODE("\"unschedulable\":true", ",\"annotations\":{\"gpuscale.dev/cordoned-for\":\"XID79\"}"));
	assert_true(node_view_is_out(&v) && !node_view_is_cordoned(&v));
	patch(&v, &out, PATCH("", ""));
	patch(&v, &in, PATCH(",\"gpuscale.dev/cordoned-for\":null", ",\"spec\":{\"unschedulable\":null}"));
	node_view_done(&v);
	// A person uncordoned it meanwhile.
	v = read_ok(NODE("", ",\"annotations\":{\"gpuscale.dev/cordoned-for\":\"XID79\"}"));
	assert_false(node_view_is_out(&v) || node_view_is_cordoned(&v));
	patch(&v, &in, PATCH(",\"gpuscale.dev/cordoned-for\":null", ""));
	node_view_done(&v);
	// A person cordoned it first: their cordon stays.
	v = read_ok(NODE("\"unschedulable\":true", ""));
	assert_true(!node_view_is_out(&v) && node_view_is_cordoned(&v));
	patch(&v, &out, PATCH("", TAINTED("gpuscale.dev/failing-gpu")));
	patch(&v, &in, PATCH("", ""));
	node_view_done(&v);
}

static void reset_is_requested_and_answered_by_annotations(void **state)
{
	(void)state;
	const struct node_view_change ask = {.record = "{}", .reset_gpu = "GPU-1", .reset_ms = 5};
	const struct node_view_change none = {.record = "{}"};
	struct node_view v = read_ok(NODE("", ""));
	assert_string_equal(v.reset_result.gpu, "");
	patch(&v, &ask, PATCH(",\"gpuscale.dev/reset-gpu\":\"GPU-1 5\"", ""));
	patch(&v, &none, PATCH("", ""));
	node_view_done(&v);
	static const struct {
		const char *text, *gpu;
		bool is_done;
	} answers[] = {{"GPU-1 5 done", "GPU-1", true},
	               {"GPU-1 5 done at once", "GPU-1", true},
	               {"GPU-1 5 failed: busy", "GPU-1", false},
	               {"GPU-1 5 donee", "", false},
	               {"GPU-1 5", "", false},
	               {"GPU-1 x done", "", false},
	               {"", "", false},
	               {"done", "", false}};
	for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
		char json[1024];
		snprintf(json, sizeof json,
		         NODE("", ",\"annotations\":{\"gpuscale.dev/reset-gpu\":\"GPU-1 5\",\"gpuscale.dev/"
		                  "reset-gpu-result\":\"%s\"}"),
		         answers[i].text);
		v = read_ok(json);
		assert_string_equal(v.reset_result.gpu, answers[i].gpu);
		assert_int_equal(v.reset_result.is_done, answers[i].is_done);
		if (answers[i].gpu[0])
			assert_int_equal(v.reset_result.time_ms, 5);
		patch(&v, &none, PATCH(",\"gpuscale.dev/reset-gpu\":null", ""));
		node_view_done(&v);
	}
}

static void node_without_version_is_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {"", "[]", "{\"metadata\":{\"uid\":7}}",
	                                  "{\"metadata\":{\"resourceVersion\":[]}}"};
	for (size_t i = 0; i < 4; i++) {
		struct node_view v;
		struct err e;
		assert_int_equal(node_view_read(bad[i], strlen(bad[i]), &v, &e), -1);
	}
}

static const char pods_json[] =
        "{\"items\":["
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"1\",\"annotations\":{\"gpuscale.dev/"
        "move-at-checkpoint\":\"30m\"}},\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/"
        "gpu\":\"1\"}}}]}"
        "},"
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"b\",\"uid\":\"2\",\"ownerReferences\":[{\"kind\":\"DaemonSet\"}"
        "]},"
        "\"spec\":{}},"
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"c\",\"uid\":\"3\",\"deletionTimestamp\":\"now\","
        "\"annotations\":{"
        "\"gpuscale.dev/move-at-checkpoint\":\"soon\"}},\"spec\":{\"resourceClaims\":[{\"name\":\"gpu\"}]}},"
        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"d\",\"uid\":\"4\"},\"status\":{\"phase\":\"Succeeded\"}}]}";

static void pods_are_read(void **state)
{
	(void)state;
	struct arena a;
	struct node_pod *pods;
	size_t n;
	struct err e;
	arena_init(&a, 65536);
	assert_int_equal(node_pods_read(pods_json, strlen(pods_json), &a, &pods, &n, &e), 0);
	assert_int_equal(n, 3);
	assert_string_equal(pods[0].name, "ml/a");
	assert_true(pods[0].uses_gpus && !pods[0].is_pinned && pods[0].wait_ms == 1800000);
	assert_true(pods[1].is_pinned && !pods[1].uses_gpus);
	assert_true(pods[2].is_pinned && pods[2].uses_gpus && pods[2].wait_ms == NODE_PODS_WAIT_MAX_MS);
	assert_int_equal(node_pods_read("{}", 2, &a, &pods, &n, &e), -1);
	assert_int_equal(node_pods_read("{\"items\":[{}]}", 14, &a, &pods, &n, &e), -1);
	arena_done(&a);
}

static void eviction_names_the_pod_and_its_uid(void **state)
{
	(void)state;
	struct buf path, body;
	buf_init(&path, 512);
	buf_init(&body, 512);
	assert_int_equal(node_pods_eviction("ml/a", "1", &path, &body), 0);
	assert_string_equal(buf_str(&path), "/api/v1/namespaces/ml/pods/a/eviction");
	assert_string_equal(
	        buf_str(&body),
	        "{\"apiVersion\":\"policy/v1\",\"kind\":\"Eviction\",\"metadata\":{\"namespace\":\"ml\",\"name\":"
	        "\"a\"},\"deleteOptions\":{\"preconditions\":{\"uid\":\"1\"}}}");
	assert_int_equal(node_pods_eviction("a", "1", &path, &body), -1);
	buf_done(&path);
	buf_done(&body);
}

static void deadline_is_an_annotation_of_the_pod(void **state)
{
	(void)state;
	static const char json[] =
	        "{\"items\":[{\"metadata\":{\"namespace\":\"ml\",\"name\":\"a\",\"uid\":\"1\",\"annotations\":{"
	        "\"gpuscale.dev/checkpoint-saved\":\"1970-01-01T00:00:07Z\",\"gpuscale.dev/move-deadline\":\"x\"}}},"
	        "{\"metadata\":{\"namespace\":\"ml\",\"name\":\"b\",\"annotations\":{\"gpuscale.dev/"
	        "move-at-checkpoint\":\"30d\",\"gpuscale.dev/"
	        "checkpoint-saved\":\"yes\"}}}]}";
	struct arena a;
	struct node_pod *pods;
	size_t n;
	struct err e;
	struct buf path, body;
	arena_init(&a, 65536);
	buf_init(&path, 512);
	buf_init(&body, 512);
	assert_int_equal(node_pods_read(json, strlen(json), &a, &pods, &n, &e), 0);
	assert_int_equal(pods[0].saved_ms, 7000);
	assert_string_equal(pods[0].deadline, "x");
	assert_int_equal(pods[1].saved_ms, -1);
	assert_int_equal(pods[1].wait_ms, NODE_PODS_WAIT_MAX_MS);
	assert_null(pods[1].deadline);
	assert_int_equal(node_pods_deadline("ml/a", "1", "2026-01-05T09:00:00Z", &path, &body), 0);
	assert_string_equal(buf_str(&path), "/api/v1/namespaces/ml/pods/a/status");
	assert_string_equal(buf_str(&body), "{\"metadata\":{\"uid\":\"1\",\"annotations\":{\"gpuscale.dev/"
	                                    "move-deadline\":\"2026-01-05T09:00:00Z\"}}}");
	assert_int_equal(node_pods_deadline("a", "1", "", &path, &body), -1);
	buf_done(&path);
	buf_done(&body);
	arena_done(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(node_is_read),
	        cmocka_unit_test(patch_sets_taint_and_annotation_together),
	        cmocka_unit_test(patch_removes_only_our_taint),
	        cmocka_unit_test(cordon_is_undone_only_by_the_one_that_set_it),
	        cmocka_unit_test(reset_is_requested_and_answered_by_annotations),
	        cmocka_unit_test(node_without_version_is_refused),
	        cmocka_unit_test(deadline_is_an_annotation_of_the_pod),
	        cmocka_unit_test(pods_are_read),
	        cmocka_unit_test(eviction_names_the_pod_and_its_uid),
	};
	return cmocka_run_group_tests_name("remedy_node", tests, NULL, NULL);
}
