// SPDX-License-Identifier: Apache-2.0
// What matters of a Pod, read from its own text.
#ifndef GPUSCALE_K8S_POD_DECODE_H
#define GPUSCALE_K8S_POD_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "k8s/label_selector.h"
#include "k8s/scale.h"
#include "k8s/target_decode.h"

struct pod_facts {
	char name[TARGET_NAME_BYTES], namespace_name[TARGET_NAME_BYTES];
	enum pod_kind kind;
	bool is_ready, is_pending, is_failed, is_deleted; // as struct pod_counts counts them
	bool is_crashing;   // a container waits in CrashLoopBackOff, or cannot be started at all
	int64_t created_ms; // since the epoch; 0 = not said
	int64_t ready_ms;   // when it became ready; 0: it is not, or it is not said
};
// False when there is no usable name.
bool pod_decode(const char *json, size_t len, struct pod_facts *ret_facts);

// Its labels; in memory to be freed with free(*ret_labels). -1 when memory ends. What is no label is left out.
int pod_decode_labels(const char *json, size_t len, struct label **ret_labels, size_t *ret_n);

#endif
