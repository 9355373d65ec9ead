// SPDX-License-Identifier: Apache-2.0
#include "controller/scenario.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/num.h"
#include "base/schema.h"
#include "base/series_notation.h"
#include "controller/render.h"
#include "policies/decide.h"
#include "policies/decision.h"
#include "policies/observation.h"

#define NO_FLAP_MS (5 * 60000)

// ---- binding: what can only be checked with the policy at hand ----

static const struct doc_node *find(const struct doc_node *map, const char *key)
{
	return map ? doc_get(map, key) : NULL;
}

static int bind_series(struct scenario_series *out, const char *pod, const struct doc_node *node, const char *path,
                       struct arena *a, struct schema_errors *errors)
{
	struct err e;
	out->pod = pod;
	if (node->kind != DOC_SCALAR) {
		schema_report(errors, node, path, "must be a series such as '0.5x10 0.9x4'");
		return -1;
	}
	if (series_notation_parse(a, node->text, &out->points, &out->n, &e) < 0) {
		schema_report(errors, node, path, "%s", e.msg);
		return -1;
	}
	return 0;
}

static int bind_signal(struct scenario_signal *out, const struct doc_node *node, const char *path, struct arena *a,
                       struct schema_errors *errors)
{
	size_t n = node->kind == DOC_MAP ? node->n_children : 1;
	if (n > SCENARIO_PODS_MAX) {
		schema_report(errors, node, path, "%zu series are more than the ceiling of %d", n, SCENARIO_PODS_MAX);
		return -1;
	}
	out->series = arena_calloc(a, n ? n : 1, sizeof *out->series);
	if (!out->series) {
		schema_report(errors, node, path, "does not fit into the memory allowed");
		return -1;
	}
	if (node->kind != DOC_MAP) {
		out->n_series = 1;
		return bind_series(&out->series[0], "", node, path, a, errors);
	}
	for (const struct doc_node *c = node->child; c; c = c->next) {
		char sub[SCHEMA_PATH_BYTES];
		snprintf(sub, sizeof sub, "%s.%s", path, c->key);
		if (bind_series(&out->series[out->n_series++], c->key, c, sub, a, errors) < 0)
			return -1;
	}
	return 0;
}

int scenario_bind(struct scenario *s, struct arena *a, struct schema_errors *errors)
{
	struct err e;
	size_t before = errors->n + errors->dropped;
	char path[SCHEMA_PATH_BYTES];
	if (num_parse_rfc3339_ms(s->start, strlen(s->start), &s->start_ms, &e) < 0)
		schema_report_at(errors, s->line, 1, "tests[].start", "%s", e.msg);
	for (size_t i = 0; i < s->n_invariants; i++) {
		size_t k = 0;
		while (scenario_invariant_names[k] && strcmp(scenario_invariant_names[k], s->invariant_names[i]) != 0)
			k++;
		if (!scenario_invariant_names[k])
			schema_report_at(errors, s->line, 1, "tests[].invariants",
			                 "\"%s\" is not one of WithinBounds, NoFlap, HoldOnNoData",
			                 s->invariant_names[i]);
	}
	const struct policy *p = s->policy;
	for (size_t i = 0; i < p->n_signals; i++) {
		const struct doc_node *node = find(s->signals_node, p->signals[i].name);
		snprintf(path, sizeof path, "tests[].signals.%s", p->signals[i].name);
		if (node)
			bind_signal(&s->signals[i], node, path, a, errors);
	}
	for (const struct doc_node *c = s->signals_node ? s->signals_node->child : NULL; c; c = c->next) {
		size_t i = 0;
		while (i < p->n_signals && strcmp(p->signals[i].name, c->key ? c->key : "") != 0)
			i++;
		if (i == p->n_signals)
			schema_report(errors, c, "tests[].signals", "policy %s/%s has no signal \"%s\"",
			              p->namespace_name, p->name, c->key ? c->key : "");
	}
	return errors->n + errors->dropped == before ? 0 : -1;
}

// ---- the run ----

// Pods of the simulated target: what was ordered becomes ready later, oldest orders first.
struct order {
	int64_t ready_ms;
	int32_t n;
};

struct world {
	int32_t replicas, ready, pending;
	struct order *orders;
	size_t n_orders, cap_orders;
};

static void world_scale(struct world *w, int32_t to, int64_t ready_ms)
{
	int32_t change = to - w->replicas;
	w->replicas = to;
	if (change > 0) {
		if (w->n_orders == w->cap_orders) {
			size_t cap = w->cap_orders ? w->cap_orders * 2 : 8;
			struct order *grown = realloc(w->orders, cap * sizeof *grown);
			if (!grown)
				abort();
			w->orders = grown;
			w->cap_orders = cap;
		}
		w->orders[w->n_orders++] = (struct order){ready_ms, change};
		return;
	}
	int32_t gone = -change; // pods that are not ready yet go first, as in a ReplicaSet
	while (gone > 0 && w->n_orders > 0) {
		struct order *last = &w->orders[w->n_orders - 1];
		int32_t n = last->n < gone ? last->n : gone;
		last->n -= n;
		gone -= n;
		if (last->n == 0)
			w->n_orders--;
	}
	w->ready = w->ready > gone ? w->ready - gone : 0;
}

