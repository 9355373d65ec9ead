// SPDX-License-Identifier: Apache-2.0
// Goal: after a policy is removed, nothing starts a tick of it or uses its status, although the managed policy lives on
// until policy_sync() runs and its last tick ends. AddressSanitizer sees what the assertions cannot.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/num.h"
#include "controller/controller.h"
#include "controller/policy/managed_policy.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/pool/pools.h"
#include "controller/tick/reconcile.h"
#include "policies/load/policy_ref.h"
#include "promql/promql_source.h"
#include "runtime/connections.h"
#include "runtime/metrics/metrics.h"
#include "runtime/options/controller_options.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards_private.h"
#include "test/fake/k8s_harness.h"
#include "test/support/controller_world.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"
#include "test/support/query_server.h"

#define SPACE WORLD_SPACE

static uint64_t n_status_reads(const struct world *w)
{
	return fake_apiserver_count(w->h.server, "get", "gpuautoscalers");
}

// Puts n policies whose status the API server never returns: TICKS_MAX ticks are in flight, the others are queued.
static void queue_up(struct world *w, int n)
{
	fake_apiserver_fail(
	        w->h.server,
	        &(struct fake_fault){.next = 1000, .hang = true, .verb = "get", .resource = "gpuautoscalers"});
	for (int i = 0; i < n; i++)
		world_put(w, POLICY_FROM_OBJECT, i, 1, 60000);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress == TICKS_MAX);
	assert_int_equal(world_stats(w).due, n - TICKS_MAX);
}

static void policy_deleted_while_its_tick_is_queued_has_no_tick(void **state)
{
	struct world *w = *state;
	int queued = -1;
	queue_up(w, TICKS_MAX + 1);
	for (int i = 0; i <= TICKS_MAX; i++)
		if (world_member(w, i)->ticker.state == TICK_DUE)
			queued = i;
	assert_int_not_equal(queued, -1);
	world_take_away(w, POLICY_FROM_OBJECT, queued);
	clock_advance_ms(&w->connections.clock, TICKS_SLOW_MS); // makes room, as a tick that ends does
	ticks_run(w->c->policies.ticks);
	assert_int_equal(world_stats(w).due, 0);
	assert_int_equal(world_stats(w).in_progress, TICKS_MAX);
	TEST_BECOMES(w->h.loop, w->c->policies.n == TICKS_MAX);
}

// One turn of the loop. Intervals of 1 ms pass in the meantime.
static void turn(const struct world *w)
{
	usleep(2000);
	event_base_loop(w->h.loop, EVLOOP_ONCE | EVLOOP_NONBLOCK);
}

// The reply that ends the tick and the timer of the next tick arrive in one turn of the loop, before policy_sync()
// runs.
static void policy_deleted_while_its_tick_is_in_flight_has_no_other(void **state)
{
	struct world *w = *state;
	const int64_t end_ms = test_now_ms() + TEST_PATIENCE_MS;
	fake_apiserver_fail(
	        w->h.server,
	        &(struct fake_fault){
	                .next = 1000, .delay_ms = 20, .status = 404, .verb = "get", .resource = "gpuautoscalers"});
	world_put(w, POLICY_FROM_OBJECT, 0, 1, 1);
	while (n_status_reads(w) == 0 && test_now_ms() < end_ms)
		turn(w);
	assert_int_equal(world_stats(w).in_progress, 1);
	world_take_away(w, POLICY_FROM_OBJECT, 0);
	while (w->c->policies.n > 0 && test_now_ms() < end_ms)
		turn(w);
	assert_int_equal(w->c->policies.n, 0);
	assert_int_equal(n_status_reads(w), 1);
}

// ---- pools ----

