// SPDX-License-Identifier: Apache-2.0
// From the policies of the store to reconcilers at work: which there are, with which policy, and what is said about
// those that have none. Everything that may change that only marks the policy; members_settle() looks at what is so
// now and does what is missing, so the order in which things change does not matter.
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/err.h"
#include "base/log.h"
#include "controller/controller_private.h"
#include "controller/policy_body.h"

// No memory for a few kilobytes ends the process: nothing sensible could be decided, and the supervisor restarts us.
static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static struct member *member_of(struct ticker *t)
{
	uintptr_t at = (uintptr_t)t - offsetof(struct member, ticker);
	return (struct member *)at;
}

static bool is_busy(const struct member *m)
{
	return m->ticker.state == TICK_UNDER_WAY;
}

static void free_member(struct member *m)
{
	policy_body_unref(m->rivals_of);
	free(m->namespace_name);
	free(m->name);
	free(m);
}

// ---- who is to be worked on ----

// The policy that this process should be working with for this member if its target is to be had; NULL: none.
static struct policy_body *willing_body(const struct member *m)
{
	if (!m->entry || !m->entry->body || policy_entry_winner(m->entry) != m->entry || !member_term(m))
		return NULL;
	return m->entry->body;
}

static struct policy_body *wanted_body(const struct member *m)
{
	struct policy_body *body = willing_body(m);
	return body && rivals_allow(m, body) ? body : NULL;
}

bool member_is_current(void *owner)
{
	const struct member *m = owner;
	return m->body == wanted_body(m) && m->term == member_term(m);
}

const char *member_fault(void *owner)
{
	const struct member *m = owner;
	const char *error = m->entry ? policy_entry_error(m->entry) : "";
	return error[0] ? error : NULL;
}

// ---- marking ----

void member_mark(struct member *m)
{
	struct controller *c = m->controller;
	if (m->is_dirty || c->stopping)
		return;
	m->is_dirty = true;
	DL_APPEND2(c->dirty, m, previous_dirty, next_dirty);
	if (!c->soon)
		return; // not running yet
	struct timeval now = {0, 0};
	event_add(c->soon, &now);
}

static void unmark(struct member *m)
{
	if (!m->is_dirty)
		return;
	m->is_dirty = false;
	DL_DELETE2(m->controller->dirty, m, previous_dirty, next_dirty);
}

static void on_change(void *arg, struct policy_entry *entry)
{
	struct member *m = entry->user;
	if (!m) {
		m = must(calloc(1, sizeof *m));
		m->controller = arg;
		m->namespace_name = must(strdup(entry->namespace_name)); // of its own: it may outlive the entry
		m->name = must(strdup(entry->name));
		m->entry = entry;
		entry->user = m;
	}
	member_mark(m);
}

static void on_remove(void *arg, struct policy_entry *entry, bool deleted)
{
	const struct controller *c = arg;
	struct member *m = entry->user;
	m->entry = NULL;
	m->restores = deleted && m->reconciler && m->body->policy.restore_set && !m->body->policy.dry_run &&
	              !m->body->policy.paused && !c->options.dry_run && m->term == member_term(m);
	policy_status_free(m->status); // there is no object to write it to
	m->status = NULL;
	member_mark(m);
}

// ---- reconcilers ----

static void log_member(const struct member *m, enum log_level level, const char *message)
{
	const struct policy *p = &m->body->policy;
	LOG(m->controller->options.log, level, message, LOG_S("namespace", p->namespace_name), LOG_S("policy", p->name),
	    LOG_S("target", p->target_name));
}

static void enlist(struct member *m)
{
	struct controller *c = m->controller;
	if (c->n_members == c->members_room) {
		c->members_room = c->members_room ? c->members_room * 2 : 16;
		c->members = must(realloc(c->members, c->members_room * sizeof(struct member *)));
	}
	m->index = c->n_members;
	c->members[c->n_members++] = m;
	c->view_is_stale = true;
}

static void delist(struct member *m)
{
	struct controller *c = m->controller;
	c->members[m->index] = c->members[--c->n_members];
	c->members[m->index]->index = m->index;
	c->view_is_stale = true;
}

static void drop_reconciler(struct member *m)
{
	if (!m->reconciler)
		return;
	log_member(m, LOG_DEBUG, "Policy out of force");
	ticks_remove(m->controller->ticks, &m->ticker);
	delist(m);
	reconciler_free(m->reconciler);
	m->reconciler = NULL;
	policy_body_unref(m->body);
	m->body = NULL;
	m->controller->n_removed++;
}

static const struct policy_identity *identity_of(const struct member *m)
{
	return m->entry->versions[POLICY_FROM_OBJECT].identity;
}

static void make_reconciler(struct member *m, struct policy_body *body)
{
	struct controller *c = m->controller;
	const struct policy_identity *id = identity_of(m);
	struct reconcile_subject subject = {.policy = &body->policy,
	                                    .generation = body->generation,
	                                    .status = m->status,
	                                    // With others beside us the newest word may not have reached us yet.
	                                    .has_past = id && (id->has_status || c->shards),
	                                    .owner = m};
	m->body = policy_body_ref(body);
	m->term = member_term(m);
	m->reconciler = must(reconciler_new(&c->env, &subject));
	enlist(m);
	log_member(m, LOG_DEBUG, "Policy in force");
	c->n_added++;
}

static void change_policy(struct member *m, struct policy_body *body)
{
	if (reconciler_set_policy(m->reconciler, &body->policy, body->generation) < 0)
		abort();
	policy_body_unref(m->body);
	m->body = policy_body_ref(body);
	log_member(m, LOG_DEBUG, "Policy changed");
	m->controller->n_changed++;
}

