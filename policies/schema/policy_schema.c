// SPDX-License-Identifier: Apache-2.0
// Root and spec of a GPUAutoscaler; its signals, fleet and variants are in the other files of the table.
#include "policies/schema/policy_schema.h"

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/json/json_path.h"
#include "base/schema/doc.h"
#include "policies/engine/forecast.h"
#include "policies/engine/idle.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"
#include "policies/engine/schedule.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema_private.h"

#define NOT_A_SIGNAL              "must be the name of one of the signals"
#define IS_A_FORMULA              "is a formula: name a signal with a query"
#define ASKS_NOTHING              "has neither target nor watermarks: name a signal that asks for replicas"
#define OBJECTIVE_INTERVAL_MAX_MS 120000 // eight simulated steps of 15 s
#define STABILIZATION_SECONDS_MAX 3600
#define PERIOD_SECONDS_MAX        1800
#define DRAIN_MS_MAX              HOUR_MS

// ---- scaleTargetRef ----

static void check_target_ref(const void *value, struct fault_list *l)
{
	const char *path = ((const struct policy_document *)value)->target.path;
	if (path && (strncmp(path, "spec.", 5) != 0 || !json_path_is_valid(path)))
		fault_add(l, "path", -1,
		          "is not a path below spec: separate members by dots and choose an item of a list by a text "
		          "in it, as in spec.workerGroupSpecs[groupName=gpu].replicas");
}

// clang-format off
static const struct schema_field target_ref_fields[] = {
	{ROW("apiVersion", STRING), FIELD(struct policy_document, target.api_version), DEFAULT("apps/v1"),    RANGE(1, 253), DOC("API group and version of the scaled object.")},
	{ROW("kind", STRING),       FIELD(struct policy_document, target.kind),        DEFAULT("Deployment"), RANGE(1, 63),  DOC("Kind of the scaled object: Deployment, StatefulSet, LeaderWorkerSet or anything else with a scale subresource; with `path`, any kind. docs/targets.md lists the kinds whose replicas and pods the controller knows.")},
	{ROW("name", STRING),       FIELD(struct policy_document, target.name),        REQUIRED,              RANGE(1, 253), DOC("Name of the scaled object, in the namespace of the policy.")},
	{ROW("path", STRING),       FIELD(struct policy_document, target.path),        OPTIONAL,              RANGE(1, JSON_PATH_BYTES_MAX), PATTERN("^spec([.][A-Za-z0-9_-]+([[][A-Za-z0-9_-]+=[A-Za-z0-9_.-]+[]])?)+$"), DOC("Where the object has the number of its replicas, for a kind without a scale subresource: members separated by dots, where [KEY=VALUE] chooses an item of a list, as in spec.workerGroupSpecs[groupName=gpu].replicas. The controller needs the right to patch such objects; see docs/targets.md.")},
};
static const struct schema target_ref = {SCHEMA("GPUAutoscaler.spec.scaleTargetRef", struct policy_document, target_ref_fields), VALIDATE(check_target_ref), DOC("What is scaled.")};
// clang-format on

// ---- behavior ----

// autoscaling/v2 HorizontalPodAutoscalerBehavior, field for field, with its defaults. Kubernetes:
// pkg/apis/autoscaling/v2/defaults.go, pkg/apis/autoscaling/validation.

ENUM_NAMES(rate_types, RATE_TYPE__COUNT, [RATE_PODS] = "Pods", [RATE_PERCENT] = "Percent");

ENUM_NAMES(select_policies,
           SELECT_POLICY__COUNT, [SELECT_MAX] = "Max", [SELECT_MIN] = "Min", [SELECT_DISABLED] = "Disabled");

// clang-format off
static const struct schema_field rate_fields[] = {
	{ROW("type", ENUM),                FIELD(struct policy_rate, type),      REQUIRED, ONE_OF(rate_types),                         DOC("Pods: a number of replicas. Percent: a share of the replicas at the start of the period.")},
	{ROW("value", INT32),              FIELD(struct policy_rate, value),     REQUIRED, RANGE(1, INT32_MAX), TUNE(FACTOR, 0.25, 8), DOC("How many replicas, or how many percent, may change in one period.")},
	{ROW("periodSeconds", SECONDS_MS), FIELD(struct policy_rate, period_ms), REQUIRED, RANGE(1, PERIOD_SECONDS_MAX),               DOC("Length of the period in seconds.")},
};
static const struct schema rate = {SCHEMA("GPUAutoscaler.spec.behavior.policies[]", struct policy_rate, rate_fields), DOC("One rate limit.")};

static const struct schema_field victims_fields[] = {
	{ROW("query", STRING),  FIELD(struct policy_victims, query),  REQUIRED, RANGE(1, 65536), DOC("PromQL, sent only when the scale is reduced: the work of each pod, such as its running requests, in series with a label pod or exported_pod. Several series of a pod are added. 0 means that the pod is empty; a pod without a value, or with one older than a minute, is treated as busy.")},
	{ROW("source", STRING), FIELD(struct policy_victims, source), OPTIONAL, RANGE(1, 63),    DOC("Name of the server to query, as of a signal. Default: the default server.")},
};
static const struct schema victims = {SCHEMA("GPUAutoscaler.spec.behavior.scaleDown.victims", struct policy_victims, victims_fields), DOC("The pods with the least work are removed first, by their deletion cost.")};
// clang-format on

// The two directions have the same fields with different defaults, and scaleDown has more.
// clang-format off
#define RULES_FIELDS(stabilization_default, stabilization_tuned, stabilization_doc, policies_default, ...) { \
	{ROW("stabilizationWindowSeconds", SECONDS_MS), FIELD(struct policy_scaling_rules, stabilization_window_ms),            DEFAULT(stabilization_default), RANGE(0, STABILIZATION_SECONDS_MAX), TUNE(LINEAR, 0, stabilization_tuned), DOC(stabilization_doc)}, \
	{ROW("selectPolicy", ENUM),                     FIELD(struct policy_scaling_rules, select),                             DEFAULT("Max"),                 ONE_OF(select_policies),                                                   DOC("Which of the policies holds: Max the one that allows the largest change, Min the smallest. Disabled: no scaling in this direction.")}, \
	{ROW("policies", LIST),                         FIELD_SET(struct policy_scaling_rules, rates, rates_set), .count_offset = offsetof(struct policy_scaling_rules, n_rates), DEFAULT(policies_default),      ITEMS(1, POLICY_RATE_POLICIES_MAX), CHILD(rate),                           DOC("How many replicas may change in a period of time.")}, \
	{ROW("tolerance", QUANTITY),                    FIELD_SET(struct policy_scaling_rules, tolerance_ratio, tolerance_set), OPTIONAL,                       RANGE(0, 10),                                                              DOC("Overrides the tolerance of every signal with a target in this direction.")}, \
	__VA_ARGS__ \
}

static const struct schema_field up_fields[] = RULES_FIELDS("0", 300, "Scale up no further than the smallest recommendation of this many seconds.", "[{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]", );
static const struct schema_field down_fields[] = RULES_FIELDS("300", 1800, "Scale down no further than the largest recommendation of this many seconds.", "[{type: Percent, value: 100, periodSeconds: 15}]",
	{ROW("victims", OBJECT),    FIELD_SET(struct policy_scaling_rules, victims, victims.set), OPTIONAL, CHILD(victims),                 DOC("Remove the pods with the least work first. Needs the right to patch pods (manifests/victims) and pods of a ReplicaSet; see docs/scale-down.md.")},
	{ROW("drain", DURATION_MS), FIELD(struct policy_scaling_rules, drain_ms),                 OPTIONAL, RANGE(SECOND_MS, DRAIN_MS_MAX), DOC("Do not scale down until the pods that would be removed are empty, or have been waited for this long. A scale-up is never delayed. Needs victims.")});
// clang-format on

static void check_down(const void *value, struct fault_list *l)
{
	const struct policy_scaling_rules *r = value;
	if (r->drain_ms != 0 && !r->victims.set)
		fault_add(l, "drain", -1, "needs victims, whose query shows when a pod is empty");
}

