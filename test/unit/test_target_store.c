// SPDX-License-Identifier: Apache-2.0
// Goal: what a scale target is like is known without asking, is never older than our own write, and who cannot watch is
// told to ask.
#include "k8s/target_store.h"

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
#include "k8s/pod_store.h"
#include "test/fake/k8s_harness.h"
#include "test/support/apart.h"
#include "test/support/loop.h"

#define WAIT_MS 60000

static const struct scale_ref web = {"apps/v1", "Deployment", "ns", "web"};
static const struct scale_ref db = {"apps/v1", "StatefulSet", "ns", "db"};
static const struct scale_ref gadget = {"example.dev/v1", "Widget", "ns", "gadget"};

struct world {
	struct harness h;
	struct target_store *store;
	int errors, oks, woken;
	char what[300];
};

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct world *w = arg;
	snprintf(w->what, sizeof w->what, "%s", what);
	w->errors += error != NULL;
	w->oks += !error;
}

static void on_woken(void *arg)
{
	struct world *w = arg;
	w->woken++;
}

static void add(struct world *w, const char *object)
{
	struct err e = {0};
	if (fake_apiserver_add(w->h.server, object, &e) < 0)
		fail_msg("%s", e.msg);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct err e = {0};
	*state = w;
	harness_start(&w->h, NULL);
	add(w, "ns/Deployment/web=2");
	add(w, "ns/StatefulSet/db=3");
	harness_start_client(&w->h, 1);
	w->store = target_store_new(
	        &(struct target_store_options){.client = w->h.client, .on_error = on_error, .arg = w}, &e);
	assert_non_null(w->store);
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	target_store_free(w->store);
	harness_stop(&w->h);
	free(w);
	return 0;
}

static void want(struct world *w, const struct scale_ref *ref)
{
	struct err e = {0};
	if (target_store_want(w->store, ref, false, &e) < 0)
		fail_msg("%s", e.msg);
}

static struct target_view get(struct world *w, const struct scale_ref *ref)
{
	struct target_view v;
	target_store_get(w->store, ref, &v);
	return v;
}

// Turns the loop until the target is in that state with that many replicas (-1: any).
static struct target_view wait_for(struct world *w, const struct scale_ref *ref, enum target_state state, int replicas)
{
	int64_t end = test_now_ms() + WAIT_MS;
	for (;;) {
		struct target_view v = get(w, ref);
		if (v.state == state && (replicas < 0 || v.spec_replicas == replicas))
			return v;
		if (test_now_ms() > end)
			fail_msg("%s/%s stays in state %d with %d replicas (%s)", ref->kind, ref->name, (int)v.state,
			         v.spec_replicas, v.why);
		test_loop_for(w->h.loop, 5);
	}
}

static uint64_t requests(const struct world *w)
{
	struct fake_counts counts;
	fake_apiserver_get_counts(w->h.server, &counts);
	return counts.total;
}

static void a_target_is_known_and_asking_costs_nothing(void **state)
{
	struct world *w = *state;
	want(w, &web);
	want(w, &db);
	assert_int_equal(get(w, &web).state, TARGET_UNSYNCED);
	struct target_view v = wait_for(w, &web, TARGET_FOUND, 2);
	assert_true(v.resource_version[0] && v.uid[0] && v.generation > 0);
	assert_string_equal(v.selector, "app=web");
	wait_for(w, &db, TARGET_FOUND, 3);
	wait_for(w, &web, TARGET_FOUND, 2);
	TEST_BECOMES(w->h.loop, fake_apiserver_count(w->h.server, "watch", "deployments") == 1 &&
	                                fake_apiserver_count(w->h.server, "watch", "statefulsets") == 1);
	test_loop_for(w->h.loop, 50);
	uint64_t before = requests(w);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(get(w, &web).state, TARGET_FOUND);
	test_loop_for(w->h.loop, 200);
	assert_int_equal(requests(w), before);
	// A change by somebody else comes by itself, and with the version /scale has.
	struct outcome o;
	harness_get(&w->h, &web, &o);
	assert_string_equal(get(w, &web).resource_version, o.scale.resource_version);
	assert_string_equal(get(w, &web).selector, o.scale.selector);
	harness_patch(&w->h, &web, o.scale.resource_version, 5, &o);
	assert_false(o.is_error);
	wait_for(w, &web, TARGET_FOUND, 5);
}

