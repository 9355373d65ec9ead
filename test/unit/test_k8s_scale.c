// SPDX-License-Identifier: Apache-2.0
// Goal: the scale of any kind is read and changed, pods are counted, and every refusal names what to do.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "k8s/client/discovery.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"

static const struct scale_ref web = {"apps/v1", "Deployment", "default", "web", NULL};
static const struct scale_ref db = {"apps/v1", "StatefulSet", "default", "db", NULL};
static const struct scale_ref widget = {"example.dev/v1", "Widget", "prod", "w", NULL};

static void start(struct harness *h, const struct fake_apiserver_options *o)
{
	struct err e = {0};
	harness_start(h, o);
	if (fake_apiserver_add(h->server, "default/Deployment/web=2", &e) < 0 ||
	    fake_apiserver_add(h->server, "default/StatefulSet/db=1", &e) < 0 ||
	    fake_apiserver_add(h->server, "prod/Widget/w=3", &e) < 0)
		fail_msg("%s", e.msg);
	harness_start_client(h, 0);
}

static void any_kind_is_read_and_changed(void **state)
{
	const struct scale_ref *const refs[] = {&web, &db, &widget};
	const int before[] = {2, 1, 3};
	const char *const selectors[] = {"app=web", "app=db", "app=w"};
	struct harness h;
	struct outcome o;
	start(&h, NULL);
	for (int i = 0; i < 3; i++) {
		harness_get(&h, refs[i], &o);
		if (o.is_error)
			fail_msg("%s", o.error.msg);
		assert_int_equal(o.scale.spec_replicas, before[i]);
		assert_int_equal(o.scale.status_replicas, before[i]);
		assert_string_equal(o.scale.selector, selectors[i]);
		char version[SCALE_RESOURCE_VERSION_BYTES_MAX];
		memcpy(version, o.scale.resource_version, sizeof version);
		harness_patch(&h, refs[i], version, before[i] + 4, &o);
		if (o.is_error)
			fail_msg("%s", o.error.msg);
		assert_int_equal(o.scale.spec_replicas, before[i] + 4);
		assert_string_not_equal(o.scale.resource_version, version);
		harness_get(&h, refs[i], &o);
		assert_int_equal(o.scale.spec_replicas, before[i] + 4);
	}
	assert_string_equal(h.last_class, "widgets/scale");
	harness_stop(&h);
}

static void of_two_writers_the_second_gets_a_conflict(void **state)
{
	struct harness h;
	struct outcome first, second, o;
	start(&h, NULL);
	harness_get(&h, &web, &o);
	harness_patch(&h, &web, o.scale.resource_version, 5, &first);
	harness_patch(&h, &web, o.scale.resource_version, 9, &second);
	assert_false(first.is_error);
	assert_true(second.is_error);
	assert_int_equal(second.error.kind, ERR_CONFLICT);
	assert_non_null(strstr(second.error.msg, "the object has been modified"));
	harness_get(&h, &web, &o);
	assert_int_equal(o.scale.spec_replicas, 5);
	harness_stop(&h);
}

static void many_lookups_share_one_discovery(void **state)
{
	enum { N = 40 };
	static struct outcome o[N];
	struct harness h;
	struct fake_counts counts;
	struct err e = {0};
	start(&h, NULL);
	memset(o, 0, sizeof o);
	for (int i = 0; i < N; i++)
		assert_int_equal(scale_get(h.client, &web, outcome_of_scale, &o[i], &e), 0);
	for (int i = 0; i < N; i++) {
		harness_wait(&h, &o[i]);
		assert_int_equal(o[i].scale.spec_replicas, 2);
	}
	fake_apiserver_get_counts(h.server, &counts);
	assert_int_equal(counts.total, N + 1);
	harness_stop(&h);
}

