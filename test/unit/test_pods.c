// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a signal of type Pods asks for what the HPA asks for with a Pods metric, whatever pods are
// missing, pending, failed or deleted; a query without one series per pod is reported.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/source.h"
#include "test/support/engine.h"

#define PODS_MAX 12

// One pod each: R ready, u unready, p pending, f failed, d deleted; then the sample, "-" = none.
struct row {
	const char *states;
	double values[PODS_MAX]; // NAN = none
	double target, tolerance;
	int32_t spec, want;
	enum reason reason;
};

#define NO     NAN
#define ABOVE  REASON_ABOVE_TARGET
#define BELOW  REASON_BELOW_TARGET
#define WITHIN REASON_WITHIN_TOLERANCE
#define UNSURE REASON_PODS_INCONCLUSIVE
#define NOBODY REASON_NO_POD_SAMPLES

static const struct row rows[] = {
        // all pods report: ceil(mean / target * pods)
        {"RRR", {20, 10, 30}, 10, 0.1, 3, 6, ABOVE},
        {"RRR", {5, 4, 6}, 10, 0.1, 3, 2, BELOW},
        {"RRR", {11, 11, 11}, 10, 0.1, 3, 3, WITHIN},
        {"RRR", {9, 9, 9}, 10, 0.1, 3, 3, WITHIN},
        {"RRR", {0, 0, 0}, 10, 0.1, 3, 0, BELOW},
        // a whole quotient must not end above itself
        {"RRRRRRR", {1, 1, 1, 2, 2, 2, 2}, 1, 0, 7, 11, ABOVE},
        // running but not ready: counts by its sample, as in the HPA for all but CPU
        {"RRu", {20, 20, 20}, 10, 0.1, 3, 6, ABOVE},
        // one missing on the way up counts 0: (30 + 30 + 0) / 10
        {"RRR", {30, 30, NO}, 10, 0.1, 3, 6, ABOVE},
        {"RRu", {30, 30, NO}, 10, 0.1, 3, 6, ABOVE},
        // ... and can put the mean inside the tolerance, or on the other side
        {"RRR", {15, 15, NO}, 10, 0.1, 3, 3, WITHIN},
        {"RRR", {12, 12, NO}, 10, 0.1, 3, 3, UNSURE},
        // one missing on the way down counts as the target: (2 + 2 + 10) / 10
        {"RRR", {2, 2, NO}, 10, 0.1, 3, 2, BELOW},
        {"RRR", {9, 9, NO}, 10, 0.05, 3, 3, BELOW}, // 28 / 10 rounds up to spec
        {"RRR", {9.5, 9.5, NO}, 10, 0.04, 3, 3, WITHIN},
        // exactly on target nothing is filled in
        {"RRR", {10, 10, NO}, 10, 0.1, 3, 3, WITHIN},
        // pending: nothing on the way down, 0 on the way up, sample or not
        {"RRp", {2, 2, NO}, 10, 0.1, 3, 1, BELOW},
        {"RRp", {30, 30, NO}, 10, 0.1, 3, 6, ABOVE},
        {"RRp", {30, 30, 99}, 10, 0.1, 3, 6, ABOVE},
        {"RRp", {15, 15, NO}, 10, 0.1, 3, 3, WITHIN},
        {"RRpppp", {20, 20, NO, NO, NO, NO}, 10, 0.1, 6, 6, UNSURE}, // no cascade while pods start
        // failed and deleted pods do not exist, whatever they report
        {"RRfd", {20, 20, 99, 99}, 10, 0.1, 2, 4, ABOVE},
        {"RRfd", {20, 20, NO, NO}, 10, 0.1, 2, 4, ABOVE},
        {"RRfd", {2, 2, 99, NO}, 10, 0.1, 2, 1, BELOW},
        // the result does not go against the ratio: 2 of 8 answer, spec 8. The HPA scales the first to 4.
        {"RR", {20, 20}, 10, 0.1, 8, 8, ABOVE},
        {"RRp", {40, 40, NO}, 10, 0.1, 20, 20, ABOVE},
        {"RRR", {5, 5, 5}, 10, 0.1, 1, 1, BELOW},
        // several pods for one replica: the mean of those with a sample, as many as there are replicas
        {"RRRRRRRRRR", {21, NO, NO, NO, NO, 21, NO, NO, NO, NO}, 7, 0.1, 2, 6, ABOVE},
        {"RRRRRRRRRR", {1, NO, NO, NO, NO, 1, NO, NO, NO, NO}, 7, 0.1, 2, 1, BELOW},
        {"RRRRRR", {14, 14, 14, 14, 14, 14}, 7, 0.1, 2, 4, ABOVE},
        {"RRRRpp", {14, 14, 14, 14, NO, NO}, 7, 0.1, 2, 4, ABOVE},
        {"RRRpp", {20, 20, 20, NO, NO}, 10, 0.1, 4, 6, ABOVE}, // a surge: one of the pending pods counts
        // no pod has a sample
        {"RR", {NO, NO}, 10, 0.1, 2, 2, NOBODY},
        {"pp", {5, 5}, 10, 0.1, 2, 2, NOBODY},
        {"fd", {5, 5}, 10, 0.1, 2, 2, NOBODY},
        {"", {0}, 10, 0.1, 2, 2, NOBODY},
};