static void world_advance(struct world *w, int64_t now_ms)
{
	size_t kept = 0;
	for (size_t i = 0; i < w->n_orders; i++) {
		if (w->orders[i].ready_ms <= now_ms)
			w->ready += w->orders[i].n;
		else
			w->orders[kept++] = w->orders[i];
	}
	w->n_orders = kept;
}

struct run {
	const struct scenario *s;
	int64_t interval_ms;
	struct buf *report;
	size_t n_broken;
	void *state;
	struct world world;
	struct obs_series *series[POLICY_SIGNALS_MAX]; // room for the series of each signal
	struct obs_signal signals[POLICY_SIGNALS_MAX];
	const char *details[POLICY_SIGNALS_MAX];
	struct decision decision;
	int last_direction;
	int64_t last_scale_ms;
};

static void broken(struct run *r, int64_t at_ms, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void broken(struct run *r, int64_t at_ms, const char *fmt, ...)
{
	char at[NUM_TEXT_BYTES];
	va_list ap;
	num_format_duration_ms(at, at_ms);
	buf_printf(r->report, "    at %s: ", at);
	va_start(ap, fmt);
	buf_vprintf(r->report, fmt, ap);
	va_end(ap);
	buf_puts(r->report, "\n");
	struct decided d = {r->s->policy, &r->decision, r->details};
	for (size_t i = 0; i < r->decision.n_trace; i++) {
		const struct trace_entry *t = &r->decision.trace[i];
		char sentence[RENDER_SENTENCE_BYTES];
		render_sentence(&d, t, sentence);
		buf_printf(r->report, "      %-9s %d -> %d  %s: %s\n", stage_name(t->stage), t->before, t->after,
		           reason_info(t->reason)->name, sentence);
	}
	r->n_broken++;
}

// What signal i shows at tick `tick`.
static void look(struct run *r, size_t i, size_t tick, int64_t now_ms)
{
	const struct scenario_signal *sig = &r->s->signals[i];
	size_t n = 0;
	enum obs_state state = OBS_OK;
	r->details[i] = NULL;
	for (size_t k = 0; k < sig->n_series; k++) {
		const struct scenario_series *s = &sig->series[k];
		if (tick >= s->n)
			continue;
		if (s->points[tick].kind == SERIES_POINT_ERROR) {
			state = OBS_FAILED;
			r->details[i] = "the test says so";
		}
		if (s->points[tick].kind == SERIES_POINT_VALUE)
			r->series[i][n++] = (struct obs_series){s->pod, s->points[tick].value, now_ms};
	}
	if (state == OBS_OK && n == 0)
		state = OBS_EMPTY;
	r->signals[i] = (struct obs_signal){state, r->details[i], r->series[i], state == OBS_OK ? n : 0};
}

static void check_expectations(struct run *r, int64_t at_ms)
{
	const struct decision *d = &r->decision;
	for (size_t i = 0; i < r->s->n_expect; i++) {
		const struct scenario_expect *x = &r->s->expect[i];
		if (x->at_ms != at_ms)
			continue;
		if (x->replicas_set && x->replicas != d->desired)
			broken(r, at_ms, "expected replicas %d, got %d", x->replicas, d->desired);
		if (x->action_set && x->action != (int)d->action)
			broken(r, at_ms, "expected action %s, got %s", action_name((enum action)x->action),
			       action_name(d->action));
		if (x->reason && strcmp(x->reason, reason_info(d->reason)->name) != 0)
			broken(r, at_ms, "expected reason %s, got %s", x->reason, reason_info(d->reason)->name);
		char message[RENDER_SENTENCE_BYTES];
		struct decided decided = {r->s->policy, d, r->details};
		render_message(&decided, message);
		if (x->message && !strstr(message, x->message))
			broken(r, at_ms, "expected a message with \"%s\", got \"%s\"", x->message, message);
	}
}

static void check_invariant(struct run *r, const char *name, int64_t at_ms)
{
	const struct decision *d = &r->decision;
	const struct policy *p = r->s->policy;
	int direction = d->desired > d->current ? 1 : d->desired < d->current ? -1 : 0;
	if (strcmp(name, "WithinBounds") == 0) {
		if (d->reason != REASON_SCALING_DISABLED && d->reason != REASON_PAUSED &&
		    (d->desired < p->min_replicas || d->desired > p->max_replicas))
			broken(r, at_ms, "WithinBounds: %d is outside %d..%d", d->desired, p->min_replicas,
			       p->max_replicas);
	} else if (strcmp(name, "HoldOnNoData") == 0) {
		bool any = false;
		for (size_t i = 0; i < p->n_signals; i++)
			any |= r->signals[i].state == OBS_OK || p->signals[i].on_missing != ON_MISSING_HOLD;
		if (!any && direction != 0 && d->current >= p->min_replicas && d->current <= p->max_replicas)
			broken(r, at_ms, "HoldOnNoData: %d -> %d although no signal has data", d->current, d->desired);
	} else if (direction != 0 && direction == -r->last_direction && at_ms - r->last_scale_ms < NO_FLAP_MS) {
		broken(r, at_ms, "NoFlap: %d -> %d reverses the scale %lld s before", d->current, d->desired,
		       (long long)((at_ms - r->last_scale_ms) / 1000));
	}
}

static void remember(struct run *r)
{
	const struct scenario *s = r->s;
	for (size_t i = 0; i < s->n_recommendations; i++)
		decide_record_recommendation(s->policy, r->state, s->start_ms - s->recommendations[i].ago_ms,
		                             s->recommendations[i].replicas);
	for (size_t i = 0; i < s->n_events; i++)
		decide_record_scale(s->policy, r->state, s->start_ms - s->events[i].ago_ms,
		                    0 > s->events[i].change ? -s->events[i].change : 0,
		                    0 > s->events[i].change ? 0 : s->events[i].change);
}

static size_t count_ticks(const struct scenario *s, int64_t interval_ms)
{
	size_t n = 1;
	for (size_t i = 0; i < s->n_expect; i++)
		if ((size_t)(s->expect[i].at_ms / interval_ms) + 1 > n)
			n = (size_t)(s->expect[i].at_ms / interval_ms) + 1;
	for (size_t i = 0; s->n_invariants && i < POLICY_SIGNALS_MAX; i++) // invariants watch the whole series
		for (size_t k = 0; k < s->signals[i].n_series; k++)
			n = s->signals[i].series[k].n > n ? s->signals[i].series[k].n : n;
	return n;
}

static void tick(struct run *r, size_t k)
{
	const struct scenario *s = r->s;
	int64_t at_ms = (int64_t)k * r->interval_ms, now_ms = s->start_ms + at_ms;
	world_advance(&r->world, now_ms);
	for (size_t i = 0; i < s->policy->n_signals; i++)
		look(r, i, k, now_ms);
	struct observation o = {.spec_replicas = r->world.replicas,
	                        .status_replicas = r->world.replicas,
	                        .ready_replicas = r->world.ready,
	                        .pending_replicas =
	                                s->follow.set ? r->world.replicas - r->world.ready : r->world.pending,
	                        .signals = r->signals,
	                        .n_signals = s->policy->n_signals};
	decide(s->policy, &o, now_ms, r->state, &r->decision);
	check_expectations(r, at_ms);
	for (size_t i = 0; i < s->n_invariants; i++)
		check_invariant(r, s->invariant_names[i], at_ms);
	const struct decision *d = &r->decision;
	if (d->desired != d->current) {
		r->last_direction = d->desired > d->current ? 1 : -1;
		r->last_scale_ms = at_ms;
	}
	if (s->follow.set && d->write) {
		decide_record_scale(s->policy, r->state, now_ms, d->current, d->desired);
		world_scale(&r->world, d->desired, now_ms + s->follow.ready_after_ms);
	}
}

size_t scenario_run(const struct scenario *s, int64_t interval_ms, struct buf *report)
{
	struct run r = {
	        .s = s, .interval_ms = interval_ms > 0 ? interval_ms : s->policy->interval_ms, .report = report};
	size_t n_ticks = count_ticks(s, r.interval_ms);
	if (n_ticks > SCENARIO_TICKS_MAX) {
		buf_printf(report, "    %zu ticks are more than the ceiling of %d\n", n_ticks, SCENARIO_TICKS_MAX);
		return 1;
	}
	for (size_t i = 0; i < s->n_expect; i++) {
		if (s->expect[i].at_ms % r.interval_ms == 0)
			continue;
		char at[NUM_TEXT_BYTES], interval[NUM_TEXT_BYTES];
		num_format_duration_ms(at, s->expect[i].at_ms);
		num_format_duration_ms(interval, r.interval_ms);
		buf_printf(report, "    at %s: no tick then; the interval is %s\n", at, interval);
		return 1;
	}
	r.world = (struct world){.replicas = s->target.replicas,
	                         .ready = s->target.ready_set ? s->target.ready : s->target.replicas,
	                         .pending = s->target.pending};
	r.state = calloc(1, decide_state_bytes(s->policy));
	if (!r.state)
		abort();
	for (size_t i = 0; i < s->policy->n_signals; i++) {
		r.series[i] = calloc(s->signals[i].n_series + 1, sizeof *r.series[i]);
		if (!r.series[i])
			abort();
	}
	decide_state_init(s->policy, r.state);
	remember(&r);
	for (size_t k = 0; k < n_ticks; k++)
		tick(&r, k);
	for (size_t i = 0; i < s->policy->n_signals; i++)
		free(r.series[i]);
	free(r.world.orders);
	free(r.state);
	return r.n_broken;
}
