// SPDX-License-Identifier: Apache-2.0
#include "replay/tune.h"

#include <math.h>

#include "base/base.h"
#include "base/schema/doc.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/load/file_set.h"
#include "policies/test/scenario.h"
#include "replay/backtest.h"
#include "replay/tune_search.h"

// ---- the tests of the policy, which better numbers must keep ----

#define TESTS_ARENA_MAX (256 * 1024 * 1024)
#define REPORT_MAX      (1024 * 1024)

void tune_tests_free(struct tune_tests *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->n_sets; i++)
		file_set_done(&t->sets[i]);
	free(t->sets);
	free(t->tests);
	arena_done(&t->arena);
	arena_done(&t->run);
	free(t);
}

// A test that exceeds a limit fails.
static bool passes(struct arena *a, const struct scenario *test, const struct policy *policy)
{
	struct scenario copy = *test;
	struct scenario_result result;
	struct err e;
	copy.policy = policy;
	arena_reset(a);
	return scenario_run(&copy, NULL, a, &result, &e) == 0 && result.n == 0;
}

// Reads the policies of one document.
static int load_policies(struct tune_tests *t, const struct scenario_file *doc, struct err *e)
{
	struct buf why = BUF(REPORT_MAX);
	struct file_set *set = &t->sets[t->n_sets];
	int rc = scenario_load_policies(doc, t->path, &t->arena, set, &why, e);
	if (rc == 0)
		t->n_sets++;
	if (rc == 0 && set->n_errors > 0)
		rc = err_set(e, ERR_INPUT, "%s: a policy file is invalid: %.200s", t->path, buf_str(&why));
	buf_done(&why);
	return rc;
}

static int add_document(struct tune_tests *t, const struct doc_node *root, const struct policy *policy, struct err *e)
{
	struct schema_errors errors;
	struct scenario_file doc = {0};
	schema_errors_init(&errors, t->path);
	if (schema_decode(&scenario_schema, root, &doc, &t->arena, &errors, "") < 0)
		return err_set(e, ERR_INPUT, "%s:%d: %s: %s", t->path, errors.items[0].line, errors.items[0].path,
		               errors.items[0].message);
	if (load_policies(t, &doc, e) < 0)
		return -1;
	struct scenario **grown = realloc(t->tests, (t->n + doc.n_tests + 1) * sizeof(struct scenario *));
	if (!grown)
		return err_no_memory(e);
	t->tests = grown;
	const struct doc_node *node = doc_get(root, "tests")->child;
	for (size_t i = 0; i < doc.n_tests; i++, node = node->next) {
		schema_errors_init(&errors, t->path);
		if (scenario_bind(&doc.tests[i], node, i, doc.interval_ms, &t->sets[t->n_sets - 1], &t->arena,
		                  &errors) < 0)
			continue; // `gpuscale test` reports why the test cannot be run
		const struct policy *p = doc.tests[i].policy;
		if (strcmp(p->name, policy->name) == 0 && strcmp(p->namespace_name, policy->namespace_name) == 0 &&
		    p->n_signals == policy->n_signals && passes(&t->run, &doc.tests[i], policy))
			t->tests[t->n++] = &doc.tests[i];
	}
	return 0;
}

static int read_file(struct tune_tests *t, const struct policy *policy, struct err *e)
{
	struct doc_file doc;
	if (doc_read_yaml(&t->arena, t->path, false, &doc, e) < 0)
		return -1;
	t->sets = calloc(doc.n_roots + 1, sizeof *t->sets);
	if (!t->sets)
		return err_no_memory(e);
	for (size_t i = 0; i < doc.n_roots; i++)
		if (strcmp(doc_get_text(doc.roots[i], "kind", ""), "PolicyTest") == 0 &&
		    add_document(t, doc.roots[i], policy, e) < 0)
			return -1;
	return 0;
}

int tune_tests_load(const char *path, const struct policy *policy, struct tune_tests **ret_tests, struct err *e)
{
	struct tune_tests *t = *ret_tests = calloc(1, sizeof *t);
	if (!t)
		return err_no_memory(e);
	t->path = path;
	arena_init(&t->arena, TESTS_ARENA_MAX);
	arena_init(&t->run, TESTS_ARENA_MAX);
	int rc = read_file(t, policy, e);
	if (rc < 0 || t->n == 0) {
		tune_tests_free(t);
		*ret_tests = NULL;
	}
	return rc;
}

