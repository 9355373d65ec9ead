// SPDX-License-Identifier: Apache-2.0
// Goal: the status of an object is patched when something changed and only then, and its Events report transitions
// once.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json/json_read.h"
#include "controller/status/status.h"
#include "controller/status/status_writer.h"
#include "k8s/events/event_recorder.h"
#include "policies/engine/decision.h"
#include "policies/schema/binding.h"
#include "test/fake/k8s_harness.h"
#include "test/support/engine.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"

#define OBJECT_PATH "/apis/gpuscale.dev/v1alpha1/namespaces/serving/gpuautoscalers/llama"

struct world {
	struct harness h;
	struct status_env env;
	struct policy_status *status;
	struct engine e;
	char uid[64];
};

static const struct scale_target target = {"apps/v1", "Deployment", "llama", NULL};

static const char *const object_json =
        "{\"apiVersion\":\"gpuscale.dev/v1alpha1\",\"kind\":\"GPUAutoscaler\",\"metadata\":{\"name\":\"llama\","
        "\"namespace\":\"serving\"},\"spec\":{}}";

// As the server has given it.
static const char *uid_of(struct world *w)
{
	struct outcome o;
	struct err e;
	harness_request(&w->h, "GET", OBJECT_PATH, NULL, NULL, &o);
	cJSON *root = json_read(o.body, strlen(o.body), &e);
	snprintf(w->uid, sizeof w->uid, "%s", json_get_str(json_get(root, "metadata"), "uid", ""));
	cJSON_Delete(root);
	return w->uid;
}

static void world_start(struct world *w)
{
	struct err e = {0};
	memset(w, 0, sizeof *w);
	harness_start(&w->h, NULL);
	harness_start_client(&w->h, 2);
	if (fake_apiserver_put(w->h.server, object_json, &e) < 0)
		fail_msg("%s", e.msg);
	w->env.writer = status_writer_new(w->h.client);
	w->env.events = event_recorder_new(
	        &(struct event_recorder_options){w->h.client, &w->h.clock, "gpuscale", "test-0"}, &e);
	w->status = policy_status_new(&w->env, &(struct status_place){"serving", "llama", uid_of(w), NULL});
	assert_non_null(w->env.writer);
	assert_non_null(w->env.events);
	assert_non_null(w->status);
	engine_init(&w->e, 4);
	engine_add_value(&w->e, "queue", 2);
	engine_start(&w->e);
}

static void world_stop(struct world *w)
{
	policy_status_free(w->status);
	engine_done(&w->e);
	k8s_client_free(w->h.client);
	w->h.client = NULL;
	status_writer_free(w->env.writer);
	event_recorder_free(w->env.events);
	harness_stop(&w->h);
}

// Waits until no request is in flight: a request that is answered after all others shows that.
static void drain(struct world *w)
{
	for (int i = 0; i < 6; i++) {
		struct outcome o;
		harness_request(&w->h, "GET", OBJECT_PATH, NULL, NULL, &o);
	}
}

static void update_with(struct world *w, enum status_phase phase, const char *text)
{
	struct decided decided = {.policy = &w->e.policy, .decision = &w->e.decision};
	policy_status_update(w->status, &(struct status_update){
	                                        .facts = {.phase = phase,
	                                                  .decided = phase <= STATUS_WRITE_FAILED ? &decided : NULL,
	                                                  .text = text,
	                                                  .dry_run = w->e.policy.dry_run,
	                                                  .paused = w->e.policy.paused},
	                                        .binding = &(struct binding){.policy = &w->e.policy, .target = &target},
	                                        .state = w->e.state,
	                                        .generation = 1,
	                                        .now_ms = w->e.now_ms});
}

static void tick(struct world *w, double value)
{
	w->e.now_ms += 15000;
	if (value < 0)
		engine_show_state(&w->e, 0, OBS_EMPTY);
	else
		engine_show(&w->e, 0, value);
	const struct decision *d = engine_tick(&w->e);
	bool writes = d->write;
	engine_apply(&w->e);
	update_with(w, writes ? STATUS_SCALED : STATUS_DECIDED, NULL);
	drain(w);
}

static uint64_t patches(const struct world *w)
{
	return fake_apiserver_count(w->h.server, "patch", "gpuautoscalers/status");
}

