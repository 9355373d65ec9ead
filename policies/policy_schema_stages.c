// SPDX-License-Identifier: Apache-2.0
// The stages around the signals: spec.startup and spec.guards of a GPUAutoscaler.
#include "policies/policy.h"
#include "policies/policy_schema_private.h"

// ---- startup ----

static const struct schema_field startup_fields[] = {
        {.name = "seconds",
         .type = SCHEMA_SECONDS_MS,
         .doc = "Time from the order of a replica to its being ready, in seconds. Default: the median of the last 9 "
                "starts seen.",
         FIELD_SET(struct policy_startup, start_ms, given),
         .min = 1,
         .max = 86400},
};

const struct schema policy_schema_startup = {
        .name = "GPUAutoscaler.spec.startup",
        .doc = "How long a replica takes to become ready, and that it counts until then.",
        .struct_size = sizeof(struct policy_startup),
        .fields = startup_fields,
        .n_fields = COUNT_OF(startup_fields),
};

// ---- guards ----

static const struct schema_field guard_fields[] = {
        {.name = "maxPendingPods",
         .type = SCHEMA_INT32,
         .doc = "No scale-up while more replicas than this are still starting: pending, or running and not ready yet. "
                "0 scales up only when all are ready. Stops 2-4-8-16 while models load, and orders beyond what the "
                "cluster has room for.",
         FIELD_SET(struct policy_guards, max_pending_pods, max_pending_set),
         .min = 0,
         .max = POLICY_REPLICAS_MAX},
        {.name = "minAvailablePercent",
         .type = SCHEMA_INT32,
         .doc = "No scaling in either direction while less than this share of the replicas is ready.",
         FIELD(struct policy_guards, min_available_percent),
         .min = 1,
         .max = 100},
        {.name = "maxStep",
         .type = SCHEMA_INT32,
         .doc = "Largest change of one decision, in replicas, whatever behavior allows.",
         FIELD(struct policy_guards, max_step),
         .min = 1,
         .max = POLICY_REPLICAS_MAX},
};

static size_t check_guards(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct policy_guards *g = value;
	struct fault_list l = {.faults = ret_faults, .max = max};
	if (!g->max_pending_set && g->min_available_percent == 0 && g->max_step == 0)
		fault_add(&l, NULL, -1,
		          "guards nothing: set maxPendingPods, minAvailablePercent or maxStep, or remove it");
	return l.n;
}

const struct schema policy_schema_guards = {
        .name = "GPUAutoscaler.spec.guards",
        .doc = "States of the target in which it is not scaled, or not far.",
        .struct_size = sizeof(struct policy_guards),
        .fields = guard_fields,
        .n_fields = COUNT_OF(guard_fields),
        .validate = check_guards,
};
