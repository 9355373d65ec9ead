// SPDX-License-Identifier: Apache-2.0
// Goal: what fits is computed from one inventory, costs nothing while nothing changes, counts each order once, of
// every target, and is unknown rather than wrong.
#include "k8s/capacity/fit_store.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/client/scale.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"

struct world {
	struct harness h;
	struct fit_store *store;
	int answers, errors, recoveries;
};

static void on_error(void *arg, const struct err *error)
{
	struct world *w = arg;
	w->errors += error != NULL;
	w->recoveries += error == NULL;
}

static void put(struct world *w, const char *json)
{
	struct err e = {0};
	if (fake_apiserver_put(w->h.server, json, &e) < 0)
		fail_msg("%s", e.msg);
}

static void put_node(struct world *w, int gpus)
{
	char json[512];
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"},\"status\":{\"conditions\":[{"
	         "\"type\":\"Ready\",\"status\":\"True\"}],\"allocatable\":{\"pods\":\"110\",\"nvidia.com/"
	         "gpu\":\"%d\"}}}",
	         gpus);
	put(w, json);
}

static void put_target(struct world *w, const char *kind, const char *name, int gpus)
{
	char json[768];
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"apps/v1\",\"kind\":\"%s\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\","
	         "\"generation\":1},\"spec\":{\"replicas\":0,\"selector\":{\"matchLabels\":{\"app\":\"%s\"}},"
	         "\"template\":{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":%d}}}]}}}}",
	         kind, name, name, gpus);
	put(w, json);
}

// minute: when the scheduler reported that the pod cannot be placed; -1: it runs on node a
static void put_pod(struct world *w, const char *app, const char *name, int minute)
{
	char json[1024], status[512] = "{\"phase\":\"Running\"}";
	if (minute >= 0)
		snprintf(status, sizeof status,
		         "{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"False\","
		         "\"reason\":\"Unschedulable\",\"lastTransitionTime\":\"1970-01-01T00:%02d:00Z\",\"message\":"
		         "\"0/1 nodes are available: 1 Insufficient nvidia.com/gpu.\"}]}",
		         minute);
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"%s\","
	         "\"labels\":{\"app\":\"%s\"}},\"spec\":{%s\"containers\":[{\"resources\":{\"limits\":{"
	         "\"nvidia.com/gpu\":\"1\"},\"requests\":{\"nvidia.com/gpu\":\"1\"}}}]},\"status\":%s}",
	         name, app, minute >= 0 ? "" : "\"nodeName\":\"a\",", status);
	put(w, json);
}

static int setup(void **state)
{
	struct world *w = calloc(1, sizeof *w);
	struct err e;
	*state = w;
	harness_start(&w->h, NULL);
	harness_start_client(&w->h, 1);
	w->store =
	        fit_store_new(&(struct fit_store_options){.client = w->h.client, .on_error = on_error, .arg = w}, &e);
	assert_non_null(w->store);
	put_node(w, 4);
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;
	fit_store_stop(w->store);
	fit_store_free(w->store);
	harness_stop(&w->h);
	free(w);
	return 0;
}

static void on_answer(void *arg)
{
	struct world *w = arg;
	w->answers++;
}

static void prepare(struct world *w, struct fit_target *t, int64_t generation)
{
	int before = w->answers;
	fit_target_prepare(t, generation, on_answer, w);
	assert_true(test_loop_until(w->h.loop, &w->answers, before + 1, TEST_PATIENCE_MS));
	assert_int_equal(w->answers, before + 1);
}

static struct fit_target *want(struct world *w, const char *kind, const char *name, int gpus)
{
	struct err e = {0};
	put_target(w, kind, name, gpus);
	struct fit_target *t = fit_store_acquire(w->store, &(struct scale_ref){"apps/v1", kind, "ns", name, NULL}, &e);
	if (!t)
		fail_msg("%s", e.msg);
	prepare(w, t, 1);
	return t;
}

static struct fit_view read_fit(struct fit_target *t, int32_t spec, int32_t status)
{
	struct fit_view view;
	fit_target_read(t, spec, status, false, &view);
	return view;
}

