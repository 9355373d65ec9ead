// SPDX-License-Identifier: Apache-2.0
#include "controller/external/review_cache.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1

#include "base/hash_table.h"
#include "k8s/server/k8s_user.h"

struct entry {
	unsigned char key[REVIEW_KEY_BYTES];
	struct review_answer answer;
	int64_t until_ms;
	UT_hash_handle hh;
};

struct review_cache {
	struct entry *entries[2]; // no and yes, each in order of arrival; the first is the oldest
	size_t max;
	int64_t ttl_ms;
};

_Static_assert(REVIEW_KEY_BYTES == SHA256_DIGEST_LENGTH, "a key is a SHA-256");

struct review_cache *review_cache_new(size_t max, int64_t ttl_ms)
{
	struct review_cache *c = calloc(1, sizeof *c);
	if (c) {
		c->max = max;
		c->ttl_ms = ttl_ms;
	}
	return c;
}

static void drop(struct review_cache *c, struct entry *entry)
{
	HASH_DEL(c->entries[entry->answer.yes], entry);
	k8s_user_unref(entry->answer.user);
	free(entry);
}

void review_cache_free(struct review_cache *c)
{
	if (!c)
		return;
	for (int yes = 0; yes < 2; yes++)
		while (c->entries[yes])
			drop(c, c->entries[yes]);
	free(c);
}

void review_cache_key(const void *question, size_t len, unsigned char out[REVIEW_KEY_BYTES])
{
	SHA256(question, len, out);
}

static struct entry *find(const struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES])
{
	struct entry *found = NULL;
	for (int yes = 0; yes < 2 && !found; yes++)
		HASH_FIND(hh, c->entries[yes], key, REVIEW_KEY_BYTES, found);
	return found;
}

const struct review_answer *review_cache_get(struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES],
                                             int64_t mono_ms)
{
	for (int yes = 0; yes < 2; yes++)
		while (c->entries[yes] && c->entries[yes]->until_ms <= mono_ms) // all have the same lifetime
			drop(c, c->entries[yes]);
	const struct entry *found = find(c, key);
	return found ? &found->answer : NULL;
}

void review_cache_put(struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES],
                      const struct review_answer *answer, int64_t mono_ms)
{
	struct entry *entry = find(c, key), **list = &c->entries[answer->yes];
	if (entry)
		drop(c, entry);
	while (*list && HASH_COUNT(*list) >= c->max)
		drop(c, *list);
	entry = calloc(1, sizeof *entry);
	if (!entry)
		return;
	memcpy(entry->key, key, REVIEW_KEY_BYTES);
	entry->answer = *answer;
	entry->until_ms = mono_ms + c->ttl_ms;
	HASH_ADD(hh, *list, key, REVIEW_KEY_BYTES, entry);
	if (!entry->hh.tbl) {
		free(entry);
		return;
	}
	if (entry->answer.user)
		k8s_user_ref(entry->answer.user);
}
