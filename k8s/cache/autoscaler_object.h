// SPDX-License-Identifier: Apache-2.0
// Reads which target a HorizontalPodAutoscaler (autoscaling/v1) or a ScaledObject (keda.sh/v1alpha1) scales.
#ifndef GPUSCALE_K8S_CACHE_AUTOSCALER_OBJECT_H
#define GPUSCALE_K8S_CACHE_AUTOSCALER_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#define AUTOSCALER_NAME_BYTES 254 // of a namespace, an object or a group, with its NUL
#define AUTOSCALER_KIND_BYTES 64

// In the order in which they are reported when several scale one target: a ScaledObject creates an HPA of its own.
enum autoscaler_kind { AUTOSCALER_SCALED_OBJECT, AUTOSCALER_HPA, AUTOSCALER_KIND__COUNT };

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
// name; has_target is false when it has no valid target. KEDA: pkg/apis/keda/v1alpha1 (apiVersion defaults to
// apps/v1, kind to Deployment), controllers/keda/hpa.go (owner reference and label scaledobject.keda.sh/name).
bool autoscaler_decode(enum autoscaler_kind kind, const char *json, size_t len, struct autoscaler_object *ret_object);

// Returns "HorizontalPodAutoscaler" or "ScaledObject".
const char *autoscaler_kind_name(enum autoscaler_kind kind);
// Writes the group of an apiVersion "group/version" to out; "" for "v1" and "".
void autoscaler_group_of(const char *api_version, char out[AUTOSCALER_NAME_BYTES]);

#endif
