// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/autoscaler_object.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_span.h"

#define KEDA_GROUP "keda.sh"

const char *autoscaler_kind_name(enum autoscaler_kind kind)
{
	static const char *const names[] = {
	        [AUTOSCALER_SCALED_OBJECT] = "ScaledObject", [AUTOSCALER_HPA] = "HorizontalPodAutoscaler"};
	_Static_assert(sizeof names / sizeof names[0] == AUTOSCALER_KIND__COUNT, "one name per kind");
	assert(kind < AUTOSCALER_KIND__COUNT);
	return names[kind];
}

void autoscaler_group_of(const char *api_version, char out[AUTOSCALER_NAME_BYTES])
{
	const char *slash = strchr(api_version, '/');
	size_t len = slash ? (size_t)(slash - api_version) : 0;
	if (len >= AUTOSCALER_NAME_BYTES)
		len = 0;
	memcpy(out, api_version, len);
	out[len] = '\0';
}

// Reads the string at a path; "" when it is absent, too long for a name, or not a string.
static void read_text(struct json_span o, const char *const *path, char *out, size_t size)
{
	json_span_text(json_span_path(o, path), out, size);
}

// Reads the name of the ScaledObject from the owner references, or else from the label.
static void read_scaled_object(struct json_span metadata, char out[AUTOSCALER_NAME_BYTES])
{
	struct json_span_iter it = {.rest = json_span_get(metadata, "ownerReferences")};
	char api_version[AUTOSCALER_NAME_BYTES], group[AUTOSCALER_NAME_BYTES];
	out[0] = '\0';
	while (!out[0] && json_span_next(&it)) {
		json_span_text(json_span_get(it.value, "apiVersion"), api_version, sizeof api_version);
		autoscaler_group_of(api_version, group);
		if (strcmp(group, KEDA_GROUP) == 0 && json_span_is(json_span_get(it.value, "kind"), "ScaledObject"))
			json_span_text(json_span_get(it.value, "name"), out, AUTOSCALER_NAME_BYTES);
	}
	if (!out[0])
		read_text(metadata, (const char *const[]){"labels", "scaledobject.keda.sh/name", NULL}, out,
		          AUTOSCALER_NAME_BYTES);
}

bool autoscaler_decode(enum autoscaler_kind kind, const char *json, size_t len, struct autoscaler_object *o)
{
	const struct json_span root = {.text = json, .len = len}, metadata = json_span_get(root, "metadata");
	char api_version[AUTOSCALER_NAME_BYTES];
	*o = (struct autoscaler_object){0};
	json_span_text(json_span_get(metadata, "namespace"), o->namespace_name, sizeof o->namespace_name);
	json_span_text(json_span_get(metadata, "name"), o->name, sizeof o->name);
	if (!o->namespace_name[0] || !o->name[0])
		return false;
	const struct json_span target = json_span_path(root, (const char *const[]){"spec", "scaleTargetRef", NULL});
	json_span_text(json_span_get(target, "apiVersion"), api_version, sizeof api_version);
	json_span_text(json_span_get(target, "kind"), o->target_kind, sizeof o->target_kind);
	json_span_text(json_span_get(target, "name"), o->target_name, sizeof o->target_name);
	autoscaler_group_of(api_version, o->target_group);
	if (kind == AUTOSCALER_SCALED_OBJECT && !api_version[0])
		snprintf(o->target_group, sizeof o->target_group, "apps");
	if (kind == AUTOSCALER_SCALED_OBJECT && !o->target_kind[0])
		snprintf(o->target_kind, sizeof o->target_kind, "Deployment");
	if (kind == AUTOSCALER_HPA)
		read_scaled_object(metadata, o->scaled_object);
	o->has_target = o->target_kind[0] && o->target_name[0];
	return true;
}