// clang-format off
static const struct schema up = {SCHEMA("GPUAutoscaler.spec.behavior.scaleUp", struct policy_scaling_rules, up_fields), DOC("Rules for scaling up.")};
static const struct schema_rule down_rules[] = {
	{"!has(self.drain) || has(self.victims)", "drain needs victims, whose query shows when a pod is empty"},
};
static const struct schema down = {SCHEMA("GPUAutoscaler.spec.behavior.scaleDown", struct policy_scaling_rules, down_fields), VALIDATE(check_down), RULES(down_rules), DOC("Rules for scaling down.")};

static const struct schema_field behavior_fields[] = {
	{ROW("scaleUp", OBJECT),   FIELD(struct policy, scale_up),   OPTIONAL, CHILD(up),   DOC("Rules for scaling up. Default: no stabilization; 4 replicas or 100 % in 15 s, whichever is more.")},
	{ROW("scaleDown", OBJECT), FIELD(struct policy, scale_down), OPTIONAL, CHILD(down), DOC("Rules for scaling down. Default: stabilized over 300 s; 100 % in 15 s.")},
};
static const struct schema behavior_schema = {SCHEMA("GPUAutoscaler.spec.behavior", struct policy, behavior_fields), DOC("Stabilization windows and rate limits of the HorizontalPodAutoscaler (autoscaling/v2).")};
// clang-format on

// ---- schedules ----

ENUM_NAMES(schedule_combines, SCHEDULE_COMBINE__COUNT, [SCHEDULE_LATEST] = "Latest", [SCHEDULE_MAX] = "Max");

static void check_schedule(const void *value, struct fault_list *l)
{
	const struct policy_schedule *s = value;
	struct cron unused;
	const char *fault = cron_parse(&unused, s->start_text);
	if (fault)
		fault_add(l, "start", -1, fault);
	fault = cron_parse(&unused, s->end_text);
	if (fault)
		fault_add(l, "end", -1, fault);
	if (s->replicas_set && (s->min_set || s->max_set))
		fault_add(l, "replicas", -1,
		          "cannot be combined with minReplicas and maxReplicas: remove one or the others");
	else if (!s->replicas_set && !s->min_set && !s->max_set)
		fault_add(l, NULL, -1, "changes nothing: set minReplicas, maxReplicas or replicas");
	else if (s->min_set && s->max_set && s->min_replicas > s->max_replicas)
		fault_add(l, "minReplicas", -1, "is larger than maxReplicas: lower it or raise maxReplicas");
}

// clang-format off
static const struct schema_field schedule_fields[] = {
	{ROW("name", STRING),       FIELD(struct policy_schedule, name),                       REQUIRED,       RANGE(1, 63),                  DOC("Name of the window, unique in the policy.")},
	{ROW("start", STRING),      FIELD(struct policy_schedule, start_text),                 REQUIRED,       RANGE(1, CRON_TEXT_BYTES_MAX), DOC("When it opens: a cron expression of five fields, as in \"0 8 * * MON-FRI\". A time skipped by daylight saving fires when the clock changes; a repeated time fires once, at its first occurrence.")},
	{ROW("end", STRING),        FIELD(struct policy_schedule, end_text),                   REQUIRED,       RANGE(1, CRON_TEXT_BYTES_MAX), DOC("When it closes: a cron expression of five fields.")},
	{ROW("timeZone", STRING),   FIELD(struct policy_schedule, time_zone),                  DEFAULT("UTC"), RANGE(1, 64),                  DOC("Time zone of both: a name of the IANA database, as Europe/Zurich.")},
	{ROW("minReplicas", INT32), FIELD_SET(struct policy_schedule, min_replicas, min_set),  OPTIONAL,       RANGE(0, POLICY_REPLICAS_MAX), DOC("minReplicas inside the window; the target does not go idle there. 0 needs idle, and leaves it on, or an objective.")},
	{ROW("maxReplicas", INT32), FIELD_SET(struct policy_schedule, max_replicas, max_set),  OPTIONAL,       RANGE(1, POLICY_REPLICAS_MAX), DOC("maxReplicas inside the window.")},
	{ROW("replicas", INT32),    FIELD_SET(struct policy_schedule, replicas, replicas_set), OPTIONAL,       RANGE(0, POLICY_REPLICAS_MAX), DOC("Exactly this many inside the window: minReplicas and maxReplicas in one. 0 scales to zero.")},
	{ROW("combine", ENUM),      FIELD(struct policy_schedule, combine),                    DEFAULT("Latest"), ONE_OF(schedule_combines),  DOC("Which of several open windows is in force. Latest: the one that opened last. Max: of those with Max, the one with the largest minReplicas or replicas, as for KEDA's cron triggers.")},
};
static const struct schema_rule schedule_rules[] = {
	{"has(self.replicas) != (has(self.minReplicas) || has(self.maxReplicas))", "needs either replicas, or minReplicas and maxReplicas or one of them"},
};
static const struct schema schedule_schema = {SCHEMA("GPUAutoscaler.spec.schedules[]", struct policy_schedule, schedule_fields), VALIDATE(check_schedule), RULES(schedule_rules), DOC("Different bounds during a window of time.")};

// ---- idle ----

static const struct schema_field any_of_fields[] = {
	{ROW("signal", STRING),  FIELD(struct policy_activation, signal), REQUIRED,     RANGE(1, 63), DOC("Name of a signal that shows whether the target is needed.")},
	{ROW("above", QUANTITY), FIELD(struct policy_activation, above),  DEFAULT("0"), ANY_SIZE,     DOC("The target is needed while the signal is above this.")},
};
static const struct schema any_of = {SCHEMA("GPUAutoscaler.spec.idle.activation.anyOf[]", struct policy_activation, any_of_fields), DOC("One of several signals that show whether the target is needed.")};
// clang-format on

static void check_activation(const void *value, struct fault_list *l)
{
	const struct policy_idle *idle = value;
	if (!idle->activation.signal && idle->n_any_of == 0)
		fault_add(l, "signal", -1, "required, but missing: add it (string), or anyOf for several signals");
	else if (idle->activation.signal && idle->n_any_of > 0)
		fault_add(l, "anyOf", -1, "cannot be combined with signal: add that signal to the list");
}

// clang-format off
static const struct schema_field activation_fields[] = {
	{ROW("signal", STRING),  FIELD(struct policy_idle, activation.signal),    OPTIONAL,     RANGE(1, 63),                                            DOC("Name of the signal that shows whether the target is needed. Its query must return data without any replica. Exactly one of signal and anyOf.")},
	{ROW("above", QUANTITY), FIELD(struct policy_idle, activation.above),     DEFAULT("0"), ANY_SIZE,                                                DOC("The target is needed while the signal is above this.")},
	{ROW("anyOf", LIST),     FIELD_LIST(struct policy_idle, any_of, n_any_of), OPTIONAL,     ITEMS(1, POLICY_SIGNALS_MAX), KEY("signal"), CHILD(any_of), DOC("Several signals: the target is needed while any of them is above its number, and goes idle once none is, with data of all of them.")},
};
static const struct schema_rule activation_rules[] = {
	{"has(self.signal) != has(self.anyOf)", "needs exactly one of signal and anyOf"},
};
static const struct schema activation = {SCHEMA("GPUAutoscaler.spec.idle.activation", struct policy_idle, activation_fields), VALIDATE(check_activation), RULES(activation_rules), DOC("The signal that shows whether the target is needed, or several.")};

static const struct schema_field idle_fields[] = {
	{ROW("after", DURATION_MS),           FIELD(struct policy_idle, after_ms),            DEFAULT("5m"), RANGE(0, 7 * DAY_MS),          DOC("How long the target must not have been needed, with every replica ready and no data missing, before it goes idle.")},
	{ROW("replicas", INT32),              FIELD(struct policy_idle, replicas),            DEFAULT("0"),  RANGE(0, POLICY_REPLICAS_MAX), DOC("Replicas while idle, fewer than minReplicas; 0 scales to zero.")},
	{ROW("initialCooldown", DURATION_MS), FIELD(struct policy_idle, initial_cooldown_ms), DEFAULT("0s"), RANGE(0, 7 * DAY_MS),          DOC("The target does not go idle for this long after the first decision for the policy.")},
	{ROW("activation", OBJECT),           IN_PARENT,                                      REQUIRED,      CHILD(activation),             DOC("The signal that shows whether the target is needed, or several.")},
};
static const struct schema idle_schema = {SCHEMA("GPUAutoscaler.spec.idle", struct policy_idle, idle_fields), DOC("Scale to fewer than minReplicas, or to zero, after a time without activity, and back at once.")};
// clang-format on

