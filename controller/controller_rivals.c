// SPDX-License-Identifier: Apache-2.0
// Who else drives the targets: a policy whose target a HorizontalPodAutoscaler or a ScaledObject drives has no
// reconciler until that leaves, unless it writes nothing: it may be the one that serves the other's metric. What may
// not be looked at refuses nothing, but is said.
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "controller/controller_private.h"
#include "controller/policy_body.h"
#include "k8s/scalers.h"

struct rivals {
	struct scalers *scalers;
	size_t n_waiting;  // members about which too little is known yet
	char *error_said;  // in the log; NULL: none
	bool said_no_want; // a target could not be asked about
};

static void on_change(void *arg, void *user)
{
	(void)arg;
	member_mark(user);
}

int rivals_open(struct controller *c, struct err *e)
{
	const struct scalers_options options = {.client = c->connections->k8s, .on_change = on_change, .arg = c};
	c->rivals = calloc(1, sizeof *c->rivals);
	if (!c->rivals)
		return err_set(e, ERR_INTERNAL, "out of memory");
	c->rivals->scalers = scalers_new(&options, e);
	return c->rivals->scalers ? 0 : -1;
}

void rivals_close(struct controller *c)
{
	if (!c->rivals)
		return;
	scalers_free(c->rivals->scalers); // the members' wants with it
	free(c->rivals->error_said);
	free(c->rivals);
	c->rivals = NULL;
}

bool rivals_are_waited_for(const struct controller *c)
{
	return c->rivals && c->rivals->n_waiting > 0;
}

// ---- one member ----

static void forget(struct member *m)
{
	if (m->waits_for_rivals)
		m->controller->rivals->n_waiting--;
	m->waits_for_rivals = false;
	scalers_unwant(m->rivals_want);
	m->rivals_want = NULL;
	policy_body_unref(m->rivals_of);
	m->rivals_of = NULL;
}

static bool is_same_target(const struct policy *a, const struct policy *b)
{
	return strcmp(a->target_api_version, b->target_api_version) == 0 &&
	       strcmp(a->target_kind, b->target_kind) == 0 && strcmp(a->target_name, b->target_name) == 0;
}

// Each error once, until there was none.
static void log_error(struct controller *c, const char *error)
{
	struct rivals *r = c->rivals;
	if (error ? r->error_said && strcmp(r->error_said, error) == 0 : !r->error_said)
		return;
	char *said = r->error_said;
	r->error_said = error ? strdup(error) : NULL;
	if (error)
		LOG(c->options.log, LOG_WARNING,
		    "Cannot see who else scales; a target that is driven by another one may be missed",
		    LOG_S("err", error));
	else
		LOG(c->options.log, LOG_INFO, "Sees again who else scales", LOG_S("last", said));
	free(said);
}

static void log_rival(struct member *m, const char *owner)
{
	struct controller *c = m->controller;
	const struct policy *p = &m->rivals_of->policy;
	if (owner && !m->said_rival)
		LOG(c->options.log, LOG_WARNING, "Policy waits: its target is driven by another one",
		    LOG_S("namespace", m->namespace_name), LOG_S("policy", m->name), LOG_S("target", p->target_name),
		    LOG_S("other", owner));
	else if (!owner && m->said_rival)
		LOG(c->options.log, LOG_INFO, "Nobody else drives the policy's target any more",
		    LOG_S("namespace", m->namespace_name), LOG_S("policy", m->name), LOG_S("target", p->target_name));
	m->said_rival = owner != NULL;
}

void rivals_settle(struct member *m, struct policy_body *body)
{
	struct rivals *r = m->controller->rivals;
	struct err e;
	if (!r)
		return;
	if (m->rivals_of && (!body || !is_same_target(&m->rivals_of->policy, &body->policy)))
		forget(m);
	if (!body)
		return;
	if (m->rivals_of && m->rivals_of != body) { // the same target, in a newer policy
		policy_body_unref(m->rivals_of);
		m->rivals_of = policy_body_ref(body);
	}
	if (!m->rivals_want) {
		struct scale_ref ref = policy_scale_ref(&body->policy);
		if (!m->rivals_of)
			m->rivals_of = policy_body_ref(body);
		m->rivals_want = scalers_want(r->scalers, &ref, m, &e);
		if (!m->rivals_want && !r->said_no_want)
			LOG(m->controller->options.log, LOG_WARNING, "Cannot see who else scales",
			    LOG_S("namespace", m->namespace_name), LOG_S("policy", m->name), LOG_S("err", e.msg));
		r->said_no_want = r->said_no_want || !m->rivals_want;
	}
	if (!m->rivals_want)
		return;
	bool waits = !rivals_allow(m, body) && !scalers_owner(m->rivals_want);
	r->n_waiting += waits && !m->waits_for_rivals;
	r->n_waiting -= !waits && m->waits_for_rivals;
	m->waits_for_rivals = waits;
	log_error(m->controller, scalers_error(m->rivals_want));
	log_rival(m, rivals_allow(m, body) ? NULL : scalers_owner(m->rivals_want));
}

bool rivals_allow(const struct member *m, const struct policy_body *body)
{
	bool writes = !m->controller->options.dry_run && !body->policy.dry_run && !body->policy.paused;
	return !writes || !m->controller->rivals || !m->rivals_want ||
	       (scalers_is_known(m->rivals_want) && !scalers_owner(m->rivals_want));
}

const char *rivals_owner(const struct member *m)
{
	return m->controller->rivals && m->rivals_want ? scalers_owner(m->rivals_want) : NULL;
}

const char *member_rival(void *owner)
{
	return rivals_owner(owner);
}

const char *member_unseen(void *owner)
{
	const struct member *m = owner;
	return m->controller->rivals && m->rivals_want ? scalers_error(m->rivals_want) : NULL;
}
