// SPDX-License-Identifier: Apache-2.0
// Goal of this test: stabilization and rate limits are those of the HPA, value by value and reason by reason.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/json/json_read.h"
#include "test/support/engine.h"

#define SAMPLE_PATH       "test/unit/hpa-rate-sample.jsonl"
#define SAMPLE_ROWS       30
#define SAMPLE_LINE_BYTES 4096

// ---- the published sample: 30 calls of the rate stage ----

static int32_t number_in(const cJSON *o, const char *key)
{
	const cJSON *v = json_get(o, key);
	assert_true(cJSON_IsNumber(v));
	return (int32_t)v->valuedouble;
}

static void add_rates(struct engine *e, int direction, const cJSON *list)
{
	const cJSON *row;
	cJSON_ArrayForEach(row, list)
	{
		const char *type = cJSON_GetArrayItem(row, 0)->valuestring;
		assert_true(strcmp(type, "Pods") == 0 || strcmp(type, "Percent") == 0);
		engine_add_rate(e, direction, strcmp(type, "Pods") == 0 ? RATE_PODS : RATE_PERCENT,
		                (int32_t)cJSON_GetArrayItem(row, 1)->valuedouble,
		                (int64_t)(cJSON_GetArrayItem(row, 2)->valuedouble * 1000));
	}
}

struct event {
	int64_t ago_ms;
	int32_t change;
};

static size_t read_events(struct event *out, size_t n, const cJSON *list, int direction)
{
	const cJSON *row;
	cJSON_ArrayForEach(row, list)
	{
		out[n++] = (struct event){(int64_t)(-cJSON_GetArrayItem(row, 0)->valuedouble * 1000),
		                          direction * (int32_t)cJSON_GetArrayItem(row, 1)->valuedouble};
		assert_true(n < 32);
	}
	return n;
}

static int older_first(const void *a, const void *b)
{
	int64_t x = ((const struct event *)a)->ago_ms, y = ((const struct event *)b)->ago_ms;
	return (x < y) - (x > y);
}

static void check_row(const cJSON *row, int line)
{
	struct engine e;
	engine_init(&e, number_in(row, "current"));
	e.policy.min_replicas = number_in(row, "min");
	e.policy.max_replicas = number_in(row, "max");
	add_rates(&e, +1, json_get(row, "upPolicies"));
	add_rates(&e, -1, json_get(row, "downPolicies"));
	engine_add_replicas(&e, "desired");
	engine_start(&e);
	struct event events[32];
	size_t n = read_events(events, 0, json_get(row, "upEvents"), +1);
	n = read_events(events, n, json_get(row, "downEvents"), -1);
	qsort(events, n, sizeof events[0], older_first);
	for (size_t i = 0; i < n; i++)
		decide_record_scale(&e.policy, e.state, e.now_ms - events[i].ago_ms, 100, 100 + events[i].change);
	engine_show(&e, 0, number_in(row, "desired"));
	const struct decision *d = engine_tick(&e);
	const char *reason = json_get_str(row, "reason", "");
	if (d->desired != number_in(row, "expected") || strcmp(reason_info(d->reason)->name, reason) != 0)
		fail_msg("row %d: %d %s, must be %d %s", line, d->desired, reason_info(d->reason)->name,
		         number_in(row, "expected"), reason);
	engine_done(&e);
}

static void sample_of_the_rate_stage_comes_out_row_by_row(void **state)
{
	FILE *f = fopen(SAMPLE_PATH, "re");
	assert_non_null(f);
	char line[SAMPLE_LINE_BYTES];
	int n = 0;
	while (fgets(line, sizeof line, f)) {
		struct err err;
		cJSON *row = json_read(line, strlen(line), &err);
		assert_non_null(row);
		check_row(row, ++n);
		cJSON_Delete(row);
	}
	fclose(f);
	assert_int_equal(n, SAMPLE_ROWS);
}

// ---- limits the sample does not cover ----

struct rate {
	int type;
	int32_t value, period_s;
};

struct rate_row {
	int32_t min, max, current, desired;
	int up_select, down_select;
	struct rate up[3], down[3]; // value 0 ends the list; an empty one: the HPA's defaults
	int32_t events[4][2];       // seconds ago, change; 0 ends the list
	int32_t want;
	const char *reason;
};

