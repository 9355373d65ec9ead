// SPDX-License-Identifier: Apache-2.0
// HorizontalPodAutoscalers and ScaledObjects as a server may send them: the first byte says which. Of one that is JSON,
// what it scales is what its tree says.
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/json/json_read.h"
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
	cJSON *root = json_read(json, len, NULL);
	const cJSON *spec = json_get(root, "spec"), *target = json_get(spec, "scaleTargetRef");
	const char *name = json_get_str(target, "name", ""), *target_kind = json_get_str(target, "kind", "");
	if (root && !memchr(json, '\\', len) && !has_name_twice(root) && !has_name_twice(spec) &&
	    !has_name_twice(target) && strlen(name) < AUTOSCALER_NAME_BYTES &&
	    strlen(target_kind) < AUTOSCALER_KIND_BYTES) {
		if (!target_kind[0] && kind == AUTOSCALER_SCALED_OBJECT)
			target_kind = "Deployment";
		assert(strcmp(o->target_name, name) == 0 && strcmp(o->target_kind, target_kind) == 0);
		assert(o->has_target == (name[0] && target_kind[0]));
	}
	cJSON_Delete(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct autoscaler_object o;
	if (size == 0)
		return 0;
	enum autoscaler_kind kind = data[0] % 2 ? AUTOSCALER_HPA : AUTOSCALER_SCALED_OBJECT;
	if (autoscaler_decode(kind, (const char *)data + 1, size - 1, &o)) {
		assert(o.namespace_name[0] && o.name[0]);
		assert(strlen(o.target_name) < sizeof o.target_name && strlen(o.target_kind) < sizeof o.target_kind);
		assert(!o.has_target || (o.target_name[0] && o.target_kind[0]));
		assert(kind == AUTOSCALER_HPA || !o.scaled_object[0]);
		compare_with_tree(kind, (const char *)data + 1, size - 1, &o);
	}
	return 0;
}
