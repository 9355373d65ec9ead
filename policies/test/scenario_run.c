// SPDX-License-Identifier: Apache-2.0
// Runs one policy test through decide() with a simulated clock, and reports failed expectations.
#include <math.h>

#include "base/arena.h"
#include "base/base.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/observation.h"
#include "policies/explain/explain.h"
#include "policies/test/scenario.h"
#include "policies/test/test_report.h"

#define TRACE_TEXT_MAX (256 * 1024)
#define FIELDS_MAX     (4 + 4 * POLICY_SIGNALS_MAX)

// ---- the simulated target ----

static int order(struct scenario_world *w, int32_t n, int64_t now_ms, int64_t ready_ms)
{
	if (w->n_orders == w->cap_orders) {
		size_t cap = w->cap_orders ? w->cap_orders * 2 : 8;
		struct scenario_order *grown = arena_calloc(w->arena, cap, sizeof *grown);
		if (!grown)
			return -1;
		if (w->n_orders > 0)
			memcpy(grown, w->orders, w->n_orders * sizeof *grown);
		w->orders = grown;
		w->cap_orders = cap;
	}
	w->orders[w->n_orders++] = (struct scenario_order){now_ms, ready_ms, n};
	return 0;
}

int scenario_world_init(struct scenario_world *w, int32_t replicas, int32_t ready, int64_t now_ms, int64_t ready_ms,
                        struct arena *a)
{
	*w = (struct scenario_world){.replicas = replicas, .ready = ready, .room = -1, .arena = a};
	return ready >= 0 && ready < replicas ? order(w, replicas - ready, now_ms, ready_ms) : 0;
}

int scenario_world_scale(struct scenario_world *w, int32_t to, int64_t now_ms, int64_t ready_ms)
{
	int32_t change = to - w->replicas;
	w->replicas = to;
	if (change > 0)
		return order(w, change, now_ms, ready_ms);
	int32_t gone = -change;
	while (gone > 0 && w->n_orders > 0) {
		struct scenario_order *last = &w->orders[w->n_orders - 1];
		int32_t n = last->n < gone ? last->n : gone;
		last->n -= n;
		gone -= n;
		if (last->n == 0)
			w->n_orders--;
	}
	if (w->ready >= 0)
		w->ready = w->ready > gone ? w->ready - gone : 0;
	return 0;
}

void scenario_world_advance(struct scenario_world *w, int64_t now_ms)
{
	size_t kept = 0;
	int32_t placed = w->replicas;
	for (size_t i = 0; i < w->n_orders; i++)
		placed -= w->orders[i].n;
	for (size_t i = 0; i < w->n_orders; i++) {
		struct scenario_order o = w->orders[i];
		int32_t room = w->room < 0 ? o.n : w->room > placed ? w->room - placed : 0;
		int32_t n = o.n < room ? o.n : room, is_due = o.ready_ms <= now_ms;
		placed += n;
		if (is_due && w->ready >= 0)
			w->ready += n;
		o.n -= is_due ? n : 0;
		if (o.n > 0)
			w->orders[kept++] = o;
	}
	w->n_orders = kept;
}

size_t scenario_world_unschedulable(const struct scenario_world *w, int64_t *ret_since_ms, size_t max)
{
	int32_t waiting = 0, skipped;
	size_t n = 0;
	for (size_t i = 0; i < w->n_orders; i++)
		waiting += w->orders[i].n;
	int32_t beyond = w->room >= 0 && w->replicas > w->room ? w->replicas - w->room : 0;
	skipped = waiting > beyond ? waiting - beyond : 0; // the oldest orders have the room
	for (size_t i = 0; i < w->n_orders; i++) {
		for (int32_t k = 0; k < w->orders[i].n && n < max; k++) {
			if (skipped > 0)
				skipped--;
			else
				ret_since_ms[n++] = w->orders[i].since_ms;
		}
	}
	return n;
}

// ---- the laws ----

