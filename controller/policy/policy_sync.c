// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/policy_sync.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/process/log.h"
#include "controller/policy/managed_policy.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/pool/pools.h"
#include "k8s/client/scale.h"
#include "policies/load/policy_ref.h"
#include "runtime/connections.h"
#include "runtime/log_edge.h"
#include "runtime/metrics/metrics.h"
#include "runtime/shard/shards.h"

static void free_policy(struct managed_policy *m)
{
	policy_pools_leave(m);
	free(m->conflict_interests); // their watch is gone, too
	policy_ref_release(m->conflicts_of);
	free(m);
}

// ---- which version should be in force ----

// Returns the version to run now; NULL: none.
static struct policy_ref *desired_policy(const struct managed_policy *m)
{
	return policy_awaits_now(m) == AWAITS_NOTHING ? m->stored->entry->body : NULL;
}

static bool is_current(const struct managed_policy *m)
{
	return m->body == desired_policy(m) && m->term == ownership_term(m);
}

// Of a fleet or a policy with variants, which no pool can limit.
static const char *find_pool(void *owner)
{
	const struct managed_policy *m = owner;
	return pools_find_claim(m->all->policy_pools->pools, m->namespace_name, m->name, m->body->policy.label_lines);
}

static bool permit(void *owner, enum tick_permission permission, struct err *e)
{
	const struct managed_policy *m = owner;
	if (permission == TICK_MAY_CONTINUE)
		return is_current(m);
	m->all->policy_sync->check_clock(m->all->policy_sync->arg); // a clock step makes the pending write void
	return shards_may_write(m->all->connections->shards, m->namespace_name, m->name, e);
}

// ---- what the endpoints and the status show ----

static const char *fault_of(const struct managed_policy *m)
{
	const char *error = m->stored ? policy_entry_error(m->stored->entry) : "";
	return error[0] ? error : NULL;
}

bool managed_policy_facts(const struct managed_policy *m, struct decided *ret_decided, struct status_facts *ret_facts)
{
	if (!policy_report_facts(&m->report, &m->all->policy_sync->report_env, m->reconciler, ret_decided, ret_facts))
		return false;
	ret_facts->fault = fault_of(m);
	ret_facts->conflict = conflicts_find(m);
	ret_facts->watch_error = conflicts_watch_error(m);
	return true;
}

// Returns whether this process owns the policy and no version of it is in force.
static bool is_idle(const struct stored_binding *b)
{
	const struct managed_policy *m = b->user;
	return m && !m->reconciler && !m->fleet && ownership_term(m) != 0;
}

static bool is_fleet(const struct stored_binding *b)
{
	const struct managed_policy *m = b->user;
	return m && m->fleet;
}

static const struct managed_policy *next_where(const struct policy_sync *s, const struct managed_policy *after,
                                               bool (*is_wanted)(const struct stored_binding *b))
{
	const struct stored_binding *b = after ? after->stored : NULL;
	while ((b = policy_store_next(s->all->store, b)) && !is_wanted(b))
		;
	return b ? b->user : NULL;
}

const struct managed_policy *policy_sync_next_fleet(const struct policy_sync *s, const struct managed_policy *after)
{
	return next_where(s, after, is_fleet);
}

const struct managed_policy *policy_sync_next_idle(const struct policy_sync *s, const struct managed_policy *after)
{
	// Before, no policy is in force yet.
	return s->all->has_synced(s->all->arg) ? next_where(s, after, is_idle) : NULL;
}

size_t policy_sync_count_waiting(const struct policy_sync *s)
{
	size_t n = 0;
	for (const struct stored_binding *b = NULL; (b = policy_store_next(s->all->store, b));)
		n += b->binding && is_idle(b);
	return n;
}

// ---- changes of the store ----

static void on_change(void *arg, struct stored_binding *b)
{
	const struct policy_sync *s = arg;
	managed_policy_mark(b->user ? b->user : managed_policy_new(s->all, b));
}