// ---- fallback ----

ENUM_NAMES(fallback_behaviors, FALLBACK_BEHAVIOR__COUNT, [FALLBACK_STATIC] = "Static",
           [FALLBACK_CURRENT] = "CurrentReplicas", [FALLBACK_CURRENT_IF_HIGHER] = "CurrentReplicasIfHigher",
           [FALLBACK_CURRENT_IF_LOWER] = "CurrentReplicasIfLower", [FALLBACK_SCALING_MODIFIERS] = "ScalingModifiers");

ENUM_NAMES(fallback_whens, FALLBACK_WHEN__COUNT, [FALLBACK_ALL] = "All", [FALLBACK_ANY] = "Any");

// clang-format off
static void check_fallback(const void *value, struct fault_list *l)
{
	const struct policy_fallback *f = value;
	bool is_current = f->behavior == FALLBACK_CURRENT, is_formula = f->behavior == FALLBACK_SCALING_MODIFIERS;
	const struct fault_rule rules[] = {
		{is_formula && f->replicas_set, "replicas", "has no meaning with behavior ScalingModifiers, where ?? in the formula replaces it: remove it"},
		{is_current && f->replicas_set, "replicas", "has no meaning with behavior CurrentReplicas: remove it"},
		{!is_current && !is_formula && !f->replicas_set, "replicas", "required, but missing: add it (integer)"},
	};
	fault_add_broken(l, rules, COUNT_OF(rules));
}

static const struct schema_field fallback_fields[] = {
	{ROW("failureThreshold", INT32), FIELD(struct policy_fallback, failure_threshold),          DEFAULT("3"),      RANGE(0, 10000),               DOC("The fallback applies after more consecutive failures of a signal than this, and lifts after this many consecutive ticks with data of all signals; until then the target is not scaled down.")},
	{ROW("replicas", INT32),         FIELD_SET(struct policy_fallback, replicas, replicas_set), OPTIONAL,          RANGE(1, POLICY_REPLICAS_MAX), DOC("Replicas to use. At least 1: an outage never scales to zero.")},
	{ROW("behavior", ENUM),          FIELD(struct policy_fallback, behavior),                   DEFAULT("Static"), ONE_OF(fallback_behaviors),    DOC("Static: `replicas`. CurrentReplicas: the present scale. CurrentReplicasIfHigher, CurrentReplicasIfLower: the present scale if it is higher (lower) than `replicas`, else `replicas`. ScalingModifiers: the result of the formula in `combine` or of a signal, in which a failed signal is nil, so that ?? supplies its default. Until a signal has failed that often, the scale is held.")},
	{ROW("when", ENUM),              FIELD(struct policy_fallback, when),                       DEFAULT("All"),    ONE_OF(fallback_whens),        DOC("All: only when every signal has failed; while one has data, it decides as usual. Any: each failed signal asks for the fallback, in addition to the proposals of the others.")},
};
static const struct schema_rule fallback_rules[] = {
	{"has(self.replicas) != (self.behavior == 'CurrentReplicas' || self.behavior == 'ScalingModifiers')", "replicas is required, but for behavior CurrentReplicas and ScalingModifiers, where it has no meaning"},
};
static const struct schema fallback_schema = {SCHEMA("GPUAutoscaler.spec.fallback", struct policy_fallback, fallback_fields), VALIDATE(check_fallback), RULES(fallback_rules), DOC("Replicas to use when the signals have been missing for long.")};

// ---- startup ----

static const struct schema_field startup_fields[] = {
	{ROW("seconds", SECONDS_MS), FIELD_SET(struct policy_startup, start_ms, given), OPTIONAL, RANGE(1, 86400), DOC("Time from requesting a replica until it is ready, in seconds, until three starts have been observed; from then on their median counts (of the last 9). Default: the first observed start.")},
};
static const struct schema startup_schema = {SCHEMA("GPUAutoscaler.spec.startup", struct policy_startup, startup_fields), DOC("How long a replica takes to become ready; it counts as capacity until then.")};

// ---- guards ----

static const struct schema_field gain_fields[] = {
	{ROW("signal", STRING),      FIELD(struct policy_gain_guard, signal),    REQUIRED,      RANGE(1, 63),      DOC("Name of the signal that measures the throughput of all replicas together: requests, tokens or samples per second. It needs neither target nor watermarks.")},
	{ROW("gain", QUANTITY),      FIELD(struct policy_gain_guard, gain),      REQUIRED,      RANGE(0.01, 0.99), DOC("The least that one more replica must add, as a share of what a single replica serves: \"0.7\".")},
	{ROW("steady", DURATION_MS), FIELD(struct policy_gain_guard, steady_ms), DEFAULT("1m"), RANGE(0, DAY_MS),  DOC("Throughput is learnt once all replicas have been ready and unchanged for this long. Set it to at least the range of the query.")},
};
static const struct schema gain_guard = {SCHEMA("GPUAutoscaler.spec.guards.minMarginalGain", struct policy_gain_guard, gain_fields), DOC("No growth where one more replica would add too little, by Amdahl's law fitted to the measured throughput.")};

static const struct schema_field throttled_fields[] = {
	{ROW("signal", STRING),  FIELD(struct policy_throttled_guard, signal), REQUIRED,       RANGE(1, 63), DOC("Name of the signal that measures the share of throttled replicas, from 0 to 1. It needs neither target nor watermarks.")},
	{ROW("share", QUANTITY), FIELD(struct policy_throttled_guard, share),  DEFAULT("0.1"), RANGE(0, 1),  DOC("Up to this share, throttling is ignored.")},
};
static const struct schema throttled_guard = {SCHEMA("GPUAutoscaler.spec.guards.maxThrottledShare", struct policy_throttled_guard, throttled_fields), DOC("While more than this share of the replicas is throttled, a throttled replica counts as 0.7.")};
// clang-format on

ENUM_NAMES(unhealthy_modes, UNHEALTHY_MODE__COUNT, [UNHEALTHY_IGNORE] = "Ignore", [UNHEALTHY_REPORT] = "Report",
           [UNHEALTHY_REPLACE] = "Replace");

static void check_guards(const void *value, struct fault_list *l)
{
	const struct policy_guards *g = value;
	if (!g->max_pending_set && g->min_available_percent == 0 && g->max_step == 0 && !g->gain.set &&
	    !g->throttled.set && g->unhealthy == UNHEALTHY_IGNORE)
		fault_add(l, NULL, -1,
		          "guards nothing: set maxPendingPods, minAvailablePercent, maxStep, minMarginalGain, "
		          "maxThrottledShare or unhealthyReplicas, or remove it");
}

// clang-format off
static const struct schema_field guard_fields[] = {
	{ROW("maxPendingPods", INT32),      FIELD_SET(struct policy_guards, max_pending_pods, max_pending_set), OPTIONAL, RANGE(0, POLICY_REPLICAS_MAX), DOC("No scale-up while more replicas than this are still starting: pending, or running and not ready yet. 0 scales up only when all are ready. Prevents 2-4-8-16 while models load, and requests that exceed the capacity of the cluster.")},
	{ROW("minAvailablePercent", INT32), FIELD(struct policy_guards, min_available_percent),                 OPTIONAL, RANGE(1, 100),                 DOC("No scaling in either direction while less than this share of the replicas is ready.")},
	{ROW("maxStep", INT32),             FIELD(struct policy_guards, max_step),                              OPTIONAL, RANGE(1, POLICY_REPLICAS_MAX), DOC("Largest change of one decision, in replicas, whatever behavior allows.")},
	{ROW("minMarginalGain", OBJECT),    FIELD_SET(struct policy_guards, gain, gain.set),                    OPTIONAL, CHILD(gain_guard),             DOC("No growth where one more replica would add less than a share of what a single replica serves.")},
	{ROW("unhealthyReplicas", ENUM),    FIELD(struct policy_guards, unhealthy),                             OPTIONAL, ONE_OF(unhealthy_modes),       DOC("Replicas on GPUs that gpuscale remediate took out of service. Replace: orders as many replicas in addition, up to maxReplicas, and removes them when fewer have been on such GPUs for the stabilization window of scaleDown. Report: the trace shows their number. Ignore: the same as without the field.")},
	{ROW("maxThrottledShare", OBJECT),  FIELD_SET(struct policy_guards, throttled, throttled.set),          OPTIONAL, CHILD(throttled_guard),        DOC("Throttled replicas count as 0.7 while more than this share of the replicas is throttled.")},
};
static const struct schema_rule guards_rules[] = {
	{"has(self.maxPendingPods) || has(self.minAvailablePercent) || has(self.maxStep) || has(self.minMarginalGain) || has(self.maxThrottledShare) || (has(self.unhealthyReplicas) && self.unhealthyReplicas != 'Ignore')", "guards nothing: set maxPendingPods, minAvailablePercent, maxStep, minMarginalGain, maxThrottledShare or unhealthyReplicas, or remove it"},
};
static const struct schema guards_schema = {SCHEMA("GPUAutoscaler.spec.guards", struct policy_guards, guard_fields), VALIDATE(check_guards), RULES(guards_rules), DOC("States of the target in which scaling is held or limited.")};
// clang-format on

