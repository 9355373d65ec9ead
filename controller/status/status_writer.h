// SPDX-License-Identifier: Apache-2.0
// Sends status patches to the API server: few at a time, so that they do not delay a scale, and of each object only the
// newest.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATUS_WRITER_H
#define GPUSCALE_CONTROLLER_STATUS_STATUS_WRITER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct k8s_client;
struct status_writer;

#define STATUS_WRITES_MAX 4 // in flight at once

// Called from the loop, once per patch that was sent. error NULL: the patch was written.
typedef void status_written_fn(void *arg, const struct err *error);

// The queue slot of one object. Zero it once; then only the writer changes it. Do not move or free it before
// status_slot_cancel().
struct status_slot {
	struct status_slot *prev, *next; // the queue, while waiting
	struct status_writer *writer;
	char *path, *body; // waiting to be sent; owned
	bool sending;
	status_written_fn *fn;
	void *arg;
	struct status_send *call; // the request in flight
};

struct status_writer_stats {
	uint64_t sent, failed;
	uint64_t waiting, in_flight; // now
};

struct status_writer *status_writer_new(struct k8s_client *client, struct err *e);
// Cancel every slot and free the k8s_client first: until then, requests in flight may still be answered.
void status_writer_free(struct status_writer *w);
// Queues a merge-PATCH of `path` with `body`; replaces the slot's queued patch. Copies the strings. Calls fn when the
// request has ended.
void status_writer_put(struct status_writer *w, struct status_slot *slot, const char *path, const char *body,
                       status_written_fn *fn, void *arg);
// Drops the queued patch. The callback of a patch in flight is not called.
void status_slot_cancel(struct status_slot *slot);
void status_writer_get_stats(const struct status_writer *w, struct status_writer_stats *ret_stats);

#endif