static uint64_t events(const struct world *w)
{
	return fake_apiserver_count(w->h.server, "create", "events");
}

static void steady_target_costs_one_patch(void **state)
{
	struct world w;
	world_start(&w);
	for (int i = 0; i < 15; i++)
		tick(&w, 2);
	assert_int_equal(patches(&w), 1);
	assert_int_equal(events(&w), 0);
	assert_string_equal((w.status->error ? w.status->error : ""), "");
	// Signals that move a little.
	for (int i = 0; i < 60; i++)
		tick(&w, i % 2 ? 2.15 : 1.85);
	assert_int_equal(patches(&w), 1);
	world_stop(&w);
}

static void clock_that_is_set_back_puts_nothing_off(void **state)
{
	struct world w;
	world_start(&w);
	w.e.policy.max_replicas = 4; // no scale, but the recommendation changes at every tick
	for (int i = 0; i < 20; i++)
		tick(&w, i % 2 ? 3 : 4);
	uint64_t before = patches(&w);
	w.e.now_ms -= 3600000;
	decide_clock_was_set(&w.e.policy, w.e.state, -3600000);
	policy_status_clock_was_set(w.status, -3600000);
	for (int i = 0; i < 20; i++)
		tick(&w, i % 2 ? 3 : 4);
	if (patches(&w) < before + 4 || patches(&w) > before + 6)
		fail_msg("%d patches in five minutes", (int)(patches(&w) - before));
	world_stop(&w);
}

static void recurring_change_is_reported_once_a_minute(void **state)
{
	struct world w;
	world_start(&w);
	w.e.policy.max_replicas = 4; // no scale, but the recommendation changes at every tick
	for (int i = 0; i < 60; i++)
		tick(&w, i % 2 ? 3 : 4);
	if (patches(&w) < 10 || patches(&w) > 16)
		fail_msg("%d patches in 15 minutes", (int)patches(&w));
	assert_int_equal(events(&w), 1); // TooManyReplicas
	world_stop(&w);
}

static void number_of_unschedulable_replicas_is_followed(void **state)
{
	struct world w;
	world_start(&w);
	w.e.policy.capacity = (struct policy_capacity){CAPACITY_ELASTIC, 3600000, 3600000};
	const int64_t since_ms[4] = {w.e.now_ms, w.e.now_ms, w.e.now_ms, w.e.now_ms};
	for (int i = 0; i < 12; i++) {
		int32_t n = i < 6 ? 3 : 4;
		w.e.seen.capacity =
		        (struct obs_capacity){true, .unschedulable = n, .since_ms = since_ms, .n_since = (size_t)n};
		tick(&w, 2);
	}
	assert_int_equal(patches(&w), 2);
	world_stop(&w);
}

static void reason_why_a_pool_is_held_is_followed(void **state)
{
	struct world w;
	world_start(&w);
	for (int i = 0; i < 12; i++) {
		struct decided decided = {.policy = &w.e.policy,
		                          .decision = &w.e.decision,
		                          .pool = i < 6 ? "its minimums" : "another pool"};
		w.e.now_ms += 15000;
		engine_show(&w.e, 0, 4);
		engine_tick(&w.e);
		decide_grant(&w.e.policy, 4, REASON_POOL_HELD, &w.e.decision);
		policy_status_update(
		        w.status,
		        &(struct status_update){.facts = {.decided = &decided},
		                                .binding = &(struct binding){.policy = &w.e.policy, .target = &target},
		                                .state = w.e.state,
		                                .generation = 1,
		                                .now_ms = w.e.now_ms});
		drain(&w);
	}
	assert_int_equal(patches(&w), 2);
	world_stop(&w);
}

// The decision is the same at each tick.
static void conflict_that_is_seen_or_not_is_written_at_once(void **state)
{
	static const char *const errors[] = {NULL, "cannot list", NULL, NULL};
	static const char *const conflicts[] = {NULL, NULL, NULL, "HorizontalPodAutoscaler serving/llama"};
	struct world w;
	world_start(&w);
	w.e.now_ms += 15000;
	engine_show(&w.e, 0, 1);
	engine_tick(&w.e);
	for (int i = 0; i < 4; i++) {
		struct decided decided = {.policy = &w.e.policy, .decision = &w.e.decision};
		w.e.now_ms += 1000;
		policy_status_update(
		        w.status,
		        &(struct status_update){
		                .facts = {.decided = &decided, .watch_error = errors[i], .conflict = conflicts[i]},
		                .binding = &(struct binding){.policy = &w.e.policy, .target = &target},
		                .state = w.e.state,
		                .now_ms = w.e.now_ms});
		TEST_BECOMES(w.h.loop, patches(&w) == (uint64_t)i + 1);
		drain(&w);
	}
	world_stop(&w);
}

