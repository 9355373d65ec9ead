// SPDX-License-Identifier: Apache-2.0
// One tick: what was known before -> observe -> refill -> decide -> write -> report.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "controller/history.h"
#include "controller/metrics.h"
#include "controller/reconcile_private.h"
#include "controller/render.h"
#include "controller/status.h"
#include "k8s/k8s_client.h"
#include "policies/decide.h"
#include "policies/observation.h"
#include "policies/policy_schema.h"

#define RECONCILE_PATH_BYTES 700 // namespace and name have at most 253 each

static int64_t mono_us(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static struct decided as_decided(const struct reconciler *r)
{
	return (struct decided){r->policy, r->decision, (const char *const *)r->details};
}

// The last step of every tick.
static void end_tick(struct reconciler *r, const char *result)
{
	metrics_reconciled(r->env->metrics, result, (double)(mono_us() - r->work->started_us) / 1e6);
	observe_release(&r->work->observation);
	reconcile_put_state_away(r, r->work->state);
	free(r->work);
	r->work = NULL;
	r->env->on_idle(r->subject.owner);
}

// The connections are being closed, or the policy is no longer ours or no longer this one: nothing more to be done.
static bool is_over(const struct reconciler *r)
{
	return r->env->stopping || !r->env->is_current(r->subject.owner);
}

// How the tick ended.
static void update_status(struct reconciler *r, enum status_phase phase)
{
	struct decided decided;
	struct status_update u = {.policy = r->policy,
	                          .state = r->work->state,
	                          .generation = r->subject.generation,
	                          .now_ms = r->work->now_ms};
	r->phase = phase;
	if (!r->subject.status || r->needs_past)
		return; // what is not known yet must not be written over what the process before this one left
	reconciler_facts(r, &decided, &u.facts);
	policy_status_update(r->subject.status, &u);
	const char *error = policy_status_error(r->subject.status); // of one before, mostly
	if (error[0] && !r->said_status_error)
		LOG(r->env->log, LOG_ERROR, "Cannot write status", LOG_S("namespace", r->policy->namespace_name),
		    LOG_S("policy", r->policy->name), LOG_S("err", error));
	r->said_status_error = error[0] != '\0';
}

// An error is logged when it begins or changes, not at every tick.
static void report_error(struct reconciler *r, const char *message, const struct err *e)
{
	if (r->error && strcmp(r->error, e->msg) == 0)
		return;
	reconcile_forget_error(r);
	r->error = reconcile_must(strdup(e->msg));
	LOG(r->env->log, LOG_ERROR, message, LOG_S("namespace", r->policy->namespace_name),
	    LOG_S("policy", r->policy->name), LOG_S("kind", err_kind_info(e->kind)->name), LOG_S("err", e->msg));
}

static void log_decision(const struct reconciler *r, enum log_level level, const char *message)
{
	if (!log_takes(r->env->log, level))
		return; // the sentence costs more than deciding did
	const struct decision *d = r->decision;
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
static bool is_news(const struct decision *before, const struct decision *now)
{
	return !before || before->action != now->action || before->reason != now->reason ||
	       before->desired != now->desired;
}

static void observe(struct reconciler *r);

// The tick could not do its work; message is for the log.
static void fail_tick(struct reconciler *r, enum status_phase phase, const char *message, const struct err *e)
{
	if (!is_over(r)) {
		report_error(r, message, e);
		reconcile_note_trend(r, r->work->now_ms, false);
		update_status(r, phase);
	}
	end_tick(r, "error");
}

static void on_written(void *arg, const struct scale *scale, const struct err *error)
{
	struct reconciler *r = arg;
	if (scale) {
		const struct tick_work *w = r->work;
		observe_scaled(&r->env->sources, r->policy, scale);
		decide_record_scale(r->policy, r->work->state, w->now_ms, w->write_from, w->write_to);
		unsure_write_clear(&r->unsure); // whatever was sent before, it comes too late now
		metrics_scaled(r->env->metrics, w->write_from, w->write_to);
		log_decision(r, LOG_INFO, "Scaled target");
		reconcile_forget_error(r);
		if (!is_over(r))
			update_status(r, STATUS_SCALED);
		end_tick(r, "scaled");
		return;
	}
	unsure_write_failed(&r->unsure, error, r->work->write_from, r->work->write_to, r->work->now_ms);
	if (!is_over(r) && error->kind == ERR_CONFLICT && ++r->work->conflicts < RECONCILE_CONFLICTS_MAX) {
		metrics_conflict(r->env->metrics);
		LOG(r->env->log, LOG_INFO, "Target was changed by somebody else; reading it again",
		    LOG_S("namespace", r->policy->namespace_name), LOG_S("policy", r->policy->name),
		    LOG_I("attempt", r->work->conflicts));
		r->work->observation.must_ask = true; // the watch may not have brought the change yet
		observe(r);
		return;
	}
	fail_tick(r, STATUS_WRITE_FAILED, "Cannot scale target", error);
}

static void write_scale(struct reconciler *r)
{
	struct tick_work *w = r->work;
	struct scale_ref ref = policy_scale_ref(r->policy);
	struct err e;
	if (!r->env->may_write(r->subject.owner, &e) ||
	    scale_patch(r->env->sources.k8s, &ref, w->observation.scale.resource_version, w->write_to, on_written, r,
	                &e) < 0)
		on_written(r, NULL, &e);
}

static void on_beginning_said(void *arg, const struct http_response *response, const struct err *error)
{
	struct reconciler *r = arg;
	(void)response;
	(void)error; // a status that cannot be written keeps nothing from being scaled; it is reported with the next
	             // one
	if (is_over(r))
		end_tick(r, "superseded");
	else
		write_scale(r);
}

// Before the very first scale of a policy its status says what the target was asked for until then: a process that dies
// before it can say more leaves the next one something to compare with.
static void say_beginning(struct reconciler *r)
{
	char path[RECONCILE_PATH_BYTES], body[128];
	struct err e;
	snprintf(path, sizeof path, "/apis/" POLICY_API_VERSION "/namespaces/%s/gpuautoscalers/%s/status",
	         r->policy->namespace_name, r->policy->name);
	int n = snprintf(body, sizeof body, "{\"status\":{\"currentReplicas\":%d,\"observedGeneration\":%lld}}",
	                 r->work->write_from, (long long)r->subject.generation);
	if (k8s_request(r->env->sources.k8s, "PATCH", path, "application/merge-patch+json", body, (size_t)n,
	                on_beginning_said, r, &e) < 0)
		write_scale(r);
}

static void learn_what_was_not_said(struct reconciler *r)
{
	const struct tick_work *w = r->work;
	int32_t from, to = w->observation.observation.spec_replicas;
	if (!unsure_write_found(&r->unsure, to, w->now_ms, &from))
		return;
	LOG(r->env->log, LOG_INFO, "Target was scaled without an answer or a status; taken for a scale of ours",
	    LOG_S("namespace", r->policy->namespace_name), LOG_S("policy", r->policy->name), LOG_I("from", from),
	    LOG_I("to", to));
	decide_record_scale(r->policy, w->state, w->now_ms, from, to);
}

// The world is known: decide, and act on it.
static void decide_and_act(struct reconciler *r)
{
	struct tick_work *w = r->work;
	struct decision *d = &w->decision;
	if (is_over(r)) {
		end_tick(r, "superseded");
		return;
	}
	learn_what_was_not_said(r);
	decide(r->policy, &w->observation.observation, w->now_ms, r->work->state, d);
	bool news = is_news(r->decision, d);
	reconcile_keep_decision(r);
	reconcile_note_trend(r, w->now_ms, true);
	r->phase = STATUS_DECIDED; // until it is known what became of it
	metrics_decided(r->env->metrics, d);
	if (news) {
		struct decided decided = as_decided(r);
		history_add(r->env->history, &decided);
	}
	bool write = d->write && !r->env->dry_run;
	if (!write) {
		reconcile_forget_error(r);
		log_decision(r, news ? LOG_INFO : LOG_DEBUG,
		             d->write ? "Decided (dry run, nothing written)" : "Decided");
		update_status(r, STATUS_DECIDED);
		end_tick(r, "ok");
		return;
	}
	w->write_from = d->current;
	w->write_to = d->desired;
	if (r->subject.status && !policy_status_is_there(r->subject.status))
		say_beginning(r);
	else
		write_scale(r);
}

static void on_refilled(void *arg, bool ok, const struct err *error)
{
	struct reconciler *r = arg;
	r->needs_refill = !ok; // tried again at the next tick while the source is away
	if (!ok && !is_over(r))
		LOG(r->env->log, LOG_DEBUG, "Cannot refill windows; they fill tick by tick",
		    LOG_S("policy", r->policy->name), LOG_S("err", error->msg));
	decide_and_act(r);
}

static void on_observed(void *arg, struct observation_call *c)
{
	struct reconciler *r = arg;
	if (r->env->stopping || c->error.kind != ERR_NONE) {
		fail_tick(r, STATUS_READ_FAILED, "Cannot read target", &c->error);
		return;
	}
	if (!c->pods_known && r->pods_error_kind != c->pods_error.kind)
		LOG(r->env->log, LOG_WARNING,
		    c->target_ready < 0 ? "Cannot count ready pods; deciding on the replicas asked for"
		                        : "Cannot look at each pod; deciding on the ready replicas the target tells",
		    LOG_S("namespace", r->policy->namespace_name), LOG_S("policy", r->policy->name),
		    LOG_S("err", c->pods_error.msg));
	r->pods_error_kind = c->pods_known ? ERR_NONE : c->pods_error.kind;
	if (r->needs_refill)
		refill_start(&r->work->refill, r->env->promql, r->policy, r->work->state,
		             observation_ready(&c->observation), r->work->now_ms, on_refilled, r);
	else
		decide_and_act(r);
}

static void observe(struct reconciler *r)
{
	// The watch may be behind what was written last.
	r->work->observation.must_ask |= unsure_write_is_open(&r->unsure);
	observe_start(&r->work->observation, &r->env->sources, r->policy, r->work->now_ms, on_observed, r);
}

// ---- what the process before this one knew ----

static void on_past(void *arg, const struct http_response *response, const struct err *error)
{
	struct reconciler *r = arg;
	struct err e;
	if (is_over(r)) {
		end_tick(r, "superseded");
		return;
	}
	if (!response) {
		e = *error;
		err_wrap(&e, "status of the policy");
		fail_tick(r, STATUS_READ_FAILED, "Cannot read what was decided before", &e);
		return;
	}
	if (policy_status_restore(r->subject.status, response->body, response->body_len, r->policy, r->work->state,
	                          r->work->now_ms, &e) < 0) {
		fail_tick(r, STATUS_READ_FAILED, "Cannot read what was decided before", &e);
		return;
	}
	if (policy_status_is_unsure(r->subject.status))
		LOG(r->env->log, LOG_WARNING, "The status does not say when the target was scaled; taken for just now",
		    LOG_S("namespace", r->policy->namespace_name), LOG_S("policy", r->policy->name));
	r->needs_past = false;
	unsure_write_of_past(&r->unsure, policy_status_replicas(r->subject.status));
	observe(r);
}

// Asked for, not taken from the watch: whoever worked on the policy until now may have written just before it left.
static void ask_for_past(struct reconciler *r)
{
	char path[RECONCILE_PATH_BYTES];
	struct err e;
	snprintf(path, sizeof path, "/apis/" POLICY_API_VERSION "/namespaces/%s/gpuautoscalers/%s",
	         r->policy->namespace_name, r->policy->name);
	if (k8s_request(r->env->sources.k8s, "GET", path, NULL, NULL, 0, on_past, r, &e) < 0)
		on_past(r, NULL, &e);
}

void reconciler_tick(struct reconciler *r, int64_t now_ms)
{
	assert(!r->work);
	r->work = reconcile_must(calloc(1, sizeof *r->work));
	r->work->now_ms = now_ms;
	r->work->started_us = mono_us();
	r->work->state = reconcile_must(malloc(decide_state_bytes(r->policy)));
	decide_state_unpack(r->policy, r->packed, r->work->state);
	if (r->needs_past)
		ask_for_past(r);
	else
		observe(r);
}
