// SPDX-License-Identifier: Apache-2.0
// What a HorizontalPodAutoscaler (autoscaling/v1) or a ScaledObject (keda.sh/v1alpha1) says about what it scales.
#ifndef GPUSCALE_K8S_SCALER_OBJECT_H
#define GPUSCALE_K8S_SCALER_OBJECT_H

#include <stdbool.h>
#include <stddef.h>

#define SCALER_NAME_BYTES 254 // of a namespace, an object or a group, with its NUL
#define SCALER_KIND_BYTES 64

// In the order in which they are named when several drive one target: a ScaledObject has made its own autoscaler.
enum scaler_kind { SCALER_SCALED_OBJECT, SCALER_HPA, SCALER_KIND__COUNT };

struct scaler_object {
	char namespace_name[SCALER_NAME_BYTES], name[SCALER_NAME_BYTES];
	// What it scales. The group is "" for the core group, and also where a HPA does not say one.
	char target_group[SCALER_NAME_BYTES], target_kind[SCALER_KIND_BYTES], target_name[SCALER_NAME_BYTES];
	// Of a HPA that KEDA made: the ScaledObject it was made for; else "".
	char scaled_object[SCALER_NAME_BYTES];
	bool has_target;
};

// Reads one object; whatever is paused, scaled to zero or being deleted counts. True when it has a namespace and a
// name; has_target is false when it says no usable target. KEDA: pkg/apis/keda/v1alpha1 (apiVersion defaults to
// apps/v1, kind to Deployment), controllers/keda/hpa.go (owner reference and label scaledobject.keda.sh/name).
bool scaler_decode(enum scaler_kind kind, const char *json, size_t len, struct scaler_object *ret_object);

// "HorizontalPodAutoscaler", "ScaledObject"
const char *scaler_kind_name(enum scaler_kind kind);
// The group of an apiVersion "group/version"; "" for "v1" and "".
void scaler_group_of(const char *api_version, char out[SCALER_NAME_BYTES]);

#endif