static void scale_is_an_event_at_once_and_one_patch_of_the_next_tick(void **state)
{
	struct world w;
	struct outcome o;
	struct err e;
	world_start(&w);
	tick(&w, 2);
	tick(&w, 3);
	assert_int_equal(patches(&w), 1);
	assert_int_equal(events(&w), 1);
	struct status_writer_stats stats;
	status_writer_get_stats(w.env.writer, &stats);
	assert_int_equal(stats.waiting, 1);
	tick(&w, 1.9);
	assert_int_equal(patches(&w), 2);
	assert_int_equal(events(&w), 1);
	tick(&w, 1.9);
	assert_int_equal(patches(&w), 2);
	harness_request(&w.h, "GET", OBJECT_PATH, NULL, NULL, &o);
	assert_false(o.is_error);
	cJSON *root = json_read(o.body, strlen(o.body), &e);
	const cJSON *status = json_get(root, "status");
	int64_t n;
	assert_int_equal(json_get_i64(status, "currentReplicas", 0, 99, &n, &e), 1);
	assert_int_equal(n, 6);
	assert_string_equal(json_get_str(status, "reason", ""), "DesiredWithinRange");
	assert_non_null(json_get_str(status, "lastScaleTime", NULL));
	cJSON_Delete(root);
	harness_request(&w.h, "GET", "/api/v1/namespaces/serving/events", NULL, NULL, &o);
	assert_non_null(strstr(o.body, "SuccessfulRescale"));
	assert_non_null(strstr(o.body, "scaled from 4 to 6 replicas: queue is 3, above its target 2"));
	world_stop(&w);
}

// "summary current", as the object says.
static void read_shown(struct world *w, char ret_shown[96])
{
	struct outcome o;
	struct err e;
	int64_t n = -1;
	harness_request(&w->h, "GET", OBJECT_PATH, NULL, NULL, &o);
	assert_false(o.is_error);
	cJSON *root = json_read(o.body, strlen(o.body), &e);
	const cJSON *status = json_get(root, "status");
	json_get_i64(status, "currentReplicas", 0, 99, &n, NULL);
	snprintf(ret_shown, 96, "%s %d", json_get_str(status, "signalsSummary", "none"), (int)n);
	cJSON_Delete(root);
}

static void scale_of_a_slow_policy_is_written_at_once_and_after_its_next_tick(void **state)
{
	struct world w;
	char shown[96];
	world_start(&w);
	w.e.policy.interval_ms = STATUS_SOON_MS + 1;
	tick(&w, 2);
	tick(&w, 3);
	read_shown(&w, shown);
	assert_string_equal(shown, "queue 3/2 6"); // what led to it, beside what was ordered
	tick(&w, 1.9);
	read_shown(&w, shown);
	assert_string_equal(shown, "queue 1.9/2 6");
	assert_int_equal(patches(&w), 3);
	for (int i = 0; i < 15; i++)
		tick(&w, i % 2 ? 2.05 : 1.9);
	assert_int_equal(patches(&w), 3); // once
	fake_apiserver_fail(w.h.server, &(struct fake_fault){.next = 1, .status = 422, .verb = "patch"});
	tick(&w, 3);
	assert_int_equal(patches(&w), 4); // in vain
	tick(&w, 1.9);
	read_shown(&w, shown);
	assert_string_equal(shown, "queue 1.9/2 9");
	tick(&w, 1.9);
	assert_int_equal(patches(&w), 5);
	world_stop(&w);
}

static void policy_that_scales_at_every_tick_is_written_at_every_other_one(void **state)
{
	struct world w;
	char shown[96];
	world_start(&w);
	tick(&w, 2);
	for (int i = 0; i < 4; i++)
		tick(&w, 4);
	assert_int_equal(events(&w), 1);
	assert_int_equal(patches(&w), 3);
	read_shown(&w, shown);
	assert_string_equal(shown, "queue 4/2 64");
	world_stop(&w);
}