static void policy_with_another_target_is_not_known_to_its_pool(void **state)
{
	struct world *w = *state;
	struct err e;
	assert_int_equal(fake_apiserver_add(w->h.server, SPACE "/Deployment/p00=2", &e), 0);
	assert_int_equal(fake_apiserver_add(w->h.server, SPACE "/Deployment/other=5", &e), 0);
	world_put_pool(w, 100);
	world_put(w, POLICY_FROM_FILE, 0, 0, 60000);
	TEST_BECOMES(w->h.loop, world_member(w, 0)->membership && world_member(w, 0)->membership->is_known);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress == 0);
	w->is_slow = true;
	clock_advance_ms(&w->connections.clock, 60000); // answers are not reused
	world_put(w, POLICY_FROM_FILE, 0, 1, 60000);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress == 1);
	assert_true(world_member(w, 0)->membership->is_known); // the same target
	query_server_release(w->queries, QUERY_ANSWERED);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress == 0);
	clock_advance_ms(&w->connections.clock, 60000);
	world_put_for(w, POLICY_FROM_FILE, 0, 2, 60000, "other");
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress == 1);
	assert_false(world_member(w, 0)->membership->is_known);
	query_server_release(w->queries, QUERY_ANSWERED);
	TEST_BECOMES(w->h.loop, world_member(w, 0)->membership->is_known);
	assert_int_equal(world_member(w, 0)->membership->current, 5);
}

// ---- turns to write ----

// Lets TICKS_WRITES_MAX policies write, whose requests end as `fault` says, and returns the one whose order waits.
static int defer_one(struct world *w, struct fake_fault fault)
{
	char object[64];
	struct err e;
	int waiting = -1;
	fault.next = 1000;
	fault.verb = "patch";
	fault.resource = "deployments/scale";
	fake_apiserver_fail(w->h.server, &fault);
	world_put_pool(w, 100);
	for (int i = 0; i <= TICKS_WRITES_MAX; i++) {
		snprintf(object, sizeof object, SPACE "/Deployment/p%02d=1", i);
		assert_int_equal(fake_apiserver_add(w->h.server, object, &e), 0);
		world_put(w, POLICY_FROM_FILE, i, 1, 60000); // at least 3 replicas
	}
	TEST_BECOMES(w->h.loop, world_stats(w).awaiting == 1 && world_stats(w).in_progress == TICKS_WRITES_MAX);
	for (int i = 0; i <= TICKS_WRITES_MAX; i++)
		if (reconciler_phase(world_member(w, i)->reconciler) == TICK_PHASE_DEFERRED)
			waiting = i;
	assert_int_not_equal(waiting, -1);
	return waiting;
}

// The order holds GPUs of the pool, and goes with the version of the policy that decided it.
static void order_that_waits_belongs_to_a_version(void **state)
{
	struct world *w = *state;
	int waiting = defer_one(w, (struct fake_fault){.hang = true});
	assert_int_equal(world_member(w, waiting)->ticker.state, TICK_IDLE);
	assert_int_equal(world_member(w, waiting)->membership->in_flight, 3);

	clock_advance_ms(&w->connections.clock, 1000);
	world_put(w, POLICY_FROM_FILE, waiting, 0, 60000); // at most 2 replicas
	TEST_BECOMES(w->h.loop, world_member(w, waiting)->membership->in_flight != 3);
	assert_int_equal(world_member(w, waiting)->body->generation, 0);

	world_put(w, POLICY_FROM_FILE, waiting, 1, 60000);
	TEST_BECOMES(w->h.loop, world_member(w, waiting)->membership->in_flight == 3);
	world_take_away(w, POLICY_FROM_FILE, waiting);
	TEST_BECOMES(w->h.loop, !world_member(w, waiting));
	assert_int_equal(world_stats(w).awaiting, 0);
}

static void order_that_waits_is_void_when_the_clock_is_set(void **state)
{
	struct world *w = *state;
	const struct managed_policy *m = world_member(w, defer_one(w, (struct fake_fault){.delay_ms = 300}));
	w->connections.clock.manual_wall_ms += 3600000;
	controller_check_clock(w->c);
	assert_int_equal(reconciler_phase(m->reconciler), TICK_PHASE_IDLE);
	assert_int_equal(m->membership->in_flight, -1);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress + world_stats(w).awaiting == 0); // its turn came
	assert_int_equal(m->membership->current, 1);
}

// ---- looks ----

