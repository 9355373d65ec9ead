// SPDX-License-Identifier: Apache-2.0
// Whole backtests on random demand: the clairvoyant row is cheaper than every fixed count that keeps the objective, in
// an hour as in days, no row serves more than it pays for, equal inputs give equal results, a gap leaves the policy
// without data, and what ran is scored only where it is recorded.
#include <math.h>
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
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"
#include "replay/world.h"
#include "test/support/engine.h"

#define SEEDS 2

static double draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*state >> 11) / 9007199254740992.0;
}

// An hour of levels between 0 and 10 in rows of 15 s; with `gap`, none between minutes 20 and 30.
static void make_recording(uint64_t seed, bool gap, struct recording *ret)
{
	struct buf text;
	struct err e;
	double level = 3;
	buf_init(&text, 1 << 20);
	buf_puts(&text, "time,demand\n");
	for (int i = 0; i < 240; i++) {
		if (draw(&seed) < 0.05)
			level = 10 * draw(&seed);
		if (!gap || i < 80 || i >= 120)
			buf_printf(&text, "%d,%.3f\n", 15 * i, level * (0.7 + 0.6 * draw(&seed)));
	}
	if (recording_parse(buf_str(&text), text.len, "f.csv", ret, &e) < 0)
		fail_msg("%s", e.msg);
	buf_done(&text);
}

static void run(const struct backtest_config *config, const struct policy *policy, const struct recording *r,
                struct backtest *ret)
{
	struct err e;
	if (backtest_run(config, policy, r, "f.csv", ret, &e) < 0)
		fail_msg("%s", e.msg);
}

static const struct backtest_config plain = {.per_replica = 1, .late_ratio = 0.01, .wait_s = 10};

static void make_policy(struct engine *en)
{
	engine_init(en, 1);
	engine_add_value(en, "utilization", 0.6);
	en->policy.min_replicas = 1;
	en->policy.max_replicas = 20;
}

static void bound_is_cheaper_than_every_fixed_count(void **state)
{
	(void)state;
	struct engine en;
	make_policy(&en);
	struct backtest *b = calloc(2, sizeof *b);
	assert_non_null(b);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct recording r;
		struct backtest_config config = plain;
		make_recording(seed, seed % 2, &r);
		config.n_fixed = 12;
		for (int32_t i = 0; i < 12; i++)
			config.fixed[i] = i + 1;
		config.replicas = 10;
		run(&config, &en.policy, &r, &b[0]);
		run(&config, &en.policy, &r, &b[1]);
		const struct score *bound = &b[0].rows[b[0].n_rows - 1].score;
		assert_int_equal(b[0].rows[b[0].n_rows - 1].kind, BACKTEST_BOUND);
		assert_true(b[0].bound_reached == !(score_late_percent(bound) > 1));
		for (size_t i = 0; i < b[0].n_rows; i++) {
			const struct backtest_row *row = &b[0].rows[i];
			assert_true(row->score.replica_s > 0.5 * b[0].demand.total ||
			            score_late_percent(&row->score) > 20);
			assert_memory_equal(&row->score, &b[1].rows[i].score, sizeof row->score);
			if (row->kind == BACKTEST_FIXED && b[0].bound_reached && score_late_percent(&row->score) <= 1)
				assert_true(bound->replica_s <= row->score.replica_s);
		}
		backtest_done(&b[0]);
		backtest_done(&b[1]);
		recording_done(&r);
	}
	free(b);
}

// Days of bursts, in rows of 15 s.
static void bound_of_days_is_cheaper_than_every_fixed_count(void **state)
{
	(void)state;
	struct engine en;
	struct recording r;
	struct backtest_config config = plain;
	struct backtest *b = calloc(1, sizeof *b);
	struct buf text;
	struct err e;
	uint64_t seed = 7;
	assert_non_null(b);
	make_policy(&en);
	buf_init(&text, 1 << 20);
	buf_puts(&text, "time,demand\n");
	for (int i = 0, left = 0; i < 3 * 5760; i++) {
		left = left > 0 ? left - 1 : draw(&seed) < 0.002 ? (int)(20 * draw(&seed)) : 0;
		buf_printf(&text, "%d,%.3f\n", 15 * i, left > 0 ? 12.0 : 4 + 2 * draw(&seed));
	}
	assert_int_equal(recording_parse(buf_str(&text), text.len, "f.csv", &r, &e), 0);
	buf_done(&text);
	config.n_fixed = 14;
	for (int32_t i = 0; i < 14; i++)
		config.fixed[i] = i + 1;
	run(&config, &en.policy, &r, b);
	const struct backtest_row *bound = &b->rows[b->n_rows - 1];
	assert_int_equal(bound->kind, BACKTEST_BOUND);
	assert_true(b->bound_reached);
	assert_null(b->bound_name);
	assert_true(score_late_percent(&bound->score) <= 1);
	for (size_t i = 0; i + 1 < b->n_rows; i++)
		if (score_late_percent(&b->rows[i].score) <= 1)
			assert_true(bound->score.replica_s < 0.9 * b->rows[i].score.replica_s);
	backtest_done(b);
	recording_done(&r);
	free(b);
}

