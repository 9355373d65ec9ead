// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a wrong value costs minutes. Two runs of the same policy meet the same load; one of them reads one
// wrong sample, or ten minutes of a wrong unit. Half an hour after the last wrong value, in the mean of ten minutes,
// its scale is where the other one's has been since: between the smallest and the largest, give or take two replicas or
// a fifth. The runs need not be equal tick by tick: the extra replicas of the wrong minutes served the real queue
// sooner, and the window that kept them ends later. For that reason, a few runs may be elsewhere. The same for a
// process that starts later and reads the wrong samples as history.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/decide.h"
#include "test/laws/prop.h"

#define INTERVAL_MS   15000
#define STARTUP       8    // ticks from an order to ready replicas
#define SEASON        240  // ticks: an hour
#define WARM          1100 // ticks before the wrong value; more than two seasons and the trial of a forecast
#define UNIT_ERROR    40   // ticks: ten minutes
#define RECOVER       120  // ticks: half an hour
#define COMPARED      40   // ticks
#define TICKS         (WARM + UNIT_ERROR + RECOVER + COMPARED)
#define MAX           50 // replicas
#define RESTART_AFTER 20 // ticks after the last wrong value

enum kind { OBJECTIVE, FORECAST, WINDOW, KIND__COUNT };

// One run of so many may be elsewhere.
static const int far_one_in[KIND__COUNT] = {[OBJECTIVE] = 8, [FORECAST] = 20, [WINDOW] = 20};

// What a run reads wrong: `n` ticks from WARM on, the true value times `factor` plus `plus`.
struct wrong {
	int n;
	double factor, plus;
	size_t signal; // of an objective
};

struct world {
	struct engine e;
	enum kind kind;
	int32_t ordered[STARTUP];
	double backlog;
	struct obs_series history[2][TICKS];
};

// ---- a load ----

// A level with noise, with a season, or with steps; a fifth of the maximum on average. At least a hundredth of the
// maximum, so that a thousand times as much is more than any replicas could serve.
static void load_make(struct prop_random *r, double *load)
{
	int kind = prop_up_to(r, 2);
	double level = 4 + prop_up_to(r, 120) / 10.0, noise = prop_up_to(r, 15) / 100.0;
	for (int i = 0; i < TICKS; i++) {
		double season = kind == 1 ? 1 + 0.4 * sin(2 * M_PI * i / SEASON) : 1;
		if (kind == 2 && i < WARM && prop_up_to(r, 399) == 0)
			level = 4 + prop_up_to(r, 120) / 10.0;
		load[i] = level * season * (1 + noise * (prop_up_to(r, 200) / 100.0 - 1));
	}
}

static struct wrong wrong_make(struct prop_random *r)
{
	static const struct wrong wrongs[] = {
	        {1, 1e3, 0, 0},           {1, 1e5, 0, 0},   {1, 1e18, 0, 0},         {1, -1e18, 0, 0},
	        {1, 0, -1e6, 0},          {1, 0, 0, 0},     {1, 1e-5, 0, 0},         {1, 0, 1e9, 0},
	        {3, 1e3, 0, 0},           {1, 0, 1e308, 0}, {UNIT_ERROR, 1e3, 0, 0}, {UNIT_ERROR, 1e18, 1e9, 0},
	        {UNIT_ERROR, -1e3, 0, 0},
	};
	struct wrong w = wrongs[prop_up_to(r, (int32_t)(sizeof wrongs / sizeof wrongs[0]) - 1)];
	w.signal = prop_chance(r, 30);
	return w;
}

// ---- a policy ----

static struct policy_signal *add_signal(struct prop_random *r, struct engine *e, double target)
{
	struct policy_signal *s;
	switch (prop_up_to(r, 3)) {
	case 0:
		return engine_add_value(e, "s", target);
	case 1:
		s = engine_add_value(e, "s", target);
		s->target.type = TARGET_AVERAGE_VALUE;
		return s;
	case 2:
		return engine_add_replicas(e, "s");
	default:
		return engine_add_watermarks(e, "s", target * 0.95, target, prop_up_to(r, 1));
	}
}

