// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/observation.h"

const char *const pod_state_names[] = {
        [POD_READY] = "Ready",   [POD_UNREADY] = "Unready", [POD_PENDING] = "Pending",
        [POD_FAILED] = "Failed", [POD_DELETED] = "Deleted",
};
_Static_assert(sizeof pod_state_names / sizeof pod_state_names[0] == POD_STATE__COUNT, "one name per state");
