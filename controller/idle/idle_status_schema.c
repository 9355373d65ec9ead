// SPDX-License-Identifier: Apache-2.0
#include "controller/idle/idle_status_schema.h"

#include "controller/idle/idle_record.h"
#include "controller/status/status_rows.h"

#define WORKLOAD struct idle_status_workload
#define STATUS   struct idle_status

static const struct schema_field workload_fields[] = {
        // clang-format off
	FIELD(WORKLOAD, "id", SCHEMA_STRING, id, "Namespace, kind and name, with slashes.", .required = true, .min = 1, .max = 640),
	FIELD(WORKLOAD, "namespace", SCHEMA_STRING, namespace_name, "Namespace of the workload.", .required = true, .min = 1, .max = 63),
	FIELD(WORKLOAD, "kind", SCHEMA_STRING, kind, "Kind of the workload; Pod when the owner of the pod is not known.", .required = true, .min = 1, .max = 63),
	FIELD(WORKLOAD, "name", SCHEMA_STRING, name, "Name of the workload.", .required = true, .min = 1, .max = 253),
	FIELD(WORKLOAD, "state", SCHEMA_ENUM, state, "Reported; Held: not scaled, the message says why; Exempt: by its annotation; Warned: scaled after the grace period; Scaling; Scaled.", .required = true, .enum_names = idle_state_names),
	FIELD(WORKLOAD, "gpus", SCHEMA_STRING, gpus, "Idle GPUs of the workload.", .max = 31),
	FIELD(WORKLOAD, "idleSince", SCHEMA_TIME_MS, since_ms, "The workload has been idle since this time or longer.", .min = 0),
	FIELD(WORKLOAD, "costPerMonth", SCHEMA_STRING, cost, "What these GPUs cost in 730 hours, and the currency.", .max = 63),
	FIELD(WORKLOAD, "warnedTime", SCHEMA_TIME_MS, warned_ms, "When the Warning Event was written.", .min = 0),
	FIELD(WORKLOAD, "changedTime", SCHEMA_TIME_MS, changed_ms, "When the state changed.", .min = 0),
	FIELD(WORKLOAD, "replicas", SCHEMA_INT32, replicas, "Replicas before the scale.", .min = 0, .max = 1000000),
	FIELD(WORKLOAD, "message", SCHEMA_STRING, message, "Details of the state.", .max = IDLE_STATUS_SENTENCE_BYTES),
        // clang-format on
};

OBJECT(workload_schema, "GPUIdleRule.status.workloads[]", WORKLOAD, workload_fields,
       "One idle workload, or one that was scaled.");

static const struct schema_field status_fields[] = {
        // clang-format off
	FIELD(STATUS, "observedGeneration", SCHEMA_INT64, observed_generation, "metadata.generation of the version that is in force.", .min = 0),
	FIELD(STATUS, "lastUpdateTime", SCHEMA_TIME_MS, updated_ms, "When this status was written.", .min = 0),
	FIELD(STATUS, "lastScaleTime", SCHEMA_TIME_MS, last_scale_ms, "When a workload was last scaled.", .min = 0),
	FIELD(STATUS, "workloadCount", SCHEMA_INT32, workload_count, "Workloads that are idle.", .min = 0),
	FIELD(STATUS, "gpus", SCHEMA_STRING, gpus, "Idle GPUs that these workloads hold.", .max = 31),
	FIELD(STATUS, "unallocatedGPUs", SCHEMA_STRING, unallocated, "Idle GPUs that no pod holds.", .max = 31),
	FIELD(STATUS, "costPerMonth", SCHEMA_STRING, cost, "What the idle GPUs of workloads cost in 730 hours, and the currency.", .max = 63),
	FIELD(STATUS, "message", SCHEMA_STRING, message, "The state of the rule in one sentence.", .max = IDLE_STATUS_SENTENCE_BYTES),
	LIST(STATUS, "workloads", workloads, n_workloads, "The workloads.", IDLE_RECORDS_MAX, workload_schema, .list_key = "id"),
        // clang-format on
};

OBJECT(schema, "GPUIdleRule.status", STATUS, status_fields,
       "The idle workloads, and what the rule does about them. Written by the controller only.");

const struct schema *idle_status_schema(void)
{
	return &schema;
}