#define MAX     SELECT_MAX
#define MIN     SELECT_MIN
#define OFF     SELECT_DISABLED
#define PODS    RATE_PODS
#define PERCENT RATE_PERCENT

static const struct rate_row rate_rows[] = {
        // defaults are the HPA's: up 4 pods or 100 % in 15 s, whichever is more; down 100 % in 15 s
        {1, 1000, 1, 100, MAX, MAX, {{0}}, {{0}}, {{0}}, 5, "ScaleUpLimit"},
        {1, 1000, 10, 100, MAX, MAX, {{0}}, {{0}}, {{0}}, 20, "ScaleUpLimit"},
        {1, 1000, 10, 20, MAX, MAX, {{0}}, {{0}}, {{0}}, 20, "DesiredWithinRange"},
        {1, 1000, 10, 1, MAX, MAX, {{0}}, {{0}}, {{0}}, 1, "DesiredWithinRange"},
        {1, 1000, 20, 100, MAX, MAX, {{0}}, {{0}}, {{10, 10}}, 20, "ScaleUpLimit"},
        {1, 1000, 20, 100, MAX, MAX, {{0}}, {{0}}, {{15, 10}}, 40, "ScaleUpLimit"},
        {1, 1000, 3, 100, MIN, MAX, {{0}}, {{0}}, {{0}}, 6, "ScaleUpLimit"},
        // select Min takes the smallest change
        {1, 1000, 10, 100, MIN, MAX, {{PODS, 3, 60}, {PERCENT, 100, 60}}, {{0}}, {{0}}, 13, "ScaleUpLimit"},
        {1, 1000, 10, 100, MAX, MAX, {{PODS, 3, 60}, {PERCENT, 100, 60}}, {{0}}, {{0}}, 20, "ScaleUpLimit"},
        {1, 1000, 100, 1, MAX, MIN, {{0}}, {{PODS, 3, 60}, {PERCENT, 50, 60}}, {{0}}, 97, "ScaleDownLimit"},
        {1, 1000, 100, 1, MAX, MAX, {{0}}, {{PODS, 3, 60}, {PERCENT, 50, 60}}, {{0}}, 50, "ScaleDownLimit"},
        {1, 1000, 4, 1, MAX, MIN, {{0}}, {{PODS, 3, 60}, {PERCENT, 50, 60}}, {{0}}, 2, "ScaleDownLimit"},
        // Disabled keeps the scale, under the HPA's name; the other direction goes on
        {1, 1000, 10, 100, OFF, MAX, {{PODS, 3, 60}}, {{0}}, {{0}}, 10, "ScaleUpLimit"},
        {1, 1000, 10, 1, OFF, MAX, {{0}}, {{0}}, {{0}}, 1, "DesiredWithinRange"},
        {1, 1000, 10, 1, MAX, OFF, {{0}}, {{0}}, {{0}}, 10, "ScaleDownLimit"},
        {1, 10, 10, 100, OFF, MAX, {{0}}, {{0}}, {{0}}, 10, "TooManyReplicas"},
        {10, 100, 10, 1, MAX, OFF, {{0}}, {{0}}, {{0}}, 10, "TooFewReplicas"},
        // an event as old as the period does not count; one a second younger does
        {1, 1000, 20, 100, MAX, MAX, {{PODS, 5, 60}}, {{0}}, {{60, 5}}, 25, "ScaleUpLimit"},
        {1, 1000, 20, 100, MAX, MAX, {{PODS, 5, 60}}, {{0}}, {{59, 5}}, 20, "ScaleUpLimit"},
        {1, 1000, 20, 1, MAX, MAX, {{0}}, {{PODS, 5, 60}}, {{60, -5}}, 15, "ScaleDownLimit"},
        {1, 1000, 20, 1, MAX, MAX, {{0}}, {{PODS, 5, 60}}, {{59, -5}}, 20, "ScaleDownLimit"},
        // changes both ways count in both directions
        {1, 1000, 20, 100, MAX, MAX, {{PODS, 5, 60}}, {{0}}, {{30, 5}, {10, -3}}, 23, "ScaleUpLimit"},
        {1, 1000, 20, 1, MAX, MAX, {{0}}, {{PODS, 5, 60}}, {{30, 5}, {10, -3}}, 13, "ScaleDownLimit"},
        // each policy looks back over its own period
        {1, 1000, 20, 100, MAX, MAX, {{PODS, 5, 15}, {PODS, 8, 120}}, {{0}}, {{60, 6}}, 25, "ScaleUpLimit"},
        {1, 1000, 20, 100, MIN, MAX, {{PODS, 5, 15}, {PODS, 8, 120}}, {{0}}, {{60, 6}}, 22, "ScaleUpLimit"},
        // a limit on the wrong side of the present scale becomes the present scale
        {1, 1000, 20, 100, MAX, MAX, {{PODS, 5, 60}}, {{0}}, {{30, 15}}, 20, "ScaleUpLimit"},
        {1, 1000, 20, 1, MAX, MAX, {{0}}, {{PODS, 5, 60}}, {{30, -15}}, 20, "ScaleDownLimit"},
        // percent: up rounds up, down truncates, in doubles
        {1, 1000, 3, 100, MAX, MAX, {{PERCENT, 10, 60}}, {{0}}, {{0}}, 4, "ScaleUpLimit"},
        {1, 1000, 100, 1000, MAX, MAX, {{PERCENT, 10, 60}}, {{0}}, {{0}}, 111, "ScaleUpLimit"},
        {1, 1000, 3, 1, MAX, MAX, {{0}}, {{PERCENT, 10, 60}}, {{0}}, 2, "ScaleDownLimit"},
        {1, 1000, 5, 1, MAX, MAX, {{0}}, {{PERCENT, 50, 60}}, {{0}}, 2, "ScaleDownLimit"},
        {1, 1000, 5, 1, MAX, MAX, {{0}}, {{PERCENT, 200, 60}}, {{0}}, 1, "DesiredWithinRange"},
        // equal limits: the bound takes the blame
        {1, 20, 10, 100, MAX, MAX, {{PODS, 10, 60}}, {{0}}, {{0}}, 20, "TooManyReplicas"},
        {1, 21, 10, 100, MAX, MAX, {{PODS, 10, 60}}, {{0}}, {{0}}, 20, "ScaleUpLimit"},
        {5, 100, 10, 1, MAX, MAX, {{0}}, {{PODS, 5, 60}}, {{0}}, 5, "TooFewReplicas"},
        {4, 100, 10, 1, MAX, MAX, {{0}}, {{PODS, 5, 60}}, {{0}}, 5, "ScaleDownLimit"},
        // nothing wanted, nothing limited
        {1, 100, 10, 10, OFF, OFF, {{0}}, {{0}}, {{5, 3}}, 10, "DesiredWithinRange"},
        // numbers at the end of int32
        {1,
         INT32_MAX,
         2000000000,
         INT32_MAX,
         MAX,
         MAX,
         {{PERCENT, 100, 60}},
         {{0}},
         {{0}},
         INT32_MAX,
         "DesiredWithinRange"},
        {1, INT32_MAX, 10, 100, MAX, MAX, {{PODS, INT32_MAX, 60}}, {{0}}, {{0}}, 100, "DesiredWithinRange"},
        {0, INT32_MAX, 10, 0, MAX, MAX, {{0}}, {{PODS, INT32_MAX, 60}}, {{0}}, 0, "DesiredWithinRange"},
};

