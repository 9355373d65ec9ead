// SPDX-License-Identifier: Apache-2.0
// One tick: restore -> observe -> refill -> decide -> record -> write -> result. enter() marks each phase. When too
// many others write, the tick ends after the decision, and reconciler_write() continues with its order.

#include "base/base.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "controller/pool/pools.h"
#include "controller/status/status.h"
#include "controller/status/status_doc.h"
#include "controller/tick/reconcile.h"
#include "controller/tick/victim_marks.h"
#include "k8s/capacity/fit_store.h"
#include "k8s/client/k8s_client.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/number.h"
#include "policies/engine/observation.h"

const char *const tick_phase_names[TICK_PHASE__COUNT] = {
        [TICK_PHASE_IDLE] = "Idle",         [TICK_PHASE_RESTORE] = "Restoring", [TICK_PHASE_OBSERVE] = "Observing",
        [TICK_PHASE_REFILL] = "Refilling",  [TICK_PHASE_DECIDE] = "Deciding",   [TICK_PHASE_VICTIMS] = "Marking",
        [TICK_PHASE_DEFERRED] = "Deferred", [TICK_PHASE_RECORD] = "Recording",  [TICK_PHASE_WRITE] = "Writing",
};

static void enter(struct reconciler *r, enum tick_phase phase)
{
	r->work->phase = phase;
}

// Returns true when the tick must not continue: the connections are being closed, the policy was replaced or passed to
// another process, or the clock was set and the observations are void.
static bool is_over(const struct reconciler *r)
{
	return r->env->stopping || r->work->is_void || !r->env->permit(r->subject.owner, TICK_MAY_CONTINUE, NULL);
}

static struct tick_result result_of(struct reconciler *r, enum tick_outcome outcome, const struct err *error)
{
	const struct tick_work *w = r->work;
	return (struct tick_result){
	        .outcome = outcome,
	        .is_current = !is_over(r),
	        .is_restored = !r->needs_past,
	        .is_news = w->is_news,
	        .now_ms = w->now_ms,
	        .seconds = (double)(clock_real_mono_us() - w->started_us) / 1e6,
	        .attempt = w->conflicts,
	        .write_from = w->write_from,
	        .write_to = w->write_to,
	        .stored = w->stored,
	        .decision = w->is_decided ? r->decision : NULL,
	        .state = reconcile_state(r),
	        .error = error,
	};
}

// The last step of every tick. `finished` may free the reconciler, so nothing of it is used afterwards.
static void end_tick(struct reconciler *r, enum tick_outcome outcome, const struct err *error)
{
	struct tick_result result = result_of(r, outcome, error);
	struct tick_work *w = r->work;
	if (outcome != TICK_DEFERRED) {
		reconcile_drop_order(r); // the tick ended before it decided
		pool_membership_end(reconcile_membership(r));
	}
	reconcile_pack_state(r, w->state);
	observe_release(&w->observation);
	if (r->variants)
		variant_scale_release(r->variants);
	r->work = NULL;
	r->env->finished(r->subject.owner, &result);
	free(w->state);
	free(w->refill);
	free(w->decision);
	free(w);
}

// ---- the pods that a scale-down removes ----

static void start_victims(struct reconciler *r, bool is_down, int32_t desired, victims_done_fn *done)
{
	const struct tick_work *w = r->work;
	const struct scale *s = &w->observation.scale;
	const struct victims_question question = {
	        .sources = &r->env->sources,
	        .binding = r->subject.binding,
	        .selector = s->selector,
	        .replicas = s->spec_replicas > s->status_replicas ? s->spec_replicas : s->status_replicas,
	        .desired = desired,
	        .is_down = is_down,
	        .writes = true,
	        .since_ms = r->victims->since_ms,
	        .marks_fail = r->victims->marks_fail,
	        .now_ms = w->now_ms};
	enter(r, TICK_PHASE_VICTIMS);
	victim_marks_start(&question, done, r);
}