static void on_remove(void *arg, struct stored_binding *b, bool deleted)
{
	const struct policy_sync *s = arg;
	struct managed_policy *m = b->user;
	m->stored = NULL;
	m->restores = deleted && m->reconciler && m->body->policy.restore_set && !m->body->policy.dry_run &&
	              !m->body->policy.paused && !s->all->dry_run && m->term == ownership_term(m);
	// Until policies_sync() drops the reconciler, replies and timers still run: none of them may start a tick or
	// use the status (test_managed_policy.c).
	ticks_remove(s->all->ticks, &m->ticker);
	struct policy_status *status = m->status;
	m->status = NULL;
	if (m->reconciler)
		reconciler_set_status(m->reconciler, NULL);
	if (status && !s->all->stopping && (status->env->dir ? b->binding != NULL : !deleted))
		policy_status_forget(status, b->binding);
	policy_status_free(status); // a tick that waits for it ends here, and others start
	managed_policy_mark(m);
}

// ---- restoreReplicas of a deleted policy ----

struct restore {
	const struct restore_env *env;
	struct policy_ref *body; // one reference
	const struct binding *binding;
	int conflicts;
};

// e: why it failed; NULL: it did not.
static void end_restore(struct restore *r, const struct err *e)
{
	const struct policy *p = &r->body->policy;
	if (e && e->kind != ERR_CANCELED)
		LOG(r->env->log, LOG_ERROR, "Cannot set restoreReplicas of a deleted policy", LOG_POLICY(p),
		    LOG_S("target", r->binding->target->name), LOG_S("err", e->msg));
	policy_ref_release(r->body);
	free(r);
}

static void begin_restore(struct restore *r);

static void on_restored(void *arg, const struct scale *scale, const struct err *error)
{
	struct restore *r = arg;
	const struct policy *p = &r->body->policy;
	if (!scale && error->kind == ERR_CONFLICT && ++r->conflicts < RESTORE_CONFLICTS_MAX) {
		begin_restore(r);
		return;
	}
	if (scale)
		LOG(r->env->log, LOG_INFO, "Set restoreReplicas of a deleted policy", LOG_POLICY(p),
		    LOG_S("target", r->binding->target->name), LOG_I("replicas", p->restore_replicas));
	end_restore(r, scale ? NULL : error);
}

static void on_scale(void *arg, const struct scale *scale, const struct err *error)
{
	struct restore *r = arg;
	struct err e;
	if (!scale || scale->spec_replicas == r->body->policy.restore_replicas) {
		end_restore(r, scale ? NULL : error);
		return;
	}
	struct scale_ref ref = binding_scale_ref(r->binding);
	if (!r->env->may_write(r->env->arg, r->body, &e) ||
	    scale_patch(r->env->k8s, &ref, scale->resource_version, r->body->policy.restore_replicas, on_restored, r,
	                &e) < 0)
		end_restore(r, &e);
}

static void begin_restore(struct restore *r)
{
	struct err e;
	struct scale_ref ref = binding_scale_ref(r->binding);
	if (scale_get(r->env->k8s, &ref, on_scale, r, &e) < 0)
		end_restore(r, &e);
}

void restore_replicas(const struct restore_env *env, struct policy_ref *body, const struct binding *binding)
{
	struct restore *r = must_alloc(calloc(1, sizeof *r));
	r->env = env;
	r->body = policy_ref_acquire(body);
	r->binding = binding;
	begin_restore(r);
}

// ---- reconcilers ----

static void log_policy(const struct managed_policy *m, const char *message)
{
	LOG(m->all->log, LOG_DEBUG, message, LOG_POLICY(m),
	    LOG_S("target", m->reconciler->subject.binding->target->name));
}

// Returns the time of the target's last scale by the boot clock, which is never set. A policy that returns to this
// process is restored from its status, whose times may come from a wall clock that was set meanwhile; the boot time
// keeps the cooldown from being cut short.
static int64_t boot_of_last_scale_ms(const struct managed_policy *m)
{
	const struct clock *clock = &m->all->connections->clock;
	int64_t last_ms = m->reconciler->last_scale_ms;
	return last_ms < 0 ? -1 : clock_boot_ms(clock) - (clock_wall_ms(clock) - last_ms);
}

