// SPDX-License-Identifier: Apache-2.0
// Goal: the pods of a selector are known one by one and counted right, whatever comes, changes its labels or goes; and
// they are watched only while they are wanted.
#include "k8s/cache/pod_store.h"

#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "k8s/cache/pod_decode.h"
#include "k8s/cache/target_store.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"

#define WAIT_MS 60000

struct world {
	struct harness h;
	struct pod_store *store;
	struct target_store *targets;
	int errors, changes;
	char names[512]; // of pod_set_each, sorted
};

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct world *w = arg;
	w->errors += error != NULL;
	assert_non_null(strstr(what, "namespace ns"));
}

static void on_change(void *arg)
{
	struct world *w = arg;
	w->changes++;
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct err e = {0};
	*state = w;
	harness_start(&w->h, NULL);
	harness_start_client(&w->h, 1);
	w->store = pod_store_new(&(struct pod_store_options){w->h.client, on_error, on_change, w}, &e);
	w->targets = target_store_new(&(struct target_store_options){.client = w->h.client}, &e);
	assert_true(w->store && w->targets);
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	target_store_free(w->targets);
	pod_store_free(w->store);
	harness_stop(&w->h);
	free(w);
	return 0;
}

static void put_pod(struct world *w, const char *name, const char *labels, const char *phase, bool is_ready)
{
	char json[1024];
	struct err e = {0};
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\","
	         "\"labels\":{%s}},\"status\":{\"phase\":\"%s\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\","
	         "\"lastTransitionTime\":\"2026-01-05T09:00:01Z\"}]}}",
	         name, labels, phase, is_ready ? "True" : "False");
	if (fake_apiserver_put(w->h.server, json, &e) < 0)
		fail_msg("%s", e.msg);
}

static void delete_pod(struct world *w, const char *name)
{
	char path[100];
	struct outcome o;
	snprintf(path, sizeof path, "/api/v1/namespaces/ns/pods/%s", name);
	harness_request(&w->h, "DELETE", path, NULL, NULL, &o);
	assert_false(o.is_error);
}

static const struct workload_kind *any_kind(void)
{
	return workload_kind_find("example.dev/v1", "Widget", NULL);
}

static struct pod_set *want(struct world *w, const char *selector)
{
	struct err e = {0};
	struct pod_set *set = pod_store_acquire(w->store, "ns", selector, any_kind(), &e);
	if (!set)
		fail_msg("%s", e.msg);
	return set;
}

static void add_name(void *arg, const struct pod_view *pod)
{
	struct world *w = arg;
	size_t at = 0; // sorted in
	while (w->names[at] && strcmp(w->names + at, pod->name) < 0)
		at += strcspn(w->names + at, " ") + 1;
	size_t len = strlen(pod->name);
	memmove(w->names + at + len + 1, w->names + at, strlen(w->names + at) + 1);
	memcpy(w->names + at, pod->name, len);
	w->names[at + len] = ' ';
}

static const char *names(struct world *w, const struct pod_set *set)
{
	w->names[0] = '\0';
	pod_set_each(set, add_name, w);
	return w->names;
}

static void wait_names(struct world *w, const struct pod_set *set, const char *wanted)
{
	int64_t end = test_now_ms() + WAIT_MS;
	while (pod_set_state(set) != POD_SET_KNOWN || strcmp(names(w, set), wanted) != 0) {
		if (test_now_ms() > end)
			fail_msg("state %d, pods %s, wanted %s", (int)pod_set_state(set), names(w, set), wanted);
		test_loop_for(w->h.loop, 5);
	}
}

static void pods_come_change_and_go(void **state)
{
	struct world *w = *state;
	struct pod_set_counts c;
	put_pod(w, "a", "\"app\":\"x\"", "Running", true);
	put_pod(w, "b", "\"app\":\"x\"", "Pending", false);
	put_pod(w, "other", "\"app\":\"y\"", "Running", true);
	struct pod_set *set = want(w, "app=x");
	assert_int_equal(pod_set_state(set), POD_SET_UNSYNCED);
	wait_names(w, set, "a b ");
	pod_set_get_counts(set, &c);
	assert_true(c.counts.total == 2 && c.counts.ready == 1 && c.counts.pending == 1 && c.counts.failed == 0);
	put_pod(w, "c", "\"app\":\"x\"", "Failed", false);
	wait_names(w, set, "a b c ");
	put_pod(w, "b", "\"app\":\"y\"", "Running", true); // labels changed
	wait_names(w, set, "a c ");
	delete_pod(w, "a");
	wait_names(w, set, "c ");
	pod_set_get_counts(set, &c);
	assert_true(c.counts.total == 1 && c.counts.ready == 0 && c.counts.failed == 1 && c.counts.pending == 0);
	pod_set_release(set);
}

