// SPDX-License-Identifier: Apache-2.0
// Stage guards: states of the target in which scaling is held or limited. Guards apply to changes that the signals ask
// for; a scale outside its bounds returns to them regardless of the guards.
// WPA: minAvailableReplicaPercentage. Pending replicas: aibrix issue 2670, knative issue 13284.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>

#include "policies/engine/behavior.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/plausible.h"
#include "policies/engine/policy.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

// ---- maxThrottledShare: a throttled replica is treated as less than one ----

// Replicas are ordered before the load exceeds what the throttled ones can serve. The share is read before the signals
// whose targets depend on it.

#define THROTTLED_LOSS 0.3 // share of the throughput that a GPU loses while it is throttled for heat

void throttled_observe(struct tick *t)
{
	const struct policy_throttled_guard *g = &t->policy->guards.throttled;
	const struct decision_signal *d = &t->decision->signals[g->signal_index];
	struct trace_entry entry = tick_note(t, STAGE_SOURCES, REASON_THROTTLED, (int32_t)g->signal_index);
	entry.value = d->value;
	entry.limit = g->share;
	if (d->state != SIGNAL_OK) {
		entry.reason = REASON_THROTTLED_UNKNOWN;
	} else if (d->value < 0 || d->value > 1) {
		entry.reason = REASON_THROTTLED_NOT_A_SHARE;
	} else if (d->value > g->share) {
		t->capacity_ratio = 1 - THROTTLED_LOSS * d->value;
		entry.count = (int32_t)round(100 * t->capacity_ratio);
	} else {
		return;
	}
	tick_trace(t, &entry);
}

// ---- minMarginalGain: no growth where it does not pay ----

#define MEMORY           4096 // observations; older counts are forgotten, so that a stopped target is tried again
#define OBSERVATIONS_MIN 3    // observations per replica count
#define SPREAD_MIN       1.5  // largest / smallest replica count of a fit
#define RISE             0.2
#define FALL             0.02

void marginal_gain_tick(struct marginal_gain *g, int32_t spec, int32_t ready)
{
	bool is_whole = spec > 0 && ready == spec;
	g->steady_ticks = is_whole && g->steady == spec ? g->steady_ticks + 1 : 0;
	g->steady = is_whole ? spec : 0;
	if (g->doubted != spec)
		g->n_doubtful = 0;
	g->doubted = spec;
}

static bool is_recent(const struct marginal_gain *g, const struct gain_point *p)
{
	return g->n_observed - p->newest < MEMORY;
}

static bool is_known(const struct marginal_gain *g, const struct gain_point *p)
{
	return p->n >= OBSERVATIONS_MIN && is_recent(g, p);
}

// Returns the entry of `replicas`: its own, an unused one, or the one that was not observed for longest.
static struct gain_point *point_of(struct marginal_gain *g, int32_t replicas)
{
	struct gain_point *oldest = &g->points[0];
	for (uint32_t i = 0; i < g->n_points; i++) {
		if (g->points[i].replicas == replicas)
			return &g->points[i];
		if (g->points[i].newest < oldest->newest)
			oldest = &g->points[i];
	}
	if (g->n_points < MARGINAL_GAIN_COUNTS_MAX)
		oldest = &g->points[g->n_points++];
	*oldest = (struct gain_point){.replicas = replicas};
	return oldest;
}

// Returns whether the point cannot be right if the throughput is.
static bool is_far(const struct gain_point *p, double throughput)
{
	return throughput > MARGINAL_GAIN_FACTOR * p->throughput || p->throughput > MARGINAL_GAIN_FACTOR * throughput;
}

// Returns whether a curve between flat and linear has both points, give or take MARGINAL_GAIN_FACTOR.
static bool agrees(const struct gain_point *p, int32_t replicas, double throughput)
{
	double linear = p->throughput * (double)replicas / (double)p->replicas;
	return throughput * MARGINAL_GAIN_FACTOR >= fmin(p->throughput, linear) &&
	       throughput <= MARGINAL_GAIN_FACTOR * fmax(p->throughput, linear);
}