static void each_rate_row_is_limited_as_by_the_hpa(void **state)
{
	for (size_t i = 0; i < sizeof rate_rows / sizeof rate_rows[0]; i++) {
		const struct rate_row *r = &rate_rows[i];
		struct engine e;
		engine_init(&e, r->current);
		e.policy.min_replicas = r->min;
		e.policy.max_replicas = r->max;
		e.policy.scale_up.select = r->up_select;
		e.policy.scale_down.select = r->down_select;
		e.policy.scale_up.n_rates = e.policy.scale_down.n_rates = 0;
		for (int k = 0; k < 3 && r->up[k].value; k++)
			engine_add_rate(&e, +1, r->up[k].type, r->up[k].value, r->up[k].period_s * 1000);
		for (int k = 0; k < 3 && r->down[k].value; k++)
			engine_add_rate(&e, -1, r->down[k].type, r->down[k].value, r->down[k].period_s * 1000);
		engine_add_replicas(&e, "desired");
		engine_start(&e);
		for (int k = 0; k < 4 && r->events[k][0]; k++)
			decide_record_scale(&e.policy, e.state, e.now_ms - r->events[k][0] * 1000, 50,
			                    50 + r->events[k][1]);
		engine_show(&e, 0, r->desired);
		const struct decision *d = engine_tick(&e);
		if (d->desired != r->want || strcmp(reason_info(d->reason)->name, r->reason) != 0)
			fail_msg("row %zu: %d %s, must be %d %s", i, d->desired, reason_info(d->reason)->name, r->want,
			         r->reason);
		engine_done(&e);
	}
}

