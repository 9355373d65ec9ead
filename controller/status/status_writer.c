// SPDX-License-Identifier: Apache-2.0
#include "controller/status/status_writer.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <utlist.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/timer.h"
#include "k8s/client/k8s_client.h"

// A request outlives its slot when the policy is removed meanwhile.
struct status_send {
	struct status_writer *writer;
	struct status_slot *slot; // NULL: canceled
};

struct last_patch { // of a slot that is gone
	struct last_patch *prev, *next;
	struct status_slot slot;
};

struct status_writer {
	struct k8s_client *client;
	struct last_patch *last;
	struct status_slot *queue;
	int in_flight;
	bool sending;         // in send_some()
	int64_t next_mono_ms; // when the next patch may be sent at an even pace; the burst is that much ahead of it
	struct event timer;
	size_t n_deferred;
	struct status_writer_stats stats;
};

static void send_some(struct status_writer *w);

static void free_last(struct last_patch *last)
{
	DL_DELETE(last->slot.writer->last, last);
	status_slot_cancel(&last->slot);
	free(last);
}

static void on_pace(evutil_socket_t fd, short what, void *arg)
{
	send_some(arg);
}

struct status_writer *status_writer_new(struct k8s_client *client)
{
	struct status_writer *w = must_alloc(calloc(1, sizeof *w));
	w->client = client;
	evtimer_assign(&w->timer, client->options.loop, on_pace, w);
	return w;
}

void status_writer_free(struct status_writer *w)
{
	if (!w)
		return;
	while (w->last)
		free_last(w->last);
	assert(!w->queue && w->in_flight == 0);
	event_del(&w->timer);
	free(w);
}

static void leave_queue(struct status_slot *slot)
{
	if (slot->path) {
		DL_DELETE(slot->writer->queue, slot);
		slot->writer->stats.waiting--;
	}
	free(slot->path);
	free(slot->body);
	slot->path = slot->body = NULL;
}

static void on_sent(void *arg, const struct http_response *response, const struct err *error)
{
	struct status_send *call = arg;
	struct status_writer *w = call->writer;
	struct status_slot *slot = call->slot;
	free(call);
	w->in_flight--;
	w->stats.sent += response != NULL;
	w->stats.failed += response == NULL;
	if (slot) {
		slot->call = NULL;
		slot->fn(slot->arg, response ? NULL : error);
	}
	if (response || error->kind != ERR_CANCELED)
		send_some(w);
}

static void send_one(struct status_writer *w, struct status_slot *slot)
{
	struct err e;
	struct status_send *call = must_alloc(malloc(sizeof *call));
	*call = (struct status_send){w, slot};
	const struct k8s_request_options o = {.method = "PATCH",
	                                      .path = slot->path,
	                                      .content_type = "application/merge-patch+json",
	                                      .body = slot->body,
	                                      .body_len = strlen(slot->body),
	                                      .is_background = true,
	                                      .done = on_sent,
	                                      .arg = call};
	int rc = k8s_request_with(w->client, &o, NULL, &e);
	leave_queue(slot);
	if (rc == 0) {
		slot->call = call;
		w->in_flight++;
		return;
	}
	free(call);
	w->stats.failed++;
	slot->fn(slot->arg, &e);
}

// Returns the time until the next patch may be sent, in ms; <= 0: now.
static int64_t left_ms(const struct status_writer *w)
{
	int64_t now_ms = clock_mono_ms(w->client->options.clock);
	return w->next_mono_ms - now_ms - (int64_t)(STATUS_WRITES_BURST - 1) * STATUS_WRITE_GAP_MS;
}

static void count_one(struct status_writer *w)
{
	int64_t now_ms = clock_mono_ms(w->client->options.clock);
	w->next_mono_ms = (w->next_mono_ms > now_ms ? w->next_mono_ms : now_ms) + STATUS_WRITE_GAP_MS;
}

static void send_some(struct status_writer *w)
{
	if (w->sending)
		return; // a callback queued more; the loop below continues
	w->sending = true;
	while (w->in_flight < STATUS_WRITES_MAX) {
		struct status_slot *slot;
		DL_SEARCH_SCALAR(w->queue, slot, call, NULL); // one at a time per object: they must not overtake
		if (!slot)
			break;
		int64_t wait_ms = left_ms(w);
		if (wait_ms > 0) {
			timer_start(&w->timer, wait_ms); // without memory for it, the next answer or patch goes on
			break;
		}
		count_one(w);
		send_one(w, slot);
	}
	w->sending = false;
}

static void set_deferred(struct status_writer *w, struct status_slot *slot, bool is_deferred)
{
	w->n_deferred += is_deferred;
	w->n_deferred -= slot->is_deferred;
	slot->is_deferred = is_deferred;
}

enum status_room status_writer_room(const struct status_writer *w, const struct status_slot *slot)
{
	if (!w->queue && !slot->call && w->in_flight < STATUS_WRITES_MAX && left_ms(w) <= 0)
		return STATUS_ROOM_AT_ONCE;
	return slot->path || w->stats.waiting < STATUS_QUEUE_MAX ? STATUS_ROOM_QUEUE : STATUS_ROOM_NONE;
}

void status_writer_defer(struct status_writer *w, struct status_slot *slot)
{
	slot->writer = w;
	set_deferred(w, slot, true);
}

void status_writer_put(struct status_writer *w, struct status_slot *slot, const char *path, const char *body,
                       status_written_fn *fn, void *arg)
{
	bool is_queued = slot->path != NULL;
	slot->writer = w;
	slot->fn = fn;
	slot->arg = arg;
	set_deferred(w, slot, false);
	free(slot->path);
	free(slot->body);
	slot->path = must_alloc(strdup(path));
	slot->body = must_alloc(strdup(body));
	if (!is_queued) {
		DL_APPEND(w->queue, slot);
		w->stats.waiting++;
	}
	send_some(w);
}

static void on_last(void *arg, const struct err *error)
{
	struct last_patch *last = arg;
	(void)error;          // the object is gone, or keeps an entry for a target that it does not have
	if (!last->slot.path) // else this was the patch before
		free_last(last);
}

void status_writer_put_last(struct status_writer *w, struct status_slot *slot, const char *path, const char *body)
{
	struct last_patch *last = must_alloc(calloc(1, sizeof *last));
	last->slot.call = slot->call;
	slot->call = NULL;
	if (last->slot.call)
		last->slot.call->slot = &last->slot;
	status_slot_cancel(slot);
	DL_APPEND(w->last, last);
	status_writer_put(w, &last->slot, path, body, on_last, last);
}

void status_slot_cancel(struct status_slot *slot)
{
	if (!slot->writer)
		return;
	set_deferred(slot->writer, slot, false);
	leave_queue(slot);
	if (slot->call)
		slot->call->slot = NULL;
	*slot = (struct status_slot){0};
}

void status_writer_get_stats(const struct status_writer *w, struct status_writer_stats *ret_stats)
{
	*ret_stats = w->stats;
	ret_stats->waiting += w->n_deferred;
	ret_stats->in_flight = (uint64_t)w->in_flight;
}
