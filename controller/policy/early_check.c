// SPDX-License-Identifier: Apache-2.0
// Looks at the signals of a policy between two of its ticks. When one has moved, the policy ticks at once, at most once
// per interval in addition to its own ticks. A look sends the queries of the policy, combined with similar ones
// (runtime/query/query_peek.h) or else with any others (runtime/query/query_hub.h). It neither reads the target nor
// decides anything, so it costs a fraction of a tick.
#include <math.h>
#include <stdlib.h>
#include <utlist.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/must.h"
#include "controller/controller_private.h"
#include "controller/tick/observe.h"
#include "policies/load/policy_ref.h"
#include "promql/promql.h"
#include "runtime/metrics/metrics.h"

#define LOOK_MOVED 0.1 // of the value at the last tick: the HPA's default tolerance
#define LOOK_PAUSE 20  // the pause after a look, in durations of that look: a slow query takes at most 5 % of the time
// Looks whose queries cannot be combined with similar ones cost as much as those of a tick. In flight at once: two
// requests of several queries. More would slow each other down, and slow requests are split.
#define LOOKS_ALONE_MAX   32
#define LOOKS_ALONE_PER_S 200
#define LOOK_ALONE_MS     3000 // between two of one policy, and after a tick

struct look {
	struct controller *controller;
	struct managed_policy *policy; // NULL: forgotten, only the answers are still to come
	int pending;                   // outstanding answers, and one while they are requested
	int64_t now_ms, started_mono_ms;
	bool has_moved, has_failed;
	bool is_alone; // counted in controller.looks
	struct looked_signal {
		struct look *look;
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
	struct controller *c = m->controller;
	int64_t mono_ms = clock_mono_ms(&c->connections->clock);
	bool is_too_soon = m->has_early_tick && mono_ms - m->early_mono_ms < m->body->policy.interval_ms;
	if (is_too_soon || m->ticker.state != TICK_IDLE || !m->ticker.group || c->stopping)
		return;
	m->has_early_tick = true;
	m->early_mono_ms = mono_ms;
	metrics_tick_early(c->report_env.metrics);
	ticks_ask(c->ticks, &m->ticker, now_ms);
	ticks_run(c->ticks);
}

static void start_queued(struct controller *c);

static void finish_one(struct look *l)
{
	if (--l->pending > 0)
		return;
	struct controller *c = l->controller;
	struct managed_policy *m = l->policy;
	bool has_moved = l->has_moved, has_failed = l->has_failed;
	int64_t now_ms = l->now_ms, started_mono_ms = l->started_mono_ms;
	int64_t mono_ms = clock_mono_ms(&c->connections->clock);
	c->looks.in_flight -= l->is_alone;
	free(l);
	if (m) {
		m->look = NULL;
		m->look_failed = has_failed;
		m->look_after_mono_ms = mono_ms + LOOK_PAUSE * (mono_ms - started_mono_ms);
	}
	if (m && has_moved)
		tick_early(m, now_ms);
	start_queued(c);
}

static void compare(const struct looked_signal *s, double value)
{
	if (isfinite(value) && fabs(value - s->was) > LOOK_MOVED * fabs(s->was))
		s->look->has_moved = true;
}

static void on_answer(void *arg, struct query_answer *a)
{
	struct looked_signal *s = arg;
	if (a->state == OBS_OK && a->n_series == 1)
		compare(s, a->series[0].value);
	s->look->has_failed |= a->state == OBS_FAILED;
	finish_one(s->look);
}

static void on_peek(void *arg, enum query_peek_outcome outcome, size_t n_series, double value)
{
	struct looked_signal *s = arg;
	if (outcome == PEEK_ANSWERED && n_series == 1)
		compare(s, value);
	s->look->has_failed |= outcome == PEEK_FAILED;
	if (outcome == PEEK_UNFIT && s->look->policy)
		s->look->policy->looks_alone = true;
	finish_one(s->look);
}

static void start(struct managed_policy *m, int64_t now_ms)
{
	struct controller *c = m->controller;
	const char *const *details;
	const struct decision *d = reconciler_decision(m->reconciler, &details);
	const struct policy *p = &m->body->policy;
	if (!d || d->n_signals != p->n_signals)
		return;
	struct look *l = must_alloc(calloc(1, sizeof *l + p->n_signals * sizeof l->signals[0]));
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	l->controller = c;
	l->policy = m;
	l->pending = 1;
	l->now_ms = now_ms;
	l->started_mono_ms = clock_mono_ms(&c->connections->clock);
	l->is_alone = m->looks_alone;
	m->look = l;
	c->looks.in_flight += l->is_alone;
	for (size_t i = 0; i < p->n_signals; i++) {
		if (!is_comparable(&p->signals[i], &d->signals[i]))
			continue;
		l->signals[i] = (struct looked_signal){l, d->signals[i].value};
		l->pending++;
		if (l->is_alone) {
			observe_ask(c->connections->queries, p, i, now_ms, &query, on_answer, &l->signals[i]);
		} else if (!observe_peek(c->connections->queries, p, i, now_ms, &query, on_peek, &l->signals[i])) {
			m->looks_alone = true; // from the next look on, which counts against LOOKS_ALONE_MAX
			l->pending--;
		}
	}
	buf_done(&query);
	finish_one(l);
}

static void leave_queue(struct managed_policy *m)
{
	if (m->awaits_look)
		DL_DELETE2(m->controller->looks.queue, m, previous_look, next_look);
	m->awaits_look = false;
}

static void start_queued(struct controller *c)
{
	if (c->looks.is_starting)
		return; // called by a look that ended at once; the loop below continues
	c->looks.is_starting = true;
	while (c->looks.queue && c->looks.in_flight < LOOKS_ALONE_MAX && !c->stopping) {
		struct managed_policy *m = c->looks.queue;
		leave_queue(m);
		if (m->ticker.state == TICK_IDLE) // a tick looks as well
			start(m, m->look_ms);
	}
	c->looks.is_starting = false;
}

// Returns whether a look that costs as much as a tick's queries may be sent, and counts it.
static bool may_look_alone(struct managed_policy *m, int64_t now_ms)
{
	struct looks *looks = &m->controller->looks;
	int64_t mono_ms = clock_mono_ms(&m->controller->connections->clock), second = mono_ms / 1000;
	int64_t since_tick_ms = mono_ms - m->ticker.since_mono_ms, since_look_ms = now_ms - m->look_ms;
	if (since_tick_ms < LOOK_ALONE_MS || (since_look_ms >= 0 && since_look_ms < LOOK_ALONE_MS))
		return false;
	if (looks->second != second) {
		looks->second = second;
		looks->n_in_second = 0;
	}
	return looks->n_in_second++ < LOOKS_ALONE_PER_S;
}

void managed_policy_look(void *arg, struct ticker *t, int64_t now_ms)
{
	struct controller *c = arg;
	struct managed_policy *m = managed_policy_of(t);
	if (!m->reconciler || m->look || m->awaits_look || m->look_failed || !is_eligible(&m->body->policy) ||
	    clock_mono_ms(&c->connections->clock) < m->look_after_mono_ms)
		return;
	if (!m->looks_alone) {
		start(m, now_ms);
		return;
	}
	if (!may_look_alone(m, now_ms))
		return;
	m->look_ms = now_ms;
	m->awaits_look = true;
	DL_APPEND2(c->looks.queue, m, previous_look, next_look);
	start_queued(c);
}

void managed_policy_drop_look(struct managed_policy *m)
{
	leave_queue(m);
	if (m->look)
		m->look->policy = NULL;
	m->look = NULL;
	m->look_failed = false;
}

void managed_policy_forget_look(struct managed_policy *m)
{
	managed_policy_drop_look(m);
	m->has_early_tick = m->looks_alone = false;
}