static void wait_fit(struct world *w, struct fit_target *t, int32_t spec, int32_t status, int32_t wanted)
{
	int64_t end = test_now_ms() + TEST_PATIENCE_MS;
	struct fit_view view = read_fit(t, spec, status);
	while ((!view.is_known || view.fit != wanted) && test_now_ms() < end) {
		test_loop_for(w->h.loop, 5);
		view = read_fit(t, spec, status);
	}
	if (!view.is_known || view.fit != wanted)
		fail_msg("%d fit, wanted %d: %s", view.is_known ? view.fit : -1, wanted, view.detail);
}

static void first_question_waits_for_the_inventory(void **state)
{
	struct world *w = *state;
	struct fit_target *t = want(w, "Deployment", "web", 1);
	struct fit_view view = read_fit(t, 0, 0);
	assert_true(view.is_known);
	assert_int_equal(view.fit, 4);
	assert_non_null(strstr(view.detail, "nvidia.com/gpu"));
	assert_int_equal(fit_target_gpus(t), 1);
}

static void unchanged_target_costs_no_request(void **state)
{
	struct world *w = *state;
	struct fake_counts before, after;
	struct fit_target *t = want(w, "Deployment", "web", 1);
	wait_fit(w, t, 0, 0, 4);
	test_loop_for(w->h.loop, 50); // the watches begin
	fake_apiserver_get_counts(w->h.server, &before);
	for (int i = 0; i < 10; i++) {
		prepare(w, t, 1);
		wait_fit(w, t, 0, 0, 4);
	}
	fake_apiserver_get_counts(w->h.server, &after);
	assert_int_equal(after.total, before.total);
	put_target(w, "Deployment", "web", 2);
	prepare(w, t, 2);
	wait_fit(w, t, 0, 0, 2);
}

static void two_targets_never_get_the_same_room(void **state)
{
	struct world *w = *state;
	struct fit_target *a = want(w, "Deployment", "a", 1), *b = want(w, "Deployment", "b", 2);
	wait_fit(w, a, 0, 0, 4);
	wait_fit(w, b, 0, 0, 2);
	fit_target_ordered(a, 0, 3);
	assert_int_equal(read_fit(b, 0, 0).fit, 0); // one GPU remains
	fit_target_scaled(a, 3);                    // acknowledged: still without pods
	assert_int_equal(read_fit(b, 0, 0).fit, 0);
	assert_int_equal(read_fit(a, 3, 0).fit, 1); // what it has ordered itself is part of its scale
	fit_target_scaled(a, 0);
	assert_int_equal(read_fit(b, 0, 0).fit, 2);
}

static void write_without_an_answer_counts_until_the_target_was_read(void **state)
{
	struct world *w = *state;
	struct fit_view view;
	struct fit_target *a = want(w, "Deployment", "a", 1), *b = want(w, "Deployment", "b", 1);
	wait_fit(w, a, 0, 0, 4);
	fit_target_ordered(a, 0, 3);
	fit_target_read(a, 0, 0, true, &view); // the answer was lost
	assert_int_equal(read_fit(b, 0, 0).fit, 1);
	fit_target_read(a, 0, 0, false, &view); // it never took effect
	assert_int_equal(read_fit(b, 0, 0).fit, 4);
}

// A quota, an admission webhook or a dry-run policy leaves a spec without pods; a tenant can write any number into it.
static void replicas_that_a_target_requests_by_itself_reserve_nothing(void **state)
{
	struct world *w = *state;
	struct fit_target *claims = want(w, "Deployment", "claims", 1), *asks = want(w, "Deployment", "asks", 1);
	wait_fit(w, asks, 0, 0, 4);
	for (int i = 0; i < 4; i++) { // it flips at each tick
		assert_int_equal(read_fit(claims, i % 2 ? 0 : 1000000, 0).fit, i % 2 ? 4 : 0);
		assert_int_equal(read_fit(asks, 0, 0).fit, 4);
	}
	fit_target_ordered(claims, 1000000, 3); // down to its maximum: adds nothing
	assert_int_equal(read_fit(asks, 0, 0).fit, 4);
	fit_target_scaled(claims, 3);
	assert_int_equal(read_fit(asks, 0, 0).fit, 4);
	assert_int_equal(read_fit(claims, 3, 0).fit, 1); // its own scale includes three that do not exist
	fit_target_ordered(claims, 3, 5);
	assert_int_equal(read_fit(asks, 0, 0).fit, 2); // only what this write adds
}