struct unknown {
	struct scale_ref ref;
	enum err_kind kind;
	const char *says;
};
static const struct unknown unknowns[] = {
        {{"apps/v1", "Deploymnt", "default", "web", NULL}, ERR_NOT_FOUND, "did you mean \"Deployment\"?"},
        {{"apps/v1", "Gadget", "default", "web", NULL}, ERR_NOT_FOUND, "Deployment, ReplicaSet, StatefulSet"},
        {{"apps/v1", "DaemonSet", "default", "web", NULL}, ERR_NOT_FOUND, "no scale subresource for \"DaemonSet\""},
        {{"v1", "Pod", "default", "web", NULL}, ERR_NOT_FOUND, "None of its kinds has a scale subresource"},
        {{"example.dev/v2", "Widget", "default", "w", NULL}, ERR_NOT_FOUND, "the server has no API example.dev/v2"},
        {{"apps/v1", "Deployment", "default", "nope", NULL}, ERR_NOT_FOUND, "\"nope\" not found"},
        {{"apps/v1", "Deployment", "prod", "web", NULL}, ERR_NOT_FOUND, "\"web\" not found"},
        {{"apps/v1", "Deployment", "default", "a/b", NULL}, ERR_INPUT, "invalid namespace and name"},
        {{"apps/v1", "Deployment", "..", "a", NULL}, ERR_INPUT, "invalid namespace and name"},
        {{"apps/v1/x", "Deployment", "default", "a", NULL}, ERR_INPUT, "is not GROUP/VERSION"},
        {{"../v1", "Deployment", "default", "a", NULL}, ERR_INPUT, "is not GROUP/VERSION"},
        {{"apps/v1", "", "default", "a", NULL}, ERR_INPUT, "kind \"\""},
};

static void missing_object_is_named(void **state)
{
	struct harness h;
	struct outcome o;
	start(&h, NULL);
	for (int round = 0; round < 2; round++) // asked, and from memory
		for (size_t i = 0; i < sizeof unknowns / sizeof unknowns[0]; i++) {
			harness_get(&h, &unknowns[i].ref, &o);
			if (!o.is_error || o.error.kind != unknowns[i].kind || !strstr(o.error.msg, unknowns[i].says))
				fail_msg("case %zu: %s: %s", i, err_kind_info(o.error.kind)->name, o.error.msg);
		}
	harness_stop(&h);
}

static void pods_are_counted_by_state(void **state)
{
	struct harness h;
	struct outcome o;
	start(&h, &(struct fake_apiserver_options){.gpus = 9, .ready_after_ms = 9000});
	harness_get(&h, &web, &o);
	harness_patch(&h, &web, o.scale.resource_version, 8, &o);
	harness_count(&h, "default", "app=web", &o);
	assert_int_equal(o.counts.total, 8);
	assert_int_equal(o.counts.ready, 0);
	assert_int_equal(o.counts.pending, 3); // 9 GPUs, 4 of them taken by db and w, so 5 of the 8 run
	int64_t end = clock_mono_ms(&h.clock) + HARNESS_WAIT_MS;
	while (o.counts.ready < 5 && clock_mono_ms(&h.clock) < end) {
		test_loop_for(h.loop, 100);
		harness_count(&h, "default", "app=web", &o);
	}
	assert_int_equal(o.counts.ready, 5);
	assert_int_equal(o.counts.pending, 3);
	struct pod_list list;
	pod_list_init(&list);
	o = (struct outcome){0};
	struct err e = {0};
	assert_int_equal(pods_list(h.client, "default", "app=web", &list, outcome_of_pods, &o, &e), 0);
	harness_wait(&h, &o);
	assert_int_equal(list.n, 8);
	int n_ready = 0;
	for (size_t i = 0; i < list.n; i++) {
		assert_true(strncmp(list.items[i].name, "web-", 4) == 0);
		n_ready += list.items[i].kind == POD_KIND_READY;
	}
	assert_int_equal(n_ready, 5);
	pod_list_done(&list);
	harness_count(&h, "default", "", &o);
	assert_int_equal(o.error.kind, ERR_INPUT);
	harness_count(&h, "default", "app in (web)", &o);
	assert_int_equal(o.error.code, 400);
	harness_stop(&h);
}

static void long_list_of_pods_is_read_page_by_page(void **state)
{
	struct harness h;
	struct outcome o;
	struct fake_counts counts;
	start(&h, NULL);
	struct err e = {0};
	assert_int_equal(fake_apiserver_add(h.server, "default/Deployment/big=1201", &e), 0);
	harness_count(&h, "default", "app=big", &o);
	assert_int_equal(o.counts.total, 1201);
	assert_int_equal(o.counts.ready, 1201);
	fake_apiserver_get_counts(h.server, &counts);
	assert_int_equal(counts.get, 3);
	harness_stop(&h);
}

// ---- invalid replies ----

