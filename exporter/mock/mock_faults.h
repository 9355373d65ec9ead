// SPDX-License-Identifier: Apache-2.0
// Faults of a mock script: what goes wrong with a GPU, when, and for how long. Each fault changes the readings of a
// healthy sample and depends only on the time, so a script repeats exactly. XIDs and lost GPUs are elsewhere
// (mock_schema.h).
#ifndef GPUSCALE_EXPORTER_MOCK_MOCK_FAULTS_H
#define GPUSCALE_EXPORTER_MOCK_MOCK_FAULTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/schema/schema.h"

struct device_sample;

// The part that all faults share; the first member of each.
struct mock_fault {
	int64_t at_ms, for_ms; // for_ms 0: forever
	int32_t gpu;
};

enum mock_throttle_reason { THROTTLE_THERMAL, THROTTLE_POWER, THROTTLE_HW, THROTTLE_POWER_BRAKE, THROTTLE__COUNT };
struct mock_throttle {
	struct mock_fault fault;
	int reason; // enum mock_throttle_reason
	double clock_percent;
};

struct mock_ecc {
	struct mock_fault fault; // for_ms: the time over which the errors are spread
	int kind;                // 0: corrected, 1: uncorrectable
	int32_t count;
};

struct mock_leak {
	struct mock_fault fault;
	double mib_per_hour;
};

struct mock_straggler {
	struct mock_fault fault;
	double slower_percent;
};

struct mock_hang {
	struct mock_fault fault;
};

struct mock_downtrain {
	struct mock_fault fault;
	int32_t generation, lanes;
};

struct mock_faults {
	struct mock_throttle *throttles;
	struct mock_ecc *ecc;
	struct mock_leak *leaks;
	struct mock_straggler *stragglers;
	struct mock_hang *hangs;
	struct mock_downtrain *downtrains;
	size_t n_throttles, n_ecc, n_leaks, n_stragglers, n_hangs, n_downtrains;
};

enum { FAULT_THROTTLES, FAULT_ECC, FAULT_LEAKS, FAULT_STRAGGLERS, FAULT_HANGS, FAULT_DOWNTRAINS, FAULT__COUNT };
// The schema of an element of each list.
extern const struct schema mock_fault_schemas[FAULT__COUNT];

// Calls `fn` for every fault, with the name of its list and its number there.
void mock_faults_for_each(const struct mock_faults *f,
                          void (*fn)(void *arg, const char *list, size_t i, const struct mock_fault *fault), void *arg);
// Applies the faults of GPU `gpu` at `t_ms` since the start; the GPU draws `idle_watts` when idle. Fields without a
// value stay without one. A leak ends with its time, as when the process is restarted.
void mock_faults_apply(const struct mock_faults *f, int32_t gpu, double idle_watts, int64_t t_ms,
                       struct device_sample *s);

#endif