// Puts policy 0 with `more` of the spec, and lets it tick once.
static void put_and_tick(struct world *w, const char *more)
{
	char json[1024];
	struct err e;
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":"
	         "\"p00\",\"namespace\":\"" SPACE "\"},\"spec\":{\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\","
	         "\"kind\":\"Deployment\",\"name\":\"p00\"},\"maxReplicas\":9,\"interval\":\"1m\",%s"
	         "{\"name\":\"load\",\"query\":\"load\",\"target\":{\"type\":\"Value\",\"value\":7}}]}}",
	         more);
	struct policy_ref *ref = world_policy(json, 1, 60000);
	if (world_member(w, 0))
		ref->generation = world_member(w, 0)->body->generation + 1;
	int64_t generation = ref->generation;
	clock_advance_ms(&w->connections.clock, 1000); // answers are not reused
	assert_int_equal(policy_store_put(w->c->policies.store, POLICY_FROM_FILE, ref, NULL, &e), 0);
	TEST_BECOMES(w->h.loop, world_member(w, 0)->body && world_member(w, 0)->body->generation == generation);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress + world_stats(w).due == 0);
}

// The answers of the query server are samples of an early time.
static void go_to_early_time(struct world *w)
{
	struct err e;
	assert_int_equal(fake_apiserver_add(w->h.server, SPACE "/Deployment/p00=2", &e), 0);
	clock_init_manual(&w->connections.clock, 10000);
	controller_check_clock(w->c);
}

// Returns whether there was a look. Its queries end with `fault`.
static bool has_look_with(struct world *w, enum query_fault fault)
{
	struct managed_policy *m = world_member(w, 0);
	clock_advance_ms(&w->connections.clock, 1000);
	w->is_slow = true;
	early_check_start(&w->c->policies, &m->ticker, clock_wall_ms(&w->connections.clock));
	bool has = m->early_check != NULL;
	if (has)
		TEST_BECOMES(w->h.loop, query_server_hanging(w->queries) > 0);
	w->is_slow = false;
	query_server_release(w->queries, fault);
	TEST_BECOMES(w->h.loop, !m->early_check);
	return has;
}

static bool has_look(struct world *w)
{
	return has_look_with(w, QUERY_ANSWERED);
}

#define PLAIN "\"guards\":{\"maxPendingPods\":3},\"signals\":["

static void tick_again(struct world *w)
{
	struct managed_policy *m = world_member(w, 0);
	clock_advance_ms(&w->connections.clock, 1000);
	ticks_ask(w->c->policies.ticks, &m->ticker, clock_wall_ms(&w->connections.clock));
	ticks_run(w->c->policies.ticks);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress + world_stats(w).due == 0);
}

// The query hub asks a query that fails repeatedly less often, also for the next tick.
static void look_that_fails_has_no_other_before_the_next_tick(void **state)
{
	struct world *w = *state;
	go_to_early_time(w);
	put_and_tick(w, PLAIN);
	assert_true(has_look_with(w, QUERY_500));
	assert_false(has_look(w));
	tick_again(w);
	assert_true(has_look(w));
	assert_true(has_look(w));
}

// A slow query takes at most 5 % of the time.
static void slow_look_is_followed_by_a_pause(void **state)
{
	struct world *w = *state;
	struct clock *clock = &w->connections.clock;
	go_to_early_time(w);
	put_and_tick(w, PLAIN);
	struct managed_policy *m = world_member(w, 0);
	w->is_slow = true;
	clock_advance_ms(clock, 1000);
	early_check_start(&w->c->policies, &m->ticker, clock_wall_ms(clock));
	TEST_BECOMES(w->h.loop, query_server_hanging(w->queries) > 0);
	clock_advance_ms(clock, 100);
	w->is_slow = false;
	query_server_release(w->queries, QUERY_ANSWERED);
	TEST_BECOMES(w->h.loop, !m->early_check);
	assert_false(has_look(w)); // 1 s later
	assert_true(has_look(w));  // 2 s later
}

static void policy_that_counts_ticks_has_no_look(void **state)
{
	static const char *const counting[] = {
	        "\"fallback\":{\"failureThreshold\":3,\"replicas\":4},\"signals\":[",
	        "\"guards\":{\"maxStep\":1},\"signals\":[",
	        "\"guards\":{\"minMarginalGain\":{\"signal\":\"done\",\"gain\":\"0.5\"}},\"signals\":[{\"name\":"
	        "\"done\",\"query\":\"done\"},",
	        "\"signals\":[{\"name\":\"few\",\"query\":\"few\",\"target\":{\"type\":\"Value\",\"value\":7},"
	        "\"window\":{\"duration\":\"10m\",\"aggregate\":\"Avg\",\"minSamples\":4}},",
	        "\"signals\":[{\"name\":\"long\",\"query\":\"long\",\"target\":{\"type\":\"Value\",\"value\":7},"
	        "\"window\":{\"duration\":\"5h\",\"aggregate\":\"Avg\"}},",
	};
	struct world *w = *state;
	go_to_early_time(w);
	put_and_tick(w, PLAIN);
	assert_true(has_look(w));
	for (size_t i = 0; i < sizeof counting / sizeof counting[0]; i++) {
		put_and_tick(w, counting[i]);
		if (has_look(w))
			fail_msg("a look with %s", counting[i]);
	}
}

