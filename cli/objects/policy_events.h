// SPDX-License-Identifier: Apache-2.0
// The latest Events of one object, collected from the pages of a list that the API server does not sort.
#ifndef GPUSCALE_CLI_OBJECTS_POLICY_EVENTS_H
#define GPUSCALE_CLI_OBJECTS_POLICY_EVENTS_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct json_span;
struct json_writer;

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

void policy_events_init(struct policy_events *v);
// A kube_item_fn: adds an Event to a struct policy_events. A field that is not text or is too long for its column is
// shown empty, so one malformed Event does not hide the others. Returns 0.
int policy_events_add(void *events, struct json_span event, struct err *e);
// Writes the member "events", newest first.
void policy_events_write(const struct policy_events *v, struct json_writer *w);
// Appends the section "Events:" of `describe` to `out`. now_ms: ms since the epoch.
void policy_events_render(const struct policy_events *v, struct buf *out, int64_t now_ms);

#endif
