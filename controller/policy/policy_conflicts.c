// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/policy_conflicts.h"

#include <utlist.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "controller/source/policy_store.h"
#include "controller/tick/observe.h"
#include "k8s/cache/conflict_watch.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/scale.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/binding.h"
#include "runtime/connections.h"
#include "runtime/log_edge.h"

#define MANAGER_TIMEOUT_MS 5000
#define MANAGER_ATTEMPTS   2
#define MANAGER_PATH_BYTES 1024 // apiVersion, plural, namespace and name, each of at most 319 bytes
#define DURATION_MIN_MS    1000
#define DURATION_MAX_MS    600000 // a longer leaseDurationSeconds is treated as this

// ---- KEDA's operator ----

static void set_state(struct keda_watch *w, enum keda_state state)
{
	if (state == w->state)
		return;
	w->state = state;
	if (state != KEDA_UNREADABLE)
		LOG(w->options.log, LOG_INFO,
		    state == KEDA_RUNS ? "KEDA's operator runs; ScaledObjects are left to it"
		                       : "KEDA's operator does not run; acting on ScaledObjects",
		    LOG_S("lease", w->key));
	w->options.on_change(w->options.arg);
}

static void on_expiry(evutil_socket_t fd, short what, void *arg)
{
	set_state(arg, KEDA_STOPPED);
}

// The stamps come from another machine, so a Lease counts as renewed when its stamp changes.
static void on_lease(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                     const char *json, size_t len)
{
	struct keda_watch *w = arg;
	struct lease_record record;
	struct err e;
	if (!item)
		return; // another Lease of the namespace
	if (lease_item_decode(json, len, &record, &e) < 0) {
		LOG(w->options.log, LOG_ERROR, "Cannot read the Lease of KEDA's operator", LOG_S("err", e.msg));
		return;
	}
	if (!record.holder[0]) {
		event_del(&w->expiry);
		set_state(w, KEDA_STOPPED);
		return;
	}
	if (w->state != KEDA_UNKNOWN && w->state != KEDA_UNREADABLE && strcmp(record.renew_stamp, w->renewed) == 0)
		return;
	int64_t ms = record.duration_ms < DURATION_MIN_MS   ? DURATION_MIN_MS
	             : record.duration_ms > DURATION_MAX_MS ? DURATION_MAX_MS
	                                                    : record.duration_ms;
	snprintf(w->renewed, sizeof w->renewed, "%s", record.renew_stamp);
	snprintf(w->text, sizeof w->text, "KEDA's operator (Lease %.200s, held by %.200s)", w->key, record.holder);
	timer_start(&w->expiry, ms);
	set_state(w, KEDA_RUNS);
}

static void on_no_lease(void *arg, struct informer_item *item)
{
	struct keda_watch *w = arg;
	event_del(&w->expiry);
	set_state(w, KEDA_STOPPED);
}

static void on_lease_error(void *arg, const char *what, const struct err *error)
{
	struct keda_watch *w = arg;
	if (error && !w->has_error)
		LOG(w->options.log, LOG_ERROR, "Cannot watch the Lease of KEDA's operator", LOG_S("lease", w->key),
		    LOG_S("err", error->msg));
	w->has_error = error != NULL;
	if (error && (w->state == KEDA_UNKNOWN || w->state == KEDA_UNREADABLE)) { // later, the last state stays
		snprintf(w->text, sizeof w->text, "KEDA's operator, whose Lease %.200s cannot be read (%.200s),",
		         w->key, error->msg);
		set_state(w, KEDA_UNREADABLE);
	}
}

struct keda_watch *keda_watch_new(const struct keda_watch_options *options, struct err *e)
{
	struct keda_watch *w = must_alloc(calloc(1, sizeof *w));
	w->options = *options;
	snprintf(w->key, sizeof w->key, "%s/" KEDA_LEASE, options->namespace_name);
	snprintf(w->text, sizeof w->text, "KEDA's operator (Lease %.200s)", w->key);
	evtimer_assign(&w->expiry, options->client->options.loop, on_expiry, w);
	w->informer = informer_new(
	        &(struct informer_options){
	                .client = options->client,
	                .group_path = "/apis/coordination.k8s.io/v1",
	                .plural = "leases",
	                .callbacks = {.on_object = on_lease, .on_absent = on_no_lease, .on_error = on_lease_error},
	                .arg = w},
	        e);
	if (w->informer && informer_put(w->informer, &w->lease, w->key, NULL, e) == 0)
		return w;
	keda_watch_free(w);
	return NULL;
}

void keda_watch_free(struct keda_watch *w)
{
	if (!w)
		return;
	informer_remove(&w->lease);
	informer_free(w->informer);
	event_del(&w->expiry);
	free(w);
}

// ---- conflicts of all policies ----

