// SPDX-License-Identifier: Apache-2.0
// The limit of a value before a memory of the engine takes it. A value beyond PLAUSIBLE_MULTIPLE times what the largest
// maxReplicas of the policy serve changes no decision that a smaller one would not: the maximum is requested in any
// case. In a memory, however, it would outlast its cause by hours. So windows limit it, and what is learnt over days
// takes it, limited, only once it has lasted. Private to policies/engine.
#ifndef GPUSCALE_POLICIES_ENGINE_PLAUSIBLE_H
#define GPUSCALE_POLICIES_ENGINE_PLAUSIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct policy;

#define PLAUSIBLE_MULTIPLE 4
#define PLAUSIBLE_AFTER_MS 900000 // a value that stays beyond the limit for this long is real

// For how long a value has been beyond its limit without a break. Part of the flat state; has no padding.
struct doubt {
	int64_t last_ms;   // the last time; TIME_NONE: the newest value was plausible
	int64_t lasted_ms; // gaps between two ticks count up to the longest one expected
};

void doubt_init(struct doubt *d);
// Observes whether the value of now_ms is beyond its limit. A gap longer than gap_ms since the last call is treated as
// gap_ms. Returns true while the value must not be learnt from: it is beyond the limit, and has been for less than
// after_ms.
bool doubt_observe(struct doubt *d, bool is_beyond, int64_t now_ms, int64_t gap_ms, int64_t after_ms);

// Returns PLAUSIBLE_MULTIPLE times the largest maximum of the policy and its schedules, in replicas.
double plausible_replicas(const struct policy *policy);
// Returns the largest plausible load of signal i, in the unit of its value (times the ready replicas, where the value
// is per replica): what plausible_replicas() serve at the target or the high watermark. INFINITY for a signal that has
// neither, and so has no unit known to the engine.
double plausible_load(const struct policy *policy, size_t i);
// Returns the value of signal i as its window takes it: within plausible_load() on either side of 0. A signal whose
// .value a formula reads, or that has neither target nor watermarks, is taken as it is.
double plausible_sample(const struct policy *policy, size_t i, double value);

#endif
