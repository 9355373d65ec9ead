// SPDX-License-Identifier: Apache-2.0
// Goal: what a scale target is like is known without asking, and is never older than our own write; who waits for it is
// called.
#include "k8s/cache/target_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"
#include "test/fake/k8s_harness.h"
#include "test/fake/target_fixture.h"
#include "test/support/apart.h"
#include "test/support/loop.h"

static const struct scale_ref web = {"apps/v1", "Deployment", "ns", "web", NULL};
static const struct scale_ref db = {"apps/v1", "StatefulSet", "ns", "db", NULL};

static void target_is_known_and_asking_costs_nothing(void **state)
{
	struct target_world *w = *state;
	target_fixture_acquire(w, &web);
	target_fixture_acquire(w, &db);
	assert_int_equal(target_fixture_get(w, &web).state, TARGET_UNSYNCED);
	struct target_view v = target_fixture_wait_for(w, &web, TARGET_FOUND, 2);
	assert_true(v.resource_version[0] && v.uid[0] && v.generation > 0);
	assert_string_equal(v.selector, "app=web");
	target_fixture_wait_for(w, &db, TARGET_FOUND, 3);
	target_fixture_wait_for(w, &web, TARGET_FOUND, 2);
	TEST_BECOMES(w->h.loop, fake_apiserver_count(w->h.server, "watch", "deployments") == 1 &&
	                                fake_apiserver_count(w->h.server, "watch", "statefulsets") == 1);
	test_loop_for(w->h.loop, 50);
	uint64_t before = target_fixture_requests(w);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(target_fixture_get(w, &web).state, TARGET_FOUND);
	test_loop_for(w->h.loop, 200);
	assert_int_equal(target_fixture_requests(w), before);
	// A change by another client arrives without a request, with the version of /scale.
	struct outcome o;
	harness_get(&w->h, &web, &o);
	assert_string_equal(target_fixture_get(w, &web).resource_version, o.scale.resource_version);
	assert_string_equal(target_fixture_get(w, &web).selector, o.scale.selector);
	harness_patch(&w->h, &web, o.scale.resource_version, 5, &o);
	assert_false(o.is_error);
	target_fixture_wait_for(w, &web, TARGET_FOUND, 5);
}

static void missing_target_is_absent_until_it_exists(void **state)
{
	struct target_world *w = *state;
	struct outcome o;
	const struct scale_ref late = {"apps/v1", "Deployment", "ns", "late", NULL};
	target_fixture_acquire(w, &late);
	target_fixture_wait_for(w, &late, TARGET_ABSENT, -1);
	target_fixture_add(w, "ns/Deployment/late=4");
	target_fixture_wait_for(w, &late, TARGET_FOUND, 4);
	harness_request(&w->h, "DELETE", "/apis/apps/v1/namespaces/ns/deployments/late", NULL, NULL, &o);
	assert_false(o.is_error);
	target_fixture_wait_for(w, &late, TARGET_ABSENT, -1);
}

static void target_wanted_after_the_list_is_read_once(void **state)
{
	struct target_world *w = *state;
	struct informer_state stats;
	const struct scale_ref late = {"apps/v1", "Deployment", "ns", "late", NULL};
	const struct scale_ref none = {"apps/v1", "Deployment", "ns", "none", NULL};
	target_fixture_add(w, "ns/Deployment/late=4");
	target_fixture_acquire(w, &web);
	target_fixture_wait_for(w, &web, TARGET_FOUND, 2);
	target_fixture_acquire(w, &late);
	target_fixture_acquire(w, &none);
	assert_int_equal(target_fixture_get(w, &late).state, TARGET_UNSYNCED);
	target_fixture_wait_for(w, &late, TARGET_FOUND, 4);
	target_fixture_wait_for(w, &none, TARGET_ABSENT, -1);
	stats = target_store_get_state(w->store);
	assert_int_equal(stats.fetches, 2);
	assert_int_equal(stats.lists, 1);
	assert_int_equal(stats.items, 3);
	// By the rights that the watch has: list, not get.
	assert_int_equal(fake_apiserver_count(w->h.server, "list", "deployments"), 3);
	assert_int_equal(fake_apiserver_count(w->h.server, "get", "deployments"), 0);
}

static void watch_stops_when_no_target_is_wanted(void **state)
{
	struct target_world *w = *state;
	struct informer_state stats;
	target_fixture_acquire(w, &web);
	target_fixture_acquire(w, &web);
	target_fixture_wait_for(w, &web, TARGET_FOUND, 2);
	target_store_release(w->store, &web, false);
	assert_int_equal(target_fixture_get(w, &web).state, TARGET_FOUND);
	target_store_release(w->store, &web, false);
	assert_int_equal(target_fixture_get(w, &web).state, TARGET_UNWATCHED);
	stats = target_store_get_state(w->store);
	assert_int_equal(stats.watches, 0);
	assert_int_equal(stats.items, 0);
}

