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

#include "exporter/apiserver/pod_labels.h"

struct clock;
struct err;
struct event_base;
struct log;
struct pod_map;
struct pod_metadata;

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
