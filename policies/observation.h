// SPDX-License-Identifier: Apache-2.0
// What the shell saw this tick, as plain values: the only input of decide() besides policy, time and state.
#ifndef GPUSCALE_POLICIES_OBSERVATION_H
#define GPUSCALE_POLICIES_OBSERVATION_H

#include <stddef.h>
#include <stdint.h>

enum obs_state {
	OBS_OK,      // series holds at least one sample
	OBS_EMPTY,   // the query answered with no series
	OBS_FAILED,  // the query did not answer, or answered an error; `detail` says what
	OBS_PARTIAL, // the source answered with warnings or a partial response: counts as missing
	OBS_STATE__COUNT
};

// One sample of one series. value may be NaN or Inf: decide() tells that from a number.
struct obs_series {
	const char *pod; // label pod or exported_pod; "" if none
	double value;
	int64_t time_ms; // of the sample itself, not of the query
};

struct obs_signal {
	enum obs_state state;
	const char *detail; // for people, carried into the rendering; may be NULL. decide() never looks at it
	const struct obs_series *series;
	size_t n_series;
};

// What the HPA tells apart. POD_UNREADY: running, but its Ready condition is not True.
enum pod_state { POD_READY, POD_UNREADY, POD_PENDING, POD_FAILED, POD_DELETED, POD_STATE__COUNT };
extern const char *const pod_state_names[POD_STATE__COUNT]; // "Ready", ... as users write them

struct obs_pod {
	const char *name;
	enum pod_state state;
};

struct observation {
	int32_t spec_replicas;            // scale.spec.replicas: the current scale
	int32_t status_replicas;          // scale.status.replicas
	int32_t ready_replicas;           // -1 = not known: spec_replicas is used, and the trace says so
	int32_t pending_replicas;         // pods that exist and are not running; 0 if not known
	const struct obs_signal *signals; // one per policy signal, same order
	size_t n_signals;
	// The pods behind the target, for signals of type Pods only; NULL = not known: see pods_read().
	const struct obs_pod *pods;
	size_t n_pods;
};

#endif