// ---- capacity ----

ENUM_NAMES(capacity_modes,
           CAPACITY_MODE__COUNT, [CAPACITY_OFF] = "Off", [CAPACITY_FIXED] = "Fixed", [CAPACITY_ELASTIC] = "Elastic");

// clang-format off
static const struct schema_field capacity_fields[] = {
	{ROW("mode", ENUM),               FIELD(struct policy_capacity, mode),       DEFAULT("Off"), ONE_OF(capacity_modes),      DOC("Fixed: never order more replicas than fit into the cluster. Elastic, for clusters with a node autoscaler: order what is wanted, and withdraw what cannot be scheduled in time. Both remove unschedulable replicas first when they scale down. Off: the capacity of the cluster has no effect.")},
	{ROW("giveUpAfter", DURATION_MS), FIELD(struct policy_capacity, give_up_ms), DEFAULT("5m"),  RANGE(SECOND_MS, 7 * DAY_MS), DOC("Elastic: replicas that have been unschedulable for this long are withdrawn, down to minReplicas.")},
	{ROW("retryAfter", DURATION_MS),  FIELD(struct policy_capacity, retry_ms),   DEFAULT("10m"), RANGE(0, 7 * DAY_MS),         DOC("Elastic: for this long after a withdrawal, no more is ordered than fits.")},
};
static const struct schema capacity_schema = {SCHEMA("GPUAutoscaler.spec.capacity", struct policy_capacity, capacity_fields), DOC("What to order when the cluster has no room for it.")};

// ---- gpus ----

static const struct schema_field gpus_fields[] = {
	{ROW("perReplica", INT32), FIELD(struct policy_gpus, per_replica), DEFAULT("1"), RANGE(1, POLICY_GPUS_PER_REPLICA_MAX), DOC("GPUs of one replica, over all of its containers and pods.")},
	{ROW("model", STRING),     FIELD(struct policy_gpus, model),       DEFAULT(""),  RANGE(0, 128),                         DOC("Model of these GPUs, as in H100-SXM: a name of the price book, or the modelName of an exporter. Without it, GPUs are counted and have no price.")},
};
const struct schema policy_schema_gpus = {SCHEMA("GPUAutoscaler.spec.gpus", struct policy_gpus, gpus_fields), DOC("What one replica uses. Only for reports of cost and GPU time; no decision depends on it.")};
// clang-format on

// ---- forecast ----

ENUM_NAMES(models, FORECAST_MODEL__COUNT, [FORECAST_LINEAR] = "Linear", [FORECAST_HOLT_WINTERS] = "HoltWinters");

ENUM_NAMES(uses, FORECAST_USE__COUNT, [FORECAST_SCALE_UP_ONLY] = "ScaleUpOnly", [FORECAST_BOTH] = "Both");

static void check_forecast(const void *value, struct fault_list *l)
{
	const struct policy_forecast *f = value;
	if (f->model == FORECAST_HOLT_WINTERS && !f->season_set)
		fault_add(l, "season", -1, "required with model HoltWinters, but missing: add it, as in 24h");
	if (f->model == FORECAST_LINEAR && f->season_set)
		fault_add(l, "season", -1, "has no meaning with model Linear: remove it, or use HoltWinters");
	if (f->model == FORECAST_HOLT_WINTERS && f->window_set)
		fault_add(l, "window", -1, "has no meaning with model HoltWinters: remove it, or use Linear");
}

// clang-format off
static const struct schema_field forecast_fields[] = {
	{ROW("signal", STRING),      FIELD(struct policy_forecast, signal),                    REQUIRED,               RANGE(1, 63),                       DOC("Name of the signal to look ahead on. Its load is forecast: a value per replica counts times the ready replicas.")},
	{ROW("model", ENUM),         FIELD(struct policy_forecast, model),                     DEFAULT("HoltWinters"), ONE_OF(models),                     DOC("HoltWinters: level, trend and a season that adds to them, for load that recurs with the time of day or week. Linear: a straight line through the last `window`.")},
	{ROW("season", DURATION_MS), FIELD_SET(struct policy_forecast, season_ms, season_set), OPTIONAL,               RANGE(SECOND_MS, 28 * DAY_MS),      DOC("HoltWinters: length of the season, such as 24h or 1w. It is divided into at most 288 slots. After two seasons the forecast is compared with the load for a quarter of a season, at most 6h, and starts if it was better than the last load and the load one season earlier.")},
	{ROW("window", DURATION_MS), FIELD_SET(struct policy_forecast, window_ms, window_set), DEFAULT("10m"),         RANGE(SECOND_MS, 7 * DAY_MS),       DOC("Linear: the period that the line is fitted to. It is divided into at most 64 slots. When the window is full, the forecast is compared with the load for another window, at most 1d, and starts if it was better than the last load.")},
	{ROW("horizon", STRING),     FIELD(struct policy_forecast, horizon_text),              DEFAULT("Startup"),     RANGE(1, 63),                       DOC("How far ahead: a duration, or Startup for the time a replica takes to start (given by startup.seconds or learnt).")},
	{ROW("use", ENUM),           FIELD(struct policy_forecast, use),                       DEFAULT("ScaleUpOnly"), ONE_OF(uses),                       DOC("ScaleUpOnly: the larger of what the signal asks for now and then. Both: the forecast replaces the proposal of the signal, which must still have recent data.")},
	{ROW("band", QUANTITY),      FIELD(struct policy_forecast, band),                      DEFAULT("0"),           RANGE(0, 10), TUNE(LINEAR, 0, 4),   DOC("How many standard deviations of its error are added to the forecast: with 0 the load is above it half of the time, with \"1.3\" one time in ten, with 2 one time in forty.")},
	{ROW("alpha", QUANTITY),     FIELD(struct policy_forecast, alpha),                     DEFAULT("0.3"),         RANGE(0, 1), TUNE(LOG, 0.01, 1),    DOC("HoltWinters: weight of the newest slot in the level.")},
	{ROW("beta", QUANTITY),      FIELD(struct policy_forecast, beta),                      DEFAULT("0.01"),        RANGE(0, 1), TUNE(LOG, 0.001, 0.3), DOC("HoltWinters: weight of the newest change of the level in the trend.")},
	{ROW("gamma", QUANTITY),     FIELD(struct policy_forecast, gamma),                     DEFAULT("0.2"),         RANGE(0, 1), TUNE(LOG, 0.01, 1),    DOC("HoltWinters: weight of the newest season.")},
};
static const struct schema_rule forecast_rules[] = {
	{"self.model == 'HoltWinters' ? has(self.season) && !has(self.window) : !has(self.season)", "model HoltWinters needs a season and takes no window, model Linear takes no season"},
};
static const struct schema forecast_schema = {SCHEMA("GPUAutoscaler.spec.forecast", struct policy_forecast, forecast_fields), VALIDATE(check_forecast), RULES(forecast_rules), DOC("Scale ahead of the load: to what its signal would ask for when replicas requested now are ready.")};

// ---- panic ----

static const struct schema_field panic_fields[] = {
	{ROW("signal", STRING),      FIELD(struct policy_panic, signal),      REQUIRED,       RANGE(1, 63),                         DOC("Name of the signal whose bursts count. It needs a window with aggregate Avg: the stable window.")},
	{ROW("window", STRING),      FIELD(struct policy_panic, window_text), DEFAULT("10%"), RANGE(1, 63),                         DOC("The panic window: the last part of the signal's window, as a share of it (10%) or a duration. At least one interval.")},
	{ROW("threshold", QUANTITY), FIELD(struct policy_panic, threshold),   DEFAULT("2"),   RANGE(1.1, 10), TUNE(LINEAR, 1.1, 5), DOC("A panic starts when the panic window asks for this many times the ready replicas, and ends one stable window after it last did.")},
};
static const struct schema panic_schema = {SCHEMA("GPUAutoscaler.spec.panic", struct policy_panic, panic_fields), DOC("Use a short window during a burst, and do not scale down until it has passed (Knative's panic mode).")};

