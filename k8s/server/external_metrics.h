// SPDX-License-Identifier: Apache-2.0
// Paths and value lists of external.metrics.k8s.io/v1beta1.
// Kubernetes: k8s.io/metrics/pkg/apis/external_metrics/v1beta1.
#ifndef GPUSCALE_K8S_SERVER_EXTERNAL_METRICS_H
#define GPUSCALE_K8S_SERVER_EXTERNAL_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "k8s/server/metrics_api.h"

struct buf;
struct err;
struct label;

#define EXTERNAL_METRICS_GROUP          "external.metrics.k8s.io"
#define EXTERNAL_METRICS_VERSION        "v1beta1"
#define EXTERNAL_METRICS_NAMESPACE_MAX  63
#define EXTERNAL_METRICS_NAME_BYTES_MAX 512

enum external_metrics_page {
	EXTERNAL_METRICS_NONE,      // unknown path
	EXTERNAL_METRICS_GROUPS,    // /apis
	EXTERNAL_METRICS_OF_GROUP,  // /apis/GROUP
	EXTERNAL_METRICS_RESOURCES, // /apis/GROUP/VERSION
	EXTERNAL_METRICS_VALUES,    // /apis/GROUP/VERSION/namespaces/NAMESPACE/METRIC
	EXTERNAL_METRICS_OPENAPI,   // /openapi/v2
	EXTERNAL_METRICS__COUNT
};

struct external_metrics_path {
	enum external_metrics_page page;
	char namespace_name[EXTERNAL_METRICS_NAMESPACE_MAX + 1]; // "" unless VALUES
	char metric[EXTERNAL_METRICS_NAME_BYTES_MAX + 1];
};

// Parses a decoded path, as http_exchange_path returns it. One slash at the end is permitted; a name above its limit
// gives EXTERNAL_METRICS_NONE.
void external_metrics_path_parse(const char *path, struct external_metrics_path *ret_path);

extern const struct metrics_api external_metrics_api;

// Appends an OpenAPI v2 document without paths, which the aggregator merges without an error.
void external_metrics_write_openapi(struct buf *out, const char *version);

struct external_metric_value {
	const struct label *labels;
	size_t n_labels;
	int64_t time_ms;  // time of the sample, wall clock; written in whole seconds
	int64_t window_s; // window of the value; 0: one sample
	double value;
};

// Appends an ExternalMetricValueList in which every value has the name `metric`. Returns 0, or -1 and *e for a value
// that cannot be a quantity (k8s/server/metrics_api.h); the contents of out are then invalid.
int external_metrics_write_values(struct buf *out, const char *metric, const struct external_metric_value *values,
                                  size_t n, struct err *e);

#endif