static void order_of_a_deleted_policy_reserves_nothing(void **state)
{
	struct world *w = *state;
	struct fit_target *a = want(w, "Deployment", "a", 1), *b = want(w, "Deployment", "b", 1);
	wait_fit(w, b, 0, 0, 4);
	read_fit(a, 0, 0);
	fit_target_ordered(a, 0, 3);
	assert_int_equal(read_fit(b, 0, 0).fit, 1);
	fit_target_release(a); // while the write is in flight
	assert_int_equal(read_fit(b, 0, 0).fit, 4);
}

static void ordered_replicas_count_once_when_they_exist(void **state)
{
	struct world *w = *state;
	struct fit_target *a = want(w, "Deployment", "a", 1), *b = want(w, "Deployment", "b", 1);
	wait_fit(w, b, 0, 0, 4);
	read_fit(a, 0, 0);
	fit_target_ordered(a, 0, 2);
	fit_target_scaled(a, 2);
	assert_int_equal(read_fit(b, 0, 0).fit, 2);
	put_pod(w, "a", "a-1", -1);
	put_pod(w, "a", "a-2", -1);
	wait_fit(w, b, 0, 0, 0); // the inventory has them, the target does not report them yet
	assert_int_equal(read_fit(a, 2, 2).fit, 2);
	assert_int_equal(read_fit(b, 0, 0).fit, 2);
}

static void unschedulable_replicas_are_listed_oldest_first(void **state)
{
	struct world *w = *state;
	struct fit_target *t = want(w, "Deployment", "web", 1);
	for (int i = 0; i < 4; i++) {
		char name[8];
		snprintf(name, sizeof name, "web-%d", i);
		put_pod(w, "web", name, -1);
	}
	put_pod(w, "web", "late", 9);
	put_pod(w, "web", "early", 2);
	put_pod(w, "other", "of-another", 1);
	struct fit_view view = {0};
	int64_t end = test_now_ms() + TEST_PATIENCE_MS;
	while (view.unschedulable < 2 && test_now_ms() < end) {
		test_loop_for(w->h.loop, 5);
		view = read_fit(t, 6, 6);
	}
	assert_int_equal(view.unschedulable, 2);
	assert_int_equal(view.n_since, 2);
	assert_int_equal(view.since_ms[0], 120000);
	assert_int_equal(view.since_ms[1], 540000);
	assert_string_equal(view.detail, "0/1 nodes are available: 1 Insufficient nvidia.com/gpu.");
	view = read_fit(t, 5, 6); // a rollout's surge: one of the two is not part of the scale
	assert_int_equal(view.fit, 0);
	assert_int_equal(view.unschedulable, 2);
	assert_int_equal(view.n_since, 1);
	view = read_fit(t, 4, 6);
	assert_int_equal(view.n_since, 0);
}

static void put_gated_pod(struct world *w, const char *phase)
{
	char json[512];
	snprintf(
	        json, sizeof json,
	        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"gated\","
	        "\"labels\":{\"app\":\"web\"}},\"spec\":{\"schedulingGates\":[{\"name\":\"kueue.x-k8s.io/admission\"}],"
	        "\"containers\":[{}]},\"status\":{\"phase\":\"%s\"}}",
	        phase);
	put(w, json);
}

static void gated_replicas_leave_room_for_none_and_are_never_overdue(void **state)
{
	struct world *w = *state;
	struct fit_target *t = want(w, "Deployment", "web", 1);
	wait_fit(w, t, 2, 2, 4);
	put_pod(w, "web", "early", 2);
	put_gated_pod(w, "Pending");
	wait_fit(w, t, 2, 2, 0); // three GPUs are free, but the next replica would be gated as well
	struct fit_view view = read_fit(t, 2, 2);
	assert_int_equal(view.unschedulable, 2);
	assert_int_equal(view.n_since, 2);
	// Which of the two the ReplicaSet removes is not known, so neither is overdue.
	assert_int_equal(view.since_ms[0], INT64_MAX);
	assert_int_equal(view.since_ms[1], INT64_MAX);
	assert_string_equal(view.detail, "waiting for scheduling gate kueue.x-k8s.io/admission");
	put_gated_pod(w, "Failed");
	wait_fit(w, t, 1, 1, 3);
	view = read_fit(t, 1, 1);
	assert_int_equal(view.n_since, 1);
	assert_int_equal(view.since_ms[0], 120000);
}