static int64_t wall_of_last_scale_ms(const struct managed_policy *m)
{
	const struct clock *clock = &m->all->connections->clock;
	return m->last_scale_boot_ms < 0 ? -1 : clock_wall_ms(clock) - (clock_boot_ms(clock) - m->last_scale_boot_ms);
}

// Adds a policy that got a reconciler to the list.
static void enlist(struct managed_policy *m)
{
	struct managed_policies *all = m->all;
	must_reserve(&all->list, all->n, &all->room, sizeof(struct managed_policy *), 16);
	m->index = all->n;
	all->list[all->n++] = m;
	all->is_sorted = false;
}

static void delist(struct managed_policy *m)
{
	struct managed_policies *all = m->all;
	all->list[m->index] = all->list[--all->n];
	all->list[m->index]->index = m->index;
	all->is_sorted = false;
}

static void drop_reconciler(struct managed_policy *m)
{
	if (!m->reconciler && !m->fleet)
		return;
	ticks_remove(m->all->ticks, &m->ticker);
	if (m->reconciler) {
		m->last_scale_boot_ms = boot_of_last_scale_ms(m);
		m->fight.is_armed = false; // another process may write before this one does again
		LOG(m->all->log, LOG_DEBUG, "Policy no longer in force", LOG_POLICY(m),
		    LOG_S("target", m->reconciler->subject.binding->target->name),
		    LOG_S("awaits", policy_awaits_names[m->awaits]));
		early_check_forget(m);
		delist(m);
		reconciler_free(m->reconciler);
		m->reconciler = NULL;
		policy_report_reset(&m->report);
	}
	fleet_free(m->fleet);
	m->fleet = NULL;
	policy_ref_release(m->body);
	m->body = NULL;
	m->all->policy_sync->n_removed++;
}

static void forget_reconciler(struct managed_policy *m)
{
	if (!m->reconciler && !m->fleet)
		return;
	drop_reconciler(m);
	pool_membership_forget(m->membership, clock_real_mono_us() / 1000);
}

static void create_reconciler(struct managed_policy *m, struct policy_ref *body)
{
	struct policy_sync *s = m->all->policy_sync;
	const struct policy_identity *id = policy_entry_identity(m->stored->entry);
	struct reconcile_subject subject = {
	        .binding = managed_policy_binding(m, body),
	        .generation = body->generation,
	        .status = m->status,
	        // Another process may have written a status that the watch has not delivered.
	        .has_past = id ? id->has_status || m->all->connections->shards : s->file_env.dir != NULL,
	        .last_scale_ms = wall_of_last_scale_ms(m),
	        .owner = m};
	m->body = policy_ref_acquire(body);
	m->term = ownership_term(m);
	s->n_added++;
	if (body->fleet.set) {
		m->fleet = fleet_new(&s->fleet_env, body, id, m);
		return;
	}
	m->reconciler = reconciler_new(&s->env, &subject);
	enlist(m);
	log_policy(m, "Policy in force");
}

static void change_policy(struct managed_policy *m, struct policy_ref *body)
{
	const struct binding *before = managed_policy_binding(m, m->body), *after = managed_policy_binding(m, body);
	if (!binding_has_same_targets(before, after))
		pool_membership_forget(m->membership, clock_real_mono_us() / 1000);
	reconciler_set_policy(m->reconciler, after, body->generation);
	policy_report_set_policy(&m->report, &m->body->policy, &body->policy);
	early_check_forget(m);
	policy_ref_release(m->body);
	m->body = policy_ref_acquire(body);
	log_policy(m, "Policy changed");
	m->all->policy_sync->n_changed++;
}

// Policies with the same first query tick together, so that it is sent once; others are spread over the interval.
static uint32_t slot_key_of(const struct policy *p)
{
	uint64_t h = HASH_START;
	const struct policy_signal *s = p->signals;
	while (s < p->signals + p->n_signals && !s->query)
		s++;
	if (s < p->signals + p->n_signals)
		h = hash_text(hash_text(h, s->source ? s->source : ""), s->query);
	else
		h = hash_text(hash_text(h, p->namespace_name), p->name);
	return (uint32_t)(hash_mix(h) >> 32);
}