static int64_t longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t law_flap_ms(const struct policy *p)
{
	int64_t ms = longer(p->scale_up.stabilization_window_ms, p->scale_down.stabilization_window_ms);
	ms = longer(ms, longer(p->cooldown.up_ms, p->cooldown.down_ms));
	for (size_t i = 0; i < p->n_signals; i++)
		ms = longer(ms, longer(p->signals[i].sustain.up_ms, p->signals[i].sustain.down_ms));
	return ms > 0 ? ms : LAW_FLAP_MS;
}

static int direction_of(int32_t from, int32_t to)
{
	return (to > from) - (to < from);
}

void law_remember(struct law_memory *m, int64_t now_ms, int32_t from_replicas, int32_t to_replicas)
{
	int direction = direction_of(from_replicas, to_replicas);
	if (direction == 0)
		return;
	m->direction = direction;
	m->scaled_ms = now_ms;
}

bool law_within_bounds(const struct policy *p, const struct decision *d, char why[LAW_TEXT_BYTES])
{
	if (d->reason == REASON_SCALING_DISABLED || d->reason == REASON_PAUSED ||
	    (d->desired >= d->min_replicas && d->desired <= d->max_replicas))
		return true;
	snprintf(why, LAW_TEXT_BYTES, "%d is outside %d..%d", d->desired, d->min_replicas, d->max_replicas);
	return false;
}

bool law_no_flap(const struct policy *p, const struct law_memory *m, const struct decision *d, char why[LAW_TEXT_BYTES])
{
	int direction = direction_of(d->current, d->desired);
	int64_t since_ms = d->time_ms - m->scaled_ms, window_ms = law_flap_ms(p);
	if (direction == 0 || direction != -m->direction || since_ms >= window_ms)
		return true;
	char since[NUM_TEXT_BYTES], window[NUM_TEXT_BYTES];
	num_format_duration_ms(since, since_ms);
	num_format_duration_ms(window, window_ms);
	snprintf(why, LAW_TEXT_BYTES, "%d -> %d reverses the scale of %s before, within %s", d->current, d->desired,
	         since, window);
	return false;
}

// A number that is recent enough to use.
static bool has_data(const struct obs_signal *seen, const struct policy_signal *signal, int64_t now_ms)
{
	for (size_t i = 0; seen->state == OBS_OK && i < seen->n_series; i++)
		if (isfinite(seen->series[i].value) &&
		    (signal->stale_after_ms == 0 || now_ms - seen->series[i].time_ms <= signal->stale_after_ms))
			return true;
	return false;
}

bool law_hold_on_no_data(const struct policy *p, const struct observation *o, const struct decision *d,
                         char why[LAW_TEXT_BYTES])
{
	bool outside = d->current < d->min_replicas || d->current > d->max_replicas;
	if (d->desired == d->current || outside)
		return true;
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].on_missing != ON_MISSING_HOLD || has_data(&o->signals[i], &p->signals[i], d->time_ms))
			return true;
	snprintf(why, LAW_TEXT_BYTES, "%d -> %d although no signal has data", d->current, d->desired);
	return false;
}

bool law_monotone_in_load(const struct decision *d, const struct decision *with_more, char why[LAW_TEXT_BYTES])
{
	if (with_more->desired >= d->desired)
		return true;
	snprintf(why, LAW_TEXT_BYTES, "with %g %% more of everything %d are wanted, fewer than %d", LAW_MORE_LOAD * 100,
	         with_more->desired, d->desired);
	return false;
}

double law_more_load(double value)
{
	return value + fabs(value) * LAW_MORE_LOAD;
}

// ---- one run ----

// An engine with its state, its last observation and its last decision.
struct engine {
	void *state;
	struct obs_series *series[POLICY_SIGNALS_MAX]; // room for the series of each signal
	struct obs_signal signals[POLICY_SIGNALS_MAX];
	struct decision decision;
};

