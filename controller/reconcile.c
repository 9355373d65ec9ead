// SPDX-License-Identifier: Apache-2.0
// What a reconciler is between two ticks: made, told of another policy, asked, freed.
#include "controller/reconcile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "controller/reconcile_private.h"
#include "controller/trend.h"
#include "k8s/target_store.h"
#include "policies/decide.h"

#define PACKED_STEP 128 // a state that grows and shrinks by a sample stays where it is

void *reconcile_must(void *p)
{
	if (!p)
		abort();
	return p;
}

void reconcile_put_state_away(struct reconciler *r, void *state)
{
	size_t n = decide_state_packed_bytes(r->policy, state);
	size_t room = (n + PACKED_STEP - 1) / PACKED_STEP * PACKED_STEP;
	if (room != r->packed_bytes) {
		free(r->packed);
		r->packed = reconcile_must(malloc(room));
		r->packed_bytes = room;
	}
	decide_state_pack(r->policy, state, r->packed);
	r->last_scale_ms = decide_last_scale_ms(r->policy, state);
	free(state);
}

// The target's state is kept at hand while it is wanted.
static void want_target(const struct reconciler *r, const struct policy *p)
{
	struct scale_ref ref = policy_scale_ref(p);
	struct err e;
	if (r->env->sources.targets && target_store_want(r->env->sources.targets, &ref, observe_needs_pods(p), &e) < 0)
		LOG(r->env->log, LOG_WARNING, "Cannot watch target; it is read at every tick",
		    LOG_S("namespace", p->namespace_name), LOG_S("policy", p->name), LOG_S("err", e.msg));
}

static void unwant_target(const struct reconciler *r, const struct policy *p)
{
	struct scale_ref ref = policy_scale_ref(p);
	if (r->env->sources.targets)
		target_store_unwant(r->env->sources.targets, &ref, observe_needs_pods(p));
}

struct reconciler *reconciler_new(const struct reconcile_env *env, const struct reconcile_subject *subject)
{
	struct reconciler *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->env = env;
	r->subject = *subject;
	r->policy = subject->policy;
	r->phase = STATUS_PHASE__COUNT;
	void *state = malloc(decide_state_bytes(r->policy));
	if (!state) {
		free(r);
		return NULL;
	}
	decide_state_init(r->policy, state);
	reconcile_put_state_away(r, state);
	unsure_write_clear(&r->unsure);
	r->needs_past = subject->has_past && subject->status && env->sources.k8s;
	r->needs_refill = refill_is_needed(r->policy);
	want_target(r, r->policy);
	return r;
}

static void forget_details(struct reconciler *r)
{
	for (size_t i = 0; r->details && i < r->decision->n_signals; i++)
		free(r->details[i]);
	free(r->details);
	r->details = NULL;
}

static void forget_decision(struct reconciler *r)
{
	forget_details(r);
	free(r->decision);
	r->decision = NULL;
	r->decision_room = 0;
}

void reconcile_forget_error(struct reconciler *r)
{
	free(r->error);
	r->error = NULL;
}

void reconciler_free(struct reconciler *r)
{
	if (!r)
		return;
	assert(!r->work);
	unwant_target(r, r->policy);
	forget_decision(r);
	reconcile_forget_error(r);
	trend_free(r->trend);
	free(r->packed);
	free(r);
}

// Whether the columns of a trend, and the time between its rows, mean the same for both.
static bool has_same_trend(const struct policy *a, const struct policy *b)
{
	if (a->interval_ms != b->interval_ms || a->n_signals != b->n_signals)
		return false;
	for (size_t i = 0; i < a->n_signals; i++)
		if (strcmp(a->signals[i].name, b->signals[i].name) != 0 ||
		    strcmp(a->signals[i].query, b->signals[i].query) != 0)
			return false;
	return true;
}

