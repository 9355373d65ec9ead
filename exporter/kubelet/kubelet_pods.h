// SPDX-License-Identifier: Apache-2.0
// Keeps the map of pods on GPUs current. It polls the kubelet's pod-resources socket from the event loop without
// blocking and keeps the last good map until that is too old. Call every function from the thread of the loop, except
// kubelet_pods_acquire() and kubelet_pods_release(). The program must ignore SIGPIPE.
#ifndef GPUSCALE_EXPORTER_KUBELET_KUBELET_PODS_H
#define GPUSCALE_EXPORTER_KUBELET_KUBELET_PODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/kubelet/pod_resources.h"

struct clock;
struct err;
struct event_base;
struct log;
struct kubelet_pods;

#define KUBELET_PODS_SOCKET      "/var/lib/kubelet/pod-resources/kubelet.sock"
#define KUBELET_PODS_INTERVAL_MS 10000
#define KUBELET_PODS_TIMEOUT_MS  2000            // timeout of one request, including the connect
#define KUBELET_PODS_STALE_MS    (5 * 60 * 1000) // a map older than this is not used

struct kubelet_pods_options {
	struct event_base *loop;   // not owned
	const struct clock *clock; // not owned
	struct log *log;           // not owned, may be NULL
	const char *socket;        // path
	struct pod_map_options map;
	// Called from the loop with each new map, before kubelet_pods_acquire() returns it. NULL: no call.
	void (*on_map)(void *arg, const struct pod_map *map);
	void *arg;
	int64_t interval_ms, timeout_ms, stale_ms; // 0: the default above
};

struct kubelet_pods_status {
	bool has_map;    // at least one request succeeded
	bool stale;      // the map is too old; no GPU carries pod labels
	bool last_ok;    // the last completed request succeeded
	int64_t age_ms;  // age of the map; -1: no map
	int64_t last_ms; // duration of the last request
	uint64_t polls;  // completed requests
	uint64_t errors; // failed requests
	size_t entries;  // devices used by containers
	size_t dropped;  // series of pods that the last round omitted
};

// Sends the first request immediately and then one per interval. Returns NULL and fills `e` if the path does not fit
// a socket address or memory is exhausted.
struct kubelet_pods *kubelet_pods_new(const struct kubelet_pods_options *options, struct err *e);
void kubelet_pods_free(struct kubelet_pods *p);
void kubelet_pods_get_status(struct kubelet_pods *p, struct kubelet_pods_status *ret_status);

// Returns the map, or NULL if there is none or it is too old. The map does not change until kubelet_pods_release(),
// which takes the number of series that were omitted. The loop blocks in between, so keep that time short. Any
// thread.
const struct pod_map *kubelet_pods_acquire(struct kubelet_pods *p);
void kubelet_pods_release(struct kubelet_pods *p, size_t dropped);

#endif