struct scale_case {
	const char *name, *text;
	enum err_kind kind; // ERR_NONE: accepted
	int32_t spec, status;
	const char *says;
};
#define META "\"kind\":\"Scale\",\"metadata\":{\"resourceVersion\":\"7\"}"
static const struct scale_case scale_cases[] = {
        {"whole", "{" META ",\"spec\":{\"replicas\":3},\"status\":{\"replicas\":2,\"selector\":\"a=b\"}}", ERR_NONE, 3,
         2, ""},
        {"zero is left out", "{" META ",\"spec\":{},\"status\":{\"replicas\":0}}", ERR_NONE, 0, 0, ""},
        {"no spec at all", "{" META "}", ERR_PROTOCOL, 0, 0, "spec is missing"},
        {"a spec that is null", "{" META ",\"spec\":null}", ERR_PROTOCOL, 0, 0, "spec is missing"},
        {"a spec that is a text", "{" META ",\"spec\":\"x\"}", ERR_PROTOCOL, 0, 0, "spec is missing"},
        {"a spec that is a list", "{" META ",\"spec\":[]}", ERR_PROTOCOL, 0, 0, "spec is missing"},
        {"a count that is null", "{" META ",\"spec\":{\"replicas\":null}}", ERR_PROTOCOL, 0, 0, "replicas is null"},
        {"a status that is a list", "{" META ",\"spec\":{},\"status\":[2]}", ERR_PROTOCOL, 0, 0, "status is not"},
        {"a version that is a number", "{\"kind\":\"Scale\",\"spec\":{},\"metadata\":{\"resourceVersion\":7}}",
         ERR_PROTOCOL, 0, 0, "metadata: resourceVersion is not a string"},
        {"largest", "{" META ",\"spec\":{\"replicas\":2147483647}}", ERR_NONE, INT32_MAX, 0, ""},
        {"too large", "{" META ",\"spec\":{\"replicas\":2147483648}}", ERR_PROTOCOL, 0, 0, "spec"},
        {"negative", "{" META ",\"spec\":{\"replicas\":-1}}", ERR_PROTOCOL, 0, 0, "spec"},
        {"a fraction", "{" META ",\"spec\":{\"replicas\":1.5}}", ERR_PROTOCOL, 0, 0, "spec"},
        {"a text", "{" META ",\"spec\":{},\"status\":{\"replicas\":\"1\"}}", ERR_PROTOCOL, 0, 0, "status"},
        {"another kind", "{\"kind\":\"Pod\"}", ERR_PROTOCOL, 0, 0, "got kind \"Pod\""},
        {"no version", "{\"kind\":\"Scale\",\"spec\":{},\"metadata\":{}}", ERR_PROTOCOL, 0, 0,
         "resourceVersion is missing"},
        {"cut off", "{\"kind\":\"Sc", ERR_PROTOCOL, 0, 0, "reply to a scale request"},
        {"garbage", "<html>", ERR_PROTOCOL, 0, 0, "reply to a scale request"},
        {"an array", "[]", ERR_PROTOCOL, 0, 0, "expected a Scale"},
};

static void only_a_scale_in_range_is_a_scale(void **state)
{
	for (size_t i = 0; i < sizeof scale_cases / sizeof scale_cases[0]; i++) {
		const struct scale_case *c = &scale_cases[i];
		struct scale s;
		struct err e = {0};
		int rc = scale_decode(c->text, strlen(c->text), &s, &e);
		if ((rc == 0) != (c->kind == ERR_NONE) || e.kind != c->kind || !strstr(e.msg, c->says) ||
		    (rc == 0 && (s.spec_replicas != c->spec || s.status_replicas != c->status)))
			fail_msg("%s: rc %d %s: %s", c->name, rc, err_kind_info(e.kind)->name, e.msg);
	}
}

static void list_of_resources_is_whole_or_none(void **state)
{
	static const struct {
		const char *resources;
		int n; // -1: refused
	} rows[] = {
	        {"[]", 0},
	        {"null", 0},
	        {"[{\"name\":\"pods\",\"kind\":\"Pod\",\"namespaced\":true},{\"name\":\"pods/log\",\"kind\":\"Pod\"}]",
	         1},
	        {"{}", -1},
	        {"\"pods\"", -1},
	        {"7", -1},
	        {"[null]", -1},
	        {"[[]]", -1},
	        {"[{\"name\":\"pods\"}]", -1},
	        {"[{\"name\":7,\"kind\":\"Pod\"}]", -1},
	        {"[{\"name\":\"pods\",\"kind\":\"Pod\",\"namespaced\":\"true\"}]", -1},
	};
	struct k8s_resource_list list;
	struct err e = {0};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[256];
		snprintf(text, sizeof text, "{\"kind\":\"APIResourceList\",\"resources\":%s}", rows[i].resources);
		int rc = discovery_decode(text, strlen(text), &list, &e);
		if (rc != (rows[i].n < 0 ? -1 : 0) || (rc == 0 && list.n != (size_t)rows[i].n))
			fail_msg("%s: %d %zu %s", rows[i].resources, rc, list.n, e.msg);
		free(list.items);
	}
	assert_int_equal(discovery_decode("{\"kind\":\"APIResourceList\"}", 26, &list, &e), -1);
	assert_int_equal(e.kind, ERR_PROTOCOL);
}

