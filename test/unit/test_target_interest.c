// SPDX-License-Identifier: Apache-2.0
// Goal: a target that exists is found within two ticks, however late in a list it was registered.
#include "k8s/cache/target_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/err.h"
#include "k8s/cache/watch.h"
#include "test/fake/k8s_harness.h"
#include "test/fake/target_fixture.h"
#include "test/support/apart.h"
#include "test/support/loop.h"

#define DEPLOYMENTS 2000
#define POLICIES    500

struct many {
	char names[POLICIES][32];
	struct scale_ref refs[POLICIES];
};

static void add_deployments(struct target_world *w, struct many *m, int n)
{
	for (int i = 0; i < n; i++) {
		char object[64];
		snprintf(object, sizeof object, "ns/Deployment/d%04d=%d", i, i % 7);
		target_fixture_add(w, object);
	}
	for (int i = 0; i < POLICIES; i++) {
		snprintf(m->names[i], sizeof m->names[i], "d%04d", i * (n / POLICIES));
		m->refs[i] = (struct scale_ref){"apps/v1", "Deployment", "ns", m->names[i], NULL};
	}
}

static uint64_t pages(const struct target_world *w)
{
	return fake_apiserver_count(w->h.server, "list", "deployments");
}

static void turn_until_next_page(struct target_world *w)
{
	int64_t end_ms = test_now_ms() + TEST_PATIENCE_MS;
	uint64_t before = pages(w);
	while (pages(w) == before && pages(w) < DEPLOYMENTS / K8S_WATCH_PAGE && test_now_ms() < end_ms)
		event_base_loop(w->h.loop, EVLOOP_ONCE);
}

// Policies are created one after the other while the list of their targets is being read, page by page.
static void targets_wanted_between_two_pages_are_found(void **state)
{
	struct target_world *w = *state;
	static struct many m;
	add_deployments(w, &m, DEPLOYMENTS);
	int wanted = 0;
	while (wanted < POLICIES) {
		target_fixture_acquire(w, &m.refs[POLICIES - ++wanted]); // the later, the earlier its page was read
		if (wanted % 25 == 0)
			turn_until_next_page(w);
	}
	struct informer_state stats;
	TEST_BECOMES(w->h.loop, (stats = target_store_get_state(w->store), stats.unsynced == 0));
	for (int i = 0; i < POLICIES; i++)
		assert_int_not_equal(target_fixture_get(w, &m.refs[i]).state, TARGET_ABSENT);
	for (int i = 0; i < POLICIES; i++)
		target_fixture_wait_for(w, &m.refs[i], TARGET_FOUND, i * (DEPLOYMENTS / POLICIES) % 7);
	// After that, a tick costs no requests again.
	TEST_BECOMES(w->h.loop, fake_apiserver_count(w->h.server, "watch", "deployments") == 1);
	test_loop_for(w->h.loop, 20);
	uint64_t before = target_fixture_requests(w);
	for (int i = 0; i < POLICIES; i++)
		assert_int_equal(target_fixture_get(w, &m.refs[i]).state, TARGET_FOUND);
	test_loop_for(w->h.loop, 20);
	assert_int_equal(target_fixture_requests(w), before);
}

// Policies that waited for conflicting autoscalers to be deleted look up their targets within a second, while the list
// that the first of them started is being read.
static void targets_wanted_at_once_as_conflicts_end_are_found(void **state)
{
	struct target_world *w = *state;
	static struct many m;
	add_deployments(w, &m, POLICIES);
	for (int i = POLICIES - 1; i >= 0; i--) {
		target_fixture_acquire(w, &m.refs[i]);
		event_base_loop(w->h.loop, EVLOOP_NONBLOCK);
		assert_int_not_equal(target_fixture_get(w, &m.refs[i]).state, TARGET_ABSENT);
	}
	for (int i = 0; i < POLICIES; i++)
		target_fixture_wait_for(w, &m.refs[i], TARGET_FOUND, i % 7);
}

static void target_created_again_during_a_list_is_found(void **state)
{
	struct target_world *w = *state;
	struct outcome o;
	static struct many m;
	const struct scale_ref *again = &m.refs[0], *late = &m.refs[POLICIES - 1];
	add_deployments(w, &m, DEPLOYMENTS);
	target_fixture_acquire(w, again);
	turn_until_next_page(w);
	turn_until_next_page(w);
	target_fixture_acquire(w, late);
	harness_request(&w->h, "DELETE", "/apis/apps/v1/namespaces/ns/deployments/d0000", NULL, NULL, &o);
	assert_false(o.is_error);
	target_fixture_add(w, "ns/Deployment/d0000=9");
	target_fixture_wait_for(w, again, TARGET_FOUND, 9);
	target_fixture_wait_for(w, late, TARGET_FOUND, -1);
	// And as of an event, for the next one that is deleted.
	harness_request(&w->h, "DELETE", "/apis/apps/v1/namespaces/ns/deployments/d0000", NULL, NULL, &o);
	target_fixture_wait_for(w, again, TARGET_ABSENT, -1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, target_fixture_setup, target_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(targets_wanted_at_once_as_conflicts_end_are_found),
	        TEST(targets_wanted_between_two_pages_are_found),
	        TEST(target_created_again_during_a_list_is_found),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
