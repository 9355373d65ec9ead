// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/decide.h"

#include <assert.h>

#include "policies/engine/clock_step.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"
#include "policies/engine/pipeline.h"
#include "policies/engine/policy.h"
#include "policies/engine/startup.h"
#include "policies/engine/state.h"
#include "policies/engine/tick.h"

static void count_replicas(struct tick *t)
{
	const struct observation *o = t->observation;
	struct replica_counts *c = &t->counts;
	c->spec = i32_max(o->spec_replicas, 0);
	c->status = i32_max(o->status_replicas, 0);
	c->ready = o->ready_replicas;
	c->pending = o->pending_replicas > 0 ? i32_min(o->pending_replicas, i32_max(c->spec, c->status)) : 0;
	t->wanted = t->unstabilized = c->spec;
	if (c->ready >= 0 && c->ready <= c->spec)
		return;
	// Several pods for one replica, pods of another workload, a surge: what is ready beyond the scale is no
	// capacity that the next scale would have. Pinned by prop_decide "surplus_of_ready_changes_nothing".
	c->ready = c->spec;
	tick_trace(t, &(struct trace_entry){
	                      .stage = STAGE_SOURCES,
	                      .reason = o->ready_replicas < 0 ? REASON_READY_UNKNOWN : REASON_READY_SURPLUS,
	                      .signal = -1,
	                      .before = c->spec,
	                      .after = c->spec,
	                      .count = o->ready_replicas,
	              });
}

// Counts the replicas that are starting, before the signals, whose proposals depend on them.
static void observe_starts(struct tick *t)
{
	struct startup *s = &t->state->startup;
	bool learnt = startup_observe(s, t->policy, t->now_ms, t->counts.spec, t->decision->ready);
	t->starting = t->policy->startup.set ? startup_starting(s, t->policy, t->now_ms) : 0;
	if (!learnt || !t->policy->startup.set || !startup_is_learnt(s, t->policy))
		return;
	uint32_t newest = (s->next_start + STARTUP_STARTS_MAX - 1) % STARTUP_STARTS_MAX;
	tick_trace(t, &(struct trace_entry){
	                      .stage = STAGE_SOURCES,
	                      .reason = REASON_STARTUP_LEARNT,
	                      .signal = -1,
	                      .before = t->counts.spec,
	                      .after = t->counts.spec,
	                      .duration_ms = s->starts_ms[newest],
	                      .window_ms = startup_ms(s, t->policy),
	                      .count = (int32_t)s->n_starts,
	              });
}

static void finish(struct tick *t)
{
	struct decision *d = t->decision;
	d->desired = t->wanted;
	d->min_replicas = t->min;
	d->max_replicas = t->max;
	d->action = d->desired > d->current   ? ACTION_SCALE_UP
	            : d->desired < d->current ? ACTION_SCALE_DOWN
	            : t->hold                 ? ACTION_HOLD
	                                      : ACTION_NONE;
	d->write = d->desired != d->current && !t->policy->dry_run;
}

void decide(const struct policy *policy, const struct observation *observation, int64_t now_ms, void *state,
            struct decision *ret_decision)
{
	assert(observation->n_signals == policy->n_signals && policy->n_signals <= POLICY_SIGNALS_MAX);
	struct state_header *s = state_of(policy, state);
	now_ms = clock_step_now(policy, s, now_ms);
	s->last_now_ms = now_ms;

	struct decision *d = ret_decision;
	d->time_ms = now_ms;
	d->reason = REASON_DESIRED_WITHIN_RANGE;
	d->driver = -1;
	d->n_signals = policy->n_signals;
	d->n_trace = 0;
	d->trace_cut = d->is_kept = false;

	struct tick t; // its arrays are filled signal by signal
	t.policy = policy;
	t.observation = observation;
	t.state = s;
	t.decision = d;
	t.now_ms = now_ms;
	t.min = policy->min_replicas;
	t.max = policy->max_replicas;
	t.schedule = -1;
	t.capacity_ratio = 1;
	t.hold = t.can_idle = t.is_idle = t.fallback_active = false;
	if (s->clock_step_ms != 0 || s->clamped_ms != 0)
		clock_step_trace(&t);
	count_replicas(&t);
	d->current = t.counts.spec;
	d->ready = i32_min(observation->ready_replicas, t.counts.spec); // < 0: unknown
	d->pending = t.counts.pending;
	if (!s->seeded)
		decide_record_recommendation(policy, state, now_ms, t.counts.spec);
	observe_starts(&t);
	pipeline_run(&t);
	finish(&t);
}
