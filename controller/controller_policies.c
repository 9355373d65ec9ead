// SPDX-License-Identifier: Apache-2.0
// Gives each policy of the store its reconciler, in the version that should be in force. Callbacks only mark a policy;
// policies_sync() compares what should be with what is, so the order of the changes does not matter.
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/process/log.h"
#include "controller/controller_private.h"
#include "controller/log_edge.h"
#include "controller/metrics/metrics.h"
#include "controller/pool/pools.h"
#include "policies/load/policy_ref.h"

// Without memory for a few kilobytes no decision makes sense: ends the process, and the supervisor restarts it.
static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

struct managed_policy *managed_policy_of(struct ticker *t)
{
	uintptr_t at = (uintptr_t)t - offsetof(struct managed_policy, ticker);
	return (struct managed_policy *)at;
}

static bool is_busy(const struct managed_policy *m)
{
	return m->ticker.state == TICK_IN_PROGRESS;
}

static void free_policy(struct managed_policy *m)
{
	controller_pools_leave(m);
	policy_ref_release(m->conflicts_of);
	free(m);
}

// ---- which version should be in force ----

// Returns the version to run if its target is free; NULL: none.
static struct policy_ref *eligible_policy(const struct managed_policy *m)
{
	if (!m->entry || !m->entry->body || policy_entry_winner(m->entry) != m->entry || !ownership_term(m))
		return NULL;
	return m->entry->body;
}

// Returns the version to run now; NULL: none.
static struct policy_ref *desired_policy(const struct managed_policy *m)
{
	struct policy_ref *body = eligible_policy(m);
	return body && conflicts_allow(m, body) ? body : NULL;
}

static bool is_current(const struct managed_policy *m)
{
	return m->body == desired_policy(m) && m->term == ownership_term(m);
}

bool managed_policy_permit(void *owner, enum tick_permission permission, struct err *e)
{
	const struct managed_policy *m = owner;
	if (permission == TICK_MAY_CONTINUE)
		return is_current(m);
	controller_look_at_clock(m->controller); // a clock step makes the pending write void
	return ownership_may_write(m, e);
}

// ---- what the endpoints and the status show ----

static const char *fault_of(const struct managed_policy *m)
{
	const char *error = m->entry ? policy_entry_error(m->entry) : "";
	return error[0] ? error : NULL;
}

static struct policy_circumstances circumstances_of(const struct managed_policy *m)
{
	return (struct policy_circumstances){
	        .fault = fault_of(m), .conflict = conflicts_find(m), .watch_error = conflicts_watch_error(m)};
}

const struct reconciler *managed_policy_reconciler(const struct managed_policy *m)
{
	return m->reconciler;
}

const char *managed_policy_error(const struct managed_policy *m)
{
	return m->report.error ? m->report.error : "";
}

const struct gpu_time *managed_policy_gpu_time(const struct managed_policy *m)
{
	return &m->report.gpu_time;
}

int64_t managed_policy_values_limited(const struct managed_policy *m)
{
	return m->report.values_limited;
}

const struct sparkline *managed_policy_sparkline(const struct managed_policy *m)
{
	return m->report.sparkline;
}

bool managed_policy_facts(const struct managed_policy *m, struct decided *ret_decided, struct status_facts *ret_facts)
{
	struct policy_circumstances circumstances = circumstances_of(m);
	return policy_report_facts(&m->report, &m->controller->report_env, m->reconciler, &circumstances, ret_decided,
	                           ret_facts);
}

// ---- marking ----

void managed_policy_mark(struct managed_policy *m)
{
	struct controller *c = m->controller;
	if (m->is_dirty || c->stopping)
		return;
	m->is_dirty = true;
	DL_APPEND2(c->policies.dirty, m, previous_dirty, next_dirty);
	if (!c->policies.sync)
		return; // not running yet
	struct timeval now = {0, 0};
	event_add(c->policies.sync, &now);
}

static void unmark(struct managed_policy *m)
{
	if (!m->is_dirty)
		return;
	m->is_dirty = false;
	DL_DELETE2(m->controller->policies.dirty, m, previous_dirty, next_dirty);
}

static struct managed_policy *managed_policy_new(struct controller *c, struct policy_entry *entry)
{
	size_t name_at = strlen(entry->namespace_name) + 1, size = name_at + strlen(entry->name) + 1;
	struct managed_policy *m = must(calloc(1, sizeof *m + size));
	memcpy(m->namespace_name, entry->namespace_name, name_at); // copies: m may outlive the entry
	memcpy(m->namespace_name + name_at, entry->name, size - name_at);
	m->name = m->namespace_name + name_at;
	m->controller = c;
	m->entry = entry;
	m->last_scale_boot_ms = -1;
	policy_report_init(&m->report);
	return m;
}

