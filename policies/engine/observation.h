// SPDX-License-Identifier: Apache-2.0
// The observation of one tick, as plain values: the only input of decide() besides policy, time and state.
#ifndef GPUSCALE_POLICIES_ENGINE_OBSERVATION_H
#define GPUSCALE_POLICIES_ENGINE_OBSERVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum obs_state {
	OBS_OK,        // series has at least one sample
	OBS_EMPTY,     // the query returned no series
	OBS_FAILED,    // the query failed or got no response; `detail` says why
	OBS_TOO_MANY,  // the query returned more than n_series series, and none is kept; `detail` states the numbers
	OBS_PARTIAL,   // the response has warnings or is partial: treated as missing
	OBS_FORBIDDEN, // the query was not sent: the policy is not permitted to query the source; `detail` says why
	OBS_STATE__COUNT
};

// One sample of one series. `value` may be NaN or infinite: decide() treats such a sample as missing.
struct obs_series {
	const char *pod; // label pod or exported_pod; "" if none
	double value;
	int64_t time_ms; // time of the sample itself, not of the query
};

struct obs_signal {
	enum obs_state state;
	const char *detail; // text for the rendering of the trace; may be NULL. decide() does not read it
	const struct obs_series *series;
	size_t n_series;
	int64_t skew_ms; // at least by how much the clock of the source is ahead of this host's; < 0: behind; 0:
	                 // unknown
};

// The states that the HPA distinguishes. POD_UNREADY: running, but its Ready condition is not True.
enum pod_state { POD_READY, POD_UNREADY, POD_PENDING, POD_FAILED, POD_DELETED, POD_STATE__COUNT };
extern const char *const pod_state_names[POD_STATE__COUNT]; // "Ready", ... as in policy tests

struct obs_pod {
	const char *name;
	enum pod_state state;
};

// The room in the cluster. Zero: unknown.
struct obs_capacity {
	bool is_known;
	int32_t fit;           // replicas that fit in addition to the current scale and to all pods that exist
	int32_t unschedulable; // pods of the target that the scheduler cannot place
	// Since when, in ms since the epoch, each of them that a scale-down removes before a running one, oldest first.
	const int64_t *since_ms;
	size_t n_since;
	const char *detail; // why no more fit, or why that is unknown, for rendering; may be NULL. decide() does not
	                    // read it
};

// The replicas on GPUs or nodes that gpuscale remediate took out of service. Zero: unknown.
struct obs_health {
	bool is_known;
	int32_t unhealthy; // pods of the target that are not being deleted
};

struct observation {
	int32_t spec_replicas;   // scale.spec.replicas: the current scale
	int32_t status_replicas; // scale.status.replicas
	bool is_emptied;         // a pool, not a hand, scaled the target to 0
	// Of the replicas, or of their pods where nothing else is known: no more than spec_replicas are treated as
	// ready, and the trace says so. -1 = unknown: spec_replicas is used instead, and the trace says so.
	int32_t ready_replicas;
	int32_t pending_replicas;         // replicas that exist and are not running; 0 if unknown
	const struct obs_signal *signals; // one per policy signal, same order
	size_t n_signals;
	// The pods of the target, for signals of type Pods only; NULL = unknown: see pods_read().
	const struct obs_pod *pods;
	size_t n_pods;
	struct obs_capacity capacity; // for policies with `capacity` only
	struct obs_health health;     // for policies with guards.unhealthyReplicas only
};

#endif
