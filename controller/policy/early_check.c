// SPDX-License-Identifier: Apache-2.0
// Checks the signals of a policy between two of its ticks. When one has moved, the policy ticks at once, at most once
// per interval in addition to its own ticks. An early check sends the queries of the policy, combined with similar ones
// (runtime/query/early_query.c) or else with any others (runtime/query/query_hub.h). It neither reads the target nor
// decides anything, so it costs a fraction of a tick.
#include "controller/policy/managed_policy.h"

#include <math.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/clock.h"
#include "controller/tick/observe.h"
#include "controller/tick/reconcile.h"
#include "policies/load/policy_ref.h"
#include "promql/promql.h"
#include "runtime/connections.h"
#include "runtime/metrics/metrics.h"

#define CHECK_MOVED 0.1 // of the value at the last tick: the HPA's default tolerance
#define CHECK_PAUSE                                                                                                    \
	20 // the pause after a check, in durations of that check: a slow query takes at most 5 % of the time
// Checks whose queries cannot be combined with similar ones cost as much as those of a tick. In flight at once: two
// requests of several queries. More would slow each other down, and slow requests are split.
#define CHECKS_ALONE_MAX   32
#define CHECKS_ALONE_PER_S 200
#define CHECK_ALONE_MS     3000 // between two of one policy, and after a tick

struct early_check {
	struct managed_policies *all;
	struct managed_policy *policy; // NULL: forgotten, only the answers are still to come
	int pending;                   // outstanding answers, and one while they are requested
	int64_t now_ms, started_mono_ms;
	bool has_moved, has_failed;
	bool is_alone; // counted in early_checks
	struct checked_signal {
		struct early_check *check;
		double was;
	} signals[];
};

// A signal with a window follows slowly anyway. Others have the value of the last tick to compare with.
static bool is_comparable(const struct policy_signal *s, const struct decision_signal *last)
{
	return s->query && observe_takes_one_series(s) && !s->window.set && last->state != SIGNAL_MISSING &&
	       isfinite(last->value);
}

// A window that counts samples, or has no room for more than one per interval.
static bool counts_samples(const struct policy *p, const struct policy_window *w)
{
	return w->set && (w->min_samples > 0 || w->duration_ms / p->interval_ms >= POLICY_WINDOW_SAMPLES_MAX / 2);
}

// Early ticks would disturb what counts ticks: forecasts and objectives have an observation per interval, the fallback
// counts failures, and the guards count steady ticks and limit the step of one tick.
static bool is_eligible(const struct policy *p)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (counts_samples(p, &p->signals[i].window))
			return false;
	return !p->paused && !p->forecast.set && !p->objective.set && !p->fallback.set && !p->guards.gain.set &&
	       p->guards.max_step == 0;
}

static void tick_early(struct managed_policy *m, int64_t now_ms)
{
	struct managed_policies *all = m->all;
	int64_t mono_ms = clock_mono_ms(&all->connections->clock);
	bool is_too_soon = m->has_early_tick && mono_ms - m->early_mono_ms < m->body->policy.interval_ms;
	if (is_too_soon || m->ticker.state != TICK_IDLE || !m->ticker.group || all->stopping)
		return;
	m->has_early_tick = true;
	m->early_mono_ms = mono_ms;
	metrics_count(all->metrics, FAMILY_TICKS_EARLY, "");
	ticks_ask(all->ticks, &m->ticker, now_ms);
	ticks_run(all->ticks);
}

static void start_queued(struct managed_policies *all);

static void finish_one(struct early_check *l)
{
	if (--l->pending > 0)
		return;
	struct managed_policies *all = l->all;
	struct managed_policy *m = l->policy;
	int64_t mono_ms = clock_mono_ms(&all->connections->clock);
	all->early_checks->in_flight -= l->is_alone;
	if (m) {
		m->early_check = NULL;
		m->early_check_failed = l->has_failed;
		m->early_after_mono_ms = mono_ms + CHECK_PAUSE * (mono_ms - l->started_mono_ms);
	}
	if (m && l->has_moved)
		tick_early(m, l->now_ms);
	free(l);
	start_queued(all);
}

static void compare(const struct checked_signal *s, double value)
{
	if (isfinite(value) && fabs(value - s->was) > CHECK_MOVED * fabs(s->was))
		s->check->has_moved = true;
}

static void on_answer(void *arg, struct query_answer *a)
{
	struct checked_signal *s = arg;
	if (a->state == OBS_OK && a->n_series == 1)
		compare(s, a->series[0].value);
	s->check->has_failed |= a->state == OBS_FAILED;
	finish_one(s->check);
}