int reconciler_set_policy(struct reconciler *r, const struct policy *policy, int64_t generation)
{
	assert(!r->work);
	void *state = malloc(decide_state_bytes(policy)), *before = malloc(decide_state_bytes(r->policy));
	if (!state || !before) {
		free(state);
		free(before);
		return -1;
	}
	decide_state_unpack(r->policy, r->packed, before);
	decide_state_init(policy, state);
	decide_state_migrate(r->policy, before, policy, state);
	free(before);
	want_target(r, policy); // before the old one goes: it is the same one, mostly
	unwant_target(r, r->policy);
	if (!has_same_trend(r->policy, policy)) {
		trend_free(r->trend);
		r->trend = NULL;
	}
	r->policy = r->subject.policy = policy;
	reconcile_put_state_away(r, state);
	r->subject.generation = generation;
	forget_decision(r); // it names signals of the old policy
	r->phase = STATUS_PHASE__COUNT;
	r->needs_refill = refill_is_needed(policy);
	return 0;
}

void reconciler_set_status(struct reconciler *r, struct policy_status *status)
{
	assert(!r->work);
	r->subject.status = status;
	r->needs_past = r->needs_past && status;
}

bool reconciler_is_idle(const struct reconciler *r)
{
	return !r->work;
}

const struct policy *reconciler_policy(const struct reconciler *r)
{
	return r->policy;
}

const struct decision *reconciler_decision(const struct reconciler *r, const char *const **ret_details)
{
	*ret_details = (const char *const *)r->details;
	return r->decision;
}

const char *reconciler_error(const struct reconciler *r)
{
	return r->error ? r->error : "";
}

bool reconciler_facts(const struct reconciler *r, struct decided *ret_decided, struct status_facts *ret_facts)
{
	bool has_decision = r->decision && r->phase != STATUS_READ_FAILED;
	if (r->phase == STATUS_PHASE__COUNT)
		return false;
	*ret_decided = (struct decided){r->policy, r->decision, (const char *const *)r->details};
	*ret_facts = (struct status_facts){
	        .phase = r->phase,
	        .decided = has_decision ? ret_decided : NULL,
	        .text = r->error,
	        .fault = r->env->fault(r->subject.owner),
	        .rival = r->env->rival(r->subject.owner),
	        .unseen = r->env->unseen(r->subject.owner),
	        .dry_run = r->policy->dry_run || r->env->dry_run,
	        .paused = r->policy->paused,
	};
	return true;
}

int64_t reconciler_last_scale_ms(const struct reconciler *r)
{
	return r->last_scale_ms;
}

const struct trend *reconciler_trend(const struct reconciler *r)
{
	return r->trend;
}

// Nothing depends on it: without memory there is none.
void reconcile_note_trend(struct reconciler *r, int64_t now_ms, bool is_known)
{
	double values[TREND_COLUMNS_MAX];
	_Static_assert(TREND_SIGNALS + POLICY_SIGNALS_MAX <= TREND_COLUMNS_MAX, "a column per signal");
	if (!r->env->trends)
		return;
	if (!r->trend)
		r->trend = trend_new(r->policy->interval_ms, TREND_SIGNALS + r->policy->n_signals);
	if (!r->trend)
		return;
	if (is_known) {
		values[TREND_CURRENT] = r->decision->current;
		values[TREND_DESIRED] = r->decision->desired;
		for (size_t i = 0; i < r->decision->n_signals; i++)
			values[TREND_SIGNALS + i] = r->decision->signals[i].value;
	}
	trend_add(r->trend, now_ms, is_known ? values : NULL);
}

void reconcile_keep_decision(struct reconciler *r)
{
	const struct decision *d = &r->work->decision;
	const char *const *said = r->work->observation.details;
	size_t bytes = decision_bytes(d);
	forget_details(r);
	if (bytes > r->decision_room) {
		forget_decision(r);
		r->decision = reconcile_must(malloc(bytes));
		r->decision_room = bytes;
	}
	memcpy(r->decision, d, bytes);
	for (size_t i = 0; i < d->n_signals; i++) {
		if (!said[i])
			continue;
		if (!r->details)
			r->details = reconcile_must(calloc(d->n_signals, sizeof *r->details));
		r->details[i] = reconcile_must(strdup(said[i]));
	}
}
