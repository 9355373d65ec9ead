// SPDX-License-Identifier: Apache-2.0
#include "k8s/scaler_object.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "k8s/json_span.h"

#define KEDA_GROUP "keda.sh"

const char *scaler_kind_name(enum scaler_kind kind)
{
	static const char *const names[] = {
	        [SCALER_SCALED_OBJECT] = "ScaledObject", [SCALER_HPA] = "HorizontalPodAutoscaler"};
	_Static_assert(sizeof names / sizeof names[0] == SCALER_KIND__COUNT, "one name per kind");
	assert(kind < SCALER_KIND__COUNT);
	return names[kind];
}

void scaler_group_of(const char *api_version, char out[SCALER_NAME_BYTES])
{
	const char *slash = strchr(api_version, '/');
	size_t len = slash ? (size_t)(slash - api_version) : 0;
	if (len >= SCALER_NAME_BYTES)
		len = 0;
	memcpy(out, api_version, len);
	out[len] = '\0';
}

// The text at a path; "" when it is absent, too long for a name, or no text.
static void read_text(struct json_span o, const char *const *path, char *out, size_t size)
{
	json_span_text(json_span_path(o, path), out, size);
}

// The name of the ScaledObject among the owners.
static void read_owner(struct json_span metadata, char out[SCALER_NAME_BYTES])
{
	struct json_span_iter it = {.rest = json_span_get(metadata, "ownerReferences")};
	char api_version[SCALER_NAME_BYTES], group[SCALER_NAME_BYTES];
	out[0] = '\0';
	while (!out[0] && json_span_next(&it)) {
		json_span_text(json_span_get(it.value, "apiVersion"), api_version, sizeof api_version);
		scaler_group_of(api_version, group);
		if (strcmp(group, KEDA_GROUP) == 0 && json_span_is(json_span_get(it.value, "kind"), "ScaledObject"))
			json_span_text(json_span_get(it.value, "name"), out, SCALER_NAME_BYTES);
	}
	if (!out[0])
		read_text(metadata, (const char *const[]){"labels", "scaledobject.keda.sh/name", NULL}, out,
		          SCALER_NAME_BYTES);
}

bool scaler_decode(enum scaler_kind kind, const char *json, size_t len, struct scaler_object *o)
{
	const struct json_span root = {.text = json, .len = len}, metadata = json_span_get(root, "metadata");
	char api_version[SCALER_NAME_BYTES];
	*o = (struct scaler_object){0};
	json_span_text(json_span_get(metadata, "namespace"), o->namespace_name, sizeof o->namespace_name);
	json_span_text(json_span_get(metadata, "name"), o->name, sizeof o->name);
	if (!o->namespace_name[0] || !o->name[0])
		return false;
	const struct json_span target = json_span_path(root, (const char *const[]){"spec", "scaleTargetRef", NULL});
	json_span_text(json_span_get(target, "apiVersion"), api_version, sizeof api_version);
	json_span_text(json_span_get(target, "kind"), o->target_kind, sizeof o->target_kind);
	json_span_text(json_span_get(target, "name"), o->target_name, sizeof o->target_name);
	scaler_group_of(api_version, o->target_group);
	if (kind == SCALER_SCALED_OBJECT && !api_version[0])
		snprintf(o->target_group, sizeof o->target_group, "apps");
	if (kind == SCALER_SCALED_OBJECT && !o->target_kind[0])
		snprintf(o->target_kind, sizeof o->target_kind, "Deployment");
	if (kind == SCALER_HPA)
		read_owner(metadata, o->scaled_object);
	o->has_target = o->target_kind[0] && o->target_name[0];
	return true;
}
