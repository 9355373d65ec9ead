// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/label_pool.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/hash_table.h"
#include "base/must.h"

struct pooled_label {
	UT_hash_handle hh;
	struct hashed_label hashed;
	size_t refs;
	char text[]; // the key and the value, each with its NUL
};

uint32_t label_hash(const char *text)
{
	return (uint32_t)hash_mix(hash_text(HASH_START, text));
}

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
		l->hashed = (struct hashed_label){
		        {l->text, l->text + key_size}, label_hash(l->text), label_hash(l->text + key_size)};
		HASH_ADD_KEYPTR(hh, p->labels, l->text, size, l);
	}
	l->refs++;
	return &l->hashed.label;
}

void label_pool_release(struct label_pool *p, const struct label *label)
{
	struct pooled_label *l =
	        (struct pooled_label *)((uintptr_t)label - offsetof(struct pooled_label, hashed.label));
	if (--l->refs > 0)
		return;
	HASH_DELETE(hh, p->labels, l);
	free(l);
}

static int by_key_hash(const void *a, const void *b)
{
	uint32_t x = label_pool_hashes(*(const struct label *const *)a)->key_hash,
	         y = label_pool_hashes(*(const struct label *const *)b)->key_hash;
	return (x > y) - (x < y);
}

void label_pool_sort(const struct label **labels, size_t n)
{
	if (n > 1)
		qsort(labels, n, sizeof(const struct label *), by_key_hash);
}
