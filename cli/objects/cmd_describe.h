// SPDX-License-Identifier: Apache-2.0
// gpuscale describe: the details of one object, and its latest Events, collected from the pages of a list that the API
// server does not sort.
#ifndef GPUSCALE_CLI_OBJECTS_CMD_DESCRIBE_H
#define GPUSCALE_CLI_OBJECTS_CMD_DESCRIBE_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct json_span;
struct policy_view;

#define POLICY_EVENTS_SHOWN_MAX     20
#define POLICY_EVENTS_MESSAGE_BYTES 1025 // the API server's ceiling, and a NUL

struct policy_event {
	int64_t last_ms, count;
	char type[64], reason[129], from[254], message[POLICY_EVENTS_MESSAGE_BYTES];
};

struct policy_events {
	struct policy_event items[POLICY_EVENTS_SHOWN_MAX]; // newest first
	size_t n;
	size_t total; // in all pages
};

// A restart of kube_pages: forgets the Events.
void policy_events_init(void *events);
// A kube_item_fn: adds an Event to a struct policy_events. A field that is not text or is too long for its column is
// shown empty, so one malformed Event does not hide the others. Returns 0.
int policy_events_add(void *events, struct json_span event, struct err *e);
// Appends the section "Events:" of `describe` to `out`. now_ms: ms since the epoch.
void policy_events_render(const struct policy_events *v, struct buf *out, int64_t now_ms);
// Appends the details of one policy. `events` is NULL when the Events could not be read; events_fault then holds the
// reason.
void policy_render_describe(struct buf *out, const struct policy_view *p, const struct policy_events *events,
                            const char *events_fault, int64_t now_ms);

#endif