static void only_a_replica_set_removes_unscheduled_pods_first(void **state)
{
	struct world *w = *state;
	struct fit_target *t = want(w, "StatefulSet", "db", 1);
	put_pod(w, "db", "db-0", 2);
	struct fit_view view = {0};
	int64_t end = test_now_ms() + TEST_PATIENCE_MS;
	while (view.unschedulable < 1 && test_now_ms() < end) {
		test_loop_for(w->h.loop, 5);
		view = read_fit(t, 1, 1);
	}
	assert_int_equal(view.unschedulable, 1);
	assert_int_equal(view.n_since, 0);
}

static void missing_permission_is_unknown_until_it_is_granted(void **state)
{
	struct world *w = *state;
	fake_apiserver_fail(w->h.server, &(struct fake_fault){.next = 1, .status = 403, .resource = "nodes"});
	struct fit_target *t = want(w, "Deployment", "web", 1);
	struct fit_view view = read_fit(t, 2, 2);
	assert_false(view.is_known);
	assert_non_null(strstr(view.detail, "manifests/capacity-controller"));
	assert_int_equal(w->errors, 1);
	wait_fit(w, t, 0, 0, 4); // the next attempt succeeds
	assert_int_equal(w->recoveries, 1);
}

static void target_without_a_shape_is_unknown_and_not_read_again_at_once(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	struct fit_target *t =
	        fit_store_acquire(w->store, &(struct scale_ref){"apps/v1", "Deployment", "ns", "absent", NULL}, &e);
	assert_non_null(t);
	prepare(w, t, 1);
	struct fit_view view = read_fit(t, 2, 2);
	assert_false(view.is_known);
	assert_int_equal(fit_target_gpus(t), 0);
	assert_non_null(strstr(view.detail, "absent"));
	uint64_t reads = fake_apiserver_count(w->h.server, "GET", "deployments");
	prepare(w, t, 1);
	assert_int_equal(fake_apiserver_count(w->h.server, "GET", "deployments"), reads);
}

static void questions_are_answered_when_the_store_stops(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	put_target(w, "Deployment", "web", 1);
	struct fit_target *t =
	        fit_store_acquire(w->store, &(struct scale_ref){"apps/v1", "Deployment", "ns", "web", NULL}, &e);
	fit_target_prepare(t, 1, on_answer, w);
	assert_int_equal(w->answers, 0);
	fit_store_stop(w->store);
	assert_int_equal(w->answers, 1);
	assert_int_equal(fit_target_gpus(t), 0);
	assert_false(read_fit(t, 1, 1).is_known);
}

static void claims_of_dynamic_devices_fit_like_extended_resources(void **state)
{
	struct world *w = *state;
	struct err e = {0};
	put(w,
	    "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"ResourceSlice\",\"metadata\":{\"name\":\"s\"},\"spec\":{"
	    "\"driver\":\"gpu.example.dev\",\"nodeName\":\"a\",\"pool\":{\"name\":\"a\",\"generation\":1,"
	    "\"resourceSliceCount\":1},\"devices\":[{\"name\":\"gpu-0\"},{\"name\":\"gpu-1\"},{\"name\":\"gpu-2\"}]}}");
	put(w,
	    "{\"apiVersion\":\"resource.k8s.io/v1\",\"kind\":\"DeviceClass\",\"metadata\":{\"name\":\"gpu\"},\"spec\":{"
	    "\"selectors\":[{\"cel\":{\"expression\":\"device.driver == 'gpu.example.dev'\"}}]}}");
	put(w, "{\"apiVersion\":\"resource.k8s.io/"
	       "v1\",\"kind\":\"ResourceClaimTemplate\",\"metadata\":{\"namespace\":\"ns\","
	       "\"name\":\"one\"},\"spec\":{\"spec\":{\"devices\":{\"requests\":[{\"name\":\"g\",\"exactly\":{"
	       "\"deviceClassName\":\"gpu\"}}]}}}}");
	put(w,
	    "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"dra\","
	    "\"generation\":1},\"spec\":{\"replicas\":0,\"selector\":{\"matchLabels\":{\"app\":\"dra\"}},\"template\":{"
	    "\"spec\":{"
	    "\"containers\":[{\"resources\":{\"claims\":[{\"name\":\"g\"}]}}],\"resourceClaims\":[{\"name\":\"g\","
	    "\"resourceClaimTemplateName\":\"one\"}]}}}}");
	struct fit_target *t =
	        fit_store_acquire(w->store, &(struct scale_ref){"apps/v1", "Deployment", "ns", "dra", NULL}, &e);
	assert_non_null(t);
	prepare(w, t, 1);
	wait_fit(w, t, 0, 0, 3);
	fit_target_ordered(t, 0, 2);
	assert_int_equal(read_fit(t, 2, 0).fit, 1);
	assert_int_equal(fit_target_gpus(t), 0); // the class may be anything
}