static void disabled_direction_is_named_in_the_trace(void **state)
{
	struct engine e;
	engine_init(&e, 10);
	e.policy.scale_up.select = SELECT_DISABLED;
	engine_add_replicas(&e, "desired");
	engine_start(&e);
	engine_show(&e, 0, 20);
	engine_tick(&e);
	assert_non_null(engine_find(&e, REASON_SCALE_UP_DISABLED));
	assert_int_equal(e.decision.entries[e.decision.driver].reason, REASON_SCALE_UP_DISABLED);
	assert_int_equal(e.decision.reason, REASON_SCALE_UP_LIMIT);
	assert_int_equal(e.decision.action, ACTION_NONE);
	engine_done(&e);
}

// ---- stabilization ----

struct stabilization_row {
	int32_t up_s, down_s;
	int32_t past[5][2]; // seconds ago, recommendation; 0 ago ends the list
	int32_t current, desired, want;
	enum reason reason;
	int32_t left_s; // until the recommendation that held it leaves; 0 = not held
};

#define NOT_LIMITED REASON_DESIRED_WITHIN_RANGE
#define UP          REASON_SCALE_UP_STABILIZED
#define DOWN        REASON_SCALE_DOWN_STABILIZED

static const struct stabilization_row stabilization_rows[] = {
        {0, 0, {{5, 100}}, 10, 3, 3, NOT_LIMITED, 0},
        {0, 300, {{5, 10}}, 10, 3, 10, DOWN, 295},
        {0, 300, {{299, 10}}, 10, 3, 10, DOWN, 1},
        {0, 300, {{300, 10}}, 10, 3, 3, NOT_LIMITED, 0}, // strictly newer than the window
        {0, 300, {{200, 8}, {100, 5}}, 10, 3, 8, DOWN, 100},
        {0, 300, {{200, 5}, {100, 8}, {50, 4}}, 10, 3, 8, DOWN, 200},
        {0, 300, {{200, 8}, {100, 8}}, 10, 3, 8, DOWN, 200}, // equals: the newest leaves last
        {0, 300, {{200, 2}}, 10, 3, 3, NOT_LIMITED, 0},
        {0, 300, {{200, 15}}, 10, 3, 10, DOWN, 100},      // above the present scale: stays
        {0, 300, {{200, 5}}, 10, 20, 20, NOT_LIMITED, 0}, // up is not held by the window of down
        {60, 0, {{30, 12}}, 10, 20, 12, UP, 30},
        {60, 0, {{30, 5}}, 10, 20, 10, UP, 30},
        {60, 0, {{60, 5}}, 10, 20, 20, NOT_LIMITED, 0},
        {60, 0, {{30, 30}}, 10, 20, 20, NOT_LIMITED, 0},
        {60, 0, {{50, 14}, {30, 12}, {10, 16}}, 10, 20, 12, UP, 30},
        {60, 300, {{30, 12}, {200, 30}}, 10, 20, 12, UP, 30},
        {60, 300, {{200, 8}, {30, 12}}, 10, 5, 10, DOWN, 270},
        {3600, 3600, {{3599, 10}}, 10, 3, 10, DOWN, 1},
        {300, 300, {{100, 10}}, 10, 10, 10, NOT_LIMITED, 0},
};