static void every_kind_of_requirement_is_evaluated(void **state)
{
	struct world *w = *state;
	struct pod_set *sets[5];
	static const struct {
		const char *selector, *names;
	} rows[] = {{"app=x", "a b "},
	            {"app in (x,y),tier!=db", "a c "},
	            {"app=x,tier notin (db)", "a "},
	            {"!tier", "a c "},
	            {"tier", "b "}};
	put_pod(w, "a", "\"app\":\"x\"", "Running", true);
	put_pod(w, "b", "\"app\":\"x\",\"tier\":\"db\"", "Running", true);
	put_pod(w, "c", "\"app\":\"y\"", "Running", true);
	for (int i = 0; i < 5; i++)
		sets[i] = want(w, rows[i].selector);
	for (int i = 0; i < 5; i++)
		wait_names(w, sets[i], rows[i].names);
	put_pod(w, "b", "\"app\":\"x\"", "Running", true); // in several sets, and leaves some
	wait_names(w, sets[0], "a b ");
	wait_names(w, sets[2], "a b ");
	wait_names(w, sets[3], "a b c ");
	wait_names(w, sets[4], "");
	for (int i = 0; i < 5; i++)
		pod_set_release(sets[i]);
}

static void set_wanted_later_costs_one_list_and_the_others_stay_known(void **state)
{
	struct world *w = *state;
	struct informer_state stats;
	put_pod(w, "a", "\"app\":\"x\"", "Running", true);
	put_pod(w, "b", "\"app\":\"y\"", "Running", true);
	struct pod_set *x = want(w, "app=x"), *again = want(w, "app=x");
	assert_ptr_equal(x, again);
	wait_names(w, x, "a ");
	struct pod_set *y = want(w, "app=y"), *z = want(w, "app=z");
	assert_int_equal(pod_set_state(x), POD_SET_KNOWN);
	assert_int_equal(pod_set_state(y), POD_SET_UNSYNCED);
	wait_names(w, y, "b ");
	wait_names(w, z, "");
	wait_names(w, x, "a ");
	stats = pod_store_get_state(w->store);
	assert_int_equal(stats.lists, 2);
	assert_int_equal(stats.watches, 1);
	assert_int_equal(stats.items, 2);
	pod_set_release(x);
	pod_set_release(again);
	stats = pod_store_get_state(w->store);
	assert_int_equal(stats.items, 1);
	pod_set_release(y);
	pod_set_release(z);
	stats = pod_store_get_state(w->store);
	assert_int_equal(stats.watches, 0);
}

static void watch_of_pods_is_broken_until_listing_is_permitted(void **state)
{
	struct world *w = *state;
	fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 1, .status = 403, .resource = "pods"});
	struct pod_set *set = want(w, "app=x");
	assert_true(test_loop_until(w->h.loop, &w->errors, 1, WAIT_MS));
	assert_int_equal(pod_set_state(set), POD_SET_BROKEN);
	put_pod(w, "a", "\"app\":\"x\"", "Running", true);
	wait_names(w, set, "a ");
	pod_set_release(set);
}

static void nothing_else_is_accepted(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	assert_null(pod_store_acquire(w->store, "ns", "", any_kind(), &e));
	assert_int_equal(e.kind, ERR_INPUT);
	assert_null(pod_store_acquire(w->store, "ns", "a in (", any_kind(), &e));
	assert_int_equal(e.kind, ERR_INPUT);
}

static void above_a_number_of_namespaces_one_watch_takes_over(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	struct informer_state stats;
	struct pod_set *sets[POD_NAMESPACES_MAX + 1];
	put_pod(w, "a", "\"app\":\"x\"", "Running", true);
	for (int i = 0; i <= POD_NAMESPACES_MAX; i++) {
		char name[16] = "ns";
		if (i > 0)
			snprintf(name, sizeof name, "n%d", i);
		sets[i] = pod_store_acquire(w->store, name, "app=x", any_kind(), &e);
		assert_non_null(sets[i]);
	}
	TEST_BECOMES(w->h.loop, pod_set_state(sets[POD_NAMESPACES_MAX]) == POD_SET_KNOWN);
	TEST_BECOMES(w->h.loop, (stats = pod_store_get_state(w->store), stats.watches == 1));
	wait_names(w, sets[0], "a ");
	delete_pod(w, "a");
	wait_names(w, sets[0], "");
	for (int i = 0; i <= POD_NAMESPACES_MAX; i++)
		pod_set_release(sets[i]);
	stats = pod_store_get_state(w->store);
	assert_int_equal(stats.watches, 0);
}

