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
struct pool_status {
	int64_t observed_generation, updated_ms; // 0: absent
	int64_t gpus, used_gpus;
	int32_t member_count, limited_count;
	const char *message;
	const struct pool_status_member *members;
	size_t n_members;
};

// Decodes the object at `status` into struct pool_status.
const struct schema *pool_status_schema(void);

#endif
