// SPDX-License-Identifier: Apache-2.0
// What the guards look at: how many replicas are not serving yet.
#ifndef GPUSCALE_POLICIES_GUARDS_H
#define GPUSCALE_POLICIES_GUARDS_H

#include <stdint.h>

struct observation;
struct replica_counts;

// Replicas that were asked for and do not serve yet: those that lack to spec or are pending, whichever is more. A pod
// that loads a model is running, and not ready: counting pending pods alone would miss it.
int32_t guards_starting(const struct observation *observation, const struct replica_counts *counts);

#endif