static const char *const names[PODS_MAX] = {"pod-a", "pod-b", "pod-c", "pod-d", "pod-e", "pod-f",
                                            "pod-g", "pod-h", "pod-i", "pod-j", "pod-k", "pod-l"};

struct world {
	struct engine e;
	struct obs_pod pods[PODS_MAX];
	struct obs_series series[PODS_MAX + 1];
};

static enum pod_state state_of(char c)
{
	return c == 'R'   ? POD_READY
	       : c == 'u' ? POD_UNREADY
	       : c == 'p' ? POD_PENDING
	       : c == 'f' ? POD_FAILED
	                  : POD_DELETED;
}

static void start(struct world *w, int32_t spec, double target, double tolerance)
{
	engine_init(&w->e, spec);
	w->e.policy.min_replicas = 0;
	struct policy_signal *s = engine_add_value(&w->e, "s", target);
	s->target.type = TARGET_PODS;
	s->target.tolerance_ratio = tolerance;
	engine_start(&w->e);
}

static void show(struct world *w, const char *states, const double *values)
{
	size_t n = 0;
	for (size_t i = 0; i < strlen(states); i++) {
		w->pods[i] = (struct obs_pod){names[i], state_of(states[i])};
		if (isfinite(values[i]))
			w->series[n++] = (struct obs_series){names[i], values[i], w->e.now_ms};
	}
	w->series[n] = (struct obs_series){"other-pod", 1e6, w->e.now_ms}; // never the target's
	w->e.seen.pods = w->pods;
	w->e.seen.n_pods = strlen(states);
	w->e.seen_signals[0] = (struct obs_signal){.state = OBS_OK, .series = w->series, .n_series = n + 1};
}

static void each_row_asks_for_what_the_hpa_would(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct row *r = &rows[i];
		struct world w;
		start(&w, r->spec, r->target, r->tolerance);
		show(&w, r->states, r->values);
		const struct decision *d = engine_tick_as_stamped(&w.e);
		if (d->signals[0].proposal != r->want || d->signals[0].reason != r->reason)
			fail_msg("row %zu (%s): %d %s, must be %d %s", i, r->states, d->signals[0].proposal,
			         reason_info(d->signals[0].reason)->name, r->want, reason_info(r->reason)->name);
		if (r->reason == NOBODY)
			assert_int_equal(d->action, ACTION_HOLD);
		engine_done(&w.e);
	}
}

// ---- against the HPA's arithmetic, in whole milli-units as it has it ----

struct group {
	int64_t sum, n, missing, pending;
};

static struct group group(const char *states, const double *values)
{
	struct group g = {0};
	for (size_t i = 0; states[i]; i++) {
		if (states[i] == 'f' || states[i] == 'd')
			continue;
		if (states[i] == 'p')
			g.pending++;
		else if (isfinite(values[i])) {
			g.sum += (int64_t)values[i] * 1000;
			g.n++;
		} else
			g.missing++;
	}
	return g;
}

// More pods than replicas count as replicas: the mean stays.
static struct group limited(struct group g, int64_t spec)
{
	if (g.n > spec) {
		g.sum = g.sum * spec / g.n;
		g.n = spec;
	}
	if (g.missing > spec - g.n)
		g.missing = spec - g.n;
	if (g.pending > spec - g.n - g.missing)
		g.pending = spec - g.n - g.missing;
	return g;
}

// Never against the ratio, which is where gpuscale differs from the HPA.
static int64_t with_the_ratio(double ratio, double replicas, int64_t spec)
{
	int64_t n = (int64_t)ceil(replicas);
	return (ratio < 1.0 && n > spec) || (ratio > 1.0 && n < spec) ? spec : n;
}

