// SPDX-License-Identifier: Apache-2.0
// The parts of the policy table, one file each (private to policies/).
#ifndef GPUSCALE_POLICIES_SCHEMA_POLICY_SCHEMA_PRIVATE_H
#define GPUSCALE_POLICIES_SCHEMA_POLICY_SCHEMA_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/schema/schema.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

// One row of a table of fields, on one line: {ROW(name, type), place, default, limits, DOC(text)}.
#define ROW(text, schema_type) .name = (text), .type = SCHEMA_##schema_type
#define DOC(text)              .doc = text
// place: FIELD_SET also stores in `flag` that the document has the field; the children of an IN_PARENT object are
// stored in the struct of their parent.
#define FIELD(type, member)           .offset = offsetof(type, member), .set_offset = SCHEMA_NO_OFFSET
#define FIELD_SET(type, member, flag) .offset = offsetof(type, member), .set_offset = offsetof(type, flag)
#define FIELD_LIST(type, member, count)                                                                                \
	.offset = offsetof(type, member), .set_offset = SCHEMA_NO_OFFSET, .count_offset = offsetof(type, count)
#define FIELD_LIST_SET(type, member, count, flag)                                                                      \
	.offset = offsetof(type, member), .set_offset = offsetof(type, flag), .count_offset = offsetof(type, count)
#define IN_PARENT .set_offset = SCHEMA_NO_OFFSET
// default
#define REQUIRED      .required = true
#define OPTIONAL      .required = false
#define DEFAULT(text) .default_text = (text)
// limits: RANGE of a number or of the length of a text, ITEMS of a list
#define RANGE(lowest, highest) .min = (lowest), .max = (highest)
#define ANY_SIZE               .min = -1e300, .max = 1e300
#define ITEMS(fewest, most)    .min = (fewest), .max_items = (most)
#define KEY(text)              .list_key = (text)
#define ONE_OF(names)          .enum_names = (names)
#define PATTERN(text)          .pattern = (text)
#define CHILD(schema)          .child = &(schema)
// how `gpuscale tune` varies it: LINEAR or LOG from lowest to highest, FACTOR of the present value
#define TUNE(kind, lowest, highest) .tune = {SCHEMA_TUNE_##kind, (lowest), (highest)}

#define SECOND_MS 1000.0
#define HOUR_MS   (3600 * SECOND_MS)
#define DAY_MS    (24 * HOUR_MS)

extern const struct schema policy_schema_metadata;
// The fields that an API server adds to metadata and to an object, as in the output of `kubectl get -o yaml`.
extern const char *const policy_schema_served_metadata[], *const policy_schema_served[];
extern const struct schema policy_schema_signal;
extern const struct schema policy_schema_fleet; // spec.scaleTargets -> struct fleet_selection
extern const struct schema policy_schema_behavior;
extern const struct schema policy_schema_forecast, policy_schema_panic, policy_schema_objective;
extern const struct schema policy_schema_durations; // {up, down} -> struct policy_sustain
extern const struct schema policy_schema_schedule, policy_schema_idle, policy_schema_fallback, policy_schema_startup,
        policy_schema_guards, policy_schema_capacity, policy_schema_gpus, policy_schema_variant;

// Collects the faults of one validate hook; faults beyond `max` are dropped.
struct fault_list {
	struct schema_fault *faults;
	size_t n, max;
};
static inline void fault_add(struct fault_list *l, const char *field, int32_t index, const char *message)
{
	if (l->n < l->max)
		l->faults[l->n++] = (struct schema_fault){field, index, message};
}

struct policy;
struct policy_document;

// Returns whether the API server accepts `s` as the name of an object (with dots) or of a namespace (without), RFC
// 1123.
bool policy_schema_is_dns_name(const char *s, bool dots);
// Returns the index of the signal called `name`, or p->n_signals when the policy has none of that name.
size_t policy_schema_signal_index(const struct policy *p, const char *name);
// Returns the enum combine that the text of `combine` names; a text that is not a name is a formula.
int policy_schema_combine(const char *text);
// Sets `paused` and `dry_run` from the annotations and `label_lines` from the labels, then clears the pointers into the
// document. Returns -1 when the arena is exhausted.
int policy_schema_read_metadata(struct policy *policy, struct arena *a);
struct policy_document;
// Checks that a policy with a fleet has no other target, and uses only what fleets support.
void policy_schema_check_fleet(const struct policy_document *d, struct fault_list *l);
struct arena;
struct doc_node;
struct schema_errors;
// Checks that there is a target or a fleet; writes the selector of the fleet and its target to *d. Returns -1 when an
// error was reported.
int policy_schema_read_fleet(const struct doc_node *root, struct policy_document *d, struct arena *a,
                             struct schema_errors *errors);
// Checks the rules between spec.forecast, or spec.panic, and the other fields. Field names in the faults start at spec.
void policy_schema_check_forecast(const struct policy *p, struct fault_list *l);
void policy_schema_check_panic(const struct policy *p, struct fault_list *l);
// Checks the rules between spec.objective and the other fields.
void policy_schema_check_objective(const struct policy *p, struct fault_list *l);
// Checks the rules between spec.variants and the other fields.
void policy_schema_check_variants(const struct policy_document *d, struct fault_list *l);

#endif