static void scale_is_written_before_the_process_exits(void **state)
{
	struct world w;
	char shown[96];
	world_start(&w);
	tick(&w, 2);
	tick(&w, 3);
	struct decided decided = {.policy = &w.e.policy, .decision = &w.e.decision};
	policy_status_flush(w.status, &(struct status_update){
	                                      .facts = {.phase = STATUS_SCALED, .decided = &decided},
	                                      .binding = &(struct binding){.policy = &w.e.policy, .target = &target},
	                                      .state = w.e.state,
	                                      .generation = 1,
	                                      .now_ms = w.e.now_ms});
	drain(&w);
	read_shown(&w, shown);
	assert_string_equal(shown, "queue 3/2 6");
	assert_int_equal(patches(&w), 2);
	world_stop(&w);
}

static void on_offered(void *arg, const struct err *error)
{
	(void)error; // these objects do not exist
	*(int *)arg = 1;
}

#define MANY (STATUS_WRITES_BURST + STATUS_QUEUE_MAX + 100)

// Offers a patch of each slot, as the ticks of as many policies do, with `body`.
static void offer(struct world *w, struct status_slot *slots, int *written, const char *body)
{
	char path[128];
	for (int i = 0; i < MANY; i++) {
		if (written[i])
			continue;
		if (status_writer_room(w->env.writer, &slots[i]) == STATUS_ROOM_NONE) {
			status_writer_defer(w->env.writer, &slots[i]);
			continue;
		}
		snprintf(path, sizeof path, "/apis/gpuscale.dev/v1alpha1/namespaces/serving/gpuautoscalers/p%d/status",
		         i);
		status_writer_put(w->env.writer, &slots[i], path, body, on_offered, &written[i]);
	}
}

static uint64_t waiting(const struct world *w)
{
	struct status_writer_stats s;
	status_writer_get_stats(w->env.writer, &s);
	return s.waiting;
}

static void freeze(struct world *w)
{
	int64_t mono_ms = clock_mono_ms(&w->h.clock);
	clock_init_manual(&w->h.clock, clock_wall_ms(&w->h.clock));
	w->h.clock.manual_mono_ms = mono_ms;
}

static void many_statuses_are_paced_and_each_object_is_written_once(void **state)
{
	struct world w;
	struct status_slot slots[MANY] = {0};
	int written[MANY] = {0};
	world_start(&w);
	freeze(&w);
	offer(&w, slots, written, "{\"status\":{\"currentReplicas\":1}}");
	TEST_BECOMES(w.h.loop, patches(&w) == STATUS_WRITES_BURST);
	for (int i = 0; i < 3; i++) { // three more ticks, in no time
		offer(&w, slots, written, "{\"status\":{\"currentReplicas\":2}}");
		test_loop_for(w.h.loop, 2 * STATUS_WRITE_GAP_MS);
	}
	assert_int_equal(patches(&w), STATUS_WRITES_BURST);
	assert_int_equal(waiting(&w), MANY - STATUS_WRITES_BURST);
	clock_advance_ms(&w.h.clock, 3 * STATUS_WRITE_GAP_MS);
	TEST_BECOMES(w.h.loop, patches(&w) == STATUS_WRITES_BURST + 3);
	while (waiting(&w) > 0) {
		clock_advance_ms(&w.h.clock, STATUS_WRITES_BURST * STATUS_WRITE_GAP_MS);
		test_loop_for(w.h.loop, 2 * STATUS_WRITE_GAP_MS);
		offer(&w, slots, written, "{\"status\":{\"currentReplicas\":3}}");
	}
	TEST_BECOMES(w.h.loop, patches(&w) == MANY);
	for (int i = 0; i < MANY; i++)
		status_slot_cancel(&slots[i]);
	world_stop(&w);
}

