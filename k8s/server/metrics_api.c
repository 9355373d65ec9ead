// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/metrics_api.h"

#include <stdio.h>
#include <string.h>

#include "base/json/json_write.h"

#define NAME_BYTES 1024

static void write_pair(struct json_writer *w, const char *key, const char *value)
{
	json_write_member_str(w, key, value);
}

static void begin_document(struct json_writer *w, struct buf *out, const char *kind)
{
	json_write_init(w, out, 0);
	json_write_object_begin(w);
	write_pair(w, "kind", kind);
	write_pair(w, "apiVersion", "v1");
}

static void write_group_version(struct json_writer *w, const struct metrics_api *api)
{
	char text[NAME_BYTES];
	snprintf(text, sizeof text, "%s/%s", api->group, api->version);
	json_write_object_begin(w);
	write_pair(w, "groupVersion", text);
	write_pair(w, "version", api->version);
	json_write_object_end(w);
}

static void write_group_members(struct json_writer *w, const struct metrics_api *api)
{
	write_pair(w, "name", api->group);
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
	write_pair(&w, "groupVersion", text);
	json_write_member_array(&w, "resources");
	for (size_t i = 0; i < n * n_prefixes; i++) {
		snprintf(text, sizeof text, "%s%s", prefixes[i / n], names[i % n]);
		json_write_object_begin(&w);
		write_pair(&w, "name", text);
		write_pair(&w, "singularName", "");
		json_write_member_bool(&w, "namespaced", true);
		write_pair(&w, "kind", api->list_kind);
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