// A list in progress continues; one more list follows for all sets that were added during it.
static void sets_wanted_during_a_list_cost_one_list_more(void **state)
{
	struct world *w = *state;
	struct informer_state stats;
	struct pod_set *sets[5];
	for (int i = 0; i < 500; i++) {
		char name[16];
		snprintf(name, sizeof name, "p%d", i);
		put_pod(w, name, "\"app\":\"x\"", "Running", true);
	}
	for (int i = 0; i < 5; i++) {
		char selector[16] = "app=x";
		if (i > 0)
			snprintf(selector, sizeof selector, "app=x%d", i);
		sets[i] = want(w, selector);
		int64_t end_ms = test_now_ms() + WAIT_MS;
		uint64_t before = fake_apiserver_count(w->h.server, "list", "pods");
		while (i < 4 && fake_apiserver_count(w->h.server, "list", "pods") == before && test_now_ms() < end_ms)
			event_base_loop(w->h.loop, EVLOOP_ONCE);
	}
	for (int i = 0; i < 5; i++)
		TEST_BECOMES(w->h.loop, pod_set_state(sets[i]) == POD_SET_KNOWN);
	stats = pod_store_get_state(w->store);
	assert_int_equal(stats.lists, 2);
	assert_int_equal(stats.items, 500);
	for (int i = 0; i < 5; i++)
		pod_set_release(sets[i]);
}

static void pods_of_a_target_follow_it(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	struct target_view v;
	struct pod_set_counts c = {0};
	const struct scale_ref web = {"apps/v1", "Deployment", "ns", "web", NULL};
	assert_int_equal(fake_apiserver_add(w->h.server, "ns/Deployment/web=3", &e), 0);
	assert_int_equal(target_store_acquire(w->targets, &web, false, &e), 1);
	assert_int_equal(target_store_acquire(w->targets, &web, true, &e), 1);
	int64_t end = test_now_ms() + WAIT_MS;
	do {
		test_loop_for(w->h.loop, 5);
		target_store_get(w->targets, &web, &v);
		if (v.state == TARGET_FOUND && v.pods)
			pod_set_get_counts(v.pods, &c);
	} while (c.counts.ready < 3 && test_now_ms() < end);
	assert_int_equal(c.counts.ready, 3);
	assert_int_equal(v.ready_replicas, 3);
	target_store_release(w->targets, &web, true);
	target_store_get(w->targets, &web, &v);
	assert_int_equal(v.state, TARGET_FOUND);
	assert_null(v.pods);
	target_store_release(w->targets, &web, false);
}

// ---- decoding ----

static void pod_is_read_without_its_tree(void **state)
{
	static const struct {
		const char *json;
		struct pod_facts f;
	} rows[] = {
	        {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"creationTimestamp\":\"1970-01-01T00:00:02Z\"},"
	         "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\"},"
	         "{\"type\":\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"1970-01-01T00:00:09Z\"}]}}",
	         {.kind = POD_KIND_READY, .is_ready = true, .created_ms = 2000, .ready_ms = 9000}},
	        {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"deletionTimestamp\":\"2026-01-05T09:00:00Z\"},"
	         "\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
	         {.kind = POD_KIND_DELETED, .is_deleted = true}},
	        {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\",\"deletionTimestamp\":null},\"status\":{\"phase\":"
	         "\"Pending\",\"containerStatuses\":[{\"state\":{\"waiting\":{\"reason\":\"ContainerCreating\"}}}]}}",
	         {.kind = POD_KIND_PENDING, .is_pending = true}},
	        {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"status\":{\"phase\":\"Running\","
	         "\"containerStatuses\":[{\"state\":{\"running\":{}}},{\"state\":{\"waiting\":{\"reason\":"
	         "\"CrashLoopBackOff\"}}}]}}",
	         {.kind = POD_KIND_UNREADY, .is_crashing = true}},
	        {"{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"status\":{\"phase\":\"Failed\"}}",
	         {.kind = POD_KIND_ENDED, .is_failed = true}},
	};
	struct pod_facts f;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct pod_facts *want = &rows[i].f;
		assert_true(pod_decode(rows[i].json, strlen(rows[i].json), &f));
		assert_int_equal(f.kind, want->kind);
		assert_true(f.is_ready == want->is_ready && f.is_pending == want->is_pending &&
		            f.is_failed == want->is_failed && f.is_deleted == want->is_deleted &&
		            f.is_crashing == want->is_crashing);
		assert_int_equal(f.created_ms, want->created_ms);
		assert_int_equal(f.ready_ms, want->ready_ms);
	}
	assert_false(pod_decode("{}", 2, &f));
	assert_false(pod_decode("{\"metadata\":{\"name\":7}}", 23, &f));
}