// ---- objective ----

static const struct schema_field objective_fields[] = {
	{ROW("late", STRING),      FIELD(struct policy_objective, late_text), REQUIRED, RANGE(1, 16), PATTERN("^[0-9]+([.][0-9]+)?%$"), TUNE(LOG, 0.05, 20), DOC("Share of the work that may wait longer than `wait`, from 0.01% to 50%, as in 1%.")},
	{ROW("wait", DURATION_MS), FIELD(struct policy_objective, wait_ms),   REQUIRED, RANGE(SECOND_MS, HOUR_MS),                                           DOC("How long work may wait in the queue before it counts as late, as in 10s.")},
	{ROW("demand", STRING),    FIELD(struct policy_objective, demand),    REQUIRED, RANGE(1, 63),                                                        DOC("Name of the signal that measures arriving work in replicas: 3.2 keeps 3.2 replicas busy. It must not depend on the number of replicas.")},
	{ROW("backlog", STRING),   FIELD(struct policy_objective, backlog),   REQUIRED, RANGE(1, 63),                                                        DOC("Name of the signal that measures queued work in replica-seconds: 600 keeps one replica busy for ten minutes.")},
	{ROW("utilization", STRING), FIELD(struct policy_objective, utilization), OPTIONAL, RANGE(1, 63),                                                    DOC("Name of a signal that measures which share of the ready replicas is busy, from 0 to 1. It asks for no replicas and needs neither target nor watermarks; what a replica can do is then learnt from it, too, not from the queue alone (CapacityLearnt). Leave it out where a replica counts as busy with a fraction of its load, as GPUs do.")},
	{ROW("measured", STRING),  FIELD(struct policy_objective, measured),  OPTIONAL, RANGE(1, 63),                                                        DOC("Name of a signal that measures which share of the requests was late, from 0 to 1, such as the share of vLLM's time to first token above `wait`. It asks for no replicas and needs neither target nor watermarks; the rules are held to less while it is above `late`, and to more while it is below.")},
};
static const struct schema objective_schema = {SCHEMA("GPUAutoscaler.spec.objective", struct policy_objective, objective_fields), DOC("At most `late` of the work may wait longer than `wait`. `demand` and `backlog` have neither target nor watermarks.")};
// clang-format on

// ---- spec ----

static const char *const combine_names[] = {
        [COMBINE_MAX] = "Max", [COMBINE_MIN] = "Min"}; // any other text is a formula
_Static_assert(COUNT_OF(combine_names) == COMBINE_FORMULA, "one name per way to combine but for the formula");

int policy_schema_combine(const char *text)
{
	for (int i = 0; i < COMBINE_FORMULA; i++)
		if (strcmp(text, combine_names[i]) == 0)
			return i;
	return COMBINE_FORMULA;
}

static void check_bounds(const void *value, struct fault_list *l)
{
	const struct policy *p = value;
	if (p->min_replicas > p->max_replicas)
		fault_add(l, "minReplicas", -1, "is larger than maxReplicas: lower it or raise maxReplicas");
	else if (multiple_down(p->max_replicas, p->replica_multiple) < i32_max(p->min_replicas, 1))
		fault_add(l, "replicaMultiple", -1,
		          "has no multiple between minReplicas and maxReplicas: raise maxReplicas or lower it");
	if (p->min_replicas == 0 && !p->idle.set && !p->objective.set)
		fault_add(l, "minReplicas", -1,
		          "0 needs idle, which says when to scale to zero and which signal activates the target, or an "
		          "objective, whose record shows it");
}

static void check_windows(const struct policy *p, struct fault_list *l)
{
	for (size_t i = 0; i < p->n_signals; i++) {
		const struct policy_window *w = &p->signals[i].window;
		if (!w->set)
			continue;
		int64_t samples = (w->duration_ms - 1) / p->interval_ms + 1;
		if (samples > POLICY_WINDOW_SAMPLES_MAX)
			fault_add(l, "signals", (int32_t)i,
			          "window.duration needs more than 512 samples at this interval: let the query do it "
			          "(avg_over_time, max_over_time, quantile_over_time) or use a longer interval");
		else if (samples < w->min_samples)
			fault_add(l, "signals", (int32_t)i,
			          "window.duration never holds minSamples samples at this interval: lengthen it, lower "
			          "minSamples or shorten interval");
	}
}

static void check_idle(const struct policy *p, struct fault_list *l)
{
	size_t n;
	const struct policy_activation *a = idle_activations(&p->idle, &n);
	const char *field = p->idle.n_any_of > 0 ? "idle.activation.anyOf" : "idle.activation.signal";
	if (!p->idle.set)
		return;
	for (; n > 0; n--, a++) {
		size_t signal = a->signal ? policy_signal_index(p, a->signal) : p->n_signals;
		if (signal == p->n_signals)
			fault_add(l, field, -1, NOT_A_SIGNAL);
		else if (p->signals[signal].target.set && p->signals[signal].target.type == TARGET_PODS)
			fault_add(l, field, -1,
			          "has a target of type Pods, which has no data without pods: use another signal");
	}
	if (p->idle.replicas >= i32_max(p->min_replicas, 1))
		fault_add(l, "idle.replicas", -1, "must be smaller than minReplicas (0 with minReplicas 0 or 1)");
	else if (p->replica_multiple > 0 && p->idle.replicas % p->replica_multiple != 0)
		fault_add(l, "idle.replicas", -1, "must be a multiple of replicaMultiple");
}

static const char *schedule_bounds_fault(const struct policy *p, const struct policy_schedule *s)
{
	if (s->min_set && !s->max_set && s->min_replicas > p->max_replicas)
		return "minReplicas is larger than the policy's maxReplicas: set maxReplicas here too";
	if (s->max_set && !s->min_set && s->max_replicas < p->min_replicas)
		return "maxReplicas is smaller than the policy's minReplicas: set minReplicas here too";
	if (s->min_set && s->min_replicas == 0 && !p->idle.set && !p->objective.set)
		return "minReplicas 0 needs idle or an objective; replicas: 0 scales to zero for the time of the "
		       "window";
	return NULL;
}

static void check_schedules(const struct policy *p, struct fault_list *l)
{
	for (size_t i = 0; i < p->n_schedules; i++) {
		const char *fault = schedule_bounds_fault(p, &p->schedules[i]);
		fault = fault ? fault : schedule_fault(p, i);
		for (size_t k = 0; k < i && !fault; k++)
			if (strcmp(p->schedules[i].name, p->schedules[k].name) == 0)
				fault = "has the name of an earlier schedule: use unique names";
		if (fault)
			fault_add(l, "schedules", (int32_t)i, fault);
	}
}

static bool has_formula(const struct policy *p)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].formula_text)
			return true;
	return p->combine_text && policy_schema_combine(p->combine_text) == COMBINE_FORMULA;
}

static bool asks(const struct policy_signal *s)
{
	return s->target.set || s->watermarks.set;
}

static bool any_asks(const struct policy *p)
{
	bool any = p->objective.set || p->n_signals == 0;
	for (size_t i = 0; i < p->n_signals; i++)
		any |= asks(&p->signals[i]);
	return any;
}

// A signal that another field names.
struct named {
	bool is_unknown, is_formula, asks_nothing, is_of_pods, has_average;
};

static struct named find_named(const struct policy *p, bool is_set, const char *name)
{
	size_t i = is_set && name ? policy_signal_index(p, name) : 0;
	const struct policy_signal *s = is_set && name && i < p->n_signals ? &p->signals[i] : NULL;
	if (!s)
		return (struct named){.is_unknown = is_set && name};
	return (struct named){.is_formula = s->formula_text,
	                      .asks_nothing = !asks(s) && !p->objective.set,
	                      .is_of_pods = s->target.set && s->target.type == TARGET_PODS,
	                      .has_average = s->window.set && s->window.aggregate == WINDOW_AVG};
}

