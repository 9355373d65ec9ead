// SPDX-License-Identifier: Apache-2.0
// Converts a ScaledObject of the API server to a policy, through the text that `gpuscale convert` prints for it.
#ifndef GPUSCALE_CONTROLLER_SOURCE_SCALED_OBJECT_H
#define GPUSCALE_CONTROLLER_SOURCE_SCALED_OBJECT_H

#include <stddef.h>

struct buf;
struct convert_live;
struct policy_ref;

// Decodes the JSON text of one ScaledObject into `body`, which is fresh. Nothing points into the text afterwards.
// Returns 0, or -1 with the reasons appended to `faults`: a trigger, a server or an authentication that is not
// supported, or what is invalid in the resulting policy.
int scaled_object_decode(const char *json, size_t len, const struct convert_live *live, struct policy_ref *body,
                         struct buf *faults);

#endif
