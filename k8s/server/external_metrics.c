// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/external_metrics.h"

#include <stdbool.h>
#include <string.h>

#include "base/err.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "k8s/client/label_selector.h"

#define GROUP_VERSION EXTERNAL_METRICS_GROUP "/" EXTERNAL_METRICS_VERSION

const struct metrics_api external_metrics_api = {EXTERNAL_METRICS_GROUP, EXTERNAL_METRICS_VERSION,
                                                 "ExternalMetricValueList"};

// ---- paths ----

static bool parse_values(const char *rest, struct external_metrics_path *p)
{
	if (!metrics_api_take_segment(&rest, p->namespace_name, EXTERNAL_METRICS_NAMESPACE_MAX) || *rest++ != '/' ||
	    !metrics_api_take_segment(&rest, p->metric, EXTERNAL_METRICS_NAME_BYTES_MAX))
		return false;
	return metrics_api_is_end(rest);
}

void external_metrics_path_parse(const char *path, struct external_metrics_path *ret_path)
{
	static const struct {
		const char *path;
		enum external_metrics_page page;
	} pages[] = {
	        {"/apis", EXTERNAL_METRICS_GROUPS},
	        {"/apis/" EXTERNAL_METRICS_GROUP, EXTERNAL_METRICS_OF_GROUP},
	        {"/apis/" GROUP_VERSION, EXTERNAL_METRICS_RESOURCES},
	        {"/openapi/v2", EXTERNAL_METRICS_OPENAPI},
	};
	static const char values[] = "/apis/" GROUP_VERSION "/namespaces/";
	memset(ret_path, 0, sizeof *ret_path);
	for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
		size_t len = strlen(pages[i].path);
		if (strncmp(path, pages[i].path, len) == 0 && metrics_api_is_end(path + len)) {
			ret_path->page = pages[i].page;
			return;
		}
	}
	if (strncmp(path, values, sizeof values - 1) != 0)
		return;
	if (parse_values(path + sizeof values - 1, ret_path))
		ret_path->page = EXTERNAL_METRICS_VALUES;
	else
		memset(ret_path, 0, sizeof *ret_path);
}

// ---- documents ----

static void begin_object(struct json_writer *w, const char *kind, const char *api_version)
{
	json_write_object_begin(w);
	json_write_member_str(w, "kind", kind);
	json_write_member_str(w, "apiVersion", api_version);
}

void external_metrics_write_openapi(struct buf *out, const char *version)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_member_str(&w, "swagger", "2.0");
	json_write_member_object(&w, "info");
	json_write_member_str(&w, "title", "gpuscale external metrics");
	json_write_member_str(&w, "version", version);
	json_write_object_end(&w);
	json_write_member_object(&w, "paths");
	json_write_object_end(&w);
	json_write_object_end(&w);
}

// ---- values ----

static int write_value(struct json_writer *w, const char *metric, const struct external_metric_value *v, struct err *e)
{
	char value[QUANTITY_BYTES], time[NUM_TEXT_BYTES];
	if (quantity_format(value, v->value, e) < 0)
		return -1;
	num_format_rfc3339_ms(time, v->time_ms - v->time_ms % 1000);
	json_write_object_begin(w);
	json_write_member_str(w, "metricName", metric);
	json_write_member_object(w, "metricLabels");
	for (size_t i = 0; i < v->n_labels; i++)
		json_write_member_str(w, v->labels[i].key, v->labels[i].value);
	json_write_object_end(w);
	json_write_member_str(w, "timestamp", time);
	if (v->window_s > 0)
		json_write_member_i64(w, "window", v->window_s);
	json_write_member_str(w, "value", value);
	json_write_object_end(w);
	return 0;
}

int external_metrics_write_values(struct buf *out, const char *metric, const struct external_metric_value *values,
                                  size_t n, struct err *e)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	begin_object(&w, "ExternalMetricValueList", GROUP_VERSION);
	json_write_member_object(&w, "metadata");
	json_write_object_end(&w);
	json_write_member_array(&w, "items");
	for (size_t i = 0; i < n; i++)
		if (write_value(&w, metric, &values[i], e) < 0)
			return -1;
	json_write_array_end(&w);
	json_write_object_end(&w);
	return 0;
}
