// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/label_pool.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/must.h"

struct pooled_label {
	UT_hash_handle hh;
	struct label label;
	size_t refs;
	char text[]; // the key and the value, each with its NUL
};

const struct label *label_pool_take(struct label_pool *p, const char *key, const char *value)
{
	char text[LABEL_POOL_TEXT_BYTES];
	struct pooled_label *l;
	size_t key_size = strlen(key) + 1, size = key_size + strlen(value) + 1;
	if (size > sizeof text)
		return NULL;
	memcpy(text, key, key_size);
	memcpy(text + key_size, value, size - key_size);
	HASH_FIND(hh, p->labels, text, size, l);
	if (!l) {
		l = must_alloc(calloc(1, sizeof *l + size));
		memcpy(l->text, text, size);
		l->label = (struct label){l->text, l->text + key_size};
		HASH_ADD_KEYPTR(hh, p->labels, l->text, size, l);
	}
	l->refs++;
	return &l->label;
}

void label_pool_release(struct label_pool *p, const struct label *label)
{
	struct pooled_label *l = (struct pooled_label *)((uintptr_t)label - offsetof(struct pooled_label, label));
	if (--l->refs > 0)
		return;
	HASH_DELETE(hh, p->labels, l);
	free(l);
}