static void selector_over_the_ceiling_is_refused(void **state)
{
	char text[SCALE_SELECTOR_BYTES_MAX + 200];
	int n = snprintf(text, sizeof text, "{" META ",\"spec\":{},\"status\":{\"selector\":\"");
	memset(text + n, 'a', SCALE_SELECTOR_BYTES_MAX);
	snprintf(text + n + SCALE_SELECTOR_BYTES_MAX, sizeof text - (size_t)n - SCALE_SELECTOR_BYTES_MAX, "\"}}");
	struct scale s;
	struct err e = {0};
	assert_int_equal(scale_decode(text, strlen(text), &s, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "1024"));
	assert_non_null(strstr(e.msg, "1023"));
}

static void pods_are_classified(void **state)
{
	static const char page[] =
	        "{\"kind\":\"PodList\",\"metadata\":{\"continue\":\"abc\"},\"items\":["
	        "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}},"
	        "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"},\"status\":{\"phase\":\"Running\","
	        "\"conditions\":"
	        "[{\"type\":\"Ready\",\"status\":\"True\"}]}},"
	        "{\"metadata\":{\"deletionTimestamp\":null},\"status\":{\"phase\":\"Pending\"}},"
	        "{\"status\":{\"phase\":\"Failed\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}},"
	        "{\"status\":{\"phase\":\"Succeeded\"}},{}]}";
	struct pod_counts counts = {0};
	char next[PODS_CONTINUE_BYTES_MAX];
	struct err e = {0};
	if (pods_decode_page(page, strlen(page), &counts, NULL, next, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(counts.total, 6);
	assert_int_equal(counts.ready, 1);
	assert_int_equal(counts.pending, 1);
	assert_int_equal(counts.failed, 1);
	assert_int_equal(counts.terminating, 1);
	assert_string_equal(next, "abc");
	static const enum pod_kind kinds[] = {POD_KIND_READY, POD_KIND_DELETED, POD_KIND_PENDING,
	                                      POD_KIND_ENDED, POD_KIND_ENDED,   POD_KIND_UNREADY};
	struct pod_list list;
	pod_list_init(&list);
	counts = (struct pod_counts){0};
	if (pods_decode_page(page, strlen(page), &counts, &list, next, &e) < 0)
		fail_msg("%s", e.msg);
	assert_int_equal(list.n, 6);
	for (size_t i = 0; i < list.n; i++)
		assert_int_equal(list.items[i].kind, kinds[i]);
	pod_list_done(&list);
	counts.total = PODS_MAX - 5;
	assert_int_equal(pods_decode_page(page, strlen(page), &counts, NULL, next, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_int_equal(pods_decode_page("{\"kind\":\"PodList\",\"items\":3}", 28, &counts, NULL, next, &e), -1);
	assert_int_equal(e.kind, ERR_PROTOCOL);
}

static void costs_and_marks_of_pods_are_read(void **state)
{
#define COST  "\"controller.kubernetes.io/pod-deletion-cost\":"
#define MARK  "\"gpuscale.dev/victim\":"
#define OWNER "\"ownerReferences\":[{\"kind\":\"ReplicaSet\",\"controller\":true}]"
	static const struct {
		const char *metadata;
		struct pod_removal removal;
	} rows[] = {
	        {OWNER, {"", true, false, 0, 0}},
	        {"\"ownerReferences\":[{\"kind\":\"StatefulSet\",\"controller\":true}]", {"", false, false, 0, 0}},
	        {"\"ownerReferences\":[{\"kind\":\"ReplicaSet\"}]", {"", false, false, 0, 0}},
	        {"\"resourceVersion\":\"7\",\"annotations\":{" COST "\"-7\"}", {"7", false, true, -7, 0}},
	        {"\"annotations\":{" COST "\"many\"}", {"", false, true, 0, 0}},
	        {"\"annotations\":{" COST "\"-2147483647\"," MARK "\"1970-01-01T00:00:09Z\"}",
	         {"", false, false, -2147483647, 9000}},
	        {"\"annotations\":{" COST "\"5\"," MARK "\"1970-01-01T00:00:09Z\"}", {"", false, true, 5, 9000}},
	        {"\"annotations\":{" MARK "\"yesterday\"}", {"", false, false, 0, 1}},
	        {"\"annotations\":{" COST "5," MARK "{}},\"ownerReferences\":7", {"", false, false, 0, 0}},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char page[512], next[PODS_CONTINUE_BYTES_MAX];
		struct pod_counts counts = {0};
		struct pod_list list;
		struct err e = {0};
		snprintf(page, sizeof page, "{\"kind\":\"PodList\",\"metadata\":{},\"items\":[{\"metadata\":{%s}}]}",
		         rows[i].metadata);
		pod_list_init(&list);
		list.reads_removal = true;
		if (pods_decode_page(page, strlen(page), &counts, &list, next, &e) < 0)
			fail_msg("row %zu: %s", i, e.msg);
		const struct pod_removal *r = list.items[0].removal, *expected = &rows[i].removal;
		if (strcmp(r->resource_version, expected->resource_version) != 0 ||
		    r->is_by_cost != expected->is_by_cost || r->has_cost != expected->has_cost ||
		    r->cost != expected->cost || r->marked_ms != expected->marked_ms)
			fail_msg("row %zu: by cost %d, has cost %d, %d, marked %lld", i, r->is_by_cost, r->has_cost,
			         r->cost, (long long)r->marked_ms);
		pod_list_done(&list);
	}
}

static void page_of_pods_is_whole_or_none(void **state)
{
	static const struct {
		const char *members;
		int total; // -1: refused
	} rows[] = {
	        {"\"metadata\":{},\"items\":[]", 0},
	        {"\"metadata\":{\"continue\":null},\"items\":null", 0},
	        {"\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"a\"},\"status\":{\"conditions\":null}}]", 1},
	        {"\"metadata\":{}", -1},
	        {"\"items\":[]", -1},
	        {"\"metadata\":\"more\",\"items\":[]", -1},
	        {"\"metadata\":{\"continue\":1},\"items\":[]", -1},
	        {"\"metadata\":{\"continue\":[\"x\"]},\"items\":[]", -1},
	        {"\"metadata\":{},\"items\":{}", -1},
	        {"\"metadata\":{},\"items\":\"[]\"", -1},
	        {"\"metadata\":{},\"items\":[null]", -1},
	        {"\"metadata\":{},\"items\":[7]", -1},
	        {"\"metadata\":{},\"items\":[[]]", -1},
	        {"\"metadata\":{},\"items\":[{\"metadata\":[]}]", -1},
	        {"\"metadata\":{},\"items\":[{\"metadata\":{\"name\":{}}}]", -1},
	        {"\"metadata\":{},\"items\":[{\"metadata\":{\"deletionTimestamp\":false}}]", -1},
	        {"\"metadata\":{},\"items\":[{\"status\":\"Running\"}]", -1},
	        {"\"metadata\":{},\"items\":[{\"status\":{\"phase\":[\"Pending\"]}}]", -1},
	        {"\"metadata\":{},\"items\":[{\"status\":{\"conditions\":{}}}]", -1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[256], next[PODS_CONTINUE_BYTES_MAX];
		struct pod_counts counts = {0};
		struct err e = {0};
		snprintf(text, sizeof text, "{\"kind\":\"PodList\",%s}", rows[i].members);
		int rc = pods_decode_page(text, strlen(text), &counts, NULL, next, &e);
		if (rc != (rows[i].total < 0 ? -1 : 0) || (rc == 0 && (counts.total != rows[i].total || next[0])) ||
		    (rc < 0 && e.kind != ERR_PROTOCOL))
			fail_msg("%s: %d, %d pods, %s", rows[i].members, rc, (int)counts.total, e.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(any_kind_is_read_and_changed),
	        cmocka_unit_test(of_two_writers_the_second_gets_a_conflict),
	        cmocka_unit_test(many_lookups_share_one_discovery),
	        cmocka_unit_test(missing_object_is_named),
	        cmocka_unit_test(pods_are_counted_by_state),
	        cmocka_unit_test(long_list_of_pods_is_read_page_by_page),
	        cmocka_unit_test(only_a_scale_in_range_is_a_scale),
	        cmocka_unit_test(list_of_resources_is_whole_or_none),
	        cmocka_unit_test(selector_over_the_ceiling_is_refused),
	        cmocka_unit_test(pods_are_classified),
	        cmocka_unit_test(costs_and_marks_of_pods_are_read),
	        cmocka_unit_test(page_of_pods_is_whole_or_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
