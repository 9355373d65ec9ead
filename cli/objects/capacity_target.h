// SPDX-License-Identifier: Apache-2.0
// What `gpuscale capacity` shows of one policy: what a replica of its target needs, how many more fit, and why no more.
#ifndef GPUSCALE_CLI_OBJECTS_CAPACITY_TARGET_H
#define GPUSCALE_CLI_OBJECTS_CAPACITY_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "cli/objects/kueue_quota.h"
#include "k8s/capacity/capacity.h"
#include "k8s/capacity/shape_fetch.h"

struct connections;

struct capacity_target {
	const char *namespace_name, *name;            // of the policy
	const char *api_version, *kind, *target_name; // of its target
	const char *path;                             // of its replicas; NULL: that of the kind
	struct err error;                             // kind ERR_NONE: the following is valid
	struct target_shape target;
	size_t pending; // pods of the target without a node
	struct fit_result fit;
	char why[FIT_WHY_BYTES];
	char cluster_queue[KUEUE_NAME_BYTES]; // of Kueue; it admits the pods; "": none, or unknown
	bool is_quota_limited;                // the quota of cluster_queue is why no more fit
	char message[CAPACITY_MESSAGE_BYTES]; // of the scheduler, about one of the pending pods; "": none
};

// Fetches the target and, where `quotas` has any, its queue, and computes the rest, for a target whose first six
// members are set. Errors are in t->error. Call capacity_target_done() in any case.
void capacity_target_read(struct capacity_target *t, struct connections *session, struct capacity *capacity,
                          const struct kueue_quotas *quotas);
void capacity_target_done(struct capacity_target *t);
// Writes what one replica needs: "2 nvidia.com/gpu"; "no GPU" when it requests no accelerator.
#define CAPACITY_NEEDS_BYTES 256
void capacity_target_needs(const struct capacity_target *t, const struct resource_names *names,
                           char out[CAPACITY_NEEDS_BYTES]);

#endif
