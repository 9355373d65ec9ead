// SPDX-License-Identifier: Apache-2.0
// Goal: lookups of API groups by one namespace cost no other namespace anything, and unused groups are not kept for
// long.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "test/fake/k8s_harness.h"
#include "test/support/manual_clock.h"

#define INVENTED 300

struct world {
	struct harness h;
	struct discovery *d;
};

static void start(struct world *w)
{
	struct err e = {0};
	harness_start(&w->h, NULL);
	clock_init_manual(&w->h.clock, 1700000000000);
	if (fake_apiserver_add(w->h.server, "default/Deployment/web=2", &e) < 0 ||
	    fake_apiserver_add(w->h.server, "prod/Widget/w=3", &e) < 0)
		fail_msg("%s", e.msg);
	harness_start_client(&w->h, 0);
	w->d = w->h.client->discovery;
}

static void get(struct world *w, const char *namespace_name, const char *api_version, const char *kind,
                const char *name, struct outcome *o)
{
	const struct scale_ref ref = {api_version, kind, namespace_name, name, NULL};
	harness_get(&w->h, &ref, o);
}

static void get_invented(struct world *w, const char *namespace_name, int i, struct outcome *o)
{
	char api_version[64];
	snprintf(api_version, sizeof api_version, "%s%d.example.dev/v1", namespace_name, i);
	get(w, namespace_name, api_version, "Widget", "w", o);
	assert_true(o->is_error);
}

static uint64_t requests(struct world *w)
{
	struct fake_counts counts;
	fake_apiserver_get_counts(w->h.server, &counts);
	return counts.total;
}

