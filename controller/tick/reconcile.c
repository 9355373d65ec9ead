// SPDX-License-Identifier: Apache-2.0
// A reconciler between two ticks.
#include "controller/tick/reconcile.h"

#include "base/base.h"
#include "base/process/log.h"
#include "controller/pool/pools.h"
#include "controller/status/status.h"
#include "k8s/cache/target_store.h"
#include "k8s/capacity/fit_store.h"
#include "policies/engine/decide.h"

#define PACKED_STEP 32 // a state that grows and shrinks by a word or two mostly stays where it is

struct pool_membership *reconcile_membership(const struct reconciler *r)
{
	return r->env->membership ? r->env->membership(r->subject.owner) : NULL;
}

void reconcile_drop_order(struct reconciler *r)
{
	if (!r->order)
		return;
	pool_membership_end(reconcile_membership(r));
	if (r->fit)
		fit_target_unsent(r->fit, r->order->from);
	if (r->variants)
		variant_scale_order(r->variants, false);
	free(r->order);
	r->order = NULL;
}

void reconcile_pack_state(struct reconciler *r, void *state)
{
	uint32_t n = (uint32_t)decide_state_packed_bytes(r->policy, state);
	uint32_t room = (n + PACKED_STEP - 1) / PACKED_STEP * PACKED_STEP;
	if (room != r->packed_bytes) {
		free(r->packed);
		r->packed = must_alloc(malloc(room));
		r->packed_bytes = room;
	}
	decide_state_pack(r->policy, state, r->packed);
	r->last_scale_ms = decide_last_scale_ms(r->policy, state);
}

static void *unpack_state(const struct reconciler *r)
{
	void *state = must_alloc(malloc(decide_state_bytes(r->policy)));
	decide_state_unpack(r->policy, r->packed, state);
	return state;
}

void *reconcile_state(struct reconciler *r)
{
	if (!r->work->state)
		r->work->state = unpack_state(r);
	return r->work->state;
}

// The target store keeps the target's state while at least one policy wants it.
// Returns whether the target store has counted the call, so that release_target must be called.
static bool acquire_target(const struct reconciler *r, const struct binding *binding)
{
	struct scale_ref ref = binding_scale_ref(binding);
	struct err e;
	if (!r->env->sources.targets || binding->variants) // variant_scale_acquire() acquires theirs
		return false;
	int wanted = target_store_acquire(r->env->sources.targets, &ref, observe_needs_pods(binding->policy), &e);
	if (wanted < 0)
		LOG(r->env->log, LOG_WARNING, "Cannot watch target; reading it at every tick", LOG_BINDING(binding),
		    LOG_S("err", e.msg));
	return wanted > 0;
}

static void release_target(const struct reconciler *r, const struct binding *binding)
{
	struct scale_ref ref = binding_scale_ref(binding);
	if (r->is_target_wanted)
		target_store_release(r->env->sources.targets, &ref, observe_needs_pods(binding->policy));
}

void reconcile_acquire_target(struct reconciler *r)
{
	if (r->variants) {
		variant_scale_acquire(r->variants);
		return;
	}
	if (!r->is_target_wanted)
		r->is_target_wanted = acquire_target(r, r->subject.binding);
	struct err e;
	if (!r->fit)
		r->fit = observe_acquire_fit(&r->env->sources, r->subject.binding, &e); // without it, the trace says so
}

// An earlier process may have marked pods.
static void acquire_victims(struct reconciler *r)
{
	if (!r->policy->scale_down.victims.set || r->victims)
		return;
	r->victims = must_alloc(calloc(1, sizeof *r->victims));
	r->victims->may_have_marks = true;
}

struct reconciler *reconciler_new(const struct reconcile_env *env, const struct reconcile_subject *subject)
{
	struct reconciler *r = must_alloc(calloc(1, sizeof *r));
	r->env = env;
	r->subject = *subject;
	r->policy = subject->binding->policy;
	r->variants = variant_scale_new(&env->sources, env->log, subject->binding);
	void *state = must_alloc(malloc(decide_state_bytes(r->policy)));
	decide_state_init(r->policy, state);
	if (subject->last_scale_ms >= 0)
		decide_record_last_scale(r->policy, state, subject->last_scale_ms);
	reconcile_pack_state(r, state);
	free(state);
	unacked_write_clear(&r->unacked);
	acquire_victims(r);
	r->needs_past = subject->has_past && subject->status && (env->sources.k8s || subject->status->env->dir);
	r->needs_refill = refill_is_needed(r->policy);
	reconcile_acquire_target(r);
	return r;
}

static void forget_details(struct reconciler *r)
{
	for (size_t i = 0; r->details && i <= r->decision->n_signals; i++)
		free(r->details[i]);
	free(r->details);
	r->details = NULL;
}