// It has no tick that would ask for room again.
static void conflict_among_many_is_written(void **state)
{
	struct world w;
	struct status_slot slots[MANY] = {0};
	int written[MANY] = {0};
	struct outcome o;
	world_start(&w);
	freeze(&w);
	offer(&w, slots, written, "{}");
	TEST_BECOMES(w.h.loop, patches(&w) == STATUS_WRITES_BURST);
	offer(&w, slots, written, "{}"); // fills the queue
	policy_status_update(w.status,
	                     &(struct status_update){.facts = {.phase = STATUS_CONFLICT, .text = "an HPA does"},
	                                             .generation = 1,
	                                             .now_ms = w.e.now_ms});
	for (int i = 0; i < MANY; i++) // the others are done
		status_slot_cancel(&slots[i]);
	clock_advance_ms(&w.h.clock, 10 * STATUS_WRITE_GAP_MS);
	TEST_BECOMES(w.h.loop, patches(&w) == STATUS_WRITES_BURST + 1);
	drain(&w);
	harness_request(&w.h, "GET", OBJECT_PATH, NULL, NULL, &o);
	assert_non_null(strstr(o.body, "an HPA does"));
	world_stop(&w);
}

// The status with the signals that led to a scale would be replaced soon.
static void scale_among_many_is_one_patch(void **state)
{
	struct world w;
	struct status_slot slots[MANY] = {0};
	int written[MANY] = {0};
	char shown[96];
	world_start(&w);
	tick(&w, 2);
	assert_int_equal(patches(&w), 1);
	freeze(&w);
	offer(&w, slots, written, "{}");
	TEST_BECOMES(w.h.loop, patches(&w) >= STATUS_WRITES_BURST);
	uint64_t before = patches(&w);
	tick(&w, 3);
	read_shown(&w, shown);
	assert_string_equal(shown, "queue 2/2 4");
	assert_int_equal(events(&w), 1);
	for (int i = 0; i < MANY; i++) // the others are done
		status_slot_cancel(&slots[i]);
	clock_advance_ms(&w.h.clock, 10 * STATUS_WRITE_GAP_MS);
	tick(&w, 1.9);
	read_shown(&w, shown);
	assert_string_equal(shown, "queue 1.9/2 6");
	assert_int_equal(patches(&w), before + 1);
	tick(&w, 1.9);
	assert_int_equal(patches(&w), before + 1);
	world_stop(&w);
}

static void outage_is_one_warning_and_its_end_one_event(void **state)
{
	struct world w;
	struct outcome o;
	world_start(&w);
	tick(&w, 2);
	for (int i = 0; i < 20; i++)
		tick(&w, -1);
	tick(&w, 2);
	assert_int_equal(events(&w), 2);
	assert_int_equal(patches(&w), 3);
	harness_request(&w.h, "GET", "/api/v1/namespaces/serving/events", NULL, NULL, &o);
	assert_non_null(strstr(o.body, "NoData"));
	assert_non_null(strstr(o.body, "SignalsRestored"));
	world_stop(&w);
}

// Replaces the policy by one with an objective, and lets its rules see a demand of 40 replicas for 25 minutes.
static void use_objective(struct world *w, int32_t max_replicas)
{
	struct engine *e = &w->e;
	int64_t now_ms = e->now_ms;
	engine_done(e);
	engine_init(e, 4);
	e->now_ms = now_ms;
	engine_add_replicas(e, "demand")->target = (struct policy_target){0};
	engine_add_replicas(e, "backlog")->target = (struct policy_target){0};
	e->policy.max_replicas = max_replicas;
	e->policy.startup = (struct policy_startup){true, true, 60000};
	e->policy.objective = (struct policy_objective){
	        .set = true, .late_ratio = 0.01, .wait_ms = 10000, .demand_index = 0, .backlog_index = 1};
	engine_start(e);
	for (int i = 0; i < 100; i++, e->now_ms += 15000) {
		engine_show(e, 0, 40);
		engine_show(e, 1, 100);
		engine_tick(e);
		engine_apply(e);
	}
}

static void tick_objective(struct world *w)
{
	w->e.now_ms += 15000;
	engine_show(&w->e, 0, 40);
	engine_show(&w->e, 1, 100);
	engine_tick(&w->e);
	engine_apply(&w->e);
	update_with(w, STATUS_DECIDED, NULL);
	drain(w);
}

static size_t count_of(struct world *w, const char *path, const char *text)
{
	struct outcome o;
	size_t n = 0;
	harness_request(&w->h, "GET", path, NULL, NULL, &o);
	for (const char *at = o.body; (at = strstr(at, text)); at++)
		n++;
	return n;
}