static void what_does_not_exist_is_absent_until_it_does(void **state)
{
	struct world *w = *state;
	struct outcome o;
	const struct scale_ref late = {"apps/v1", "Deployment", "ns", "late"};
	want(w, &late);
	wait_for(w, &late, TARGET_ABSENT, -1);
	add(w, "ns/Deployment/late=4");
	wait_for(w, &late, TARGET_FOUND, 4);
	harness_request(&w->h, "DELETE", "/apis/apps/v1/namespaces/ns/deployments/late", NULL, NULL, &o);
	assert_false(o.is_error);
	wait_for(w, &late, TARGET_ABSENT, -1);
}

static void what_is_wanted_after_the_list_is_read_once(void **state)
{
	struct world *w = *state;
	struct target_store_stats stats;
	const struct scale_ref late = {"apps/v1", "Deployment", "ns", "late"};
	const struct scale_ref none = {"apps/v1", "Deployment", "ns", "none"};
	add(w, "ns/Deployment/late=4");
	want(w, &web);
	wait_for(w, &web, TARGET_FOUND, 2);
	want(w, &late);
	want(w, &none);
	assert_int_equal(get(w, &late).state, TARGET_UNSYNCED);
	wait_for(w, &late, TARGET_FOUND, 4);
	wait_for(w, &none, TARGET_ABSENT, -1);
	target_store_get_stats(w->store, &stats);
	assert_int_equal(stats.fetches, 2);
	assert_int_equal(stats.lists, 1);
	assert_int_equal(stats.targets, 3);
	// By the rights that the watch has: list, not get.
	assert_int_equal(fake_apiserver_count(w->h.server, "list", "deployments"), 3);
	assert_int_equal(fake_apiserver_count(w->h.server, "get", "deployments"), 0);
}

static void a_watch_ends_when_nobody_wants_a_target_of_it(void **state)
{
	struct world *w = *state;
	struct target_store_stats stats;
	want(w, &web);
	want(w, &web);
	wait_for(w, &web, TARGET_FOUND, 2);
	target_store_unwant(w->store, &web, false);
	assert_int_equal(get(w, &web).state, TARGET_FOUND);
	target_store_unwant(w->store, &web, false);
	assert_int_equal(get(w, &web).state, TARGET_UNWATCHED);
	target_store_get_stats(w->store, &stats);
	assert_int_equal(stats.watches, 0);
	assert_int_equal(stats.targets, 0);
}

static void kinds_not_learnt_and_nonsense_are_not_watched(void **state)
{
	struct world *w = *state;
	static const struct scale_ref refs[] = {{"example.dev/v1", "Widget", "ns", "w"},
	                                        {"apps/v1beta1", "Deployment", "ns", "web"},
	                                        {"apps/v1", "DaemonSet", "ns", "d"},
	                                        {"apps/v1", "Deployment", "n/s", "web"}};
	for (size_t i = 0; i < sizeof refs / sizeof refs[0]; i++) {
		want(w, &refs[i]);
		assert_int_equal(get(w, &refs[i]).state, TARGET_UNWATCHED);
		assert_non_null(get(w, &refs[i]).why);
		target_store_unwant(w->store, &refs[i], false);
	}
	test_loop_for(w->h.loop, 50);
	assert_int_equal(requests(w), 0);
}

// ---- a kind whose objects do not tell their scale ----

static uint64_t scale_reads(const struct world *w)
{
	return fake_apiserver_count(w->h.server, "get", "widgets/scale");
}

// Wanted, and its kind learnt by whoever asked for its scale.
static void want_gadget(struct world *w)
{
	struct outcome o;
	add(w, "ns/Widget/gadget=2");
	want(w, &gadget);
	assert_int_equal(get(w, &gadget).state, TARGET_UNWATCHED);
	harness_get(&w->h, &gadget, &o);
	assert_false(o.is_error);
	assert_int_equal(get(w, &gadget).state, TARGET_UNSYNCED);
	wait_for(w, &gadget, TARGET_FOUND, 2);
}