static void look_that_waits_ends_with_the_next_tick(void **state)
{
	struct world *w = *state;
	go_to_early_time(w);
	put_and_tick(w, PLAIN);
	struct managed_policy *m = world_member(w, 0);
	m->checks_alone = true;
	w->c->early_checks.in_flight += 1000; // no room
	clock_advance_ms(&w->connections.clock, 10000);
	early_check_start(&w->c->policies, &m->ticker, clock_wall_ms(&w->connections.clock));
	assert_true(m->awaits_early_check);
	tick_again(w);
	assert_false(m->awaits_early_check);
	w->c->early_checks.in_flight -= 1000;
	clock_advance_ms(&w->connections.clock, 10000);
	assert_true(has_look(w));
}

static void first_look_sends_no_query_that_cannot_be_combined(void **state)
{
	struct world *w = *state;
	go_to_early_time(w);
	put_and_tick(w,
	             PLAIN "{\"name\":\"sum\",\"query\":\"load + load\",\"target\":{\"type\":\"Value\",\"value\":7}},");
	struct managed_policy *m = world_member(w, 0);
	assert_int_equal(w->n_sums, 1);       // of the tick
	w->c->early_checks.in_flight += 1000; // no room
	assert_true(has_look(w));             // at the other query
	assert_int_equal(w->n_sums, 1);
	clock_advance_ms(&w->connections.clock, 10000);
	early_check_start(&w->c->policies, &m->ticker, clock_wall_ms(&w->connections.clock));
	assert_true(m->awaits_early_check);
	tick_again(w);
	w->c->early_checks.in_flight -= 1000;
	clock_advance_ms(&w->connections.clock, 10000);
	assert_true(has_look(w)); // at both
	assert_int_equal(w->n_sums, 3);
}

static void look_from_before_a_clock_step_starts_no_tick(void **state)
{
	struct world *w = *state;
	struct clock *clock = &w->connections.clock;
	go_to_early_time(w);
	put_and_tick(w, PLAIN);
	struct managed_policy *m = world_member(w, 0);
	w->is_slow = true;
	clock_advance_ms(clock, 1000);
	early_check_start(&w->c->policies, &m->ticker, clock_wall_ms(clock));
	assert_non_null(m->early_check);
	TEST_BECOMES(w->h.loop, query_server_hanging(w->queries) > 0);
	int64_t mono_ms = clock_mono_ms(clock);
	clock_init_manual(clock, clock_wall_ms(clock) + 3600000);
	clock->manual_mono_ms = mono_ms;
	controller_check_clock(w->c);
	assert_null(m->early_check);
	query_server_release(w->queries, QUERY_ANSWERED);
	TEST_BECOMES(w->h.loop, w->c->early_checks.in_flight == 0);
	assert_false(m->has_early_tick);
}

// ---- any order ----

#define ANY_POLICIES (TICKS_MAX + 8)
#define STEPS        800 // $GPUSCALE_LAW_SEED chooses other ones

static uint32_t random_below(uint64_t *seed, uint32_t n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*seed >> 33) % n;
}

static void put_bad(struct world *w, int i, int generation)
{
	struct policy_identity id = {.generation = generation, .has_status = true};
	char name[16];
	struct err e;
	snprintf(name, sizeof name, "p%02d", i);
	snprintf(id.uid, sizeof id.uid, "uid-%s", name);
	assert_int_equal(policy_store_put_bad(w->c->policies.store, POLICY_FROM_OBJECT, SPACE, name, &id, "bad", &e),
	                 0);
}

