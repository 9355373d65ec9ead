// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/policy_report.h"

#include "base/base.h"
#include "base/process/log.h"
#include "controller/status/sparkline.h"
#include "controller/tick/reconcile.h"
#include "policies/engine/number.h"
#include "runtime/metrics/metrics.h"

#define GAP_INTERVALS 4

// One row per outcome. result: label of gpuscale_reconciles_total; "" counts the duration alone.
static const struct {
	const char *result;
	enum status_phase phase;
	const char *error; // message in the log
} outcomes[] = {
        // clang-format off
        [TICK_DECIDED]        = {"ok",       STATUS_DECIDED,      NULL},
        [TICK_DEFERRED]       = {"deferred", STATUS_DECIDED,      NULL},
        [TICK_SCALED]         = {"scaled",   STATUS_SCALED,       NULL},
        [TICK_RETRIED]        = {"",         STATUS_DECIDED,      NULL},
        [TICK_SUPERSEDED]     = {"",         STATUS_PHASE__COUNT, NULL},
        [TICK_RESTORE_FAILED] = {"error",    STATUS_READ_FAILED,  "Cannot read the status of the policy"},
        [TICK_READ_FAILED]    = {"error",    STATUS_READ_FAILED,  "Cannot read target"},
        [TICK_WRITE_FAILED]   = {"error",    STATUS_WRITE_FAILED, "Cannot scale target"},
        // clang-format on
};
_Static_assert(sizeof outcomes / sizeof outcomes[0] == TICK_OUTCOME__COUNT, "one row per outcome");

void gpu_time_add(struct gpu_time *t, const struct policy *p, const struct policy_gpus *gpus, int64_t now_ms,
                  int32_t replicas)
{
	int64_t known_ms = t->last_ms ? now_ms - t->last_ms : 0, most_ms = GAP_INTERVALS * p->interval_ms;
	known_ms = known_ms < most_ms ? i64_max(known_ms, 0) : most_ms;
	if (gpus->set) {
		t->used_ms += known_ms * t->replicas * gpus->per_replica;
		t->saved_ms += known_ms * i32_max(p->max_replicas - t->replicas, 0) * gpus->per_replica;
	}
	t->last_ms = now_ms;
	t->replicas = replicas;
}

void policy_report_init(struct policy_report *p)
{
	*p = (struct policy_report){.phase = STATUS_PHASE__COUNT};
}

static void clear_error(struct policy_report *p)
{
	free(p->error);
	p->error = NULL;
}

void policy_report_reset(struct policy_report *p)
{
	clear_error(p);
	free(p->sparkline);
	policy_report_init(p);
}

static const char *expression_of(const struct policy_signal *s)
{
	return s->query ? s->query : s->formula_text;
}

// Returns whether the columns of a sparkline, and the time between its rows, mean the same for both.
static bool has_same_columns(const struct policy *a, const struct policy *b)
{
	if (a->interval_ms != b->interval_ms || a->n_signals != b->n_signals)
		return false;
	for (size_t i = 0; i < a->n_signals; i++)
		if (strcmp(a->signals[i].name, b->signals[i].name) != 0 ||
		    strcmp(expression_of(&a->signals[i]), expression_of(&b->signals[i])) != 0)
			return false;
	return true;
}

void policy_report_set_policy(struct policy_report *p, const struct policy *before, const struct policy *after)
{
	p->phase = STATUS_PHASE__COUNT;
	if (has_same_columns(before, after))
		return;
	free(p->sparkline);
	p->sparkline = NULL;
}

// ---- one result ----

// Logs an error when it starts or changes, not at every tick.
static void log_error(struct policy_report *p, const struct policy_report_env *env, const struct binding *b,
                      const char *message, const struct err *e)
{
	if (p->error && strcmp(p->error, e->msg) == 0)
		return;
	clear_error(p);
	p->error = must_alloc(strdup(e->msg));
	LOG(env->log, LOG_ERROR, message, LOG_BINDING(b), LOG_S("kind", err_kind_info(e->kind)->name),
	    LOG_S("err", e->msg));
}

static void log_decision(const struct policy_report_env *env, const struct reconciler *r, enum log_level level,
                         const char *message)
{
	if (!log_takes(env->log, level))
		return; // the sentence costs more than the decision did
	struct decided decided = reconciler_decided(r);
	const struct decision *d = decided.decision;
	char sentence[RENDER_SENTENCE_BYTES];
	explain_message(&decided, sentence);
	LOG(env->log, level, message, LOG_POLICY(decided.policy), LOG_S("target", decided.target->name),
	    LOG_S("action", action_names[d->action]), LOG_S("reason", reason_info(d->reason)->name),
	    LOG_I("currentReplicas", d->current), LOG_I("desiredReplicas", d->desired),
	    LOG_I("readyReplicas", d->ready), LOG_I("pendingReplicas", d->pending), LOG_S("message", sentence));
}

