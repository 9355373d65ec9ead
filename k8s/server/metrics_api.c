// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/metrics_api.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json/json_write.h"

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
	json_write_object_begin(&w);
	json_write_member_str(&w, "kind", "Status");
	json_write_member_str(&w, "apiVersion", "v1");
	json_write_member_object(&w, "metadata");
	json_write_object_end(&w);
	json_write_member_str(&w, "status", "Failure");
	json_write_member_str(&w, "message", message);
	json_write_member_str(&w, "reason", reason_of(http_status));
	json_write_member_i64(&w, "code", http_status);
	json_write_object_end(&w);
}

#define NAME_BYTES 1024

static void begin_document(struct json_writer *w, struct buf *out, const char *kind)
{
	json_write_init(w, out, 0);
	json_write_object_begin(w);
	json_write_member_str(w, "kind", kind);
	json_write_member_str(w, "apiVersion", "v1");
}

static void write_group_version(struct json_writer *w, const struct metrics_api *api)
{
	char text[NAME_BYTES];
	snprintf(text, sizeof text, "%s/%s", api->group, api->version);
	json_write_object_begin(w);
	json_write_member_str(w, "groupVersion", text);
	json_write_member_str(w, "version", api->version);
	json_write_object_end(w);
}

static void write_group_members(struct json_writer *w, const struct metrics_api *api)
{
	json_write_member_str(w, "name", api->group);
	json_write_member_array(w, "versions");
	write_group_version(w, api);
	json_write_array_end(w);
	json_write_key(w, "preferredVersion");
	write_group_version(w, api);
	json_write_object_end(w);
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
	json_write_array_end(&w);
	json_write_object_end(&w);
}

void metrics_api_write_resources(struct buf *out, const struct metrics_api *api, const char *const *prefixes,
                                 size_t n_prefixes, const char *const *names, size_t n)
{
	struct json_writer w;
	char text[NAME_BYTES];
	begin_document(&w, out, "APIResourceList");
	snprintf(text, sizeof text, "%s/%s", api->group, api->version);
	json_write_member_str(&w, "groupVersion", text);
	json_write_member_array(&w, "resources");
	for (size_t i = 0; i < n * n_prefixes; i++) {
		snprintf(text, sizeof text, "%s%s", prefixes[i / n], names[i % n]);
		json_write_object_begin(&w);
		json_write_member_str(&w, "name", text);
		json_write_member_str(&w, "singularName", "");
		json_write_member_bool(&w, "namespaced", true);
		json_write_member_str(&w, "kind", api->list_kind);
		json_write_member_array(&w, "verbs");
		json_write_str(&w, "get");
		json_write_array_end(&w);
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
}

// ---- paths ----

bool metrics_api_take_segment(const char **at, char *out, size_t max)
{
	size_t len = strcspn(*at, "/");
	if (len == 0 || len > max)
		return false;
	memcpy(out, *at, len);
	out[len] = '\0';
	*at += len;
	return true;
}

bool metrics_api_is_end(const char *rest)
{
	return strcmp(rest, "") == 0 || strcmp(rest, "/") == 0;
}
