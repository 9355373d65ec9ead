// SPDX-License-Identifier: Apache-2.0
// One table of reasons: name, condition, event type and sentence. Every explanation of a decision renders one of its
// rows.
#ifndef GPUSCALE_POLICIES_ENGINE_REASON_H
#define GPUSCALE_POLICIES_ENGINE_REASON_H

#include <stdbool.h>

// The table: reason, stable name in CamelCase, what it explains (EXPLAINS_ in decision.c), type of its Event, sentence.
// A sentence has placeholders that are filled from the trace entry: {signal} {value} {limit} {before} {after}
// {duration} {count} {nth} {window} {detail} {schedule} {rule}, {pool}: the sentence of the pool, {variants}, and from
// the policy {low}: the signal's low watermark, {late} and {wait}: the objective. See struct trace_entry.
// clang-format off
#define REASONS(ROW) \
	ROW(NONE,                    "None",                   NOTE,     NORMAL,  "") \
	ROW(DESIRED_WITHIN_RANGE,    "DesiredWithinRange",     LIMITED,  NORMAL,  "{after} replicas are wanted, and nothing limits that") \
	/* signals */ \
	ROW(ABOVE_TARGET,            "AboveTarget",            ACTIVE,   NORMAL,  "{signal} is {value}, above its target {limit}: {before} -> {after}") \
	ROW(BELOW_TARGET,            "BelowTarget",            ACTIVE,   NORMAL,  "{signal} is {value}, below its target {limit}: {before} -> {after}") \
	ROW(WITHIN_TOLERANCE,        "WithinTolerance",        ACTIVE,   NORMAL,  "{signal} is {value}, within tolerance of its target {limit}: staying at {after}") \
	ROW(ABOVE_HIGH_WATERMARK,    "AboveHighWatermark",     ACTIVE,   NORMAL,  "{signal} is {value}, above its high watermark {limit}: {before} -> {after}") \
	ROW(BELOW_LOW_WATERMARK,     "BelowLowWatermark",      ACTIVE,   NORMAL,  "{signal} is {value}, below its low watermark {limit}: {before} -> {after}") \
	ROW(INSIDE_WATERMARKS,       "InsideWatermarks",       ACTIVE,   NORMAL,  "{signal} is {value}, inside its watermarks ({low} to {limit}): staying at {after}") \
	ROW(REPLICAS_REQUESTED,      "ReplicasRequested",      ACTIVE,   NORMAL,  "{signal} asks for {value} replicas: {before} -> {after}") \
	ROW(PODS_INCONCLUSIVE,       "PodsInconclusive",       ACTIVE,   NORMAL,  "{signal} is {value} against {limit} when pods without a sample are included, which is inconclusive: staying at {after}") \
	/* no usable data */ \
	ROW(NO_DATA,                 "NoData",                 ACTIVE,   WARNING, "no data: the query of {signal} returned no series") \
	ROW(QUERY_FAILED,            "QueryFailed",            ACTIVE,   WARNING, "the query of {signal} failed: {detail}") \
	ROW(QUERY_FORBIDDEN,         "QueryForbidden",         ACTIVE,   WARNING, "the query of {signal} was not sent: {detail}") \
	ROW(PARTIAL_RESPONSE,        "PartialResponse",        ACTIVE,   WARNING, "the response for {signal} is incomplete and was not used: {detail}") \
	ROW(STALE_DATA,              "StaleData",              ACTIVE,   WARNING, "the newest sample of {signal} is {duration} old, more than {window}") \
	ROW(CLOCK_SKEW,              "ClockSkew",              ACTIVE,   WARNING, "clock skew of {duration} between this host and the source of {signal}, more than staleAfter {window} allows: set both clocks") \
	ROW(NON_FINITE,              "NonFinite",              ACTIVE,   WARNING, "{signal} is {value}, which is not a finite number") \
	ROW(AMBIGUOUS_SERIES,        "AmbiguousSeries",        ACTIVE,   WARNING, "the query of {signal} returned {count} series where one is needed: aggregate in the query, or set series: Sum, Max, Min or Avg") \
	ROW(NO_POD_LABEL,            "NoPodLabel",             ACTIVE,   WARNING, "none of the {count} series of {signal} has a label pod or exported_pod, which type Pods needs: aggregate by (pod)") \
	ROW(NO_POD_SAMPLES,          "NoPodSamples",           ACTIVE,   WARNING, "none of the {count} series of {signal} belongs to a running pod of the target") \
	ROW(SEVERAL_PER_POD,         "SeveralPerPod",          ACTIVE,   WARNING, "several of the {count} series of {signal} belong to one pod: aggregate, as in avg by (pod) (...)") \
	ROW(WINDOW_FILLING,          "WindowFilling",          ACTIVE,   NORMAL,  "the {window} window of {signal} is still filling: {count} samples, {duration} remaining") \
	ROW(MISSING_AS_ZERO,         "MissingAsZero",          ACTIVE,   NORMAL,  "the query of {signal} returned no series: counted as 0 (onMissing: Zero)") \
	ROW(NON_FINITE_AS_ZERO,      "NonFiniteAsZero",        ACTIVE,   NORMAL,  "{signal} has a sample that is not a finite number: counted as 0 (onMissing: Zero)") \
	ROW(SIGNAL_IGNORED,          "SignalIgnored",          ACTIVE,   NORMAL,  "{signal} has no usable data: ignored (onMissing: Ignore)") \
	ROW(PARTIAL_SIGNALS,         "PartialSignals",         ACTIVE,   WARNING, "{signal} has no usable data, so there is no scale-down: staying at {after}") \
	ROW(ALL_SIGNALS_MISSING,     "AllSignalsMissing",      ACTIVE,   WARNING, "none of the {count} signals has usable data: staying at {after}") \
	ROW(NO_READY_REPLICAS,       "NoReadyReplicas",        ACTIVE,   WARNING, "{signal} is {value}, but no replica is ready to compare it with: staying at {after}") \
	/* later stages */ \
	ROW(SUSTAIN_PENDING,         "SustainPending",         ABLE,     NORMAL,  "{signal} asks for {before}, but must do so for {window}: staying at {after} for another {duration}") \
	ROW(REPLICAS_STARTING,       "ReplicasStarting",       ABLE,     NORMAL,  "{signal} asks for {before}, but {count} replicas requested less than {window} ago are still starting: {after}") \
	ROW(COMBINED,                "Combined",               ACTIVE,   NORMAL,  "{signal} decides among {count} signals: {before} -> {after}") \
	ROW(COMBINE_FORMULA,         "CombineFormula",         ACTIVE,   NORMAL,  "the formula of combine gives {value}: {before} -> {after}") \
	ROW(FORMULA_MISSING,         "FormulaMissing",         ACTIVE,   WARNING, "the formula of {formula} needs {input}, which has no usable data: staying at {after}") \
	ROW(FORMULA_FAILED,          "FormulaFailed",          ACTIVE,   WARNING, "the formula of {formula} has no result (division by zero or overflow): staying at {after}") \
	ROW(FALLBACK_ACTIVE,         "FallbackActive",         ACTIVE,   WARNING, "the signals failed {count} times in a row, more than fallback.failureThreshold {limit}: {before} -> {after}") \
	ROW(FALLBACK_LIFTING,        "FallbackLifting",        ACTIVE,   NORMAL,  "{before} is wanted, but the fallback lifts only after {limit} complete readings in a row, so far {count}: staying at {after}") \
	ROW(PANIC,                   "Panic",                  ACTIVE,   NORMAL,  "panic: {signal} is {value} over {window}, and scale-down is off for another {duration}: {before} -> {after}") \
	ROW(FORECAST,                "Forecast",               ACTIVE,   NORMAL,  "{signal} will be {value} in {duration}, up to {limit}: {before} -> {after}") \
	ROW(OBJECTIVE,               "Objective",              ACTIVE,   NORMAL,  "{rule} asks for {value} replicas, and the backlog to come adds {limit}: {before} -> {after}") \
	ROW(OBJECTIVE_KEPT,          "ObjectiveKept",          ABLE,     NORMAL,  "{rule} asks for {before}, but more was asked for a short time ago, and ordering it again would cost a start-up: {after}") \
	ROW(OBJECTIVE_STARTING,      "ObjectiveStarting",      ABLE,     NORMAL,  "{rule} asks for {value} replicas, but the rules have no record yet, so the scale is not reduced below the one that was found: {after}") \
	ROW(SCALE_UP_STABILIZED,     "ScaleUpStabilized",      ABLE,     NORMAL,  "{before} is wanted, but {limit} was recommended within the last {window}: {after} for another {duration}") \
	ROW(SCALE_DOWN_STABILIZED,   "ScaleDownStabilized",    ABLE,     NORMAL,  "{before} is wanted, but {limit} was recommended within the last {window}: {after} for another {duration}") \
	ROW(SCALE_UP_LIMIT,          "ScaleUpLimit",           LIMITED,  NORMAL,  "{before} is wanted, but behavior.scaleUp allows {limit} at this time") \
	ROW(SCALE_DOWN_LIMIT,        "ScaleDownLimit",         LIMITED,  NORMAL,  "{before} is wanted, but behavior.scaleDown allows {limit} at this time") \
	ROW(SCALE_UP_DISABLED,       "ScaleUpDisabled",        LIMITED,  NORMAL,  "{before} is wanted, but behavior.scaleUp.selectPolicy is Disabled: staying at {after}") \
	ROW(SCALE_DOWN_DISABLED,     "ScaleDownDisabled",      LIMITED,  NORMAL,  "{before} is wanted, but behavior.scaleDown.selectPolicy is Disabled: staying at {after}") \
	ROW(COOLDOWN_ACTIVE,         "CooldownActive",         HOLDS,    NORMAL,  "{before} is wanted, but the last scale was less than {window} ago: staying at {after} for another {duration}") \
	ROW(IDLE,                    "Idle",                   ACTIVE,   NORMAL,  "{signal} is {value}, not above {limit}: idle, staying at {after}") \
	ROW(IDLE_REACHED,            "IdleReached",            ACTIVE,   NORMAL,  "{signal} has not been above {limit} for {duration}, idle.after is {window}: idle, {after} replicas") \
	ROW(ACTIVATED,               "Activated",              ACTIVE,   NORMAL,  "{signal} is {value}, above {limit}: no longer idle, {after} replicas") \
	ROW(ACTIVATION_UNKNOWN,      "ActivationUnknown",      ACTIVE,   WARNING, "{signal} has no usable data, so it is unknown whether the idle target is needed: staying at {after}") \
	ROW(TOO_FEW_REPLICAS,        "TooFewReplicas",         LIMITED,  NORMAL,  "{before} is below minReplicas {limit}: {after}") \
	ROW(TOO_MANY_REPLICAS,       "TooManyReplicas",        LIMITED,  NORMAL,  "{before} is above maxReplicas {limit}: {after}") \
	ROW(REPLICA_MULTIPLE,        "ReplicaMultiple",        LIMITED,  NORMAL,  "{before} is not a multiple of {limit}: {after}") \
	ROW(PENDING_REPLICAS,        "PendingReplicas",        HOLDS,    NORMAL,  "{before} is wanted, but {count} replicas are still starting, more than guards.maxPendingPods {limit}: staying at {after}") \
	ROW(TOO_FEW_AVAILABLE,       "TooFewAvailable",        HOLDS,    WARNING, "{before} is wanted, but only {value} % of the replicas are ready, less than guards.minAvailablePercent {limit}: staying at {after}") \
	ROW(UNHEALTHY_REPLACED,      "UnhealthyReplaced",      LIMITED,  WARNING, "{before} is wanted, failing GPUs hold {count} of the replicas, and {limit} are added in their place: {after}") \
	ROW(MARGINAL_GAIN,           "MarginalGain",           LIMITED,  NORMAL,  "{before} is wanted, but the {nth} replica would add {value} of one, less than guards.minMarginalGain {limit}: {after}") \
	ROW(MAX_STEP,                "MaxStep",                LIMITED,  NORMAL,  "{before} is wanted, but guards.maxStep is {limit}: {after}") \
	ROW(CAPACITY_LIMITED,        "CapacityLimited",        LIMITED,  WARNING, "{before} is wanted, but only {value} more fit, so {count} are not ordered: {after} ({detail})") \
	ROW(CAPACITY_RETRY,          "CapacityRetry",          LIMITED,  NORMAL,  "{before} is wanted, but replicas were withdrawn less than {window} ago and only {value} more fit, so {count} are not ordered: {after} for another {duration} ({detail})") \
	ROW(CAPACITY_WITHDRAWN,      "CapacityWithdrawn",      LIMITED,  WARNING, "{count} replicas have been unschedulable for at least {window} and are withdrawn: {after}; more than fit is ordered again in {duration} ({detail})") \
	ROW(PENDING_REMOVED,         "PendingRemoved",         ABLE,     NORMAL,  "{limit} is wanted, and {count} replicas are unschedulable and serve nothing, so stabilization does not keep them: {after}") \
	ROW(POOL_LIMITED,            "PoolLimited",            LIMITED,  NORMAL,  "requested {before}, granted {after}: {pool}") \
	ROW(BUDGET_LIMITED,          "BudgetLimited",          LIMITED,  NORMAL,  "requested {before}, granted {after}: {pool}") \
	ROW(RATIO_LIMITED,           "RatioLimited",           LIMITED,  NORMAL,  "requested {before}, granted {after}: {pool}") \
	ROW(WAITING_FOR_GPUS,        "WaitingForGPUs",         LIMITED,  NORMAL,  "requested {before}, granted {after}: {pool}") \
	ROW(POOL_HELD,               "PoolHeld",               LIMITED,  WARNING, "requested {before}, granted {after}: {pool}") \
	ROW(DRAINING,                "Draining",               HOLDS,    NORMAL,  "{before} is wanted, but {count} of the pods that would be removed ({victims}) may still have work: staying at {after} for at most another {duration}") \
	ROW(SCALING_DISABLED,        "ScalingDisabled",        ACTIVE,   NORMAL,  "the target is scaled to 0 while minReplicas is {limit}: scaling is disabled until the target is scaled up by hand") \
	ROW(PAUSED,                  "Paused",                 PAUSED,   NORMAL,  "paused: {before} would be wanted, staying at {after}") \
	ROW(VARIANTS_LIMITED,        "VariantsLimited",        LIMITED,  WARNING, "requested {before}, but the variants together serve {after}: {variants}") \
	ROW(VARIANT_UNREADABLE,      "VariantUnreadable",      LIMITED,  WARNING, "a target cannot be read and keeps its replicas: {variants}") \
	ROW(VARIANTS_ROUNDED,        "VariantsRounded",        LIMITED,  NORMAL,  "requested {before}, and whole replicas of the variants serve {after}: {variants}") \
	ROW(DRY_RUN,                 "DryRun",                 DRY_RUN,  NORMAL,  "dry run: {before} -> {after} is not written") \
	/* notes: additional explanations, never the primary reason */ \
	ROW(READY_UNKNOWN,           "ReadyUnknown",           NOTE,     NORMAL,  "the number of ready replicas is unknown: all {before} count as ready") \
	ROW(READY_SURPLUS,           "ReadySurplus",           NOTE,     NORMAL,  "{count} pods or replicas are ready, more than the {before} replicas of the scale (several pods per replica, an overlapping selector or a surge): {after} count as ready") \
	ROW(PODS_SURPLUS,            "PodsSurplus",            NOTE,     NORMAL,  "{count} pods belong to {before} replicas (several pods per replica, an overlapping selector or a surge): the mean of the pods is used for {after}") \
	ROW(FUTURE_SAMPLE,           "FutureSample",           NOTE,     WARNING, "the newest sample of {signal} is {duration} in the future, from clock skew between this host and the source: treated as current") \
	ROW(CLOCK_SET,               "ClockSet",               NOTE,     WARNING, "the clock was set by {value} s: past actions keep their age, and windows are refilled") \
	ROW(FUTURE_STAMP,            "FutureStamp",            NOTE,     WARNING, "a stored time is {duration} in the future, because a clock was wrong: treated as now") \
	ROW(WINDOW_AGGREGATE,        "WindowAggregate",        NOTE,     NORMAL,  "{signal} is {value} over {window}, from {count} samples") \
	ROW(SCHEDULE_ACTIVE,         "ScheduleActive",         NOTE,     NORMAL,  "schedule {schedule} is in force: {value} to {limit} replicas; schedules change again in {duration}") \
	ROW(IDLE_PENDING,            "IdlePending",            NOTE,     NORMAL,  "{signal} is {value}, not above {limit}: idle in {duration} if this continues") \
	ROW(IDLE_ACTIVE,             "IdleActive",             NOTE,     NORMAL,  "not idle: {signal} is {value}, above {limit}") \
	ROW(IDLE_UNKNOWN,            "IdleUnknown",            NOTE,     NORMAL,  "not idle: {signal} has no usable data") \
	ROW(IDLE_STARTING,           "IdleStarting",           NOTE,     NORMAL,  "not idle: {signal} is {value}, not above {limit}, but {count} replicas are not ready, which is waited for {window}: {duration} remaining") \
	ROW(IDLE_UNSATISFIED,        "IdleUnsatisfied",        NOTE,     NORMAL,  "not idle: {signal} has no usable data or asks for more replicas") \
	ROW(IDLE_SUSPENDED,          "IdleSuspended",          NOTE,     NORMAL,  "not idle: the bounds, a schedule, a panic or a fallback keep the target active") \
	ROW(STARTUP_LEARNT,          "StartupLearnt",          NOTE,     NORMAL,  "replicas became ready {duration} after they were requested; the median of {count} starts is {window}") \
	ROW(WINDOW_OVERFLOW,         "WindowOverflow",         NOTE,     WARNING, "{signal} is sampled more often than once per interval: only the newest {count} samples of {window} are kept") \
	ROW(VALUE_LIMITED,           "ValueLimited",           NOTE,     WARNING, "{signal} is {value}, beyond four times what maxReplicas serve: {limit} is remembered instead") \
	ROW(VALUE_NOT_LEARNT,        "ValueNotLearnt",         NOTE,     WARNING, "{signal} is {value}, and is or has in its window a value beyond four times what maxReplicas serve ({limit}): nothing is learnt from it unless it lasts {window}") \
	ROW(FORECAST_COVERED,        "ForecastCovered",        NOTE,     NORMAL,  "{signal} will be {value} in {duration}, up to {limit}: {after} is enough") \
	ROW(FORECAST_LEARNING,       "ForecastLearning",       NOTE,     NORMAL,  "the forecast of {signal} starts after {window} of history: {duration} remaining") \
	ROW(FORECAST_OFF,            "ForecastOff",            NOTE,     NORMAL,  "the forecast of {signal} is off: its mean error over the last day is {value}, that of the last value or of the last season {limit}") \
	ROW(FORECAST_NO_HORIZON,     "ForecastNoHorizon",      NOTE,     NORMAL,  "the forecast of {signal} is off: the start-up time of replicas is not known yet") \
	ROW(OBJECTIVE_RECORD,        "ObjectiveRecord",        NOTE,     NORMAL,  "{rule} would have served {value} % of the work of the last {duration} later than {wait}, with {limit} replicas on average; the objective is {late}") \
	ROW(OBJECTIVE_LEANER,        "ObjectiveLeaner",        NOTE,     NORMAL,  "the next leaner rule, {rule}, would have served {value} % late with {limit} replicas on average") \
	ROW(OBJECTIVE_WAITING,       "ObjectiveWaiting",       NOTE,     NORMAL,  "a leaner rule, {rule}, has been the best one for {duration}; it is used after {window}") \
	ROW(OBJECTIVE_AIM,           "ObjectiveAim",           NOTE,     NORMAL,  "{value} % of the real work was late; the rules are held to {limit} % instead of {late}") \
	ROW(OBJECTIVE_PAUSED,        "ObjectivePaused",        NOTE,     WARNING, "the objective is not simulated while {signal} has no usable data") \
	ROW(OBJECTIVE_STARTUP,       "ObjectiveStartup",       NOTE,     NORMAL,  "the start-up time of replicas is not known yet: the objective uses {window} until the first replica has started") \
	ROW(OBJECTIVE_NOT_REACHABLE, "ObjectiveNotReachable",  NOTE,     WARNING, "{late} of the work later than {wait} cannot be kept with maxReplicas {limit}; {count} replicas would keep it") \
	ROW(CAPACITY_LEARNT,         "CapacityLearnt",         NOTE,     NORMAL,  "a replica serves {value} times the work that {signal} takes for one replica, as {duration} of work that waited show: {divisor}") \
	ROW(CAPACITY_DOUBTFUL,       "CapacityDoubtful",       NOTE,     WARNING, "a replica serves {value} times the work that {signal} takes for one replica, or is further off, and no more is believed: {divisor}") \
	ROW(BACKLOG_DOUBTFUL,        "BacklogDoubtful",        NOTE,     WARNING, "{signal} has always been 0, even while more work arrived than the replicas can serve: check its query") \
	ROW(CAPACITY_PENDING,        "CapacityPending",        NOTE,     NORMAL,  "{count} replicas are unschedulable ({detail})") \
	ROW(CAPACITY_UNKNOWN,        "CapacityUnknown",        NOTE,     WARNING, "the capacity of the cluster is unknown and limits nothing ({detail})") \
	ROW(VICTIMS_CHOSEN,          "VictimsChosen",          NOTE,     NORMAL,  "{count} pods are removed, those with the least work first: {victims}") \
	ROW(VICTIMS_UNKNOWN,         "VictimsUnknown",         NOTE,     WARNING, "{count} pods are removed, and Kubernetes chooses which: {victims}") \
	ROW(VICTIMS_UNMARKED,        "VictimsUnmarked",        NOTE,     WARNING, "{count} pods are removed, and Kubernetes may choose others than those with the least work: {victims}") \
	ROW(VARIANTS_SPREAD,         "VariantsSpread",         NOTE,     NORMAL,  "the variants get {variants}") \
	ROW(PODS_FILLED,             "PodsFilled",             NOTE,     NORMAL,  "{count} pods have no sample of {signal}: counted as {limit} each") \
	ROW(GAIN_LEARNING,           "GainLearning",           NOTE,     NORMAL,  "guards.minMarginalGain has no effect yet: {count} replica counts have been measured at full load, and {limit} that agree are needed, the largest at least 1.5 times the smallest") \
	ROW(THROTTLED,               "Throttled",              NOTE,     WARNING, "{signal} is {value}, above guards.maxThrottledShare {limit}: throttled replicas count as 0.7, so all targets are lowered to {count} %") \
	ROW(THROTTLED_UNKNOWN,       "ThrottledUnknown",       NOTE,     WARNING, "{signal} has no usable data, so guards.maxThrottledShare has no effect") \
	ROW(THROTTLED_NOT_A_SHARE,   "ThrottledNotAShare",     NOTE,     WARNING, "{signal} is {value}, not a share from 0 to 1, so guards.maxThrottledShare has no effect") \
	ROW(UNHEALTHY_REPLICAS,      "UnhealthyReplicas",      NOTE,     WARNING, "failing GPUs hold {count} of the replicas") \
	ROW(UNHEALTHY_UNKNOWN,       "UnhealthyUnknown",       NOTE,     WARNING, "it is unknown how many of the replicas are on failing GPUs, so none is replaced (manifests/capacity-controller grants the permissions)")
#define REASON_ENUM(id, name, condition, event, sentence) REASON_##id,
enum reason { REASONS(REASON_ENUM) REASON__COUNT };
#undef REASON_ENUM
// clang-format on

struct reason_info {
	const char *name;
	const char *sentence;
	const char *condition;  // the status condition that it explains: AbleToScale, ScalingActive, ScalingLimited,
	                        // Paused, DryRun; NULL
	bool holds;             // AbleToScale is False: the others permit a smaller step, or wait for the signals
	const char *event_type; // "Normal" or "Warning"
};

const struct reason_info *reason_info(enum reason r);

#endif
