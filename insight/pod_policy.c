// SPDX-License-Identifier: Apache-2.0
#include "insight/pod_policy.h"

#include <stdbool.h>
#include <string.h>

#include "policies/load/policy_ref.h"

#define LETTERS "abcdefghijklmnopqrstuvwxyz0123456789"

// "HASH-SUFFIX": what a ReplicaSet of a Deployment adds to its name.
static bool is_replica_set_part(const char *rest)
{
	size_t hash = strspn(rest, LETTERS);
	return hash > 0 && rest[hash] == '-' && strspn(rest + hash + 1, LETTERS) == 5 && rest[hash + 6] == '\0';
}

static bool is_number(const char *rest)
{
	size_t n = strspn(rest, "0123456789");
	return n > 0 && rest[n] == '\0';
}

static bool is_pod_of(const struct scale_target *t, const char *pod)
{
	size_t len = strlen(t->name);
	if (strncmp(pod, t->name, len) != 0 || pod[len] != '-')
		return false;
	const char *rest = pod + len + 1;
	if (strcmp(t->kind, "Deployment") == 0)
		return is_replica_set_part(rest);
	return strcmp(t->kind, "StatefulSet") == 0 ? is_number(rest) : rest[0] != '\0';
}

const struct policy *pod_policy_find(const struct policy *const *policies, size_t n, const char *namespace_name,
                                     const char *pod)
{
	const struct binding *found = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct policy_ref *ref = policy_ref_of(policies[i]);
		if (strcmp(policies[i]->namespace_name, namespace_name) != 0)
			continue;
		for (const struct binding *b = ref->bindings; b < ref->bindings + ref->n_bindings; b++)
			if (is_pod_of(b->target, pod) &&
			    (!found || strlen(b->target->name) > strlen(found->target->name)))
				found = b;
	}
	return found ? found->policy : NULL;
}