struct run {
	const struct scenario *s;
	struct arena *a;
	struct scenario_result *result;
	struct engine engine, more; // more: the same, seeing more load (MonotoneInLoad)
	const char *details[POLICY_SIGNALS_MAX + 1];
	int64_t *since_ms; // SCENARIO_UNSCHEDULABLE_MAX, with `room` only
	struct scenario_world world;
	struct law_memory memory;
};

// ---- failed expectations and laws ----

static const char *render(struct run *r, const struct decision *d)
{
	struct buf text;
	buf_init(&text, TRACE_TEXT_MAX);
	struct decided decided = {.policy = r->s->policy, .decision = d, .details = r->details};
	explain_trace(&text, &decided, 4);
	const char *kept = arena_strdup(r->a, buf_str(&text));
	buf_done(&text);
	return kept ? kept : "";
}

static struct scenario_finding *add_finding(struct run *r, int64_t at_ms, int line)
{
	if (r->result->n == SCENARIO_FINDINGS_MAX) {
		r->result->dropped++;
		return NULL;
	}
	struct scenario_finding *f = &r->result->findings[r->result->n++];
	*f = (struct scenario_finding){.at_ms = at_ms, .line = line, .trace = render(r, &r->engine.decision)};
	return f;
}

static void break_law(struct run *r, enum scenario_law law, int64_t at_ms, const char *why)
{
	struct scenario_finding *f = add_finding(r, at_ms, r->s->line);
	if (!f)
		return;
	f->law = scenario_law_names[law];
	f->why = arena_strdup(r->a, why);
	if (law == LAW_MONOTONE_IN_LOAD)
		f->trace = arena_printf(r->a, "%s    with more:\n%s", f->trace, render(r, &r->more.decision));
	if (!f->why || !f->trace)
		f->why = f->trace = "";
}

// ---- expectations ----

// The fields of one expectation while it is compared. Texts in the arena.
struct comparison {
	struct run *r;
	const char *signal; // whose fields are compared; NULL: those of the decision
	struct scenario_field fields[FIELDS_MAX];
	size_t n;
	bool broken, failed; // failed: the arena is full
};

static void compare(struct comparison *c, const char *name, bool equal, const char *expected, const char *actual)
{
	struct arena *a = c->r->a;
	struct scenario_field f = {c->signal ? arena_printf(a, "signals.%s.%s", c->signal, name) : name,
	                           arena_strdup(a, expected), arena_strdup(a, actual), equal};
	c->broken |= !equal;
	c->failed |= !f.name || !f.expected || !f.actual;
	c->fields[c->n++] = f;
}

static void compare_i32(struct comparison *c, const char *name, int32_t expected, int32_t actual)
{
	char x[16], y[16];
	snprintf(x, sizeof x, "%d", expected);
	snprintf(y, sizeof y, "%d", actual);
	compare(c, name, expected == actual, x, y);
}

static void compare_text(struct comparison *c, const char *name, const char *expected, const char *actual)
{
	compare(c, name, strcmp(expected, actual) == 0, expected, actual);
}

static void compare_value(struct comparison *c, const char *name, double expected, double actual)
{
	char x[NUM_TEXT_BYTES], y[NUM_TEXT_BYTES];
	num_format_f64(x, expected);
	num_format_f64(y, actual);
	double room = SCENARIO_VALUE_RATIO * fmax(fabs(expected), fabs(actual));
	compare(c, name, expected == actual || fabs(expected - actual) <= room, x, y);
}

static void compare_message(struct comparison *c, const char *part)
{
	char message[RENDER_SENTENCE_BYTES], wanted[RENDER_SENTENCE_BYTES];
	struct decided decided = {
	        .policy = c->r->s->policy, .decision = &c->r->engine.decision, .details = c->r->details};
	explain_message(&decided, message);
	bool has = strstr(message, part) != NULL;
	snprintf(wanted, sizeof wanted, "..%s..", part);
	compare(c, "message", has, has ? message : wanted, message);
}