static void change_api(struct world *w, uint32_t how)
{
	static const struct fake_fault faults[] = {
	        {.next = 0},
	        {.next = 1000, .hang = true, .verb = "get", .resource = "gpuautoscalers"},
	        {.next = 1000, .status = 404, .delay_ms = 1, .verb = "get", .resource = "gpuautoscalers"},
	        {.next = 1000, .delay_ms = 2},
	        {.next = 1000, .status = 409, .verb = "patch"},
	        {.next = 1000, .status = 500, .delay_ms = 1},
	        {.next = 1000, .cut = true},
	};
	fake_apiserver_fail(w->h.server, &faults[how % (sizeof faults / sizeof faults[0])]);
}

static void change_shard(struct world *w, int32_t shard)
{
	struct shards *s = w->connections.shards;
	if (!s)
		return;
	bool is_owned = s->shards[shard].state == SHARD_OWNED;
	s->shards[shard].state = is_owned ? SHARD_AWAY : SHARD_OWNED; // the lease is kept
	s->shards[shard].term += !is_owned;
	s->options.callbacks.on_lost(s->options.arg, shard); // as on_gained
}

static void do_something(struct world *w, uint64_t *seed)
{
	const uint32_t what = random_below(seed, 100);
	const int i = (int)random_below(seed, ANY_POLICIES), generation = (int)random_below(seed, 3);
	if (what < 24)
		world_put(w, POLICY_FROM_OBJECT, i, generation, 1 + random_below(seed, 3));
	else if (what < 36)
		world_put(w, POLICY_FROM_FILE, i, generation, 1 + random_below(seed, 3));
	else if (what < 39)
		put_bad(w, i, generation);
	else if (what < 53)
		world_take_away(w, POLICY_FROM_OBJECT, i);
	else if (what < 61)
		world_take_away(w, POLICY_FROM_FILE, i);
	else if (what < 62) {
		for (int j = 0; j < ANY_POLICIES; j++)
			world_take_away(w, POLICY_FROM_OBJECT, j);
	} else if (what < 66)
		change_api(w, i % 3 ? 0 : (uint32_t)i / 3);
	else if (what < 69)
		w->is_slow = !w->is_slow;
	else if (what < 72)
		query_server_release(w->queries, i % 2 ? QUERY_ANSWERED : QUERY_500);
	else if (what < 75)
		clock_advance_ms(&w->connections.clock, TICKS_SLOW_MS);
	else if (what < 76)
		w->connections.clock.manual_wall_ms += i % 2 ? 3600000 : -3600000;
	else if (what < 80)
		change_shard(w, i % 2);
	else if (what < 83)
		ticks_run(w->c->policies.ticks);
	else if (what < 85)
		(void)controller_prices(w->c);
	else if (what < 86)
		world_put_pool(w, 100);
	else if (what < 87)
		pools_remove_object(w->c->pools->pools, "h100");
	else {
		usleep(random_below(seed, 4) * 500);
		event_base_loop(w->h.loop, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	}
}

// A reconciler and its member have the same status, and none once the policy is gone.
static void assert_status_is_shared(const struct world *w)
{
	for (size_t i = 0; i < w->c->policies.n; i++) {
		const struct managed_policy *m = w->c->policies.list[i];
		assert_ptr_equal(m->reconciler->subject.status, m->status);
		assert_true(m->stored || !m->status);
		assert_true(m->stored || m->ticker.state != TICK_DUE);
	}
}

static void come_and_go(struct world *w)
{
	const char *first = getenv("GPUSCALE_LAW_SEED");
	int64_t first_seed = 1;
	struct err e;
	char target[32];
	if (first && num_parse_i64(first, strlen(first), 0, INT64_MAX, &first_seed, &e) < 0)
		fail_msg("GPUSCALE_LAW_SEED: %s", e.msg);
	uint64_t seed = (uint64_t)first_seed;
	for (int i = 0; i < ANY_POLICIES; i += 2) {
		snprintf(target, sizeof target, SPACE "/Deployment/p%02d=1", i);
		assert_int_equal(fake_apiserver_add(w->h.server, target, &e), 0);
	}
	for (int step = 0; step < STEPS; step++) {
		do_something(w, &seed);
		assert_status_is_shared(w);
	}
	if (seed % 2)
		return; // the teardown finds ticks in flight
	change_api(w, 0);
	w->is_slow = false;
	query_server_release(w->queries, QUERY_ANSWERED);
	for (int i = 0; i < ANY_POLICIES; i++) {
		world_take_away(w, POLICY_FROM_OBJECT, i);
		world_take_away(w, POLICY_FROM_FILE, i);
	}
	assert_int_equal(world_stats(w).due, 0);
}

static void policies_may_come_and_go_in_any_order(void **state)
{
	come_and_go(*state);
}

static void policies_and_shards_may_come_and_go_in_any_order(void **state)
{
	come_and_go(*state);
}

// ---- another client ----

// Another client with this name sets the replicas of Deployment p00, which was created at that time.
static void put_target(struct world *w, int replicas, const char *manager, int64_t created_ms)
{
	char json[700], created[NUM_TEXT_BYTES];
	struct err e;
	num_format_rfc3339_ms(created, created_ms);
	snprintf(json, sizeof json,
	         "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"namespace\":\"" SPACE
	         "\",\"name\":\"p00\",\"creationTimestamp\":\"%s\",\"managedFields\":[{\"manager\":\"%s\",\"time\":"
	         "\"2026-01-05T09:00:00Z\",\"fieldsV1\":{\"f:spec\":{\"f:replicas\":{}}}}]},\"spec\":{\"replicas\":%d,"
	         "\"selector\":{\"matchLabels\":{\"app\":\"p00\"}}}}",
	         created, manager, replicas);
	if (fake_apiserver_put(w->h.server, json, &e) < 0)
		fail_msg("%s", e.msg);
}

static void set_replicas(struct world *w, int replicas, const char *manager)
{
	put_target(w, replicas, manager, 1767600000000); // an hour before the clock of the world
}

static int replicas_of(struct world *w)
{
	struct outcome o;
	harness_get(&w->h, &(struct scale_ref){"apps/v1", "Deployment", SPACE, "p00", NULL}, &o);
	assert_false(o.is_error);
	return o.scale.spec_replicas;
}

// Lets the next tick see a change by that client, and end. `anew`: the target was created anew with other replicas.
static void tick_after(struct world *w, const char *manager, bool anew)
{
	uint64_t n = fake_apiserver_count(w->h.server, "patch", "deployments/scale");
	const int64_t end_ms = test_now_ms() + TEST_PATIENCE_MS;
	if (anew)
		put_target(w, 1, manager, clock_wall_ms(&w->connections.clock));
	else
		set_replicas(w, 1, manager);
	do {
		assert_true(test_now_ms() < end_ms);
		tick_again(w); // until the watch has delivered the change
	} while (!world_member(w, 0)->pause && fake_apiserver_count(w->h.server, "patch", "deployments/scale") == n);
}

static void tick_after_change(struct world *w, const char *manager)
{
	tick_after(w, manager, false);
}

static void target_that_is_created_anew_is_scaled_each_time(void **state)
{
	struct world *w = *state;
	set_replicas(w, 1, "helm");
	world_put(w, POLICY_FROM_FILE, 0, 1, 60000);
	TEST_BECOMES(w->h.loop, replicas_of(w) == 3);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress + world_stats(w).due == 0);
	const struct managed_policy *m = world_member(w, 0);
	for (int i = 0; i < 7; i++) {
		tick_after(w, "helm", true);
		TEST_BECOMES(w->h.loop, m->reconciler && !m->pause && replicas_of(w) == 3);
		TEST_BECOMES(w->h.loop, world_stats(w).in_progress + world_stats(w).due == 0);
	}
}

