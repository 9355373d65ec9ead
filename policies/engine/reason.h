// SPDX-License-Identifier: Apache-2.0
// One table of reasons: name, sentence, condition and event type. Every explanation of a decision renders one of its
// rows.
#ifndef GPUSCALE_POLICIES_ENGINE_REASON_H
#define GPUSCALE_POLICIES_ENGINE_REASON_H

#include <stdbool.h>

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
	REASON_PODS_INCONCLUSIVE,  // target type Pods: the pods without a sample could reverse the result
	// no usable data
	REASON_NO_DATA,
	REASON_QUERY_FAILED,
	REASON_QUERY_FORBIDDEN,
	REASON_PARTIAL_RESPONSE,
	REASON_STALE_DATA,
	REASON_CLOCK_SKEW, // the clocks of this host and of the source differ by more than staleAfter
	REASON_NON_FINITE,
	REASON_AMBIGUOUS_SERIES,
	REASON_NO_POD_LABEL, // target type Pods
	REASON_NO_POD_SAMPLES,
	REASON_SEVERAL_PER_POD,
	REASON_WINDOW_FILLING,
	REASON_MISSING_AS_ZERO,
	REASON_NON_FINITE_AS_ZERO, // a sample that is not finite is read as 0: onMissing Zero
	REASON_SIGNAL_IGNORED,
	REASON_PARTIAL_SIGNALS, // some signals missing: no scale-down
	REASON_ALL_SIGNALS_MISSING,
	REASON_NO_READY_REPLICAS,
	// later stages
	REASON_SUSTAIN_PENDING,
	REASON_REPLICAS_STARTING, // starting replicas are counted: a smaller scale-up, or none
	REASON_COMBINED,
	REASON_COMBINE_FORMULA,
	REASON_FORMULA_MISSING,    // a signal that the formula needs has no data
	REASON_FORMULA_FAILED,     // division by zero, a number out of range
	REASON_FALLBACK_ACTIVE,    // the signals have been missing for long
	REASON_FALLBACK_LIFTING,   // the signals have been back for a short time only
	REASON_PANIC,              // the panic window changed the proposal of its signal
	REASON_FORECAST,           // the forecast changed the proposal of its signal
	REASON_OBJECTIVE,          // what the rule in use asks for
	REASON_OBJECTIVE_KEPT,     // more was asked for a short time ago
	REASON_OBJECTIVE_STARTING, // the rules have no record yet
	REASON_SCALE_UP_STABILIZED,
	REASON_SCALE_DOWN_STABILIZED,
	REASON_SCALE_UP_LIMIT,
	REASON_SCALE_DOWN_LIMIT,
	REASON_SCALE_UP_DISABLED,
	REASON_SCALE_DOWN_DISABLED,
	REASON_COOLDOWN_ACTIVE,
	REASON_IDLE,               // at the idle level, and no more is needed
	REASON_IDLE_REACHED,       // to the idle level
	REASON_ACTIVATED,          // from the idle level
	REASON_ACTIVATION_UNKNOWN, // at the idle level, and the activation signal is missing
	REASON_TOO_FEW_REPLICAS,
	REASON_TOO_MANY_REPLICAS,
	REASON_REPLICA_MULTIPLE,
	REASON_PENDING_REPLICAS,   // guards.maxPendingPods
	REASON_TOO_FEW_AVAILABLE,  // guards.minAvailablePercent
	REASON_UNHEALTHY_REPLACED, // guards.unhealthyReplicas: more replicas than the signals ask for
	REASON_MARGINAL_GAIN,      // guards.minMarginalGain
	REASON_MAX_STEP,           // guards.maxStep
	REASON_CAPACITY_LIMITED,   // the cluster has no room for the rest
	REASON_CAPACITY_RETRY,     // the same, for a time after a withdrawal
	REASON_CAPACITY_WITHDRAWN, // replicas were unschedulable for too long
	REASON_PENDING_REMOVED,    // less is wanted: unschedulable replicas go first
	REASON_POOL_LIMITED,       // the cap of the pool
	REASON_BUDGET_LIMITED,     // the hourly budget of the pool
	REASON_RATIO_LIMITED,      // the ratio to another member of the pool
	REASON_WAITING_FOR_GPUS,   // other members of the pool must scale down first
	REASON_POOL_HELD,          // no member of the pool grows
	REASON_SCALING_DISABLED,   // spec.replicas 0 while minReplicas is not 0
	REASON_PAUSED,
	REASON_DRY_RUN,
	// notes: additional explanations, never the primary reason
	REASON_READY_UNKNOWN,     // the ready count is missing: the current scale is used instead
	REASON_READY_SURPLUS,     // more is ready than the scale: the surplus does not count
	REASON_PODS_SURPLUS,      // more pods than replicas: the pods are averaged
	REASON_FUTURE_SAMPLE,     // the time of a sample is in the future: treated as now
	REASON_CLOCK_SET,         // the clock was set: past actions keep their age
	REASON_FUTURE_STAMP,      // a stored time is in the future: treated as now
	REASON_WINDOW_AGGREGATE,  // the aggregate of a window
	REASON_SCHEDULE_ACTIVE,   // a schedule sets the bounds
	REASON_IDLE_PENDING,      // no activity, but not for long enough
	REASON_IDLE_ACTIVE,       // not idle: activity
	REASON_IDLE_UNKNOWN,      // not idle: the activation signal is missing
	REASON_IDLE_STARTING,     // not idle: replicas are starting
	REASON_IDLE_UNSATISFIED,  // not idle: a signal is missing or asks for more
	REASON_IDLE_SUSPENDED,    // not idle: the bounds, a schedule, a panic or a fallback
	REASON_STARTUP_LEARNT,    // a start-up time was learnt
	REASON_WINDOW_OVERFLOW,   // more samples than the window has room for: the oldest were dropped
	REASON_VALUE_LIMITED,     // an implausible value is limited before a memory takes it
	REASON_VALUE_NOT_LEARNT,  // a forecast or an objective learns nothing from an implausible value
	REASON_FORECAST_COVERED,  // the forecast asks for no more than the signal
	REASON_FORECAST_LEARNING, // not enough history, or comparisons, yet
	REASON_FORECAST_OFF,      // no better than a naive forecast
	REASON_FORECAST_NO_HORIZON,
	REASON_OBJECTIVE_RECORD,        // record of the rule in use
	REASON_OBJECTIVE_LEANER,        // record of the next leaner rule
	REASON_OBJECTIVE_WAITING,       // a leaner rule is the best one, but not for long enough
	REASON_OBJECTIVE_AIM,           // real work was more or less late: the aim differs from the objective
	REASON_OBJECTIVE_PAUSED,        // a signal is missing: the rules are not simulated
	REASON_OBJECTIVE_STARTUP,       // the start-up time is unknown: a default is used
	REASON_OBJECTIVE_NOT_REACHABLE, // maxReplicas is too few
	REASON_CAPACITY_LEARNT,       // replicas serve more or less than `demand` says, and that is taken into account
	REASON_CAPACITY_DOUBTFUL,     // by more than is believed
	REASON_BACKLOG_DOUBTFUL,      // no work ever waits although more arrives than can be served
	REASON_CAPACITY_PENDING,      // replicas are unschedulable
	REASON_CAPACITY_UNKNOWN,      // the stage had no effect
	REASON_PODS_FILLED,           // pods without a sample were counted all the same
	REASON_GAIN_LEARNING,         // guards.minMarginalGain has too few observations
	REASON_THROTTLED,             // guards.maxThrottledShare lowers the targets
	REASON_THROTTLED_UNKNOWN,     // its signal is missing
	REASON_THROTTLED_NOT_A_SHARE, // its signal is outside 0..1
	REASON_UNHEALTHY_REPLICAS,    // guards.unhealthyReplicas: replicas are on failing GPUs
	REASON_UNHEALTHY_UNKNOWN,     // which replicas are on failing GPUs is unknown
	REASON__COUNT
};

struct reason_info {
	const char *name; // CamelCase, stable
	// Sentence with placeholders filled from the trace entry: {signal} {value} {limit} {before} {after} {duration}
	// {count} {nth} {window} {detail} {schedule} {rule}, {pool}: the sentence of the pool, and from the policy
	// {low}: the signal's low watermark, {late} and {wait}: the objective. See struct trace_entry.
	const char *sentence;
	const char *condition;  // the status condition that it explains: AbleToScale, ScalingActive, ScalingLimited,
	                        // Paused, DryRun; NULL
	bool holds;             // AbleToScale is False: the others permit a smaller step, or wait for the signals
	const char *event_type; // "Normal" or "Warning"
};

const struct reason_info *reason_info(enum reason r);

#endif