// decision NULL: the tick made none.
static void add_to_sparkline(struct policy_report *p, const struct policy_report_env *env, const struct policy *policy,
                             int64_t now_ms, const struct decision *decision)
{
	double values[SPARKLINE_COLUMNS_MAX];
	_Static_assert(SPARKLINE_SIGNALS + POLICY_SIGNALS_MAX <= SPARKLINE_COLUMNS_MAX, "a column per signal");
	if (!env->keep_sparklines)
		return;
	if (!p->sparkline)
		p->sparkline = sparkline_new(policy->interval_ms, SPARKLINE_SIGNALS + policy->n_signals);
	if (decision) {
		values[SPARKLINE_CURRENT] = decision->current;
		values[SPARKLINE_DESIRED] = decision->desired;
		for (size_t i = 0; i < decision->n_signals; i++)
			values[SPARKLINE_SIGNALS + i] = decision->signals[i].value;
	}
	sparkline_add(p->sparkline, now_ms, decision ? values : NULL);
}

static void add_gpu_time(struct policy_report *p, const struct reconciler *r, int64_t now_ms, int32_t replicas)
{
	const struct policy_gpus gpus = reconciler_gpus(r);
	gpu_time_add(&p->gpu_time, r->policy, &gpus, now_ms, replicas);
}

static int64_t count_limited(const struct decision *d)
{
	int64_t n = 0;
	for (size_t i = 0; i < d->n_trace; i++) {
		enum reason reason = decision_entry(d, i)->reason;
		n += reason == REASON_VALUE_LIMITED || reason == REASON_VALUE_NOT_LEARNT;
	}
	return n;
}

static void report_decision(struct policy_report *p, const struct policy_report_env *env, const struct reconciler *r,
                            const struct tick_result *result)
{
	add_to_sparkline(p, env, r->policy, result->now_ms, result->decision);
	p->phase = STATUS_DECIDED;
	env->metrics->decisions[result->decision->action][result->decision->reason]++;
	add_gpu_time(p, r, result->now_ms, result->decision->current);
	p->values_limited += count_limited(result->decision);
	if (result->is_news) {
		struct decided decided = reconciler_decided(r);
		decision_history_add(env->history, r->subject.binding->key, &decided);
	}
}

void policy_report_tick(struct policy_report *p, const struct policy_report_env *env, const struct reconciler *r,
                        const struct tick_result *result)
{
	enum status_phase before = p->phase, phase = outcomes[result->outcome].phase;
	if (result->decision)
		report_decision(p, env, r, result);
	switch (result->outcome) {
	case TICK_RETRIED:
		metrics_count(env->metrics, FAMILY_CONFLICTS, "");
		LOG(env->log, LOG_INFO, "Target changed during the tick; reading it again",
		    LOG_BINDING(r->subject.binding), LOG_I("attempt", result->attempt));
		return; // the tick continues
	case TICK_DECIDED:
		clear_error(p);
		log_decision(env, r, result->is_news ? LOG_INFO : LOG_DEBUG,
		             result->decision->write ? "Decided (dry run, nothing written)" : "Decided");
		break;
	case TICK_DEFERRED:
		if (before == STATUS_WRITE_FAILED)
			phase = before; // until a write succeeds, so that its error is logged once
		else
			clear_error(p);
		log_decision(env, r, LOG_DEBUG, "Decided (many others are scaling, so this waits for its turn)");
		break;
	case TICK_SCALED:
		add_gpu_time(p, r, result->now_ms, result->write_to);
		metrics_scaled(env->metrics, result->write_from, result->write_to);
		log_decision(env, r, LOG_INFO, "Scaled target");
		clear_error(p);
		break;
	case TICK_SUPERSEDED:
		break;
	default:
		if (!result->is_current)
			break;
		log_error(p, env, r->subject.binding, outcomes[result->outcome].error, result->error);
		add_to_sparkline(p, env, r->policy, result->now_ms, NULL);
		break;
	}
	if (result->is_current && result->outcome != TICK_SUPERSEDED)
		p->phase = phase;
	metrics_reconciled(env->metrics, outcomes[result->outcome].result, result->seconds);
}

// ---- status ----

bool policy_report_facts(const struct policy_report *p, const struct policy_report_env *env, const struct reconciler *r,
                         struct decided *ret_decided, struct status_facts *ret_facts)
{
	// A tick that records or writes has decided, and its outcome is not known yet.
	enum status_phase phase = reconciler_phase(r) >= TICK_PHASE_RECORD ? STATUS_DECIDED : p->phase;
	if (phase == STATUS_PHASE__COUNT)
		return false;
	*ret_decided = reconciler_decided(r);
	*ret_facts = (struct status_facts){
	        .phase = phase,
	        .decided = ret_decided->decision && phase != STATUS_READ_FAILED ? ret_decided : NULL,
	        .text = p->error,
	        .dry_run = ret_decided->policy->dry_run || env->dry_run,
	        .paused = ret_decided->policy->paused,
	};
	return true;
}