static void compare_signal(struct comparison *c, const struct scenario_expect_signal *x, size_t i)
{
	const struct decision_signal *d = &c->r->engine.decision.signals[i];
	c->signal = c->r->s->policy->signals[i].name;
	if (x->state)
		compare_text(c, "state", x->state, signal_state_names[d->state]);
	if (x->value_set)
		compare_value(c, "value", x->value, d->value);
	if (x->proposal_set)
		compare_i32(c, "proposal", x->proposal, d->proposal);
	if (x->reason)
		compare_text(c, "reason", x->reason, reason_info(d->reason)->name);
}

static void check_expectation(struct run *r, const struct scenario_expect *x)
{
	const struct decision *d = &r->engine.decision;
	struct comparison c = {.r = r};
	if (x->replicas_set)
		compare_i32(&c, "replicas", x->replicas, d->desired);
	if (x->action_set)
		compare_text(&c, "action", action_names[x->action], action_names[d->action]);
	if (x->reason)
		compare_text(&c, "reason", x->reason, reason_info(d->reason)->name);
	if (x->message)
		compare_message(&c, x->message);
	for (size_t i = 0; x->signals && i < r->s->policy->n_signals; i++)
		compare_signal(&c, &x->signals[i], i);
	if (!c.broken)
		return;
	struct scenario_finding *f = add_finding(r, x->at_ms, x->line);
	if (!f)
		return;
	f->fields = arena_calloc(r->a, c.n, sizeof *f->fields);
	if (!f->fields || c.failed) { // the expectation still fails, without its text
		f->why = "does not hold (no memory left to say more)";
		f->law = "expectation";
		return;
	}
	memcpy(f->fields, c.fields, c.n * sizeof *c.fields);
	f->n_fields = c.n;
}

static void check_laws(struct run *r, const struct observation *o, int64_t at_ms)
{
	const struct policy *p = r->s->policy;
	const struct decision *d = &r->engine.decision;
	const bool *asked = r->s->laws;
	char why[LAW_TEXT_BYTES];
	if (asked[LAW_WITHIN_BOUNDS] && !law_within_bounds(p, d, why))
		break_law(r, LAW_WITHIN_BOUNDS, at_ms, why);
	if (asked[LAW_NO_FLAP] && !law_no_flap(p, &r->memory, d, why))
		break_law(r, LAW_NO_FLAP, at_ms, why);
	if (asked[LAW_HOLD_ON_NO_DATA] && !law_hold_on_no_data(p, o, d, why))
		break_law(r, LAW_HOLD_ON_NO_DATA, at_ms, why);
	if (asked[LAW_MONOTONE_IN_LOAD] && !law_monotone_in_load(d, &r->more.decision, why))
		break_law(r, LAW_MONOTONE_IN_LOAD, at_ms, why);
}

// ---- the run ----

static int engine_start(struct run *r, struct engine *en)
{
	const struct scenario *s = r->s;
	const struct policy *p = s->policy;
	en->state = arena_alloc(r->a, decide_state_bytes(p));
	if (!en->state)
		return -1;
	for (size_t i = 0; i < p->n_signals; i++) {
		en->series[i] = arena_calloc(r->a, s->signals[i].n_series + 1, sizeof *en->series[i]);
		if (!en->series[i])
			return -1;
	}
	decide_state_init(p, en->state);
	for (size_t i = 0; i < s->n_recommendations; i++)
		decide_record_recommendation(p, en->state, s->start_ms - s->recommendations[i].ago_ms,
		                             s->recommendations[i].replicas);
	for (size_t i = 0; i < s->n_events; i++) {
		int32_t change = s->events[i].change;
		decide_record_scale(p, en->state, s->start_ms - s->events[i].ago_ms, change < 0 ? -change : 0,
		                    change < 0 ? 0 : change);
	}
	if (s->last_scale.set)
		decide_record_last_scale(p, en->state, s->start_ms - s->last_scale.ago_ms);
	return 0;
}