// Runs the tests with `policy`, which differs from that of tune_tests_load() in numbers only, and returns how many
// fail. *ret_broken, which may be NULL, names them until tune_tests_free(). Not for several threads at once.
static size_t tune_tests_run(struct tune_tests *t, const struct policy *policy, struct tune_broken *ret_broken)
{
	size_t n = 0;
	struct tune_broken broken = {.n = 0};
	for (size_t i = 0; i < t->n; i++) {
		const struct scenario *test = t->tests[i];
		if (passes(&t->run, test, policy))
			continue;
		if (broken.n < TUNE_TESTS_BROKEN_MAX)
			broken.tests[broken.n++] = (struct tune_test_name){test->name, test->line};
		n++;
	}
	if (ret_broken)
		*ret_broken = broken;
	return n;
}

// ---- the choice: validated by walk-forward, then made on the first half ----

#define WORTH_A_NUMBER 0.005 // a change of a number that saves less than this is taken back

static bool keeps(const struct tune_score *s, double late_ratio)
{
	return tune_late_percent(s) <= 100 * late_ratio;
}

// How good a point is on the parts before `n`, the only ones that a choice knows.
struct standing {
	bool keeps;   // the objective, at the bound of the lateness and in a harder world
	bool is_free; // no peer dominates it
	double loss;
};

static struct standing standing_of(const struct tune_search *s, const struct tune *t, const struct tune_trial *r,
                                   size_t n)
{
	double late = s->scene->config.late_ratio;
	const struct tune_score sum = tune_score_sum(r->parts, 0, n);
	return (struct standing){.keeps = tune_late_bound_percent(&sum) <= 100 * late && keeps(&r->stressed, late),
	                         .is_free = !tune_peers_dominating(t, &sum, 0, n),
	                         .loss = tune_score_loss(r->parts, n, late)};
}

static bool is_better(const struct standing *a, const struct standing *b)
{
	if (a->keeps != b->keeps)
		return a->keeps;
	if (a->is_free != b->is_free)
		return a->is_free;
	return a->loss < b->loss;
}

// Returns the best trial on the parts before `n` that is not known to fail a test of the policy.
static struct tune_trial *best_untested(const struct tune_search *s, const struct tune *t, size_t n)
{
	struct tune_trial *best = NULL;
	struct standing least = {0};
	for (size_t i = 0; i < s->n_runs; i++) {
		struct tune_trial *r = s->runs[i];
		const struct standing standing = standing_of(s, t, r, n);
		if (r->tests == TUNE_FAILS || (best && !is_better(&standing, &least)))
			continue;
		best = r;
		least = standing;
	}
	return best;
}

static bool breaks_tests(const struct tune_search *s, const struct policy *policy)
{
	return s->config->tests && tune_tests_run(s->config->tests, policy, NULL) > 0;
}

// Returns the best trial on the parts before `n` that passes the tests of the policy: the present policy does, because
// only the tests that it passes count. *ret_failing, which may be NULL: the best one of those that fail, if it is
// better.
static struct tune_trial *best_trial(const struct tune_search *s, const struct tune *t, size_t n,
                                     struct tune_trial **ret_failing)
{
	struct tune_trial *best = best_untested(s, t, n);
	for (; best && best->tests == TUNE_UNTESTED; best = best_untested(s, t, n)) {
		bool fails = best->index > 0 && breaks_tests(s, &best->policy);
		best->tests = fails ? TUNE_FAILS : TUNE_PASSES;
	}
	assert(best);
	struct standing own = standing_of(s, t, best, n);
	for (size_t i = 0; i < s->n_runs && ret_failing; i++) {
		const struct standing other = standing_of(s, t, s->runs[i], n);
		if (s->runs[i]->tests == TUNE_FAILS && is_better(&other, &own)) {
			*ret_failing = s->runs[i];
			own = other;
		}
	}
	return best;
}