// A fixed count above maxReplicas is never late.
static void bound_repeats_a_row_that_is_better(void **state)
{
	(void)state;
	struct engine en;
	struct recording r;
	struct backtest_config config = plain;
	struct backtest *b = calloc(1, sizeof *b);
	assert_non_null(b);
	make_policy(&en);
	en.policy.max_replicas = 2;
	make_recording(1, false, &r);
	config.n_fixed = 1;
	config.fixed[0] = 20;
	config.replicas = 20;
	run(&config, &en.policy, &r, b);
	const struct backtest_row *bound = &b->rows[b->n_rows - 1], *fixed = bound - 1;
	assert_int_equal(fixed->kind, BACKTEST_FIXED);
	assert_true(score_late_percent(&fixed->score) <= 1);
	assert_true(b->bound_reached);
	assert_string_equal(b->bound_name, fixed->name);
	assert_memory_equal(&bound->score, &fixed->score, sizeof bound->score);
	backtest_done(b);
	recording_done(&r);
	free(b);
}

// An hour of demand 5; `counts` has the replicas of each quarter, "" where none are recorded.
static void run_recorded(const char *const counts[4], const struct engine *en, struct backtest *ret)
{
	struct recording *r = calloc(1, sizeof *r);
	struct backtest_config config = plain;
	struct buf text;
	struct err e;
	buf_init(&text, 1 << 20);
	buf_puts(&text, "time,demand,replicas\n");
	for (int i = 0; i < 240; i++)
		buf_printf(&text, "%d,5,%s\n", 15 * i, counts[i / 60]);
	assert_int_equal(recording_parse(buf_str(&text), text.len, "f.csv", r, &e), 0);
	buf_done(&text);
	config.policy_only = true;
	run(&config, &en->policy, r, ret);
	recording_done(r);
	free(r);
}

static void recorded_replicas_are_scored_only_where_they_are_recorded(void **state)
{
	(void)state;
	struct engine en;
	struct backtest *b = calloc(1, sizeof *b);
	assert_non_null(b);
	make_policy(&en);
	run_recorded((const char *const[]){"", "8", "", "10"}, &en, b);
	assert_string_equal(b->rows[0].name, "recorded replicas (50% of the time)");
	assert_true(b->recorded_share == 0.5);
	assert_true(b->rows[0].score.counted_ms == 1800000);
	assert_true(b->rows[0].score.replica_s == 900 * (8 + 10));
	assert_true(score_late_percent(&b->rows[0].score) == 0);
	assert_int_equal(b->start, BACKTEST_START_MEAN);
	assert_int_equal(b->first, 5);
	backtest_done(b);
	run_recorded((const char *const[]){"8", "8", "8", "8"}, &en, b);
	assert_string_equal(b->rows[0].name, "recorded replicas");
	assert_true(b->rows[0].score.replica_s == 3600 * 8);
	assert_int_equal(b->first, 8);
	backtest_done(b);
	run_recorded((const char *const[]){"", "", "", ""}, &en, b);
	assert_int_equal(b->rows[0].kind, BACKTEST_POLICY);
	assert_true(b->recorded_share == 0);
	backtest_done(b);
	free(b);
}

static void recording_that_starts_at_0_starts_at_the_mean_demand(void **state)
{
	(void)state;
	struct engine en;
	struct backtest *b = calloc(1, sizeof *b);
	assert_non_null(b);
	make_policy(&en);
	run_recorded((const char *const[]){"0", "8", "8", "8"}, &en, b);
	assert_int_equal(b->start, BACKTEST_START_NOT_ZERO);
	assert_int_equal(b->first, 5);
	assert_true(backtest_policy_row(b)->score.replica_s > 3600);
	assert_true(b->rows[0].score.replica_s == 2700 * 8);
	backtest_done(b);
	en.policy.min_replicas = 0; // which permits 0
	run_recorded((const char *const[]){"0", "8", "8", "8"}, &en, b);
	assert_int_equal(b->start, BACKTEST_START_RECORDED);
	assert_int_equal(b->first, 0);
	backtest_done(b);
	free(b);
}

struct seen {
	int n, missing, changed_without_data;
};

static void look(void *context, const struct decision *d)
{
	struct seen *s = context;
	s->n++;
	if (d->signals[0].state != SIGNAL_MISSING)
		return;
	s->missing++;
	s->changed_without_data += d->desired != d->current;
}