static void on_marks_removed(void *arg, const struct victims_result *v)
{
	struct reconciler *r = arg;
	r->victims->may_have_marks = v->has_marks;
	if (v->outcome == VICTIMS_UNMARKED)
		LOG(r->env->log, LOG_WARNING, "Cannot remove the marks of pods", LOG_BINDING(r->subject.binding),
		    LOG_S("err", v->text));
	end_tick(r, r->work->outcome, NULL);
}

// Ends a tick that does not scale down: no pod stays marked, unless its removal is in progress.
static void end_without_victims(struct reconciler *r, enum tick_outcome outcome, int32_t replicas)
{
	struct victims_memory *m = r->victims;
	if (m)
		m->since_ms = 0;
	if (!m || !m->may_have_marks || r->env->dry_run || !r->env->sources.k8s ||
	    !r->work->observation.scale.selector[0] || is_over(r)) {
		end_tick(r, outcome, NULL);
		return;
	}
	r->work->outcome = outcome;
	start_victims(r, false, replicas, on_marks_removed);
}

static void observe(struct reconciler *r);

// After a conflict, another client changed the target between our read and our write.
static void end_failed_write(struct reconciler *r, const struct err *error)
{
	struct tick_work *w = r->work;
	if (error->kind != ERR_CONFLICT || w->conflicts + 1 >= RECONCILE_CONFLICTS_MAX || is_over(r)) {
		end_tick(r, TICK_WRITE_FAILED, error);
		return;
	}
	w->conflicts++;
	struct tick_result result = result_of(r, TICK_RETRIED, error);
	r->env->finished(r->subject.owner, &result);
	w->is_decided = w->is_news = false;
	w->observation.bypass_cache = true; // the watch may not have delivered the change yet
	observe(r);
}

static enum pool_write outcome_of(const struct err *error)
{
	if (!error)
		return POOL_WRITE_DONE;
	if (unacked_write_is_possible(error))
		return POOL_WRITE_LOST;
	return error->kind == ERR_CANCELED ? POOL_WRITE_UNSENT : POOL_WRITE_REFUSED;
}

static void on_written(void *arg, const struct scale *scale, const struct err *error)
{
	struct reconciler *r = arg;
	struct tick_work *w = r->work;
	pool_membership_written(reconcile_membership(r), w->write_to, outcome_of(error));
	if (scale) {
		w->stored = scale->spec_replicas;
		observe_written(&r->env->sources, r->subject.binding, scale);
		decide_record_scale(r->policy, reconcile_state(r), w->now_ms, w->write_from, w->write_to);
		unacked_write_clear(&r->unacked); // an earlier write can no longer take effect
		if (r->fit)
			fit_target_scaled(r->fit, w->write_to);
		if (w->write_to > w->write_from)
			end_without_victims(r, TICK_SCALED, w->write_to);
		else
			end_tick(r, TICK_SCALED, NULL);
		return;
	}
	if (error->kind == ERR_NOT_FOUND)
		observe_written(&r->env->sources, r->subject.binding, NULL);
	unacked_write_failed(&r->unacked, error, w->write_from, w->write_to, clock_real_mono_us() / 1000);
	if (r->fit && error->kind == ERR_CANCELED)
		fit_target_unsent(r->fit, w->write_from);
	else if (r->fit && !unacked_write_is_open(&r->unacked))
		fit_target_scaled(r->fit, w->write_from);
	end_failed_write(r, error);
}

// `units` is what the targets of the variants serve now.
static void on_variants_written(void *arg, int32_t units, const struct err *error)
{
	struct reconciler *r = arg;
	struct tick_work *w = r->work;
	int32_t lowest = i32_min(w->write_from, w->write_to), highest = i32_max(w->write_from, w->write_to);
	w->stored = i32_min(i32_max(units, lowest), highest);
	if (w->stored != w->write_from)
		decide_record_scale(r->policy, reconcile_state(r), w->now_ms, w->write_from, w->stored);
	if (error)
		end_failed_write(r, error);
	else
		end_tick(r, TICK_SCALED, NULL);
}