// Sets the series of signal i at a tick, every value changed by `change` (NULL = unchanged).
static void show_signal(struct run *r, struct engine *en, size_t i, size_t tick, int64_t now_ms,
                        double (*change)(double))
{
	const struct scenario_signal *sig = &r->s->signals[i];
	struct obs_signal *seen = &en->signals[i];
	*seen = (struct obs_signal){.state = OBS_EMPTY, .series = en->series[i]};
	for (size_t k = 0; k < sig->n_series; k++) {
		const struct scenario_series *s = &sig->series[k];
		if (tick >= s->n && !s->endless)
			continue;
		const struct scenario_point *p = &s->points[tick < s->n ? tick : s->n - 1];
		if (p->state == OBS_FAILED || p->state == OBS_PARTIAL) {
			*seen = (struct obs_signal){.state = p->state, .detail = p->detail};
			break;
		}
		if (p->state == OBS_OK)
			en->series[i][seen->n_series++] =
			        (struct obs_series){s->pod, change ? change(p->value) : p->value, now_ms - p->age_ms};
	}
	if (seen->n_series > 0)
		seen->state = OBS_OK;
	r->details[i] = seen->detail;
}

static struct obs_capacity capacity_at(struct run *r, size_t tick)
{
	const struct scenario *s = r->s;
	const struct scenario_series *room = s->room.n_series ? &s->room.series[0] : NULL;
	const struct scenario_world *w = &r->world;
	if (!room || (tick >= room->n && !room->endless) || room->points[tick].state != OBS_OK)
		return (struct obs_capacity){.is_known = false};
	struct obs_capacity c = {.is_known = true, .fit = w->room > w->replicas ? w->room - w->replicas : 0};
	c.n_since = scenario_world_unschedulable(w, r->since_ms, SCENARIO_UNSCHEDULABLE_MAX);
	c.since_ms = r->since_ms;
	c.unschedulable = (int32_t)c.n_since;
	return c;
}

static struct obs_health health_at(const struct scenario *s, size_t tick)
{
	const struct scenario_series *y = s->unhealthy.n_series ? &s->unhealthy.series[0] : NULL;
	if (!y || (tick >= y->n && !y->endless))
		return (struct obs_health){.is_known = false};
	const struct scenario_point *p = &y->points[tick < y->n ? tick : y->n - 1];
	return (struct obs_health){p->state == OBS_OK, (int32_t)fmin(fmax(p->value, 0), POLICY_REPLICAS_MAX)};
}

// The room of the last tick that stated it applies while it is unknown.
static void set_room(struct run *r, size_t tick)
{
	const struct scenario_series *room = r->s->room.n_series ? &r->s->room.series[0] : NULL;
	if (room && tick < room->n && room->points[tick].state == OBS_OK)
		r->world.room = room->points[tick].value < POLICY_REPLICAS_MAX
		                        ? (int32_t)fmax(room->points[tick].value, 0)
		                        : POLICY_REPLICAS_MAX;
}

static void observe_and_decide(struct run *r, struct engine *en, size_t tick, int64_t now_ms, double (*change)(double),
                               struct observation *ret_seen)
{
	const struct scenario *s = r->s;
	const struct scenario_world *w = &r->world;
	for (size_t i = 0; i < s->policy->n_signals; i++)
		show_signal(r, en, i, tick, now_ms, change);
	int32_t starting = w->ready >= 0 && w->ready < w->replicas ? w->replicas - w->ready : 0;
	*ret_seen = (struct observation){.spec_replicas = w->replicas,
	                                 .status_replicas = w->replicas,
	                                 .ready_replicas = w->ready,
	                                 .pending_replicas = s->follow.set ? starting : s->target.pending,
	                                 .pods = s->pods,
	                                 .n_pods = s->n_pods,
	                                 .signals = en->signals,
	                                 .n_signals = s->policy->n_signals,
	                                 .capacity = capacity_at(r, tick),
	                                 .health = health_at(s, tick)};
	decide(s->policy, ret_seen, now_ms, en->state, &en->decision);
}

