// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/metrics_api.h"

#include <math.h>

#include "base/base.h"
#include "base/json/json_write.h"
#include "k8s/client/label_selector.h"

const struct metrics_api external_metrics_api = {"external.metrics.k8s.io", "v1beta1", "ExternalMetricValueList",
                                                 "window", false};
const struct metrics_api custom_metrics_api = {"custom.metrics.k8s.io", "v1beta2", "MetricValueList", "windowSeconds",
                                               true};

// Removes zeros from the end of digits[0..len), three at a time, at most `most` times. Returns how many times.
static int cut_thousands(char *digits, size_t *len, int most)
{
	int n = 0;
	while (n<most && * len> 3 && memcmp(digits + *len - 3, "000", 3) == 0) {
		*len -= 3;
		n++;
	}
	digits[*len] = '\0';
	return n;
}

int quantity_format(char out[QUANTITY_BYTES], double value, struct err *e)
{
	static const char suffixes[] = "num\0kMGTPE"; // in steps of a thousand from a billionth
	if (!isfinite(value))
		return err_set(e, ERR_INPUT, "the value is not a number");
	if (fabs(value) > QUANTITY_MAX)
		return err_set(e, ERR_LIMIT, "the value %g exceeds the largest quantity (%g)", value, QUANTITY_MAX);
	// printf rounds the exact decimal expansion; without the point, it counts billionths.
	char digits[QUANTITY_BYTES];
	int n = snprintf(digits, sizeof digits, "%.9f", fabs(value));
	char *point = strchr(digits, '.');
	memmove(point, point + 1, strlen(point));
	size_t len = (size_t)n - 1;
	char *first = digits + strspn(digits, "0");
	if (!*first) {
		memcpy(out, "0", 2);
		return 1;
	}
	len -= (size_t)(first - digits);
	char suffix = suffixes[cut_thousands(first, &len, (int)sizeof suffixes - 2)];
	const char tail[] = {suffix, '\0'};
	return snprintf(out, QUANTITY_BYTES, "%s%s%s", value < 0 ? "-" : "", first, tail);
}

static const char *reason_of(int http_status)
{
	static const struct {
		int status;
		const char *reason;
	} rows[] = {
	        {400, "BadRequest"},
	        {401, "Unauthorized"},
	        {403, "Forbidden"},
	        {404, "NotFound"},
	        {405, "MethodNotAllowed"},
	        {409, "Conflict"},
	        {410, "Expired"},
	        {422, "Invalid"},
	        {429, "TooManyRequests"},
	        {500, "InternalError"},
	        {503, "ServiceUnavailable"},
	        {504, "Timeout"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].status == http_status)
			return rows[i].reason;
	return "";
}

void k8s_status_write(struct buf *out, int http_status, const char *message)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{kind:%s,apiVersion:%s,metadata:{},status:%s,message:%s,reason:%s,code:%d}", "Status",
	                  "v1", "Failure", message, reason_of(http_status), http_status);
}

#define NAME_BYTES 1024

static void begin_document(struct json_writer *w, struct buf *out, const char *kind)
{
	json_write_init(w, out, 0);
	json_write_format(w, "{kind:%s,apiVersion:%s", kind, "v1");
}

static void write_group_members(struct json_writer *w, const struct metrics_api *api)
{
	char text[NAME_BYTES];
	snprintf(text, sizeof text, "%s/%s", api->group, api->version);
	json_write_format(
	        w, "name:%s,versions:[{groupVersion:%s,version:%s}],preferredVersion:{groupVersion:%s,version:%s}}",
	        api->group, text, api->version, text, api->version);
}

void metrics_api_write_group(struct buf *out, const struct metrics_api *api)
{
	struct json_writer w;
	begin_document(&w, out, "APIGroup");
	write_group_members(&w, api);
}

void metrics_api_write_groups(struct buf *out, const struct metrics_api *const *apis, size_t n)
{
	struct json_writer w;
	begin_document(&w, out, "APIGroupList");
	json_write_member_array(&w, "groups");
	for (size_t i = 0; i < n; i++) {
		json_write_object_begin(&w);
		write_group_members(&w, apis[i]);
	}
	json_write_format(&w, "]}");
}

void metrics_api_write_resources(struct buf *out, const struct metrics_api *api, const char *const *prefixes,
                                 size_t n_prefixes, const char *const *names, size_t n)
{
	struct json_writer w;
	char text[NAME_BYTES];
	begin_document(&w, out, "APIResourceList");
	snprintf(text, sizeof text, "%s/%s", api->group, api->version);
	json_write_format(&w, "groupVersion:%s,resources:[", text);
	for (size_t i = 0; i < n * n_prefixes; i++) {
		snprintf(text, sizeof text, "%s%s", prefixes[i / n], names[i % n]);
		json_write_format(&w, "{name:%s,singularName:%s,namespaced:%i,kind:%s,verbs:[%s]}", text, "", true,
		                  api->list_kind, "get");
	}
	json_write_format(&w, "]}");
}

