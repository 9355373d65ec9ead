// SPDX-License-Identifier: Apache-2.0
// What spec.restoreReplicas asks for when its policy is deleted: the target's replicas are set to that, once.
#ifndef GPUSCALE_CONTROLLER_RESTORE_REPLICAS_H
#define GPUSCALE_CONTROLLER_RESTORE_REPLICAS_H

#include <stdbool.h>

struct err;
struct k8s_client;
struct log;
struct policy_body;

#define RESTORE_CONFLICTS_MAX 3 // tries when somebody else writes the target at the same time

struct restore_env { // nothing of it owned
	struct k8s_client *k8s;
	struct log *log;
	// May the target of the policy be written now? Else *e says why.
	bool (*may_write)(void *arg, const struct policy_body *body, struct err *e);
	void *arg;
};

// Reads the scale and sets it if it is another one; the end is logged. Best effort: a policy that is deleted while
// nobody watches restores nothing. env must outlive the k8s_client.
void restore_replicas(const struct restore_env *env, struct policy_body *body);

#endif
