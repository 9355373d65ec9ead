// SPDX-License-Identifier: Apache-2.0
// Goal: what a target says of its scale is what its /scale says, the text of its selector included.
#include "k8s/cache/target_decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "k8s/client/scale.h"

static void selector_is_written_as_the_scale_subresource_writes_it(void **state)
{
	static const struct {
		const char *json, *text;
	} rows[] = {
	        {"{}", ""},
	        {"null", ""},
	        {"{\"matchLabels\":{\"b\":\"2\",\"a\":\"1\"}}", "a=1,b=2"},
	        {"{\"matchLabels\":{\"app\":\"x\"},\"matchExpressions\":[{\"key\":\"tier\",\"operator\":\"In\","
	         "\"values\":[\"w\",\"a\"]},{\"key\":\"aa\",\"operator\":\"DoesNotExist\"},{\"key\":\"c\","
	         "\"operator\":\"Exists\"},{\"key\":\"b\",\"operator\":\"NotIn\",\"values\":[\"z\"]}]}",
	         "!aa,app=x,b notin (z),c,tier in (a,w)"},
	        {"{\"matchLabels\":{\"a\":1}}", NULL},
	        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Like\"}]}", NULL},
	        {"{\"matchExpressions\":[{\"operator\":\"Exists\"}]}", NULL},
	        {"{\"matchLabels\":null,\"matchExpressions\":null}", ""},
	        // What is left out of a selector makes it match more pods.
	        {"\"app=x\"", NULL},
	        {"[]", NULL},
	        {"7", NULL},
	        {"{\"matchLabels\":\"app=x\"}", NULL},
	        {"{\"matchLabels\":[]}", NULL},
	        {"{\"matchLabels\":[\"app\"]}", NULL},
	        {"{\"matchLabels\":{\"app\":null}}", NULL},
	        {"{\"matchLabels\":{\"a,b\":\"c\"}}", NULL},
	        {"{\"matchLabels\":{\"a\":\"b,c\"}}", NULL},
	        {"{\"matchLabels\":{\"a\":\"x\"},\"matchExpressions\":{}}", NULL},
	        {"{\"matchExpressions\":\"a\"}", NULL},
	        {"{\"matchExpressions\":[7]}", NULL},
	        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\"}]}", NULL},
	        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[]}]}", NULL},
	        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":\"b\"}]}", NULL},
	        {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"b) c (\"]}]}", NULL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[SCALE_SELECTOR_BYTES_MAX];
		struct err e = {0};
		int rc = label_selector_render((struct json_span){rows[i].json, strlen(rows[i].json)}, text,
		                               sizeof text, &e);
		assert_int_equal(rc, rows[i].text ? 0 : -1);
		if (rows[i].text)
			assert_string_equal(text, rows[i].text);
		else
			assert_int_equal(e.kind, ERR_PROTOCOL);
	}
}

#define V1 "{\"metadata\":{\"resourceVersion\":\"1\"}"

static void target_is_read_without_its_tree(void **state)
{
	static const char json[] =
	        "{\"status\":{\"readyReplicas\":2,\"replicas\":3},\"spec\":{\"replicas\":4,\"template\":{"
	        "\"spec\":{\"replicas\":99}},\"selector\":{\"matchLabels\":{\"app\":\"\\u0061\"}}},"
	        "\"metadata\":{\"uid\":\"u\",\"generation\":7,\"resourceVersion\":\"12\"}}";
	static const char *const bad[] = {"",
	                                  "[]",
	                                  "{}",
	                                  "{\"metadata\":{\"resourceVersion\":\"\"}}",
	                                  "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":-1}}",
	                                  "{\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":\"2\"}}",
	                                  "{\"metadata\":{\"resourceVersion\":\"a\\\"b\"}}",
	                                  V1 "}", // metadata alone: it may have any number of replicas
	                                  V1 ",\"spec\":null}",
	                                  V1 ",\"spec\":[]}",
	                                  V1 ",\"spec\":\"replicas\"}",
	                                  V1 ",\"spec\":{\"replicas\":null}}",
	                                  V1 ",\"spec\":{\"replicas\":[4]}}",
	                                  V1 ",\"spec\":{\"replicas\":4.0}}",
	                                  V1 ",\"spec\":{\"replicas\":4,\"selector\":[]}}",
	                                  V1 ",\"spec\":{},\"status\":[]}",
	                                  V1 ",\"spec\":{},\"status\":{\"readyReplicas\":\"2\"}}",
	                                  "{\"metadata\":{\"resourceVersion\":1},\"spec\":{}}",
	                                  "{\"metadata\":{\"resourceVersion\":\"1\",\"uid\":7},\"spec\":{}}",
	                                  "{\"metadata\":{\"resourceVersion\":\"1\",\"generation\":\"7\"},\"spec\":{}}",
	                                  "{\"metadata\":[{\"resourceVersion\":\"1\"}],\"spec\":{}}"};
	struct target_fields f;
	struct err e = {0};
	assert_int_equal(target_decode(json, sizeof json - 1, &f, &e), 0);
	assert_int_equal(f.spec_replicas, 4);
	assert_int_equal(f.status_replicas, 3);
	assert_int_equal(f.ready_replicas, 2);
	assert_int_equal(f.generation, 7);
	assert_string_equal(f.resource_version, "12");
	assert_string_equal(f.uid, "u");
	assert_string_equal(f.selector, "app=a");
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		err_clear(&e);
		if (target_decode(bad[i], strlen(bad[i]), &f, &e) != -1 || e.kind == ERR_NONE)
			fail_msg("%s was taken", bad[i]);
	}
	assert_int_equal(target_decode(V1 ",\"spec\":{}}", strlen(V1 ",\"spec\":{}}"), &f, &e), 0);
	assert_int_equal(f.spec_replicas, 1); // what an absent one means
}

