// SPDX-License-Identifier: Apache-2.0
// A GPUAutoscaler as the API server holds it: the policy in it, and what the server says about the object.
#ifndef GPUSCALE_CONTROLLER_POLICY_OBJECT_H
#define GPUSCALE_CONTROLLER_POLICY_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct policy;
struct schema_errors;

#define POLICY_OBJECT_NAMESPACE_MAX 63
#define POLICY_OBJECT_NAME_MAX      253

// Strings live in the arena; "" where the object does not say.
struct policy_object {
	const char *namespace_name, *name;
	const char *uid, *resource_version;
	int64_t generation;   // 0 = not said
	int64_t created_ms;   // epoch; 0 = not said
	int64_t deleted_ms;   // epoch; deletion was asked for (metadata.deletionTimestamp); 0 = it was not
	bool has_status;      // it says something in its status
	uint64_t fingerprint; // of what the policy was made from (policy_body.h): not of status
};

// Decodes the JSON text of one object into *ret_object and *ret_policy (both overwritten). What Kubernetes adds to
// metadata, and status, are passed over. A field of spec that this version does not know, because the object was let in
// under another version of the CRD, goes to `unknown` as a warning and changes nothing; everything else that a file may
// not say is a fault here too, and so are texts that are no JSON. Time zones of schedules are loaded. Nothing points
// into the text afterwards; temporary memory is returned before the call ends.
// 0, or -1 with the faults added to errors. *ret_object is filled as far as it can be read even then, from a text that
// is no JSON for us, too: name and namespace are "" only when the object has none that can be one, so a bad policy can
// still be told so in its status, and is not taken for one that is gone.
int policy_object_decode(const char *json, size_t len, struct arena *a, struct policy_object *ret_object,
                         struct policy *ret_policy, struct schema_errors *errors, struct schema_errors *unknown);

#endif