// -1 = an error there
static int64_t by_the_hpa(struct group g, int64_t target, int64_t spec)
{
	if (g.n == 0)
		return -1;
	g = limited(g, spec);
	double ratio = (double)(g.sum / g.n) / (double)(target * 1000);
	bool up_with_pending = g.pending > 0 && ratio > 1.0;
	if (!up_with_pending && g.missing == 0)
		return 0.9 <= ratio && ratio <= 1.1 ? spec : with_the_ratio(ratio, ratio * (double)g.n, spec);
	if (ratio < 1.0) {
		g.sum += g.missing * target * 1000;
		g.n += g.missing;
	} else if (ratio > 1.0) {
		g.n += g.missing;
	}
	g.n += up_with_pending ? g.pending : 0;
	double again = (double)(g.sum / g.n) / (double)(target * 1000);
	if ((0.9 <= again && again <= 1.1) || (ratio < 1.0 && again > 1.0) || (ratio > 1.0 && again < 1.0))
		return spec;
	return with_the_ratio(again, again * (double)g.n, spec);
}

static void random_pods_get_the_answer_of_the_hpa(void **state)
{
	srand(7);
	int32_t n_filled = 0, n_stays = 0;
	for (int k = 0; k < 100000; k++) {
		char states[PODS_MAX + 1] = "";
		double values[PODS_MAX];
		int n = 1 + rand() % PODS_MAX, target = 10 * (1 + rand() % 9), load = rand() % (3 * target);
		for (int i = 0; i < n; i++) {
			states[i] = rand() % 4 ? 'R' : "upfd"[rand() % 4];
			values[i] = rand() % 5 ? (double)((load + rand() % (target + 1)) / 2) : NAN;
		}
		struct world w;
		int32_t spec = 1 + rand() % 14;
		start(&w, spec, target, 0.1);
		show(&w, states, values);
		const struct decision *d = engine_tick_as_stamped(&w.e);
		int64_t want = by_the_hpa(group(states, values), target, spec);
		int64_t got = d->signals[0].state == SIGNAL_OK ? d->signals[0].proposal : -1;
		if (got != want)
			fail_msg("case %d: %s, target %d, spec %d: %lld, the HPA says %lld", k, states, target, spec,
			         (long long)got, (long long)want);
		n_filled += engine_find(&w.e, REASON_PODS_FILLED) != NULL;
		n_stays += d->signals[0].reason == UNSURE;
		engine_done(&w.e);
	}
	assert_true(n_filled > 10000 && n_stays > 100); // the hard part was put to the test
}

// ---- without the list of pods ----

static void counts_replace_a_missing_list_of_pods(void **state)
{
	static const struct {
		int32_t spec, pending, want;
		double value; // of each of two pods
		enum reason reason;
	} cases[] = {
	        {2, 0, 4, 20, ABOVE},  {3, 0, 6, 30, ABOVE}, {3, 0, 3, 12, UNSURE},
	        {3, 1, 3, 12, UNSURE}, {3, 0, 2, 2, BELOW},  {3, 1, 1, 2, BELOW},
	        {5, 1, 3, 2, BELOW},   {2, 2, 1, 2, BELOW},  {2, 1, 4, 20, ABOVE},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct world w;
		start(&w, cases[i].spec, 10, 0.1);
		show(&w, "RR", (double[]){cases[i].value, cases[i].value});
		w.e.seen.pods = NULL;
		w.e.seen.pending_replicas = cases[i].pending;
		w.e.seen_signals[0].n_series = 2;
		const struct decision *d = engine_tick_as_stamped(&w.e);
		if (d->signals[0].proposal != cases[i].want || d->signals[0].reason != cases[i].reason)
			fail_msg("case %zu: %d %s", i, d->signals[0].proposal, reason_info(d->signals[0].reason)->name);
		engine_done(&w.e);
	}
}

// ---- unusable samples ----

static void stale_or_broken_sample_is_a_missing_pod(void **state)
{
	for (int how = 0; how < 3; how++) {
		struct world w;
		start(&w, 3, 10, 0.1);
		show(&w, "RRR", (double[]){30, 30, 30});
		if (how == 0)
			w.series[2].time_ms -= 60001;
		else
			w.series[2].value = how == 1 ? (double)NAN : (double)INFINITY;
		const struct decision *d = engine_tick_as_stamped(&w.e);
		assert_int_equal(d->signals[0].proposal, 6);
		const struct trace_entry *note = engine_find(&w.e, REASON_PODS_FILLED);
		assert_non_null(note);
		assert_true(note->count == 1 && note->limit == 0);
		assert_true(d->signals[0].value == 30); // what the others report
		engine_done(&w.e);
	}
}