// What delays a scale-down longest. Replicas that are removed faster than they start are missing for the next wave of
// load.
static int64_t delay_of_scale_down(const struct policy *p)
{
	int64_t delay_ms = i64_max(p->scale_down.stabilization_window_ms, p->cooldown.down_ms);
	for (size_t i = 0; i < p->n_signals; i++)
		delay_ms = i64_max(delay_ms, p->signals[i].sustain.down_ms);
	return delay_ms;
}

static void check_fields(const struct policy *p, struct fault_list *l)
{
	const struct policy_fallback *fb = &p->fallback;
	const struct policy_guards *g = &p->guards;
	const struct policy_objective *o = &p->objective;
	const struct policy_forecast *f = &p->forecast;
	const struct named gain = find_named(p, g->gain.set, g->gain.signal),
	                   throttled = find_named(p, g->throttled.set, g->throttled.signal),
	                   forecast = find_named(p, f->set, f->signal),
	                   panic = find_named(p, p->panic.set, p->panic.signal);
	bool is_too_high = fb->replicas_set && fb->replicas > p->max_replicas;
	// Signals that are read before formulas are evaluated, or whose past is needed, must have a query. An objective
	// keeps replicas for a start-up time itself.
	// clang-format off
	const struct fault_rule rules[] = {
		{fb->set && fb->behavior == FALLBACK_SCALING_MODIFIERS && !has_formula(p), "fallback.behavior", "ScalingModifiers needs a formula in combine or of a signal, with a default for missing signals: max(a, b ?? 2)"},
		{is_too_high, "fallback.replicas", "is larger than maxReplicas: lower it or raise maxReplicas"},
		{!is_too_high && fb->replicas_set && fb->replicas < p->min_replicas, "fallback.replicas", "is smaller than minReplicas, which takes precedence: raise it"},
		{g->max_step > 0 && g->max_step < p->replica_multiple, "guards.maxStep", "is smaller than replicaMultiple, so that nothing could ever change: raise it"},
		{gain.is_unknown, "guards.minMarginalGain.signal", NOT_A_SIGNAL},
		{throttled.is_unknown, "guards.maxThrottledShare.signal", NOT_A_SIGNAL},
		{forecast.asks_nothing, "forecast.signal", ASKS_NOTHING},
		{panic.asks_nothing, "panic.signal", ASKS_NOTHING},
		{!any_asks(p), "signals", "only inform guards and formulas, and none asks for replicas: add one with a target or watermarks"},
		{throttled.is_formula, "guards.maxThrottledShare.signal", IS_A_FORMULA},
		{forecast.is_formula, "forecast.signal", IS_A_FORMULA},
		{find_named(p, o->set, o->demand).is_formula, "objective.demand", IS_A_FORMULA},
		{find_named(p, o->set, o->backlog).is_formula, "objective.backlog", IS_A_FORMULA},
		{find_named(p, o->set, o->utilization).is_formula, "objective.utilization", IS_A_FORMULA},
		{find_named(p, o->set, o->measured).is_formula, "objective.measured", IS_A_FORMULA},
		{!o->set && p->startup.given && p->scale_down.select != SELECT_DISABLED && delay_of_scale_down(p) < p->startup.start_ms, "startup.seconds", "is longer than anything that delays a scale-down: raise behavior.scaleDown.stabilizationWindowSeconds (or cooldown.down, sustain.down) to at least this"},
		{forecast.is_unknown, "forecast.signal", NOT_A_SIGNAL},
		{forecast.is_of_pods, "forecast.signal", "has a target of type Pods, which cannot be forecast: use a total with type AverageValue"},
		{f->set && f->model == FORECAST_HOLT_WINTERS && f->season_ms / p->interval_ms < FORECAST_SLOTS_MIN, "forecast.season", "must hold at least 4 intervals: lengthen it or shorten interval"},
		{f->set && f->model == FORECAST_LINEAR && f->window_ms / p->interval_ms < FORECAST_SLOTS_MIN, "forecast.window", "must hold at least 4 intervals: lengthen it or shorten interval"},
		{panic.is_unknown, "panic.signal", NOT_A_SIGNAL},
		{p->panic.set && !panic.is_unknown && !panic.has_average, "panic.signal", "has no window with aggregate Avg, the stable window: add it, as in window: {duration: 60s}"},
	};
	// clang-format on
	fault_add_broken(l, rules, COUNT_OF(rules));
}

// ---- spec.objective and other fields ----