static void objective_out_of_reach_is_one_warning_and_its_end_one_event(void **state)
{
	static const char path[] = "/api/v1/namespaces/serving/events";
	struct world w;
	world_start(&w);
	use_objective(&w, 5);
	for (int i = 0; i < 4; i++)
		tick_objective(&w);
	assert_int_equal(count_of(&w, path, "\"reason\":\"ObjectiveNotReachable\""), 1);
	assert_int_equal(count_of(&w, path, "replicas would keep it"), 1);
	w.e.policy.max_replicas = 1000;
	for (int i = 0; i < 4; i++)
		tick_objective(&w);
	assert_int_equal(count_of(&w, path, "\"reason\":\"ObjectiveNotReachable\""), 1);
	assert_int_equal(count_of(&w, path, "\"reason\":\"ObjectiveReachable\""), 1);
	world_stop(&w);
}

static void record_of_a_removed_objective_is_cleared(void **state)
{
	struct world w;
	world_start(&w);
	use_objective(&w, 1000);
	tick_objective(&w);
	assert_int_equal(count_of(&w, OBJECT_PATH, "\"objectiveRecord\":\""), 1);
	engine_done(&w.e);
	engine_init(&w.e, 4);
	w.e.now_ms += 100 * 15000 + 3600000;
	engine_add_value(&w.e, "queue", 2);
	engine_start(&w.e);
	tick(&w, 2);
	assert_int_equal(count_of(&w, OBJECT_PATH, "objectiveRecord"), 0);
	world_stop(&w);
}

static void failed_patch_is_made_again(void **state)
{
	struct world w;
	world_start(&w);
	fake_apiserver_fail(w.h.server, &(struct fake_fault){.next = 1, .status = 500, .verb = "patch"});
	tick(&w, 2);
	assert_non_null(strstr((w.status->error ? w.status->error : ""), "500"));
	tick(&w, 2);
	assert_string_equal((w.status->error ? w.status->error : ""), "");
	assert_int_equal(patches(&w), 2);
	tick(&w, 2);
	assert_int_equal(patches(&w), 2);
	world_stop(&w);
}

static void flapping_is_counted_on_one_event(void **state)
{
	struct world w;
	struct outcome o;
	world_start(&w);
	for (int i = 0; i < 16; i++) {
		tick(&w, 2);
		tick(&w, -1);
	}
	assert_int_equal(events(&w), 2); // NoData, SignalsRestored; the rest is their count
	if (fake_apiserver_count(w.h.server, "patch", "events") > EVENT_OBJECT_BURST)
		fail_msg("%d patches of events", (int)fake_apiserver_count(w.h.server, "patch", "events"));
	harness_request(&w.h, "GET", "/api/v1/namespaces/serving/events", NULL, NULL, &o);
	assert_null(strstr(o.body, "\"count\":1,"));
	world_stop(&w);
}

// The target of a conflicting autoscaler is not read: no older numbers, but the decisions, which have their times.
static void many_objects_of_one_take_no_event_from_another(void **state)
{
	struct world w;
	char uid[32];
	struct event_recorder_stats before, after;
	const struct event_object mine = {"v1", "Pod", "prod", "web", "mine"};
	(void)state;
	world_start(&w);
	for (int i = 0; i < EVENT_SERIES_MAX; i++) {
		snprintf(uid, sizeof uid, "u%d", i);
		const struct event_object theirs = {"v1", "Pod", "ns", "x", uid};
		event_recorder_record(w.env.events, &theirs, "Normal", "Reason", "x");
		if (i % 1024 == 1023)
			drain(&w);
	}
	event_recorder_get_stats(w.env.events, &before);
	event_recorder_record(w.env.events, &mine, "Normal", "Reason", "x");
	event_recorder_get_stats(w.env.events, &after);
	assert_int_equal(after.dropped, before.dropped);
	drain(&w);
	world_stop(&w);
}

// A crowd of Events takes few requests at a time, and an Event that is repeated while it waits is still one request.
static void crowd_of_events_waits_for_a_few_requests(void **state)
{
	struct world w;
	enum { CROWD = 3 * EVENT_SENDING_MAX };
	struct event_recorder_stats stats;
	(void)state;
	world_start(&w);
	for (int i = 0; i < 2 * CROWD; i++) { // each of them twice, before the loop sends any
		char uid[32];
		snprintf(uid, sizeof uid, "u%d", i % CROWD);
		const struct event_object pod = {"v1", "Pod", "serving", "x", uid};
		event_recorder_record(w.env.events, &pod, "Normal", "Reason", "x");
	}
	TEST_BECOMES(w.h.loop,
	             (event_recorder_get_stats(w.env.events, &stats), stats.written == CROWD + EVENT_SENDING_MAX));
	drain(&w);
	assert_int_equal(events(&w), CROWD);
	// Only those whose first request was in flight have a second one, which counts.
	assert_int_equal(fake_apiserver_count(w.h.server, "patch", "events"), EVENT_SENDING_MAX);
	assert_int_equal(stats.dropped + stats.failed, 0);
	world_stop(&w);
}

