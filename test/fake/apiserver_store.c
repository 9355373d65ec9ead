// SPDX-License-Identifier: Apache-2.0
#include "test/fake/apiserver_store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utlist.h>

#include "base/buf.h"
#include "base/json_read.h"
#include "base/num.h"

#define FAKE_KEY_BYTES 1200

const struct fake_kind fake_kinds[] = {
        {"", "v1", "Pod", "pods", false},
        {"apps", "v1", "Deployment", "deployments", true},
        {"apps", "v1", "ReplicaSet", "replicasets", true},
        {"apps", "v1", "StatefulSet", "statefulsets", true},
        {"apps", "v1", "DaemonSet", "daemonsets", false},
        {"example.dev", "v1", "Widget", "widgets", true},
};
const size_t fake_n_kinds = sizeof fake_kinds / sizeof fake_kinds[0];

void fake_store_init(struct fake_store *s)
{
	*s = (struct fake_store){.version = 100};
}

void fake_store_done(struct fake_store *s)
{
	while (s->objects)
		fake_store_remove(s, s->objects);
}

const struct fake_kind *fake_kind_find(const char *group, const char *version, const char *name_or_plural)
{
	for (size_t i = 0; i < fake_n_kinds; i++) {
		const struct fake_kind *k = &fake_kinds[i];
		if ((!group || strcmp(k->group, group) == 0) && (!version || strcmp(k->version, version) == 0) &&
		    (strcmp(k->kind, name_or_plural) == 0 || strcmp(k->plural, name_or_plural) == 0))
			return k;
	}
	return NULL;
}

// ---- trees ----

void fake_set(cJSON *object, const char *key, cJSON *value)
{
	if (cJSON_GetObjectItemCaseSensitive(object, key))
		cJSON_ReplaceItemInObjectCaseSensitive(object, key, value);
	else
		cJSON_AddItemToObject(object, key, value);
}

cJSON *fake_sub(cJSON *object, const char *key)
{
	cJSON *sub = cJSON_GetObjectItemCaseSensitive(object, key);
	if (!cJSON_IsObject(sub)) {
		sub = cJSON_CreateObject();
		fake_set(object, key, sub);
	}
	return sub;
}

cJSON *fake_merge_patch(cJSON *target, const cJSON *patch)
{
	if (!cJSON_IsObject(patch)) {
		cJSON_Delete(target);
		return cJSON_Duplicate(patch, true);
	}
	if (!cJSON_IsObject(target)) {
		cJSON_Delete(target);
		target = cJSON_CreateObject();
	}
	const cJSON *item;
	cJSON_ArrayForEach(item, patch)
	{
		if (cJSON_IsNull(item)) {
			cJSON_DeleteItemFromObjectCaseSensitive(target, item->string);
			continue;
		}
		cJSON *old = cJSON_DetachItemFromObjectCaseSensitive(target, item->string);
		cJSON_AddItemToObject(target, item->string, fake_merge_patch(old, item));
	}
	return target;
}

const char *fake_object_name(const struct fake_object *o)
{
	return json_get_str(json_get(o->root, "metadata"), "name", "");
}

const char *fake_object_namespace(const struct fake_object *o)
{
	return json_get_str(json_get(o->root, "metadata"), "namespace", "");
}

const char *fake_object_version(const struct fake_object *o)
{
	return json_get_str(json_get(o->root, "metadata"), "resourceVersion", "");
}

int fake_object_replicas(const struct fake_object *o)
{
	int64_t n = 1;
	return json_get_i64(json_get(o->root, "spec"), "replicas", 0, INT32_MAX, &n, NULL) < 0 ? 0 : (int)n;
}

bool fake_labels_match(const struct fake_object *o, const char *selector, bool *ret_bad)
{
	const cJSON *labels = json_get(json_get(o->root, "metadata"), "labels");
	while (*selector) {
		size_t len = strcspn(selector, ","), key_len = strcspn(selector, "=,");
		char key[256], value[256];
		const char *v = selector + key_len + 1;
		if (key_len > 0 && key_len < len && *v == '=')
			v++;
		if (key_len == 0 || key_len >= len || key_len >= sizeof key ||
		    (size_t)(selector + len - v) >= sizeof value || selector[key_len - 1] == '!' ||
		    memchr(v, '=', (size_t)(selector + len - v)) || memchr(selector, ' ', len)) {
			*ret_bad = true;
			return false;
		}
		snprintf(key, sizeof key, "%.*s", (int)key_len, selector);
		snprintf(value, sizeof value, "%.*s", (int)(selector + len - v), v);
		const cJSON *label = json_get(labels, key);
		if (!cJSON_IsString(label) || strcmp(label->valuestring, value) != 0)
			return false;
		selector += len + (selector[len] == ',');
	}
	return true;
}

