// SPDX-License-Identifier: Apache-2.0
// Goal: what the agent of remediation keeps of a tick is right when a part of the tick fails, or the agent ends in it.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/timer.h"
#include "promql/promql_source.h"
#include "remedy/agent/remedy_agent_private.h"
#include "remedy/plan/remedy_state.h"
#include "runtime/connections.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"
#include "test/support/query_server.h"

struct world {
	struct harness h;
	struct query_server *queries;
	struct connections connections;
	struct remedy_agent *a;
	enum query_fault fault; // of all queries
};

static const char node_json[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n1\"},\"spec\":{},\"status\":{\"capacity\":"
        "{\"nvidia.com/gpu\":\"8\"},\"allocatable\":{\"nvidia.com/gpu\":\"8\"},\"conditions\":[{\"type\":\"Ready\","
        "\"status\":\"True\"}]}}";
static const char pod_json[] =
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"train\",\"namespace\":\"jobs\"},\"spec\":"
        "{\"nodeName\":\"n1\",\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}";

static struct query_reply classify(void *arg, const char *query, size_t n_together)
{
	const struct world *w = arg;
	(void)query;
	(void)n_together;
	return (struct query_reply){.fault = w->fault};
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct connections *to = &w->connections;
	struct err e = {0};
	harness_start(&w->h, NULL);
	harness_start_client(&w->h, 1);
	if (fake_apiserver_put(w->h.server, node_json, &e) < 0 || fake_apiserver_put(w->h.server, pod_json, &e) < 0)
		fail_msg("%s", e.msg);
	w->queries = query_server_new(w->h.loop, classify, w);
	const struct promql_source_options source = {.name = "default", .query = {.url = query_server_url(w->queries)}};
	to->loop = w->h.loop;
	to->kube_http = w->h.http;
	to->k8s = w->h.client;
	to->k8s_config = w->h.config;
	clock_init_real(&to->clock);
	to->promql = promql_sources_new(to->loop, &to->clock, &source, 1, &e);
	const struct remedy_agent_options options = {
	        .connections = to,
	        .limits = {.max_nodes = 1, .max_percent = 100, .attempts = 3, .clean_ms = 60000},
	        .node_label = "Hostname",
	        .interval_ms = 3600000};
	w->a = remedy_agent_new(&options, &e);
	if (!w->a)
		fail_msg("%s", e.msg);
	TEST_BECOMES(w->h.loop, node_store_is_synced(w->a));
	*state = w;
	return 0;
}

// As cli/run/cmd_remediate.c does.
static int teardown(void **state)
{
	struct world *w = *state;
	remedy_agent_disconnect(w->a);
	connections_cancel(&w->connections);
	w->h.client = NULL;
	w->h.http = NULL;
	bool is_pending = event_pending(&w->a->timer, EV_TIMEOUT, NULL);
	event_del(&w->a->timer);
	remedy_agent_free(w->a);
	promql_sources_free(w->connections.promql);
	query_server_free(w->queries);
	harness_stop(&w->h);
	free(w);
	if (is_pending)
		print_error("the timer of the agent outlives it\n");
	return is_pending ? -1 : 0;
}

static void tick(struct world *w, enum query_fault fault)
{
	uint64_t n = w->a->n_ticks;
	w->fault = fault;
	timer_start(&w->a->timer, 0);
	TEST_BECOMES(w->h.loop, w->a->n_ticks == n + 1);
}

static void agent_may_end_in_a_tick(void **state)
{
	struct world *w = *state;
	w->fault = QUERY_HANGS;
	timer_start(&w->a->timer, 0);
	TEST_BECOMES(w->h.loop, query_server_hanging(w->queries) > 0);
	assert_int_equal(w->a->phase, AGENT_READS);
}

// The planner has the names of the pods by reference to the list that the new one replaces.
static void pods_are_unknown_when_a_new_list_comes_without_health(void **state)
{
	struct world *w = *state;
	tick(w, QUERY_ANSWERED);
	struct remedy_node *n = remedy_fleet_find(&w->a->fleet, "n1");
	assert_non_null(n);
	remedy_evidence_take(&w->a->fleet, n, 0);
	tick(w, QUERY_ANSWERED);
	assert_true(n->has_pods);
	assert_int_equal(n->n_pods, 1);
	tick(w, QUERY_500);
	assert_false(n->has_pods);
}

// Pods may have come since the node was last out of service.
static void pods_of_an_earlier_time_out_of_service_are_unknown(void **state)
{
	struct world *w = *state;
	tick(w, QUERY_ANSWERED);
	struct remedy_node *n = remedy_fleet_find(&w->a->fleet, "n1");
	assert_non_null(n);
	remedy_evidence_take(&w->a->fleet, n, 0);
	tick(w, QUERY_ANSWERED);
	assert_true(n->has_pods);
	remedy_evidence_return(n, 0);
	tick(w, QUERY_ANSWERED);
	assert_false(n->has_pods);
}

// The scheduler may place pods on the GPU until the API server has its taint: no eviction and no reset before.
static void pods_are_unknown_until_the_taint_of_a_gpu_is_there(void **state)
{
	struct world *w = *state;
	tick(w, QUERY_ANSWERED);
	struct remedy_node *n = remedy_fleet_find(&w->a->fleet, "n1");
	assert_non_null(n);
	int gpu = remedy_fleet_add_gpu(&w->a->fleet, n, "GPU-1");
	assert_true(gpu > 0);
	remedy_evidence_take(&w->a->fleet, n, gpu);
	n->gpus[gpu].has_gpu_taint = n->gpus[gpu].is_in_flight = true;
	tick(w, QUERY_ANSWERED);
	assert_false(n->has_pods);
	n->gpus[gpu].is_in_flight = false;
	tick(w, QUERY_ANSWERED);
	assert_true(n->has_pods);
	n->gpus[gpu].has_gpu_taint = false; // its removal is in flight
	n->gpus[gpu].is_in_flight = true;
	tick(w, QUERY_ANSWERED);
	assert_true(n->has_pods);
}

// As after a restart, while the API server does not serve the rules: a person removed nothing, and nothing is complete.
static void rules_that_are_unknown_leave_their_changes_in_flight(void **state)
{
	struct world *w = *state;
	tick(w, QUERY_ANSWERED);
	struct remedy_node *n = remedy_fleet_find(&w->a->fleet, "n1");
	assert_non_null(n);
	int set = remedy_fleet_add_gpu(&w->a->fleet, n, "GPU-set");
	int lifted = remedy_fleet_add_gpu(&w->a->fleet, n, "GPU-lifted");
	assert_true(set > 0 && lifted > 0);
	remedy_evidence_take(&w->a->fleet, n, set);
	n->gpus[set].has_gpu_taint = n->gpus[set].is_in_flight = n->gpus[lifted].is_in_flight = true;
	const char *taints[REMEDY_GPUS_MAX + 1];
	struct remedy_node_seen seen = {.name = "n1", .taints = taints, .has_taints = true, .taints_lag = true};
	seen.n_taints = agent_rules_of(w->a, "n1", taints, 0, REMEDY_GPUS_MAX + 1);
	assert_int_equal(remedy_fold_node(&w->a->fleet, &seen, NULL), REMEDY_NO_REASON);
	assert_true(n->gpus[set].has_gpu_taint && n->gpus[set].is_in_flight);
	assert_true(!n->gpus[lifted].has_gpu_taint && n->gpus[lifted].is_in_flight);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(agent_may_end_in_a_tick),
	        TEST(pods_are_unknown_when_a_new_list_comes_without_health),
	        TEST(pods_of_an_earlier_time_out_of_service_are_unknown),
	        TEST(pods_are_unknown_until_the_taint_of_a_gpu_is_there),
	        TEST(rules_that_are_unknown_leave_their_changes_in_flight),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
