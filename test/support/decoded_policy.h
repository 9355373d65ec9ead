// SPDX-License-Identifier: Apache-2.0
// A policy written as text, decoded as the loader decodes it, with the errors as a person reads them.
#ifndef GPUSCALE_TEST_SUPPORT_DECODED_POLICY_H
#define GPUSCALE_TEST_SUPPORT_DECODED_POLICY_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/schema/schema.h"
#include "policies/schema/binding.h"

struct decoded_policy {
	struct arena arena; // of what the policy points to
	struct policy policy;
	struct scale_target target;
	struct schema_errors errors;
	struct buf printed; // the errors
	int rc;             // of policy_decode
};

// Decodes `text`, a document in YAML named p.yaml. The document is freed: nothing of the policy may point into it.
// Fails the test when the text is not a document in YAML. The caller calls decoded_policy_done().
void decoded_policy_init(struct decoded_policy *d, const char *text);
void decoded_policy_done(struct decoded_policy *d);

#endif