char *fake_object_selector(const struct fake_object *o)
{
	struct buf text;
	buf_init(&text, 4096);
	const cJSON *label;
	cJSON_ArrayForEach(label, json_get(json_get(json_get(o->root, "spec"), "selector"), "matchLabels"))
	{
		if (cJSON_IsString(label))
			buf_printf(&text, "%s%s=%s", text.len ? "," : "", label->string, label->valuestring);
	}
	if (!text.len)
		buf_printf(&text, "app=%s", fake_object_name(o));
	return text.data;
}

// ---- objects ----

static void write_key(char key[FAKE_KEY_BYTES], const struct fake_kind *kind, const char *ns, const char *name)
{
	snprintf(key, FAKE_KEY_BYTES, "%s/%s/%s", kind->plural, ns, name);
}

struct fake_object *fake_store_find(const struct fake_store *s, const struct fake_kind *kind, const char *ns,
                                    const char *name)
{
	char key[FAKE_KEY_BYTES];
	struct fake_object *o;
	write_key(key, kind, ns, name);
	HASH_FIND_STR(s->index, key, o);
	return o;
}

static void set_version(struct fake_store *s, cJSON *root)
{
	char text[32];
	snprintf(text, sizeof text, "%llu", (unsigned long long)++s->version);
	fake_set(fake_sub(root, "metadata"), "resourceVersion", cJSON_CreateString(text));
}

struct fake_object *fake_store_add(struct fake_store *s, const struct fake_kind *kind, const char *ns, cJSON *root)
{
	char key[FAKE_KEY_BYTES];
	write_key(key, kind, ns, json_get_str(json_get(root, "metadata"), "name", ""));
	struct fake_object *o = s->n_objects < FAKE_OBJECTS_MAX ? calloc(1, sizeof *o + strlen(key) + 1) : NULL;
	if (!o) {
		cJSON_Delete(root);
		return NULL;
	}
	char text[NUM_TEXT_BYTES > 300 ? NUM_TEXT_BYTES : 300];
	o->kind = kind;
	o->root = root;
	o->seq = ++s->seq;
	snprintf(text, sizeof text, "%s%s%s", kind->group, kind->group[0] ? "/" : "", kind->version);
	fake_set(root, "apiVersion", cJSON_CreateString(text));
	fake_set(root, "kind", cJSON_CreateString(kind->kind));
	cJSON *metadata = fake_sub(root, "metadata");
	fake_set(metadata, "namespace", cJSON_CreateString(ns));
	snprintf(text, sizeof text, "00000000-0000-4000-8000-%012llx", (unsigned long long)o->seq);
	fake_set(metadata, "uid", cJSON_CreateString(text));
	set_version(s, root);
	fake_set(metadata, "generation", cJSON_CreateNumber(1));
	num_format_rfc3339_ms(text, (int64_t)time(NULL) * 1000);
	fake_set(metadata, "creationTimestamp", cJSON_CreateString(text));
	if (kind->has_scale && !json_get(json_get(root, "spec"), "replicas"))
		fake_set(fake_sub(root, "spec"), "replicas", cJSON_CreateNumber(1));
	memcpy(o->key, key, strlen(key) + 1);
	HASH_ADD_STR(s->index, key, o);
	DL_APPEND(s->objects, o);
	s->n_objects++;
	return o;
}

void fake_store_remove(struct fake_store *s, struct fake_object *o)
{
	HASH_DEL(s->index, o);
	DL_DELETE(s->objects, o);
	s->n_objects--;
	cJSON_Delete(o->root);
	free(o);
}

void fake_store_update(struct fake_store *s, struct fake_object *o, cJSON *root)
{
	if (cJSON_Compare(o->root, root, true)) {
		cJSON_Delete(root);
		return;
	}
	cJSON *metadata = fake_sub(root, "metadata");
	if (!cJSON_Compare(json_get(o->root, "spec"), json_get(root, "spec"), true)) {
		int64_t generation = 1;
		json_get_i64(json_get(o->root, "metadata"), "generation", 1, INT32_MAX, &generation, NULL);
		fake_set(metadata, "generation", cJSON_CreateNumber((double)generation + 1));
	}
	set_version(s, root);
	cJSON_Delete(o->root);
	o->root = root;
}
