// SPDX-License-Identifier: Apache-2.0
// Labels of nodes, each stored once however many nodes have it: thousands of nodes share nearly all of their labels.
#ifndef GPUSCALE_K8S_CAPACITY_LABEL_POOL_H
#define GPUSCALE_K8S_CAPACITY_LABEL_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "k8s/client/label_selector.h"

#define LABEL_POOL_TEXT_BYTES 1024 // a key and a value together, with their NULs; a value has at most 63 bytes

struct pooled_label;

// A label of the pool with the hash of its key (label_hash), so that most comparisons need no text.
struct hashed_label {
	struct label label; // first: a label of the pool is one of these
	uint32_t key_hash;
};

struct label_pool {
	struct pooled_label *labels; // hash
};

// Returns the label with this key and value, valid until it is released as often as it was taken; NULL when the texts
// exceed LABEL_POOL_TEXT_BYTES. Aborts when memory is exhausted (base/alloc.h).
const struct label *label_pool_take(struct label_pool *p, const char *key, const char *value);
void label_pool_release(struct label_pool *p, const struct label *label);

uint32_t label_hash(const char *text);
// Returns the hash of the key of a label of the pool.
static inline uint32_t label_pool_key_hash(const struct label *label)
{
	return ((const struct hashed_label *)(const void *)label)->key_hash;
}
// Sorts labels of the pool as node_rule_matches() expects them: by the hash of the key.
void label_pool_sort(const struct label **labels, size_t n);

// ---- tables of the labels in which vendors and cloud providers state the GPU model and the node pool ----

// Returns the label that names the model of the node's accelerators; NULL: none of the known labels is set.
const struct label *gpu_label_model(const struct label *const *labels, size_t n);
// Returns the label that names the node pool. extra: a key that ranks first; NULL: none.
const struct label *gpu_label_pool(const struct label *const *labels, size_t n, const char *extra);

#endif
