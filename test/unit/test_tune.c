// SPDX-License-Identifier: Apache-2.0
// The search for better numbers: which numbers of a policy vary, candidates that the rules between fields accept,
// results that do not depend on the number of threads, the Pareto front, what is recommended and what is not, and the
// patch.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "replay/backtest.h"
#include "replay/parallel.h"
#include "replay/tune.h"
#include "replay/tune_space.h"

#define HEAD                                                                                                           \
	"# kept: the comment\n"                                                                                        \
	"apiVersion: gpuscale.dev/v1alpha1\n"                                                                          \
	"kind: GPUAutoscaler\n"                                                                                        \
	"metadata: {name: p}\n"                                                                                        \
	"spec:\n"                                                                                                      \
	"  scaleTargetRef: {name: llm}\n"                                                                              \
	"  maxReplicas: 40\n"

static const char threshold[] = HEAD "  signals:\n"
                                     "  - name: demand   # in replicas\n"
                                     "    query: d\n"
                                     "    target: {type: AverageValue, value: \"0.7\"}\n";
static const char marks[] = HEAD "  behavior: {scaleDown: {stabilizationWindowSeconds: 120}}\n"
                                 "  signals:\n"
                                 "  - {name: utilization, query: u, watermarks: {high: '0.8', low: '0.4'}}\n";
static const char objective[] = HEAD "  startup: {seconds: 60}\n"
                                     "  objective: {late: 1%, wait: 10s, demand: demand, backlog: backlog}\n"
                                     "  signals: [{name: demand, query: d}, {name: backlog, query: b}]\n";

struct loaded {
	struct arena arena;
	struct policy policy;
	const char *text;
	struct tune_space space;
};

static void load(const char *text, struct loaded *ret)
{
	struct doc_file file;
	struct schema_errors errors;
	struct err e;
	memset(ret, 0, sizeof *ret);
	ret->text = text;
	arena_init(&ret->arena, 1 << 24);
	schema_errors_init(&errors, "p.yaml");
	if (doc_parse_yaml(&ret->arena, "p.yaml", text, strlen(text), &file, &e) < 0)
		fail_msg("%s", e.msg);
	struct policy_document document = {0};
	if (policy_decode(file.roots[0], &document, &ret->arena, &errors) < 0)
		fail_msg("%s: %s", errors.items[0].path, errors.items[0].message);
	ret->policy = document.policy;
	if (tune_space_init(&ret->space, &ret->policy, text, strlen(text), &e) < 0)
		fail_msg("%s", e.msg);
}

static void unload(struct loaded *l)
{
	tune_space_done(&l->space);
	arena_done(&l->arena);
}

static const struct tune_number *find(const struct tune_space *s, const char *path)
{
	for (size_t i = 0; i < s->n; i++)
		if (strcmp(s->numbers[i].path, path) == 0)
			return &s->numbers[i];
	return NULL;
}

// ---- the space ----

static void space_has_the_numbers_of_the_policy_and_their_defaults(void **state)
{
	(void)state;
	struct loaded l;
	load(threshold, &l);
	const struct tune_number *value = find(&l.space, "spec.signals[0].target.value");
	assert_non_null(value);
	assert_true(value->present == 0.7 && value->is_log && !value->is_added);
	assert_true(fabs(value->min - 0.7 * 0.25) < 1e-9 && fabs(value->max - 0.7 * 4) < 1e-9);
	const struct tune_number *down = find(&l.space, "spec.behavior.scaleDown.stabilizationWindowSeconds");
	assert_non_null(down);
	assert_true(down->present == 300 && down->is_added && !down->is_log);
	assert_non_null(find(&l.space, "spec.minReplicas"));
	assert_null(find(&l.space, "spec.maxReplicas"));
	assert_null(find(&l.space, "spec.interval"));
	assert_null(find(&l.space, "spec.forecast.alpha")); // a stage that the policy does not use
	assert_null(find(&l.space, "spec.signals[0].window.duration"));
	unload(&l);
}