// guards.unhealthyReplicas wants a target without asking how much fits.
static void target_whose_fit_is_never_read_holds_no_room(void **state)
{
	struct world *w = *state;
	struct fit_target *asks = want(w, "Deployment", "asks", 1), *other = want(w, "Deployment", "other", 1);
	wait_fit(w, asks, 0, 0, 4);
	fit_target_ordered(other, 0, 3); // it is unknown that two of them exist
	assert_int_equal(read_fit(asks, 0, 0).fit, 4);
	fit_target_scaled(other, 3);
	assert_int_equal(read_fit(asks, 0, 0).fit, 4);
}

// ---- rules that take longer than a turn of the loop ----

static void put_hostile_pod(struct world *w, int i)
{
	struct buf b;
	buf_init(&b, 256 * 1024);
	buf_printf(&b,
	           "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"hostile\",\"name\":\"h%d\"},"
	           "\"spec\":{\"affinity\":{\"nodeAffinity\":{\"requiredDuringSchedulingIgnoredDuringExecution\":{"
	           "\"nodeSelectorTerms\":[",
	           i);
	for (int term = 0; term < 60; term++) {
		buf_printf(&b, "%s{\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"In\",\"values\":[",
		           term ? "," : "");
		for (int value = 0; value < 15; value++)
			buf_printf(&b, "%s\"v%d-%d-%d\"", value ? "," : "", i, term, value);
		buf_puts(&b, "]}]}");
	}
	buf_puts(&b, "]}}},\"containers\":[{\"resources\":{\"requests\":{\"nvidia.com/gpu\":1}}}]}}");
	put(w, buf_str(&b));
	buf_done(&b);
}

static void put_nodes(struct world *w, int n)
{
	for (int i = 0; i < n; i++) {
		char json[512];
		snprintf(json, sizeof json,
		         "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"n%d\"},\"status\":{"
		         "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"allocatable\":{\"pods\":\"110\","
		         "\"nvidia.com/gpu\":\"1\"}}}",
		         i);
		put(w, json);
	}
}

static void plan_of_many_rules_goes_on_in_later_turns(void **state)
{
	struct world *w = *state;
	enum { NODES = 40, PODS = 60 };
	assert_true((int64_t)NODES * PODS * 60 * 15 > 2 * (int64_t)FIT_WORK_PER_TURN);
	put_nodes(w, NODES);
	for (int i = 0; i < PODS; i++)
		put_hostile_pod(w, i);
	struct fit_target *first = want(w, "Deployment", "first", 1), *other = want(w, "Deployment", "other", 1);
	struct fit_view view = read_fit(first, 0, 0);
	assert_true(view.is_known); // nothing is ordered until the pods that wait are counted
	assert_int_equal(view.fit, 0);
	assert_non_null(strstr(view.detail, "still being counted"));
	wait_fit(w, first, 0, 0, 4 + NODES); // no node has one of the values
	wait_fit(w, other, 0, 0, 4 + NODES);

	// What is known is used until what has changed is counted, unless an order is among it.
	put_nodes(w, NODES + 1);
	wait_fit(w, first, 0, 0, 4 + NODES + 1);
	fit_target_ordered(first, 0, 2);
	wait_fit(w, other, 0, 0, 4 + NODES + 1 - 2);
}

