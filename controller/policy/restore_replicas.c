// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/restore_replicas.h"

#include <stdlib.h>

#include "base/err.h"
#include "base/must.h"
#include "base/process/log.h"
#include "controller/tick/observe.h"
#include "k8s/client/scale.h"
#include "policies/load/policy_ref.h"

struct restore {
	const struct restore_env *env;
	struct policy_ref *body; // one reference
	const struct binding *binding;
	int conflicts;
};

static void end(struct restore *r)
{
	policy_ref_release(r->body);
	free(r);
}

static void fail(struct restore *r, const struct err *e)
{
	const struct policy *p = &r->body->policy;
	if (e->kind != ERR_CANCELED)
		LOG(r->env->log, LOG_ERROR, "Cannot set restoreReplicas of a deleted policy",
		    LOG_S("namespace", p->namespace_name), LOG_S("policy", p->name),
		    LOG_S("target", r->binding->target->name), LOG_S("err", e->msg));
	end(r);
}

static void begin(struct restore *r);

static void on_written(void *arg, const struct scale *scale, const struct err *error)
{
	struct restore *r = arg;
	const struct policy *p = &r->body->policy;
	if (!scale && error->kind == ERR_CONFLICT && ++r->conflicts < RESTORE_CONFLICTS_MAX) {
		begin(r);
		return;
	}
	if (!scale) {
		fail(r, error);
		return;
	}
	LOG(r->env->log, LOG_INFO, "Set restoreReplicas of a deleted policy", LOG_S("namespace", p->namespace_name),
	    LOG_S("policy", p->name), LOG_S("target", r->binding->target->name),
	    LOG_I("replicas", p->restore_replicas));
	end(r);
}

static void on_read(void *arg, const struct scale *scale, const struct err *error)
{
	struct restore *r = arg;
	struct err e;
	if (!scale) {
		fail(r, error);
		return;
	}
	if (scale->spec_replicas == r->body->policy.restore_replicas) {
		end(r);
		return;
	}
	struct scale_ref ref = binding_scale_ref(r->binding);
	if (!r->env->may_write(r->env->arg, r->body, &e) ||
	    scale_patch(r->env->k8s, &ref, scale->resource_version, r->body->policy.restore_replicas, on_written, r,
	                &e) < 0)
		fail(r, &e);
}

static void begin(struct restore *r)
{
	struct err e;
	struct scale_ref ref = binding_scale_ref(r->binding);
	if (scale_get(r->env->k8s, &ref, on_read, r, &e) < 0)
		fail(r, &e);
}

void restore_replicas(const struct restore_env *env, struct policy_ref *body, const struct binding *binding)
{
	struct restore *r = must_alloc(calloc(1, sizeof *r));
	r->env = env;
	r->body = policy_ref_acquire(body);
	r->binding = binding;
	begin(r);
}