static void on_early_value(void *arg, enum early_query_outcome outcome, size_t n_series, double value)
{
	struct checked_signal *s = arg;
	if (outcome == EARLY_QUERY_ANSWERED && n_series == 1)
		compare(s, value);
	s->check->has_failed |= outcome == EARLY_QUERY_FAILED;
	if (outcome == EARLY_QUERY_UNFIT && s->check->policy)
		s->check->policy->checks_alone = true;
	finish_one(s->check);
}

static void start(struct managed_policy *m, int64_t now_ms)
{
	struct managed_policies *all = m->all;
	const struct decision *d = m->reconciler->decision;
	const struct policy *p = &m->body->policy;
	if (!d || d->n_signals != p->n_signals)
		return;
	struct early_check *l = must_alloc(calloc(1, sizeof *l + p->n_signals * sizeof l->signals[0]));
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	l->all = all;
	l->policy = m;
	l->pending = 1;
	l->now_ms = now_ms;
	l->started_mono_ms = clock_mono_ms(&all->connections->clock);
	l->is_alone = m->checks_alone;
	m->early_check = l;
	all->early_checks->in_flight += l->is_alone;
	for (size_t i = 0; i < p->n_signals; i++) {
		if (!is_comparable(&p->signals[i], &d->signals[i]))
			continue;
		l->signals[i] = (struct checked_signal){l, d->signals[i].value};
		l->pending++;
		if (l->is_alone) {
			observe_ask(all->connections->queries, p, i, now_ms, &query, on_answer, &l->signals[i]);
		} else if (!observe_check_early(all->connections->queries, p, i, now_ms, &query, on_early_value,
		                                &l->signals[i])) {
			m->checks_alone = true; // from the next check on, which counts against CHECKS_ALONE_MAX
			l->pending--;
		}
	}
	buf_done(&query);
	finish_one(l);
}

static void leave_queue(struct managed_policy *m)
{
	if (m->awaits_early_check)
		DL_DELETE2(m->all->early_checks->queue, m, previous_early, next_early);
	m->awaits_early_check = false;
}

static void start_queued(struct managed_policies *all)
{
	if (all->early_checks->is_starting)
		return; // called by a check that ended at once; the loop below continues
	all->early_checks->is_starting = true;
	while (all->early_checks->queue && all->early_checks->in_flight < CHECKS_ALONE_MAX && !all->stopping) {
		struct managed_policy *m = all->early_checks->queue;
		leave_queue(m);
		if (m->ticker.state == TICK_IDLE) // a tick checks as well
			start(m, m->early_check_ms);
	}
	all->early_checks->is_starting = false;
}

// Returns whether a check that costs as much as a tick's queries may be sent, and counts it.
static bool may_check_alone(struct managed_policy *m, int64_t now_ms)
{
	struct early_checks *checks = m->all->early_checks;
	int64_t mono_ms = clock_mono_ms(&m->all->connections->clock), second = mono_ms / 1000;
	int64_t since_tick_ms = mono_ms - m->ticker.since_mono_ms, since_check_ms = now_ms - m->early_check_ms;
	if (since_tick_ms < CHECK_ALONE_MS || (since_check_ms >= 0 && since_check_ms < CHECK_ALONE_MS))
		return false;
	if (checks->second != second) {
		checks->second = second;
		checks->n_in_second = 0;
	}
	return checks->n_in_second++ < CHECKS_ALONE_PER_S;
}

void early_check_start(void *arg, struct ticker *t, int64_t now_ms)
{
	struct managed_policies *all = arg;
	struct managed_policy *m = (void *)t;
	if (!m->reconciler || m->early_check || m->awaits_early_check || m->early_check_failed ||
	    !is_eligible(&m->body->policy) || clock_mono_ms(&all->connections->clock) < m->early_after_mono_ms)
		return;
	if (!m->checks_alone) {
		start(m, now_ms);
		return;
	}
	if (!may_check_alone(m, now_ms))
		return;
	m->early_check_ms = now_ms;
	m->awaits_early_check = true;
	DL_APPEND2(all->early_checks->queue, m, previous_early, next_early);
	start_queued(all);
}

void early_check_drop(struct managed_policy *m)
{
	leave_queue(m);
	if (m->early_check)
		m->early_check->policy = NULL;
	m->early_check = NULL;
	m->early_check_failed = false;
}

void early_check_forget(struct managed_policy *m)
{
	early_check_drop(m);
	m->has_early_tick = m->checks_alone = false;
}