// A new or changed policy ticks at once. All policies of one sync tick as of the same time, so that equal queries are
// sent once.
static void start_ticks(struct managed_policy *m, int64_t now_ms)
{
	const struct policy *p = &m->body->policy;
	ticks_add(m->all->ticks, &m->ticker, p->interval_ms, slot_key_of(p));
	ticks_ask(m->all->ticks, &m->ticker, now_ms);
}

// ---- policies without a reconciler ----

static void log_shadowed(struct managed_policy *m)
{
	const struct policy_entry *e = m->stored->entry;
	bool is_shadowed = e->source == POLICY_FROM_OBJECT && e->versions[POLICY_FROM_FILE].is_there;
	if (log_edge(&m->is_shadowed, is_shadowed) == LOG_EDGE_STARTED && m->stored->index == 0)
		LOG(m->all->log, LOG_WARNING, "Policy object overrides the policy file of the same name",
		    LOG_POLICY(e));
}

// Gives the policy the status that its source demands: an object has one in the API server, a file one in --state-dir.
static void sync_status(struct managed_policy *m)
{
	struct policy_sync *s = m->all->policy_sync;
	const struct policy_identity *id = policy_entry_identity(m->stored->entry);
	const struct status_env *env = !id                                                     ? &s->file_env
	                               : m->stored->entry->source == POLICY_FROM_SCALED_OBJECT ? &s->scaled_object_env
	                                                                                       : &s->status_env;
	const struct policy_ref *body = m->stored->entry->body; // a fleet that runs writes a status of its own
	bool wanted = (env->writer || env->dir) && ownership_term(m) && !(body && body->fleet.set);
	bool is_same = m->status && m->status->env == env;
	if (wanted == (m->status != NULL) && (!wanted || is_same))
		return;
	struct policy_status *before = m->status;
	m->status = NULL;
	if (wanted)
		m->status = policy_status_new(
		        env, &(struct status_place){m->namespace_name, m->name, id ? id->uid : "", m->key});
	if (m->reconciler)
		reconciler_set_status(m->reconciler, m->status);
	policy_status_free(before);
}

static void write_idle_status(struct managed_policy *m, int64_t now_ms)
{
	if (!m->status)
		return;
	char why[POLICY_ERROR_BYTES_MAX];
	struct status_update u = {.facts = {.phase = policy_awaits_explain(m, why, sizeof why), .text = why},
	                          .now_ms = now_ms};
	if (u.facts.phase == STATUS_PHASE__COUNT)
		return; // whether the target has a conflict is not known yet
	if (u.facts.phase == STATUS_CONFLICT) {
		u.facts.fault = fault_of(m);
		u.generation = m->stored->entry->body->generation;
	}
	policy_status_update(m->status, &u);
}

// ---- sync ----

static void sync_policy(struct managed_policy *m, int64_t now_ms)
{
	// The version to run if its target is free.
	struct policy_ref *eligible = policy_awaits_apart(m) == AWAITS_NOTHING ? m->stored->entry->body : NULL;
	bool is_fleet = eligible && eligible->fleet.set; // which has conflicts target by target, and no pool
	conflicts_sync(m, is_fleet ? NULL : eligible);
	policy_awaits_update(m);
	policy_pools_sync(m, m->awaits <= AWAITS_CONFLICTS && !is_fleet ? &eligible->policy : NULL);
	if (m->ticker.state == TICK_IN_PROGRESS)
		return; // finished() marks it again
	if (!m->stored) {
		const struct binding *restored = m->restores ? managed_policy_binding(m, m->body) : NULL;
		if (restored && !policy_store_holder(m->all->store, restored))
			restore_replicas(&m->all->policy_sync->restore_env, m->body, restored);
		drop_reconciler(m);
		free_policy(m);
		return;
	}
	struct policy_ref *body = desired_policy(m);
	if ((m->reconciler || m->fleet) && m->term != ownership_term(m))
		forget_reconciler(m); // lost and acquired again: another process may have written in between
	log_shadowed(m);
	sync_status(m);
	if (!body) {
		forget_reconciler(m);
		write_idle_status(m, now_ms);
	}
	if (body == m->body) {
		if (m->fleet) // conflicts of its targets may have changed
			ticks_ask(m->all->ticks, &m->ticker, now_ms);
		return;
	}
	if (m->reconciler && !body->fleet.set) {
		change_policy(m, body);
	} else {
		drop_reconciler(m); // a fleet that changes starts anew, from the record in its status
		create_reconciler(m, body);
	}
	start_ticks(m, now_ms);
}

