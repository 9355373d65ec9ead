// SPDX-License-Identifier: Apache-2.0
// spec.behavior of a GPUAutoscaler: autoscaling/v2 HorizontalPodAutoscalerBehavior, field for field, with its defaults.
// Kubernetes: pkg/apis/autoscaling/v2/defaults.go, pkg/apis/autoscaling/validation.
#include "policies/engine/policy.h"
#include "policies/schema/policy_schema_private.h"

#define STABILIZATION_SECONDS_MAX 3600
#define PERIOD_SECONDS_MAX        1800
#define DRAIN_MS_MAX              HOUR_MS

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
const struct schema policy_schema_behavior = {SCHEMA("GPUAutoscaler.spec.behavior", struct policy, behavior_fields), DOC("Stabilization windows and rate limits of the HorizontalPodAutoscaler (autoscaling/v2).")};
// clang-format on