static int tick(struct run *r, size_t k, struct coverage *coverage)
{
	const struct scenario *s = r->s;
	const struct decision *d = &r->engine.decision;
	int64_t at_ms = (int64_t)k * s->interval_ms, now_ms = s->start_ms + at_ms;
	struct observation seen, more;
	set_room(r, k);
	scenario_world_advance(&r->world, now_ms);
	if (s->laws[LAW_MONOTONE_IN_LOAD])
		observe_and_decide(r, &r->more, k, now_ms, law_more_load, &more);
	observe_and_decide(r, &r->engine, k, now_ms, NULL, &seen);
	if (coverage)
		coverage_add(coverage, d);
	for (size_t i = 0; i < s->n_expect; i++)
		if (s->expect[i].at_ms == at_ms)
			check_expectation(r, &s->expect[i]);
	check_laws(r, &seen, at_ms);
	law_remember(&r->memory, now_ms, d->current, d->desired);
	if (!s->follow.set || !d->write)
		return 0;
	decide_record_scale(s->policy, r->engine.state, now_ms, d->current, d->desired);
	if (r->more.state)
		decide_record_scale(s->policy, r->more.state, now_ms, d->current, d->desired);
	return scenario_world_scale(&r->world, d->desired, now_ms, now_ms + s->follow.ready_after_ms);
}

// The run ends at the last expectation; with laws, at the end of the series.
static size_t count_ticks(const struct scenario *s)
{
	size_t n = 1;
	for (size_t i = 0; i < s->n_expect; i++)
		if ((size_t)(s->expect[i].at_ms / s->interval_ms) + 1 > n)
			n = (size_t)(s->expect[i].at_ms / s->interval_ms) + 1;
	for (size_t i = 0; s->n_laws && i < s->policy->n_signals; i++)
		for (size_t k = 0; k < s->signals[i].n_series; k++)
			n = s->signals[i].series[k].n > n ? s->signals[i].series[k].n : n;
	return n;
}

static int start(struct run *r)
{
	const struct scenario *s = r->s;
	int32_t ready = s->target.ready_set ? s->target.ready : s->target.replicas;
	if (engine_start(r, &r->engine) < 0 || (s->laws[LAW_MONOTONE_IN_LOAD] && engine_start(r, &r->more) < 0))
		return -1;
	if (s->n_events > 0) {
		const struct scenario_event *last = &s->events[s->n_events - 1];
		law_remember(&r->memory, s->start_ms - last->ago_ms, 0, last->change);
	}
	if (s->room_node) {
		r->since_ms = arena_calloc(r->a, SCENARIO_UNSCHEDULABLE_MAX, sizeof *r->since_ms);
		if (!r->since_ms)
			return -1;
	}
	int64_t ready_ms = s->follow.set ? s->start_ms + s->follow.ready_after_ms : INT64_MAX;
	return scenario_world_init(&r->world, s->target.replicas, ready, s->start_ms, ready_ms, r->a);
}

int scenario_run(const struct scenario *s, struct coverage *coverage, struct arena *a,
                 struct scenario_result *ret_result, struct err *e)
{
	size_t n_ticks = count_ticks(s);
	*ret_result = (struct scenario_result){.n_ticks = n_ticks};
	if (n_ticks > SCENARIO_TICKS_MAX)
		return err_set(e, ERR_LIMIT, "%zu ticks are more than the ceiling of %d", n_ticks, SCENARIO_TICKS_MAX);
	struct run *r = arena_alloc(a, sizeof *r);
	if (!r)
		return err_set(e, ERR_LIMIT, "the test does not fit into the memory allowed");
	r->s = s;
	r->a = a;
	r->result = ret_result;
	int rc = start(r);
	for (size_t k = 0; rc == 0 && k < n_ticks; k++)
		rc = tick(r, k, coverage);
	return rc == 0 ? 0 : err_set(e, ERR_LIMIT, "the test does not fit into the memory allowed");
}