static void policy_gives_way_to_a_client_that_keeps_changing_its_target(void **state)
{
	struct world *w = *state;
	char text[RENDER_SENTENCE_BYTES];
	set_replicas(w, 1, "helm");
	world_put(w, POLICY_FROM_FILE, 0, 1, 60000); // at least 3 replicas
	TEST_BECOMES(w->h.loop, replicas_of(w) == 3);
	const struct managed_policy *m = world_member(w, 0);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress + world_stats(w).due == 0);
	for (int i = 0; i < 2; i++) {
		tick_after_change(w, "my-script");
		assert_int_equal(replicas_of(w), 3);
		assert_null(m->pause);
	}
	uint64_t lists = fake_apiserver_count(w->h.server, "list", "deployments");
	tick_after_change(w, "my-script");
	TEST_BECOMES(w->h.loop, !m->reconciler && conflicts_find(m));
	assert_string_equal(conflicts_find(m), "field manager \"my-script\"");
	assert_int_equal(policy_awaits_explain(m, text, sizeof text), STATUS_CONFLICT);
	assert_non_null(strstr(text,
	                       "field manager \"my-script\" keeps changing the replicas of the target against the "
	                       "policy, which does not write before 2026-01-05T09:"));
	assert_int_equal(fake_apiserver_count(w->h.server, "list", "deployments"), lists + 1); // asked once
	assert_int_equal(replicas_of(w), 1);
	assert_int_equal(w->c->policies.n_conflicts_awaited, 0);

	clock_advance_ms(&w->connections.clock, SCALE_FIGHT_PAUSE_MS);
	event_active(&m->pause->timer, EV_TIMEOUT, 0);
	TEST_BECOMES(w->h.loop, replicas_of(w) == 3); // the pause is over
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress + world_stats(w).due == 0);
	assert_null(conflicts_find(m));
	tick_after_change(w, "other-script");
	TEST_BECOMES(w->h.loop, !m->reconciler && conflicts_find(m));
	assert_string_equal(conflicts_find(m), "field manager \"other-script\"");
	assert_int_equal(m->fight.pause_ms, 2 * SCALE_FIGHT_PAUSE_MS);
	world_take_away(w, POLICY_FROM_FILE, 0); // with its pause
	TEST_BECOMES(w->h.loop, !world_member(w, 0));
}