// Until what is there was listed and every change is told.
static void wait_for_streams(struct world *w)
{
	TEST_BECOMES(w->h.loop, fake_apiserver_count(w->h.server, "watch", "widgets") == 1 &&
	                                fake_apiserver_count(w->h.server, "watch", "pods") == 1);
}

static void another_kind_is_read_when_it_has_changed_and_not_before(void **state)
{
	struct world *w = *state;
	struct outcome o;
	want_gadget(w);
	struct target_view v = wait_for(w, &gadget, TARGET_FOUND, 2);
	harness_get(&w->h, &gadget, &o);
	assert_string_equal(v.resource_version, o.scale.resource_version);
	assert_string_equal(v.selector, "app=gadget");
	// Nothing but its pods tells how many are ready.
	assert_int_equal(v.ready_replicas, -1);
	assert_non_null(v.pods);
	struct pod_set_counts counts;
	TEST_BECOMES(w->h.loop, (pod_set_get_counts(v.pods, &counts), counts.counts.ready == 2));
	wait_for_streams(w);
	test_loop_for(w->h.loop, 50);
	uint64_t before = requests(w);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(get(w, &gadget).state, TARGET_FOUND);
		test_loop_for(w->h.loop, 1);
	}
	assert_int_equal(requests(w), before);
	// Somebody else scales it: read once more for what changes, however often it is looked at.
	before = scale_reads(w);
	harness_patch(&w->h, &gadget, o.scale.resource_version, 5, &o);
	assert_false(o.is_error);
	wait_for(w, &gadget, TARGET_FOUND, 5);
	test_loop_for(w->h.loop, 200);
	wait_for(w, &gadget, TARGET_FOUND, 5);
	assert_in_range(scale_reads(w) - before, 1, 8); // the scale, and its status as pods come
	harness_request(&w->h, "DELETE", "/apis/example.dev/v1/namespaces/ns/widgets/gadget", NULL, NULL, &o);
	assert_false(o.is_error);
	wait_for(w, &gadget, TARGET_ABSENT, -1);
	before = requests(w);
	test_loop_for(w->h.loop, 100);
	assert_int_equal(get(w, &gadget).state, TARGET_ABSENT);
	assert_int_equal(requests(w), before);
	add(w, "ns/Widget/gadget=1");
	wait_for(w, &gadget, TARGET_FOUND, 1);
}

static void of_another_kind_too_our_own_write_is_known_before_its_event(void **state)
{
	struct world *w = *state;
	struct outcome o;
	want_gadget(w);
	wait_for_streams(w);
	test_loop_for(w->h.loop, 50);
	struct target_view v = wait_for(w, &gadget, TARGET_FOUND, 2);
	fake_apiserver_mute(w->h.server, true);
	harness_patch(&w->h, &gadget, v.resource_version, 7, &o);
	assert_false(o.is_error);
	target_store_note_scaled(w->store, &gadget, &o.scale);
	v = get(w, &gadget);
	assert_int_equal(v.state, TARGET_FOUND);
	assert_int_equal(v.spec_replicas, 7);
	assert_string_equal(v.resource_version, o.scale.resource_version);
	fake_apiserver_mute(w->h.server, false);
	wait_for(w, &gadget, TARGET_FOUND, 7);
}

static void another_kind_that_may_not_be_read_or_listed_is_told(void **state)
{
	struct world *w = *state;
	struct outcome o;
	want_gadget(w);
	const struct scale_ref late = {"example.dev/v1", "Widget", "ns", "late"};
	add(w, "ns/Widget/late=4");
	fake_apiserver_fail(w->h.server,
	                    &(struct fake_fault){.next = 1, .status = 403, .verb = "get", .resource = "widgets/scale"});
	want(w, &late); // the list has passed it over
	assert_int_equal(get(w, &late).state, TARGET_UNSYNCED);
	wait_for(w, &late, TARGET_UNWATCHED, -1);
	harness_get(&w->h, &late, &o);
	harness_patch(&w->h, &late, o.scale.resource_version, 6, &o);
	wait_for(w, &late, TARGET_FOUND, 6); // it has changed: tried again
	fake_apiserver_fail(w->h.server,
	                    &(struct fake_fault){.next = 2, .status = 403, .verb = "list", .resource = "widgets"});
	fake_apiserver_compact(w->h.server);
	fake_apiserver_drop_streams(w->h.server, false);
	wait_for(w, &late, TARGET_UNWATCHED, -1);
	assert_string_equal(w->what, "widgets in namespace ns");
	wait_for(w, &late, TARGET_FOUND, 6);
	wait_for(w, &gadget, TARGET_FOUND, 2);
	target_store_unwant(w->store, &late, false);
	target_store_unwant(w->store, &gadget, false);
	struct target_store_stats stats;
	target_store_get_stats(w->store, &stats);
	assert_int_equal(stats.watches, 0);
}

