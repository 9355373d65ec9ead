// SPDX-License-Identifier: Apache-2.0
// One table of reasons: name, sentence, condition and event type. Everything that explains renders a row of it.
#ifndef GPUSCALE_POLICIES_REASON_H
#define GPUSCALE_POLICIES_REASON_H

enum reason {
	REASON_NONE,
	REASON_DESIRED_WITHIN_RANGE, // nothing limited the proposal (HPA ScalingLimited=False)
	// signals
	REASON_ABOVE_TARGET,
	REASON_BELOW_TARGET,
	REASON_WITHIN_TOLERANCE,
	REASON_ABOVE_HIGH_WATERMARK,
	REASON_BELOW_LOW_WATERMARK,
	REASON_INSIDE_WATERMARKS,
	REASON_REPLICAS_REQUESTED, // target type Replicas
	REASON_PODS_INCONCLUSIVE,  // target type Pods: the pods without a sample could turn the answer around
	// no usable data
	REASON_NO_DATA,
	REASON_QUERY_FAILED,
	REASON_PARTIAL_RESPONSE,
	REASON_STALE_DATA,
	REASON_NON_FINITE,
	REASON_AMBIGUOUS_SERIES,
	REASON_NO_POD_LABEL, // target type Pods
	REASON_NO_POD_SAMPLES,
	REASON_SEVERAL_PER_POD,
	REASON_WINDOW_FILLING,
	REASON_MISSING_AS_ZERO,
	REASON_SIGNAL_IGNORED,
	REASON_PARTIAL_SIGNALS, // some signals missing: no scale-down
	REASON_ALL_SIGNALS_MISSING,
	REASON_NO_READY_REPLICAS,
	// later stages
	REASON_SUSTAIN_PENDING,
	REASON_REPLICAS_STARTING, // what is starting is counted: a smaller scale-up, or none
	REASON_COMBINED,
	REASON_COMBINE_FORMULA,
	REASON_FORMULA_MISSING,  // a signal it needs has no data
	REASON_FORMULA_FAILED,   // division by zero, a number out of range
	REASON_FALLBACK_ACTIVE,  // the signals cannot be read for long
	REASON_FALLBACK_LIFTING, // they are back, but not for long
	REASON_PANIC,            // so did the panic window
	REASON_FORECAST,         // it changed its signal's proposal
	REASON_SCALE_UP_STABILIZED,
	REASON_SCALE_DOWN_STABILIZED,
	REASON_SCALE_UP_LIMIT,
	REASON_SCALE_DOWN_LIMIT,
	REASON_SCALE_UP_DISABLED,
	REASON_SCALE_DOWN_DISABLED,
	REASON_COOLDOWN_ACTIVE,
	REASON_IDLE,               // at the idle level, and nobody needs more
	REASON_IDLE_REACHED,       // to the idle level
	REASON_ACTIVATED,          // from the idle level
	REASON_ACTIVATION_UNKNOWN, // at the idle level, and nothing tells whether somebody needs more
	REASON_TOO_FEW_REPLICAS,
	REASON_TOO_MANY_REPLICAS,
	REASON_REPLICA_MULTIPLE,
	REASON_PENDING_REPLICAS,  // guards.maxPendingPods
	REASON_TOO_FEW_AVAILABLE, // guards.minAvailablePercent
	REASON_MAX_STEP,          // guards.maxStep
	REASON_SCALING_DISABLED,  // spec.replicas 0 while minReplicas is not 0
	REASON_PAUSED,
	REASON_DRY_RUN,
	// notes: they explain, and never are the primary reason
	REASON_READY_UNKNOWN,     // no ready count: the current scale stands in for it
	REASON_FUTURE_SAMPLE,     // a sample from ahead of our clock: taken as of now
	REASON_WINDOW_AGGREGATE,  // what the window made of its samples
	REASON_SCHEDULE_ACTIVE,   // a schedule sets the bounds
	REASON_IDLE_PENDING,      // quiet, but not for long enough
	REASON_STARTUP_LEARNT,    // how long replicas took to start
	REASON_WINDOW_OVERFLOW,   // more samples than the window has room for: the oldest were dropped
	REASON_FORECAST_COVERED,  // it asks for nothing that the signal does not ask for
	REASON_FORECAST_LEARNING, // not enough history yet
	REASON_FORECAST_NO_HORIZON,
	REASON_PODS_FILLED, // pods without a sample were counted all the same
	REASON__COUNT
};

enum stage {
	STAGE_SOURCES,
	STAGE_WINDOWS,
	STAGE_SIGNALS,
	STAGE_SUSTAIN,
	STAGE_PANIC,
	STAGE_FORECAST,
	STAGE_COMBINE,
	STAGE_STABILIZE,
	STAGE_RATE,
	STAGE_COOLDOWN,
	STAGE_IDLE,
	STAGE_BOUNDS,
	STAGE_MULTIPLE,
	STAGE_GUARDS,
	STAGE_MODE,
	STAGE__COUNT
};

struct reason_info {
	const char *name; // CamelCase, stable
	// Sentence with placeholders filled from the trace entry: {signal} {value} {limit} {before} {after} {duration}
	// {count} {window} {detail} {schedule}, and from the policy {low}: the signal's low watermark. See struct
	// trace_entry.
	const char *sentence;
	const char *condition; // the status condition it speaks of: AbleToScale, ScalingActive, ScalingLimited, Paused,
	                       // DryRun; NULL
	const char *event_type; // "Normal" or "Warning"
};

const struct reason_info *reason_info(enum reason r);
const char *stage_name(enum stage s); // "sources", "windows", ...

#endif