struct neighbours {
	int32_t n, contradict;
};

// Counts the next known points below and above `replicas`, and those that contradict the throughput.
static struct neighbours compare(const struct marginal_gain *g, int32_t replicas, double throughput)
{
	const struct gain_point *next[2] = {NULL, NULL}; // below, above
	struct neighbours r = {0};
	for (uint32_t i = 0; i < g->n_points; i++) {
		const struct gain_point *p = &g->points[i], **side = &next[p->replicas > replicas];
		if (p->replicas == replicas || !is_known(g, p))
			continue;
		if (!*side || (p->replicas < replicas) == (p->replicas > (*side)->replicas))
			*side = p;
	}
	for (int i = 0; i < 2; i++) {
		r.n += next[i] != NULL;
		r.contradict += next[i] && !agrees(next[i], replicas, throughput);
	}
	return r;
}

// Returns whether the throughput of g->steady replicas is believed only once it has lasted.
static bool is_doubtful(const struct marginal_gain *g, const struct gain_point *p, double throughput)
{
	if (p->n >= OBSERVATIONS_MIN)
		return is_far(p, throughput);
	struct neighbours at = compare(g, p->replicas, throughput);
	return at.n > 0 && at.contradict == at.n;
}

void marginal_gain_observe(struct marginal_gain *g, double throughput, uint64_t believed_after)
{
	if (g->steady <= 0 || !isfinite(throughput) || throughput <= 0)
		return;
	struct gain_point *p = point_of(g, g->steady);
	if (p->n > 0 && !is_recent(g, p))
		p->n = 0;
	bool doubtful = is_doubtful(g, p, throughput);
	g->n_doubtful = doubtful ? g->n_doubtful + (g->n_doubtful < UINT32_MAX) : 0;
	if (doubtful && g->n_doubtful < believed_after)
		return;
	if (p->n > 0 && is_far(p, throughput))
		p->n = 0;
	double miss = throughput - p->throughput;
	p->throughput = p->n == 0 ? throughput : p->throughput + miss * (miss > 0 ? RISE : FALL);
	p->n += p->n < UINT32_MAX;
	p->newest = ++g->n_observed;
}

// Sums for the least squares of y = a + b x with x = n - 1 and y = n / throughput. Each point has the weight 1 / y^2,
// so that errors count in proportion to the throughput.
struct sums {
	double w, wx, wxx, wy, wxy, wyy;
	int32_t n, contradict, smallest, largest;
};

static struct sums add_up(const struct marginal_gain *g)
{
	struct sums s = {0};
	for (uint32_t i = 0; i < g->n_points; i++) {
		const struct gain_point *p = &g->points[i];
		if (!is_known(g, p))
			continue;
		s.contradict += compare(g, p->replicas, p->throughput).contradict;
		double x = (double)p->replicas - 1, y = (double)p->replicas / p->throughput, w = 1 / (y * y);
		s.w += w;
		s.wx += w * x;
		s.wxx += w * x * x;
		s.wy += w * y;
		s.wxy += w * x * y;
		s.wyy += w * y * y;
		s.smallest = s.n == 0 ? p->replicas : i32_min(s.smallest, p->replicas);
		s.largest = i32_max(s.largest, p->replicas);
		s.n++;
	}
	return s;
}

bool marginal_gain_fit(const struct marginal_gain *g, struct gain_fit *ret)
{
	struct sums s = add_up(g);
	*ret = (struct gain_fit){.usable = s.n};
	if (s.n < MARGINAL_GAIN_COUNTS_MIN || s.contradict > 0 || (double)s.largest < SPREAD_MIN * (double)s.smallest)
		return false;
	double spread = s.w * s.wxx - s.wx * s.wx;
	double b = (s.w * s.wxy - s.wx * s.wy) / spread, a = (s.wy - b * s.wx) / s.w;
	if (!(spread > 0) || !isfinite(b) || !(a > 0))
		return false;
	double left = fmax(s.wyy - a * s.wy - b * s.wxy, 0); // sum of the squared errors
	double error = sqrt(left / (double)(s.n - 2) * s.w / spread);
	ret->serial = fmax((b - error) / a, 0);
	return isfinite(ret->serial);
}

