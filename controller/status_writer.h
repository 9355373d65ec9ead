// SPDX-License-Identifier: Apache-2.0
// Status patches on their way to the API server: few at a time, so that they never stand in the way of a scale, and of
// one object only the newest.
#ifndef GPUSCALE_CONTROLLER_STATUS_WRITER_H
#define GPUSCALE_CONTROLLER_STATUS_WRITER_H

#include <stdbool.h>
#include <stdint.h>

struct err;
struct k8s_client;
struct status_writer;

#define STATUS_WRITES_MAX 4 // under way at once

// Called from the loop, once per patch that was sent. error NULL: written.
typedef void status_written_fn(void *arg, const struct err *error);

// One object's place; zero it once, then the writer's. It must not move, nor go before status_slot_cancel().
struct status_slot {
	struct status_slot *prev, *next; // the queue, while waiting
	struct status_writer *writer;
	char *path, *body; // waiting to be sent; owned
	bool sending;
	status_written_fn *fn;
	void *arg;
	struct status_send *call; // the request under way
};

struct status_writer_stats {
	uint64_t sent, failed;
	uint64_t waiting, under_way; // now
};

struct status_writer *status_writer_new(struct k8s_client *client, struct err *e);
// Every slot must be canceled before; the requests under way may still be answered until the k8s_client is freed, so
// that goes first.
void status_writer_free(struct status_writer *w);
// Queues a merge-PATCH of `path`; what the slot was waiting with is replaced. Strings are copied. fn tells the end.
void status_writer_put(struct status_writer *w, struct status_slot *slot, const char *path, const char *body,
                       status_written_fn *fn, void *arg);
// Forgets what waits; the end of what is under way is not told any more.
void status_slot_cancel(struct status_slot *slot);
void status_writer_get_stats(const struct status_writer *w, struct status_writer_stats *ret_stats);

#endif