static void ready_replicas_are_read_from_the_status_of_any_kind(void **state)
{
	static const struct {
		const char *json;
		int ready;
		bool is_stale;
	} rows[] = {
	        {"{\"status\":{\"availableReplicas\":2,\"readyReplicas\":3}}", 2, false},
	        {"{\"status\":{\"availableReplicas\":0}}", 0, false},
	        {"{\"status\":{\"readyReplicas\":3}}", -1, false},
	        {"{\"status\":{\"availableReplicas\":-1}}", -1, false},
	        {"{\"status\":{\"availableReplicas\":9999999999}}", -1, false},
	        {"{\"status\":{\"availableReplicas\":\"2\"}}", -1, false},
	        {"{\"status\":[2]}", -1, false},
	        {"{\"spec\":{\"availableReplicas\":2}}", -1, false},
	        {"", -1, false},
	        {"{\"metadata\":{\"generation\":4},\"status\":{\"observedGeneration\":3,\"availableReplicas\":2}}", 2,
	         true},
	        {"{\"metadata\":{\"generation\":4},\"status\":{\"observedGeneration\":4,\"availableReplicas\":2}}", 2,
	         false},
	        {"{\"metadata\":{\"generation\":4},\"status\":{\"availableReplicas\":2}}", 2, false},
	};
	const struct scale_ref grove = {"grove.io/v1alpha1", "PodCliqueScalingGroup", "ns", "a", NULL};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		bool is_stale;
		int ready = scale_path_ready(&grove, (struct json_span){rows[i].json, strlen(rows[i].json)}, &is_stale);
		if (ready != rows[i].ready || is_stale != rows[i].is_stale)
			fail_msg("%s: %d, stale %d", rows[i].json, ready, is_stale);
	}
}

static void target_is_absent_only_from_a_whole_and_empty_list(void **state)
{
	static const struct {
		const char *json;
		int n;
	} rows[] = {
	        {"{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]}\n", 0},
	        {"{\"items\":null}", 0},
	        {"{\"metadata\":{\"continue\":\"\"},\"items\":[{\"metadata\":{\"name\":\"web\"}}]}", 1},
	        {"", -1},
	        {"{}", -1},
	        {"[]", -1},
	        {"null", -1},
	        {"{\"kind\":\"Status\",\"metadata\":{}}", -1},
	        {"{\"items\":{}}", -1},
	        {"{\"items\":\"\"}", -1},
	        {"{\"items\":0}", -1},
	        {"{\"items\":[]", -1},
	        {"{\"items\":[", -1},
	        {"{\"items\":[]}}", -1},
	        {"{\"items\":[] \"a\":1}", -1},
	        {"{\"items\":[null]}", -1},
	        {"{\"metadata\":{\"continue\":\"x\"},\"items\":[]}", -1},
	        {"{\"metadata\":{\"continue\":7},\"items\":[]}", -1},
	        {"{\"items\":[{\"metadata\":{\"name\":\"other\"}}]}", -1},
	        {"{\"items\":[{\"metadata\":{\"name\":\"web\"}},{\"metadata\":{\"name\":\"web\"}}]}", -1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct json_span object;
		int n = object_list_find(rows[i].json, strlen(rows[i].json), "web", &object);
		if (n != rows[i].n)
			fail_msg("%s: %d", rows[i].json, n);
		if (n == 1)
			assert_true(object.len == strlen("{\"metadata\":{\"name\":\"web\"}}"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(selector_is_written_as_the_scale_subresource_writes_it),
	        cmocka_unit_test(target_is_read_without_its_tree),
	        cmocka_unit_test(ready_replicas_are_read_from_the_status_of_any_kind),
	        cmocka_unit_test(target_is_absent_only_from_a_whole_and_empty_list),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