static void conflict_does_not_wipe_what_was_decided(void **state)
{
	struct world w;
	struct outcome o;
	world_start(&w);
	tick(&w, 3);
	policy_status_free(w.status); // another process, or a target that was given up: nothing is known of the past
	w.status = policy_status_new(&w.env, &(struct status_place){"serving", "llama", uid_of(&w), NULL});
	w.e.now_ms += 15000;
	struct status_update u = {.facts = {.phase = STATUS_CONFLICT, .text = "HorizontalPodAutoscaler serving/llama"},
	                          .now_ms = w.e.now_ms};
	policy_status_update(w.status, &u);
	drain(&w);
	harness_request(&w.h, "GET", OBJECT_PATH, NULL, NULL, &o);
	assert_non_null(strstr(o.body, "DrivenByAnother"));
	assert_non_null(strstr(o.body, "queue is 3, above its target 2"));
	static const char *const gone[] = {"currentReplicas", "desiredReplicas", "readyReplicas",
	                                   "signalsSummary",  "\"signals\"",     "\"action\":\"None"};
	for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++)
		if (strstr(o.body, gone[i]))
			fail_msg("an earlier %s is reported", gone[i]);
	assert_non_null(strstr(o.body, "lastScaleTime"));
	assert_false(w.status->is_recorded); // the next scale has nothing to be compared with
	tick(&w, 1.9);
	char shown[96];
	read_shown(&w, shown);
	assert_string_equal(shown, "queue 1.9/2 6");
	assert_true(w.status->is_recorded);
	world_stop(&w);
}

static void policy_removed_with_a_patch_in_flight_is_freed(void **state)
{
	struct world w;
	world_start(&w);
	w.e.now_ms += 15000;
	engine_show(&w.e, 0, 2);
	engine_tick(&w.e);
	update_with(&w, STATUS_DECIDED, NULL);
	policy_status_free(w.status);
	w.status = NULL;
	drain(&w);
	world_stop(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(steady_target_costs_one_patch),
	        cmocka_unit_test(recurring_change_is_reported_once_a_minute),
	        cmocka_unit_test(clock_that_is_set_back_puts_nothing_off),
	        cmocka_unit_test(number_of_unschedulable_replicas_is_followed),
	        cmocka_unit_test(reason_why_a_pool_is_held_is_followed),
	        cmocka_unit_test(conflict_that_is_seen_or_not_is_written_at_once),
	        cmocka_unit_test(scale_is_an_event_at_once_and_one_patch_of_the_next_tick),
	        cmocka_unit_test(scale_of_a_slow_policy_is_written_at_once_and_after_its_next_tick),
	        cmocka_unit_test(policy_that_scales_at_every_tick_is_written_at_every_other_one),
	        cmocka_unit_test(scale_is_written_before_the_process_exits),
	        cmocka_unit_test(many_statuses_are_paced_and_each_object_is_written_once),
	        cmocka_unit_test(conflict_among_many_is_written),
	        cmocka_unit_test(scale_among_many_is_one_patch),
	        cmocka_unit_test(outage_is_one_warning_and_its_end_one_event),
	        cmocka_unit_test(objective_out_of_reach_is_one_warning_and_its_end_one_event),
	        cmocka_unit_test(record_of_a_removed_objective_is_cleared),
	        cmocka_unit_test(failed_patch_is_made_again),
	        cmocka_unit_test(flapping_is_counted_on_one_event),
	        cmocka_unit_test(many_objects_of_one_take_no_event_from_another),
	        cmocka_unit_test(crowd_of_events_waits_for_a_few_requests),
	        cmocka_unit_test(conflict_does_not_wipe_what_was_decided),
	        cmocka_unit_test(policy_removed_with_a_patch_in_flight_is_freed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