static double speedup(double serial, double n)
{
	return n / (1 + serial * (n - 1));
}

double marginal_gain_of(double serial, int32_t n)
{
	return n <= 1 ? 1 : speedup(serial, (double)n) - speedup(serial, (double)n - 1);
}

int32_t marginal_gain_limit(double serial, double bound, int32_t most)
{
	int32_t enough = 0, beyond = i32_from_i64((int64_t)most + 1);
	// Each replica adds less than the one before it.
	while (beyond - enough > 1) {
		int32_t middle = enough + (beyond - enough) / 2;
		if (marginal_gain_of(serial, middle) >= bound)
			enough = middle;
		else
			beyond = middle;
	}
	return enough;
}

// Returns whether the replicas are at full load, so that their throughput is what they can serve: a signal asks for
// more of them, or more work waits than one second of the replicas. Throughput at less load says how much work came.
static bool is_loaded(const struct tick *t)
{
	const struct policy_objective *o = &t->policy->objective;
	const struct decision_signal *signals = t->decision->signals;
	for (size_t i = 0; i < t->policy->n_signals; i++)
		if (signals[i].state == SIGNAL_OK && !signal_is_input(t->policy, i) &&
		    t->unsustained[i] > t->counts.spec)
			return true;
	return o->set && signals[o->backlog_index].state == SIGNAL_OK &&
	       signals[o->backlog_index].value > (double)t->counts.spec;
}

// Throttled replicas have another curve.
void gain_observe(struct tick *t)
{
	const struct policy_gain_guard *config = &t->policy->guards.gain;
	const struct decision_signal *throughput = &t->decision->signals[config->signal_index];
	struct marginal_gain *g = state_gain(t->state);
	int64_t interval_ms = i64_max(t->policy->interval_ms, 1);
	uint64_t needed = (uint64_t)i64_max(i64_add(config->steady_ms, interval_ms - 1) / interval_ms, 0);
	marginal_gain_tick(g, t->counts.spec, t->decision->ready);
	if (throughput->state == SIGNAL_OK && g->steady_ticks >= needed && t->capacity_ratio >= 1 && is_loaded(t))
		marginal_gain_observe(g, throughput->value, (uint64_t)(PLAUSIBLE_AFTER_MS / interval_ms) + 1);
}

// Shortens a scale-up to the last replica that adds enough, but not below `held`.
static void gain_limit(struct tick *t, int32_t held)
{
	const struct policy_gain_guard *config = &t->policy->guards.gain;
	struct gain_fit fit;
	struct trace_entry entry = tick_entry(t, STAGE_GUARDS, REASON_GAIN_LEARNING, t->wanted);
	entry.signal = (int32_t)config->signal_index;
	if (t->wanted <= held)
		return;
	if (!marginal_gain_fit(state_gain(t->state), &fit)) {
		entry.count = fit.usable;
		entry.limit = MARGINAL_GAIN_COUNTS_MIN;
		tick_trace(t, &entry);
		return;
	}
	int32_t limit = marginal_gain_limit(fit.serial, config->gain, t->wanted);
	if (limit >= t->wanted)
		return;
	entry.reason = REASON_MARGINAL_GAIN;
	entry.after = i32_max(multiple_down(limit, t->policy->replica_multiple), held);
	double gain = marginal_gain_of(fit.serial, entry.after + 1), shown = round(100 * gain) / 100;
	entry.value = shown < config->gain ? shown : gain;
	entry.limit = config->gain;
	entry.count = entry.after + 1;
	tick_set_proposal(t, &entry);
}

// ---- unhealthyReplicas: the replacements of replicas on failing GPUs ----

// They leave the counts before the signals, and the guards add as many as are wanted now.