// One event of a pod is matched against a limited number of selectors, however many a namespace has.
static void selectors_without_a_label_of_their_own_are_limited(void **state)
{
	struct world *w = *state;
	struct pod_set *sets[POD_TERM_SETS_MAX], *own[2];
	char selector[100];
	struct err e = {0};
	put_pod(w, "a", "\"app\":\"x\",\"n\":\"201\"", "Running", true);
	for (int i = 0; i < POD_TERM_SETS_MAX; i++) {
		snprintf(selector, sizeof selector, "app=x,n notin (%d)", i);
		sets[i] = want(w, selector);
	}
	assert_null(pod_store_acquire(w->store, "ns", "app=x,n notin (200)", any_kind(), &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_ptr_equal(want(w, "app=x,n notin (7)"), sets[7]);
	// A selector with a label that few others have is found by that.
	own[0] = want(w, "app=x,n=201");
	own[1] = want(w, "app=x,n=202");
	assert_ptr_equal(want(w, "app=x,n=201"), own[0]);
	wait_names(w, own[0], "a ");
	wait_names(w, own[1], "");
	wait_names(w, sets[0], "a ");
	pod_set_release(sets[7]);
	pod_set_release(own[0]);
	for (int i = 0; i < POD_TERM_SETS_MAX; i++)
		pod_set_release(sets[i]);
	for (int i = 0; i < 2; i++)
		pod_set_release(own[i]);
}

static void labels_are_read_with_their_escapes(void **state)
{
	static const char json[] =
	        "{\"metadata\":{\"labels\":{\"a/b\":\"c\",\"\\u0064\":\"\",\"bad\":1,\"e\":\"\\\"\"}}}";
	struct label *labels;
	size_t n, bytes;
	assert_int_equal(pod_decode_labels(json, sizeof json - 1, &labels, &n, &bytes), 0);
	assert_int_equal(n, 3);
	assert_string_equal(labels[0].key, "a/b");
	assert_string_equal(labels[0].value, "c");
	assert_string_equal(labels[1].key, "d");
	assert_string_equal(labels[1].value, "");
	assert_string_equal(labels[2].value, "\"");
	free(labels);
	assert_int_equal(pod_decode_labels("[]", 2, &labels, &n, &bytes), 0);
	assert_int_equal(n, 0);
	free(labels);
}

static void add_member(void *arg, const struct pod_view *pod)
{
	char(*text)[256] = arg;
	size_t at = strlen(*text);
	snprintf(*text + at, sizeof *text - at, "%s%s %d %s", at ? ", " : "", pod->name, pod->member.size,
	         pod->member.is_leader ? "leader" : "worker");
}

static void set_of_leaders_has_all_pods_of_their_groups(void **state)
{
#define LWS "leaderworkerset.sigs.k8s.io/"
	const struct workload_kind *lws = workload_kind_find("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", NULL);
	struct world *w = *state;
	struct err e = {0};
	char members[256] = "";
	put_pod(w, "a", "\"" LWS "name\":\"x\",\"" LWS "worker-index\":\"0\",\"" LWS "size\":\"2\"", "Running", true);
	struct pod_set *set = pod_store_acquire(w->store, "ns", LWS "name=x," LWS "worker-index=0", lws, &e);
	struct pod_set *leaders = pod_store_acquire(w->store, "ns", LWS "name=x," LWS "worker-index=0", any_kind(), &e);
	struct pod_set *all = pod_store_acquire(w->store, "ns", LWS "name=x", lws, &e);
	assert_true(set && leaders && all && set != leaders && set != all);
	assert_ptr_equal(pod_store_acquire(w->store, "ns", LWS "name=x," LWS "worker-index=0", lws, &e), set);
	wait_names(w, set, "a ");
	put_pod(w, "b", "\"" LWS "name\":\"x\",\"" LWS "worker-index\":\"1\"", "Running", false);
	wait_names(w, set, "a b ");
	wait_names(w, leaders, "a ");
	wait_names(w, all, "a b ");
	pod_set_each(set, add_member, &members);
	assert_string_equal(members, "a 2 leader, b 0 worker");
	members[0] = '\0';
	pod_set_each(all, add_member, &members); // its selector asks for both
	assert_string_equal(members, "a 2 leader, b 0 leader");
	pod_set_release(all);
	pod_set_release(leaders);
	pod_set_release(set);
	pod_set_release(set);
#undef LWS
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(pod_is_read_without_its_tree),
	        cmocka_unit_test(labels_are_read_with_their_escapes),
	        TEST(pods_come_change_and_go),
	        TEST(set_of_leaders_has_all_pods_of_their_groups),
	        TEST(every_kind_of_requirement_is_evaluated),
	        TEST(set_wanted_later_costs_one_list_and_the_others_stay_known),
	        TEST(watch_of_pods_is_broken_until_listing_is_permitted),
	        TEST(nothing_else_is_accepted),
	        TEST(above_a_number_of_namespaces_one_watch_takes_over),
	        TEST(sets_wanted_during_a_list_cost_one_list_more),
	        TEST(pods_of_a_target_follow_it),
	        TEST(selectors_without_a_label_of_their_own_are_limited),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
