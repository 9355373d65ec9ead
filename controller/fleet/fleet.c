// SPDX-License-Identifier: Apache-2.0
// The tick of a fleet: what an earlier process recorded -> queries -> one decision per target -> record -> writes. It
// ends when all writes are acknowledged, so that a fleet without a tick has no request in flight.
#include "controller/fleet/fleet.h"

#include <utlist.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "controller/fleet/fleet_targets.h"
#include "k8s/cache/conflict_watch.h"
#include "k8s/client/k8s_client.h"
#include "policies/engine/decide.h"
#include "policies/engine/decision.h"
#include "policies/engine/number.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/policy_schema.h"
#include "promql/promql.h"
#include "runtime/metrics/metrics.h"

#define EARLY_TICKS 5   // without a status
#define PATH_BYTES  700 // namespace and name have at most 253 each

// ---- the state of a target ----

void *fleet_unpack(struct fleet *f, struct fleet_target *t)
{
	if (t->packed) {
		decide_state_unpack(f->policy, t->packed, f->state);
		return f->state;
	}
	decide_state_init(f->policy, f->state);
	if (f->past)
		fleet_record_restore(f->past, t, f->policy, f->state, f->now_ms);
	return f->state;
}

static void pack(struct fleet *f, struct fleet_target *t)
{
	uint32_t n = (uint32_t)decide_state_packed_bytes(f->policy, f->state);
	if (n > t->packed_bytes || n < t->packed_bytes / 2) {
		free(t->packed);
		t->packed_bytes = (n + 63) / 64 * 64;
		t->packed = must_alloc(malloc(t->packed_bytes));
	}
	decide_state_pack(f->policy, f->state, t->packed);
	t->last_scale_ms = decide_last_scale_ms(f->policy, f->state);
}

static void keep_decision(struct fleet_target *t, const struct decision *d)
{
	uint32_t bytes = (uint32_t)decision_kept_bytes(d);
	if (bytes > t->decision_bytes) {
		free(t->decision);
		t->decision = must_alloc(malloc(bytes));
		t->decision_bytes = bytes;
	}
	decision_keep(d, t->decision);
}

static void set_detail(struct fleet_target *t, const char *text)
{
	if (t->detail && text && strcmp(t->detail, text) == 0)
		return;
	free(t->detail);
	t->detail = text ? must_alloc(strdup(text)) : NULL;
}

static struct scale_ref ref_of(const struct fleet *f, const struct fleet_target *t, char space[FLEET_SPACE_BYTES])
{
	snprintf(space, FLEET_SPACE_BYTES, "%.*s", (int)(t->name - t->key - 1), t->key);
	return (struct scale_ref){f->body->fleet.api_version, f->body->fleet.kind, space, t->name, NULL};
}

struct decided fleet_decided(const struct fleet *f, const struct fleet_target *t)
{
	return (struct decided){.policy = f->policy, .target = &f->body->target, .decision = t->decision};
}

// ---- who has a target ----

// Returns whether the targets are known, or the first attempt to list them failed.
static bool is_listed(const struct fleet *f)
{
	return f->targets.list > 0 || f->targets.error;
}

static bool writes(const struct fleet *f)
{
	return !f->env->tick->dry_run && !f->policy->dry_run && !f->policy->paused;
}

static bool is_older(const struct fleet *a, const struct fleet *b)
{
	const struct policy_identity *x = &a->identity, *y = &b->identity;
	if ((x->generation > 0) != (y->generation > 0))
		return x->generation > 0; // objects take precedence over files
	if (x->created_ms != y->created_ms)
		return x->created_ms < y->created_ms;
	int order = strcmp(a->policy->namespace_name, b->policy->namespace_name);
	return order ? order < 0 : strcmp(a->policy->name, b->policy->name) < 0;
}

static bool has_same_kind(const struct fleet *a, const struct fleet *b)
{
	return a != b && strcmp(a->body->fleet.kind, b->body->fleet.kind) == 0;
}

static bool may_overlap(const struct fleet *a, const struct fleet *b)
{
	return a->body->fleet.spans || b->body->fleet.spans ||
	       strcmp(a->policy->namespace_name, b->policy->namespace_name) == 0;
}

// Returns an older fleet whose targets are not listed yet, so that it is unknown which ones it has; NULL: none.
static const struct fleet *find_unlisted(const struct fleet *f)
{
	for (const struct fleet *o = f->env->list; o; o = o->next)
		if (has_same_kind(f, o) && may_overlap(f, o) && is_older(o, f) && !is_listed(o))
			return o;
	return NULL;
}