static void gap_leaves_the_policy_without_data_and_it_holds(void **state)
{
	(void)state;
	struct engine en;
	struct recording r;
	struct seen seen = {0};
	struct backtest_config config = plain;
	struct backtest *b = calloc(1, sizeof *b);
	assert_non_null(b);
	make_policy(&en);
	make_recording(1, true, &r);
	config.policy_only = true;
	config.on_decision = look;
	config.context = &seen;
	run(&config, &en.policy, &r, b);
	assert_int_equal(b->n_rows, 1);
	assert_int_equal(b->demand.n_gaps, 1);
	assert_int_equal(seen.n, 240);
	assert_int_equal(seen.missing, 40);
	assert_int_equal(seen.changed_without_data, 0);
	assert_true(b->rows[0].score.counted_ms == 50 * 60 * 1000);
	backtest_done(b);
	recording_done(&r);
	free(b);
}

struct sums {
	double replica_s[BACKTEST_ROWS_MAX], late[BACKTEST_ROWS_MAX];
	int64_t time_ms[BACKTEST_ROWS_MAX];
};

static void add_up(void *context, size_t row, enum backtest_kind kind, const struct loop_step *s)
{
	struct sums *sums = context;
	assert_true(kind != BACKTEST_FIXED);
	assert_true(s->time_ms >= sums->time_ms[row]);
	sums->time_ms[row] = s->time_ms + s->span_ms;
	sums->late[row] += s->late;
	if (!isnan(s->demand))
		sums->replica_s[row] += (double)s->replicas * (double)s->span_ms / 1000;
}

static void steps_add_up_to_the_scores(void **state)
{
	(void)state;
	struct engine en;
	struct recording r;
	struct sums sums = {0};
	struct backtest_config config = plain;
	struct backtest *b = calloc(2, sizeof *b);
	assert_non_null(b);
	make_policy(&en);
	make_recording(2, true, &r);
	run(&config, &en.policy, &r, &b[0]);
	config.on_step = add_up;
	config.step_context = &sums;
	run(&config, &en.policy, &r, &b[1]);
	for (size_t i = 0; i < b[0].n_rows; i++) {
		const struct backtest_row *row = &b[1].rows[i];
		assert_memory_equal(&row->score, &b[0].rows[i].score, sizeof row->score);
		if (row->kind == BACKTEST_FIXED) {
			assert_int_equal(sums.time_ms[i], 0); // is not reported
			continue;
		}
		assert_int_equal(sums.time_ms[i], r.time_ms[r.n_rows - 1] + r.step_ms);
		assert_true(fabs(sums.late[i] - row->score.late) < 1e-6 * (1 + row->score.late));
		if (row->kind == BACKTEST_BOUND) // whose start-ups cost outside of its steps
			assert_true(sums.replica_s[i] <= row->score.replica_s + 1e-6);
		else
			assert_true(fabs(sums.replica_s[i] - row->score.replica_s) < 1e-6 * row->score.replica_s);
	}
	backtest_done(&b[0]);
	backtest_done(&b[1]);
	recording_done(&r);
	free(b);
}

// Everything is as for a quarter of the demand, at replicas that serve all of the figure, but what reads the demand.
static void capacity_ratio_is_met_by_every_row(void **state)
{
	(void)state;
	struct engine en;
	struct recording r;
	make_policy(&en);
	make_recording(1, true, &r);
	struct backtest *b = calloc(2, sizeof *b);
	assert_non_null(b);
	struct backtest_config config = plain;
	config.world.capacity_ratio = 4;
	run(&config, &en.policy, &r, &b[0]);
	config.world.capacity_ratio = 0;
	config.per_replica = 4;
	run(&config, &en.policy, &r, &b[1]);
	assert_int_equal(b[0].first, b[1].first);
	size_t compared = 0;
	for (size_t i = 0, k = 0; i < b[0].n_rows && k < b[1].n_rows; i++, k++) {
		const struct backtest_row *x = &b[0].rows[i], *y = &b[1].rows[k];
		if (x->peer == PEER_KEDA ||
		    x->peer == PEER_KNATIVE) // which scale by the demand in the unit of the queries
			continue;
		assert_string_equal(x->name, y->name);
		assert_true(fabs(x->score.replica_s - y->score.replica_s) <= 1e-3 * y->score.replica_s);
		assert_true(fabs(score_late_percent(&x->score) - score_late_percent(&y->score)) < 0.1);
		compared++;
	}
	assert_true(compared >= 8);
	backtest_done(&b[0]);
	backtest_done(&b[1]);
	free(b);
	recording_done(&r);
	engine_done(&en);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(bound_is_cheaper_than_every_fixed_count),
	        cmocka_unit_test(bound_of_days_is_cheaper_than_every_fixed_count),
	        cmocka_unit_test(bound_repeats_a_row_that_is_better),
	        cmocka_unit_test(recorded_replicas_are_scored_only_where_they_are_recorded),
	        cmocka_unit_test(recording_that_starts_at_0_starts_at_the_mean_demand),
	        cmocka_unit_test(gap_leaves_the_policy_without_data_and_it_holds),
	        cmocka_unit_test(steps_add_up_to_the_scores),
	        cmocka_unit_test(capacity_ratio_is_met_by_every_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
