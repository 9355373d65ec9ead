// SPDX-License-Identifier: Apache-2.0
// Goal: the remediation agent reads nodes and pods strictly, changes its own taint only, and evicts the pod that it
// means.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "controller/remedy/node_pods.h"
#include "controller/remedy/node_view.h"

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
	assert_true(v.is_ready && v.has_gpus && !v.is_cordoned && !v.is_tainted);
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
	node_view_patch(&v, "{\"v\":1}", true, "XID79", &out);
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
	node_view_patch(&v, "{}", false, "", &out);
	assert_non_null(strstr(buf_str(&out), "\"spec\":{\"taints\":[{\"key\":\"x\"}]}"));
	buf_reset(&out);
	node_view_patch(&v, "{}", true, "XID79", &out); // it is there: the taints of others are not written
	assert_null(strstr(buf_str(&out), "spec"));
	buf_done(&out);
	node_view_done(&v);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(node_is_read),
	        cmocka_unit_test(patch_sets_taint_and_annotation_together),
	        cmocka_unit_test(patch_removes_only_our_taint),
	        cmocka_unit_test(node_without_version_is_refused),
	        cmocka_unit_test(pods_are_read),
	        cmocka_unit_test(eviction_names_the_pod_and_its_uid),
	};
	return cmocka_run_group_tests_name("remedy_node", tests, NULL, NULL);
}