// Asks for the permission as late as possible. The question also makes the owner look at the clock.
static int may_write(void *arg, struct err *e)
{
	struct reconciler *r = arg;
	bool is_permitted = r->env->permit(r->subject.owner, TICK_MAY_WRITE, e);
	if (r->work->is_void)
		return err_set(e, ERR_CANCELED, "not written: the wall clock was set");
	return is_permitted ? 0 : -1;
}

static void write_scale(struct reconciler *r)
{
	struct tick_work *w = r->work;
	if (r->variants) {
		enter(r, TICK_PHASE_WRITE);
		variant_scale_write(r->variants, &(struct variant_write){.may_write = may_write,
		                                                         .done = on_variants_written,
		                                                         .arg = r,
		                                                         .units_to = w->write_to,
		                                                         .now_ms = w->now_ms});
		return;
	}
	struct scale_ref ref = binding_scale_ref(r->subject.binding);
	struct err e;
	enter(r, TICK_PHASE_WRITE);
	if (may_write(r, &e) < 0 || scale_patch(r->env->sources.k8s, &ref, w->observation.scale.resource_version,
	                                        w->write_to, on_written, r, &e) < 0)
		on_written(r, NULL, &e);
}

static void on_recorded(void *arg)
{
	struct reconciler *r = arg;
	if (is_over(r))
		end_tick(r, TICK_SUPERSEDED, NULL);
	else
		write_scale(r);
}

// A failed write of the initial status does not block scaling; the next status includes it.
static void on_initial_status(void *arg, const struct http_response *response, const struct err *error)
{
	on_recorded(arg);
}

// Before the first scale of a policy, its status records the replicas requested until then: if this process dies before
// it writes more, the next one can compare.
static void write_initial_status(struct reconciler *r)
{
	char path[POLICY_STATUS_PATH_BYTES];
	struct buf body;
	struct err e;
	enter(r, TICK_PHASE_RECORD);
	if (r->subject.status->env->dir) {
		policy_status_begin(r->subject.status, r->subject.binding, r->work->write_from, on_recorded, r);
		return;
	}
	policy_status_path(r->subject.status, "/status", path);
	buf_init(&body, SCALED_OBJECT_BYTES_MAX);
	policy_status_write_replicas(r->subject.status, r->subject.binding, r->work->write_from, r->subject.generation,
	                             &body);
	int rc = k8s_request(r->env->sources.k8s, "PATCH", path, "application/merge-patch+json", buf_str(&body),
	                     body.len, on_initial_status, r, &e);
	buf_done(&body);
	if (rc < 0)
		write_scale(r);
}

static void act(struct reconciler *r)
{
	if (r->subject.status && !r->subject.status->is_recorded)
		write_initial_status(r);
	else
		write_scale(r);
}

static void keep_order(struct reconciler *r)
{
	const struct tick_work *w = r->work;
	const char *version = w->observation.scale.resource_version;
	size_t bytes = strlen(version) + 1;
	struct write_order *o = must_alloc(malloc(sizeof *o + bytes));
	*o = (struct write_order){.now_ms = w->now_ms, .from = w->write_from, .to = w->write_to};
	memcpy(o->resource_version, version, bytes);
	r->order = o;
}

static void adopt_unrecorded_scale(struct reconciler *r)
{
	const struct tick_work *w = r->work;
	int32_t from, to = w->observation.observation.spec_replicas;
	if (!unacked_write_found(&r->unacked, to, clock_real_mono_us() / 1000, &from))
		return;
	LOG(r->env->log, LOG_INFO, "Recorded a scale that was never acknowledged", LOG_BINDING(r->subject.binding),
	    LOG_I("from", from), LOG_I("to", to));
	decide_record_scale(r->policy, reconcile_state(r), w->now_ms, from, to);
	decide_adopt_scale(r->policy, reconcile_state(r), to - from);
}

// Returns true when `now` differs from the decision before it, and is worth a line in the log and a place in the
// history.
static bool is_news(const struct decision *before, const struct decision *now)
{
	return !before || before->action != now->action || before->reason != now->reason ||
	       before->desired != now->desired;
}

