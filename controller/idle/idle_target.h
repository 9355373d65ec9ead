// SPDX-License-Identifier: Apache-2.0
// The workload of an idle rule at the API server: reads it, scales it down once its pods are confirmed to be the idle
// ones, and restores it.
#ifndef GPUSCALE_CONTROLLER_IDLE_IDLE_TARGET_H
#define GPUSCALE_CONTROLLER_IDLE_IDLE_TARGET_H

#include <stddef.h>
#include <stdint.h>

#include "controller/idle/idle_record.h"
#include "k8s/client/scale.h"

struct err;
struct idle_target;
struct k8s_client;

#define IDLE_UID_BYTES 64

struct idle_object {
	struct idle_facts facts; // exists, is_exempt, wants_restore, replicas, former
	char uid[IDLE_UID_BYTES];
	bool is_refused; // a check before the first write failed
};

// Called once, from the loop. error NULL: the operation succeeded; `object` is what it last read, valid during the
// call.
typedef void idle_target_fn(void *arg, const struct idle_object *object, const struct err *error);

struct idle_target *idle_target_new(struct k8s_client *client, idle_target_fn *done, void *arg);
// No operation may be in progress. NULL is fine.
void idle_target_free(struct idle_target *t);

// Returns the reference of a workload of these kinds: Deployment and StatefulSet. Returns -1 for others.
int idle_target_ref(const struct idle_record *record, struct scale_ref *ret_ref);
// Reads the workload. One that does not exist is not an error.
void idle_target_read(struct idle_target *t, const struct idle_record *record);
// Scales the workload from `replicas` to `to`, after it has annotated the workload with `replicas`. Refused when the
// replicas differ, or when one of its running pods requests no GPU or is
// not among `pods`.
void idle_target_scale(struct idle_target *t, const struct idle_record *record, const char *const *pods, size_t n_pods,
                       int32_t replicas, int32_t to);
// Scales the workload to `replicas` and removes both annotations.
void idle_target_restore(struct idle_target *t, const struct idle_record *record, int32_t replicas);

#endif
