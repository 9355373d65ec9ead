// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/autoscaler_object.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_span.h"

#define KEDA_GROUP   "keda.sh"
#define KTHENA_GROUP "workload.serving.volcano.sh"

// clang-format off
const struct autoscaler_kind_info autoscaler_kinds[AUTOSCALER_KIND__COUNT] = {
	[AUTOSCALER_SCALED_OBJECT]    = {"ScaledObject",             KEDA_GROUP "/v1alpha1",                 "scaledobjects",             {"spec", "scaleTargetRef"},                           {NULL},                                                    "apps",                       "Deployment"},
	[AUTOSCALER_AIBRIX]           = {"PodAutoscaler",            "autoscaling.aibrix.ai/v1alpha1",       "podautoscalers",            {"spec", "scaleTargetRef"},                           {"spec", "subTargetSelector", "roleName"},                 "",                           ""},
	[AUTOSCALER_DATADOG]          = {"DatadogPodAutoscaler",     "datadoghq.com/v1alpha2",               "datadogpodautoscalers",     {"spec", "targetRef"},                                {NULL},                                                    "",                           ""},
	[AUTOSCALER_DATADOG_V1ALPHA1] = {"DatadogPodAutoscaler",     "datadoghq.com/v1alpha1",               "datadogpodautoscalers",     {"spec", "targetRef"},                                {NULL},                                                    "",                           ""},
	[AUTOSCALER_WATERMARK]        = {"WatermarkPodAutoscaler",   "datadoghq.com/v1alpha1",               "watermarkpodautoscalers",   {"spec", "scaleTargetRef"},                           {NULL},                                                    "",                           ""},
	[AUTOSCALER_KTHENA]           = {"AutoscalingPolicy",        KTHENA_GROUP "/v1alpha1",               "autoscalingpolicies",       {"spec", "homogeneousTarget", "target", "targetRef"}, {NULL},                                                    KTHENA_GROUP,                 "ModelServing"},
	[AUTOSCALER_KTHENA_BINDING]   = {"AutoscalingPolicyBinding", KTHENA_GROUP "/v1alpha1",               "autoscalingpolicybindings", {"spec", "homogeneousTarget", "target", "targetRef"}, {"spec", "homogeneousTarget", "target", "subTargets", "name"}, KTHENA_GROUP,             "ModelServing"},
	[AUTOSCALER_HPA]              = {"HorizontalPodAutoscaler",  "autoscaling/v1",                       "horizontalpodautoscalers",  {"spec", "scaleTargetRef"},                           {NULL},                                                    "",                           ""},
};
// clang-format on

void autoscaler_group_of(const char *api_version, char out[AUTOSCALER_NAME_BYTES])
{
	const char *slash = strchr(api_version, '/');
	size_t len = slash ? (size_t)(slash - api_version) : 0;
	if (len >= AUTOSCALER_NAME_BYTES)
		len = 0;
	memcpy(out, api_version, len);
	out[len] = '\0';
}

// Reads the name of the ScaledObject from the owner references, or else from the label.
static void read_scaled_object(struct json_span metadata, char out[AUTOSCALER_NAME_BYTES])
{
	static const char *const label[] = {"labels", "scaledobject.keda.sh/name", NULL};
	struct json_span_iter it = {.rest = json_span_get(metadata, "ownerReferences")};
	char api_version[AUTOSCALER_NAME_BYTES], group[AUTOSCALER_NAME_BYTES];
	out[0] = '\0';
	while (!out[0] && json_span_next(&it)) {
		json_span_text(json_span_get(it.value, "apiVersion"), api_version, sizeof api_version);
		autoscaler_group_of(api_version, group);
		if (strcmp(group, KEDA_GROUP) == 0 && json_span_is(json_span_get(it.value, "kind"), "ScaledObject"))
			json_span_text(json_span_get(it.value, "name"), out, AUTOSCALER_NAME_BYTES);
	}
	if (!out[0])
		json_span_text(json_span_path(metadata, label), out, AUTOSCALER_NAME_BYTES);
}

bool autoscaler_decode(enum autoscaler_kind kind, const char *json, size_t len, struct autoscaler_object *o)
{
	const struct json_span root = {.text = json, .len = len}, metadata = json_span_get(root, "metadata");
	char api_version[AUTOSCALER_NAME_BYTES];
	*o = (struct autoscaler_object){0};
	json_span_text(json_span_get(metadata, "namespace"), o->namespace_name, sizeof o->namespace_name);
	json_span_text(json_span_get(metadata, "name"), o->name, sizeof o->name);
	if (!o->namespace_name[0] || !o->name[0])
		return false;
	const struct autoscaler_kind_info *info = &autoscaler_kinds[kind];
	const struct json_span target = json_span_path(root, info->target);
	json_span_text(json_span_get(target, "apiVersion"), api_version, sizeof api_version);
	json_span_text(json_span_get(target, "kind"), o->target_kind, sizeof o->target_kind);
	json_span_text(json_span_get(target, "name"), o->target_name, sizeof o->target_name);
	autoscaler_group_of(api_version, o->target_group);
	if (!api_version[0])
		snprintf(o->target_group, sizeof o->target_group, "%s", info->target_group);
	if (!o->target_kind[0])
		snprintf(o->target_kind, sizeof o->target_kind, "%s", info->target_kind);
	if (kind == AUTOSCALER_HPA)
		read_scaled_object(metadata, o->scaled_object);
	bool is_part = info->part[0] && json_span_kind(json_span_path(root, info->part)) == '"';
	o->has_target = o->target_kind[0] && o->target_name[0] && !is_part;
	return true;
}
