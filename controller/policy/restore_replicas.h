// SPDX-License-Identifier: Apache-2.0
// Applies spec.restoreReplicas when its policy is deleted: sets the target's replicas once.
#ifndef GPUSCALE_CONTROLLER_POLICY_RESTORE_REPLICAS_H
#define GPUSCALE_CONTROLLER_POLICY_RESTORE_REPLICAS_H

#include <stdbool.h>

struct binding;
struct err;
struct k8s_client;
struct log;
struct policy_ref;

#define RESTORE_CONFLICTS_MAX 3 // attempts when another client writes the target at the same time

struct restore_env { // nothing of it owned
	struct k8s_client *k8s;
	struct log *log;
	// Returns whether the target of the policy may be written now; else *e says why not.
	bool (*may_write)(void *arg, const struct policy_ref *body, struct err *e);
	void *arg;
};

// Reads the scale of the target of `binding`, one of `body`, sets it if it differs, and logs the outcome. A policy that
// is deleted while no controller runs restores nothing. env must outlive the k8s_client.
void restore_replicas(const struct restore_env *env, struct policy_ref *body, const struct binding *binding);

#endif