static void on_change(void *arg, struct policy_entry *entry)
{
	struct managed_policy *m = entry->user;
	if (!m) {
		m = managed_policy_new(arg, entry);
		entry->user = m;
	}
	managed_policy_mark(m);
}

static void on_remove(void *arg, struct policy_entry *entry, bool deleted)
{
	const struct controller *c = arg;
	struct managed_policy *m = entry->user;
	m->entry = NULL;
	m->restores = deleted && m->reconciler && m->body->policy.restore_set && !m->body->policy.dry_run &&
	              !m->body->policy.paused && !c->options.dry_run && m->term == ownership_term(m);
	// Until policies_sync() drops the reconciler, replies and timers still run: none of them may start a tick or
	// use the status (test_managed_policy.c).
	ticks_remove(c->ticks, &m->ticker);
	struct policy_status *status = m->status;
	m->status = NULL;
	if (m->reconciler)
		reconciler_set_status(m->reconciler, NULL);
	if (status && policy_status_is_file(status) && entry->body && !c->stopping)
		policy_status_forget(status, &entry->body->policy);
	policy_status_free(status); // a tick that waits for it ends here, and others start
	managed_policy_mark(m);
}

// ---- reconcilers ----

static void log_policy(const struct managed_policy *m, enum log_level level, const char *message)
{
	const struct policy *p = &m->body->policy;
	LOG(m->controller->options.log, level, message, LOG_S("namespace", p->namespace_name), LOG_S("policy", p->name),
	    LOG_S("target", p->target_name));
}

static void enlist(struct managed_policy *m)
{
	struct controller *c = m->controller;
	struct managed_policies *all = &c->policies;
	if (all->n == all->room) {
		all->room = all->room ? all->room * 2 : 16;
		all->list = must(realloc(all->list, all->room * sizeof(struct managed_policy *)));
	}
	m->index = all->n;
	all->list[all->n++] = m;
	c->view.is_stale = true;
}

static void delist(struct managed_policy *m)
{
	struct controller *c = m->controller;
	struct managed_policies *all = &c->policies;
	all->list[m->index] = all->list[--all->n];
	all->list[m->index]->index = m->index;
	c->view.is_stale = true;
}

// Returns the time of the target's last scale by the boot clock, which is never set. A policy that returns to this
// process is restored from its status, whose times may come from a wall clock that was set meanwhile; the boot time
// keeps the cooldown from being cut short.
static int64_t boot_of_last_scale_ms(const struct managed_policy *m)
{
	const struct clock *clock = &m->controller->connections->clock;
	int64_t last_ms = reconciler_last_scale_ms(m->reconciler);
	return last_ms < 0 ? -1 : clock_boot_ms(clock) - (clock_wall_ms(clock) - last_ms);
}

static int64_t wall_of_last_scale_ms(const struct managed_policy *m)
{
	const struct clock *clock = &m->controller->connections->clock;
	return m->last_scale_boot_ms < 0 ? -1 : clock_wall_ms(clock) - (clock_boot_ms(clock) - m->last_scale_boot_ms);
}

static void drop_reconciler(struct managed_policy *m)
{
	if (!m->reconciler)
		return;
	m->last_scale_boot_ms = boot_of_last_scale_ms(m);
	scale_fight_forget_write(&m->fight); // another process may write before this one does again
	log_policy(m, LOG_DEBUG, "Policy no longer in force");
	ticks_remove(m->controller->ticks, &m->ticker);
	managed_policy_forget_look(m);
	delist(m);
	reconciler_free(m->reconciler);
	m->reconciler = NULL;
	policy_report_reset(&m->report);
	policy_ref_release(m->body);
	m->body = NULL;
	m->controller->policies.n_removed++;
}

static void forget_reconciler(struct managed_policy *m)
{
	if (!m->reconciler)
		return;
	drop_reconciler(m);
	pool_seat_forget(m->seat, clock_real_mono_us() / 1000);
}

static const struct policy_identity *identity_of(const struct managed_policy *m)
{
	return m->entry->versions[POLICY_FROM_OBJECT].identity;
}

static void create_reconciler(struct managed_policy *m, struct policy_ref *body)
{
	struct controller *c = m->controller;
	const struct policy_identity *id = identity_of(m);
	struct reconcile_subject subject = {
	        .policy = &body->policy,
	        .generation = body->generation,
	        .status = m->status,
	        // Another process may have written a status that the watch has not delivered.
	        .has_past = id ? id->has_status || c->ownership.shards : c->file_env.dir != NULL,
	        .last_scale_ms = wall_of_last_scale_ms(m),
	        .owner = m};
	m->body = policy_ref_acquire(body);
	m->term = ownership_term(m);
	m->reconciler = must(reconciler_new(&c->env, &subject));
	enlist(m);
	log_policy(m, LOG_DEBUG, "Policy in force");
	c->policies.n_added++;
}

