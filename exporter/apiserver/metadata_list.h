// SPDX-License-Identifier: Apache-2.0
// Decodes the API server's PartialObjectMetadataList of pods as it arrives: of each pod its namespace, name, UID and
// selected labels. Its memory does not grow with the reply. No I/O.
#ifndef GPUSCALE_EXPORTER_APISERVER_METADATA_LIST_H
#define GPUSCALE_EXPORTER_APISERVER_METADATA_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/json/json_scan.h"
#include "exporter/apiserver/pod_labels.h"
#include "exporter/kubelet/pod_resources.h"

struct err;

#define METADATA_LIST_ACCEPT                                                                                           \
	"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json" // the latter for errors
#define METADATA_LIST_BYTES_MAX (16 * 1024 * 1024)
#define METADATA_LIST_PODS_MAX  4096 // pods on one node, completed pods included
#define POD_UID_BYTES_MAX       63   // a UUID has 36

struct metadata_list_item {
	char namespace_[POD_NAME_BYTES_MAX + 1], name[POD_NAME_BYTES_MAX + 1];
	char uid[POD_UID_BYTES_MAX + 1];
	char labels[POD_LABELS_MAX][POD_LABEL_VALUE_BYTES_MAX + 1]; // in the order of the selected labels; "": absent
};

// Called for each pod. Returns 0 to continue, or -1 and *e to stop.
typedef int metadata_list_fn(void *arg, const struct metadata_list_item *pod, struct err *e);

struct metadata_list {
	struct json_scan scan;
	const struct pod_labels *labels;
	metadata_list_fn *fn;
	void *arg;
	struct metadata_list_item pod; // in progress
	size_t n;                      // pods so far
	size_t matched;                // the open levels, from the outermost, that lead to a value in use
	int at[6];                     // key of the member in progress, per level
	bool is_list, has_items;
};

// Prepares `l` for one reply. `labels` is not copied. Release it with metadata_list_done().
void metadata_list_init(struct metadata_list *l, const struct pod_labels *labels, metadata_list_fn *fn, void *arg);
void metadata_list_done(struct metadata_list *l);
// Decodes the next piece. Returns 0, or -1 and *e: ERR_PROTOCOL (not JSON, or not this list: an object of another kind
// is refused before its items are read), ERR_LIMIT (a limit is exceeded), ERR_INTERNAL, or the error of `fn`.
int metadata_list_feed(struct metadata_list *l, const char *data, size_t len, struct err *e);
// Ends the reply. Returns -1 and *e if it is incomplete.
int metadata_list_finish(struct metadata_list *l, struct err *e);

#endif
