// SPDX-License-Identifier: Apache-2.0
// Events about an object, for `kubectl describe`: what repeats becomes a count on the Event that is there, and an
// object that says too much is cut short. Written in the background; an Event that cannot be written is counted, never
// waited for. client-go: tools/record/events_cache.go.
#ifndef GPUSCALE_K8S_EVENT_RECORDER_H
#define GPUSCALE_K8S_EVENT_RECORDER_H

#include <stddef.h>
#include <stdint.h>

struct clock;
struct err;
struct event_recorder;
struct k8s_client;

#define EVENT_AGGREGATE_MS      600000 // one object's Events of one type and reason within this time are one Event
#define EVENT_OBJECT_BURST      25     // requests about one object at once, and
#define EVENT_OBJECT_REFILL_MS  300000 // another one after each of these
#define EVENT_SERIES_MAX        4096   // Events remembered, to count on
#define EVENT_MESSAGE_BYTES_MAX 1024   // the API server's ceiling

// What the Event is about. Strings are copied.
struct event_object {
	const char *api_version, *kind, *namespace_name, *name, *uid;
};

struct event_recorder_options {
	struct k8s_client *client; // not owned
	const struct clock *clock; // not owned
	const char *component;     // "gpuscale"; copied
	const char *instance;      // who of several; copied
};

struct event_recorder_stats {
	uint64_t written, failed; // requests that were answered, and that were not or with an error
	uint64_t dropped;         // over a ceiling, never sent
};

struct event_recorder *event_recorder_new(const struct event_recorder_options *options, struct err *e);
// After the k8s_client is freed, so that nothing is under way. NULL is fine.
void event_recorder_free(struct event_recorder *r);
// type: "Normal" or "Warning". reason: CamelCase. The message is cut to EVENT_MESSAGE_BYTES_MAX.
void event_recorder_record(struct event_recorder *r, const struct event_object *object, const char *type,
                           const char *reason, const char *message);
void event_recorder_get_stats(const struct event_recorder *r, struct event_recorder_stats *ret_stats);
// Why the last request failed; "" when it did not.
const char *event_recorder_error(const struct event_recorder *r);

#endif
