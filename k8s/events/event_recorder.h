// SPDX-License-Identifier: Apache-2.0
// Writes Events about objects, for `kubectl describe`. A repeated Event increases the count of the existing one, and
// the number of Events per object is limited. Events are written in the background; one that cannot be written is
// counted and dropped. client-go: tools/record/events_cache.go.
#ifndef GPUSCALE_K8S_EVENTS_EVENT_RECORDER_H
#define GPUSCALE_K8S_EVENTS_EVENT_RECORDER_H

#include <stdint.h>

struct clock;
struct err;
struct event_recorder;
struct k8s_client;

#define EVENT_AGGREGATE_MS      600000 // Events of one object, type and reason within this time are counted as one
#define EVENT_OBJECT_BURST      25     // requests for one object at once, and
#define EVENT_OBJECT_REFILL_MS  300000 // one more after each of these
#define EVENT_SERIES_MAX        4096   // Events that are remembered for counting
#define EVENT_SENDING_MAX       32     // requests in flight; further Events wait as series, which take less memory
#define EVENT_MESSAGE_BYTES_MAX 1024   // the API server's limit

// The object of an Event. Strings are copied. namespace_name "": an object without a namespace.
struct event_object {
	const char *api_version, *kind, *namespace_name, *name, *uid;
};

struct event_recorder_options {
	struct k8s_client *client; // not owned
	const struct clock *clock; // not owned
	const char *component;     // "gpuscale"; copied
	const char *instance;      // which replica; copied
};

struct event_recorder_stats {
	uint64_t written, failed; // requests that succeeded; that failed
	uint64_t dropped;         // above a limit, not sent
};

// Creates a recorder. Returns NULL and *e when memory is exhausted.
struct event_recorder *event_recorder_new(const struct event_recorder_options *options, struct err *e);
// Frees the recorder. Call after the k8s_client is freed, so that no request is in flight. NULL is fine.
void event_recorder_free(struct event_recorder *r);
// Records an Event. type is "Normal" or "Warning", reason is CamelCase. The message is truncated to
// EVENT_MESSAGE_BYTES_MAX.
void event_recorder_record(struct event_recorder *r, const struct event_object *object, const char *type,
                           const char *reason, const char *message);
void event_recorder_get_stats(const struct event_recorder *r, struct event_recorder_stats *ret_stats);
// Returns why the last request failed; "" when it succeeded. Valid until the loop runs.
const char *event_recorder_error(const struct event_recorder *r);

#endif