static void invented_groups_of_one_namespace_cost_another_nothing(void **state)
{
	(void)state;
	struct world w;
	struct outcome o;
	start(&w);
	for (int i = 0; i < INVENTED; i++)
		get_invented(&w, "a", i, &o);
	assert_non_null(strstr(o.error.msg, "namespace \"a\""));
	get(&w, "prod", "example.dev/v1", "Widget", "w", &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	assert_int_equal(o.scale.spec_replicas, 3);
	get_invented(&w, "prod", 1, &o); // its own share is untouched
	assert_non_null(strstr(o.error.msg, "the server has no API prod1.example.dev/v1"));
	harness_stop(&w.h);
}

static void invented_groups_in_flight_cost_another_nothing(void **state)
{
	enum { N = 300 };
	static struct outcome o[N], mine;
	struct world w;
	struct err e = {0};
	(void)state;
	start(&w);
	memset(o, 0, sizeof o);
	memset(&mine, 0, sizeof mine);
	int n_asked = 0;
	for (int i = 0; i < N; i++) {
		char api_version[64];
		snprintf(api_version, sizeof api_version, "x%d.example.dev/v1", i);
		const struct scale_ref ref = {api_version, "Widget", "a", "w", NULL};
		if (scale_get(w.h.client, &ref, outcome_of_scale, &o[i], &e) == 0)
			n_asked++;
		else
			o[i].is_done = true;
	}
	assert_in_range(n_asked, 1, DISCOVERY_NAMESPACE_UNKNOWN_MAX);
	const struct scale_ref widget = {"example.dev/v1", "Widget", "prod", "w", NULL};
	assert_int_equal(scale_get(w.h.client, &widget, outcome_of_scale, &mine, &e), 0);
	harness_wait(&w.h, &mine);
	assert_false(mine.is_error);
	for (int i = 0; i < N; i++)
		harness_wait(&w.h, &o[i]);
	harness_stop(&w.h);
}

static void many_namespaces_with_invented_groups_cost_another_nothing(void **state)
{
	(void)state;
	struct world w;
	struct outcome o;
	start(&w);
	for (int i = 0; i < DISCOVERY_GROUPS_MAX + 100; i++) {
		char namespace_name[32];
		snprintf(namespace_name, sizeof namespace_name, "n%d", i / 8);
		get_invented(&w, namespace_name, i, &o);
	}
	assert_in_range(discovery_count(w.d), 1, DISCOVERY_GROUPS_MAX);
	get(&w, "prod", "example.dev/v1", "Widget", "w", &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	harness_stop(&w.h);
}

static void unused_groups_are_removed(void **state)
{
	(void)state;
	struct world w;
	struct outcome o;
	start(&w);
	for (int i = 0; i < 20; i++)
		get_invented(&w, "a", i, &o);
	get(&w, "default", "apps/v1", "Deployment", "web", &o);
	assert_false(o.is_error);
	assert_int_equal(discovery_count(w.d), 21);
	clock_advance_ms(&w.h.clock, DISCOVERY_ABSENT_AGE_MAX_MS);
	discovery_forget(w.d);
	assert_int_equal(discovery_count(w.d), 1); // the group that the server has stays
	clock_advance_ms(&w.h.clock, DISCOVERY_UNUSED_AGE_MAX_MS - DISCOVERY_ABSENT_AGE_MAX_MS - 1);
	get(&w, "default", "apps/v1", "Deployment", "web", &o);
	clock_advance_ms(&w.h.clock, 1);
	discovery_forget(w.d);
	assert_int_equal(discovery_count(w.d), 1); // it was used in between
	clock_advance_ms(&w.h.clock, DISCOVERY_UNUSED_AGE_MAX_MS);
	discovery_forget(w.d);
	assert_int_equal(discovery_count(w.d), 0);
	get(&w, "default", "apps/v1", "Deployment", "web", &o);
	assert_false(o.is_error);
	harness_stop(&w.h);
}

static void absent_group_is_asked_for_again_after_a_while(void **state)
{
	(void)state;
	struct world w;
	struct outcome o;
	start(&w);
	get_invented(&w, "a", 1, &o);
	uint64_t before = requests(&w);
	for (int i = 0; i < 50; i++)
		get_invented(&w, "a", 1, &o);
	assert_int_equal(requests(&w), before);
	assert_non_null(strstr(o.error.msg, "the server has no API a1.example.dev/v1"));
	clock_advance_ms(&w.h.clock, DISCOVERY_ABSENT_AGE_MAX_MS);
	get_invented(&w, "a", 1, &o);
	assert_int_equal(requests(&w), before + 1);
	harness_stop(&w.h);
}

static void namespace_gets_its_share_back(void **state)
{
	(void)state;
	struct world w;
	struct outcome o;
	start(&w);
	for (int i = 0; i < INVENTED; i++)
		get_invented(&w, "prod", i, &o);
	get(&w, "prod", "example.dev/v1", "Widget", "w", &o);
	assert_true(o.is_error); // above the limit, by its own lookups
	clock_advance_ms(&w.h.clock, DISCOVERY_ABSENT_AGE_MAX_MS);
	get(&w, "prod", "example.dev/v1", "Widget", "w", &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	harness_stop(&w.h);
}

static void failed_discovery_is_not_remembered(void **state)
{
	(void)state;
	struct world w;
	struct outcome o;
	start(&w);
	const struct fake_fault fault = {.next = 1, .status = 403, .resource = "discovery"};
	fake_apiserver_fail(w.h.server, &fault);
	get(&w, "prod", "example.dev/v1", "Widget", "w", &o);
	assert_true(o.is_error);
	assert_int_equal(discovery_count(w.d), 0);
	get(&w, "prod", "example.dev/v1", "Widget", "w", &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
	harness_stop(&w.h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(invented_groups_of_one_namespace_cost_another_nothing),
	        cmocka_unit_test(invented_groups_in_flight_cost_another_nothing),
	        cmocka_unit_test(many_namespaces_with_invented_groups_cost_another_nothing),
	        cmocka_unit_test(unused_groups_are_removed),
	        cmocka_unit_test(absent_group_is_asked_for_again_after_a_while),
	        cmocka_unit_test(namespace_gets_its_share_back),
	        cmocka_unit_test(failed_discovery_is_not_remembered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
