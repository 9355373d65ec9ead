// SPDX-License-Identifier: Apache-2.0
// Which labels of a pod its GPUs carry, and under which names. No I/O.
#ifndef GPUSCALE_EXPORTER_APISERVER_POD_LABELS_H
#define GPUSCALE_EXPORTER_APISERVER_POD_LABELS_H

#include <stddef.h>

struct err;

#define POD_LABELS_MAX            8
#define POD_LABEL_KEY_BYTES_MAX   317 // Kubernetes: a prefix of 253, "/" and a name of 63
#define POD_LABEL_VALUE_BYTES_MAX 63  // Kubernetes: validation.LabelValueMaxLength
#define POD_LABEL_NAME_BYTES      (sizeof "label_" + 2 * POD_LABEL_KEY_BYTES_MAX)

struct pod_labels {
	const char *keys[POD_LABELS_MAX];                 // "app.kubernetes.io/name"
	char names[POD_LABELS_MAX][POD_LABEL_NAME_BYTES]; // "label_app_kubernetes_io_name"
	size_t n;
};

// Reads a list of keys with commas between them, which it splits in place and which must outlive `l`; empty keys are
// skipped. The name of a label is that of kube_pod_labels (kube-state-metrics: internal/store/utils.go): "label_" and
// the key, in which "_" replaces every character but letters, digits and "_", and precedes a capital after a small
// letter or a digit; then small letters only. Returns 0, or -1 and *e: ERR_INPUT for a key that is not valid or whose
// name another key has, ERR_LIMIT for too many keys.
int pod_labels_parse(struct pod_labels *l, char *list, struct err *e);

#endif