static void log_changes(struct policy_sync *s)
{
	if (s->n_added + s->n_changed + s->n_removed == 0)
		return;
	LOG(s->all->log, LOG_INFO, "Policies in force", LOG_I("policies", (int64_t)s->all->n),
	    LOG_I("added", (int64_t)s->n_added), LOG_I("changed", (int64_t)s->n_changed),
	    LOG_I("removed", (int64_t)s->n_removed));
	s->n_added = s->n_changed = s->n_removed = 0;
}

void policy_sync(struct policy_sync *s)
{
	struct managed_policies *all = s->all;
	if (all->stopping || !all->has_synced(all->arg))
		return;
	s->check_clock(s->arg);
	int64_t now_ms = clock_wall_ms(&all->connections->clock);
	if (all->dirty)
		managed_policies_changed(all);
	while (all->dirty) {
		struct managed_policy *m = all->dirty;
		managed_policy_unmark(m);
		sync_policy(m, now_ms);
	}
	log_changes(s);
	ticks_run(all->ticks);
}

bool policy_sync_is_complete(const struct policy_sync *s)
{
	return s->all->has_synced(s->all->arg) && !s->all->dirty && s->all->n_conflicts_awaited == 0;
}

// ---- ticks ----

void policy_sync_start_tick(void *arg, struct ticker *t, int64_t now_ms)
{
	const struct managed_policies *all = arg;
	struct managed_policy *m = (void *)t;
	exposition_histogram_observe(&all->metrics->delay_seconds, (double)(t->since_mono_ms - t->due_mono_ms) / 1000);
	early_check_drop(m);
	if (m->fleet)
		fleet_tick(m->fleet, now_ms);
	else
		reconciler_tick(m->reconciler, now_ms);
}

void policy_sync_write(void *arg, struct ticker *t)
{
	struct managed_policy *m = (void *)t;
	reconciler_write(m->reconciler);
}

static bool take_turn(void *owner)
{
	struct managed_policy *m = owner;
	return ticks_take_turn(m->all->ticks, &m->ticker);
}

static void report(struct managed_policy *m, const struct tick_result *result)
{
	struct policy_sync *s = m->all->policy_sync;
	policy_report_tick(&m->report, &s->report_env, m->reconciler, result);
	// Without the earlier status, a new one would overwrite what an earlier process recorded.
	// One that is deferred is followed by that of the write.
	if (result->outcome == TICK_RETRIED || result->outcome == TICK_SUPERSEDED || result->outcome == TICK_DEFERRED ||
	    !result->is_current || !result->is_restored || !m->status)
		return;
	struct decided decided;
	const struct reconcile_subject *subject = &m->reconciler->subject;
	struct status_update u = {.binding = subject->binding,
	                          .state = result->state,
	                          .generation = subject->generation,
	                          .now_ms = result->now_ms};
	managed_policy_facts(m, &decided, &u.facts);
	policy_status_update(m->status, &u);
	const char *error = m->status->error; // of an earlier write
	if (log_edge(&m->report.status_failed, error != NULL) == LOG_EDGE_STARTED)
		LOG(s->report_env.log, LOG_ERROR, m->status->env->dir ? "Cannot save state" : "Cannot write status",
		    LOG_BINDING(subject->binding), LOG_S("err", error));
}