static void policy_make(struct prop_random *r, const struct wrong *wrong, struct world *w)
{
	struct engine *e = &w->e;
	engine_init(e, 8);
	e->policy.max_replicas = MAX;
	if (prop_chance(r, 50))
		e->policy.scale_down.stabilization_window_ms = INTERVAL_MS * prop_up_to(r, 40);
	if (w->kind == OBJECTIVE) {
		engine_add_objective(e);
		e->policy.objective.wait_ms = 1000 * (2 + prop_up_to(r, 28));
		return;
	}
	struct policy_signal *s = add_signal(r, e, 1 + prop_up_to(r, 40) / 4.0);
	// Inside a band, any scale is right: without one, the load decides.
	s->target.tolerance_ratio = s->watermarks.tolerance_ratio = 0;
	// A window over a value per replica would mix the scales of its time, and swing by itself.
	bool is_total =
	        s->watermarks.set ? s->watermarks.algorithm == WATERMARK_AVERAGE : s->target.type != TARGET_VALUE;
	if (is_total && prop_chance(r, w->kind == WINDOW ? 100 : 30))
		s->window = (struct policy_window){true, INTERVAL_MS * (2 + prop_up_to(r, 38)),
		                                   prop_up_to(r, WINDOW_AGGREGATE__COUNT - 1), 1};
	// A long window may remember ten wrong minutes, or a maximum, for its length, but no single sample of its mean.
	// A panic lasts for its window.
	if (s->window.set && w->kind == WINDOW && wrong->n == 1 && prop_chance(r, 50))
		s->window = (struct policy_window){true, INTERVAL_MS * (360 + prop_up_to(r, 120)), WINDOW_AVG, 1};
	if (s->window.set && s->window.duration_ms <= UNIT_ERROR * INTERVAL_MS && w->kind == WINDOW &&
	    prop_chance(r, 40))
		e->policy.panic =
		        (struct policy_panic){.set = true, .signal = "s", .window_ms = INTERVAL_MS * 2, .threshold = 2};
	if (w->kind == WINDOW && prop_chance(r, 40))
		s->sustain = (struct policy_sustain){INTERVAL_MS * prop_up_to(r, 4), INTERVAL_MS * prop_up_to(r, 20)};
	if (w->kind == FORECAST)
		e->policy.forecast = (struct policy_forecast){.set = true,
		                                              .signal = "s",
		                                              .model = prop_up_to(r, 1),
		                                              .season_ms = (int64_t)INTERVAL_MS * SEASON,
		                                              .window_ms = INTERVAL_MS * (8 + prop_up_to(r, 52)),
		                                              .horizon_ms = INTERVAL_MS * (1 + prop_up_to(r, 10)),
		                                              .use = prop_up_to(r, 1),
		                                              .band = prop_up_to(r, 2),
		                                              .alpha = 0.3,
		                                              .beta = 0.01,
		                                              .gamma = 0.2};
}

// ---- a run ----

// What the signal shows of a load in replicas.
static double shown(const struct engine *e, double load)
{
	const struct policy_signal *s = &e->signals[0];
	double ready = e->seen.ready_replicas;
	if (s->watermarks.set)
		return load * s->watermarks.high * 0.9 / (s->watermarks.algorithm == WATERMARK_ABSOLUTE ? ready : 1);
	if (s->target.type == TARGET_REPLICAS)
		return load;
	return load * s->target.value / (s->target.type == TARGET_VALUE ? ready : 1);
}

static void show(struct world *w, size_t signal, int tick, double value)
{
	engine_show(&w->e, signal, value);
	w->history[signal][tick] = (struct obs_series){.pod = "", .value = value, .time_ms = w->e.now_ms};
}

static void run_tick(struct world *w, int tick, double load, const struct wrong *wrong)
{
	struct engine *e = &w->e;
	bool is_wrong = wrong && tick >= WARM && tick < WARM + wrong->n;
	int32_t ready = e->seen.spec_replicas;
	for (int i = 0; i < STARTUP; i++)
		ready = ready < w->ordered[i] ? ready : w->ordered[i];
	e->seen.ready_replicas = ready;
	w->backlog = fmax(0, w->backlog + (load - ready) * 15);
	double values[2] = {w->kind == OBJECTIVE ? load : shown(e, load), w->backlog};
	size_t at = w->kind == OBJECTIVE && is_wrong ? wrong->signal : 0;
	if (is_wrong)
		values[at] = values[at] * wrong->factor + wrong->plus;
	for (size_t i = 0; i < e->policy.n_signals; i++)
		show(w, i, tick, values[i]);
	engine_tick(e);
	w->ordered[tick % STARTUP] = e->seen.spec_replicas;
	if (e->decision.write)
		engine_apply(e);
	e->now_ms += INTERVAL_MS;
}

