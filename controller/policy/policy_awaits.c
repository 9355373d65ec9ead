// SPDX-License-Identifier: Apache-2.0
#include "controller/policy/policy_awaits.h"

#include <stdio.h>

#include "base/process/log.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/policy/policy_ownership.h"
#include "controller/source/policy_store.h"
#include "policies/schema/binding.h"

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
	if (awaits != AWAITS_NOTHING || conflicts_allow(m, m->stored->entry->body))
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
		LOG(m->all->log, LOG_WARNING, "Conflict: target is owned by another policy",
		    LOG_S("namespace", m->namespace_name), LOG_S("policy", m->name),
		    LOG_S("target", stored_binding_awaited(m->stored)->name),
		    LOG_S("other", stored_binding_winner(m->stored)->entry->name));
	if (awaits == AWAITS_AUTOSCALER)
		conflicts_log_started(m);
	else if (before == AWAITS_AUTOSCALER && awaits <= AWAITS_CONFLICTS)
		LOG(m->all->log, LOG_INFO, "Conflict resolved", LOG_S("namespace", m->namespace_name),
		    LOG_S("policy", m->name), LOG_S("target", m->stored->binding->target->name));
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
		conflicts_explain(m, ret_why, size);
		return STATUS_CONFLICT;
	default:
		snprintf(ret_why, size, "whether another autoscaler drives the target is not known yet");
		return STATUS_PHASE__COUNT;
	}
}