// Chooses before each part of the second half, and measures the choice on the part (walk-forward), into t->folds. A
// choice knows the parts before only.
static void validate(const struct tune_search *s, struct tune *t)
{
	double late = s->scene->config.late_ratio;
	double loss_in = 0, loss_out = 0, present_in = 0, present_out = 0;
	const struct tune_trial *present = s->runs[0];
	for (size_t k = 0; k < TUNE_FOLDS; k++) {
		size_t part = TUNE_IN_PARTS + k;
		struct tune_fold *f = &t->folds[k];
		const struct tune_trial *best = best_trial(s, t, part, NULL);
		f->in = tune_score_sum(best->parts, 0, part);
		f->out = best->parts[part];
		f->present_in = tune_score_sum(present->parts, 0, part);
		f->present_out = present->parts[part];
		double in = tune_loss(&f->in, late), out = tune_loss(&f->out, late);
		double was_in = tune_loss(&f->present_in, late), was_out = tune_loss(&f->present_out, late);
		f->gain_in = was_in > 0 ? 1 - in / was_in : 0;
		f->gain_out = was_out > 0 ? 1 - out / was_out : 0;
		t->gap = fmax(t->gap, fabs(f->gain_in - f->gain_out));
		loss_in += in;
		loss_out += out;
		present_in += was_in;
		present_out += was_out;
	}
	t->gain_in = present_in > 0 ? 1 - loss_in / present_in : 0;
	t->gain_out = present_out > 0 ? 1 - loss_out / present_out : 0;
}