// Nobody's kinds take no room; of more than there is room for, those too many are told to ask.
static void kinds_have_a_ceiling(void **state)
{
	struct world *w = *state;
	struct scale_ref ref = {"example.dev/v1", NULL, "ns", "x"};
	char kind[32];
	for (int i = 0; i < 2 * TARGET_KINDS_MAX; i++) {
		snprintf(kind, sizeof kind, "Kind%d", i);
		ref.kind = kind;
		want(w, &ref);
		assert_int_equal(get(w, &ref).state, TARGET_UNWATCHED);
		target_store_unwant(w->store, &ref, false);
	}
	want_gadget(w);
	for (int i = 0; i < 2 * TARGET_KINDS_MAX; i++) {
		snprintf(kind, sizeof kind, "Kind%d", i);
		ref.kind = kind;
		want(w, &ref);
		assert_int_equal(get(w, &ref).state, TARGET_UNWATCHED);
	}
	want(w, &web);
	wait_for(w, &web, TARGET_FOUND, 2);
	wait_for(w, &gadget, TARGET_FOUND, 2);
}

static void our_own_write_is_known_before_its_event(void **state)
{
	struct world *w = *state;
	struct outcome o;
	want(w, &web);
	wait_for(w, &web, TARGET_FOUND, 2);
	TEST_BECOMES(w->h.loop, fake_apiserver_count(w->h.server, "watch", "deployments") == 1);
	test_loop_for(w->h.loop, 50);
	struct target_view v = get(w, &web);
	fake_apiserver_mute(w->h.server, true);
	harness_patch(&w->h, &web, v.resource_version, 7, &o);
	assert_false(o.is_error);
	assert_int_equal(get(w, &web).spec_replicas, 2);
	target_store_note_scaled(w->store, &web, &o.scale);
	v = get(w, &web);
	assert_int_equal(v.spec_replicas, 7);
	assert_string_equal(v.resource_version, o.scale.resource_version);
	// What is older than that changes nothing.
	struct scale old = {.spec_replicas = 1, .resource_version = "1"};
	target_store_note_scaled(w->store, &web, &old);
	assert_int_equal(get(w, &web).spec_replicas, 7);
	fake_apiserver_mute(w->h.server, false);
	wait_for(w, &web, TARGET_FOUND, 7);
}

static void who_may_not_list_is_told_to_ask_until_it_may(void **state)
{
	struct world *w = *state;
	fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 2, .status = 403, .verb = "list"});
	want(w, &web);
	struct target_view v = wait_for(w, &web, TARGET_UNWATCHED, -1);
	assert_non_null(strstr(v.why, "403"));
	assert_int_equal(w->errors, 1);
	assert_string_equal(w->what, "deployments in namespace ns");
	wait_for(w, &web, TARGET_FOUND, 2);
	assert_int_equal(w->oks, 1);
}

static void a_version_too_old_and_dropped_streams_lose_nothing(void **state)
{
	struct world *w = *state;
	struct outcome o;
	struct target_store_stats stats;
	want(w, &web);
	wait_for(w, &web, TARGET_FOUND, 2);
	fake_apiserver_set_bookmarks(w->h.server, 0);
	harness_get(&w->h, &web, &o);
	fake_apiserver_drop_streams(w->h.server, false);
	harness_patch(&w->h, &web, o.scale.resource_version, 6, &o);
	assert_false(o.is_error);
	fake_apiserver_compact(w->h.server);
	wait_for(w, &web, TARGET_FOUND, 6);
	harness_request(&w->h, "DELETE", "/apis/apps/v1/namespaces/ns/deployments/web", NULL, NULL, &o);
	fake_apiserver_drop_streams(w->h.server, true);
	wait_for(w, &web, TARGET_ABSENT, -1);
	target_store_get_stats(w->store, &stats);
	assert_true(stats.streams >= 2);
	assert_int_equal(w->errors, 0);
}

