// SPDX-License-Identifier: Apache-2.0
// What the files of list and watch share; nobody else includes this.
//   watch.c         requests, what follows from their ends, backoff, life
//   watch_parts.c   what the parts of a page and the events of a stream mean, and what the owner hears
#ifndef GPUSCALE_K8S_WATCH_PRIVATE_H
#define GPUSCALE_K8S_WATCH_PRIVATE_H

#include <event2/event_struct.h>

#include "base/err.h"
#include "k8s/watch.h"
#include "k8s/watch_scan.h"

#define WATCH_VERSION_BYTES  64
#define WATCH_NAME_BYTES     254 // of an object, with its NUL
#define WATCH_CONTINUE_BYTES 4096

enum watch_phase {
	WATCH_LISTING,   // a page is on its way, or waits for the timer
	WATCH_STREAMING, // a stream is open, on its way, or waits for the timer
	WATCH_STOPPED,   // the client is closing
};

struct k8s_watch {
	struct k8s_client *client;
	struct k8s_watch_callbacks callbacks;
	void *arg;
	char *path, *selectors; // selectors: "" or "&labelSelector=..&fieldSelector=.."
	enum watch_phase phase;
	struct event timer;    // without a call: the next one; with one: the stream is healthy
	struct k8s_call *call; // NULL: none under way
	struct watch_scan scan;
	struct err inner;                  // why the call is ended from here; kind ERR_NONE = it is not
	char version[WATCH_VERSION_BYTES]; // the latest seen: where a stream goes on
	bool is_open;                      // the call's headers came, and say yes
	bool is_let_go;                    // the call is ended from outside: nothing follows from it
	bool in_callback;
	// Of the list:
	bool in_list;    // on_list was called, on_synced not yet
	char *next_page; // NULL = the first
	int pages;
	size_t objects; // of the pages before
	// Of the page that is coming:
	size_t page_objects;
	bool is_complete;
	char *page_next, page_version[WATCH_VERSION_BYTES];
	// Of the stream:
	bool is_good; // it has lived long enough, or brought something
	bool is_gone; // the version is too old for the server
	bool sends_bookmarks;
	// Of failures:
	int failures, answered_failures, relists; // in a row
	size_t too_large_bytes;                   // of an object that was left out of what the owner knows; 0 = none
	struct err *error;                        // told to on_error, not yet taken back; NULL = none
	struct k8s_watch_stats stats;
};

// A scan's watch_part_fn for a page of a list, and for a stream. They set w->inner when the call is to be ended.
void watch_on_list_part(void *arg, enum watch_part part, const char *type, const char *json, size_t len);
void watch_on_event_part(void *arg, enum watch_part part, const char *type, const char *json, size_t len);
// Why a page that came without an error cannot be used; 0 when it can.
int watch_check_page(const struct k8s_watch *w, struct err *e);

// ---- what the owner hears ----
void watch_tell(struct k8s_watch *w, void (*fn)(void *arg));
// NULL: none any more. Told when it is another one than before.
void watch_tell_error(struct k8s_watch *w, const struct err *error);
// That an object is left out, if one is.
void watch_tell_too_large(struct k8s_watch *w);
// The stream has lived long enough, or brought something.
void watch_tell_health(struct k8s_watch *w);

#endif
