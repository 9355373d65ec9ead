// SPDX-License-Identifier: Apache-2.0
// The status of a ScaledObject as JSON: the fields that KEDA writes, and a condition of type GPUScaleState whose
// message contains the status of the policy (controller/status/status_doc.h), for the next process. KEDA's schema drops
// fields that it does not know, but keeps further conditions (docs/decisions/0052-scaled-objects.md). KEDA:
// apis/keda/v1alpha1/scaledobject_types.go, condition_types.go.
#ifndef GPUSCALE_CONTROLLER_STATUS_SCALED_OBJECT_DOC_H
#define GPUSCALE_CONTROLLER_STATUS_SCALED_OBJECT_DOC_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct binding;
struct condition;
struct status_facts;

#define SCALED_OBJECT_STATE     "GPUScaleState" // the type of that condition
#define SCALED_OBJECT_BYTES_MAX (192 * 1024)    // a status with the quotes of its state escaped

struct scaled_object_doc {
	const struct status_facts *facts;   // NULL: nothing is known but the state
	const struct condition *conditions; // CONDITION_TYPE__COUNT of them; NULL with the facts
	const struct binding *binding;      // NULL: no version was ever valid
	const char *state;                  // {"status":{..}} of the policy; NULL: none
};

// Returns whether a trigger is active, as KEDA's condition Active: a value above its activation threshold, or an open
// schedule.
bool scaled_object_is_active(const struct status_facts *facts);
// Returns whether the fallback decides.
bool scaled_object_is_in_fallback(const struct status_facts *facts);

// Appends {"status":{..}} for a merge-PATCH.
void scaled_object_doc_write(struct buf *out, const struct scaled_object_doc *doc);
// Appends {"metadata":{..},"status":{..}} of the policy, as status_doc_read() reads it, from the ScaledObject `json`;
// with an empty status if the object has no such state. Returns whether it has.
bool scaled_object_doc_read(struct buf *out, const char *json, size_t len);

#endif