// The replicas of the target that exist, for its pool. A tenant may be able to write the status of a custom resource,
// so it may claim more than there are pods. -1: the pods could not be counted.
static int32_t existing_replicas(const struct observation_call *c)
{
	int32_t status = i32_max(c->observation.status_replicas, 0);
	return !c->pods_known ? -1 : i32_min(status, c->has_groups ? c->groups.total : c->pods.total);
}

// Limits the decision to what the pool of the policy grants, and keeps it.
static void share_pool(struct reconciler *r, struct decision *d)
{
	struct tick_work *w = r->work;
	struct buf text;
	const struct pool_tick tick = {.policy = r->policy,
	                               .existing_replicas = existing_replicas(&w->observation),
	                               .unacked = unacked_write_is_open(&r->unacked) ? r->unacked.to : -1,
	                               .dry_run = r->env->dry_run,
	                               .now_ms = w->now_ms,
	                               .now_mono_ms = clock_real_mono_us() / 1000};
	buf_init(&text, POOL_TEXT_BYTES_MAX);
	pool_membership_decide(reconcile_membership(r), &tick, d, &text);
	free(r->pool);
	r->pool = text.len > 0 ? must_alloc(strdup(buf_str(&text))) : NULL;
	buf_done(&text);
}

// victims: as in struct decided.
static void keep(struct reconciler *r, const struct decision *d, const char *victims)
{
	r->work->is_decided = true;
	r->work->is_news = is_news(r->decision, d);
	reconcile_keep_decision(r, d);
	if (!r->victims)
		return;
	free(r->victims->text);
	r->victims->text = victims ? must_alloc(strdup(victims)) : NULL;
}

// Writes the decision, or queues its order.
static void order(struct reconciler *r, const struct decision *d)
{
	struct tick_work *w = r->work;
	if (d->write && r->env->yield && r->env->yield(r->subject.owner, d->current, d->desired)) {
		end_tick(r, TICK_SUPERSEDED, NULL);
		return;
	}
	w->write_from = d->current;
	w->write_to = d->desired;
	if (r->fit)
		fit_target_ordered(r->fit, w->write_from, w->write_to);
	if (r->variants)
		variant_scale_order(r->variants, true);
	if (r->env->take_turn(r->subject.owner)) {
		act(r);
		return;
	}
	keep_order(r);
	end_tick(r, TICK_DEFERRED, NULL);
}

static void on_victims(void *arg, const struct victims_result *v)
{
	struct reconciler *r = arg;
	struct tick_work *w = r->work;
	r->victims->may_have_marks = v->has_marks;
	r->victims->marks_fail = v->outcome == VICTIMS_UNMARKED;
	if (is_over(r)) {
		end_tick(r, TICK_SUPERSEDED, NULL);
		return;
	}
	struct decision d = *w->decision;
	free(w->decision);
	w->decision = NULL;
	decide_victims(&v->plan, v->outcome, &d);
	if (!v->plan.waits)
		r->victims->since_ms = 0;
	else if (r->victims->since_ms == 0)
		r->victims->since_ms = w->now_ms;
	keep(r, &d, v->text);
	if (v->outcome != VICTIMS_CHOSEN && !v->plan.waits)
		LOG(r->env->log, LOG_WARNING, "Cannot choose the pods to remove", LOG_BINDING(r->subject.binding),
		    LOG_S("err", v->text));
	if (d.write)
		order(r, &d);
	else
		end_tick(r, TICK_DECIDED, NULL);
}

// Spreads the decision over the variants of the policy. Returns whether a target is to be written.
static bool spread(struct reconciler *r, struct decision *d)
{
	const struct price_book *prices = r->env->prices ? r->env->prices(r->env->prices_arg) : NULL;
	return variant_scale_plan(r->variants, prices, decide_startup_ms(r->policy, reconcile_state(r)),
	                          r->work->now_ms, d);
}