// Sets t->overlaps. Returns the oldest other fleet that selects the target and is older than this one; NULL: none.
static const struct fleet *find_older(const struct fleet *f, struct fleet_target *t, const char *namespace_name)
{
	const struct fleet *oldest = NULL;
	t->overlaps = false;
	for (const struct fleet *o = f->env->list; o; o = o->next) {
		if (!has_same_kind(f, o) || !fleet_targets_find(&o->targets, namespace_name, t->name))
			continue;
		t->overlaps = true;
		if (is_older(o, oldest ? oldest : f))
			oldest = o;
	}
	return oldest;
}

static enum fleet_role find_autoscaler(const struct fleet *f, struct fleet_target *t, const struct scale_ref *ref)
{
	struct err ignored;
	if (!f->env->conflicts || !writes(f))
		return FLEET_SCALES;
	if (!t->interest)
		t->interest = conflict_watch_acquire(f->env->conflicts, ref, f->owner, &ignored);
	if (!t->interest)
		return FLEET_SCALES; // a name that the server does not accept
	const char *who = conflict_watch_find(t->interest);
	if (who)
		set_detail(t, who);
	return who                                    ? FLEET_HAS_AUTOSCALER
	       : conflict_watch_is_known(t->interest) ? FLEET_SCALES
	                                              : FLEET_CONFLICTS_UNKNOWN;
}

static enum fleet_role role_of(const struct fleet *f, struct fleet_target *t)
{
	char space[FLEET_SPACE_BYTES];
	const struct scale_ref ref = ref_of(f, t, space);
	const char *policy = f->env->find_policy ? f->env->find_policy(f->owner, &ref) : NULL;
	const struct fleet *older = find_older(f, t, space);
	if (policy || older) {
		set_detail(t, policy ? policy : older->policy->name);
		return policy ? FLEET_HAS_POLICY : FLEET_HAS_OLDER_FLEET;
	}
	if (t->has_bad_bounds) {
		set_detail(t, "expected numbers of replicas in " FLEET_ANNOTATION_MIN " and " FLEET_ANNOTATION_MAX);
		return FLEET_BAD_BOUNDS;
	}
	return find_autoscaler(f, t, &ref);
}

// ---- the end of a tick ----

static bool is_over(const struct fleet *f)
{
	return f->env->tick->stopping || f->is_void || !f->env->tick->permit(f->owner, TICK_MAY_CONTINUE, NULL);
}

static void end_tick(struct fleet *f, const char *error)
{
	for (size_t i = 0; i < f->policy->n_signals; i++) {
		query_answer_unref(f->answers[i]);
		f->answers[i] = NULL;
	}
	if (error && strcmp(error, f->error) != 0 && is_listed(f))
		LOG(f->env->tick->log, LOG_ERROR, "Fleet made no decision", LOG_POLICY(f->policy), LOG_S("err", error));
	snprintf(f->error, sizeof f->error, "%s", error ? error : "");
	if (f->env->metrics)
		metrics_reconciled(f->env->metrics,
		                   error         ? "error"
		                   : f->n_scaled ? "scaled"
		                                 : "ok",
		                   (double)(clock_real_mono_us() - f->started_us) / 1e6);
	// While the conflicts are being listed, a status would only say so, and delay the next one.
	bool is_early = f->n_unknown > 0 && f->n_early++ < EARLY_TICKS;
	if (!is_over(f) && is_listed(f) && !f->needs_past && !is_early)
		fleet_status_offer(f);
	f->phase = TICK_PHASE_IDLE;
	f->env->finished(f->owner); // may free the fleet
}

// ---- writes ----

static void write_more(struct fleet *f);

