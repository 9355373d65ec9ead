// SPDX-License-Identifier: Apache-2.0
// HorizontalPodAutoscalers and other autoscalers as a server may send them: the first byte says which. Of one that is
// JSON, what it scales is what its tree says. Then the same bytes as a list of targets, whose field manager is read.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/json/json_read.h"
#include "controller/policy/scale_fight.h"
#include "k8s/cache/autoscaler_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool has_name_twice(const cJSON *object)
{
	const cJSON *child, *other;
	if (cJSON_GetArraySize(object) > 100) // not to look for long
		return true;
	cJSON_ArrayForEach(child, object)
	{
		for (other = child->next; other && cJSON_IsObject(object); other = other->next)
			if (strcmp(child->string, other->string) == 0)
				return true;
	}
	return false;
}

static void compare_with_tree(enum autoscaler_kind kind, const char *json, size_t len,
                              const struct autoscaler_object *o)
{
	const struct autoscaler_kind_info *k = &autoscaler_kinds[kind];
	cJSON *root = json_read(json, len, NULL);
	const cJSON *target = root, *part = root;
	bool is_clear = root && !has_name_twice(root);
	for (size_t i = 0; k->target[i]; i++)
		is_clear &= !has_name_twice(target = json_get(target, k->target[i]));
	for (size_t i = 0; k->part[i]; i++)
		is_clear &= !has_name_twice(part = json_get(part, k->part[i]));
	const char *name = json_get_str(target, "name", ""), *target_kind = json_get_str(target, "kind", "");
	if (is_clear && !memchr(json, '\\', len) && strlen(name) < AUTOSCALER_NAME_BYTES &&
	    strlen(target_kind) < AUTOSCALER_KIND_BYTES) {
		if (!target_kind[0])
			target_kind = k->target_kind;
		assert(strcmp(o->target_name, name) == 0 && strcmp(o->target_kind, target_kind) == 0);
		assert(o->has_target == (name[0] && target_kind[0] && !(k->part[0] && cJSON_IsString(part))));
	}
	cJSON_Delete(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct autoscaler_object o;
	char manager[32];
	if (size == 0)
		return 0;
	enum autoscaler_kind kind = data[0] % AUTOSCALER_KIND__COUNT;
	assert(scale_fight_manager((const char *)data + 1, size - 1, NULL, manager, sizeof manager) >= -1);
	assert(strlen(manager) < sizeof manager);
	if (autoscaler_decode(kind, (const char *)data + 1, size - 1, &o)) {
		assert(o.namespace_name[0] && o.name[0]);
		assert(strlen(o.target_name) < sizeof o.target_name && strlen(o.target_kind) < sizeof o.target_kind);
		assert(!o.has_target || (o.target_name[0] && o.target_kind[0]));
		assert(kind == AUTOSCALER_HPA || !o.scaled_object[0]);
		compare_with_tree(kind, (const char *)data + 1, size - 1, &o);
	}
	return 0;
}
