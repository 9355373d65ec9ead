// SPDX-License-Identifier: Apache-2.0
// Extracts the objects from a list, or from a stream of watch events, that arrives in pieces of any size. At most one
// object is kept in memory, and only when it is split between two pieces. The text must be valid as
// base/json/json_scan.h checks it, but the contents of strings, to which a tenant can add any \uXXXX, are not checked
// except with WATCH_SCAN_METADATA.
#ifndef GPUSCALE_BASE_JSON_WATCH_SCAN_H
#define GPUSCALE_BASE_JSON_WATCH_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json/json_scan.h"

struct err;

#define WATCH_SCAN_TYPE_BYTES 32 // the known types are shorter
// The API server accepts objects of 10,000 levels. A deep object must not hide the others of its kind: it arrives as
// any other, and its reader may refuse it.
#define WATCH_SCAN_DEPTH_MAX 10240

// METADATA: a PartialObjectMetadataList, strictly as base/json/json_scan.h checks it; any other list is refused before
// its items are read.
enum watch_scan_mode { WATCH_SCAN_LIST, WATCH_SCAN_EVENTS, WATCH_SCAN_METADATA };
enum watch_part {
	WATCH_PART_ITEM,      // list: one element of "items"
	WATCH_PART_METADATA,  // list: the value of "metadata"
	WATCH_PART_EVENT,     // event: its "object"; type is its "type" ("" if none)
	WATCH_PART_TOO_LARGE, // an item or object was left out: len is its size, json is NULL
	WATCH_PART_END,       // the list, or one event, is complete and contained items, or an object
};
// json[0..len) is valid JSON during the call, not NUL-terminated. The function must not use the scan.
typedef void watch_part_fn(void *arg, enum watch_part part, const char *type, const char *json, size_t len);

struct watch_scan {
	enum watch_scan_mode mode;
	size_t object_bytes_max;
	watch_part_fn *fn;
	void *arg;
	struct json_scan json;
	uint64_t levels[WATCH_SCAN_DEPTH_MAX / 64]; // memory of `json`
	const char *piece;                          // of the text, during watch_scan_feed
	int member;                                 // enum member, of the outermost object
	bool has_wanted;                            // wanted: "items" or "object", depending on the mode
	// The part that is being captured:
	bool is_capturing, is_too_large;
	size_t capture_depth; // the depth at which it is complete
	size_t run;           // where it starts in the text, or continues in the current piece
	size_t part_bytes;    // of earlier pieces
	struct buf part;      // these bytes
	char type[WATCH_SCAN_TYPE_BYTES];
	bool has_type, is_held; // held: part is an object whose type is not known yet
};

// Initializes a scan, which must not be moved. fn is called from watch_scan_feed with each part; larger ones than
// object_bytes_max are left out.
void watch_scan_init(struct watch_scan *s, enum watch_scan_mode mode, size_t object_bytes_max, watch_part_fn *fn,
                     void *arg);
void watch_scan_done(struct watch_scan *s);
// Processes the next bytes. Returns -1 and *e as json_scan_feed; after that, every further call fails.
int watch_scan_feed(struct watch_scan *s, const char *data, size_t len, struct err *e);

#endif
