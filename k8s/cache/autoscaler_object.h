// SPDX-License-Identifier: Apache-2.0
// The kinds of autoscalers whose objects name their target, and which target an object names.
#ifndef GPUSCALE_K8S_CACHE_AUTOSCALER_OBJECT_H
#define GPUSCALE_K8S_CACHE_AUTOSCALER_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#define AUTOSCALER_NAME_BYTES 254 // name of a namespace, an object or a group, with its NUL
#define AUTOSCALER_KIND_BYTES 64

// In the order in which they are reported when several scale one target: others create HPAs of their own.
enum autoscaler_kind {
	AUTOSCALER_SCALED_OBJECT,
	AUTOSCALER_AIBRIX,
	AUTOSCALER_DATADOG,
	AUTOSCALER_DATADOG_V1ALPHA1,
	AUTOSCALER_WATERMARK,
	AUTOSCALER_KTHENA,
	AUTOSCALER_KTHENA_BINDING,
	AUTOSCALER_HPA,
	AUTOSCALER_KIND__COUNT
};

struct autoscaler_kind_info {
	const char *name, *group_version, *plural;
	const char *target[5], *part[6];        // paths; part: present in an object that scales a part of its target
	const char *target_group, *target_kind; // default where missing; "": such an object has no valid target
};
// One row per kind. An object with several targets (kthena's heterogeneousTarget) is not read; llm-d's
// VariantAutoscaling is left out, because it publishes a metric on which an HPA or a ScaledObject acts.
// Sources: KEDA pkg/apis/keda/v1alpha1; AIBrix api/autoscaling/v1alpha1; Datadog Operator api/datadoghq;
// WatermarkPodAutoscaler apis/datadoghq/v1alpha1; kthena pkg/apis/workload/v1alpha1 (the binding until 1.0).
extern const struct autoscaler_kind_info autoscaler_kinds[AUTOSCALER_KIND__COUNT];

struct autoscaler_object {
	char namespace_name[AUTOSCALER_NAME_BYTES], name[AUTOSCALER_NAME_BYTES];
	// The target. target_group is "" for the core group, and for an HPA without an apiVersion.
	char target_group[AUTOSCALER_NAME_BYTES], target_kind[AUTOSCALER_KIND_BYTES],
	        target_name[AUTOSCALER_NAME_BYTES];
	// The ScaledObject for which KEDA created this HPA; "" for any other autoscaler.
	char scaled_object[AUTOSCALER_NAME_BYTES];
	bool has_target;
};

// Decodes one object, also when it is paused, scaled to zero or being deleted. Returns whether it has a namespace and a
// name; has_target is false when it has no valid target, or scales a part of it only. KEDA: controllers/keda/hpa.go
// (owner reference and label scaledobject.keda.sh/name).
bool autoscaler_decode(enum autoscaler_kind kind, const char *json, size_t len, struct autoscaler_object *ret_object);

// Writes the group of an apiVersion "group/version" to out; "" for "v1" and "".
void autoscaler_group_of(const char *api_version, char out[AUTOSCALER_NAME_BYTES]);

#endif