// Without a name, the conflict still has an end: who changed the target cannot be read.
static void client_without_a_name_is_another_client(void **state)
{
	struct world *w = *state;
	set_replicas(w, 1, "helm");
	world_put(w, POLICY_FROM_FILE, 0, 1, 60000);
	TEST_BECOMES(w->h.loop, replicas_of(w) == 3);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress + world_stats(w).due == 0);
	const struct managed_policy *m = world_member(w, 0);
	for (int i = 0; i < 3; i++)
		tick_after_change(w, "");
	TEST_BECOMES(w->h.loop, !m->reconciler && conflicts_find(m));
	assert_string_equal(conflicts_find(m), "another client");
}

static void policy_that_stops_writing_needs_no_pause(void **state)
{
	struct world *w = *state;
	set_replicas(w, 1, "helm");
	world_put(w, POLICY_FROM_FILE, 0, 1, 60000);
	TEST_BECOMES(w->h.loop, replicas_of(w) == 3);
	TEST_BECOMES(w->h.loop, world_stats(w).in_progress + world_stats(w).due == 0);
	struct managed_policy *m = world_member(w, 0);
	for (int i = 0; i < 3; i++)
		tick_after_change(w, "my-script");
	TEST_BECOMES(w->h.loop, !m->reconciler && conflicts_find(m));
	w->c->policies.dry_run = true; // as the policy's own dryRun
	managed_policy_mark(m);
	TEST_BECOMES(w->h.loop, m->reconciler);
	assert_non_null(conflicts_find(m)); // its condition names the client all the same
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, world_setup, world_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	        TEST(policy_deleted_while_its_tick_is_queued_has_no_tick),
	        TEST(policy_deleted_while_its_tick_is_in_flight_has_no_other),
	        TEST(policy_with_another_target_is_not_known_to_its_pool),
	        TEST(order_that_waits_belongs_to_a_version),
	        TEST(order_that_waits_is_void_when_the_clock_is_set),
	        TEST(policy_that_counts_ticks_has_no_look),
	        TEST(look_that_waits_ends_with_the_next_tick),
	        TEST(first_look_sends_no_query_that_cannot_be_combined),
	        TEST(look_from_before_a_clock_step_starts_no_tick),
	        TEST(look_that_fails_has_no_other_before_the_next_tick),
	        TEST(slow_look_is_followed_by_a_pause),
	        TEST(policy_gives_way_to_a_client_that_keeps_changing_its_target),
	        TEST(client_without_a_name_is_another_client),
	        TEST(target_that_is_created_anew_is_scaled_each_time),
	        TEST(policy_that_stops_writing_needs_no_pause),
	        TEST(policies_may_come_and_go_in_any_order),
	        cmocka_unit_test_setup_teardown(policies_and_shards_may_come_and_go_in_any_order,
	                                        world_setup_with_election, world_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