static void each_stabilization_row_is_held_as_by_the_hpa(void **state)
{
	for (size_t i = 0; i < sizeof stabilization_rows / sizeof stabilization_rows[0]; i++) {
		const struct stabilization_row *r = &stabilization_rows[i];
		struct engine e;
		engine_init(&e, r->current);
		e.policy.scale_up.stabilization_window_ms = r->up_s * 1000;
		e.policy.scale_down.stabilization_window_ms = r->down_s * 1000;
		engine_add_replicas(&e, "desired");
		engine_start(&e);
		int32_t order[5] = {0}, n = 0;
		while (n < 5 && r->past[n][0])
			order[n] = n, n++;
		for (int32_t a = 0; a < n; a++) // oldest first
			for (int32_t b = a + 1; b < n; b++)
				if (r->past[order[b]][0] > r->past[order[a]][0]) {
					int32_t t = order[a];
					order[a] = order[b];
					order[b] = t;
				}
		for (int32_t k = 0; k < n; k++)
			decide_record_recommendation(&e.policy, e.state, e.now_ms - r->past[order[k]][0] * 1000,
			                             r->past[order[k]][1]);
		engine_show(&e, 0, r->desired);
		const struct decision *d = engine_tick(&e);
		if (d->desired != r->want || d->reason != r->reason)
			fail_msg("row %zu: %d %s, must be %d %s", i, d->desired, reason_info(d->reason)->name, r->want,
			         reason_info(r->reason)->name);
		if (r->left_s)
			assert_int_equal(d->entries[d->driver].duration_ms, r->left_s * 1000);
		engine_done(&e);
	}
}

static void first_tick_seeds_the_history_with_the_present_scale(void **state)
{
	struct engine e;
	engine_init(&e, 10);
	e.policy.scale_down.stabilization_window_ms = 300000;
	engine_add_replicas(&e, "desired");
	engine_start(&e);
	engine_show(&e, 0, 3);
	for (int i = 0; i < 20; i++, e.now_ms += 15000) {
		assert_int_equal(engine_tick(&e)->desired, 10);
		assert_int_equal(e.decision.reason, REASON_SCALE_DOWN_STABILIZED);
	}
	assert_int_equal(engine_tick(&e)->desired, 3); // 300 s later the seed is outside
	engine_done(&e);
}

static void unstabilized_proposal_enters_the_history(void **state)
{
	struct engine e;
	engine_init(&e, 10);
	e.policy.scale_down.stabilization_window_ms = 60000;
	engine_add_replicas(&e, "desired");
	engine_start(&e);
	// 8 is proposed while 10 holds. Were 10 recorded, it would never end.
	engine_show(&e, 0, 8);
	for (int i = 0; i < 4; i++, e.now_ms += 15000)
		assert_int_equal(engine_tick(&e)->desired, 10);
	assert_int_equal(engine_tick(&e)->desired, 8);
	engine_done(&e);
}

static void hold_leaves_the_history_alone(void **state)
{
	struct engine e;
	engine_init(&e, 10);
	e.policy.scale_down.stabilization_window_ms = 60000;
	engine_add_replicas(&e, "desired");
	engine_start(&e);
	engine_show(&e, 0, 8);
	engine_tick(&e); // seed 10, then 8
	engine_show_state(&e, 0, OBS_FAILED);
	for (int i = 0; i < 10; i++) {
		e.now_ms += 15000;
		assert_int_equal(engine_tick(&e)->action, ACTION_HOLD);
	}
	engine_show(&e, 0, 5);
	e.now_ms += 15000;
	assert_int_equal(engine_tick(&e)->desired, 5); // the outage put no 10 into the window (HPA)
	engine_done(&e);
}

// Stabilization over a long random trace, held against every recommendation ever made.
#define TRACE_TICKS 4000