// ---- replicas of several pods ----

#define LWS "leaderworkerset.sigs.k8s.io/"

// Groups of two pods with a GPU each.
static struct fit_target *want_groups(struct world *w, const char *more)
{
	char json[512];
	struct err e = {0};
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"leaderworkerset.x-k8s.io/"
	         "v1\",\"kind\":\"LeaderWorkerSet\",\"metadata\":{\"namespace\":"
	         "\"ns\",\"name\":\"gang\"},\"spec\":{\"replicas\":0,\"leaderWorkerTemplate\":{\"size\":2,%s"
	         "\"workerTemplate\":{\"spec\":{\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/"
	         "gpu\":1}}}]}}}}}",
	         more);
	put(w, json);
	struct fit_target *t = fit_store_acquire(
	        w->store, &(struct scale_ref){"leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "ns", "gang", NULL},
	        &e);
	assert_non_null(t);
	prepare(w, t, -1);
	fit_target_select(t, LWS "name=gang," LWS "worker-index=0");
	return t;
}

static void put_worker(struct world *w, int group, int worker, bool is_placed)
{
	char json[1024];
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"namespace\":\"ns\",\"name\":\"gang-%d-%d\","
	         "\"labels\":{\"" LWS "name\":\"gang\",\"" LWS "group-index\":\"%d\",\"" LWS
	         "worker-index\":\"%d\"}},\"spec\":{%s\"containers\":[{\"resources\":{\"requests\":{\"nvidia.com/gpu\":"
	         "\"1\"}}}]},\"status\":{\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"status\":"
	         "\"False\",\"reason\":\"Unschedulable\"}]}}",
	         group, worker, group, worker, is_placed ? "\"nodeName\":\"a\"," : "");
	put(w, json);
}

static void fit_of_groups_is_counted_in_replicas(void **state)
{
	struct world *w = *state;
	struct fit_target *t = want_groups(w, ""), *other = want(w, "Deployment", "other", 1);
	wait_fit(w, t, 0, 0, 2);
	assert_int_equal(fit_target_gpus(t), 2);
	put_node(w, 5);
	wait_fit(w, other, 0, 0, 5);
	assert_int_equal(read_fit(t, 0, 0).fit, 2); // half a replica does not fit
	fit_target_ordered(t, 0, 1);
	assert_int_equal(read_fit(other, 0, 0).fit, 3); // both pods of the one that is ordered have their room
	fit_target_scaled(t, 1);
	assert_int_equal(read_fit(t, 1, 0).fit, 1);
}

static void group_of_which_pods_cannot_be_scheduled_counts_once(void **state)
{
	struct world *w = *state;
	struct fit_target *t = want_groups(w, "");
	wait_fit(w, t, 0, 0, 2);
	put_worker(w, 0, 0, false);
	put_worker(w, 0, 1, false);
	put_worker(w, 1, 0, true);
	put_worker(w, 1, 1, false);
	TEST_BECOMES(w->h.loop, read_fit(t, 2, 2).unschedulable == 2);
	put_worker(w, 1, 1, true);
	TEST_BECOMES(w->h.loop, read_fit(t, 2, 2).unschedulable == 1); // two pods of one group
}

static void group_with_a_template_for_its_leader_is_not_counted(void **state)
{
	struct world *w = *state;
	struct fit_view view = read_fit(want_groups(w, "\"leaderTemplate\":{\"spec\":{}},"), 0, 0);
	assert_false(view.is_known);
	assert_non_null(strstr(view.detail, "the leaders of a LeaderWorkerSet have a leaderTemplate"));
}

// ---- failing GPUs ----

static int32_t count_failing(const struct fit_target *t, const char *const *names, const enum pod_kind *kinds, size_t n)
{
	struct pod_list list;
	struct err e;
	pod_list_init(&list);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(pod_list_add(&list, names[i], kinds[i], &e), 0);
	int32_t failing = fit_target_failing(t, &list);
	pod_list_done(&list);
	return failing;
}