static void on_written(void *arg, const struct scale *scale, const struct err *error)
{
	struct fleet_target *t = arg;
	struct fleet *f = t->all->arg;
	int32_t from = t->spec_replicas;
	f->n_writing--;
	t->is_writing = false;
	if (scale && !t->is_gone) {
		decide_record_scale(f->policy, fleet_unpack(f, t), f->now_ms, t->decision->current, t->write_to);
		pack(f, t);
		unacked_write_clear(&t->unacked);
		fleet_target_scaled(t, scale);
		set_detail(t, NULL);
		t->has_failed = false;
		fleet_report_scaled(f, t);
		f->n_scaled++;
		if (f->env->metrics)
			metrics_scaled(f->env->metrics, t->decision->current, t->write_to);
		LOG(f->env->tick->log, LOG_INFO, "Scaled", LOG_POLICY(f->policy), LOG_S("target", t->key),
		    LOG_I("from", t->decision->current), LOG_I("to", t->write_to));
	} else if (error && !t->is_gone) {
		unacked_write_failed(&t->unacked, error, from, t->write_to, clock_real_mono_us() / 1000);
		set_detail(t, error->msg);
		f->n_failed++;
		if (error->kind != ERR_CONFLICT)
			fleet_report_failed(f, t);
		else if (f->env->metrics)
			metrics_count(f->env->metrics, FAMILY_CONFLICTS, ""); // the next tick decides anew
		if (error->kind == ERR_NOT_FOUND)
			(void)informer_refetch(&t->item, 0);
	}
	if (t->is_gone)
		fleet_target_free(t);
	write_more(f);
}

static void dequeue(struct fleet *f, struct fleet_target *t)
{
	DL_DELETE2(f->writes, t, previous_write, next_write);
	t->is_queued = false;
}

static void drop_writes(struct fleet *f)
{
	for (struct fleet_target *t; (t = f->writes);)
		dequeue(f, t);
}

// Sends writes until there are enough; ends the tick after the last one.
static void write_more(struct fleet *f)
{
	struct err e;
	f->phase = TICK_PHASE_WRITE;
	f->n_writing++; // this function: a write that fails at once must not end the tick
	while (f->writes && f->n_writing <= FLEET_WRITES_MAX) {
		struct fleet_target *t = f->writes;
		char space[FLEET_SPACE_BYTES];
		const struct scale_ref ref = ref_of(f, t, space);
		if (is_over(f) || !f->env->tick->permit(f->owner, TICK_MAY_WRITE, &e) || f->is_void) {
			drop_writes(f);
			break;
		}
		dequeue(f, t);
		t->is_writing = true;
		f->n_writing++;
		if (scale_patch(f->env->tick->sources.k8s, &ref, t->resource_version, t->write_to, on_written, t, &e) <
		    0) {
			t->is_writing = false;
			f->n_writing--;
			f->n_failed++;
			set_detail(t, e.msg);
		}
	}
	if (--f->n_writing == 0 && !f->writes)
		end_tick(f, NULL);
}

// Before the first scale, the status records the replicas requested until then: if this process dies before it writes
// more, the next one can compare. A failed write of it does not block scaling.
static void act(struct fleet *f)
{
	struct err e;
	f->phase = TICK_PHASE_RECORD;
	if (!f->writes || f->is_recorded || !f->env->writer || f->identity.generation == 0 ||
	    fleet_status_send(f, write_more, &e) < 0)
		write_more(f);
}

// ---- decisions ----

static void narrow_schedule(struct policy_schedule *s, int32_t min, int32_t max)
{
	s->min_replicas = i32_max(i32_min(s->min_replicas, max), min);
	s->max_replicas = i32_max(i32_min(s->max_replicas, max), min);
	s->replicas = i32_max(i32_min(s->replicas, max), min);
}

// Copies the policy with the bounds of the target's annotations, as far as they are within its own. schedules: room for
// its schedules.
static struct policy narrow(const struct policy *policy, const struct fleet_target *t,
                            struct policy_schedule *schedules)
{
	struct policy p = *policy;
	int32_t min = i32_min(i32_max(t->min_replicas, policy->min_replicas), policy->max_replicas);
	int32_t max = t->max_replicas < 0
	                      ? policy->max_replicas
	                      : i32_max(i32_min(t->max_replicas, policy->max_replicas), policy->min_replicas);
	p.min_replicas = i32_min(min, max);
	p.max_replicas = max;
	for (size_t i = 0; i < p.n_schedules; i++) {
		schedules[i] = policy->schedules[i];
		narrow_schedule(&schedules[i], t->min_replicas >= 0 ? min : 0,
		                t->max_replicas >= 0 ? max : POLICY_REPLICAS_MAX);
	}
	p.schedules = schedules;
	return p;
}

