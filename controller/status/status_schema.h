// SPDX-License-Identifier: Apache-2.0
// The tables of the statuses of GPUAutoscalers and GPUPools: the schemas of the CRDs are generated from them, and the
// commands decode statuses with them. What controller/status/status_doc.c writes must conform to the first
// (test/unit/test_status_schema.c).
#ifndef GPUSCALE_CONTROLLER_STATUS_STATUS_SCHEMA_H
#define GPUSCALE_CONTROLLER_STATUS_STATUS_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct doc_node;
struct schema;

// Limits that the API server enforces on the status; the writer stays below them.
#define STATUS_VIEW_LIST_MAX        16 // conditions, decisions
#define STATUS_VIEW_HISTORY_MAX     256
#define STATUS_VIEW_NAME_BYTES      1024
#define STATUS_VIEW_SENTENCE_BYTES  32768
#define STATUS_VIEW_OBJECTIVE_BYTES 8192

// A decoded status: strings are NULL when absent.
struct status_view_signal {
	const char *name, *value, *target, *state, *reason;
	int32_t proposal;
	bool proposal_set;
	int64_t sample_ms; // 0: absent
};
struct status_view_condition {
	const char *type, *status, *reason, *message;
	int64_t since_ms, observed_generation;
};
struct status_view_mark {
	int64_t time_ms;
	int32_t value; // replicas, or their change
};
struct status_view_decision {
	int64_t time_ms;
	const char *action, *reason, *message;
	int32_t from, to;
};
struct status_view_variant {
	const char *name, *kind, *target, *reason, *message;
	int32_t current, ready, desired;
	bool ready_set;
};
struct status_view {
	int32_t replacements;
	int64_t observed_generation, updated_ms, last_scale_ms, last_withdraw_ms; // 0: absent
	int32_t current, desired, ready, startup_seconds;
	bool current_set, desired_set, ready_set, startup_set;
	const char *action, *reason, *message, *summary, *objective_record;
	const struct status_view_signal *signals;
	size_t n_signals;
	const struct status_view_variant *variants;
	size_t n_variants;
	const struct status_view_condition *conditions;
	size_t n_conditions;
	const struct status_view_mark *scale_events, *recommendations;
	size_t n_scale_events, n_recommendations;
	const struct status_view_decision *decisions; // oldest first
	size_t n_decisions;
	const struct doc_node *fleet, // of a fleet; NULL: it is none
	        *targets;             // of a policy with several: KIND/NAME to a status like this one; NULL: it has one
};

// Decodes the object at `status` into struct status_view.
extern const struct schema status_schema;

// ---- GPUPool ----

#define POOL_STATUS_MEMBERS_MAX    1000 // further members are counted only
#define POOL_STATUS_NAME_BYTES     317  // namespace, slash and name
#define POOL_STATUS_SENTENCE_BYTES 1024

struct pool_status_member {
	const char *name, *reason, *message;
	int32_t requested, granted, gpus;
};
struct pool_status_day {
	int64_t start_ms;
	double spent;
};
struct pool_status_spending {
	int64_t since_ms, until_ms; // 0: absent
	double spent, assumed, per_hour, projected;
	const struct pool_status_day *days;
	size_t n_days;
};
struct pool_status {
	int64_t observed_generation, updated_ms; // 0: absent
	int64_t gpus, used_gpus;
	int32_t member_count, limited_count;
	const char *message;
	struct pool_status_spending spending;
	const struct pool_status_member *members;
	size_t n_members;
};

// Decodes the object at `status` into struct pool_status.
extern const struct schema pool_status_schema;
// Decodes the object at `status.spending` into struct pool_status_spending.
extern const struct schema pool_spending_schema;

#endif