static void stabilization_equals_a_full_history(void **state)
{
	static const struct {
		int64_t up_ms, down_ms, interval_ms, step_ms;
	} rows[] = {
	        {0, 300000, 15000, 15000},
	        {60000, 300000, 15000, 15000},
	        {300000, 60000, 15000, 5000},
	        {3600000, 3600000, 15000, 15000},
	};
	int32_t(*all)[TRACE_TICKS] = calloc(1, sizeof *all);
	assert_non_null(all);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct engine e;
		engine_init(&e, 10);
		e.policy.interval_ms = rows[i].interval_ms;
		e.policy.scale_up.stabilization_window_ms = rows[i].up_ms;
		e.policy.scale_down.stabilization_window_ms = rows[i].down_ms;
		engine_add_replicas(&e, "desired");
		engine_start(&e);
		uint64_t seed = 0x9e3779b97f4a7c15u + i;
		int64_t start_ms = e.now_ms;
		for (int n = 0; n < TRACE_TICKS; n++, e.now_ms += rows[i].step_ms) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			int32_t desired = 5 + (int32_t)((seed >> 33) % 12);
			int32_t up = desired, down = desired, current = e.seen.spec_replicas;
			for (int k = -1; k < n; k++) { // -1 is the seed: 10 at the first tick
				int64_t at_ms = start_ms + (k < 0 ? 0 : k) * rows[i].step_ms;
				int32_t rec = k < 0 ? 10 : (*all)[k];
				if (at_ms > e.now_ms - rows[i].up_ms && rec < up)
					up = rec;
				if (at_ms > e.now_ms - rows[i].down_ms && rec > down)
					down = rec;
			}
			int32_t want = current < up ? up : current;
			want = want > down ? down : want;
			(*all)[n] = desired;
			engine_show(&e, 0, desired);
			if (engine_tick(&e)->desired != want)
				fail_msg("row %zu, tick %d: %d, must be %d", i, n, e.decision.desired, want);
			engine_apply(&e);
		}
		engine_done(&e);
	}
	free(all);
}

static void history_without_room_forgets_nothing_inside_the_window(void **state)
{
	// 3600 different recommendations in a window with room for 256: the extreme may be kept a little too long,
	// never let go too early.
	struct engine e;
	engine_init(&e, 500);
	e.policy.interval_ms = 1000;
	e.policy.scale_down.stabilization_window_ms = 3600000;
	engine_add_replicas(&e, "desired");
	engine_start(&e);
	int64_t peak_ms = 0, released_ms = 0;
	for (int n = 0; n < 9000 && !released_ms; n++, e.now_ms += 1000) {
		bool is_peak = n == 1000;
		engine_show(&e, 0, is_peak ? 500 : 100 + n % 7);
		peak_ms = is_peak ? e.now_ms : peak_ms;
		if (engine_tick(&e)->desired < 500)
			released_ms = e.now_ms;
	}
	assert_true(released_ms >= peak_ms + 3600000);
	assert_true(released_ms <= peak_ms + 3600000 + 60000);
	engine_done(&e);
}

static void events_without_room_keep_their_sum(void **state)
{
	struct engine e;
	engine_init(&e, 1000);
	e.policy.max_replicas = 100000;
	e.policy.interval_ms = 60000;
	engine_add_rate(&e, +1, RATE_PODS, 5000, 1800000);
	engine_add_replicas(&e, "desired");
	engine_start(&e);
	int64_t start_ms = e.now_ms;
	for (int n = 0; n < 1000; n++)
		decide_record_scale(&e.policy, e.state, start_ms + n * 1000, 1000, 1001);
	e.now_ms = start_ms + 1000000;
	engine_show(&e, 0, 90000);
	assert_int_equal(engine_tick(&e)->desired, 1000 - 1000 + 5000); // all 1000 events are inside
	e.now_ms = start_ms + 2900000;
	assert_int_equal(engine_tick(&e)->desired, 1000 + 5000); // all are outside
	engine_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(sample_of_the_rate_stage_comes_out_row_by_row),
	        cmocka_unit_test(each_rate_row_is_limited_as_by_the_hpa),
	        cmocka_unit_test(disabled_direction_is_named_in_the_trace),
	        cmocka_unit_test(each_stabilization_row_is_held_as_by_the_hpa),
	        cmocka_unit_test(first_tick_seeds_the_history_with_the_present_scale),
	        cmocka_unit_test(unstabilized_proposal_enters_the_history),
	        cmocka_unit_test(hold_leaves_the_history_alone),
	        cmocka_unit_test(stabilization_equals_a_full_history),
	        cmocka_unit_test(history_without_room_forgets_nothing_inside_the_window),
	        cmocka_unit_test(events_without_room_keep_their_sum),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