static void observe_signals(const struct fleet *f, const struct fleet_deal *deals, const struct fleet_target *t,
                            struct obs_signal *signals)
{
	for (size_t i = 0; i < f->policy->n_signals; i++) {
		const struct query_answer *a = f->answers[i];
		signals[i] = (struct obs_signal){.state = OBS_EMPTY};
		if (!a)
			continue; // a formula
		signals[i] = (struct obs_signal){.state = a->state, .detail = a->detail, .skew_ms = a->skew_ms};
		if (a->state != OBS_OK)
			continue;
		signals[i].series = deals[i].series + deals[i].first[t->index];
		signals[i].n_series = deals[i].first[t->index + 1] - deals[i].first[t->index];
		if (signals[i].n_series == 0)
			signals[i].state = OBS_EMPTY; // the target holds alone
	}
}

static void adopt_unrecorded_scale(struct fleet *f, struct fleet_target *t)
{
	int32_t from;
	if (unacked_write_found(&t->unacked, t->spec_replicas, clock_real_mono_us() / 1000, &from))
		decide_record_scale(f->policy, f->state, f->now_ms, from, t->spec_replicas);
}

static void decide_target(struct fleet *f, const struct fleet_deal *deals, struct fleet_target *t)
{
	struct obs_signal signals[POLICY_SIGNALS_MAX];
	struct policy_schedule schedules[POLICY_SCHEDULES_MAX];
	struct decision d;
	int32_t ready = t->ready_replicas;
	observe_signals(f, deals, t, signals);
	const struct observation o = {.spec_replicas = t->spec_replicas,
	                              .status_replicas = t->status_replicas,
	                              .ready_replicas = ready,
	                              .pending_replicas = ready < 0 ? 0 : i32_max(t->status_replicas - ready, 0),
	                              .signals = signals,
	                              .n_signals = f->policy->n_signals};
	fleet_unpack(f, t);
	adopt_unrecorded_scale(f, t);
	if (t->min_replicas >= 0 || t->max_replicas >= 0) {
		const struct policy p = narrow(f->policy, t, schedules);
		decide(&p, &o, f->now_ms, f->state, &d);
	} else {
		decide(f->policy, &o, f->now_ms, f->state, &d);
	}
	pack(f, t);
	keep_decision(t, &d);
	set_detail(t, NULL);
	if (!d.write || f->env->tick->dry_run)
		return;
	t->write_to = d.desired;
	t->is_queued = true;
	DL_APPEND2(f->writes, t, previous_write, next_write);
}

static void note_answers(struct fleet *f, const struct fleet_deal *deals)
{
	f->n_unmatched = 0;
	f->query_error[0] = '\0';
	for (size_t i = 0; i < f->policy->n_signals; i++) {
		const struct query_answer *a = f->answers[i];
		f->n_unmatched += deals[i].n_unmatched;
		if (deals[i].unmatched)
			snprintf(f->unmatched, sizeof f->unmatched, "%s", deals[i].unmatched);
		if (a && a->state != OBS_OK && a->state != OBS_EMPTY && !f->query_error[0])
			snprintf(f->query_error, sizeof f->query_error, "signal %s: %s", f->policy->signals[i].name,
			         a->detail);
	}
}

static void decide_all(struct fleet *f)
{
	struct fleet_deal deals[POLICY_SIGNALS_MAX] = {0};
	uint32_t n = 0;
	f->phase = TICK_PHASE_DECIDE;
	f->n_scaled = f->n_failed = f->n_unknown = 0;
	drop_writes(f);
	for (struct fleet_target *t = NULL; (t = fleet_targets_next(&f->targets, t));)
		t->index = n++;
	for (size_t i = 0; i < f->policy->n_signals; i++)
		if (f->answers[i])
			fleet_deal(&deals[i], &f->targets, n, f->body->fleet.spans ? NULL : f->policy->namespace_name,
			           f->answers[i]);
	note_answers(f, deals);
	for (struct fleet_target *t = NULL; (t = fleet_targets_next(&f->targets, t));) {
		if (f->past && !t->packed) { // also of a target that is decided later
			fleet_unpack(f, t);
			pack(f, t);
		}
		t->role = role_of(f, t);
		fleet_report_role(f, t);
		f->n_unknown += t->role == FLEET_CONFLICTS_UNKNOWN;
		if (t->role == FLEET_SCALES)
			decide_target(f, deals, t);
	}
	for (size_t i = 0; i < f->policy->n_signals; i++)
		fleet_deal_done(&deals[i]);
	fleet_record_free(f->past); // later targets are new ones
	f->past = NULL;
	act(f);
}

// ---- queries ----

