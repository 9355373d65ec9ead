// SPDX-License-Identifier: Apache-2.0
// The metrics APIs behind the aggregation layer: discovery documents, paths, values, failures and quantities.
// Kubernetes: meta/v1 APIGroupList, APIGroup, APIResourceList, Status; apimachinery resource.Quantity.
#ifndef GPUSCALE_K8S_SERVER_METRICS_API_H
#define GPUSCALE_K8S_SERVER_METRICS_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct label;

#define METRICS_NAMESPACE_MAX  63
#define METRICS_RESOURCE_MAX   253
#define METRICS_OBJECT_MAX     253
#define METRICS_NAME_BYTES_MAX 512

struct metrics_api {
	const char *group, *version, *list_kind; // the kind of its responses
	const char *window;                      // name of the member with the window of a value
	bool is_of_objects;                      // paths name an object, whose metric is read
};
// external.metrics.k8s.io/v1beta1, and custom.metrics.k8s.io/v1beta2: metrics of one object of a namespace. Metrics of
// pods, of the namespace itself and of cluster-wide objects are not served.
// Kubernetes: k8s.io/metrics/pkg/apis/external_metrics/v1beta1, custom_metrics/v1beta2.
extern const struct metrics_api external_metrics_api, custom_metrics_api;

enum metrics_page {
	METRICS_NONE,      // unknown path, or one of another API
	METRICS_GROUPS,    // /apis
	METRICS_OF_GROUP,  // /apis/GROUP
	METRICS_RESOURCES, // /apis/GROUP/VERSION
	METRICS_VALUES,    // /apis/GROUP/VERSION/namespaces/NAMESPACE/METRIC, or NAMESPACE/RESOURCE/OBJECT/METRIC
	METRICS_OPENAPI,   // /openapi/v2
};
struct metrics_path {
	enum metrics_page page;
	char namespace_name[METRICS_NAMESPACE_MAX + 1]; // "" unless VALUES, as all below
	char resource[METRICS_RESOURCE_MAX + 1];        // "deployments.apps"
	char object[METRICS_OBJECT_MAX + 1];
	char metric[METRICS_NAME_BYTES_MAX + 1];
};
// Parses a decoded path of the API, as http_exchange_path returns it. The pages that belong to no API are those of the
// external metrics. One slash at the end is permitted; a name above its limit gives METRICS_NONE.
void metrics_path_parse(const struct metrics_api *api, const char *path, struct metrics_path *ret_path);

// Append an APIGroupList and an APIGroup.
void metrics_api_write_groups(struct buf *out, const struct metrics_api *const *apis, size_t n);
void metrics_api_write_group(struct buf *out, const struct metrics_api *api);
// Appends an APIResourceList with a resource for each of the names, behind each of the prefixes ("" or "RESOURCE/").
void metrics_api_write_resources(struct buf *out, const struct metrics_api *api, const char *const *prefixes,
                                 size_t n_prefixes, const char *const *names, size_t n);

// Appends an OpenAPI v2 document without paths, which the aggregator merges without an error.
void metrics_api_write_openapi(struct buf *out, const char *version);

struct external_metric_value {
	const struct label *labels;
	size_t n_labels;
	int64_t time_ms;  // time of the sample, wall clock; written in whole seconds
	int64_t window_s; // window of the value; 0: one sample
	double value;
};
// Appends an ExternalMetricValueList in which every value has the name `metric`. Returns 0, or -1 and *e for a value
// that cannot be a quantity; the contents of out are then invalid.
int external_metrics_write_values(struct buf *out, const char *metric, const struct external_metric_value *values,
                                  size_t n, struct err *e);
struct custom_metrics_object {
	const char *api_version, *kind, *namespace_name, *name;
};
// Appends a MetricValueList with the one value; its labels are not written. Returns as external_metrics_write_values().
int custom_metrics_write_value(struct buf *out, const struct custom_metrics_object *object, const char *metric,
                               const struct external_metric_value *value, struct err *e);

// Appends the Status object, as the API server replies it, for an HTTP status of at least 400, with its reason
// ("NotFound").
void k8s_status_write(struct buf *out, int http_status, const char *message);

// ---- quantities ----

#define QUANTITY_BYTES 40
// Above it, a reader that counts in thousandths, as the HPA does, overflows 64 bits.
#define QUANTITY_MAX 9e15

// Formats value to out as a Kubernetes quantity in canonical form ("700m", "1500", "2k", "-1250u"; CanonicalizeBytes),
// rounded to a billionth, the smallest unit of a quantity. Returns the length, or -1 and *e:
// ERR_INPUT when value is not finite, ERR_LIMIT beyond +-QUANTITY_MAX.
int quantity_format(char out[QUANTITY_BYTES], double value, struct err *e);

#endif