static bool is_named(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

static bool is_input(const struct policy *p, const char *name)
{
	return is_named(name, p->objective.demand) || is_named(name, p->objective.backlog);
}

// The objective simulates every sample as it was measured: an average or a delay would be replayed as demand.
static void check_input(const struct policy_signal *s, int32_t i, struct fault_list *l)
{
	if (s->target.set || s->watermarks.set)
		fault_add(l, "signals", i,
		          "is named by the objective, which asks for replicas in its place: remove its target or "
		          "watermarks");
	else if (s->window.set || s->sustain.up_ms > 0 || s->sustain.down_ms > 0)
		fault_add(l, "signals", i,
		          "is named by the objective, which needs every sample as it was measured: remove window and "
		          "sustain");
}

static void check_objective(const struct policy *p, struct fault_list *l)
{
	const struct policy_objective *o = &p->objective;
	if (!o->set)
		return;
	for (size_t i = 0; i < p->n_signals; i++)
		if (is_input(p, p->signals[i].name))
			check_input(&p->signals[i], (int32_t)i, l);
	// clang-format off
	const struct fault_rule rules[] = {
		{find_named(p, true, o->demand).is_unknown, "objective.demand", NOT_A_SIGNAL},
		{find_named(p, true, o->backlog).is_unknown, "objective.backlog", NOT_A_SIGNAL},
		{find_named(p, true, o->utilization).is_unknown, "objective.utilization", NOT_A_SIGNAL},
		{is_input(p, o->utilization), "objective.utilization", "must be another signal than demand and backlog: the share of the replicas that is busy"},
		{find_named(p, true, o->measured).is_unknown, "objective.measured", NOT_A_SIGNAL},
		{is_input(p, o->measured), "objective.measured", "must be another signal than demand and backlog: the share of the requests that was late"},
		{is_named(o->demand, o->backlog), "objective.backlog", "must be another signal than demand: demand is work that arrives, backlog is work that waits"},
		{p->forecast.set && is_input(p, p->forecast.signal), "forecast.signal", "is a signal of the objective, which forecasts it already: remove forecast, or name another signal"},
		{p->interval_ms > OBJECTIVE_INTERVAL_MAX_MS, "interval", "must be at most 2m with an objective, which simulates in steps of 15 s: shorten it"},
		{!p->startup.set, "objective", "needs to know how long a replica takes to start: add startup: {seconds: N}, or startup: {} to learn it from the pods"},
	};
	// clang-format on
	fault_add_broken(l, rules, COUNT_OF(rules));
}

// ---- the table of spec ----

static void check_spec(const void *value, struct fault_list *l)
{
	const struct policy *p = value;
	check_bounds(p, l);
	check_windows(p, l);
	check_schedules(p, l);
	check_idle(p, l);
	check_fields(p, l);
	check_objective(p, l);
	policy_schema_check_variants(value, l);
	policy_schema_check_fleet(value, l);
	for (size_t i = 0; i < p->n_signals; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(p->signals[i].name, p->signals[k].name) == 0) {
				fault_add(l, "signals", (int32_t)i,
				          "has the name of an earlier signal: use unique names");
				break;
			}
}

// clang-format off
static const struct schema_field spec_fields[] = {
	{ROW("scaleTargetRef", OBJECT), IN_PARENT,                                               OPTIONAL,         CHILD(target_ref),                                                          DOC("What is scaled: anything with a scale subresource or a path to its replicas, in the namespace of the policy. Exactly one of scaleTargetRef, scaleTargets and variants is required.")},
	{ROW("scaleTargets", OBJECT),   FIELD_SET(struct policy_document, fleet, fleet.set),     OPTIONAL,         CHILD(policy_schema_fleet),                                                 DOC("Scale many objects by one policy: each by its own series of every signal, with a state of its own. See docs/fleets.md.")},
	{ROW("variants", LIST),         FIELD_LIST(struct policy_document, variants.items, variants.n), OPTIONAL,      ITEMS(1, VARIANTS_MAX), KEY("name"), CHILD(policy_schema_variant),          DOC("Several targets that serve the same requests on different GPUs and share one decision, in units of capacity; see docs/variants.md.")},
	{ROW("switchCost", QUANTITY),   FIELD(struct policy_document, variants.switch_cost), DEFAULT("0"),  RANGE(0, VARIANT_PRICE_MAX),                                                DOC("With variants: what it costs to start one replica, in the currency of the prices. Replicas move to a cheaper variant only when they save more than that per hour.")},
	{ROW("minReplicas", INT32),     FIELD(struct policy, min_replicas),                      DEFAULT("1"),     RANGE(0, POLICY_REPLICAS_MAX), TUNE(LOG, 1, 64),                            DOC("Lower bound. It takes precedence over every signal: fewer replicas go up to it at once, even without data.")},
	{ROW("maxReplicas", INT32),     FIELD(struct policy, max_replicas),                      REQUIRED,         RANGE(1, POLICY_REPLICAS_MAX),                                              DOC("Upper bound. It takes precedence over every signal: more replicas come down to it at once, even without data.")},
	{ROW("interval", DURATION_MS),  FIELD(struct policy, interval_ms),                       DEFAULT("15s"),   RANGE(0.1 * SECOND_MS, HOUR_MS),                                            DOC("Time between two decisions.")},
	{ROW("replicaMultiple", INT32), FIELD(struct policy, replica_multiple),                  DEFAULT("1"),     RANGE(1, POLICY_REPLICAS_MAX),                                              DOC("Replicas come in multiples of this (gangs, nodes of one model). A changed proposal is rounded up to the next multiple; a scale-down never ends above the present scale, nothing ends above maxReplicas.")},
	{ROW("dryRun", BOOL),           FIELD(struct policy, dry_run),                           DEFAULT("false"),                                                                             DOC("Decide and report as usual, but do not scale the target. The annotation " POLICY_ANNOTATION_DRY_RUN ": \"true\" does the same.")},
	{ROW("paused", BOOL),           FIELD(struct policy, paused),                            DEFAULT("false"),                                                                             DOC("Keep the present scale. The annotation " POLICY_ANNOTATION_PAUSED ": \"true\" does the same.")},
	{ROW("signals", LIST),          FIELD_LIST(struct policy, signals, n_signals),           REQUIRED,         ITEMS(1, POLICY_SIGNALS_MAX), KEY("name"), CHILD(policy_schema_signal),     DOC("What the scale follows: one query or formula each, with a target or watermarks.")},
	{ROW("combine", STRING),        FIELD(struct policy, combine_text),                      DEFAULT("Max"),                                                                               DOC("How the proposals of several signals become one: Max takes the largest, Min the smallest. While a signal has no usable data, the others can scale up but not down. Or a formula over signal names, which stand for their proposals: max(sm_active, queue ?? 0); see docs/algorithm.md.")},
	{ROW("behavior", OBJECT),       IN_PARENT,                                               OPTIONAL,         CHILD(behavior_schema),                                                     DOC("Stabilization windows and rate limits, field for field those of the HorizontalPodAutoscaler (autoscaling/v2).")},
	{ROW("cooldown", OBJECT),       FIELD(struct policy, cooldown),                          OPTIONAL,         CHILD(policy_schema_durations),                                             DOC("No scale-up (up) or scale-down (down) for this long after the last scale in either direction.")},
	{ROW("idle", OBJECT),           FIELD_SET(struct policy, idle, idle.set),                OPTIONAL,         CHILD(idle_schema),                                                         DOC("Scale to fewer than minReplicas, or to zero, after a time without activity, and back at once.")},
	{ROW("schedules", LIST),        FIELD_LIST(struct policy, schedules, n_schedules),       OPTIONAL,         ITEMS(0, POLICY_SCHEDULES_MAX), KEY("name"), CHILD(schedule_schema),        DOC("Different bounds during windows of time. Of several open windows the one that opened last is in force; of windows that opened together, the last in the list. The end of a lower bound is stabilized by behavior.scaleDown.")},
	{ROW("forecast", OBJECT),       FIELD_SET(struct policy, forecast, forecast.set),        OPTIONAL,         CHILD(forecast_schema),                                                     DOC("Scale ahead of the load: to what its signal would ask for when replicas requested now are ready.")},
	{ROW("panic", OBJECT),          FIELD_SET(struct policy, panic, panic.set),              OPTIONAL,         CHILD(panic_schema),                                                        DOC("Use a short window during a burst, and do not scale down until it has passed (Knative's panic mode).")},
	{ROW("objective", OBJECT),      FIELD_SET(struct policy, objective, objective.set),      OPTIONAL,         CHILD(objective_schema),                                                    DOC("State the goal instead of a threshold: how much of the work may wait, and how long. The controller replays the demand of the past against many rules and follows the cheapest one that would have met the goal; see docs/objective.md.")},
	{ROW("fallback", OBJECT),       FIELD_SET(struct policy, fallback, fallback.set),        OPTIONAL,         CHILD(fallback_schema),                                                     DOC("Replicas to use when the signals have been missing for long. Until then, and without it, the scale is held.")},
	{ROW("startup", OBJECT),        FIELD_SET(struct policy, startup, startup.set),          OPTIONAL,         CHILD(startup_schema),                                                      DOC("Count replicas requested less than the start-up time ago as capacity, so that a signal does not request them again. `startup: {}` learns that time from the pods.")},
	{ROW("guards", OBJECT),         FIELD_SET(struct policy, guards, guards.set),            OPTIONAL,         CHILD(guards_schema),                                                       DOC("States of the target in which scaling is held or limited. minReplicas and maxReplicas take precedence.")},
	{ROW("capacity", OBJECT),       FIELD(struct policy, capacity),                          OPTIONAL,         CHILD(capacity_schema),                                                     DOC("What to order when the cluster has no room for it; see docs/capacity.md. The controller needs the permission to read nodes and pods; without it, nothing is limited.")},
	{ROW("gpus", OBJECT),           FIELD_SET(struct policy, gpus, gpus.set),                OPTIONAL,         CHILD(policy_schema_gpus),                                                  DOC("What one replica uses. Only for reports of cost and GPU time; no decision depends on it.")},
	{ROW("restoreReplicas", INT32), FIELD_SET(struct policy, restore_replicas, restore_set), OPTIONAL,         RANGE(0, POLICY_REPLICAS_MAX),                                              DOC("Scale of the target after the policy is deleted from the cluster. Without it, or when no controller runs at that time, the scale does not change.")},
};
static const struct schema_rule spec_rules[] = {
	{"self.minReplicas <= self.maxReplicas", "minReplicas is larger than maxReplicas: lower it or raise maxReplicas"},
	{"(has(self.scaleTargetRef) ? 1 : 0) + (has(self.scaleTargets) ? 1 : 0) + (has(self.variants) ? 1 : 0) == 1", "needs exactly one of scaleTargetRef, scaleTargets and variants"},
	{"self.maxReplicas / self.replicaMultiple * self.replicaMultiple >= (self.minReplicas > 1 ? self.minReplicas : 1)", "replicaMultiple has no multiple between minReplicas and maxReplicas: raise maxReplicas or lower it"},
	{"self.minReplicas > 0 || has(self.idle) || has(self.objective)", "minReplicas 0 needs idle, which says when to scale to zero and which signal activates the target, or an objective, whose record shows it"},
	{"!has(self.idle) || !has(self.idle.activation.signal) || self.signals.exists(s, s.name == self.idle.activation.signal)", "idle.activation.signal must be the name of one of the signals"},
	{"!has(self.idle) || !has(self.idle.activation.anyOf) || self.idle.activation.anyOf.all(a, self.signals.exists(s, s.name == a.signal))", "idle.activation.anyOf must have names of the signals"},
	{"!has(self.idle) || self.idle.replicas < (self.minReplicas > 1 ? self.minReplicas : 1)", "idle.replicas must be smaller than minReplicas (0 with minReplicas 0 or 1)"},
	{"!has(self.forecast) || self.signals.exists(s, s.name == self.forecast.signal)", "forecast.signal must be the name of one of the signals"},
	{"!has(self.panic) || self.signals.exists(s, s.name == self.panic.signal && has(s.window) && s.window.aggregate == 'Avg')", "panic.signal must be the name of a signal with a window with aggregate Avg, the stable window"},
	{"self.signals.all(s, (has(s.target) || has(s.watermarks)) != (has(self.objective) && (s.name == self.objective.demand || s.name == self.objective.backlog)) || (has(self.guards) && ((has(self.guards.minMarginalGain) && s.name == self.guards.minMarginalGain.signal) || (has(self.guards.maxThrottledShare) && s.name == self.guards.maxThrottledShare.signal))) || (has(self.objective) && ((has(self.objective.utilization) && s.name == self.objective.utilization) || (has(self.objective.measured) && s.name == self.objective.measured))) || (has(s.query) && self.signals.exists(f, has(f.formula))))", "every signal needs target or watermarks, except the signals of the objective, which take neither, and those of guards and formulas"},
	{"has(self.objective) || self.signals.exists(s, has(s.target) || has(s.watermarks))", "the signals only inform guards and formulas, and none asks for replicas: add one with a target or watermarks"},
	{"!has(self.guards) || !has(self.guards.minMarginalGain) || self.signals.exists(s, s.name == self.guards.minMarginalGain.signal)", "guards.minMarginalGain.signal must be the name of one of the signals"},
	{"!has(self.guards) || !has(self.guards.maxThrottledShare) || self.signals.exists(s, s.name == self.guards.maxThrottledShare.signal)", "guards.maxThrottledShare.signal must be the name of one of the signals"},
	{"!has(self.objective) || (self.signals.exists(s, s.name == self.objective.demand) && self.signals.exists(s, s.name == self.objective.backlog))", "objective.demand and objective.backlog must be names of signals"},
	{"!has(self.objective) || !has(self.objective.utilization) || self.signals.exists(s, s.name == self.objective.utilization)", "objective.utilization must be the name of one of the signals"},
	{"!has(self.objective) || !has(self.objective.measured) || self.signals.exists(s, s.name == self.objective.measured)", "objective.measured must be the name of one of the signals"},
	{"!has(self.objective) || has(self.startup)", "objective needs startup: add startup: {seconds: N}, or startup: {} to learn the time from the pods"},
	{"!has(self.fallback) || !has(self.fallback.replicas) || (self.fallback.replicas <= self.maxReplicas && self.fallback.replicas >= self.minReplicas)", "fallback.replicas must be between minReplicas and maxReplicas"},
	{"!has(self.guards) || !has(self.guards.maxStep) || self.guards.maxStep >= self.replicaMultiple", "guards.maxStep is smaller than replicaMultiple, so that nothing could ever change: raise it"},
};
static const struct schema spec = {SCHEMA("GPUAutoscaler.spec", struct policy_document, spec_fields), VALIDATE(check_spec), .validate_plain = check_bounds, RULES(spec_rules), DOC("What is scaled, within which bounds, by which signals, and how fast.")};
// clang-format on

// ---- metadata ----

const char *const policy_schema_served[] = {"status", NULL};
const char *const policy_schema_served_metadata[] = {"creationTimestamp",
                                                     "deletionGracePeriodSeconds",
                                                     "deletionTimestamp",
                                                     "finalizers",
                                                     "generation",
                                                     "managedFields",
                                                     "ownerReferences",
                                                     "resourceVersion",
                                                     "selfLink",
                                                     "uid",
                                                     NULL};

bool policy_schema_is_dns_name(const char *s, bool dots)
{
	char before = '.';
	for (; *s; before = *s++) {
		bool alnum = (*s >= 'a' && *s <= 'z') || (*s >= '0' && *s <= '9');
		bool edge = before == '.' || before == '-';
		if (alnum || (*s == '-' && before != '.') || (dots && *s == '.' && !edge))
			continue;
		return false;
	}
	return before != '-' && before != '.';
}

static bool is_text(const struct doc_node *n, const char *text)
{
	return n->kind == DOC_SCALAR && n->quoted && strcmp(n->text, text) == 0;
}

// Absent, "true" or "false".
static bool is_switch(const struct doc_node *annotations, const char *key)
{
	const struct doc_node *n = doc_get(annotations, key);
	return !n || is_text(n, "true") || is_text(n, "false");
}

static bool is_switched_on(const struct doc_node *annotations, const char *key)
{
	const struct doc_node *n = doc_get(annotations, key);
	return n && is_text(n, "true");
}

// clang-format off
static void check_metadata(const void *value, struct fault_list *l)
{
	const struct policy *p = value;
	const struct fault_rule rules[] = {
		{!policy_schema_is_dns_name(p->name, true), "name", "must be lower-case letters, digits, '-' and '.', as in llama-70b"},
		{!policy_schema_is_dns_name(p->namespace_name, false), "namespace", "must be lower-case letters, digits and '-', as in serving"},
		{p->annotations && p->annotations->kind != DOC_MAP, "annotations", "must be a map of names to texts"},
		{p->labels && p->labels->kind != DOC_MAP, "labels", "must be a map of names to texts"},
		{!is_switch(p->annotations, POLICY_ANNOTATION_PAUSED), "annotations", POLICY_ANNOTATION_PAUSED " must be \"true\" or \"false\", in quotes"},
		{!is_switch(p->annotations, POLICY_ANNOTATION_DRY_RUN), "annotations", POLICY_ANNOTATION_DRY_RUN " must be \"true\" or \"false\", in quotes"},
	};
	fault_add_broken(l, rules, COUNT_OF(rules));
}

static const struct schema_field metadata_fields[] = {
	{ROW("name", STRING),      FIELD(struct policy, name),           REQUIRED,           RANGE(1, 253), DOC("Name of the policy, unique in its namespace.")},
	{ROW("namespace", STRING), FIELD(struct policy, namespace_name), DEFAULT("default"), RANGE(1, 63),  DOC("Namespace of the policy and of what it scales.")},
	{ROW("annotations", ANY),  FIELD(struct policy, annotations),    OPTIONAL,                          DOC("Free text for tools. " POLICY_ANNOTATION_PAUSED ": \"true\" pauses the policy, " POLICY_ANNOTATION_DRY_RUN ": \"true\" keeps it from writing.")},
	{ROW("labels", ANY),       FIELD(struct policy, labels),         OPTIONAL,                          DOC("Free text for selectors; gpuscale uses them for the members of a GPUPool.")},
};
static const struct schema metadata_schema = {SCHEMA("GPUAutoscaler.metadata", struct policy, metadata_fields), VALIDATE(check_metadata), .ignored = policy_schema_served_metadata, DOC("Name, namespace, annotations and labels, as of every Kubernetes object.")};
// clang-format on

void policy_schema_read_metadata(const struct doc_node *root, struct policy *policy, struct arena *a,
                                 struct schema_errors *errors)
{
	const char *lines = "";
	policy->paused = policy->paused || is_switched_on(policy->annotations, POLICY_ANNOTATION_PAUSED);
	policy->dry_run = policy->dry_run || is_switched_on(policy->annotations, POLICY_ANNOTATION_DRY_RUN);
	for (const struct doc_node *c = policy->labels ? policy->labels->child : NULL; c && lines; c = c->next)
		if (c->kind == DOC_SCALAR)
			lines = arena_printf(a, "%s%s=%s\n", lines, c->key, c->text);
	if (!lines)
		schema_report(errors, root, "metadata.labels", "out of memory");
	policy->label_lines = lines;
	policy->annotations = policy->labels = NULL;
}

// ---- root ----

static const char *const api_versions[] = {POLICY_API_VERSION, NULL};
static const char *const kinds[] = {POLICY_KIND, NULL};

// clang-format off
static const struct schema_field root_fields[] = {
	{ROW("apiVersion", ENUM), FIELD(struct policy, api_version), REQUIRED, ONE_OF(api_versions),          DOC("Version of this format.")},
	{ROW("kind", ENUM),       FIELD(struct policy, kind),        REQUIRED, ONE_OF(kinds),                 DOC("What this document is.")},
	{ROW("metadata", OBJECT), IN_PARENT,                         REQUIRED, CHILD(metadata_schema),        DOC("Name, namespace, annotations and labels.")},
	{ROW("spec", OBJECT),     IN_PARENT,                         REQUIRED, CHILD(spec),                   DOC("What is scaled, within which bounds, by which signals, and how fast.")},
};
const struct schema policy_schema = {SCHEMA(POLICY_KIND, struct policy_document, root_fields), .ignored = policy_schema_served, DOC("Scales one workload by Prometheus queries.")};
// clang-format on