// Groups the query of a signal by the label, and joins namespace and name of the target in the label `pod`, the only
// one that answers keep.
static char *group_query(const struct fleet *f, const struct policy_signal *s)
{
	static const char *const by[SERIES_MODE__COUNT] = {
	        [SERIES_SUM] = "sum", [SERIES_MAX] = "max", [SERIES_MIN] = "min", [SERIES_AVG] = "avg"};
	const char *label = f->body->fleet.label;
	struct buf out;
	buf_init(&out, PROMQL_QUERY_BYTES_MAX);
	if (by[s->series])
		buf_printf(&out, "label_join(%s by (namespace, %s) (%s\n), \"pod\", \"/\", \"namespace\", \"%s\")",
		           by[s->series], label, s->query, label);
	else
		buf_printf(&out, "label_join((%s\n), \"pod\", \"/\", \"namespace\", \"%s\")", s->query, label);
	char *text = out.failed ? NULL : must_alloc(strdup(buf_str(&out)));
	buf_done(&out);
	return text;
}

static void finish_one(struct fleet *f)
{
	if (--f->n_pending > 0)
		return;
	if (is_over(f))
		end_tick(f, NULL);
	else
		decide_all(f);
}

static void on_answer(void *arg, struct query_answer *a)
{
	struct fleet_slot *slot = arg;
	slot->fleet->answers[slot->signal] = query_answer_ref(a);
	finish_one(slot->fleet);
}

static void observe(struct fleet *f)
{
	const struct fleet *unlisted = find_unlisted(f);
	char text[FLEET_ERROR_BYTES];
	struct buf scratch;
	f->phase = TICK_PHASE_OBSERVE;
	f->awaits_list = !is_listed(f);
	if (f->awaits_list)
		return; // on_listed() continues
	const char *pool = f->env->tick->find_pool ? f->env->tick->find_pool(f->owner) : NULL;
	if (pool) { // its cap would not hold
		snprintf(text, sizeof text,
		         "not supported: a fleet as a member of pool %s; leave it out of its members", pool);
		end_tick(f, text);
		return;
	}
	if (f->targets.list == 0 || unlisted) {
		end_tick(f, unlisted ? "the targets of an older fleet are not listed yet" : f->targets.error);
		return;
	}
	if (f->targets.n_beyond && f->targets.n < FLEET_TARGETS_MAX) {
		f->targets.n_beyond = 0;
		(void)informer_refetch(&f->targets.scope, 0);
	}
	f->n_pending = 1; // this function itself
	buf_init(&scratch, PROMQL_QUERY_BYTES_MAX);
	for (size_t i = 0; i < f->policy->n_signals; i++)
		if (f->queries[i]) {
			const struct policy_signal *s = &f->policy->signals[i];
			const struct observe_query query = {s->source, f->queries[i], s->stale_after_ms,
			                                    FLEET_SERIES_MAX};
			f->slots[i] = (struct fleet_slot){f, i};
			f->n_pending++;
			observe_ask_query(f->env->tick->sources.queries, f->policy, &query, f->now_ms, &scratch,
			                  on_answer, &f->slots[i]);
		}
	buf_done(&scratch);
	finish_one(f);
}

// ---- what an earlier process recorded ----

static void on_past(void *arg, const struct http_response *response, const struct err *error)
{
	struct fleet *f = arg;
	if (is_over(f)) {
		end_tick(f, NULL);
	} else if (!response) {
		end_tick(f, error->msg);
	} else {
		fleet_status_read(f, response->body, response->body_len);
		f->needs_past = false;
		observe(f);
	}
}

void fleet_tick(struct fleet *f, int64_t now_ms)
{
	char path[PATH_BYTES];
	struct err e;
	assert(f->phase == TICK_PHASE_IDLE);
	f->now_ms = now_ms;
	f->started_us = clock_real_mono_us();
	f->is_void = false;
	f->phase = TICK_PHASE_RESTORE;
	if (!f->needs_past) {
		observe(f);
		return;
	}
	// A request, not the watch: the process that had the policy until now may have written just before it exited.
	snprintf(path, sizeof path, "/apis/" POLICY_API_VERSION "/namespaces/%s/gpuautoscalers/%s",
	         f->policy->namespace_name, f->policy->name);
	if (k8s_request(f->env->tick->sources.k8s, "GET", path, NULL, NULL, 0, on_past, f, &e) < 0)
		on_past(f, NULL, &e);
}

// ---- life ----

