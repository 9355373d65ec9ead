// SPDX-License-Identifier: Apache-2.0
// Trees and texts of the fake API server's objects.
#include <stdlib.h>
#include <string.h>

#include "test/fake/apiserver_store.h"

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

struct fake_text *fake_text_of(const cJSON *root)
{
	char *text = cJSON_PrintUnformatted(root);
	size_t len = text ? strlen(text) : 0;
	struct fake_text *t = text ? malloc(sizeof *t + len + 1) : NULL;
	if (!t)
		abort(); // a test server has no better answer to the end of memory
	t->refs = 1;
	t->len = len;
	memcpy(t->data, text, len + 1);
	cJSON_free(text);
	return t;
}

struct fake_text *fake_text_keep(struct fake_text *t)
{
	if (t)
		t->refs++;
	return t;
}

void fake_text_drop(struct fake_text *t)
{
	if (t && --t->refs == 0)
		free(t);
}
