// SPDX-License-Identifier: Apache-2.0
// Keeps the map of pods on GPUs fresh: asks the kubelet's pod-resources socket from the event loop, never waits for it,
// and holds the last good map until it is too old to be believed. Everything but pods_acquire and pods_release belongs
// to the thread of the loop. A program that uses this must ignore SIGPIPE.
#ifndef GPUSCALE_EXPORTER_PODS_H
#define GPUSCALE_EXPORTER_PODS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/pod_resources.h"

struct clock;
struct err;
struct event_base;
struct log;
struct pods;

#define PODS_SOCKET      "/var/lib/kubelet/pod-resources/kubelet.sock"
#define PODS_INTERVAL_MS 10000
#define PODS_TIMEOUT_MS  2000            // of one call, from the connect on
#define PODS_STALE_MS    (5 * 60 * 1000) // a map older than this labels nothing any more

struct pods_options {
	struct event_base *loop;   // not owned
	const struct clock *clock; // not owned
	struct log *log;           // not owned, may be NULL
	const char *socket;        // path
	struct pod_resource_names extra;
	int64_t interval_ms, timeout_ms, stale_ms; // 0: the above
};

struct pods_status {
	bool has_map;    // there was a good reply
	bool stale;      // the map is too old, so that no GPU carries pod labels
	bool last_ok;    // the last call that ended
	int64_t age_ms;  // of the map; -1: there is none
	int64_t last_ms; // how long the last call took
	uint64_t polls;  // calls that ended
	uint64_t errors; // of these, failed
	size_t entries;  // devices held by containers
	size_t dropped;  // series of pods that the last round left out
};

// Asks at once, then every interval. NULL and *e when the path does not fit a socket address, or memory ends.
struct pods *pods_new(const struct pods_options *options, struct err *e);
void pods_free(struct pods *p);
void pods_get_status(struct pods *p, struct pods_status *ret_status);

// Any thread: the map, or NULL when there is none that can be believed. It stays as it is until pods_release, which
// tells how many series were left out; between the two the loop waits, so be quick.
const struct pod_map *pods_acquire(struct pods *p);
void pods_release(struct pods *p, size_t dropped);

#endif