static void our_own_write_is_known_before_its_event(void **state)
{
	struct target_world *w = *state;
	struct outcome o;
	target_fixture_acquire(w, &web);
	target_fixture_wait_for(w, &web, TARGET_FOUND, 2);
	TEST_BECOMES(w->h.loop, fake_apiserver_count(w->h.server, "watch", "deployments") == 1);
	test_loop_for(w->h.loop, 50);
	struct target_view v = target_fixture_get(w, &web);
	fake_apiserver_mute(w->h.server, true);
	harness_patch(&w->h, &web, v.resource_version, 7, &o);
	assert_false(o.is_error);
	assert_int_equal(target_fixture_get(w, &web).spec_replicas, 2);
	target_store_note_scaled(w->store, &web, &o.scale);
	v = target_fixture_get(w, &web);
	assert_int_equal(v.spec_replicas, 7);
	assert_string_equal(v.resource_version, o.scale.resource_version);
	// What is older than that changes nothing.
	struct scale old = {.spec_replicas = 1, .resource_version = "1"};
	target_store_note_scaled(w->store, &web, &old);
	assert_int_equal(target_fixture_get(w, &web).spec_replicas, 7);
	fake_apiserver_mute(w->h.server, false);
	target_fixture_wait_for(w, &web, TARGET_FOUND, 7);
}

static void on_woken(void *arg)
{
	struct target_world *w = arg;
	w->woken++;
}

static void waiter_is_called_once_when_the_target_is_known(void **state)
{
	struct target_world *w = *state;
	struct target_waiter first, second;
	target_fixture_acquire(w, &web);
	target_store_wait(w->store, &web, &first, on_woken, w);
	assert_int_equal(w->woken, 0);
	assert_true(test_loop_until(w->h.loop, &w->woken, 1, TARGET_FIXTURE_WAIT_MS));
	assert_int_equal(target_fixture_get(w, &web).state, TARGET_FOUND);
	target_store_wait(w->store, &web, &second, on_woken, w); // known already
	assert_int_equal(w->woken, 1);
	assert_true(test_loop_until(w->h.loop, &w->woken, 2, TARGET_FIXTURE_WAIT_MS));
	test_loop_for(w->h.loop, 50);
	assert_int_equal(w->woken, 2);
}

static void waiter_is_called_after_the_maximum_wait(void **state)
{
	struct target_world *w = *state;
	struct target_waiter waiter;
	fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 9, .hang = true, .verb = "list"});
	target_fixture_acquire(w, &web);
	target_store_wait(w->store, &web, &waiter, on_woken, w);
	int64_t begin = test_now_ms();
	assert_true(test_loop_until(w->h.loop, &w->woken, 1, TARGET_FIXTURE_WAIT_MS));
	assert_in_range(test_now_ms() - begin, TARGET_WAIT_MAX_MS - 100, TARGET_WAIT_MAX_MS + 20000);
	assert_int_equal(target_fixture_get(w, &web).state, TARGET_UNSYNCED);
}

static void stopping_calls_who_waits_and_knows_nothing_any_more(void **state)
{
	struct target_world *w = *state;
	struct target_waiter waiter;
	target_fixture_acquire(w, &web);
	target_store_wait(w->store, &web, &waiter, on_woken, w);
	target_store_stop(w->store);
	assert_int_equal(w->woken, 1);
	assert_int_equal(target_fixture_get(w, &web).state, TARGET_UNWATCHED);
	target_store_release(w->store, &web, false); // as its owner does when it goes, later
	target_fixture_acquire(w, &web);
	assert_int_equal(target_fixture_get(w, &web).state, TARGET_UNWATCHED);
}

// One namespace more than there may be watches of one kind.
static void many_namespaces_share_one_watch(bool may_list_all, struct target_world *w)
{
	struct informer_state stats;
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
		target_fixture_add(w, object);
		refs[i] = (struct scale_ref){"apps/v1", "Deployment", names[i], "web", NULL};
		target_fixture_acquire(w, &refs[i]);
	}
	for (int i = 0; i <= TARGET_NAMESPACES_MAX; i++)
		target_fixture_wait_for(w, &refs[i], TARGET_FOUND, 2);
	stats = target_store_get_state(w->store);
	assert_int_equal(stats.watches, may_list_all ? 1 : TARGET_NAMESPACES_MAX + 2); // and the one that is refused
	if (!may_list_all) {
		assert_string_equal(w->what, "deployments in all namespaces");
		return;
	}
	struct outcome o;
	harness_get(&w->h, &refs[3], &o);
	harness_patch(&w->h, &refs[3], o.scale.resource_version, 9, &o);
	target_fixture_wait_for(w, &refs[3], TARGET_FOUND, 9);
	for (int i = 0; i <= TARGET_NAMESPACES_MAX; i++)
		target_store_release(w->store, &refs[i], false);
	stats = target_store_get_state(w->store);
	assert_int_equal(stats.watches, 0);
}

static void above_a_number_of_namespaces_one_watch_takes_over(void **state)
{
	many_namespaces_share_one_watch(true, *state);
}

static void where_that_is_forbidden_each_namespace_keeps_its_own_watch(void **state)
{
	many_namespaces_share_one_watch(false, *state);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, target_fixture_setup, target_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(target_is_known_and_asking_costs_nothing),
	        TEST(missing_target_is_absent_until_it_exists),
	        TEST(target_wanted_after_the_list_is_read_once),
	        TEST(watch_stops_when_no_target_is_wanted),
	        TEST(our_own_write_is_known_before_its_event),
	        TEST(waiter_is_called_once_when_the_target_is_known),
	        TEST(waiter_is_called_after_the_maximum_wait),
	        TEST(stopping_calls_who_waits_and_knows_nothing_any_more),
	        TEST(above_a_number_of_namespaces_one_watch_takes_over),
	        TEST(where_that_is_forbidden_each_namespace_keeps_its_own_watch),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
