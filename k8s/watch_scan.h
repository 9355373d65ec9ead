// SPDX-License-Identifier: Apache-2.0
// Cuts the objects out of a list, or out of a stream of watch events, while it comes in pieces of any size. No tree of
// the whole is built: what is kept is one object at most, and only when it is split over two pieces.
// It looks at brackets, strings and the outermost object, which has to have what it is read for; whoever takes the
// objects checks their grammar.
#ifndef GPUSCALE_K8S_WATCH_SCAN_H
#define GPUSCALE_K8S_WATCH_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct err;

#define WATCH_SCAN_DEPTH_MAX  96 // brackets inside each other; json_read takes 64 in an object
#define WATCH_SCAN_NAME_BYTES 16 // names and event types that matter are shorter

enum watch_scan_mode { WATCH_SCAN_LIST, WATCH_SCAN_EVENTS };
enum watch_part {
	WATCH_PART_ITEM,      // of a list: one element of "items"
	WATCH_PART_METADATA,  // of a list: the value of "metadata"
	WATCH_PART_EVENT,     // an event's "object"; type is its "type" ("" if none)
	WATCH_PART_TOO_LARGE, // an item or object was left out: len = its size, json = NULL
	WATCH_PART_END,       // the list, or one event, is complete: its items, or its object, were there
};
// json[0..len) is valid during the call, not NUL-terminated. May not touch the scan.
typedef void watch_part_fn(void *arg, enum watch_part part, const char *type, const char *json, size_t len);

struct watch_scan {
	enum watch_scan_mode mode;
	size_t object_bytes_max;
	watch_part_fn *fn;
	void *arg;
	// Where the text stands.
	int depth;
	char closers[WATCH_SCAN_DEPTH_MAX]; // the bracket that each open level waits for
	bool in_string, is_escaped;
	int member;                       // enum member_state, while depth is 1
	char name[WATCH_SCAN_NAME_BYTES]; // of the member, "" when it is too long to matter
	size_t name_len;
	bool in_items, has_wanted; // wanted: "items" or "object", as the mode has it
	int item;                  // enum item_state, in items
	size_t null_len;           // of a scalar: how much of "null" came, and nothing else
	bool is_done;              // the list is complete
	// What is being kept.
	bool is_capturing, is_too_large;
	int capture_depth; // it ends when the depth is this again
	size_t part_bytes; // so far
	struct buf part;   // the bytes of earlier pieces
	char type[WATCH_SCAN_NAME_BYTES];
	bool in_type, has_type, is_held; // held: part is an object that waits for its type
	bool has_failed;
};

// fn is called from watch_scan_feed.
void watch_scan_init(struct watch_scan *s, enum watch_scan_mode mode, size_t object_bytes_max, watch_part_fn *fn,
                     void *arg);
void watch_scan_done(struct watch_scan *s);
// The next bytes. -1 and *e: ERR_PROTOCOL, ERR_LIMIT (depth), ERR_INTERNAL; then every further call fails too.
int watch_scan_feed(struct watch_scan *s, const char *data, size_t len, struct err *e);
// Nothing came yet, or the last value is complete.
bool watch_scan_is_between(const struct watch_scan *s);

#endif
