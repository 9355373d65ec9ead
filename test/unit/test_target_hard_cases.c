// SPDX-License-Identifier: Apache-2.0
// Goal: a target is known although list and watch do not show its scale, and after every fault; where that is
// impossible, it is reported as unwatched.
#include "k8s/cache/target_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "k8s/cache/pod_store.h"
#include "test/fake/k8s_harness.h"
#include "test/fake/target_fixture.h"
#include "test/support/apart.h"
#include "test/support/loop.h"

static const struct scale_ref web = {"apps/v1", "Deployment", "ns", "web", NULL};
static const struct scale_ref gadget = {"example.dev/v1", "Widget", "ns", "gadget", NULL};

static void kinds_not_learnt_and_nonsense_are_not_watched(void **state)
{
	struct target_world *w = *state;
	static const struct scale_ref refs[] = {{"example.dev/v1", "Widget", "ns", "w", NULL},
	                                        {"apps/v1beta1", "Deployment", "ns", "web", NULL},
	                                        {"apps/v1", "DaemonSet", "ns", "d", NULL},
	                                        {"apps/v1", "Deployment", "n/s", "web", NULL}};
	for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++) {
		target_fixture_acquire(w, &refs[i]);
		assert_int_equal(target_fixture_get(w, &refs[i]).state, TARGET_UNWATCHED);
		assert_non_null(target_fixture_get(w, &refs[i]).why);
		target_store_release(w->store, &refs[i], false);
	}
	test_loop_for(w->h.loop, 50);
	assert_int_equal(target_fixture_requests(w), 0);
}

// ---- a kind whose objects do not contain their scale ----

static uint64_t scale_reads(const struct target_world *w)
{
	return fake_apiserver_count(w->h.server, "get", "widgets/scale");
}

// Wanted, and discovery has found its kind.
static void want_gadget(struct target_world *w)
{
	struct outcome o;
	target_fixture_add(w, "ns/Widget/gadget=2");
	target_fixture_acquire(w, &gadget);
	assert_int_equal(target_fixture_get(w, &gadget).state, TARGET_UNWATCHED);
	harness_get(&w->h, &gadget, &o);
	assert_false(o.is_error);
	assert_int_equal(target_fixture_get(w, &gadget).state, TARGET_UNSYNCED);
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 2);
}

// Runs until the existing objects are listed and changes are streamed.
static void wait_for_streams(struct target_world *w)
{
	TEST_BECOMES(w->h.loop, fake_apiserver_count(w->h.server, "watch", "widgets") == 1 &&
	                                fake_apiserver_count(w->h.server, "watch", "pods") == 1);
}

static void target_of_another_kind_is_read_only_after_it_has_changed(void **state)
{
	struct target_world *w = *state;
	struct outcome o;
	want_gadget(w);
	struct target_view v = target_fixture_wait_for(w, &gadget, TARGET_FOUND, 2);
	harness_get(&w->h, &gadget, &o);
	assert_string_equal(v.resource_version, o.scale.resource_version);
	assert_string_equal(v.selector, "app=gadget");
	// Only its pods show how many are ready.
	assert_int_equal(v.ready_replicas, -1);
	assert_non_null(v.pods);
	struct pod_set_counts counts;
	TEST_BECOMES(w->h.loop, (pod_set_get_counts(v.pods, &counts), counts.counts.ready == 2));
	wait_for_streams(w);
	test_loop_for(w->h.loop, 50);
	uint64_t before = target_fixture_requests(w);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(target_fixture_get(w, &gadget).state, TARGET_FOUND);
		test_loop_for(w->h.loop, 1);
	}
	assert_int_equal(target_fixture_requests(w), before);
	// Another client scales it: /scale is read once per change, however often the target is requested.
	before = scale_reads(w);
	harness_patch(&w->h, &gadget, o.scale.resource_version, 5, &o);
	assert_false(o.is_error);
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 5);
	test_loop_for(w->h.loop, 200);
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 5);
	assert_in_range(scale_reads(w) - before, 1, 8); // the scale, and its status as pods come
	harness_request(&w->h, "DELETE", "/apis/example.dev/v1/namespaces/ns/widgets/gadget", NULL, NULL, &o);
	assert_false(o.is_error);
	target_fixture_wait_for(w, &gadget, TARGET_ABSENT, -1);
	before = target_fixture_requests(w);
	test_loop_for(w->h.loop, 100);
	assert_int_equal(target_fixture_get(w, &gadget).state, TARGET_ABSENT);
	assert_int_equal(target_fixture_requests(w), before);
	target_fixture_add(w, "ns/Widget/gadget=1");
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 1);
}