static void put_failing_node(struct world *w, const char *out)
{
	char json[1024];
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"annotations\":{"
	         "\"gpuscale.dev/remediation\":\"{\\\"gpus\\\":[%s]}\"}},\"status\":{\"conditions\":[{\"type\":"
	         "\"Ready\",\"status\":\"True\"}],\"allocatable\":{\"pods\":\"110\",\"nvidia.com/gpu\":\"4\"}}}",
	         out);
	put(w, json);
}

static void wait_failing(struct world *w, const struct fit_target *t, const enum pod_kind *kinds, int32_t wanted)
{
	static const char *const names[] = {"one", "two", "three", "unknown"};
	int64_t end = test_now_ms() + TEST_PATIENCE_MS;
	while (count_failing(t, names, kinds, 4) != wanted && test_now_ms() < end)
		test_loop_for(w->h.loop, 10);
	assert_int_equal(count_failing(t, names, kinds, 4), wanted);
}

static void replicas_on_failing_gpus_are_at_most_as_many_as_the_gpus(void **state)
{
	static const enum pod_kind all[] = {POD_KIND_READY, POD_KIND_UNREADY, POD_KIND_READY, POD_KIND_READY};
	static const enum pod_kind deleted[] = {POD_KIND_READY, POD_KIND_DELETED, POD_KIND_ENDED, POD_KIND_READY};
	struct world *w = *state;
	struct fit_target *t = want(w, "Deployment", "web", 1);
	put_pod(w, "web", "one", -1);
	put_pod(w, "web", "two", -1);
	put_pod(w, "web", "three", -1);
	wait_fit(w, t, 3, 3, 1); // the inventory has all pods
	wait_failing(w, t, all, 0);
	put_failing_node(w, "{\\\"out\\\":-1},{\\\"out\\\":5},{\\\"out\\\":6}");
	wait_failing(w, t, all, 2);
	wait_failing(w, t, deleted, 1);
	put_failing_node(w, "{\\\"out\\\":5}");
	wait_failing(w, t, all, 3); // the node itself
	put_node(w, 4);
	wait_failing(w, t, all, 0);
	fit_target_release(t);
}

static void group_on_failing_gpus_counts_once(void **state)
{
	struct world *w = *state;
	struct fit_target *t = want_groups(w, "");
	struct pod_list list;
	pod_list_init(&list);
	for (int i = 0; i < 4; i++) {
		char name[16];
		snprintf(name, sizeof name, "gang-%d-%d", i / 2, i % 2);
		put_worker(w, i / 2, i % 2, true);
		assert_int_equal(pod_list_add(&list, name, POD_KIND_READY, NULL), 0);
		list.items[i].member.group = (uint64_t)i / 2 + 1;
	}
	put_failing_node(w, "{\\\"out\\\":5}"); // the node itself
	TEST_BECOMES(w->h.loop, fit_target_failing(t, &list) == 2);
	pod_list_done(&list);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(first_question_waits_for_the_inventory),
	        TEST(unchanged_target_costs_no_request),
	        TEST(two_targets_never_get_the_same_room),
	        TEST(write_without_an_answer_counts_until_the_target_was_read),
	        TEST(replicas_that_a_target_requests_by_itself_reserve_nothing),
	        TEST(order_of_a_deleted_policy_reserves_nothing),
	        TEST(ordered_replicas_count_once_when_they_exist),
	        TEST(unschedulable_replicas_are_listed_oldest_first),
	        TEST(fit_of_groups_is_counted_in_replicas),
	        TEST(group_of_which_pods_cannot_be_scheduled_counts_once),
	        TEST(group_with_a_template_for_its_leader_is_not_counted),
	        TEST(group_on_failing_gpus_counts_once),
	        TEST(gated_replicas_leave_room_for_none_and_are_never_overdue),
	        TEST(only_a_replica_set_removes_unscheduled_pods_first),
	        TEST(missing_permission_is_unknown_until_it_is_granted),
	        TEST(target_without_a_shape_is_unknown_and_not_read_again_at_once),
	        TEST(questions_are_answered_when_the_store_stops),
	        TEST(claims_of_dynamic_devices_fit_like_extended_resources),
	        TEST(target_whose_fit_is_never_read_holds_no_room),
	        TEST(plan_of_many_rules_goes_on_in_later_turns),
	        TEST(replicas_on_failing_gpus_are_at_most_as_many_as_the_gpus),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
