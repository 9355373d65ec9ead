// SPDX-License-Identifier: Apache-2.0
// Sends status patches to the API server, of each object only the newest: few at a time and few a second, so that they
// neither delay a scale nor cost the server more than the scales do. When many objects change at once, the writer has
// room for some of them, and the others are deferred to their next tick, by when they may have changed again.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATUS_WRITER_H
#define GPUSCALE_CONTROLLER_STATUS_STATUS_WRITER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct k8s_client;
struct status_writer;

#define STATUS_WRITES_MAX   4   // in flight at once
#define STATUS_WRITES_BURST 50  // patches that may be sent at once after a pause
#define STATUS_WRITE_GAP_MS 40  // after them, time between two patches
#define STATUS_QUEUE_MAX    256 // queued patches above which there is no room for more

enum status_room {
	STATUS_ROOM_NONE,
	STATUS_ROOM_QUEUE,   // a patch would be queued
	STATUS_ROOM_AT_ONCE, // and sent at once
};

// Called from the loop, once per patch that was sent. error NULL: the patch was written.
typedef void status_written_fn(void *arg, const struct err *error);

// The queue slot of one object. Zero it once; then only the writer changes it. Do not move or free it before
// status_slot_cancel().
struct status_slot {
	struct status_slot *prev, *next; // the queue, while waiting
	struct status_writer *writer;
	char *path, *body; // waiting to be sent; owned
	bool is_deferred;
	status_written_fn *fn;
	void *arg;
	struct status_send *call; // the request in flight
};

struct status_writer_stats {
	uint64_t sent, failed;
	uint64_t waiting, in_flight; // now; waiting: queued, and deferred
};

struct status_writer *status_writer_new(struct k8s_client *client);
// Cancel every slot and free the k8s_client first: until then, requests in flight may still be answered.
void status_writer_free(struct status_writer *w);
// Returns what would happen to a patch of the slot's object now.
enum status_room status_writer_room(const struct status_writer *w, const struct status_slot *slot);
// Counts the slot as waiting until its next patch. Call it when a patch of its object is deferred.
void status_writer_defer(struct status_writer *w, struct status_slot *slot);
// Queues a merge-PATCH of `path` with `body`; replaces the slot's queued patch, which keeps its place. Copies the
// strings. Calls fn when the request has ended.
void status_writer_put(struct status_writer *w, struct status_slot *slot, const char *path, const char *body,
                       status_written_fn *fn, void *arg);
// Like status_writer_put(), for the last patch of the slot: the writer takes over the request in flight and the new
// patch, and the slot is as if it was canceled.
void status_writer_put_last(struct status_writer *w, struct status_slot *slot, const char *path, const char *body);
// Drops the queued patch. The callback of a patch in flight is not called.
void status_slot_cancel(struct status_slot *slot);
void status_writer_get_stats(const struct status_writer *w, struct status_writer_stats *ret_stats);

// ---- when a status is written (status_schedule.c) ----
// The one schedule of policies, pools and fleets. Pure: the caller passes the time, the fingerprints of the contents
// and the room in the queue. test_status_schedule lists the cases.

// Time that must have passed since the last write, by what calls for the next one; 0: none.
struct status_pace {
	int64_t change_ms, retry_ms, minor_ms, refresh_ms;
};

// The last write of one status. Zero it before the first; `failed` is set by the caller when the write has ended.
struct status_past {
	int64_t written_ms;    // when it was queued; 0: there was none
	uint64_t major, minor; // fingerprints of its contents
	bool failed;
	bool is_deferred; // a write was deferred since
};

// What calls for a write although the contents have the same fingerprints.
enum status_extra {
	STATUS_EXTRA_NONE,
	STATUS_EXTRA_REFRESH,  // numbers outside the fingerprints have changed
	STATUS_EXTRA_CATCH_UP, // the last write reported a scale with the signals that led to it; these are newer
};

// What follows when the contents are not written now.
enum status_next {
	STATUS_NEXT_UNKNOWN, // nothing is certain to follow
	STATUS_NEXT_TICK,    // the next tick offers the status again
	STATUS_NEXT_SCALED,  // the contents report a scale, and the next tick has the signals at the new one
	STATUS_NEXT_SOON,    // the same, and that tick is near
	STATUS_NEXT__COUNT
};

struct status_offer {
	const struct status_pace *pace;
	const struct status_past *past;
	// Fingerprints of the contents: of what is written as soon as it changes, and of what may wait for minor_ms.
	uint64_t major, minor;
	enum status_extra extra;
	enum status_next next;
	enum status_room room; // without effect for STATUS_NEXT_UNKNOWN
};

enum status_action {
	STATUS_SKIP,  // no write is due
	STATUS_LATER, // a write is due and deferred: set past->is_deferred
	STATUS_WRITE, // write, and call status_past_write() first
};

enum status_reason {
	STATUS_UNCHANGED,
	STATUS_TOO_EARLY,
	STATUS_NEWER_SOON, // the next tick replaces the contents
	STATUS_NO_ROOM,
	STATUS_CHANGED,
	STATUS_CAUGHT_UP,
	STATUS_RETRIED,
	STATUS_MINOR_CHANGED,
	STATUS_REFRESHED,
	STATUS_REASON__COUNT
};
// The action of each reason.
extern const struct status_reason_info {
	const char *name;
	enum status_action action;
} status_reasons[STATUS_REASON__COUNT];

// Returns why the offered contents are written, deferred or skipped as of now_ms, a time of the clock of
// past->written_ms.
enum status_reason status_schedule(const struct status_offer *offer, int64_t now_ms);
// Notes that contents with these fingerprints are written now.
void status_past_write(struct status_past *past, uint64_t major, uint64_t minor, int64_t now_ms);

#endif