static void space_of_an_objective_has_no_number_that_hinders_it(void **state)
{
	(void)state;
	struct loaded l;
	load(objective, &l);
	assert_non_null(find(&l.space, "spec.objective.late"));
	assert_null(find(&l.space, "spec.objective.wait")); // it defines what late means
	for (size_t i = 0; i < l.space.n; i++) {
		assert_null(strstr(l.space.numbers[i].path, "behavior"));
		assert_null(strstr(l.space.numbers[i].path, "cooldown"));
		assert_null(strstr(l.space.numbers[i].path, "sustain")); // the objective refuses it
		assert_null(strstr(l.space.numbers[i].path, "startup")); // a fact, not a choice
	}
	unload(&l);
}

static void policy_without_a_number_is_refused(void **state)
{
	(void)state;
	static const char *const text = HEAD "  minReplicas: 40\n"
	                                     "  signals: [{name: a, query: a, target: {value: \"1\"}}]\n";
	struct loaded l;
	struct err e;
	load(text, &l);
	struct tune_space space;
	struct policy other = l.policy;
	other.name = "q";
	assert_int_equal(tune_space_init(&space, &other, text, strlen(text), &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	assert_non_null(strstr(e.msg, "has no policy"));
	tune_space_done(&space);
	unload(&l);
}

static void candidates_repeat_with_their_seed_and_stay_in_range(void **state)
{
	(void)state;
	struct loaded l;
	double a[TUNE_NUMBERS_MAX], b[TUNE_NUMBERS_MAX], c[TUNE_NUMBERS_MAX];
	size_t differ = 0, few = 0;
	load(marks, &l);
	for (uint64_t i = 0; i < 200; i++) {
		size_t changed = 0;
		tune_space_draw(&l.space, 7, i, a);
		tune_space_draw(&l.space, 7, i, b);
		tune_space_draw(&l.space, 8, i, c);
		for (size_t k = 0; k < l.space.n; k++) {
			const struct tune_number *n = &l.space.numbers[k];
			char text[TUNE_TEXT_BYTES];
			assert_true(a[k] == b[k] && a[k] >= n->min && a[k] <= n->max);
			assert_true(i > 0 || a[k] == n->present);
			differ += a[k] != c[k];
			changed += a[k] != n->present;
			tune_number_text(n, a[k], text);
			assert_true(strlen(text) < 10); // what a person would write
		}
		few += changed > 0 && changed <= 3;
		tune_space_vary(&l.space, 7, i, a, 1, b);
		for (size_t k = 0; k < l.space.n; k++)
			assert_true(b[k] >= l.space.numbers[k].min && b[k] <= l.space.numbers[k].max);
	}
	assert_true(differ > 100 && few > 50);
	unload(&l);
}

static void candidate_against_the_rules_is_not_decoded(void **state)
{
	(void)state;
	struct loaded l;
	struct arena a;
	struct policy p;
	double values[TUNE_NUMBERS_MAX];
	load(marks, &l);
	arena_init(&a, 1 << 20);
	tune_space_draw(&l.space, 0, 0, values);
	assert_int_equal(tune_space_decode(&l.space, values, &a, &p), 0);
	assert_true(p.signals[0].watermarks.low == 0.4 && p.scale_down.stabilization_window_ms == 120000);
	size_t low = (size_t)(find(&l.space, "spec.signals[0].watermarks.low") - l.space.numbers);
	values[low] = 0.9; // above high
	assert_int_equal(tune_space_decode(&l.space, values, &a, &p), -1);
	values[low] = 0.6;
	assert_int_equal(tune_space_decode(&l.space, values, &a, &p), 0);
	assert_true(p.signals[0].watermarks.low == 0.6);
	arena_done(&a);
	unload(&l);
}

// ---- the search ----

static double draw(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (double)(*state >> 11) / 9007199254740992.0;
}

// `rows` of 15 s: waves around 6 replicas, or with a noise_seed independent draws with a long tail.
static void make_recording(int rows, uint64_t noise_seed, struct recording *ret)
{
	struct buf text;
	struct err e;
	uint64_t seed = noise_seed > 0 ? noise_seed : 3;
	buf_init(&text, 1 << 22);
	buf_puts(&text, "time,demand\n");
	for (int i = 0; i < rows; i++) {
		double normal = -6;
		for (int k = 0; k < 12; k++)
			normal += draw(&seed);
		buf_printf(&text, "%d,%.3f\n", 15 * i,
		           noise_seed > 0 ? 6 * exp(0.5 * normal) : 6 + 4 * sin(i / 40.0) + 0.05 * normal);
	}
	if (recording_parse(buf_str(&text), text.len, "f.csv", ret, &e) < 0)
		fail_msg("%s", e.msg);
	buf_done(&text);
}

static void search(const char *policy, int rows, uint64_t noise_seed, size_t candidates, unsigned threads,
                   struct loaded *l, struct tune *ret)
{
	struct recording r;
	struct err e;
	struct backtest *scene = calloc(1, sizeof *scene);
	const struct backtest_config config = {.policy_only = true,
	                                       .per_replica = 1,
	                                       .late_ratio = 0.01,
	                                       .wait_s = 10,
	                                       .world = {.startups_s = {60}, .n_startups = 1}};
	const struct tune_config tuning = {.candidates = candidates, .seed = 1, .threads = threads};
	assert_non_null(scene);
	load(policy, l);
	make_recording(rows, noise_seed, &r);
	if (backtest_run(&config, &l->policy, &r, "f.csv", scene, &e) < 0)
		fail_msg("%s", e.msg);
	if (tune_run(&tuning, scene, &l->space, ret, &e) < 0)
		fail_msg("%s", e.msg);
	backtest_done(scene);
	free(scene);
	recording_done(&r);
}

static void result_does_not_depend_on_the_threads(void **state)
{
	(void)state;
	struct loaded l;
	struct tune one, three;
	search(threshold, 600, 0, 120, 1, &l, &one);
	unload(&l);
	search(threshold, 600, 0, 120, 3, &l, &three);
	unload(&l);
	assert_int_equal(one.n_points, three.n_points);
	assert_true(one.n_points >= 48 && one.n_points < 120); // halving dropped the others
	for (size_t i = 0; i < one.n_points; i++) {
		assert_int_equal(one.points[i].index, three.points[i].index);
		assert_memory_equal(&one.points[i].out, &three.points[i].out, sizeof one.points[i].out);
		assert_memory_equal(&one.points[i].in, &three.points[i].in, sizeof one.points[i].in);
	}
	assert_memory_equal(one.folds, three.folds, sizeof one.folds);
	assert_int_equal(one.chosen, three.chosen);
	assert_int_equal(one.verdict, three.verdict);
	tune_done(&one);
	tune_done(&three);
}

static bool is_beaten(const struct tune_point *a, const struct tune_point *by)
{
	double late = tune_late_percent(&a->out), late_by = tune_late_percent(&by->out);
	return by->out.replica_s <= a->out.replica_s && late_by <= late && by->out.changes <= a->out.changes &&
	       (by->out.replica_s < a->out.replica_s || late_by < late || by->out.changes < a->out.changes);
}

static void front_has_every_point_that_none_beats(void **state)
{
	(void)state;
	struct loaded l;
	struct tune t;
	size_t n = 0;
	search(marks, 600, 0, 100, 2, &l, &t);
	for (size_t i = 0; i < t.n_points; i++) {
		bool beaten = false;
		for (size_t k = 0; k < t.n_points; k++)
			beaten = beaten || is_beaten(&t.points[i], &t.points[k]);
		assert_false(t.points[i].is_front && beaten);
		n += t.points[i].is_front;
	}
	assert_true(n > 0 && t.points[t.present].index == 0);
	tune_done(&t);
	unload(&l);
}

// Twice as many replicas as the demand needs.
static void plainly_wrong_threshold_is_replaced(void **state)
{
	(void)state;
	static const char *const wrong =
	        HEAD "  signals: [{name: demand, query: d, target: {type: AverageValue, value: "
	             "\"0.35\"}}]\n";
	struct loaded l;
	struct tune t;
	search(wrong, 1200, 0, 120, 2, &l, &t);
	assert_int_equal(t.verdict, TUNE_RECOMMENDED);
	assert_true(t.keeps_objective && t.gain_chosen > 0.3 && t.gain_out > t.gap);
	assert_true(t.points[t.chosen].out.replica_s < 0.7 * t.points[t.present].out.replica_s);
	assert_null(t.dominated_by);
	tune_done(&t);
	unload(&l);
}

static double late_percent_on_noise(const struct policy *p, uint64_t noise_seed)
{
	struct recording r;
	struct err e;
	struct backtest *b = calloc(1, sizeof *b);
	const struct backtest_config config = {.policy_only = true,
	                                       .per_replica = 1,
	                                       .late_ratio = 0.01,
	                                       .wait_s = 10,
	                                       .world = {.startups_s = {60}, .n_startups = 1}};
	assert_non_null(b);
	make_recording(1200, noise_seed, &r);
	if (backtest_run(&config, p, &r, "f.csv", b, &e) < 0)
		fail_msg("%s", e.msg);
	double late = score_late_percent(&backtest_policy_row(b)->score);
	backtest_done(b);
	free(b);
	recording_done(&r);
	return late;
}

// Nothing in the past predicts the next value: what is best in one part is chance. A policy that wastes replicas may be
// improved all the same, but each recommendation must keep the objective on fresh noise.
static void recommendation_on_noise_keeps_the_objective_on_fresh_noise(void **state)
{
	(void)state;
	enum { SEEDS = 8, FRESH = 4 };
	static const char *const starts[] = {
	        HEAD
	        "  minReplicas: 12\n  signals: [{name: demand, query: d, target: {type: AverageValue, value: '1'}}]\n",
	        HEAD "  signals: [{name: demand, query: d, target: {type: AverageValue, value: '0.7'}}]\n",
	        HEAD "  signals: [{name: demand, query: d, target: {type: AverageValue, value: '0.1'}}]\n",
	        HEAD "  signals: [{name: demand, query: d, target: {type: AverageValue, value: '3'}}]\n",
	};
	size_t recommended[4] = {0};
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		for (uint64_t seed = 1; seed <= SEEDS; seed++) {
			struct loaded l;
			struct tune t;
			struct policy p;
			struct arena a;
			double late = 0;
			search(starts[i], 1200, seed, 60, 2, &l, &t);
			arena_init(&a, 1 << 20);
			assert_int_equal(tune_space_decode(&l.space, t.points[t.chosen].values, &a, &p), 0);
			for (uint64_t k = 1; k <= FRESH && t.verdict == TUNE_RECOMMENDED; k++)
				late += late_percent_on_noise(&p, seed + 1000 * k) / (int)FRESH;
			recommended[i] += t.verdict == TUNE_RECOMMENDED;
			if (late > 1)
				fail_msg("start %zu, seed %d: %.2f%% late on fresh noise", i, (int)seed, late);
			arena_done(&a);
			tune_done(&t);
			unload(&l);
		}
	print_message("# recommended on noise, of %d: %zu, %zu, %zu, %zu\n", SEEDS, recommended[0], recommended[1],
	              recommended[2], recommended[3]);
	assert_true(recommended[0] <= 1); // the fair start
	assert_true(recommended[0] + recommended[1] + recommended[2] + recommended[3] <= 8);
}

static void far_start_reaches_what_a_near_one_does(void **state)
{
	(void)state;
	static const char *const starts[] = {
	        HEAD "  signals: [{name: demand, query: d, target: {type: AverageValue, value: '0.7'}}]\n",
	        HEAD "  signals: [{name: demand, query: d, target: {type: AverageValue, value: '0.1'}}]\n",
	        HEAD "  signals: [{name: demand, query: d, target: {type: AverageValue, value: '8'}}]\n"};
	double cost[3];
	for (size_t i = 0; i < 3; i++) {
		struct loaded l;
		struct tune t;
		search(starts[i], 1200, 0, 100, 2, &l, &t);
		assert_true(t.keeps_objective);
		cost[i] = t.points[t.chosen].out.replica_s;
		tune_done(&t);
		unload(&l);
	}
	assert_true(cost[1] < 1.1 * cost[0] && cost[2] < 1.1 * cost[0]);
}

static void dominated_point_is_not_recommended(void **state)
{
	(void)state;
	// Ten times the replicas that are needed, and too few candidates to get near.
	static const char *const wasteful = HEAD "  signals: [{name: demand, query: d, target: {type: AverageValue, "
	                                         "value: '0.1'}}]\n";
	struct loaded l;
	struct tune t;
	search(wasteful, 1200, 0, 20, 2, &l, &t);
	assert_int_not_equal(t.chosen, t.present);
	assert_non_null(t.dominated_by);
	assert_int_equal(t.verdict, TUNE_DOMINATED);
	assert_true(t.has_library);
	tune_done(&t);
	unload(&l);
}

static void short_recording_yields_no_recommendation(void **state)
{
	(void)state;
	static const char *const wrong =
	        HEAD "  signals: [{name: demand, query: d, target: {type: AverageValue, value: '0.2'}}]\n";
	static const char *const slow =
	        HEAD "  cooldown: {down: 30m}\n"
	             "  signals: [{name: demand, query: d, target: {type: AverageValue, value: '0.2'}}]\n";
	struct loaded l;
	struct tune t;
	search(wrong, 40, 0, 30, 2, &l, &t);
	assert_int_equal(t.verdict, TUNE_TOO_SHORT);
	assert_int_equal(t.needed_ms, TUNE_SPANS * 360000); // a start-up and a stabilization window
	tune_done(&t);
	unload(&l);
	search(slow, 1200, 0, 30, 2, &l, &t); // five hours
	assert_int_equal(t.verdict, TUNE_TOO_SHORT);
	assert_int_equal(t.needed_ms, TUNE_SPANS * 1860000);
	tune_done(&t);
	unload(&l);
}

static void bound_of_lateness_grows_with_the_differences_between_blocks(void **state)
{
	(void)state;
	// Four blocks of 100 requests with one late each; the same with all four late ones in one block.
	const struct tune_score even = {.requests = 400,
	                                .late = 4,
	                                .n_blocks = 4,
	                                .late_late = 4,
	                                .late_requests = 400,
	                                .requests_requests = 40000};
	const struct tune_score burst = {.requests = 400,
	                                 .late = 4,
	                                 .n_blocks = 4,
	                                 .late_late = 16,
	                                 .late_requests = 400,
	                                 .requests_requests = 40000};
	assert_true(fabs(tune_late_bound_percent(&even) - 1) < 1e-9);
	assert_true(fabs(tune_late_bound_percent(&burst) - 3) < 1e-9);
}

static void loss_counts_what_is_later_than_the_objective(void **state)
{
	(void)state;
	const struct tune_score kept = {.replica_s = 100, .requests = 1000, .late = 10};
	const struct tune_score twice = {.replica_s = 100, .requests = 1000, .late = 20}, none = {.replica_s = 100};
	assert_true(tune_loss(&kept, 0.01) == 100);
	assert_true(fabs(tune_loss(&twice, 0.01) - 200) < 1e-9);
	assert_true(tune_loss(&none, 0.01) == 100 && tune_late_percent(&none) == 0);
	assert_true(isfinite(tune_loss(&kept, 0)));
}

static void recording_of_a_few_steps_is_refused(void **state)
{
	(void)state;
	struct loaded l;
	struct tune t;
	struct err e;
	double work[5] = {1, 1, 1, 1, 1};
	struct backtest *scene = calloc(1, sizeof *scene);
	assert_non_null(scene);
	load(threshold, &l);
	scene->file = "f.csv";
	scene->demand = (struct demand){.work = work, .n = 5, .step_ms = 1000};
	const struct tune_config config = {.candidates = 2, .threads = 1};
	assert_int_equal(tune_run(&config, scene, &l.space, &t, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	tune_done(&t);
	unload(&l);
	free(scene);
}

// ---- the patch ----

static void patch_case(const char *text, const char *path, double value, const char *also, double other,
                       const char *const wanted[], size_t n)
{
	struct loaded l;
	struct buf out;
	struct err e;
	double values[TUNE_NUMBERS_MAX];
	load(text, &l);
	buf_init(&out, 1 << 20);
	tune_space_draw(&l.space, 0, 0, values);
	values[find(&l.space, path) - l.space.numbers] = value;
	if (also)
		values[find(&l.space, also) - l.space.numbers] = other;
	if (tune_patch_write(&l.space, values, text, strlen(text), &out, &e) < 0)
		fail_msg("%s", e.msg);
	assert_non_null(strstr(buf_str(&out), "# kept: the comment\n"));
	for (size_t i = 0; i < n; i++)
		if (!strstr(buf_str(&out), wanted[i]))
			fail_msg("no \"%s\" in:\n%s", wanted[i], buf_str(&out));
	buf_done(&out);
	unload(&l);
}

static void patch_replaces_numbers_in_their_places_and_adds_others(void **state)
{
	(void)state;
	static const char *const replaced[] = {"  - name: demand   # in replicas\n", "value: \"0.9\"}\n",
	                                       "spec:\n  behavior: {scaleDown: {stabilizationWindowSeconds: 60}}\n"};
	static const char *const in_flow[] = {"{stabilizationWindowSeconds: 45}", "high: \"1.2\", low: '0.4'"};
	static const char *const added[] = {"spec:\n  minReplicas: 3\n", "{tolerance: \"0.3\", type: AverageValue"};
	static const char *const goal[] = {"late: 2.5%, wait: 10s,", "spec:\n  minReplicas: 3\n"};
	patch_case(threshold, "spec.signals[0].target.value", 0.9, "spec.behavior.scaleDown.stabilizationWindowSeconds",
	           60, replaced, 3);
	patch_case(marks, "spec.behavior.scaleDown.stabilizationWindowSeconds", 45, "spec.signals[0].watermarks.high",
	           1.2, in_flow, 2);
	patch_case(threshold, "spec.minReplicas", 3, "spec.signals[0].target.tolerance", 0.3, added, 2);
	patch_case(objective, "spec.objective.late", 2.5, "spec.minReplicas", 3, goal, 2);
}

static void patch_of_nothing_is_the_file(void **state)
{
	(void)state;
	struct loaded l;
	struct buf out;
	struct err e;
	double values[TUNE_NUMBERS_MAX];
	load(marks, &l);
	buf_init(&out, 1 << 20);
	tune_space_draw(&l.space, 0, 0, values);
	assert_int_equal(tune_patch_write(&l.space, values, marks, strlen(marks), &out, &e), 0);
	assert_string_equal(buf_str(&out), marks);
	buf_done(&out);
	unload(&l);
}

// ---- threads ----

static void mark(void *context, size_t i)
{
	((int *)context)[i]++;
}

static void every_task_runs_once(void **state)
{
	(void)state;
	int runs[100] = {0};
	assert_true(parallel_cores() >= 1);
	parallel_run(100, 4, mark, NULL, runs);
	for (int i = 0; i < 100; i++)
		assert_int_equal(runs[i], 1);
	parallel_run(0, 4, mark, NULL, runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(space_has_the_numbers_of_the_policy_and_their_defaults),
	        cmocka_unit_test(space_of_an_objective_has_no_number_that_hinders_it),
	        cmocka_unit_test(policy_without_a_number_is_refused),
	        cmocka_unit_test(candidates_repeat_with_their_seed_and_stay_in_range),
	        cmocka_unit_test(candidate_against_the_rules_is_not_decoded),
	        cmocka_unit_test(result_does_not_depend_on_the_threads),
	        cmocka_unit_test(front_has_every_point_that_none_beats),
	        cmocka_unit_test(plainly_wrong_threshold_is_replaced),
	        cmocka_unit_test(recommendation_on_noise_keeps_the_objective_on_fresh_noise),
	        cmocka_unit_test(far_start_reaches_what_a_near_one_does),
	        cmocka_unit_test(dominated_point_is_not_recommended),
	        cmocka_unit_test(short_recording_yields_no_recommendation),
	        cmocka_unit_test(bound_of_lateness_grows_with_the_differences_between_blocks),
	        cmocka_unit_test(loss_counts_what_is_later_than_the_objective),
	        cmocka_unit_test(recording_of_a_few_steps_is_refused),
	        cmocka_unit_test(patch_replaces_numbers_in_their_places_and_adds_others),
	        cmocka_unit_test(patch_of_nothing_is_the_file),
	        cmocka_unit_test(every_task_runs_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