static void on_change(void *arg, void *user)
{
	if (user)
		managed_policy_mark(user);
}

struct conflicts *conflicts_new(struct managed_policies *all, struct err *e)
{
	const struct conflict_watch_options options = {
	        .client = all->connections->k8s, .on_change = on_change, .skip_scaled_objects = all->keda != NULL};
	struct conflicts *c = must_alloc(calloc(1, sizeof *c));
	c->watch = conflict_watch_new(&options, e);
	if (c->watch)
		return c;
	free(c);
	return NULL;
}

static void pause_free(struct conflict_pause *p)
{
	if (!p)
		return;
	if (p->asking)
		k8s_call_cancel(p->asking);
	event_del(&p->timer);
	DL_DELETE(p->m->all->conflicts->pauses, p);
	p->m->pause = NULL;
	free(p->path);
	free(p);
}

void conflicts_free(struct conflicts *c)
{
	if (!c)
		return;
	while (c->pauses)
		pause_free(c->pauses);
	conflict_watch_free(c->watch); // and the wants of all policies
	free(c->error);
	free(c);
}

// ---- another client keeps changing the target ----

static void set_client(struct conflict_pause *p, const char *manager)
{
	if (manager[0])
		snprintf(p->who, sizeof p->who, "field manager \"%s\"", manager);
	else
		snprintf(p->who, sizeof p->who, "another client");
	managed_policy_mark(p->m);
}

static void resume(struct conflict_pause *p)
{
	struct managed_policy *m = p->m;
	pause_free(p);
	managed_policy_mark(m);
}

// A target that was created again has other replicas, too, and no other client.
static void on_target(void *arg, const struct http_response *response, const struct err *error)
{
	struct conflict_pause *p = arg;
	char manager[CONFLICT_MANAGER_BYTES] = "";
	p->asking = NULL;
	if (error && error->kind == ERR_CANCELED)
		return; // the pause is being freed, or the connections are being closed
	int64_t created_ms =
	        response ? scale_fight_manager(response->body, response->body_len, p->path, manager, sizeof manager)
	                 : -1;
	const struct clock *clock = &p->m->all->connections->clock;
	int64_t age_ms = clock_wall_ms(clock) - created_ms;
	// The creation is rounded down to a second.
	if (created_ms >= 0 && age_ms < clock_mono_ms(clock) - p->m->fight.since_ms + 1000) {
		p->m->fight = (struct scale_fight){0};
		resume(p);
	} else {
		set_client(p, manager);
	}
}

// Asks who changed the replicas: a list of one object, so that the rights of the watch suffice. The value of the other
// client is in place now, so it is the last one that changed it.
static void ask_for_manager(struct conflict_pause *p, const struct binding *binding)
{
	struct k8s_client *k8s = p->m->all->connections->k8s;
	const struct scale_target *target = binding->target;
	const struct k8s_resource *resource = discovery_find(k8s->discovery, target->api_version, target->kind, false);
	char path[MANAGER_PATH_BYTES];
	struct err e;
	if (resource)
		snprintf(path, sizeof path, "%s%s/namespaces/%s/%s?fieldSelector=metadata.name%%3D%s",
		         strchr(target->api_version, '/') ? "/apis/" : "/api/", target->api_version,
		         binding->policy->namespace_name, resource->plural, target->name);
	if (!resource || k8s_request_with(k8s,
	                                  &(struct k8s_request_options){.method = "GET",
	                                                                .path = path,
	                                                                .timeout_ms = MANAGER_TIMEOUT_MS,
	                                                                .max_attempts = MANAGER_ATTEMPTS,
	                                                                .done = on_target,
	                                                                .arg = p},
	                                  &p->asking, &e) < 0)
		set_client(p, "");
}

static void on_resume(evutil_socket_t fd, short what, void *arg)
{
	resume(arg);
}

bool conflicts_yield(void *owner, int32_t from, int32_t to)
{
	struct managed_policy *m = owner;
	const struct connections *connections = m->all->connections;
	const struct policy *policy = &m->body->policy;
	int64_t ms = scale_fight_check(&m->fight, from, to, policy->interval_ms, clock_mono_ms(&connections->clock));
	if (ms == 0 || !m->all->conflicts)
		return false;
	struct conflict_pause *p = must_alloc(calloc(1, sizeof *p));
	p->m = m;
	p->until_ms = clock_wall_ms(&connections->clock) + ms;
	evtimer_assign(&p->timer, connections->loop, on_resume, p);
	timer_start(&p->timer, ms);
	DL_APPEND(m->all->conflicts->pauses, p);
	m->pause = p;
	struct scale_ref ref = binding_scale_ref(managed_policy_binding(m, m->body));
	p->path = ref.path ? must_alloc(strdup(ref.path)) : NULL;
	ask_for_manager(p, managed_policy_binding(m, m->body));
	return true;
}

