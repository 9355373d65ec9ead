// SPDX-License-Identifier: Apache-2.0
#include "policies/reason.h"

#include <assert.h>
#include <stddef.h>

#define NORMAL  "Normal"
#define WARNING "Warning"
#define ABLE    "AbleToScale"
#define ACTIVE  "ScalingActive"
#define LIMITED "ScalingLimited"

static const struct reason_info reasons[] = {
        [REASON_NONE] = {"None", "", NULL, NORMAL},
        [REASON_DESIRED_WITHIN_RANGE] = {"DesiredWithinRange", "{after} replicas are wanted, and nothing limits that",
                                         LIMITED, NORMAL},

        [REASON_ABOVE_TARGET] = {"AboveTarget", "{signal} is {value}, above its target {limit}: {before} -> {after}",
                                 ACTIVE, NORMAL},
        [REASON_BELOW_TARGET] = {"BelowTarget", "{signal} is {value}, below its target {limit}: {before} -> {after}",
                                 ACTIVE, NORMAL},
        [REASON_WITHIN_TOLERANCE] = {"WithinTolerance",
                                     "{signal} is {value}, within tolerance of its target {limit}: staying at {after}",
                                     ACTIVE, NORMAL},
        [REASON_ABOVE_HIGH_WATERMARK] = {"AboveHighWatermark",
                                         "{signal} is {value}, above its high watermark {limit}: {before} -> {after}",
                                         ACTIVE, NORMAL},
        [REASON_BELOW_LOW_WATERMARK] = {"BelowLowWatermark",
                                        "{signal} is {value}, below its low watermark {limit}: {before} -> {after}",
                                        ACTIVE, NORMAL},
        [REASON_INSIDE_WATERMARKS] =
                {"InsideWatermarks",
                 "{signal} is {value}, inside its watermarks ({low} to {limit}): staying at {after}", ACTIVE, NORMAL},
        [REASON_REPLICAS_REQUESTED] = {"ReplicasRequested", "{signal} asks for {value} replicas: {before} -> {after}",
                                       ACTIVE, NORMAL},

        [REASON_PODS_INCONCLUSIVE] = {"PodsInconclusive",
                                      "{signal} is {value} against {limit} when pods without a sample are counted "
                                      "too, which does not say enough: staying at {after}",
                                      ACTIVE, NORMAL},

        [REASON_NO_DATA] = {"NoData", "no data: the query of {signal} returned no series", ACTIVE, WARNING},
        [REASON_QUERY_FAILED] = {"QueryFailed", "the query of {signal} failed: {detail}", ACTIVE, WARNING},
        [REASON_PARTIAL_RESPONSE] = {"PartialResponse", "the answer for {signal} is incomplete and not used: {detail}",
                                     ACTIVE, WARNING},
        [REASON_STALE_DATA] = {"StaleData", "the newest sample of {signal} is {duration} old, more than {window}",
                               ACTIVE, WARNING},
        [REASON_NON_FINITE] = {"NonFinite", "{signal} is {value}, which is not a number to scale on", ACTIVE, WARNING},
        [REASON_AMBIGUOUS_SERIES] = {"AmbiguousSeries",
                                     "the query of {signal} returned {count} series where one is needed: aggregate in "
                                     "the query, or set series: Sum, Max, Min or Avg",
                                     ACTIVE, WARNING},
        [REASON_NO_POD_LABEL] = {"NoPodLabel",
                                 "none of the {count} series of {signal} has a label pod or exported_pod, which type "
                                 "Pods needs: aggregate by (pod)",
                                 ACTIVE, WARNING},
        [REASON_NO_POD_SAMPLES] = {"NoPodSamples",
                                   "none of the {count} series of {signal} belongs to a running pod of the target",
                                   ACTIVE, WARNING},
        [REASON_SEVERAL_PER_POD] = {"SeveralPerPod",
                                    "several of the {count} series of {signal} belong to one pod: aggregate, as in "
                                    "avg by (pod) (...)",
                                    ACTIVE, WARNING},
        [REASON_WINDOW_FILLING] =
                {"WindowFilling", "the {window} window of {signal} is still filling: {count} samples, {duration} to go",
                 ACTIVE, NORMAL},
        [REASON_MISSING_AS_ZERO] = {"MissingAsZero",
                                    "the query of {signal} returned no series: taken as 0 (onMissing: Zero)", ACTIVE,
                                    NORMAL},
        [REASON_SIGNAL_IGNORED] = {"SignalIgnored", "{signal} has no usable data: left out (onMissing: Ignore)", ACTIVE,
                                   NORMAL},
        [REASON_PARTIAL_SIGNALS] = {"PartialSignals",
                                    "{signal} has no usable data, so there is no scale-down: staying at {after}",
                                    ACTIVE, WARNING},
        [REASON_ALL_SIGNALS_MISSING] = {"AllSignalsMissing",
                                        "none of the {count} signals has usable data: staying at {after}", ACTIVE,
                                        WARNING},
        [REASON_NO_READY_REPLICAS] = {"NoReadyReplicas",
                                      "{signal} is {value}, but no replica is ready to hold that against: staying at "
                                      "{after}",
                                      ACTIVE, WARNING},

        [REASON_SUSTAIN_PENDING] =
                {"SustainPending",
                 "{signal} asks for {before}, but must do so for {window}: staying at {after} for another {duration}",
                 ABLE, NORMAL},
        [REASON_REPLICAS_STARTING] = {"ReplicasStarting",
                                      "{signal} asks for {before}, but {count} replicas were ordered less than "
                                      "{window} ago and are capacity to come: {after}",
                                      ABLE, NORMAL},
        [REASON_COMBINED] = {"Combined", "{signal} decides among {count} signals: {before} -> {after}", ACTIVE, NORMAL},
        [REASON_FALLBACK_ACTIVE] = {"FallbackActive",
                                    "the signals failed {count} times in a row, more than fallback.failureThreshold "
                                    "{limit}: {before} -> {after}",
                                    ACTIVE, WARNING},
        [REASON_FALLBACK_LIFTING] = {"FallbackLifting",
                                     "{before} is wanted, but the signals were read {count} times in a row since the "
                                     "fallback, and must be {limit} times: staying at {after}",
                                     ACTIVE, NORMAL},
        [REASON_COMBINE_FORMULA] = {"CombineFormula", "the formula of combine gives {value}: {before} -> {after}",
                                    ACTIVE, NORMAL},
        [REASON_FORMULA_MISSING] = {"FormulaMissing",
                                    "the formula of combine needs {signal}, which has no usable data: staying at "
                                    "{after}",
                                    ACTIVE, WARNING},
        [REASON_FORMULA_FAILED] = {"FormulaFailed",
                                   "the formula of combine has no result, it divides by zero or leaves the range of "
                                   "numbers: staying at {after}",
                                   ACTIVE, WARNING},
        [REASON_PANIC] = {"Panic",
                          "panic: {signal} is {value} over {window}, and nothing is taken away for another {duration}: "
                          "{before} -> {after}",
                          ACTIVE, NORMAL},
        [REASON_FORECAST] = {"Forecast", "{signal} will be {value} in {duration}, up to {limit}: {before} -> {after}",
                             ACTIVE, NORMAL},
        [REASON_SCALE_UP_STABILIZED] = {"ScaleUpStabilized",
                                        "{before} is wanted, but {limit} was recommended within the last {window}: "
                                        "{after} for another {duration}",
                                        ABLE, NORMAL},
        [REASON_SCALE_DOWN_STABILIZED] = {"ScaleDownStabilized",
                                          "{before} is wanted, but {limit} was recommended within the last {window}: "
                                          "{after} for another {duration}",
                                          ABLE, NORMAL},
        [REASON_SCALE_UP_LIMIT] = {"ScaleUpLimit",
                                   "{before} is wanted, but behavior.scaleUp allows {limit} at this time", LIMITED,
                                   NORMAL},
        [REASON_SCALE_DOWN_LIMIT] = {"ScaleDownLimit",
                                     "{before} is wanted, but behavior.scaleDown allows {limit} at this time", LIMITED,
                                     NORMAL},
        [REASON_SCALE_UP_DISABLED] = {"ScaleUpDisabled",
                                      "{before} is wanted, but behavior.scaleUp.selectPolicy is Disabled: staying at "
                                      "{after}",
                                      LIMITED, NORMAL},
        [REASON_SCALE_DOWN_DISABLED] = {"ScaleDownDisabled",
                                        "{before} is wanted, but behavior.scaleDown.selectPolicy is Disabled: staying "
                                        "at {after}",
                                        LIMITED, NORMAL},
        [REASON_COOLDOWN_ACTIVE] = {"CooldownActive",
                                    "{before} is wanted, but the last scale was less than {window} ago: staying at "
                                    "{after} for another {duration}",
                                    ABLE, NORMAL},
        [REASON_IDLE] = {"Idle", "{signal} is {value}, not above {limit}: idle, staying at {after}", ACTIVE, NORMAL},
        [REASON_IDLE_REACHED] = {"IdleReached",
                                 "{signal} has not been above {limit} for {duration}, idle.after is {window}: idle, "
                                 "{after} replicas",
                                 ACTIVE, NORMAL},
        [REASON_ACTIVATED] = {"Activated", "{signal} is {value}, above {limit}: no longer idle, {after} replicas",
                              ACTIVE, NORMAL},
        [REASON_ACTIVATION_UNKNOWN] = {"ActivationUnknown",
                                       "{signal} has no usable data, so it is not known whether the idle target is "
                                       "needed: staying at {after}",
                                       ACTIVE, WARNING},
        [REASON_TOO_FEW_REPLICAS] = {"TooFewReplicas", "{before} is below minReplicas {limit}: {after}", LIMITED,
                                     NORMAL},
        [REASON_TOO_MANY_REPLICAS] = {"TooManyReplicas", "{before} is above maxReplicas {limit}: {after}", LIMITED,
                                      NORMAL},
        [REASON_REPLICA_MULTIPLE] = {"ReplicaMultiple", "{before} is not a multiple of {limit}: {after}", LIMITED,
                                     NORMAL},
        [REASON_PENDING_REPLICAS] = {"PendingReplicas",
                                     "{before} is wanted, but {count} replicas are still starting, more than "
                                     "guards.maxPendingPods {limit}: staying at {after}",
                                     ABLE, NORMAL},
        [REASON_TOO_FEW_AVAILABLE] = {"TooFewAvailable",
                                      "{before} is wanted, but only {value} % of the replicas are ready, less than "
                                      "guards.minAvailablePercent {limit}: staying at {after}",
                                      ABLE, WARNING},
        [REASON_MAX_STEP] = {"MaxStep", "{before} is wanted, but guards.maxStep is {limit}: {after}", LIMITED, NORMAL},
        [REASON_SCALING_DISABLED] = {"ScalingDisabled",
                                     "the target is scaled to 0 while minReplicas is {limit}: scaling is disabled "
                                     "until somebody sets its replicas",
                                     ACTIVE, NORMAL},
        [REASON_PAUSED] = {"Paused", "paused: {before} would be wanted, staying at {after}", "Paused", NORMAL},
        [REASON_DRY_RUN] = {"DryRun", "dry run: {before} -> {after} is not written", "DryRun", NORMAL},

        [REASON_READY_UNKNOWN] = {"ReadyUnknown", "the number of ready replicas is not known: counting all {before}",
                                  NULL, NORMAL},
        [REASON_FUTURE_SAMPLE] = {"FutureSample",
                                  "the newest sample of {signal} is {duration} ahead of this clock: taken as of now",
                                  NULL, WARNING},
        [REASON_WINDOW_AGGREGATE] = {"WindowAggregate", "{signal} is {value} over {window}, from {count} samples", NULL,
                                     NORMAL},
        [REASON_SCHEDULE_ACTIVE] = {"ScheduleActive",
                                    "schedule {schedule} is in force: {value} to {limit} replicas; schedules change "
                                    "again in {duration}",
                                    NULL, NORMAL},
        [REASON_IDLE_PENDING] = {"IdlePending",
                                 "{signal} is {value}, not above {limit}: idle in {duration} if it stays so", NULL,
                                 NORMAL},
        [REASON_STARTUP_LEARNT] = {"StartupLearnt",
                                   "replicas took {duration} from their order to being ready; {window} is the median "
                                   "of {count} starts",
                                   NULL, NORMAL},
        [REASON_WINDOW_OVERFLOW] = {"WindowOverflow",
                                    "{signal} is sampled more often than interval says: only the newest {count} "
                                    "samples of {window} are kept",
                                    NULL, WARNING},
        [REASON_FORECAST_COVERED] = {"ForecastCovered",
                                     "{signal} will be {value} in {duration}, up to {limit}: {after} is enough", NULL,
                                     NORMAL},
        [REASON_FORECAST_LEARNING] = {"ForecastLearning",
                                      "the forecast of {signal} is off until it has seen {window}: {duration} to go",
                                      NULL, NORMAL},
        [REASON_FORECAST_NO_HORIZON] = {"ForecastNoHorizon",
                                        "the forecast of {signal} is off: how long replicas take to start is not "
                                        "known yet",
                                        NULL, NORMAL},
        [REASON_PODS_FILLED] = {"PodsFilled", "{count} pods have no sample of {signal}: counted as {limit} each", NULL,
                                NORMAL},
};
_Static_assert(sizeof reasons / sizeof reasons[0] == REASON__COUNT, "one row per reason");

const struct reason_info *reason_info(enum reason r)
{
	assert(r >= 0 && r < REASON__COUNT);
	return &reasons[r];
}

static const char *const stages[] = {
        [STAGE_SOURCES] = "sources",   [STAGE_WINDOWS] = "windows",     [STAGE_SIGNALS] = "signals",
        [STAGE_SUSTAIN] = "sustain",   [STAGE_PANIC] = "panic",         [STAGE_COMBINE] = "combine",
        [STAGE_FORECAST] = "forecast", [STAGE_STABILIZE] = "stabilize", [STAGE_RATE] = "rate",
        [STAGE_COOLDOWN] = "cooldown", [STAGE_IDLE] = "idle",           [STAGE_BOUNDS] = "bounds",
        [STAGE_MULTIPLE] = "multiple", [STAGE_GUARDS] = "guards",       [STAGE_MODE] = "mode",
};
_Static_assert(sizeof stages / sizeof stages[0] == STAGE__COUNT, "one name per stage");

const char *stage_name(enum stage s)
{
	assert(s >= 0 && s < STAGE__COUNT);
	return stages[s];
}