// How many replacements the scale has after a change that lacks their number (decide_adopt_scale()).
static void count_unrecorded(struct unhealthy *u, int32_t n_unhealthy, int32_t multiple)
{
	int32_t more = i32_min(n_unhealthy - u->replacements, u->unrecorded);
	if (u->unrecorded < 0)
		u->replacements = i32_min(u->replacements, n_unhealthy);
	else if (more > 0)
		u->replacements += multiple_down(more, multiple);
	u->unrecorded = 0;
}

void unhealthy_observe(struct tick *t)
{
	const struct obs_health *h = &t->observation->health;
	if (t->policy->guards.unhealthy != UNHEALTHY_REPLACE)
		return;
	if (t->state->unhealthy.unrecorded != 0 && h->is_known)
		count_unrecorded(&t->state->unhealthy, i32_max(h->unhealthy, 0), t->policy->replica_multiple);
	// The scale may have been lowered by hand since: at least one replica is not a replacement.
	t->replacements = i32_min(t->state->unhealthy.replacements, i32_max(t->counts.spec - 1, 0));
	t->counts.spec -= t->replacements;
	t->counts.status = i32_max(t->counts.status - t->replacements, 0);
	t->wanted = t->unstabilized = t->counts.spec;
}

// Returns how many replacements are wanted. Further ones at once; fewer only after the stabilization window of
// scaleDown, so that a GPU whose health flaps does not move the scale. Without data, and on hold, as many as now.
static int32_t replacements_wanted(struct tick *t)
{
	const struct obs_health *h = &t->observation->health;
	struct unhealthy *u = &t->state->unhealthy;
	int32_t now = t->replacements, n = i32_max(h->unhealthy, 0);
	if (t->hold || !h->is_known || n >= now) {
		u->fewer_since_ms = TIME_NONE;
		return t->hold || !h->is_known ? now : n;
	}
	if (u->fewer_since_ms == TIME_NONE)
		u->fewer_since_ms = t->now_ms;
	return i64_sub(t->now_ms, u->fewer_since_ms) < t->policy->scale_down.stabilization_window_ms ? now : n;
}

// Returns the scale with n replacements in addition to what is wanted: whole multiples, within maxReplicas and the rate
// limits of behavior. spec: the present scale with its replacements.
static int32_t with_replacements(const struct tick *t, int32_t spec, int32_t n)
{
	const struct policy *p = t->policy;
	const struct history *events = &t->state->events;
	int32_t room = i32_max(t->max - t->wanted, 0);
	int32_t total = t->wanted + multiple_down(i32_min(n, room), p->replica_multiple);
	if (t->out_of_bounds || total == spec)
		return total;
	if (total < spec) {
		int32_t floor = behavior_rate_limit(&p->scale_down, -1, events, t->now_ms, spec);
		return i32_max(total, i32_min(floor, t->wanted + i32_min(t->replacements, room)));
	}
	return i32_max(i32_min(total, behavior_rate_limit(&p->scale_up, 1, events, t->now_ms, spec)), t->wanted);
}

static void replace(struct tick *t, const struct trace_entry *entry)
{
	struct unhealthy *u = &t->state->unhealthy;
	int32_t spec = t->counts.spec + t->replacements, wanted = t->wanted;
	// A target that is scaled to zero has nothing to replace.
	int32_t after = wanted > 0 ? with_replacements(t, spec, replacements_wanted(t)) : wanted;
	u->wanted = wanted;
	u->added = after - wanted;
	t->unstabilized = i32_from_i64((int64_t)t->unstabilized + u->added);
	t->counts.spec = spec;
	if (after == spec)
		u->replacements = u->added; // nothing is written
	if (after == wanted)
		return;
	struct trace_entry e = *entry;
	e.reason = REASON_UNHEALTHY_REPLACED;
	e.before = wanted;
	e.after = after;
	e.limit = (double)u->added;
	tick_set_proposal(t, &e);
}