// ---- one policy ----

static void forget(struct managed_policy *m)
{
	m->all->conflicts->n_blind -= m->is_blind;
	m->is_blind = false;
	if (m->all->conflicts->blind == m)
		m->all->conflicts->blind = NULL;
	pause_free(m->pause);
	m->fight = (struct scale_fight){0};
	for (size_t i = 0; i < m->n_conflict_interests; i++)
		conflict_watch_release(m->conflict_interests[i]);
	free(m->conflict_interests);
	m->conflict_interests = NULL;
	m->n_conflict_interests = 0;
	policy_ref_release(m->conflicts_of);
	m->conflicts_of = NULL;
}

// Logs the error of one policy when it starts or changes, and the end of the last one: each namespace may have an error
// of its own.
static void log_error(struct managed_policy *m, const char *error)
{
	struct log *log = m->all->log;
	struct conflicts *all = m->all->conflicts;
	enum log_edge edge = log_edge(&m->is_blind, error != NULL);
	all->n_blind += edge == LOG_EDGE_STARTED;
	all->n_blind -= edge == LOG_EDGE_ENDED;
	if (error && (!all->blind || (all->blind == m && strcmp(all->error, error) != 0))) {
		free(all->error);
		all->error = must_alloc(strdup(error));
		all->blind = m;
		LOG(log, LOG_WARNING, "Cannot watch other autoscalers; conflicts may go undetected",
		    LOG_S("err", error));
	}
	if (!error && all->blind == m)
		all->blind = NULL;
	if (edge == LOG_EDGE_ENDED && all->n_blind == 0)
		LOG(log, LOG_INFO, "Autoscaler conflict detection recovered", LOG_S("last", all->error));
}

// Logs the result of conflicts_find(), which must not be NULL.
static void log_started(const struct managed_policy *m)
{
	LOG(m->all->log, LOG_WARNING,
	    m->pause ? "Conflict: another client keeps changing the replicas"
	             : "Conflict: target is managed by another autoscaler",
	    LOG_POLICY(m), LOG_S("target", managed_policy_binding(m, m->conflicts_of)->target->name),
	    LOG_S("other", conflicts_find(m)));
}

// Watches for autoscalers of target i of the binding, unless they are watched already.
static void watch_target(struct managed_policy *m, const struct binding *binding, size_t i)
{
	struct conflicts *all = m->all->conflicts;
	const struct scale_target *t = binding_target(binding, i);
	struct scale_ref ref = {t->api_version, t->kind, binding->policy->namespace_name, t->name, t->path};
	struct err e;
	if (m->conflict_interests[i])
		return;
	m->conflict_interests[i] = conflict_watch_acquire(all->watch, &ref, m, &e);
	if (!m->conflict_interests[i] && !all->has_logged_target)
		LOG(m->all->log, LOG_WARNING, "Cannot watch target for conflicting autoscalers", LOG_POLICY(m),
		    LOG_S(m->key ? "target" : NULL, m->key), LOG_S("err", e.msg));
	all->has_logged_target = all->has_logged_target || !m->conflict_interests[i];
}

void conflicts_sync(struct managed_policy *m, struct policy_ref *body)
{
	struct conflicts *all = m->all->conflicts;
	if (!all)
		return;
	const struct binding *binding = body ? managed_policy_binding(m, body) : NULL;
	if (m->conflicts_of &&
	    (!body || !binding_has_same_targets(managed_policy_binding(m, m->conflicts_of), binding)))
		forget(m);
	if (!body)
		return;
	if (m->conflicts_of != body) { // the same targets, in a newer policy, or the first version
		policy_ref_release(m->conflicts_of);
		m->conflicts_of = policy_ref_acquire(body);
	}
	if (!m->conflict_interests) {
		m->n_conflict_interests = binding_targets(binding);
		m->conflict_interests = must_alloc(calloc(m->n_conflict_interests, sizeof(struct conflict_interest *)));
	}
	for (size_t i = 0; i < m->n_conflict_interests; i++)
		watch_target(m, binding, i);
	if (m->conflict_interests[0])
		log_error(m, conflicts_watch_error(m));
}

// Returns the state of KEDA's operator as far as it concerns the policy.
static enum keda_state keda_state_for(const struct managed_policy *m)
{
	bool concerns = m->all->keda && m->stored && m->stored->entry->source == POLICY_FROM_SCALED_OBJECT;
	return concerns ? m->all->keda->state : KEDA_STOPPED;
}

