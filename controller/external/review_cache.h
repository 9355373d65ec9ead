// SPDX-License-Identifier: Apache-2.0
// Caches answers of the API server for a short time, by digest of the question. The oldest answer makes room for a new
// one.
#ifndef GPUSCALE_CONTROLLER_EXTERNAL_REVIEW_CACHE_H
#define GPUSCALE_CONTROLLER_EXTERNAL_REVIEW_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct k8s_user;
struct review_cache;

#define REVIEW_KEY_BYTES    32
#define REVIEW_REASON_BYTES 256

struct review_answer {
	int yes;                          // 0 or 1
	struct k8s_user *user;            // of a token; NULL if none. The cache holds a reference of its own
	char reason[REVIEW_REASON_BYTES]; // why not, for people
};

// max: entries of positive answers, and as many of negative ones, so that neither evict the others. Returns NULL when
// memory is exhausted.
struct review_cache *review_cache_new(size_t max, int64_t ttl_ms);
void review_cache_free(struct review_cache *c); // NULL is fine
// Writes the SHA-256 of the question.
void review_cache_key(const void *question, size_t len, unsigned char out[REVIEW_KEY_BYTES]);
// Returns NULL when there is no answer, or it is too old. Valid until the next put.
const struct review_answer *review_cache_get(struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES],
                                             int64_t mono_ms);
// Stores an answer, replacing one to the same question. Does nothing when memory is exhausted.
void review_cache_put(struct review_cache *c, const unsigned char key[REVIEW_KEY_BYTES],
                      const struct review_answer *answer, int64_t mono_ms);

#endif