static void change_policy(struct managed_policy *m, struct policy_ref *body)
{
	if (!controller_is_same_target(&m->body->policy, &body->policy))
		pool_seat_forget(m->seat, clock_real_mono_us() / 1000);
	if (reconciler_set_policy(m->reconciler, &body->policy, body->generation) < 0)
		abort();
	policy_report_set_policy(&m->report, &m->body->policy, &body->policy);
	managed_policy_forget_look(m);
	policy_ref_release(m->body);
	m->body = policy_ref_acquire(body);
	log_policy(m, LOG_DEBUG, "Policy changed");
	m->controller->policies.n_changed++;
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
	struct controller *c = m->controller;
	struct err e;
	const struct policy *p = &m->body->policy;
	if (ticks_add(c->ticks, &m->ticker, p->interval_ms, slot_key_of(p), &e) < 0)
		abort();
	ticks_ask(c->ticks, &m->ticker, now_ms);
}

// ---- policies without a reconciler ----

static void log_waiting(struct managed_policy *m)
{
	struct log *log = m->controller->options.log;
	const struct policy_entry *e = m->entry, *winner = policy_entry_winner(e);
	if (log_edge(&m->is_waiting, winner && winner != e) == LOG_EDGE_STARTED)
		LOG(log, LOG_WARNING, "Conflict: target is owned by another policy",
		    LOG_S("namespace", e->namespace_name), LOG_S("policy", e->name),
		    LOG_S("target", e->body->policy.target_name), LOG_S("other", winner->name));
	bool is_shadowed = e->source == POLICY_FROM_OBJECT && e->versions[POLICY_FROM_FILE].is_there;
	if (log_edge(&m->is_shadowed, is_shadowed) == LOG_EDGE_STARTED)
		LOG(log, LOG_WARNING, "Policy object overrides the policy file of the same name",
		    LOG_S("namespace", e->namespace_name), LOG_S("policy", e->name));
}

// Gives the policy the status that its source demands: an object has one in the API server, a file one in --state-dir.
static void sync_status(struct managed_policy *m)
{
	struct controller *c = m->controller;
	const struct policy_identity *id = identity_of(m);
	const struct status_env *env = id ? &c->status_env : &c->file_env;
	bool wanted = (env->writer || env->dir) && ownership_term(m);
	bool is_same = m->status && policy_status_is_file(m->status) == (env->dir != NULL);
	if (wanted == (m->status != NULL) && (!wanted || is_same))
		return;
	struct policy_status *before = m->status;
	m->status = NULL;
	if (wanted)
		m->status = must(policy_status_new(env, m->entry->namespace_name, m->entry->name, id ? id->uid : ""));
	if (m->reconciler)
		reconciler_set_status(m->reconciler, m->status);
	policy_status_free(before);
}

static void write_idle_status(struct managed_policy *m, int64_t now_ms)
{
	if (!m->status)
		return;
	char why[POLICY_ERROR_BYTES_MAX];
	struct status_update u = {.facts = {.phase = controller_why_idle(m->entry, why, sizeof why), .text = why},
	                          .now_ms = now_ms};
	if (u.facts.phase == STATUS_PHASE__COUNT)
		return; // whether the target has a conflict is not known yet
	if (u.facts.phase == STATUS_CONFLICT) {
		u.facts.fault = fault_of(m);
		u.generation = m->entry->body->generation;
	}
	policy_status_update(m->status, &u);
}

// ---- sync ----

static void sync_policy(struct managed_policy *m, int64_t now_ms)
{
	struct policy_ref *eligible = eligible_policy(m);
	conflicts_sync(m, eligible);
	bool is_member = eligible && (m->awaits_conflicts || conflicts_allow(m, eligible));
	controller_pools_sync(m, is_member ? &eligible->policy : NULL);
	if (is_busy(m))
		return; // managed_policy_finished() marks it again
	if (!m->entry) {
		if (m->restores && !policy_store_holder(m->controller->store, &m->body->policy))
			restore_replicas(&m->controller->restore_env, m->body);
		drop_reconciler(m);
		free_policy(m);
		return;
	}
	struct policy_ref *body = desired_policy(m);
	if (m->reconciler && m->term != ownership_term(m))
		forget_reconciler(m); // lost and acquired again: another process may have written in between
	log_waiting(m);
	sync_status(m);
	if (!body) {
		forget_reconciler(m);
		write_idle_status(m, now_ms);
	}
	if (body == m->body)
		return;
	if (m->reconciler)
		change_policy(m, body);
	else
		create_reconciler(m, body);
	start_ticks(m, now_ms);
}