void metrics_api_write_openapi(struct buf *out, const char *version)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{swagger:%s,info:{title:%s,version:%s},paths:{}}", "2.0", "gpuscale external metrics",
	                  version);
}

// ---- paths ----

// Copies the segment of a path at *at, up to the next '/' or the end, to out, and moves *at behind it. Returns false
// when the segment is empty or does not fit.
static bool take_segment(const char **at, char *out, size_t size)
{
	size_t len = strcspn(*at, "/");
	if (len == 0 || len >= size)
		return false;
	memcpy(out, *at, len);
	out[len] = '\0';
	*at += len;
	return true;
}

static bool skip(const char **at, const char *text)
{
	size_t len = strlen(text);
	if (strncmp(*at, text, len) != 0)
		return false;
	*at += len;
	return true;
}

static bool is_end(const char *rest)
{
	return strcmp(rest, "") == 0 || strcmp(rest, "/") == 0;
}

static bool parse_values(const struct metrics_api *api, const char *at, struct metrics_path *p)
{
	return take_segment(&at, p->namespace_name, sizeof p->namespace_name) && *at++ == '/' &&
	       (!api->is_of_objects || (take_segment(&at, p->resource, sizeof p->resource) && *at++ == '/' &&
	                                take_segment(&at, p->object, sizeof p->object) && *at++ == '/')) &&
	       take_segment(&at, p->metric, sizeof p->metric) && is_end(at);
}

static enum metrics_page page_of(const struct metrics_api *api, const char *at, struct metrics_path *p)
{
	if (!api->is_of_objects && skip(&at, "/openapi/v2"))
		return is_end(at) ? METRICS_OPENAPI : METRICS_NONE;
	if (!skip(&at, "/apis"))
		return METRICS_NONE;
	if (!api->is_of_objects && is_end(at))
		return METRICS_GROUPS;
	if (!skip(&at, "/") || !skip(&at, api->group))
		return METRICS_NONE;
	if (is_end(at))
		return METRICS_OF_GROUP;
	if (!skip(&at, "/") || !skip(&at, api->version))
		return METRICS_NONE;
	if (is_end(at))
		return METRICS_RESOURCES;
	return skip(&at, "/namespaces/") && parse_values(api, at, p) ? METRICS_VALUES : METRICS_NONE;
}

void metrics_path_parse(const struct metrics_api *api, const char *path, struct metrics_path *ret_path)
{
	*ret_path = (struct metrics_path){0};
	enum metrics_page page = page_of(api, path, ret_path);
	if (page != METRICS_VALUES)
		*ret_path = (struct metrics_path){0};
	ret_path->page = page;
}

// ---- values ----

static void begin_list(struct json_writer *w, struct buf *out, const struct metrics_api *api)
{
	char text[NAME_BYTES];
	snprintf(text, sizeof text, "%s/%s", api->group, api->version);
	json_write_init(w, out, 0);
	json_write_format(w, "{kind:%s,apiVersion:%s,metadata:{},items:[", api->list_kind, text);
}

// Writes the last members of an item, and its end.
static int end_item(struct json_writer *w, const struct metrics_api *api, const struct external_metric_value *v,
                    struct err *e)
{
	char value[QUANTITY_BYTES];
	if (quantity_format(value, v->value, e) < 0)
		return -1;
	json_write_member_time(w, "timestamp", v->time_ms - v->time_ms % 1000);
	if (v->window_s > 0)
		json_write_member_i64(w, api->window, v->window_s);
	json_write_member_str(w, "value", value);
	json_write_object_end(w);
	return 0;
}

int external_metrics_write_values(struct buf *out, const char *metric, const struct external_metric_value *values,
                                  size_t n, struct err *e)
{
	struct json_writer w;
	begin_list(&w, out, &external_metrics_api);
	for (size_t i = 0; i < n; i++) {
		json_write_format(&w, "{metricName:%s,metricLabels:{", metric);
		for (size_t k = 0; k < values[i].n_labels; k++)
			json_write_member_str(&w, values[i].labels[k].key, values[i].labels[k].value);
		json_write_object_end(&w);
		if (end_item(&w, &external_metrics_api, &values[i], e) < 0)
			return -1;
	}
	json_write_format(&w, "]}");
	return 0;
}

int custom_metrics_write_value(struct buf *out, const struct custom_metrics_object *o, const char *metric,
                               const struct external_metric_value *v, struct err *e)
{
	struct json_writer w;
	begin_list(&w, out, &custom_metrics_api);
	json_write_format(&w, "{describedObject:{kind:%s,namespace:%s,name:%s,apiVersion:%s},metric:{name:%s}", o->kind,
	                  o->namespace_name, o->name, o->api_version, metric);
	if (end_item(&w, &custom_metrics_api, v, e) < 0)
		return -1;
	json_write_format(&w, "]}");
	return 0;
}
