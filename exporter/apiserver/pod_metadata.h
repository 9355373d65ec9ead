// SPDX-License-Identifier: Apache-2.0
// Keeps the UIDs and selected labels of the pods that use GPUs current, which the kubelet does not report: queries the
// API server for the metadata of the pods of this node, with the service account of the pod. Call every function from
// the thread of the loop, except pod_metadata_acquire(), pod_metadata_find() and pod_metadata_release(). The program
// must ignore SIGPIPE.
#ifndef GPUSCALE_EXPORTER_APISERVER_POD_METADATA_H
#define GPUSCALE_EXPORTER_APISERVER_POD_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/json/watch_scan.h"
#include "exporter/kubelet/pod_resources.h"

struct clock;
struct event_base;
struct log;
struct pod_map;
struct pod_metadata;

// ---- which labels of a pod its GPUs carry, and under which names ----

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
// Splits the next item off a list with commas between them, in place, and skips empty ones. NULL at the end.
char *pod_labels_next(char **list);

// ---- the reply ----

// Decodes the API server's PartialObjectMetadataList of pods as it arrives: of each pod its namespace, name, UID and
// selected labels. Keeps at most one pod in memory. No I/O.

#define METADATA_LIST_ACCEPT                                                                                           \
	"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json" // the latter for errors
#define METADATA_LIST_BYTES_MAX     (16 * 1024 * 1024)
#define METADATA_LIST_POD_BYTES_MAX (4 * 1024 * 1024)
#define METADATA_LIST_PODS_MAX      4096 // pods on one node, completed pods included
#define POD_UID_BYTES_MAX           63   // a UUID has 36

struct metadata_list_item {
	char namespace_[POD_NAME_BYTES_MAX + 1], name[POD_NAME_BYTES_MAX + 1];
	char uid[POD_UID_BYTES_MAX + 1];
	char labels[POD_LABELS_MAX][POD_LABEL_VALUE_BYTES_MAX + 1]; // in the order of the selected labels; "": absent
};

// Called for each pod. Returns 0 to continue, or -1 and *e to stop.
typedef int metadata_list_fn(void *arg, const struct metadata_list_item *pod, struct err *e);

struct metadata_list {
	struct watch_scan scan;
	const struct pod_labels *labels;
	metadata_list_fn *fn;
	void *arg;
	size_t n;         // pods so far
	struct err error; // error of a pod
};

// Prepares `l` for one reply. `labels` is not copied. Release it with watch_scan_done(&l->scan).
void metadata_list_init(struct metadata_list *l, const struct pod_labels *labels, metadata_list_fn *fn, void *arg);
// Decodes the next piece. Returns 0, or -1 and *e: ERR_PROTOCOL (not JSON, or not this list: an object of another kind
// is refused before its items are read), ERR_LIMIT (a limit is exceeded), ERR_INTERNAL, or the error of `fn`. Call
// json_scan_finish(&l->scan.json) after the last one.
int metadata_list_feed(struct metadata_list *l, const char *data, size_t len, struct err *e);

#define POD_METADATA_MIN_MS     10000 // between two requests
#define POD_METADATA_REFRESH_MS 60000 // between two while every pod is known, and the longest delay of a retry
#define POD_METADATA_TIMEOUT_MS 4000  // timeout of one request, including the connect
#define POD_METADATA_STALE_MS   (5 * 60 * 1000) // metadata older than this is not used

struct pod_metadata_options {
	struct event_base *loop;         // not owned
	const struct clock *clock;       // not owned
	struct log *log;                 // not owned, may be NULL
	const struct pod_labels *labels; // the selected ones; not owned
	// Copied: the URL of the API server without a path (service_account_server()), the folder of the files `token`
	// and `ca.crt`, which are read again for each request, and the name of the node.
	const char *server, *folder, *node;
	int64_t min_ms; // 0: POD_METADATA_MIN_MS
};

struct pod_metadata_status {
	bool last_ok;    // the last completed request succeeded
	bool stale;      // the metadata is too old; no GPU carries it
	int64_t age_ms;  // since the last successful request; -1: none, or no pod uses a device
	int64_t last_ms; // duration of the last request
	uint64_t polls;  // completed requests
	uint64_t errors; // failed requests
	size_t missing;  // pods that use devices and whose metadata is unknown
};

// Returns NULL and fills `e` (ERR_INPUT, ERR_LIMIT, ERR_INTERNAL) if the name of the node or the URL is not valid.
// Sends no request before a pod uses a device.
struct pod_metadata *pod_metadata_new(const struct pod_metadata_options *options, struct err *e);
void pod_metadata_free(struct pod_metadata *p);
// Takes the pods that use devices from `m`, the kubelet's current map, and requests those that it does not know, at
// most once per `min_ms`. A pod with other containers or devices than in the last map is not known: it may be a new pod
// of the same name. A pod that is replaced with the same name and devices between two maps is found at the next
// refresh.
void pod_metadata_take_map(struct pod_metadata *p, const struct pod_map *m);
// True while a request is in flight.
bool pod_metadata_is_busy(const struct pod_metadata *p);
void pod_metadata_get_status(struct pod_metadata *p, struct pod_metadata_status *ret_status);

// The metadata of a pod; "" for a label that it does not have.
struct pod_known {
	const char *uid;
	const char *labels[POD_LABELS_MAX]; // in the order of options.labels
};
// Any thread, between pod_metadata_acquire() and pod_metadata_release(), while which nothing changes and the loop may
// block. Returns NULL for a pod that is not known, or whose metadata is too old. Valid until the release.
void pod_metadata_acquire(struct pod_metadata *p);
const struct pod_known *pod_metadata_find(const struct pod_metadata *p, const char *namespace_, const char *pod);
void pod_metadata_release(struct pod_metadata *p);

#endif