static void who_waits_is_called_when_it_is_known_once(void **state)
{
	struct world *w = *state;
	struct target_waiter first, second, canceled;
	want(w, &web);
	target_store_wait(w->store, &web, &first, on_woken, w);
	target_store_wait(w->store, &web, &canceled, on_woken, w);
	assert_int_equal(w->woken, 0);
	target_store_cancel_wait(w->store, &canceled);
	assert_true(test_loop_until(w->h.loop, &w->woken, 1, WAIT_MS));
	assert_int_equal(get(w, &web).state, TARGET_FOUND);
	target_store_wait(w->store, &web, &second, on_woken, w); // known already
	assert_int_equal(w->woken, 1);
	assert_true(test_loop_until(w->h.loop, &w->woken, 2, WAIT_MS));
	test_loop_for(w->h.loop, 50);
	assert_int_equal(w->woken, 2);
}

static void nobody_waits_for_ever(void **state)
{
	struct world *w = *state;
	struct target_waiter waiter;
	fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 9, .hang = true, .verb = "list"});
	want(w, &web);
	target_store_wait(w->store, &web, &waiter, on_woken, w);
	int64_t begin = test_now_ms();
	assert_true(test_loop_until(w->h.loop, &w->woken, 1, WAIT_MS));
	assert_in_range(test_now_ms() - begin, TARGET_WAIT_MAX_MS - 100, TARGET_WAIT_MAX_MS + 20000);
	assert_int_equal(get(w, &web).state, TARGET_UNSYNCED);
}

static void stopping_calls_who_waits_and_knows_nothing_any_more(void **state)
{
	struct world *w = *state;
	struct target_waiter waiter;
	want(w, &web);
	target_store_wait(w->store, &web, &waiter, on_woken, w);
	target_store_stop(w->store);
	assert_int_equal(w->woken, 1);
	assert_int_equal(get(w, &web).state, TARGET_UNWATCHED);
	target_store_unwant(w->store, &web, false); // as its owner does when it goes, later
	want(w, &web);
	assert_int_equal(get(w, &web).state, TARGET_UNWATCHED);
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
static void wait_all(struct world *worlds[FAULTS], int replicas, const char *what)
{
	int64_t end = test_now_ms() + WAIT_MS;
	for (size_t n = 0; n < FAULTS;) {
		n = 0;
		for (size_t i = 0; i < FAULTS; i++) {
			struct target_view v = get(worlds[i], &web);
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
	struct world *worlds[FAULTS];
	for (size_t i = 0; i < FAULTS; i++) {
		void *state;
		struct fake_fault fault = faults[i].fault;
		fault.next = in_stream && !fault.status ? 0 : 1;
		fault.verb = verb;
		fault.resource = "deployments";
		fault.in_stream = in_stream;
		setup(&state);
		worlds[i] = state;
		fake_apiserver_fail(worlds[i]->h.server, &fault);
		want(worlds[i], &web);
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
		teardown(&state);
	}
}

static void a_list_survives_every_fault(void **state)
{
	run_faults("list", false);
}

static void a_watch_survives_every_fault_before_its_stream(void **state)
{
	run_faults("watch", false);
}

static void a_watch_survives_every_error_within_its_stream(void **state)
{
	run_faults("watch", true);
}

// What cannot be read by itself is told to be asked for, and known as soon as it changes.
static void a_single_target_that_cannot_be_read_is_told(void **state)
{
	static const int statuses[] = {400, 401, 403, 409, 410, 422, 500, 503};
	for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
		void *s;
		const struct scale_ref late = {"apps/v1", "Deployment", "ns", "late"};
		setup(&s);
		struct world *w = s;
		struct outcome o;
		add(w, "ns/Deployment/late=4");
		want(w, &web);
		wait_for(w, &web, TARGET_FOUND, 2);
		fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 9,
		                                                      .status = statuses[i],
		                                                      .verb = "list",
		                                                      .resource = "deployments"});
		want(w, &late);
		assert_int_equal(get(w, &late).state, TARGET_UNSYNCED);
		wait_for(w, &late, TARGET_UNWATCHED, -1);
		harness_get(&w->h, &late, &o);
		harness_patch(&w->h, &late, o.scale.resource_version, 6, &o);
		wait_for(w, &late, TARGET_FOUND, 6);
		teardown(&s);
	}
}