static void end_tick(struct managed_policy *m)
{
	const struct policy_sync *s = m->all->policy_sync;
	ticks_end(m->all->ticks, &m->ticker);
	managed_policies_changed(m->all);
	if (!is_current(m) || !m->stored)
		managed_policy_mark(m);
	ticks_run(m->all->ticks);
	s->on_quiet(s->arg);
}

static void finished(void *owner, const struct tick_result *result)
{
	struct managed_policy *m = owner;
	report(m, result);
	if (result->outcome == TICK_SCALED)
		scale_fight_written(&m->fight, result->stored);
	else if (result->decision && result->decision->action == ACTION_NONE &&
	         result->decision->reason == REASON_DESIRED_WITHIN_RANGE)
		scale_fight_agreed(&m->fight, result->decision->current);
	else if (result->outcome == TICK_READ_FAILED)
		m->fight.is_armed = false; // the target may have been created anew
	if (result->outcome != TICK_RETRIED)
		end_tick(m);
}

// ---- fleets ----

static void fleet_finished(void *owner)
{
	end_tick(owner);
}

static void fleet_ask(void *owner)
{
	struct managed_policy *m = owner;
	if (m->all->stopping || !m->ticker.group)
		return;
	ticks_ask(m->all->ticks, &m->ticker, clock_wall_ms(&m->all->connections->clock));
	ticks_run(m->all->ticks);
}

static const char *fleet_find_policy(void *owner, const struct scale_ref *ref)
{
	const struct managed_policy *m = owner;
	const struct policy p = {.namespace_name = ref->namespace_name};
	const struct scale_target target = {ref->api_version, ref->kind, ref->name, ref->path};
	const struct binding b = {.policy = &p, .target = &target};
	const struct stored_binding *holder = policy_store_holder(m->all->store, &b);
	return holder ? holder->entry->name : NULL;
}

// ---- stop ----

static void flush(const struct managed_policy *m, int64_t now_ms)
{
	struct decided decided;
	const struct reconcile_subject *subject = &m->reconciler->subject;
	void *state = reconciler_copy_state(m->reconciler);
	struct status_update u = {
	        .binding = subject->binding, .state = state, .generation = subject->generation, .now_ms = now_ms};
	if (state && managed_policy_facts(m, &decided, &u.facts))
		policy_status_flush(m->status, &u);
	free(state);
}

void policy_sync_flush(struct policy_sync *s)
{
	int64_t now_ms = clock_wall_ms(&s->all->connections->clock);
	for (size_t i = 0; i < s->all->n; i++) {
		const struct managed_policy *m = s->all->list[i];
		if (m->status && m->status->env->dir)
			flush(m, now_ms);
	}
}

void policy_sync_free(struct policy_sync *s)
{
	struct managed_policies *all = s->all;
	struct managed_policy *m;
	all->stopping = true;
	while (all->n > 0) {
		m = all->list[all->n - 1];
		drop_reconciler(m);
		policy_pools_leave(m);
		if (!m->stored && !m->is_dirty)
			free_policy(m);
	}
	while (all->dirty) {
		m = all->dirty;
		managed_policy_unmark(m);
		drop_reconciler(m); // of a fleet
		if (!m->stored)
			free_policy(m);
	}
	for (struct stored_binding *b = NULL; (b = policy_store_next(all->store, b));) {
		m = b->user;
		drop_reconciler(m);
		policy_status_free(m->status);
		free_policy(m);
	}
	free(all->list);
	free(all->sorted);
}

struct policy_listener policy_sync_init(struct policy_sync *s)
{
	s->env.permit = permit;
	s->env.membership = policy_pools_membership;
	s->env.find_pool = find_pool;
	s->env.yield = conflicts_yield;
	s->env.take_turn = take_turn;
	s->env.finished = finished;
	s->fleet_env = (struct fleet_env){
	        .tick = &s->env, .find_policy = fleet_find_policy, .finished = fleet_finished, .ask = fleet_ask};
	return (struct policy_listener){.on_change = on_change, .on_remove = on_remove, .arg = s};
}
