// SPDX-License-Identifier: Apache-2.0
// The one table of a GPUPool's status: the CRD's schema is generated from it.
#ifndef GPUSCALE_CONTROLLER_STATUS_POOL_STATUS_SCHEMA_H
#define GPUSCALE_CONTROLLER_STATUS_POOL_STATUS_SCHEMA_H

#include <stddef.h>
#include <stdint.h>

struct schema;

#define POOL_STATUS_MEMBERS_MAX    1000 // further members are counted only
#define POOL_STATUS_NAME_BYTES     317  // namespace, slash and name
#define POOL_STATUS_SENTENCE_BYTES 1024

// A decoded status: strings are NULL when absent.
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
const struct schema *pool_status_schema(void);
// Decodes the object at `status.spending` into struct pool_status_spending.
const struct schema *pool_spending_schema(void);

#endif
