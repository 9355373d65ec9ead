// SPDX-License-Identifier: Apache-2.0
#include "controller/reconcile.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "controller/history.h"
#include "controller/metrics.h"
#include "controller/render.h"
#include "policies/decide.h"
#include "policies/observation.h"

struct reconciler {
	const struct reconcile_env *env;
	const struct policy *policy;
	void *state;
	size_t state_bytes;
	bool needs_refill;
	bool busy;
	int conflicts; // in this tick
	int64_t now_ms, started_us;
	int32_t write_from, write_to;
	struct refill_call refill;
	struct observation_call observation;
	bool decided;
	struct decision decision;
	char *details[POLICY_SIGNALS_MAX]; // copies that live as long as `decision`
	char error[ERR_MSG_BYTES];
	enum err_kind pods_error_kind;
};

static int64_t mono_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct reconciler *reconciler_new(const struct reconcile_env *env, const struct policy *policy)
{
	struct reconciler *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	r->env = env;
	r->policy = policy;
	r->state_bytes = decide_state_bytes(policy);
	r->state = calloc(1, r->state_bytes);
	if (!r->state) {
		free(r);
		return NULL;
	}
	decide_state_init(policy, r->state);
	r->needs_refill = refill_is_needed(policy);
	return r;
}

static void forget_details(struct reconciler *r)
{
	for (size_t i = 0; i < POLICY_SIGNALS_MAX; i++) {
		free(r->details[i]);
		r->details[i] = NULL;
	}
}

void reconciler_free(struct reconciler *r)
{
	if (!r)
		return;
	assert(!r->busy);
	observe_release(&r->observation);
	forget_details(r);
	free(r->state);
	free(r);
}

int reconciler_set_policy(struct reconciler *r, const struct policy *policy)
{
	assert(!r->busy);
	size_t bytes = decide_state_bytes(policy);
	void *state = calloc(1, bytes);
	if (!state)
		return -1;
	decide_state_init(policy, state);
	decide_state_migrate(r->policy, r->state, policy, state);
	free(r->state);
	observe_release(&r->observation);
	r->state = state;
	r->state_bytes = bytes;
	r->policy = policy;
	r->decided = false; // the old decision names signals of the old policy
	r->needs_refill = refill_is_needed(policy);
	return 0;
}

bool reconciler_is_idle(const struct reconciler *r)
{
	return !r->busy;
}

const struct policy *reconciler_policy(const struct reconciler *r)
{
	return r->policy;
}

const struct decision *reconciler_decision(const struct reconciler *r, const char *const **ret_details)
{
	*ret_details = (const char *const *)r->details;
	return r->decided ? &r->decision : NULL;
}

const char *reconciler_error(const struct reconciler *r)
{
	return r->error;
}

static struct decided as_decided(const struct reconciler *r)
{
	return (struct decided){r->policy, &r->decision, (const char *const *)r->details};
}

// The last step of every tick.
static void end_tick(struct reconciler *r, const char *result)
{
	observe_release(&r->observation);
	metrics_reconciled(r->env->metrics, result, (double)(mono_us() - r->started_us) / 1e6);
	r->busy = false;
	r->env->on_idle(r->env->on_idle_arg);
}

// An error is logged when it begins or changes, not at every tick.
static void report_error(struct reconciler *r, const char *message, const struct err *e)
{
	if (strcmp(r->error, e->msg) == 0)
		return;
	snprintf(r->error, sizeof r->error, "%s", e->msg);
	LOG(r->env->log, LOG_ERROR, message, LOG_S("namespace", r->policy->namespace_name),
	    LOG_S("policy", r->policy->name), LOG_S("kind", err_kind_info(e->kind)->name), LOG_S("err", e->msg));
}

static void log_decision(const struct reconciler *r, enum log_level level, const char *message)
{
	const struct decision *d = &r->decision;
	struct decided decided = as_decided(r);
	char sentence[RENDER_SENTENCE_BYTES];
	render_message(&decided, sentence);
	LOG(r->env->log, level, message, LOG_S("namespace", r->policy->namespace_name),
	    LOG_S("policy", r->policy->name), LOG_S("target", r->policy->target_name),
	    LOG_S("action", action_name(d->action)), LOG_S("reason", reason_info(d->reason)->name),
	    LOG_I("currentReplicas", d->current), LOG_I("desiredReplicas", d->desired),
	    LOG_I("readyReplicas", d->ready), LOG_I("pendingReplicas", d->pending), LOG_S("message", sentence));
}