static void put_gadget(struct target_world *w, const char *status)
{
	char json[512];
	struct err e = {0};
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"example.dev/v1\",\"kind\":\"Widget\",\"metadata\":{\"namespace\":\"ns\",\"name\":"
	         "\"gadget\"},\"spec\":{\"replicas\":2},\"status\":{\"replicas\":2,"
	         "\"selector\":\"app=gadget\"%s}}",
	         status);
	if (fake_apiserver_put(w->h.server, json, &e) < 0)
		fail_msg("%s", e.msg);
}

static void custom_target_reports_its_own_ready_replicas(void **state)
{
	static const struct {
		const char *status;
		int ready;
		bool is_stale;
	} rows[] = {
	        {",\"readyReplicas\":1,\"observedGeneration\":9", 1, false},
	        {"", 0, false}, // most kinds leave out a 0
	        {",\"readyReplicas\":2,\"observedGeneration\":0", 2, true},
	        {",\"readyReplicas\":\"2\"", 0, false},
	};
	struct target_world *w = *state;
	struct outcome o;
	want_gadget(w);
	assert_int_equal(target_fixture_get(w, &gadget).ready_replicas, -1); // it has never reported any
	wait_for_streams(w);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		put_gadget(w, rows[i].status);
		TEST_BECOMES(w->h.loop, target_fixture_get(w, &gadget).state == TARGET_FOUND &&
		                                target_fixture_get(w, &gadget).ready_replicas == rows[i].ready &&
		                                target_fixture_get(w, &gadget).is_ready_stale == rows[i].is_stale);
	}
	harness_request(&w->h, "DELETE", "/apis/example.dev/v1/namespaces/ns/widgets/gadget", NULL, NULL, &o);
	assert_false(o.is_error);
	target_fixture_wait_for(w, &gadget, TARGET_ABSENT, -1);
	put_gadget(w, "");
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 2);
	assert_int_equal(target_fixture_get(w, &gadget).ready_replicas, -1);
}

static void of_another_kind_too_our_own_write_is_known_before_its_event(void **state)
{
	struct target_world *w = *state;
	struct outcome o;
	want_gadget(w);
	wait_for_streams(w);
	test_loop_for(w->h.loop, 50);
	struct target_view v = target_fixture_wait_for(w, &gadget, TARGET_FOUND, 2);
	fake_apiserver_mute(w->h.server, true);
	harness_patch(&w->h, &gadget, v.resource_version, 7, &o);
	assert_false(o.is_error);
	target_store_note_scaled(w->store, &gadget, &o.scale);
	v = target_fixture_get(w, &gadget);
	assert_int_equal(v.state, TARGET_FOUND);
	assert_int_equal(v.spec_replicas, 7);
	assert_string_equal(v.resource_version, o.scale.resource_version);
	fake_apiserver_mute(w->h.server, false);
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 7);
}

static void missing_rbac_for_a_custom_kind_is_reported(void **state)
{
	struct target_world *w = *state;
	struct outcome o;
	want_gadget(w);
	const struct scale_ref late = {"example.dev/v1", "Widget", "ns", "late", NULL};
	target_fixture_add(w, "ns/Widget/late=4");
	fake_apiserver_fail(w->h.server,
	                    &(struct fake_fault){.next = 1, .status = 403, .verb = "get", .resource = "widgets/scale"});
	target_fixture_acquire(w, &late); // the list has passed it over
	assert_int_equal(target_fixture_get(w, &late).state, TARGET_UNSYNCED);
	target_fixture_wait_for(w, &late, TARGET_UNWATCHED, -1);
	harness_get(&w->h, &late, &o);
	harness_patch(&w->h, &late, o.scale.resource_version, 6, &o);
	target_fixture_wait_for(w, &late, TARGET_FOUND, 6); // it has changed: tried again
	fake_apiserver_fail(w->h.server,
	                    &(struct fake_fault){.next = 2, .status = 403, .verb = "list", .resource = "widgets"});
	fake_apiserver_compact(w->h.server);
	fake_apiserver_drop_streams(w->h.server, false);
	target_fixture_wait_for(w, &late, TARGET_UNWATCHED, -1);
	assert_string_equal(w->what, "widgets in namespace ns");
	target_fixture_wait_for(w, &late, TARGET_FOUND, 6);
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 2);
	target_store_release(w->store, &late, false);
	target_store_release(w->store, &gadget, false);
	struct informer_state stats;
	stats = target_store_get_state(w->store);
	assert_int_equal(stats.watches, 0);
}