// A new or changed policy does not wait for its interval to pass. All of one settling tick as of the same time, so that
// equal queries are asked once.
static void start_ticks(struct member *m, int64_t now_ms)
{
	struct controller *c = m->controller;
	struct err e;
	if (ticks_add(c->ticks, &m->ticker, m->body->policy.interval_ms, &e) < 0)
		abort();
	ticks_ask(c->ticks, &m->ticker, now_ms);
}

// ---- what is said about those without one ----

static void say_waiting(struct member *m)
{
	const struct policy_entry *winner = policy_entry_winner(m->entry);
	bool waits = winner && winner != m->entry;
	if (waits && !m->said_waiting)
		LOG(m->controller->options.log, LOG_WARNING, "Policy waits: another one has its target",
		    LOG_S("namespace", m->entry->namespace_name), LOG_S("policy", m->entry->name),
		    LOG_S("target", m->entry->body->policy.target_name), LOG_S("other", winner->name));
	m->said_waiting = waits;
	bool shadowed = m->entry->source == POLICY_FROM_OBJECT && m->entry->versions[POLICY_FROM_FILE].is_there;
	if (shadowed && !m->said_shadowed)
		LOG(m->controller->options.log, LOG_WARNING, "The policy in the cluster goes before the one in a file",
		    LOG_S("namespace", m->entry->namespace_name), LOG_S("policy", m->entry->name));
	m->said_shadowed = shadowed;
}

// The status goes with the object: a name that is a file's now has none.
static void settle_status(struct member *m)
{
	struct controller *c = m->controller;
	const struct policy_identity *id = identity_of(m);
	bool wanted = id && c->status_env.writer && member_term(m);
	if (wanted == (m->status != NULL))
		return;
	struct policy_status *before = m->status;
	m->status = NULL;
	if (wanted)
		m->status = must(policy_status_new(&c->status_env, m->entry->namespace_name, m->entry->name, id->uid));
	if (m->reconciler)
		reconciler_set_status(m->reconciler, m->status);
	policy_status_free(before);
}

static void update_status(struct member *m, int64_t now_ms)
{
	if (!m->status)
		return;
	char why[POLICY_ERROR_BYTES_MAX];
	struct status_update u = {.facts = {.phase = controller_why_idle(m->entry, why, sizeof why), .text = why},
	                          .now_ms = now_ms};
	if (u.facts.phase == STATUS_PHASE__COUNT)
		return; // who else drives the target is not known yet
	if (u.facts.phase == STATUS_CONFLICT) {
		u.facts.fault = member_fault(m);
		u.generation = m->entry->body->generation;
	}
	policy_status_update(m->status, &u);
}

// ---- settling ----

static void settle(struct member *m, int64_t now_ms)
{
	rivals_settle(m, willing_body(m));
	if (is_busy(m))
		return; // when the tick ends
	if (!m->entry) {
		if (m->restores && !policy_store_holder(m->controller->store, &m->body->policy))
			restore_replicas(&m->controller->restore_env, m->body);
		drop_reconciler(m);
		free_member(m);
		return;
	}
	struct policy_body *body = wanted_body(m);
	if (m->reconciler && m->term != member_term(m))
		drop_reconciler(m); // lost, and gained again: others may have worked on it in between
	say_waiting(m);
	settle_status(m);
	if (!body) {
		drop_reconciler(m);
		update_status(m, now_ms);
	}
	if (body == m->body)
		return;
	if (m->reconciler)
		change_policy(m, body);
	else
		make_reconciler(m, body);
	start_ticks(m, now_ms);
}

static void log_changes(struct controller *c)
{
	if (c->n_added + c->n_changed + c->n_removed == 0)
		return;
	LOG(c->options.log, LOG_INFO, "Policies in force", LOG_I("policies", (int64_t)c->n_members),
	    LOG_I("added", (int64_t)c->n_added), LOG_I("changed", (int64_t)c->n_changed),
	    LOG_I("removed", (int64_t)c->n_removed));
	c->n_added = c->n_changed = c->n_removed = 0;
}

void members_settle(struct controller *c)
{
	if (c->stopping || !controller_is_settled(c))
		return;
	int64_t now_ms = clock_wall_ms(&c->connections->clock);
	if (c->dirty)
		controller_touch(c);
	while (c->dirty) {
		struct member *m = c->dirty;
		unmark(m);
		settle(m, now_ms);
	}
	log_changes(c);
	ticks_run(c->ticks);
}

void member_on_idle(void *owner)
{
	struct member *m = owner;
	struct controller *c = m->controller;
	ticks_end(c->ticks, &m->ticker);
	controller_touch(c);
	if (!member_is_current(m) || !m->entry)
		member_mark(m);
	ticks_run(c->ticks);
	controller_on_quiet(c);
}

void members_free(struct controller *c)
{
	c->stopping = true;
	struct member *m;
	while (c->n_members > 0) {
		m = c->members[c->n_members - 1];
		drop_reconciler(m);
		if (!m->entry && !m->is_dirty)
			free_member(m);
	}
	while (c->dirty) {
		m = c->dirty;
		unmark(m);
		if (!m->entry)
			free_member(m);
	}
	for (struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));) {
		m = e->user;
		policy_status_free(m->status);
		free_member(m);
	}
	free(c->members);
	free(c->view);
}

void member_start_tick(void *arg, struct ticker *t, int64_t now_ms)
{
	(void)arg;
	reconciler_tick(member_of(t)->reconciler, now_ms);
}

const struct policy_listener member_listener = {.on_change = on_change, .on_remove = on_remove};
