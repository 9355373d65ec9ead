// SPDX-License-Identifier: Apache-2.0
// Conflicting autoscalers: while a HorizontalPodAutoscaler or a ScaledObject controls a policy's target, the policy has
// no reconciler, unless it writes nothing: the autoscaler may use one of its signals. Without the RBAC rules to watch
// them, the policy still runs and a warning is logged.
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/process/log.h"
#include "controller/controller_private.h"
#include "controller/log_edge.h"
#include "k8s/cache/conflict_watch.h"
#include "policies/load/policy_ref.h"

struct conflicts {
	struct conflict_watch *watch;
	size_t n_awaited;       // policies whose conflicts are not known yet
	char *error;            // of the watch, logged; NULL: none
	bool has_logged_target; // a target that cannot be watched was logged
};

static void on_change(void *arg, void *user)
{
	(void)arg;
	if (user)
		managed_policy_mark(user);
}

int conflicts_open(struct controller *c, struct err *e)
{
	const struct conflict_watch_options options = {.client = c->connections->k8s, .on_change = on_change, .arg = c};
	c->conflicts = calloc(1, sizeof *c->conflicts);
	if (!c->conflicts)
		return err_set(e, ERR_INTERNAL, "out of memory");
	c->conflicts->watch = conflict_watch_new(&options, e);
	return c->conflicts->watch ? 0 : -1;
}

void conflicts_close(struct controller *c)
{
	if (!c->conflicts)
		return;
	conflict_watch_free(c->conflicts->watch); // and the wants of all policies
	free(c->conflicts->error);
	free(c->conflicts);
	c->conflicts = NULL;
}

struct conflict_watch *conflicts_watch(const struct controller *c)
{
	return c->conflicts ? c->conflicts->watch : NULL;
}

size_t conflicts_awaited(const struct controller *c)
{
	return c->conflicts ? c->conflicts->n_awaited : 0;
}

// ---- one policy ----

static void forget(struct managed_policy *m)
{
	if (m->awaits_conflicts)
		m->controller->conflicts->n_awaited--;
	m->awaits_conflicts = false;
	conflict_watch_unwant(m->conflicts_want);
	m->conflicts_want = NULL;
	policy_ref_release(m->conflicts_of);
	m->conflicts_of = NULL;
}

bool controller_is_same_target(const struct policy *a, const struct policy *b)
{
	return strcmp(a->target_api_version, b->target_api_version) == 0 &&
	       strcmp(a->target_kind, b->target_kind) == 0 && strcmp(a->target_name, b->target_name) == 0;
}

// Logs each error of the watch once, and its end.
static void log_error(struct controller *c, const char *error)
{
	struct conflicts *all = c->conflicts;
	if (error ? all->error && strcmp(all->error, error) == 0 : !all->error)
		return;
	char *before = all->error;
	all->error = error ? strdup(error) : NULL;
	if (error)
		LOG(c->options.log, LOG_WARNING, "Cannot watch HPAs or ScaledObjects; conflicts may go undetected",
		    LOG_S("err", error));
	else
		LOG(c->options.log, LOG_INFO, "Autoscaler conflict detection recovered", LOG_S("last", before));
	free(before);
}

// other: the conflicting autoscaler; NULL: none.
static void log_conflict(struct managed_policy *m, const char *other)
{
	struct log *log = m->controller->options.log;
	const struct policy *p = &m->conflicts_of->policy;
	switch (log_edge(&m->has_conflict, other != NULL)) {
	case LOG_EDGE_STARTED:
		LOG(log, LOG_WARNING, "Conflict: target is managed by another autoscaler",
		    LOG_S("namespace", m->namespace_name), LOG_S("policy", m->name), LOG_S("target", p->target_name),
		    LOG_S("other", other));
		break;
	case LOG_EDGE_ENDED:
		LOG(log, LOG_INFO, "Conflict resolved", LOG_S("namespace", m->namespace_name), LOG_S("policy", m->name),
		    LOG_S("target", p->target_name));
		break;
	default:
		break;
	}
}

void conflicts_sync(struct managed_policy *m, struct policy_ref *body)
{
	struct conflicts *all = m->controller->conflicts;
	struct err e;
	if (!all)
		return;
	if (m->conflicts_of && (!body || !controller_is_same_target(&m->conflicts_of->policy, &body->policy)))
		forget(m);
	if (!body)
		return;
	if (m->conflicts_of && m->conflicts_of != body) { // the same target, in a newer policy
		policy_ref_release(m->conflicts_of);
		m->conflicts_of = policy_ref_acquire(body);
	}
	if (!m->conflicts_want) {
		struct scale_ref ref = policy_scale_ref(&body->policy);
		if (!m->conflicts_of)
			m->conflicts_of = policy_ref_acquire(body);
		m->conflicts_want = conflict_watch_want(all->watch, &ref, m, &e);
		if (!m->conflicts_want && !all->has_logged_target)
			LOG(m->controller->options.log, LOG_WARNING, "Cannot watch target for conflicting autoscalers",
			    LOG_S("namespace", m->namespace_name), LOG_S("policy", m->name), LOG_S("err", e.msg));
		all->has_logged_target = all->has_logged_target || !m->conflicts_want;
	}
	if (!m->conflicts_want)
		return;
	bool waits = !conflicts_allow(m, body) && !conflict_watch_find(m->conflicts_want);
	all->n_awaited += waits && !m->awaits_conflicts;
	all->n_awaited -= !waits && m->awaits_conflicts;
	m->awaits_conflicts = waits;
	log_error(m->controller, conflict_watch_error(m->conflicts_want));
	log_conflict(m, conflicts_allow(m, body) ? NULL : conflict_watch_find(m->conflicts_want));
}

bool conflicts_allow(const struct managed_policy *m, const struct policy_ref *body)
{
	bool writes = !m->controller->options.dry_run && !body->policy.dry_run && !body->policy.paused;
	return !writes || !m->controller->conflicts || !m->conflicts_want ||
	       (conflict_watch_is_known(m->conflicts_want) && !conflict_watch_find(m->conflicts_want));
}

const char *conflicts_find(const struct managed_policy *m)
{
	return m->controller->conflicts && m->conflicts_want ? conflict_watch_find(m->conflicts_want) : NULL;
}

const char *conflicts_watch_error(const struct managed_policy *m)
{
	return m->controller->conflicts && m->conflicts_want ? conflict_watch_error(m->conflicts_want) : NULL;
}
