// SPDX-License-Identifier: Apache-2.0
// Decodes the relevant fields of a Pod.
#ifndef GPUSCALE_K8S_CACHE_POD_DECODE_H
#define GPUSCALE_K8S_CACHE_POD_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/cache/target_decode.h"
#include "k8s/client/label_selector.h"
#include "k8s/client/scale.h"

struct pod_facts {
	enum pod_kind kind;
	bool is_ready, is_pending, is_failed, is_deleted; // as struct pod_counts counts them
	bool is_crashing;                                 // a container is in CrashLoopBackOff, or cannot be started
	int64_t created_ms;                               // since the epoch; 0: unknown
	int64_t ready_ms; // when it became ready, since the epoch; 0: not ready, or unknown
};
// Decodes a Pod. Returns false when it has no valid name.
bool pod_decode(const char *json, size_t len, struct pod_facts *ret_facts);

#define POD_LABELS_MAX 256 // that are read; an object of 1.5 MiB can have 100,000

// Decodes the labels of a Pod, sorted by label_sort(); invalid ones are left out. The caller frees *ret_labels, of
// *ret_bytes. Returns -1 when memory is exhausted.
int pod_decode_labels(const char *json, size_t len, struct label **ret_labels, size_t *ret_n, size_t *ret_bytes);
// Returns which replica of a target of this kind the Pod belongs to, according to its labels and annotations.
struct group_member pod_decode_member(const struct workload_kind *k, const char *json, size_t len,
                                      const struct label *labels, size_t n_labels);

#endif
