// SPDX-License-Identifier: Apache-2.0
// Paths and responses of custom.metrics.k8s.io/v1beta2: metrics of one object of a namespace. Metrics of pods, of the
// namespace itself and of cluster-wide objects are not served.
// Kubernetes: k8s.io/metrics/pkg/apis/custom_metrics/v1beta2.
#ifndef GPUSCALE_K8S_SERVER_CUSTOM_METRICS_H
#define GPUSCALE_K8S_SERVER_CUSTOM_METRICS_H

#include "k8s/server/external_metrics.h"
#include "k8s/server/metrics_api.h"

#define CUSTOM_METRICS_RESOURCE_MAX 253
#define CUSTOM_METRICS_OBJECT_MAX   253

enum custom_metrics_page {
	CUSTOM_METRICS_NONE,      // unknown path
	CUSTOM_METRICS_OF_GROUP,  // /apis/GROUP
	CUSTOM_METRICS_RESOURCES, // /apis/GROUP/VERSION
	CUSTOM_METRICS_VALUE,     // /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE/OBJECT/METRIC
	CUSTOM_METRICS__COUNT
};

struct custom_metrics_path {
	enum custom_metrics_page page;
	char namespace_name[EXTERNAL_METRICS_NAMESPACE_MAX + 1]; // "" unless VALUE, as all below
	char resource[CUSTOM_METRICS_RESOURCE_MAX + 1];          // "deployments.apps"
	char object[CUSTOM_METRICS_OBJECT_MAX + 1];
	char metric[EXTERNAL_METRICS_NAME_BYTES_MAX + 1];
};

extern const struct metrics_api custom_metrics_api;

// Parses a decoded path. One slash at the end is permitted; a name above its limit gives CUSTOM_METRICS_NONE.
void custom_metrics_path_parse(const char *path, struct custom_metrics_path *ret_path);

struct custom_metrics_object {
	const char *api_version, *kind, *namespace_name, *name;
};
// Appends a MetricValueList with the one value; its labels are not written. Returns 0, or -1 and *e for a value that
// cannot be a quantity.
int custom_metrics_write_value(struct buf *out, const struct custom_metrics_object *object, const char *metric,
                               const struct external_metric_value *value, struct err *e);

#endif