static void all_of_them_bad_is_a_hold_with_the_fault(void **state)
{
	static const enum reason reasons[] = {REASON_STALE_DATA, REASON_NON_FINITE, REASON_NO_POD_LABEL,
	                                      REASON_NO_POD_SAMPLES, REASON_SEVERAL_PER_POD};
	for (size_t how = 0; how < sizeof reasons / sizeof reasons[0]; how++) {
		struct world w;
		start(&w, 2, 10, 0.1);
		show(&w, "RR", (double[]){30, 30});
		for (size_t i = 0; i < 3; i++) {
			w.series[i].time_ms -= how == 0 ? 61000 : 0;
			if (how == 1)
				w.series[i].value = NAN;
			if (how == 2)
				w.series[i].pod = "";
			if (how == 3)
				w.series[i].pod = names[5 + i];
			if (how == 4)
				w.series[i].pod = names[0];
		}
		const struct decision *d = engine_tick_as_stamped(&w.e);
		assert_int_equal(d->action, ACTION_HOLD);
		if (d->reason != reasons[how])
			fail_msg("%s, must be %s", reason_info(d->reason)->name, reason_info(reasons[how])->name);
		engine_done(&w.e);
	}
	static const enum obs_state states[] = {OBS_EMPTY, OBS_FAILED, OBS_PARTIAL};
	static const enum reason of[] = {REASON_NO_DATA, REASON_QUERY_FAILED, REASON_PARTIAL_RESPONSE};
	for (size_t i = 0; i < 3; i++) {
		struct world w;
		start(&w, 2, 10, 0.1);
		engine_show_state(&w.e, 0, states[i]);
		assert_int_equal(engine_tick(&w.e)->reason, of[i]);
		assert_int_equal(w.e.decision.action, ACTION_HOLD);
		engine_done(&w.e);
	}
}

static void order_of_series_and_pods_decides_nothing(void **state)
{
	struct world w;
	start(&w, 4, 10, 0.1);
	show(&w, "RRuR", (double[]){30, 0.1, 25, NAN});
	int32_t want = engine_tick_as_stamped(&w.e)->desired;
	double value = w.e.decision.signals[0].value;
	for (int k = 0; k < 20; k++) {
		for (size_t i = 3; i > 0; i--) {
			size_t a = (size_t)rand() % (i + 1), b = (size_t)rand() % (i + 1);
			struct obs_series s = w.series[i];
			w.series[i] = w.series[a];
			w.series[a] = s;
			struct obs_pod p = w.pods[i];
			w.pods[i] = w.pods[b];
			w.pods[b] = p;
		}
		assert_int_equal(engine_tick_as_stamped(&w.e)->signals[0].proposal, want);
		assert_true(w.e.decision.signals[0].value == value);
	}
	engine_done(&w.e);
}

static void two_gpus_of_a_pod_without_a_label_are_left_out(void **state)
{
	struct world w; // an idle GPU has no pod: its series carries no label, two series are not an error
	start(&w, 2, 10, 0.1);
	show(&w, "RR", (double[]){20, 20});
	w.series[3] = w.series[2] = (struct obs_series){"", 0, w.e.now_ms};
	w.e.seen_signals[0].n_series = 4;
	assert_int_equal(engine_tick_as_stamped(&w.e)->desired, 4);
	engine_done(&w.e);
}

static void sustain_times_pods_signals_too(void **state)
{
	struct world w;
	start(&w, 2, 10, 0.1);
	w.e.signals[0].sustain.up_ms = 30000;
	engine_start(&w.e);
	for (int i = 0; i < 3; i++) {
		show(&w, "RR", (double[]){20, 20});
		assert_int_equal(engine_tick_as_stamped(&w.e)->desired, i < 2 ? 2 : 4);
		w.e.now_ms += 15000;
	}
	engine_done(&w.e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(each_row_asks_for_what_the_hpa_would),
	        cmocka_unit_test(random_pods_get_the_answer_of_the_hpa),
	        cmocka_unit_test(counts_replace_a_missing_list_of_pods),
	        cmocka_unit_test(stale_or_broken_sample_is_a_missing_pod),
	        cmocka_unit_test(all_of_them_bad_is_a_hold_with_the_fault),
	        cmocka_unit_test(order_of_series_and_pods_decides_nothing),
	        cmocka_unit_test(two_gpus_of_a_pod_without_a_label_are_left_out),
	        cmocka_unit_test(sustain_times_pods_signals_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
