// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/custom_metrics.h"

#include <string.h>

#include "base/err.h"
#include "base/json/json_write.h"
#include "base/num.h"

#define GROUP         "custom.metrics.k8s.io"
#define VERSION       "v1beta2"
#define GROUP_VERSION GROUP "/" VERSION

const struct metrics_api custom_metrics_api = {GROUP, VERSION, "MetricValueList"};

// ---- paths ----

static bool parse_value(const char *rest, struct custom_metrics_path *p)
{
	return metrics_api_take_segment(&rest, p->namespace_name, sizeof p->namespace_name - 1) && *rest++ == '/' &&
	       metrics_api_take_segment(&rest, p->resource, sizeof p->resource - 1) && *rest++ == '/' &&
	       metrics_api_take_segment(&rest, p->object, sizeof p->object - 1) && *rest++ == '/' &&
	       metrics_api_take_segment(&rest, p->metric, sizeof p->metric - 1) && metrics_api_is_end(rest);
}

void custom_metrics_path_parse(const char *path, struct custom_metrics_path *ret_path)
{
	static const char group[] = "/apis/" GROUP, version[] = "/apis/" GROUP_VERSION;
	static const char values[] = "/apis/" GROUP_VERSION "/namespaces/";
	memset(ret_path, 0, sizeof *ret_path);
	if (strncmp(path, values, sizeof values - 1) == 0 && parse_value(path + sizeof values - 1, ret_path)) {
		ret_path->page = CUSTOM_METRICS_VALUE;
		return;
	}
	memset(ret_path, 0, sizeof *ret_path);
	if (strncmp(path, version, sizeof version - 1) == 0 && metrics_api_is_end(path + sizeof version - 1))
		ret_path->page = CUSTOM_METRICS_RESOURCES;
	else if (strncmp(path, group, sizeof group - 1) == 0 && metrics_api_is_end(path + sizeof group - 1))
		ret_path->page = CUSTOM_METRICS_OF_GROUP;
}

// ---- responses ----

int custom_metrics_write_value(struct buf *out, const struct custom_metrics_object *o, const char *metric,
                               const struct external_metric_value *v, struct err *e)
{
	char value[QUANTITY_BYTES], time[NUM_TEXT_BYTES];
	struct json_writer w;
	if (quantity_format(value, v->value, e) < 0)
		return -1;
	num_format_rfc3339_ms(time, v->time_ms - v->time_ms % 1000);
	json_write_init(&w, out, 0);
	json_write_object_begin(&w);
	json_write_member_str(&w, "kind", custom_metrics_api.list_kind);
	json_write_member_str(&w, "apiVersion", GROUP_VERSION);
	json_write_member_object(&w, "metadata");
	json_write_object_end(&w);
	json_write_member_array(&w, "items");
	json_write_object_begin(&w);
	json_write_member_object(&w, "describedObject");
	json_write_member_str(&w, "kind", o->kind);
	json_write_member_str(&w, "namespace", o->namespace_name);
	json_write_member_str(&w, "name", o->name);
	json_write_member_str(&w, "apiVersion", o->api_version);
	json_write_object_end(&w);
	json_write_member_object(&w, "metric");
	json_write_member_str(&w, "name", metric);
	json_write_object_end(&w);
	json_write_member_str(&w, "timestamp", time);
	if (v->window_s > 0)
		json_write_member_i64(&w, "windowSeconds", v->window_s);
	json_write_member_str(&w, "value", value);
	json_write_object_end(&w);
	json_write_array_end(&w);
	json_write_object_end(&w);
	return 0;
}