static void forget_decision(struct reconciler *r)
{
	forget_details(r);
	if (r->victims) {
		free(r->victims->text);
		r->victims->text = NULL;
	}
	free(r->pool);
	r->pool = NULL;
	free(r->decision);
	r->decision = NULL;
	r->decision_bytes = 0;
}

void reconciler_free(struct reconciler *r)
{
	if (!r)
		return;
	assert(!r->work);
	reconcile_drop_order(r);
	release_target(r, r->subject.binding);
	fit_target_release(r->fit);
	variant_scale_free(r->variants);
	forget_decision(r);
	free(r->victims);
	free(r->packed);
	free(r);
}

void reconciler_set_policy(struct reconciler *r, const struct binding *binding, int64_t generation)
{
	const struct policy *policy = binding->policy;
	assert(!r->work);
	reconcile_drop_order(r);
	void *state = must_alloc(malloc(decide_state_bytes(policy))), *before = unpack_state(r);
	decide_state_init(policy, state);
	decide_state_migrate(r->policy, before, policy, state);
	free(before);
	bool is_wanted = acquire_target(r, binding); // before the old target is released: it is usually the same one
	release_target(r, r->subject.binding);
	r->is_target_wanted = is_wanted;
	fit_target_release(r->fit);
	r->fit = NULL;
	struct variant_scale *variants = variant_scale_new(&r->env->sources, r->env->log, binding);
	if (variants)
		variant_scale_acquire(variants); // before the old targets are released: they are usually the same ones
	variant_scale_free(r->variants);
	r->variants = variants;
	r->subject.binding = binding;
	r->policy = policy;
	acquire_victims(r);
	reconcile_pack_state(r, state);
	free(state);
	r->subject.generation = generation;
	forget_decision(r); // it names signals of the old policy
	r->needs_refill = refill_is_needed(policy);
}

void reconciler_set_status(struct reconciler *r, struct policy_status *status)
{
	assert(!r->work || !status);
	r->subject.status = status;
	r->needs_past = r->needs_past && status;
}

void reconciler_clock_was_set(struct reconciler *r, int64_t step_ms)
{
	reconcile_drop_order(r);
	if (r->victims && r->victims->since_ms > 0)
		r->victims->since_ms += step_ms;
	if (r->decision)
		r->decision->time_ms += step_ms;
	r->needs_refill = refill_is_needed(r->policy);
	if (r->work) {
		r->work->is_void = true;
		r->work->now_ms += step_ms;
		if (r->work->refill)
			refill_drop(r->work->refill);
	}
	if (r->work && r->work->state) {
		decide_clock_was_set(r->policy, r->work->state, step_ms);
		return;
	}
	void *state = unpack_state(r);
	decide_clock_was_set(r->policy, state, step_ms);
	reconcile_pack_state(r, state);
	free(state);
}

enum tick_phase reconciler_phase(const struct reconciler *r)
{
	if (r->work)
		return r->work->phase;
	return r->order ? TICK_PHASE_DEFERRED : TICK_PHASE_IDLE;
}

struct policy_gpus reconciler_gpus(const struct reconciler *r)
{
	int32_t n = r->policy->gpus.set || !r->fit ? 0 : fit_target_gpus(r->fit);
	if (n == 0 || n > POLICY_GPUS_PER_REPLICA_MAX)
		return r->policy->gpus;
	return (struct policy_gpus){.set = true, .per_replica = n, .model = ""};
}

struct decided reconciler_decided(const struct reconciler *r)
{
	struct decided d = {.policy = r->policy,
	                    .target = r->subject.binding->target,
	                    .decision = r->decision,
	                    .details = (const char *const *)r->details,
	                    .pool = r->pool,
	                    .victims = r->victims ? r->victims->text : NULL};
	if (r->variants && r->decision)
		d.variants = variant_scale_rows(r->variants, &d.n_variants);
	return d;
}

void *reconciler_copy_state(const struct reconciler *r)
{
	assert(!r->work);
	return r->needs_past ? NULL : unpack_state(r);
}

void reconcile_keep_decision(struct reconciler *r, const struct decision *d)
{
	const char *const *reported = r->work->observation.details;
	uint32_t bytes = (uint32_t)decision_kept_bytes(d);
	forget_details(r);
	if (bytes > r->decision_bytes) {
		forget_decision(r);
		r->decision = must_alloc(malloc(bytes));
		r->decision_bytes = bytes;
	}
	decision_keep(d, r->decision);
	for (size_t i = 0; i <= d->n_signals; i++) {
		if (!reported[i])
			continue;
		if (!r->details)
			r->details = must_alloc(calloc(d->n_signals + 1, sizeof *r->details));
		r->details[i] = must_alloc(strdup(reported[i]));
	}
}