// Unused kinds use no slot; kinds above the ceiling are unwatched.
static void kinds_have_a_ceiling(void **state)
{
	struct target_world *w = *state;
	struct scale_ref ref = {"example.dev/v1", NULL, "ns", "x", NULL};
	char kind[32];
	for (int i = 0; i < 2 * TARGET_KINDS_MAX; i++) {
		snprintf(kind, sizeof kind, "Kind%d", i);
		ref.kind = kind;
		target_fixture_acquire(w, &ref);
		assert_int_equal(target_fixture_get(w, &ref).state, TARGET_UNWATCHED);
		target_store_release(w->store, &ref, false);
	}
	want_gadget(w);
	for (int i = 0; i < 2 * TARGET_KINDS_MAX; i++) {
		snprintf(kind, sizeof kind, "Kind%d", i);
		ref.kind = kind;
		target_fixture_acquire(w, &ref);
		assert_int_equal(target_fixture_get(w, &ref).state, TARGET_UNWATCHED);
	}
	target_fixture_acquire(w, &web);
	target_fixture_wait_for(w, &web, TARGET_FOUND, 2);
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 2);
}

// A caller whose target had no room must not release the reference of a later caller.
static void target_above_the_ceiling_of_kinds_is_not_counted(void **state)
{
	struct target_world *w = *state;
	struct err e = {0};
	struct scale_ref ref = {"example.dev/v1", NULL, "ns", "x", NULL};
	char kind[32];
	int n = 0, wanted = 1;
	for (; wanted == 1 && n < 2 * TARGET_KINDS_MAX; n++) {
		snprintf(kind, sizeof kind, "Kind%d", n);
		ref.kind = kind;
		wanted = target_store_acquire(w->store, &ref, false, &e);
	}
	assert_int_equal(wanted, 0); // of the last kind
	assert_in_range(n, 2, TARGET_KINDS_MAX);
	assert_int_equal(target_store_acquire(w->store, &gadget, false, &e), 0);
	ref.kind = "Kind0";
	target_store_release(w->store, &ref, false);
	assert_int_equal(target_store_acquire(w->store, &gadget, false, &e), 1); // again, with room now
	want_gadget(w);
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 2);
	target_store_release(w->store, &gadget, false);
	target_fixture_wait_for(w, &gadget, TARGET_FOUND, 2);
}

// ---- faults ----

static void target_is_unwatched_until_listing_is_permitted(void **state)
{
	struct target_world *w = *state;
	fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 2, .status = 403, .verb = "list"});
	target_fixture_acquire(w, &web);
	struct target_view v = target_fixture_wait_for(w, &web, TARGET_UNWATCHED, -1);
	assert_non_null(strstr(v.why, "403"));
	assert_int_equal(w->errors, 1);
	assert_string_equal(w->what, "deployments in namespace ns");
	target_fixture_wait_for(w, &web, TARGET_FOUND, 2);
	assert_int_equal(w->oks, 1);
}

static void version_too_old_and_dropped_streams_lose_nothing(void **state)
{
	struct target_world *w = *state;
	struct outcome o;
	struct informer_state stats;
	target_fixture_acquire(w, &web);
	target_fixture_wait_for(w, &web, TARGET_FOUND, 2);
	fake_apiserver_set_bookmarks(w->h.server, 0);
	harness_get(&w->h, &web, &o);
	fake_apiserver_drop_streams(w->h.server, false);
	harness_patch(&w->h, &web, o.scale.resource_version, 6, &o);
	assert_false(o.is_error);
	fake_apiserver_compact(w->h.server);
	target_fixture_wait_for(w, &web, TARGET_FOUND, 6);
	harness_request(&w->h, "DELETE", "/apis/apps/v1/namespaces/ns/deployments/web", NULL, NULL, &o);
	fake_apiserver_drop_streams(w->h.server, true);
	target_fixture_wait_for(w, &web, TARGET_ABSENT, -1);
	stats = target_store_get_state(w->store);
	assert_true(stats.streams >= 2);
	assert_int_equal(w->errors, 0);
}

// ---- every fault at every request ----

struct fault_case {
	const char *name;
	struct fake_fault fault;
};
static const struct fault_case faults[] = {
        {"400", {.status = 400}},          {"401", {.status = 401}}, {"403", {.status = 403}},
        {"404", {.status = 404}},          {"409", {.status = 409}}, {"410", {.status = 410}},
        {"422", {.status = 422}},          {"429", {.status = 429}}, {"500", {.status = 500}},
        {"503", {.status = 503}},          {"504", {.status = 504}}, {"a cut connection", {.cut = true}},
        {"a lost answer", {.lose = true}},
};

#define FAULTS (sizeof faults / sizeof faults[0])