// One namespace more than there may be watches of one kind.
static void many_namespaces_share_one_watch(bool may_list_all, struct world *w)
{
	struct target_store_stats stats;
	char names[TARGET_NAMESPACES_MAX + 1][32];
	struct scale_ref refs[TARGET_NAMESPACES_MAX + 1];
	if (!may_list_all)
		fake_apiserver_fail(
		        w->h.server,
		        &(struct fake_fault){.next = 1000, .status = 403, .match = "GET /apis/apps/v1/deployments"});
	for (int i = 0; i <= TARGET_NAMESPACES_MAX; i++) {
		char object[64];
		snprintf(names[i], sizeof names[i], "n%d", i);
		snprintf(object, sizeof object, "n%d/Deployment/web=2", i);
		add(w, object);
		refs[i] = (struct scale_ref){"apps/v1", "Deployment", names[i], "web"};
		want(w, &refs[i]);
	}
	for (int i = 0; i < TARGET_NAMESPACES_MAX; i++)
		wait_for(w, &refs[i], TARGET_FOUND, 2);
	wait_for(w, &refs[TARGET_NAMESPACES_MAX], may_list_all ? TARGET_FOUND : TARGET_UNWATCHED, -1);
	target_store_get_stats(w->store, &stats);
	assert_int_equal(stats.watches, may_list_all ? 1 : TARGET_NAMESPACES_MAX + 1);
	if (!may_list_all) {
		assert_string_equal(w->what, "deployments in all namespaces");
		return;
	}
	struct outcome o;
	harness_get(&w->h, &refs[3], &o);
	harness_patch(&w->h, &refs[3], o.scale.resource_version, 9, &o);
	wait_for(w, &refs[3], TARGET_FOUND, 9);
	for (int i = 0; i <= TARGET_NAMESPACES_MAX; i++)
		target_store_unwant(w->store, &refs[i], false);
	target_store_get_stats(w->store, &stats);
	assert_int_equal(stats.watches, 0);
}

static void above_a_number_of_namespaces_one_watch_takes_over(void **state)
{
	many_namespaces_share_one_watch(true, *state);
}

static void where_that_is_forbidden_the_watches_there_are_stay(void **state)
{
	many_namespaces_share_one_watch(false, *state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(a_target_is_known_and_asking_costs_nothing),
	        TEST(what_does_not_exist_is_absent_until_it_does),
	        TEST(what_is_wanted_after_the_list_is_read_once),
	        TEST(a_watch_ends_when_nobody_wants_a_target_of_it),
	        TEST(kinds_not_learnt_and_nonsense_are_not_watched),
	        TEST(another_kind_is_read_when_it_has_changed_and_not_before),
	        TEST(of_another_kind_too_our_own_write_is_known_before_its_event),
	        TEST(another_kind_that_may_not_be_read_or_listed_is_told),
	        TEST(kinds_have_a_ceiling),
	        TEST(our_own_write_is_known_before_its_event),
	        TEST(who_may_not_list_is_told_to_ask_until_it_may),
	        TEST(a_version_too_old_and_dropped_streams_lose_nothing),
	        TEST(who_waits_is_called_when_it_is_known_once),
	        TEST(nobody_waits_for_ever),
	        TEST(stopping_calls_who_waits_and_knows_nothing_any_more),
	        cmocka_unit_test(a_list_survives_every_fault),
	        cmocka_unit_test(a_watch_survives_every_fault_before_its_stream),
	        cmocka_unit_test(a_watch_survives_every_error_within_its_stream),
	        cmocka_unit_test(a_single_target_that_cannot_be_read_is_told),
	        TEST(above_a_number_of_namespaces_one_watch_takes_over),
	        TEST(where_that_is_forbidden_the_watches_there_are_stay),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
