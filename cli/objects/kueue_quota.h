// SPDX-License-Identifier: Apache-2.0
// Quota of Kueue's ClusterQueues, from the metrics of Kueue in a Prometheus. Kueue exports them when its configuration
// has metrics.enableClusterQueueResources.
#ifndef GPUSCALE_CLI_OBJECTS_KUEUE_QUOTA_H
#define GPUSCALE_CLI_OBJECTS_KUEUE_QUOTA_H

#include <stddef.h>
#include <stdint.h>

#include "k8s/capacity/resource_names.h"

struct err;
struct connections;
struct prometheus_session;

#define KUEUE_QUOTAS_MAX 4096
#define KUEUE_NAME_BYTES 254 // of a ClusterQueue, a ResourceFlavor: a DNS subdomain, and the NUL
#define KUEUE_UNLIMITED  INT64_MAX
#define KUEUE_UNKNOWN    INT64_C(-1)

// The quota of one accelerator.
struct kueue_quota {
	char cluster_queue[KUEUE_NAME_BYTES], flavor[KUEUE_NAME_BYTES];
	char cohort[KUEUE_NAME_BYTES]; // "": none, so that the queue cannot borrow
	char resource[RESOURCE_NAME_BYTES];
	int64_t nominal;  // KUEUE_UNLIMITED: no limit
	int64_t reserved; // for workloads that are admitted or about to be; KUEUE_UNKNOWN: Prometheus has no sample
};
struct kueue_quotas {
	struct kueue_quota *items; // by queue, flavor and resource
	size_t n;
};

// Asks the source of the session that is called default, or is the only one, and waits. Without the metrics, ret->n is
// 0. Returns 0, or -1 and *e. Call kueue_quotas_done() in any case.
int kueue_quotas_fetch(struct prometheus_session *session, struct kueue_quotas *ret, struct err *e);
void kueue_quotas_done(struct kueue_quotas *q);
// Returns the quota that is left; 0 when the queue borrows; KUEUE_UNKNOWN when the reservation of a limited quota is.
int64_t kueue_quota_free(const struct kueue_quota *q);

// Returns how many replicas that need `each` (> 0) of `resource` the quota of the queue admits, and what is left of it;
// -1: the quota limits nothing, because it is not among `q`, has no limit, or the queue is in a cohort and can borrow.
// *ret_free is KUEUE_UNKNOWN, and the result 0, if the quota limits and the reservation of one flavor is unknown.
int64_t kueue_quotas_admit(const struct kueue_quotas *q, const char *cluster_queue, const char *resource, int64_t each,
                           int64_t *ret_free);
// Reads which ClusterQueue a LocalQueue belongs to, in the newest version that the server has. Returns 0, or -1 and *e.
int kueue_read_cluster_queue(struct connections *session, const char *namespace_name, const char *local_queue,
                             char out[KUEUE_NAME_BYTES], struct err *e);

#endif
