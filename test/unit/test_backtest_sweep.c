// SPDX-License-Identifier: Apache-2.0
// Cost against lateness: which settings the rows have, that looser objectives cost less, the bound below everything,
// and equal results on one thread and on several.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"
#include "test/support/engine.h"

static void make_recording(struct recording *ret)
{
	struct buf text;
	struct err e;
	buf_init(&text, 1 << 20);
	buf_puts(&text, "time,demand\n");
	for (int i = 0; i < 240; i++)
		buf_printf(&text, "%d,%.3f\n", 15 * i, 5 + 4 * sin(i / 12.0) + (i % 60 < 4 ? 6 : 0));
	if (recording_parse(buf_str(&text), text.len, "f.csv", ret, &e) < 0)
		fail_msg("%s", e.msg);
	buf_done(&text);
}

static void run(const struct policy *policy, unsigned threads, struct backtest *ret)
{
	static struct recording r; // outlives the result
	const struct backtest_config config = {
	        .per_replica = 1, .late_ratio = 0.01, .wait_s = 10, .sweep_threads = threads};
	struct err e;
	recording_done(&r);
	make_recording(&r);
	if (backtest_run(&config, policy, &r, "f.csv", ret, &e) < 0)
		fail_msg("%s", e.msg);
	recording_done(&r);
}

static double number_at(const char *text)
{
	double v = NAN;
	num_parse_f64(text, strspn(text, "0123456789."), &v, NULL);
	return v;
}

static bool is_present(const struct backtest_row *row)
{
	return strstr(row->name, "(present)") != NULL;
}

static void thresholds_are_scaled(void **state)
{
	(void)state;
	struct engine en;
	struct backtest one, three;
	size_t chosen = 0, n_policy = 0;
	engine_init(&en, 1);
	engine_add_value(&en, "utilization", 0.6);
	en.policy.max_replicas = 30;
	run(&en.policy, 1, &one);
	run(&en.policy, 3, &three);
	assert_int_equal(one.n_rows, three.n_rows);
	for (size_t i = 0; i < one.n_rows; i++) {
		const struct backtest_row *p = &one.rows[i];
		assert_memory_equal(&p->score, &three.rows[i].score, sizeof p->score);
		chosen += is_present(p);
		if (p->kind != BACKTEST_POLICY)
			continue;
		n_policy++;
		assert_true(!is_present(p) || strcmp(p->name, "targets x 1 (present)") == 0);
	}
	assert_int_equal(chosen, 1);
	assert_true(n_policy >= 7);
	assert_true(one.rows[0].score.replica_s > one.rows[n_policy - 1].score.replica_s);
	assert_string_equal(one.rows[0].name, "targets x 0.5");
	backtest_done(&one);
	backtest_done(&three);
	engine_done(&en);
}

// The objective of the policy is a row of its own, in its place.
static void objective_of_the_policy_is_a_row(void **state)
{
	(void)state;
	struct engine en;
	struct backtest f;
	double last = 0;
	engine_init(&en, 1);
	engine_add_replicas(&en, "demand");
	engine_add_replicas(&en, "backlog");
	for (size_t i = 0; i < 2; i++)
		en.signals[i].target.set = false;
	en.policy.max_replicas = 30;
	en.policy.startup = (struct policy_startup){true, true, 60000};
	en.policy.objective = (struct policy_objective){.set = true,
	                                                .demand = "demand",
	                                                .backlog = "backlog",
	                                                .late_ratio = 0.02,
	                                                .wait_ms = 10000,
	                                                .demand_index = 0,
	                                                .backlog_index = 1};
	run(&en.policy, 2, &f);
	for (size_t i = 0; i < f.n_rows && f.rows[i].kind == BACKTEST_POLICY; i++) {
		double setting = number_at(f.rows[i].name + strlen("objective "));
		assert_true(setting > last);
		assert_true(is_present(&f.rows[i]) == (setting == 2));
		last = setting;
	}
	assert_true(last == 20);
	backtest_done(&f);
	engine_done(&en);
}

static void bound_costs_less_the_later_it_may_be(void **state)
{
	(void)state;
	struct engine en;
	struct backtest f;
	double least = INFINITY;
	engine_init(&en, 1);
	engine_add_value(&en, "utilization", 0.6);
	en.policy.max_replicas = 30;
	run(&en.policy, 2, &f);
	for (size_t i = 0; i < f.n_rows; i++) {
		const struct backtest_row *p = &f.rows[i];
		if (p->kind != BACKTEST_BOUND)
			continue;
		assert_true(p->score.replica_s <= least);
		double setting = number_at(strstr(p->name, "<= ") + strlen("<= "));
		assert_true(strstr(p->name, "(not reached)") || score_late_percent(&p->score) <= setting);
		least = p->score.replica_s;
	}
	assert_true(isfinite(least));
	backtest_done(&f);
	engine_done(&en);
}

static void policy_without_anything_to_vary_is_refused(void **state)
{
	(void)state;
	struct engine en;
	struct backtest f;
	struct recording r;
	struct err e;
	const struct backtest_config config = {.per_replica = 1, .late_ratio = 0.01, .wait_s = 10, .sweep_threads = 1};
	engine_init(&en, 1);
	engine_add_replicas(&en, "demand");
	make_recording(&r);
	assert_int_equal(backtest_run(&config, &en.policy, &r, "f.csv", &f, &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
	assert_non_null(strstr(e.msg, "not supported"));
	backtest_done(&f);
	recording_done(&r);
	engine_done(&en);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(thresholds_are_scaled),
	        cmocka_unit_test(objective_of_the_policy_is_a_row),
	        cmocka_unit_test(bound_costs_less_the_later_it_may_be),
	        cmocka_unit_test(policy_without_anything_to_vary_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