static void log_changes(struct controller *c)
{
	struct managed_policies *all = &c->policies;
	if (all->n_added + all->n_changed + all->n_removed == 0)
		return;
	LOG(c->options.log, LOG_INFO, "Policies in force", LOG_I("policies", (int64_t)all->n),
	    LOG_I("added", (int64_t)all->n_added), LOG_I("changed", (int64_t)all->n_changed),
	    LOG_I("removed", (int64_t)all->n_removed));
	all->n_added = all->n_changed = all->n_removed = 0;
}

void policies_sync(struct controller *c)
{
	if (c->stopping || !controller_has_synced(c))
		return;
	controller_look_at_clock(c);
	int64_t now_ms = clock_wall_ms(&c->connections->clock);
	if (c->policies.dirty)
		controller_bump_revision(c);
	while (c->policies.dirty) {
		struct managed_policy *m = c->policies.dirty;
		unmark(m);
		sync_policy(m, now_ms);
	}
	log_changes(c);
	ticks_run(c->ticks);
}

bool policies_are_known(const struct controller *c)
{
	return controller_has_synced(c) && !c->policies.dirty && conflicts_awaited(c) == 0;
}

// ---- ticks ----

void managed_policy_start_tick(void *arg, struct ticker *t, int64_t now_ms)
{
	struct controller *c = arg;
	metrics_tick_delayed(c->report_env.metrics, (double)(t->since_mono_ms - t->due_mono_ms) / 1000);
	managed_policy_drop_look(managed_policy_of(t));
	reconciler_tick(managed_policy_of(t)->reconciler, now_ms);
}

void managed_policy_write(void *arg, struct ticker *t)
{
	reconciler_write(managed_policy_of(t)->reconciler);
}

bool managed_policy_take_turn(void *owner)
{
	struct managed_policy *m = owner;
	return ticks_take_turn(m->controller->ticks, &m->ticker);
}

static void report(struct managed_policy *m, const struct tick_result *result)
{
	struct controller *c = m->controller;
	policy_report_tick(&m->report, &c->report_env, m->reconciler, result);
	// Without the earlier status, a new one would overwrite what an earlier process recorded.
	// One that is deferred is followed by that of the write.
	if (result->outcome == TICK_RETRIED || result->outcome == TICK_SUPERSEDED || result->outcome == TICK_DEFERRED ||
	    !result->is_current || !result->is_restored || !m->status)
		return;
	struct policy_circumstances circumstances = circumstances_of(m);
	policy_report_status(&m->report, &c->report_env, m->reconciler, &circumstances, result, m->status);
}

void managed_policy_finished(void *owner, const struct tick_result *result)
{
	struct managed_policy *m = owner;
	struct controller *c = m->controller;
	report(m, result);
	if (result->outcome == TICK_SCALED)
		scale_fight_written(&m->fight, result->stored);
	else if (result->decision && result->decision->action == ACTION_NONE &&
	         result->decision->reason == REASON_DESIRED_WITHIN_RANGE)
		scale_fight_agreed(&m->fight, result->decision->current);
	else if (result->outcome == TICK_READ_FAILED)
		scale_fight_forget_write(&m->fight); // the target may have been created anew
	if (result->outcome == TICK_RETRIED)
		return;
	ticks_end(c->ticks, &m->ticker);
	controller_bump_revision(c);
	if (!is_current(m) || !m->entry)
		managed_policy_mark(m);
	ticks_run(c->ticks);
	controller_on_quiet(c);
}

// ---- stop ----

void policies_flush(struct controller *c)
{
	int64_t now_ms = clock_wall_ms(&c->connections->clock);
	for (size_t i = 0; i < c->policies.n; i++) {
		const struct managed_policy *m = c->policies.list[i];
		struct policy_circumstances circumstances = circumstances_of(m);
		if (m->status && policy_status_is_file(m->status))
			policy_report_flush(&m->report, &c->report_env, m->reconciler, &circumstances, now_ms,
			                    m->status);
	}
}

void policies_free(struct controller *c)
{
	c->stopping = true;
	struct managed_policy *m;
	while (c->policies.n > 0) {
		m = c->policies.list[c->policies.n - 1];
		drop_reconciler(m);
		controller_pools_leave(m);
		if (!m->entry && !m->is_dirty)
			free_policy(m);
	}
	while (c->policies.dirty) {
		m = c->policies.dirty;
		unmark(m);
		if (!m->entry)
			free_policy(m);
	}
	for (struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));) {
		m = e->user;
		policy_status_free(m->status);
		free_policy(m);
	}
	free(c->policies.list);
	free(c->view.policies);
}

const struct policy_listener policies_listener = {.on_change = on_change, .on_remove = on_remove};
