// SPDX-License-Identifier: Apache-2.0
// Fetches what a replica of a scale target needs: the pod template of the target, how many such pods a replica has, and
// the ResourceClaimTemplates that the template names.
#ifndef GPUSCALE_K8S_CAPACITY_SHAPE_FETCH_H
#define GPUSCALE_K8S_CAPACITY_SHAPE_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "k8s/capacity/replica_shape.h"

struct k8s_client;
struct label_selector;
struct resource_names;
struct scale_ref;
struct shape_fetch;

#define LABEL_VALUE_BYTES 64 // Kubernetes: 63 bytes, and the NUL

struct target_shape {
	struct err error; // kind ERR_NONE: everything was read; else the members below have what was read until then
	struct replica_shape shape; // shape of one pod
	bool has_shape;
	int32_t pods;                    // pods per replica
	int32_t replicas;                // spec.replicas of the target
	int64_t generation;              // metadata.generation of the target
	struct label_selector *selector; // selector of its pods; NULL: the kind has none in spec.selector
	char queue[LABEL_VALUE_BYTES];   // LocalQueue of Kueue that admits its pods; "": none
};
void target_shape_done(struct target_shape *t);
// Returns how many GPUs a replica requests, as replica_shape_gpus() does for one of its pods; 0: unknown.
int32_t target_shape_gpus(const struct target_shape *t, const struct resource_names *names);

// Receives the result. Called once, from the loop; ownership of *shape, which is a copy, passes to the callee.
typedef void shape_fetch_fn(void *arg, const struct target_shape *shape);

// Starts to fetch. `names` must stay valid until fn was called or the fetch was abandoned. Returns NULL and *e; then fn
// is not called.
struct shape_fetch *shape_fetch_start(struct k8s_client *client, const struct scale_ref *ref,
                                      struct resource_names *names, shape_fetch_fn *fn, void *arg, struct err *e);
// Lets the fetch end without a call of fn. Must not be called after fn.
void shape_fetch_abandon(struct shape_fetch *f);

#endif
