// SPDX-License-Identifier: Apache-2.0
// The state of a watch, and the functions that process what it receives. Include it only from watch.c and from tests.
#ifndef GPUSCALE_K8S_CACHE_WATCH_PRIVATE_H
#define GPUSCALE_K8S_CACHE_WATCH_PRIVATE_H

#include <event2/event_struct.h>

#include "base/err.h"
#include "base/json/watch_scan.h"
#include "k8s/cache/watch.h"

#define WATCH_VERSION_BYTES  64
#define WATCH_NAME_BYTES     254 // of an object, with its NUL
#define WATCH_CONTINUE_BYTES 4096

enum watch_phase {
	WATCH_LISTING,   // a page is requested, or will be when the timer fires
	WATCH_CHECKING,  // the server's version is requested before a stream is resumed
	WATCH_STREAMING, // a stream is open or requested, or will be when the timer fires
	WATCH_STOPPED,   // the client is closing
};

struct k8s_watch {
	struct k8s_client *client;
	struct k8s_watch_callbacks callbacks;
	void *arg;
	char *path, *selectors; // selectors: "" or "&labelSelector=..&fieldSelector=.."
	enum watch_phase phase;
	struct event timer;    // without a call: the next one is due; with a call: the stream has been open long enough
	struct k8s_call *call; // the request in flight; NULL: none
	struct watch_scan scan;
	struct err inner;                  // why the watch aborts the call; kind ERR_NONE: it does not
	char version[WATCH_VERSION_BYTES]; // the latest received; a stream resumes there
	bool is_open;                      // the call was answered with 200
	bool is_canceled;                  // the caller stops the call: its end has no consequences
	bool in_callback;
	// The list:
	bool in_list;    // on_list was called, on_synced not yet
	char *next_page; // NULL: the first
	int pages;
	size_t objects;                         // on the previous pages
	char list_version[WATCH_VERSION_BYTES]; // from the first page
	// The page that is being received:
	size_t page_objects;
	bool is_complete;
	char *page_next, page_version[WATCH_VERSION_BYTES];
	// The stream:
	bool is_good; // it was open long enough, or sent an event
	bool is_gone; // the version is too old for the server
	bool sends_bookmarks;
	bool has_version;   // it sent an event or a bookmark
	int64_t opened_ms;  // monotonic clock
	int64_t timeout_ms; // for which the stream was requested
	bool is_doubtful;   // the server may have gone back to earlier versions: ask before the next stream
	int refused_checks; // lists of one object in a row that the server answered with an error of its own
	// Failures:
	int failures, answered_failures, relists; // in a row
	size_t too_large_bytes;                   // size of an object that was left out; 0: none
	struct err error;                         // the error that on_error last reported; kind ERR_NONE: none
	struct k8s_watch_stats stats;
};

// The watch_part_fn of a page and of a stream. They set w->inner when the call must be aborted.
void watch_on_list_part(void *arg, enum watch_part part, const char *type, const char *json, size_t len);
void watch_on_event_part(void *arg, enum watch_part part, const char *type, const char *json, size_t len);
// Returns 0 when a page that was received completely is valid, or -1 and *e.
int watch_check_page(const struct k8s_watch *w, struct err *e);

#endif
