// SPDX-License-Identifier: Apache-2.0
// How many replicas are not ready yet, for the guards and for idle.
#ifndef GPUSCALE_POLICIES_ENGINE_GUARDS_H
#define GPUSCALE_POLICIES_ENGINE_GUARDS_H

#include <stdint.h>

struct replica_counts;

// Returns how many replicas are requested and not ready: spec - ready, or the pending ones, whichever is more. A pod
// that loads a model is running but not ready: counting only pending pods would miss it.
int32_t guards_starting(const struct replica_counts *counts);

#endif