static void decide_and_act(struct reconciler *r)
{
	struct tick_work *w = r->work;
	struct decision d;
	if (is_over(r)) {
		end_tick(r, TICK_SUPERSEDED, NULL);
		return;
	}
	enter(r, TICK_PHASE_DECIDE);
	reconcile_drop_order(r); // this tick decides anew
	adopt_unrecorded_scale(r);
	observe_capacity(&w->observation);
	r->is_emptied = r->is_emptied && w->observation.observation.spec_replicas == 0;
	w->observation.observation.is_emptied = r->is_emptied;
	if (r->variants) {
		variant_scale_fill(r->variants, &w->observation.observation);
		w->observation.details[r->policy->n_signals] = w->observation.observation.capacity.detail;
	}
	decide(r->policy, &w->observation.observation, w->now_ms, reconcile_state(r), &d);
	bool moves = r->variants && spread(r, &d);
	share_pool(r, &d);
	r->is_emptied = r->is_emptied || (d.desired == 0 && decide_reason_is_of_pool(d.reason));
	if (!r->env->dry_run && !r->variants && victims_are_chosen(r->policy, &d)) {
		w->decision = must_alloc(malloc(sizeof d));
		*w->decision = d;
		start_victims(r, true, d.desired, on_victims);
		return;
	}
	keep(r, &d, NULL);
	if ((r->variants ? moves : d.write) && !r->env->dry_run)
		order(r, &d);
	else
		end_without_victims(r, TICK_DECIDED, d.current);
}

static void on_refilled(void *arg, bool ok, const struct err *error)
{
	struct reconciler *r = arg;
	// The next tick tries again while the source is down, and when the clock was set meanwhile.
	r->needs_refill = !ok;
	if (!ok && !is_over(r))
		LOG(r->env->log, LOG_DEBUG, "Cannot refill windows; they fill tick by tick",
		    LOG_S("policy", r->policy->name), LOG_S("err", error->msg));
	decide_and_act(r);
}

static void on_observed(void *arg, struct observation_call *c)
{
	struct reconciler *r = arg;
	if (c->error.kind != ERR_NONE)
		pool_membership_unreadable(reconcile_membership(r), &c->error, clock_real_mono_us() / 1000);
	if (r->env->stopping || c->error.kind != ERR_NONE) {
		end_tick(r, TICK_READ_FAILED, &c->error);
		return;
	}
	if (!c->pods_known && r->pods_error_kind != c->pods_error.kind)
		LOG(r->env->log, LOG_WARNING,
		    c->target_ready < 0 ? "Cannot count ready pods; using the requested replicas"
		                        : "Cannot list pods; using the ready replicas of the target",
		    LOG_POLICY(r->policy), LOG_S("err", c->pods_error.msg));
	r->pods_error_kind = c->pods_known ? ERR_NONE : c->pods_error.kind;
	if (!r->needs_refill) {
		decide_and_act(r);
		return;
	}
	enter(r, TICK_PHASE_REFILL);
	if (!r->work->refill)
		r->work->refill = must_alloc(calloc(1, sizeof *r->work->refill));
	refill_start(r->work->refill, r->env->promql, r->policy, reconcile_state(r), observation_ready(&c->observation),
	             r->work->now_ms, on_refilled, r);
}

// The targets of the variants have been read; the signals follow.
static void on_variants_observed(void *arg, const struct err *error)
{
	struct reconciler *r = arg;
	struct observe_sources sources = r->env->sources;
	if (error) {
		r->work->observation.error = *error;
		on_observed(r, &r->work->observation);
		return;
	}
	sources.k8s = NULL;
	sources.given_replicas = variant_scale_units(r->variants);
	observe_start(&r->work->observation, &sources, r->subject.binding, r->work->now_ms, on_observed, r);
}

static void observe(struct reconciler *r)
{
	enter(r, TICK_PHASE_OBSERVE);
	reconcile_acquire_target(r);
	if (r->variants) {
		variant_scale_observe(r->variants, r->work->now_ms, r->work->observation.bypass_cache,
		                      on_variants_observed, r);
		return;
	}
	r->work->observation.fit = r->fit;
	// The watch may not have delivered the last write yet.
	r->work->observation.bypass_cache |= unacked_write_is_open(&r->unacked);
	observe_start(&r->work->observation, &r->env->sources, r->subject.binding, r->work->now_ms, on_observed, r);
}

