// SPDX-License-Identifier: Apache-2.0
// The parts of the policy table, one file each (private to policies/).
#ifndef GPUSCALE_POLICIES_POLICY_SCHEMA_PRIVATE_H
#define GPUSCALE_POLICIES_POLICY_SCHEMA_PRIVATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/schema.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

// Where a field goes; FIELD_SET also remembers in `flag` that it was written.
#define FIELD(type, member)           .offset = offsetof(type, member), .set_offset = SCHEMA_NO_OFFSET
#define FIELD_SET(type, member, flag) .offset = offsetof(type, member), .set_offset = offsetof(type, flag)
#define FIELD_LIST(type, member, count)                                                                                \
	.offset = offsetof(type, member), .set_offset = SCHEMA_NO_OFFSET, .count_offset = offsetof(type, count)
#define FIELD_LIST_SET(type, member, count, flag)                                                                      \
	.offset = offsetof(type, member), .set_offset = offsetof(type, flag), .count_offset = offsetof(type, count)
#define ANY_SIZE .min = -1e300, .max = 1e300

#define SECOND_MS 1000.0
#define HOUR_MS   (3600 * SECOND_MS)
#define DAY_MS    (24 * HOUR_MS)

extern const struct schema policy_schema_metadata;
extern const struct schema policy_schema_signal;
extern const struct schema policy_schema_behavior;
extern const struct schema policy_schema_forecast, policy_schema_panic;
extern const struct schema policy_schema_durations; // {up, down} -> struct policy_sustain
extern const struct schema policy_schema_schedule, policy_schema_idle, policy_schema_fallback, policy_schema_startup,
        policy_schema_guards;

// Collects the faults of one validate hook.
struct fault_list {
	struct schema_fault *faults;
	size_t n, max;
};
static inline void fault_add(struct fault_list *l, const char *field, int32_t index, const char *message)
{
	if (l->n < l->max)
		l->faults[l->n++] = (struct schema_fault){field, index, message};
}

// Rules between spec.forecast, spec.panic and the rest; faults are named from spec.
struct policy;
// What the annotations switch on; forgets the document's nodes.
void policy_schema_settle_metadata(struct policy *policy);
void policy_schema_check_forecast(const struct policy *p, struct fault_list *l);
void policy_schema_check_panic(const struct policy *p, struct fault_list *l);

#endif