// True when this decision says something else than the one before: only then it is worth a line and a place in the
// history.
static bool is_news(bool had, const struct decision *before, const struct decision *now)
{
	return !had || before->action != now->action || before->reason != now->reason ||
	       before->desired != now->desired;
}

static void take_details(struct reconciler *r)
{
	forget_details(r);
	for (size_t i = 0; i < r->policy->n_signals; i++)
		if (r->observation.details[i])
			r->details[i] = strdup(r->observation.details[i]);
}

static void observe(struct reconciler *r);

static void on_written(void *arg, const struct scale *scale, const struct err *error)
{
	struct reconciler *r = arg;
	if (scale) {
		decide_record_scale(r->policy, r->state, r->now_ms, r->write_from, r->write_to);
		metrics_scaled(r->env->metrics, r->write_from, r->write_to);
		log_decision(r, LOG_INFO, "Scaled target");
		r->error[0] = '\0';
		end_tick(r, "scaled");
		return;
	}
	if (!r->env->stopping && error->kind == ERR_CONFLICT && ++r->conflicts < RECONCILE_CONFLICTS_MAX) {
		metrics_conflict(r->env->metrics);
		LOG(r->env->log, LOG_INFO, "Target was changed by somebody else; reading it again",
		    LOG_S("namespace", r->policy->namespace_name), LOG_S("policy", r->policy->name),
		    LOG_I("attempt", r->conflicts));
		observe(r);
		return;
	}
	if (!r->env->stopping)
		report_error(r, "Cannot scale target", error);
	end_tick(r, "error");
}

// The world is known: decide, and act on it.
static void decide_and_act(struct reconciler *r)
{
	struct observation_call *c = &r->observation;
	struct decision before = r->decision;
	bool had = r->decided;
	decide(r->policy, &c->observation, r->now_ms, r->state, &r->decision);
	r->decided = true;
	take_details(r);
	metrics_decided(r->env->metrics, &r->decision);
	struct decision *d = &r->decision;
	bool news = is_news(had, &before, d);
	if (news) {
		struct decided decided = as_decided(r);
		history_add(r->env->history, &decided);
	}
	bool write = d->write && !r->env->dry_run;
	if (!write) {
		r->error[0] = '\0';
		log_decision(r, news ? LOG_INFO : LOG_DEBUG,
		             d->write ? "Decided (dry run, nothing written)" : "Decided");
		end_tick(r, "ok");
		return;
	}
	r->write_from = d->current;
	r->write_to = d->desired;
	struct scale_ref ref = policy_scale_ref(r->policy);
	struct err e;
	if (scale_patch(r->env->sources.k8s, &ref, c->scale.resource_version, d->desired, on_written, r, &e) < 0)
		on_written(r, NULL, &e);
}

static void on_refilled(void *arg, bool ok, const struct err *error)
{
	struct reconciler *r = arg;
	r->needs_refill = !ok; // tried again at the next tick while the source is away
	if (r->env->stopping) {
		end_tick(r, "error");
		return;
	}
	if (!ok)
		LOG(r->env->log, LOG_DEBUG, "Cannot refill windows; they fill tick by tick",
		    LOG_S("policy", r->policy->name), LOG_S("err", error->msg));
	decide_and_act(r);
}

static void on_observed(void *arg, struct observation_call *c)
{
	struct reconciler *r = arg;
	if (r->env->stopping || c->error.kind != ERR_NONE) {
		if (!r->env->stopping)
			report_error(r, "Cannot read target", &c->error);
		end_tick(r, "error");
		return;
	}
	if (!c->pods_known && r->pods_error_kind != c->pods_error.kind)
		LOG(r->env->log, LOG_WARNING, "Cannot count ready pods; deciding on the replicas asked for",
		    LOG_S("namespace", r->policy->namespace_name), LOG_S("policy", r->policy->name),
		    LOG_S("err", c->pods_error.msg));
	r->pods_error_kind = c->pods_known ? ERR_NONE : c->pods_error.kind;
	if (r->needs_refill)
		refill_start(&r->refill, r->env->promql, r->policy, r->state, observation_ready(&c->observation),
		             r->now_ms, on_refilled, r);
	else
		decide_and_act(r);
}

static void observe(struct reconciler *r)
{
	observe_start(&r->observation, &r->env->sources, r->policy, r->now_ms, on_observed, r);
}

void reconciler_tick(struct reconciler *r, int64_t now_ms)
{
	if (r->busy) {
		metrics_tick_skipped(r->env->metrics);
		return;
	}
	r->busy = true;
	r->conflicts = 0;
	r->now_ms = now_ms;
	r->started_us = mono_us();
	observe(r);
}