// Adds what unhealthyReplicas wants, and traces the unhealthy replicas.
static void unhealthy_apply(struct tick *t)
{
	const struct obs_health *h = &t->observation->health;
	enum reason reason = h->is_known ? REASON_UNHEALTHY_REPLICAS : REASON_UNHEALTHY_UNKNOWN;
	struct trace_entry entry = tick_entry(t, STAGE_GUARDS, reason, 0);
	entry.count = i32_max(h->unhealthy, 0);
	size_t n_trace = t->decision->n_trace;
	if (t->policy->guards.unhealthy == UNHEALTHY_REPLACE)
		replace(t, &entry);
	entry.before = entry.after = t->wanted;
	if (!h->is_known || (h->unhealthy > 0 && t->decision->n_trace == n_trace))
		tick_trace(t, &entry);
}

// ---- the other guards ----

int32_t guards_starting(const struct replica_counts *counts)
{
	return i32_max(counts->pending, i32_max(counts->spec - i32_max(counts->ready, 0), 0));
}

// Returns the scale of a target that is held. From the idle level the target scales to its minimum in any case, to a
// multiple if one is possible. Pinned by prop_limits "changed_scale_is_a_multiple".
static int32_t held_at(const struct tick *t)
{
	if (t->counts.spec >= t->min)
		return t->counts.spec;
	int64_t n = multiple_up(t->min, t->policy->replica_multiple);
	return n > t->max ? t->min : (int32_t)n;
}

static bool is_pending_guarded(struct tick *t)
{
	const struct policy_guards *g = &t->policy->guards;
	int32_t starting = guards_starting(&t->counts);
	if (!g->max_pending_set || tick_direction(t) <= 0 || starting <= g->max_pending_pods)
		return false;
	struct trace_entry entry = tick_entry(t, STAGE_GUARDS, REASON_PENDING_REPLICAS, held_at(t));
	entry.count = starting;
	entry.limit = (double)g->max_pending_pods;
	tick_set_proposal(t, &entry);
	return true;
}

static bool is_availability_guarded(struct tick *t)
{
	const struct policy_guards *g = &t->policy->guards;
	int64_t ready = t->counts.ready, spec = t->counts.spec;
	if (ready * 100 >= spec * g->min_available_percent)
		return false;
	struct trace_entry entry = tick_entry(t, STAGE_GUARDS, REASON_TOO_FEW_AVAILABLE, held_at(t));
	entry.value = (double)(ready * 100 / spec); // spec > 0, or the comparison above held
	entry.limit = (double)g->min_available_percent;
	tick_set_proposal(t, &entry);
	return true;
}

// Returns the farthest scale within one step that is a multiple, if one exists between it and spec.
static int32_t step_end(const struct tick *t, int32_t step)
{
	int32_t spec = t->counts.spec, multiple = t->policy->replica_multiple;
	if (tick_direction(t) > 0)
		return i32_max(multiple_down(i32_from_i64((int64_t)spec + step), multiple), held_at(t));
	return i32_min(i32_from_i64(multiple_up(i32_max(i32_from_i64((int64_t)spec - step), 0), multiple)), spec);
}

static void limit_step(struct tick *t)
{
	int32_t step = t->policy->guards.max_step;
	int64_t change = (int64_t)t->wanted - t->counts.spec;
	if (step <= 0 || (change <= step && change >= -(int64_t)step))
		return;
	struct trace_entry entry = tick_entry(t, STAGE_GUARDS, REASON_MAX_STEP, held_at(t));
	entry.after = i32_min(i32_max(step_end(t, step), t->min), t->max);
	entry.limit = (double)step;
	tick_set_proposal(t, &entry);
}

void guards_stage(struct tick *t)
{
	if (t->policy->guards.unhealthy != UNHEALTHY_IGNORE)
		unhealthy_apply(t);
	if (t->out_of_bounds || t->wanted == held_at(t) || is_pending_guarded(t) || is_availability_guarded(t))
		return;
	if (t->policy->guards.gain.set)
		gain_limit(t, held_at(t));
	limit_step(t);
}