// Returns whether no other autoscaler is known to control the target, or this policy writes nothing to it.
static bool allow(const struct managed_policy *m, const struct policy_ref *body)
{
	bool writes = !m->all->dry_run && !body->policy.dry_run && !body->policy.paused;
	if (!writes || !m->all->conflicts)
		return true;
	if (keda_state_for(m) != KEDA_STOPPED)
		return false;
	bool is_free = !m->pause;
	for (size_t i = 0; i < m->n_conflict_interests; i++) {
		const struct conflict_interest *c = m->conflict_interests[i];
		is_free = is_free && (!c || (conflict_watch_is_known(c) && !conflict_watch_find(c)));
	}
	return is_free;
}

const char *conflicts_find(const struct managed_policy *m)
{
	enum keda_state keda = keda_state_for(m);
	if (keda == KEDA_RUNS || keda == KEDA_UNREADABLE)
		return m->all->keda->text;
	const char *found = NULL;
	for (size_t i = 0; m->all->conflicts && !found && i < m->n_conflict_interests; i++)
		found = m->conflict_interests[i] ? conflict_watch_find(m->conflict_interests[i]) : NULL;
	return found || !m->pause || !m->pause->who[0] ? found : m->pause->who;
}

// Writes a sentence about the result of conflicts_find(), which must not be NULL.
static void explain(const struct managed_policy *m, char *ret_text, size_t size)
{
	const char *who = conflicts_find(m);
	char until[NUM_TEXT_BYTES];
	if (!m->pause || who != m->pause->who) {
		snprintf(ret_text, size, "%s drives the target", who);
		return;
	}
	num_format_rfc3339_ms(until, m->pause->until_ms);
	snprintf(ret_text, size,
	         "%s keeps changing the replicas of the target against the policy, which does not write before %s", who,
	         until);
}

const char *conflicts_watch_error(const struct managed_policy *m)
{
	const char *error = NULL;
	for (size_t i = 0; m->all->conflicts && !error && i < m->n_conflict_interests; i++)
		error = m->conflict_interests[i] ? conflict_watch_error(m->conflict_interests[i]) : NULL;
	return error;
}

// ---- what a policy awaits ----

enum policy_awaits policy_awaits_apart(const struct managed_policy *m)
{
	if (!m->stored)
		return AWAITS_REMOVAL;
	const struct stored_binding *winner = stored_binding_winner(m->stored);
	if (!winner)
		return AWAITS_VERSION;
	if (winner != m->stored)
		return AWAITS_POLICY;
	return ownership_term(m) ? AWAITS_NOTHING : AWAITS_SHARD;
}

enum policy_awaits policy_awaits_now(const struct managed_policy *m)
{
	enum policy_awaits awaits = policy_awaits_apart(m);
	if (awaits != AWAITS_NOTHING || allow(m, m->stored->entry->body))
		return awaits;
	return conflicts_find(m) ? AWAITS_AUTOSCALER : AWAITS_CONFLICTS;
}

void policy_awaits_update(struct managed_policy *m)
{
	const enum policy_awaits before = m->awaits, awaits = policy_awaits_now(m);
	if (awaits == before)
		return;
	m->awaits = awaits;
	m->all->n_conflicts_awaited -= before == AWAITS_CONFLICTS;
	m->all->n_conflicts_awaited += awaits == AWAITS_CONFLICTS;
	if (awaits == AWAITS_POLICY)
		LOG(m->all->log, LOG_WARNING, "Conflict: target is owned by another policy", LOG_POLICY(m),
		    LOG_S("target", stored_binding_awaited(m->stored)->name),
		    LOG_S("other", stored_binding_winner(m->stored)->entry->name));
	if (awaits == AWAITS_AUTOSCALER)
		log_started(m);
	else if (before == AWAITS_AUTOSCALER && awaits <= AWAITS_CONFLICTS)
		LOG(m->all->log, LOG_INFO, "Conflict resolved", LOG_POLICY(m),
		    LOG_S("target", m->stored->binding->target->name));
}

enum status_phase policy_awaits_explain(const struct managed_policy *m, char *ret_why, size_t size)
{
	const struct policy_entry *winner;
	const struct scale_target *target;
	switch (policy_awaits_now(m)) {
	case AWAITS_VERSION:
		snprintf(ret_why, size, "%s", policy_entry_error(m->stored->entry));
		return STATUS_INVALID;
	case AWAITS_POLICY:
		winner = stored_binding_winner(m->stored)->entry;
		target = stored_binding_awaited(m->stored);
		snprintf(ret_why, size, "policy %s/%s has the target %s/%s", winner->namespace_name, winner->name,
		         target->kind, target->name);
		return STATUS_CONFLICT;
	case AWAITS_AUTOSCALER:
		explain(m, ret_why, size);
		return STATUS_CONFLICT;
	default:
		snprintf(ret_why, size, "whether another autoscaler drives the target is not known yet");
		return STATUS_PHASE__COUNT;
	}
}
