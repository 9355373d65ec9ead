// SPDX-License-Identifier: Apache-2.0
// Which kinds the fake API server has, as the real one lists them: groups, and the resources of each.
#include <stdio.h>
#include <string.h>

#include "base/http/http_server.h"
#include "test/fake/apiserver_private.h"

static void add_resource(cJSON *list, const struct fake_kind *k, const char *subresource)
{
	static const char *const verbs[] = {"create", "delete", "get", "list", "patch", "update", "watch"};
	static const char *const of_subresources[] = {"get", "patch", "update"};
	char name[128];
	bool is_scale = strcmp(subresource, "scale") == 0;
	snprintf(name, sizeof name, "%s%s%s", k->plural, subresource[0] ? "/" : "", subresource);
	cJSON *r = cJSON_CreateObject();
	cJSON_AddStringToObject(r, "name", name);
	cJSON_AddStringToObject(r, "singularName", "");
	cJSON_AddBoolToObject(r, "namespaced", !k->is_cluster_wide);
	if (is_scale) {
		cJSON_AddStringToObject(r, "group", "autoscaling");
		cJSON_AddStringToObject(r, "version", "v1");
	}
	cJSON_AddStringToObject(r, "kind", is_scale ? "Scale" : k->kind);
	cJSON_AddItemToObject(r, "verbs",
	                      subresource[0] ? cJSON_CreateStringArray(of_subresources, 3)
	                                     : cJSON_CreateStringArray(verbs, sizeof verbs / sizeof verbs[0]));
	cJSON_AddItemToArray(list, r);
}

static void reply_resources(struct fake_request *r)
{
	const struct fake_path *p = &r->path;
	char group_version[300];
	snprintf(group_version, sizeof group_version, "%s%s%s", p->group, p->group[0] ? "/" : "", p->version);
	cJSON *root = cJSON_CreateObject(), *list;
	cJSON_AddStringToObject(root, "kind", "APIResourceList");
	cJSON_AddStringToObject(root, "apiVersion", "v1");
	cJSON_AddStringToObject(root, "groupVersion", group_version);
	list = cJSON_AddArrayToObject(root, "resources");
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		const struct fake_kind *k = &fake_kinds[i];
		if (!r->f->is_served[i] || strcmp(k->group, p->group) != 0 || strcmp(k->version, p->version) != 0)
			continue;
		add_resource(list, k, "");
		if (k->has_scale)
			add_resource(list, k, "scale");
		if (k->has_status)
			add_resource(list, k, "status");
	}
	if (cJSON_GetArraySize(list) > 0) {
		fake_reply_json(r, 200, root);
		return;
	}
	cJSON_Delete(root);
	fake_reply_no_page(r);
}

static cJSON *group_of(const struct fake_kind *k)
{
	char text[300];
	cJSON *group = cJSON_CreateObject(), *version = cJSON_CreateObject();
	snprintf(text, sizeof text, "%s/%s", k->group, k->version);
	cJSON_AddStringToObject(group, "name", k->group);
	cJSON_AddStringToObject(version, "groupVersion", text);
	cJSON_AddStringToObject(version, "version", k->version);
	cJSON_AddItemToObject(group, "preferredVersion", cJSON_Duplicate(version, true));
	cJSON_AddItemToArray(cJSON_AddArrayToObject(group, "versions"), version);
	return group;
}

// "/apis", or one group of it. Each has one version here.
static void reply_groups(struct fake_request *r)
{
	const char *wanted = r->path.group, *last = "";
	cJSON *root = cJSON_CreateObject(), *groups = cJSON_CreateArray();
	cJSON_AddStringToObject(root, "kind", "APIGroupList");
	cJSON_AddStringToObject(root, "apiVersion", "v1");
	cJSON_AddItemToObject(root, "groups", groups);
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		const struct fake_kind *k = &fake_kinds[i]; // of one group side by side
		if (!r->f->is_served[i] || strcmp(k->group, last) == 0 || (wanted[0] && strcmp(k->group, wanted) != 0))
			continue;
		last = k->group;
		cJSON_AddItemToArray(groups, group_of(k));
	}
	if (!wanted[0]) {
		fake_reply_json(r, 200, root);
		return;
	}
	cJSON *one = cJSON_DetachItemFromArray(groups, 0);
	cJSON_Delete(root);
	if (!one) {
		fake_reply_no_page(r);
		return;
	}
	cJSON_AddStringToObject(one, "kind", "APIGroup");
	cJSON_AddStringToObject(one, "apiVersion", "v1");
	fake_reply_json(r, 200, one);
}

void fake_discovery(struct fake_request *r)
{
	if (r->path.version[0])
		reply_resources(r);
	else
		reply_groups(r);
}