static void on_gone(void *arg, struct fleet_target *t)
{
	struct fleet *f = arg;
	conflict_watch_release(t->interest);
	t->interest = NULL;
	if (t->is_queued)
		dequeue(f, t);
}

static void on_listed(void *arg)
{
	struct fleet *f = arg;
	if (f->awaits_list) {
		observe(f);
		return;
	}
	for (const struct fleet *o = f->env->list; o; o = o->next)
		f->env->ask(o->owner); // younger ones may have waited
}

static int open_fleet(struct fleet *f, struct err *e)
{
	const struct fleet_env *env = f->env;
	const char *space = f->policy->namespace_name;
	for (size_t i = 0; i < f->policy->n_signals; i++) {
		const struct policy_signal *s = &f->policy->signals[i];
		f->queries[i] = s->query ? group_query(f, s) : NULL;
		if (s->query && !f->queries[i])
			return err_set(e, ERR_LIMIT, "spec.signals[%zu].query: the grouped query is too long", i);
	}
	if (!env->tick->sources.k8s)
		return err_set(e, ERR_UNSUPPORTED, "not supported: a fleet without a cluster");
	bool is_own = env->own_namespace && strcmp(env->own_namespace, space) == 0;
	if (f->body->fleet.spans && !env->spans_anywhere && !is_own)
		return err_set(
		        e, ERR_USAGE,
		        "spec.scaleTargets.namespaceSelector: not permitted in namespace %s: move the policy to the "
		        "namespace of the controller, or run it with --cluster-fleets",
		        space);
	return fleet_targets_open(&f->targets, env->tick->sources.k8s, &f->body->fleet, space, e);
}

struct fleet *fleet_new(struct fleet_env *env, struct policy_ref *body, const struct policy_identity *identity,
                        void *owner)
{
	struct fleet *f = must_alloc(calloc(1, sizeof *f));
	struct err e;
	f->env = env;
	f->body = policy_ref_acquire(body);
	f->policy = &body->policy;
	f->identity = identity ? *identity : (struct policy_identity){0};
	f->owner = owner;
	f->needs_past = identity && env->writer;
	f->state = must_alloc(malloc(decide_state_bytes(f->policy)));
	f->targets.on_listed = on_listed;
	f->targets.on_gone = on_gone;
	f->targets.arg = f;
	f->targets.own_namespace = env->own_namespace;
	DL_APPEND2(env->list, f, previous, next);
	if (open_fleet(f, &e) < 0) {
		fleet_targets_close(&f->targets);
		f->targets.error = must_alloc(strdup(e.msg));
	}
	return f;
}

void fleet_free(struct fleet *f)
{
	if (!f)
		return;
	assert(f->phase == TICK_PHASE_IDLE);
	DL_DELETE2(f->env->list, f, previous, next);
	fleet_targets_close(&f->targets);
	if (f->env->writer)
		status_slot_cancel(&f->slot);
	fleet_record_free(f->past);
	for (size_t i = 0; i < f->policy->n_signals; i++)
		free(f->queries[i]);
	free(f->state);
	policy_ref_release(f->body);
	free(f);
}

static void move_stamps(struct fleet *f, int64_t step_ms)
{
	f->is_void = true;
	f->now_ms += step_ms;
	f->written.written_ms += f->written.written_ms > 0 ? step_ms : 0;
	for (int i = 0; i < FLEET_CONDITION__COUNT; i++)
		f->since_ms[i] += f->since_ms[i] > 0 ? step_ms : 0;
	for (struct fleet_target *t = NULL; (t = fleet_targets_next(&f->targets, t));) {
		if (!t->packed)
			continue;
		decide_clock_was_set(f->policy, fleet_unpack(f, t), step_ms);
		pack(f, t);
	}
}

void fleets_clock_was_set(struct fleet_env *env, int64_t step_ms)
{
	for (struct fleet *f = env->list; f; f = f->next)
		move_stamps(f, step_ms);
}

bool fleets_are_busy(const struct fleet_env *env)
{
	for (const struct fleet *f = env->list; f; f = f->next)
		if (f->phase != TICK_PHASE_IDLE)
			return true;
	return false;
}

void fleets_disconnect(struct fleet_env *env)
{
	for (struct fleet *f = env->list, *next; f; f = next) {
		bool awaited_list = f->awaits_list;
		next = f->next;
		fleet_targets_close(&f->targets);
		f->awaits_list = false;
		if (awaited_list)
			end_tick(f, NULL); // may free the fleet
	}
}
