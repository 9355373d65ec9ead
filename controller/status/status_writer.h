// SPDX-License-Identifier: Apache-2.0
// Sends status patches to the API server, of each object only the newest: few at a time and few a second, so that they
// neither delay a scale nor cost the server more than the scales do. When many objects change at once, the writer has
// room for some of them, and the others are deferred to their next tick, by when they may have changed again.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATUS_WRITER_H
#define GPUSCALE_CONTROLLER_STATUS_STATUS_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/status/status_schedule.h"

struct err;
struct k8s_client;
struct status_writer;

#define STATUS_WRITES_MAX   4   // in flight at once
#define STATUS_WRITES_BURST 50  // patches that may be sent at once after a pause
#define STATUS_WRITE_GAP_MS 40  // after them, time between two patches
#define STATUS_QUEUE_MAX    256 // queued patches above which there is no room for more

// Called from the loop, once per patch that was sent. error NULL: the patch was written.
typedef void status_written_fn(void *arg, const struct err *error);

// The queue slot of one object. Zero it once; then only the writer changes it. Do not move or free it before
// status_slot_cancel().
struct status_slot {
	struct status_slot *prev, *next; // the queue, while waiting
	struct status_writer *writer;
	char *path, *body; // waiting to be sent; owned
	bool sending;
	bool is_deferred;
	status_written_fn *fn;
	void *arg;
	struct status_send *call; // the request in flight
};

struct status_writer_stats {
	uint64_t sent, failed;
	uint64_t waiting, in_flight; // now; waiting: queued, and deferred
};

struct status_writer *status_writer_new(struct k8s_client *client, struct err *e);
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

#endif