// A new process without a status, which reads the samples so far as history.
static void restart(struct world *w, int tick)
{
	struct engine *e = &w->e;
	engine_start(e);
	decide_record_recommendation(&e->policy, e->state, e->now_ms, e->seen.spec_replicas);
	if (w->kind == OBJECTIVE) {
		decide_refill_objective(&e->policy, e->state, w->history[0], (size_t)tick, e->seen.spec_replicas,
		                        e->now_ms);
		return;
	}
	if (w->kind == FORECAST)
		decide_refill_forecast(&e->policy, e->state, w->history[0], (size_t)tick, e->now_ms);
	decide_refill(&e->policy, e->state, 0, w->history[0], (size_t)tick, e->seen.ready_replicas, e->now_ms);
}

static struct world *world_new(const struct world *policy)
{
	struct world *w = malloc(sizeof *w);
	assert_non_null(w);
	*w = *policy;
	prop_copy(&w->e, &policy->e);
	for (int i = 0; i < STARTUP; i++)
		w->ordered[i] = w->e.seen.spec_replicas;
	return w;
}

static void world_free(struct world *w)
{
	engine_done(&w->e);
	free(w);
}

// Returns whether the scale after a wrong value is one that the other run had, or close to it.
static bool compare_runs(struct prop_random *r, enum kind kind, bool restarts, int64_t done)
{
	static double load[TICKS];
	static struct world policy;
	struct wrong wrong = wrong_make(r);
	policy = (struct world){.kind = kind};
	load_make(r, load);
	policy_make(r, &wrong, &policy);
	engine_start(&policy.e);
	struct world *a = world_new(&policy), *b = world_new(&policy);
	double least = INFINITY, most = 0, sum = 0;
	int from = WARM + wrong.n + RECOVER;
	for (int i = 0; i < from + COMPARED; i++) {
		if (restarts && i == WARM + wrong.n + RESTART_AFTER) {
			restart(a, i);
			restart(b, i);
		}
		run_tick(a, i, load[i], NULL);
		run_tick(b, i, load[i], &wrong);
		if (i < WARM && a->e.seen.spec_replicas != b->e.seen.spec_replicas)
			prop_fail_at("equal runs are equal", done, &b->e);
		least = i >= WARM ? fmin(least, a->e.seen.spec_replicas) : least;
		most = i >= WARM ? fmax(most, a->e.seen.spec_replicas) : most;
		sum += i >= from ? b->e.seen.spec_replicas : 0;
	}
	bool is_close = sum / COMPARED <= most + fmax(2, most / 5) && sum / COMPARED >= least - fmax(2, least / 5);
	world_free(a);
	world_free(b);
	engine_done(&policy.e);
	return is_close;
}

static void run_law(struct prop_random *r, enum kind kind, bool restarts, const char *law)
{
	int64_t n = prop_ticks(), runs = 0, far = 0;
	for (int64_t done = 0; done < n; done += 2 * TICKS, runs++)
		far += !compare_runs(r, kind, restarts, done);
	if (far * far_one_in[kind] > runs)
		fail_msg("PROP_SEED=%ld: %s: not so in %ld of %ld runs", (long)prop_seed(), law, (long)far, (long)runs);
}

static void objective_forgets_a_wrong_value_in_half_an_hour(void **state)
{
	struct prop_random r = {prop_seed() + 60};
	run_law(&r, OBJECTIVE, false, "an objective forgets a wrong value in half an hour");
}

static void forecast_forgets_a_wrong_value_in_half_an_hour(void **state)
{
	struct prop_random r = {prop_seed() + 61};
	run_law(&r, FORECAST, false, "a forecast forgets a wrong value in half an hour");
}

static void window_forgets_a_wrong_value_in_half_an_hour(void **state)
{
	struct prop_random r = {prop_seed() + 62};
	run_law(&r, WINDOW, false, "a window forgets a wrong value in half an hour");
}

static void wrong_history_is_forgotten_in_half_an_hour(void **state)
{
	struct prop_random r = {prop_seed() + 63};
	for (enum kind kind = OBJECTIVE; kind < KIND__COUNT; kind++)
		run_law(&r, kind, true, "wrong history is forgotten in half an hour");
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(objective_forgets_a_wrong_value_in_half_an_hour),
	        cmocka_unit_test(forecast_forgets_a_wrong_value_in_half_an_hour),
	        cmocka_unit_test(window_forgets_a_wrong_value_in_half_an_hour),
	        cmocka_unit_test(wrong_history_is_forgotten_in_half_an_hour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