// ---- what an earlier process recorded ----

static void end_restore(struct reconciler *r)
{
	r->needs_past = false;
	unacked_write_of_past(&r->unacked, r->subject.status->record.replicas);
	r->is_emptied = policy_status_is_emptied(r->subject.status);
	observe(r);
}

static void on_past(void *arg, const struct http_response *response, const struct err *error)
{
	struct reconciler *r = arg;
	struct err e;
	if (is_over(r)) {
		end_tick(r, TICK_SUPERSEDED, NULL);
		return;
	}
	if (!response) {
		e = *error;
		policy_status_failed(r->subject.status, error);
		err_wrap(&e, "status of the policy");
		end_tick(r, TICK_RESTORE_FAILED, &e);
		return;
	}
	if (policy_status_restore(r->subject.status, response->body, response->body_len, r->subject.binding,
	                          reconcile_state(r), r->work->now_ms, &e) < 0) {
		end_tick(r, TICK_RESTORE_FAILED, &e);
		return;
	}
	if (r->subject.status->record.is_unsure)
		LOG(r->env->log, LOG_WARNING, "Status has no time of the last scale; using now",
		    LOG_BINDING(r->subject.binding));
	end_restore(r);
}

static void recall(struct reconciler *r)
{
	struct err e;
	if (policy_status_recall(r->subject.status, r->subject.binding, reconcile_state(r), r->work->now_ms, &e) < 0)
		LOG(r->env->log, LOG_WARNING, "Cannot use saved state; starting without it",
		    LOG_BINDING(r->subject.binding), LOG_S("kind", err_kind_info(e.kind)->name), LOG_S("err", e.msg));
	end_restore(r);
}

// A request, not the watch: the process that had the policy until now may have written just before it exited.
static void fetch_past(struct reconciler *r)
{
	char path[POLICY_STATUS_PATH_BYTES];
	struct err e;
	policy_status_path(r->subject.status, "", path);
	if (k8s_request(r->env->sources.k8s, "GET", path, NULL, NULL, 0, on_past, r, &e) < 0)
		on_past(r, NULL, &e);
}

static void begin_tick(struct reconciler *r, int64_t now_ms)
{
	assert(!r->work);
	r->work = must_alloc(calloc(1, sizeof *r->work));
	r->work->now_ms = now_ms;
	r->work->started_us = clock_real_mono_us();
}

void reconciler_write(struct reconciler *r)
{
	struct write_order *o = r->order;
	begin_tick(r, o ? o->now_ms : 0);
	if (!o || is_over(r)) {
		end_tick(r, TICK_SUPERSEDED, NULL);
		return;
	}
	r->work->write_from = o->from;
	r->work->write_to = o->to;
	snprintf(r->work->observation.scale.resource_version, sizeof r->work->observation.scale.resource_version, "%s",
	         o->resource_version);
	r->order = NULL; // the pool and the capacity hold on until the write has ended
	free(o);
	act(r);
}

// A pool counts one model of GPUs per member, so its cap would not hold for variants. Returns whether the tick has
// ended.
static bool is_refused(struct reconciler *r)
{
	struct err e;
	const char *pool = r->variants && r->env->find_pool ? r->env->find_pool(r->subject.owner) : NULL;
	if (!pool)
		return false;
	err_set(&e, ERR_UNSUPPORTED,
	        "not supported: a policy with variants as a member of pool %s; leave it out of its members", pool);
	end_tick(r, TICK_READ_FAILED, &e);
	return true;
}

void reconciler_tick(struct reconciler *r, int64_t now_ms)
{
	begin_tick(r, now_ms);
	if (is_refused(r))
		return;
	if (!r->needs_past) {
		observe(r);
		return;
	}
	enter(r, TICK_PHASE_RESTORE);
	if (r->subject.status->env->dir)
		recall(r);
	else
		fetch_past(r);
}
