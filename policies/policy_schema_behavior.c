// SPDX-License-Identifier: Apache-2.0
// spec.behavior of a GPUAutoscaler: autoscaling/v2 HorizontalPodAutoscalerBehavior, field for field, with its defaults.
// Kubernetes: pkg/apis/autoscaling/v2/defaults.go, pkg/apis/autoscaling/validation.
#include "policies/policy.h"
#include "policies/policy_schema_private.h"

#define STABILIZATION_SECONDS_MAX 3600
#define PERIOD_SECONDS_MAX        1800

static const char *const rate_types[] = {
        [RATE_PODS] = "Pods",
        [RATE_PERCENT] = "Percent",
        [RATE_TYPE__COUNT] = NULL,
};
_Static_assert(COUNT_OF(rate_types) == RATE_TYPE__COUNT + 1, "one name per rate type");

static const char *const select_policies[] = {
        [SELECT_MAX] = "Max",
        [SELECT_MIN] = "Min",
        [SELECT_DISABLED] = "Disabled",
        [SELECT_POLICY__COUNT] = NULL,
};
_Static_assert(COUNT_OF(select_policies) == SELECT_POLICY__COUNT + 1, "one name per way to select");

static const struct schema_field rate_fields[] = {
        {.name = "type",
         .type = SCHEMA_ENUM,
         .doc = "Pods: a number of replicas. Percent: a share of the replicas at the start of the period.",
         FIELD(struct policy_rate, type),
         .required = true,
         .enum_names = rate_types},
        {.name = "value",
         .type = SCHEMA_INT32,
         .doc = "How many replicas, or how many percent, may change in one period.",
         FIELD(struct policy_rate, value),
         .required = true,
         .min = 1,
         .max = INT32_MAX},
        {.name = "periodSeconds",
         .type = SCHEMA_SECONDS_MS,
         .doc = "Length of the period in seconds.",
         FIELD(struct policy_rate, period_ms),
         .required = true,
         .min = 1,
         .max = PERIOD_SECONDS_MAX},
};

static const struct schema rate = {
        .name = "GPUAutoscaler.spec.behavior.policies[]",
        .doc = "One rate limit.",
        .struct_size = sizeof(struct policy_rate),
        .fields = rate_fields,
        .n_fields = COUNT_OF(rate_fields),
};

// Up and down differ in their defaults only.
#define RULES_FIELDS(stabilization_default, stabilization_doc, policies_default)                                       \
	{                                                                                                              \
		{.name = "stabilizationWindowSeconds",                                                                 \
		 .type = SCHEMA_SECONDS_MS,                                                                            \
		 .doc = (stabilization_doc),                                                                           \
		 FIELD(struct policy_scaling_rules, stabilization_window_ms),                                          \
		 .default_text = (stabilization_default),                                                              \
		 .min = 0,                                                                                             \
		 .max = STABILIZATION_SECONDS_MAX},                                                                    \
		        {.name = "selectPolicy",                                                                       \
		         .type = SCHEMA_ENUM,                                                                          \
		         .doc = "Which of the policies holds: Max the one that allows the largest change, Min the "    \
		                "smallest. "                                                                           \
		                "Disabled: no scaling in this direction.",                                             \
		         FIELD(struct policy_scaling_rules, select),                                                   \
		         .default_text = "Max",                                                                        \
		         .enum_names = select_policies},                                                               \
		        {.name = "policies",                                                                           \
		         .type = SCHEMA_LIST,                                                                          \
		         .doc = "How many replicas may change in a period of time.",                                   \
		         FIELD_LIST_SET(struct policy_scaling_rules, rates, n_rates, rates_set),                       \
		         .default_text = (policies_default),                                                           \
		         .min = 1,                                                                                     \
		         .max_items = POLICY_RATE_POLICIES_MAX,                                                        \
		         .child = &rate},                                                                              \
		        {.name = "tolerance",                                                                          \
		         .type = SCHEMA_QUANTITY,                                                                      \
		         .doc = "Overrides the tolerance of every signal with a target in this direction.",            \
		         FIELD_SET(struct policy_scaling_rules, tolerance_ratio, tolerance_set),                       \
		         .min = 0,                                                                                     \
		         .max = 10},                                                                                   \
	}

static const struct schema_field up_fields[] =
        RULES_FIELDS("0", "Scale up no further than the smallest recommendation of this many seconds.",
                     "[{type: Pods, value: 4, periodSeconds: 15}, {type: Percent, value: 100, periodSeconds: 15}]");
static const struct schema_field down_fields[] =
        RULES_FIELDS("300", "Scale down no further than the largest recommendation of this many seconds.",
                     "[{type: Percent, value: 100, periodSeconds: 15}]");

static const struct schema up = {
        .name = "GPUAutoscaler.spec.behavior.scaleUp",
        .doc = "Rules for scaling up.",
        .struct_size = sizeof(struct policy_scaling_rules),
        .fields = up_fields,
        .n_fields = COUNT_OF(up_fields),
};

static const struct schema down = {
        .name = "GPUAutoscaler.spec.behavior.scaleDown",
        .doc = "Rules for scaling down.",
        .struct_size = sizeof(struct policy_scaling_rules),
        .fields = down_fields,
        .n_fields = COUNT_OF(down_fields),
};

static const struct schema_field behavior_fields[] = {
        {.name = "scaleUp",
         .type = SCHEMA_OBJECT,
         .doc = "Rules for scaling up. Default: no stabilization; 4 replicas or 100 % in 15 s, whichever is more.",
         FIELD(struct policy, scale_up),
         .child = &up},
        {.name = "scaleDown",
         .type = SCHEMA_OBJECT,
         .doc = "Rules for scaling down. Default: stabilized over 300 s; 100 % in 15 s.",
         FIELD(struct policy, scale_down),
         .child = &down},
};

const struct schema policy_schema_behavior = {
        .name = "GPUAutoscaler.spec.behavior",
        .doc = "Stabilization windows and rate limits of the HorizontalPodAutoscaler (autoscaling/v2).",
        .struct_size = sizeof(struct policy),
        .fields = behavior_fields,
        .n_fields = COUNT_OF(behavior_fields),
};