static int points_by_cost(const void *a, const void *b)
{
	const struct tune_point *x = a, *y = b;
	if (x->out.replica_s != y->out.replica_s)
		return x->out.replica_s < y->out.replica_s ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void set_point(const struct tune_trial *r, struct tune_point *p)
{
	p->index = r->index;
	memcpy(p->values, r->values, sizeof p->values);
	p->in = tune_score_sum(r->parts, 0, TUNE_IN_PARTS);
	p->out = tune_score_sum(r->parts, TUNE_IN_PARTS, TUNE_PARTS);
}

static bool is_beaten(const struct tune_point *a, const struct tune_point *by)
{
	double late = tune_late_percent(&a->out), late_by = tune_late_percent(&by->out);
	bool is_equal = by->out.replica_s == a->out.replica_s && late_by == late && by->out.changes == a->out.changes;
	return by->out.replica_s <= a->out.replica_s && late_by <= late && by->out.changes <= a->out.changes &&
	       (!is_equal || by->index < a->index);
}

static void mark_front(struct tune *t)
{
	for (size_t i = 0; i < t->n_points; i++) {
		struct tune_point *p = &t->points[i];
		p->is_front = true;
		for (size_t k = 0; k < t->n_points && p->is_front; k++)
			p->is_front = k == i || !is_beaten(p, &t->points[k]);
	}
}

// Makes a trial that has played the first half of the recording with `values`, in *ret; NULL when the rules between
// fields, or unless `may_fail` the tests of the policy, do not accept them.
static int try_values(struct tune_search *s, const double values[], bool may_fail, struct tune_trial **ret,
                      struct err *e)
{
	bool is_refused;
	struct tune_trial *r = tune_trial_new(s);
	*ret = NULL;
	if (!r)
		return err_no_memory(e);
	memcpy(r->values, values, sizeof r->values);
	int rc = tune_trial_decode(s, r, &is_refused, e);
	if (rc < 0 || is_refused || (!may_fail && breaks_tests(s, &r->policy))) {
		tune_trial_free(r);
		return rc;
	}
	tune_trial_play(s, r, 0, TUNE_IN_PARTS);
	*ret = r;
	return tune_stress_play(s, &r, 1, false, e);
}

static bool is_as_good(const struct standing *a, const struct standing *than)
{
	return a->keeps >= than->keeps && a->is_free >= than->is_free && a->loss <= (1 + WORTH_A_NUMBER) * than->loss;
}

// Takes back what saves next to nothing in sample: a patch with fewer changes is easier to judge. *choice, of
// s->runs, becomes another trial with the same index.
static int simplify(struct tune_search *s, const struct tune *t, struct tune_trial **choice, struct err *e)
{
	const struct standing first = standing_of(s, t, *choice, TUNE_IN_PARTS);
	bool may_fail = (*choice)->tests == TUNE_FAILS;
	for (size_t i = 0; i < s->space->n; i++) {
		double values[TUNE_NUMBERS_MAX];
		struct tune_trial *r;
		memcpy(values, (*choice)->values, sizeof values);
		if (values[i] == s->space->numbers[i].present)
			continue;
		values[i] = s->space->numbers[i].present;
		int rc = try_values(s, values, may_fail, &r, e);
		const struct standing simpler =
		        rc == 0 && r ? standing_of(s, t, r, TUNE_IN_PARTS) : (struct standing){0};
		if (rc < 0 || !r || !is_as_good(&simpler, &first)) {
			tune_trial_free(r);
			if (rc < 0)
				return -1;
			continue;
		}
		r->index = (*choice)->index;
		r->tests = (*choice)->tests;
		tune_trial_free(*choice);
		*choice = r;
	}
	if ((*choice)->play.next < s->scene->demand.n)
		tune_trial_play(s, *choice, TUNE_IN_PARTS, TUNE_PARTS);
	return atomic_load(&s->has_failed) ? err_no_memory(e) : 0;
}

static bool is_changed(const struct tune_space *s, const double values[])
{
	for (size_t i = 0; i < s->n; i++)
		if (values[i] != s->numbers[i].present)
			return true;
	return false;
}

static void find_points(struct tune *t, size_t chosen)
{
	qsort(t->points, t->n_points, sizeof *t->points, points_by_cost);
	for (size_t i = 0; i < t->n_points; i++) {
		if (t->points[i].index == 0)
			t->present = i;
		if (t->points[i].index == chosen)
			t->chosen = i;
	}
}

// Chooses on the first half the point to recommend, into t->points and t->chosen.
static int choose(struct tune_search *s, struct tune *t, struct err *e)
{
	double late = s->scene->config.late_ratio;
	struct tune_trial *failing = NULL, *best = best_trial(s, t, TUNE_IN_PARTS, &failing);
	for (size_t i = 0; i < s->n_runs; i++)
		t->n_failing += s->runs[i]->tests == TUNE_FAILS;
	if (failing)
		tune_tests_run(s->config->tests, &failing->policy, &t->broken);
	if (best->index == 0 && failing)
		best = failing; // shows what the tests forbid
	struct tune_trial **slot = s->runs;
	while (*slot != best)
		slot++;
	if (best->index > 0 && simplify(s, t, slot, e) < 0)
		return -1;
	best = is_changed(s->space, (*slot)->values) ? *slot : s->runs[0];
	t->is_failing = best->tests == TUNE_FAILS && tune_tests_run(s->config->tests, &best->policy, &t->broken) > 0;
	if (tune_stress_play(s, &best, 1, true, e) < 0)
		return -1;
	t->late_stressed = tune_late_percent(&best->stressed);
	t->points = calloc(s->n_runs, sizeof *t->points);
	if (!t->points)
		return err_no_memory(e);
	t->n_points = s->n_runs;
	for (size_t i = 0; i < s->n_runs; i++)
		set_point(s->runs[i], &t->points[i]);
	const struct tune_score whole = tune_score_sum(best->parts, 0, TUNE_PARTS);
	t->late_bound = tune_late_bound_percent(&whole);
	find_points(t, best->index);
	mark_front(t);
	const struct tune_point *chosen = &t->points[t->chosen];
	t->keeps_objective = keeps(&chosen->out, late);
	t->dominated_by = tune_peers_dominating(t, &chosen->out, TUNE_IN_PARTS, TUNE_PARTS);
	double was = tune_loss(&t->points[t->present].out, late);
	t->gain_chosen = was > 0 ? 1 - tune_loss(&chosen->out, late) / was : 0;
	return 0;
}

// ---- the search ----

#define DECISIONS_MIN 20 // that a reaction of the policy takes at least, for the length of a part

const char *const tune_verdict_names[] = {"Recommended", "NoneBetter", "TooSmall",  "Uncertain",
                                          "TooShort",    "TooLate",    "Dominated", "BreaksTests"};
_Static_assert(sizeof tune_verdict_names / sizeof *tune_verdict_names == TUNE_VERDICT__COUNT, "one name per verdict");

// The reasons that make the others meaningless come first.
static enum tune_verdict verdict_of(const struct tune *t, double late_ratio)
{
	double gain = fmin(t->gain_out, t->gain_chosen);
	if (t->part_ms < t->needed_ms)
		return TUNE_TOO_SHORT;
	if (t->chosen == t->present)
		return TUNE_NONE_BETTER;
	if (t->dominated_by)
		return TUNE_DOMINATED;
	if (!t->keeps_objective || fmax(t->late_bound, t->late_stressed) > 100 * late_ratio)
		return TUNE_TOO_LATE;
	if (gain <= t->gap)
		return TUNE_UNCERTAIN;
	if (gain < TUNE_GAIN_MIN)
		return TUNE_TOO_SMALL;
	return t->is_failing ? TUNE_BREAKS_TESTS : TUNE_RECOMMENDED;
}

// TUNE_SPANS times the start-up and the longest window, cooldown or stabilization window of the policy.
static int64_t needed_part_ms(const struct tune_search *s)
{
	const struct policy *p = s->space->policy;
	const struct world_config *w = &s->scene->config.world;
	int64_t start_ms = 0, wait_ms = i64_max(p->cooldown.up_ms, p->cooldown.down_ms);
	for (size_t i = 0; i < w->n_startups; i++)
		start_ms = i64_max(start_ms, llround(1000 * w->startups_s[i]));
	wait_ms = i64_max(wait_ms, p->scale_up.stabilization_window_ms);
	wait_ms = i64_max(wait_ms, p->scale_down.stabilization_window_ms);
	for (size_t i = 0; i < p->n_signals; i++) {
		wait_ms = i64_max(wait_ms, p->signals[i].window.duration_ms);
		wait_ms = i64_max(wait_ms, i64_max(p->signals[i].sustain.up_ms, p->signals[i].sustain.down_ms));
	}
	if (p->panic.set)
		wait_ms = i64_max(wait_ms, p->panic.window_ms);
	return TUNE_SPANS * i64_max(start_ms + wait_ms, DECISIONS_MIN * p->interval_ms);
}

// The shortest part, without its gaps.
static int64_t shortest_part_ms(const struct demand *d)
{
	int64_t least_ms = INT64_MAX;
	for (size_t part = 0, i = 0; part < TUNE_PARTS; part++) {
		int64_t known_ms = 0;
		for (; i < d->n * (part + 1) / TUNE_PARTS; i++)
			known_ms += isnan(d->work[i]) ? 0 : d->step_ms;
		least_ms = known_ms < least_ms ? known_ms : least_ms;
	}
	return least_ms;
}

int tune_run(const struct tune_config *config, const struct backtest *scene, struct tune_space *space, struct tune *ret,
             struct err *e)
{
	memset(ret, 0, sizeof *ret);
	assert(!scene->config.open_loop && config->candidates <= TUNE_CANDIDATES_MAX);
	if (scene->demand.n < TUNE_PARTS)
		return err_set(e, ERR_INPUT, "%s: too short to be divided into %d parts", scene->file, TUNE_PARTS);
	int32_t max = space->policy->max_replicas;
	struct tune_search s = {.config = config, .scene = scene, .space = space};
	s.loop = (struct closed_loop){.demand = &scene->demand,
	                              .world = &scene->config.world,
	                              .first = scene->first,
	                              .max = max < WORLD_REPLICAS_MAX ? max : WORLD_REPLICAS_MAX,
	                              .late_s = scene->config.wait_s};
	atomic_init(&s.has_failed, false);
	s.runs = calloc(config->candidates, sizeof(struct tune_trial *));
	int rc = s.runs ? tune_halving_play(&s, ret, e) : err_no_memory(e);
	if (rc == 0)
		rc = tune_peers_play(&s, ret, e);
	if (rc == 0)
		rc = tune_stress_play(&s, s.runs, s.n_runs, false, e);
	if (rc == 0) {
		validate(&s, ret);
		rc = choose(&s, ret, e);
	}
	ret->part_ms = shortest_part_ms(&scene->demand);
	ret->needed_ms = needed_part_ms(&s);
	if (rc == 0)
		ret->verdict = verdict_of(ret, scene->config.late_ratio);
	if (rc == 0 && ret->dominated_by && !space->policy->objective.set)
		rc = tune_library_play(&s, ret, e);
	for (size_t i = 0; i < s.n_runs; i++)
		tune_trial_free(s.runs[i]);
	free(s.runs);
	return rc;
}

void tune_done(struct tune *t)
{
	free(t->points);
	t->points = NULL;
	t->n_points = 0;
}