// Turns the loops of all worlds until each knows that many replicas: side by side, as each waits for its backoff.
static void wait_all(struct target_world *worlds[FAULTS], int replicas, const char *what)
{
	int64_t end = test_now_ms() + TARGET_FIXTURE_WAIT_MS;
	for (size_t n = 0; n < FAULTS;) {
		n = 0;
		for (size_t i = 0; i < FAULTS; i++) {
			struct target_view v = target_fixture_get(worlds[i], &web);
			bool is_there = v.state == TARGET_FOUND && v.spec_replicas == replicas;
			n += is_there;
			if (!is_there && test_now_ms() > end)
				fail_msg("%s %s: state %d, %d replicas", faults[i].name, what, (int)v.state,
				         v.spec_replicas);
			test_loop_for(worlds[i]->h.loop, 1);
		}
	}
}

static void run_faults(const char *verb, bool in_stream)
{
	struct target_world *worlds[FAULTS];
	for (size_t i = 0; i < FAULTS; i++) {
		void *state;
		struct fake_fault fault = faults[i].fault;
		fault.next = in_stream && !fault.status ? 0 : 1;
		fault.verb = verb;
		fault.resource = "deployments";
		fault.in_stream = in_stream;
		target_fixture_setup(&state);
		worlds[i] = state;
		fake_apiserver_fail(worlds[i]->h.server, &fault);
		target_fixture_acquire(worlds[i], &web);
	}
	wait_all(worlds, 2, verb);
	for (size_t i = 0; i < FAULTS; i++) {
		struct outcome o;
		harness_get(&worlds[i]->h, &web, &o);
		harness_patch(&worlds[i]->h, &web, o.scale.resource_version, 4, &o);
		assert_false(o.is_error);
	}
	wait_all(worlds, 4, "then a change"); // the watch is alive
	for (size_t i = 0; i < FAULTS; i++) {
		struct fake_counts counts;
		void *state = worlds[i];
		fake_apiserver_get_counts(worlds[i]->h.server, &counts);
		if (counts.faults != 1 && !(in_stream && !faults[i].fault.status))
			fail_msg("%s of %s: %d faults were met", faults[i].name, verb, (int)counts.faults);
		target_fixture_teardown(&state);
	}
}

static void list_survives_every_fault(void **state)
{
	run_faults("list", false);
}

static void watch_survives_every_fault_before_its_stream(void **state)
{
	run_faults("watch", false);
}

static void watch_survives_every_error_within_its_stream(void **state)
{
	run_faults("watch", true);
}

// A target that cannot be decoded is unwatched, and known as soon as it changes.
static void target_that_cannot_be_decoded_is_unwatched(void **state)
{
	static const int statuses[] = {400, 401, 403, 409, 410, 422, 500, 503};
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
		void *s;
		const struct scale_ref late = {"apps/v1", "Deployment", "ns", "late", NULL};
		target_fixture_setup(&s);
		struct target_world *w = s;
		struct outcome o;
		target_fixture_add(w, "ns/Deployment/late=4");
		target_fixture_acquire(w, &web);
		target_fixture_wait_for(w, &web, TARGET_FOUND, 2);
		fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 9,
		                                                      .status = statuses[i],
		                                                      .verb = "list",
		                                                      .resource = "deployments"});
		target_fixture_acquire(w, &late);
		assert_int_equal(target_fixture_get(w, &late).state, TARGET_UNSYNCED);
		target_fixture_wait_for(w, &late, TARGET_UNWATCHED, -1);
		harness_get(&w->h, &late, &o);
		harness_patch(&w->h, &late, o.scale.resource_version, 6, &o);
		target_fixture_wait_for(w, &late, TARGET_FOUND, 6);
		target_fixture_teardown(&s);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, target_fixture_setup, target_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(kinds_not_learnt_and_nonsense_are_not_watched),
	        TEST(target_of_another_kind_is_read_only_after_it_has_changed),
	        TEST(custom_target_reports_its_own_ready_replicas),
	        TEST(of_another_kind_too_our_own_write_is_known_before_its_event),
	        TEST(missing_rbac_for_a_custom_kind_is_reported),
	        TEST(kinds_have_a_ceiling),
	        TEST(target_above_the_ceiling_of_kinds_is_not_counted),
	        TEST(target_is_unwatched_until_listing_is_permitted),
	        TEST(version_too_old_and_dropped_streams_lose_nothing),
	        cmocka_unit_test(list_survives_every_fault),
	        cmocka_unit_test(watch_survives_every_fault_before_its_stream),
	        cmocka_unit_test(watch_survives_every_error_within_its_stream),
	        cmocka_unit_test(target_that_cannot_be_decoded_is_unwatched),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
