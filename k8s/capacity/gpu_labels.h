// SPDX-License-Identifier: Apache-2.0
// Where nodes state their GPU model and their node pool: tables of the labels that vendors and cloud providers set.
#ifndef GPUSCALE_K8S_CAPACITY_GPU_LABELS_H
#define GPUSCALE_K8S_CAPACITY_GPU_LABELS_H

#include <stddef.h>

#include "k8s/client/label_selector.h"

// Returns the label that names the model of the node's accelerators; NULL: none of the known labels is set.
const struct label *gpu_label_model(const struct label *const *labels, size_t n);
// Returns the label that names the node pool. extra: a key that ranks first; NULL: none.
const struct label *gpu_label_pool(const struct label *const *labels, size_t n, const char *extra);

#endif
