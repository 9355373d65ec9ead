// SPDX-License-Identifier: Apache-2.0
// Fetches what a replica of a scale target needs (k8s/capacity/shape_fetch.h), and waits for it.
#ifndef GPUSCALE_CLI_OBJECTS_SHAPE_READ_H
#define GPUSCALE_CLI_OBJECTS_SHAPE_READ_H

#include <stdint.h>

struct connections;
struct err;
struct resource_names;
struct scale_ref;
struct target_shape;

// Waits for the reply. Returns 0, or -1 and *e; then *ret has what was read until then.
// Call target_shape_done(ret) in any case.
int shape_read(struct connections *c, const struct scale_ref *ref, struct resource_names *names,
               struct target_shape *ret, struct err *e);
// Returns how many GPUs the pod template of the target requests (replica_shape_gpus), or 0 and *e when that is unknown
// or none.
int32_t shape_read_gpus(struct connections *c, const struct scale_ref *ref, struct err *e);

#endif
