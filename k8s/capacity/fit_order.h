// SPDX-License-Identifier: Apache-2.0
// For how many replicas of a target room is reserved: those that the controller ordered itself and that do not exist as
// pods yet, for a limited time. What the target requests otherwise reserves nothing, so that no target takes the room
// of others by a number in its spec. Values only: no clock, no memory.
#ifndef GPUSCALE_K8S_CAPACITY_FIT_ORDER_H
#define GPUSCALE_K8S_CAPACITY_FIT_ORDER_H

#include <stdbool.h>
#include <stdint.h>

// How long room is reserved for replicas that do not become pods, as under a quota. When it is over, the target gets no
// more reservations for FIT_ORDER_REST_MS, unless all replicas of an order exist before.
#define FIT_ORDER_MS      60000
#define FIT_ORDER_REST_MS 600000

struct fit_order {
	struct fit_writes {
		int32_t from, to; // scale before and after the writes since all replicas existed; to -1: none
		bool is_unacked;  // the last write is in flight, or its response was lost
		int64_t at_ms;    // monotonic clock: of the first of these writes
		int64_t since_ms; // monotonic clock: since when replicas are missing; 0: none is
	} now, before;            // before the last write
};

void fit_order_init(struct fit_order *o);
// A write from `from` to `to` replicas is about to be sent. now_ms, here and below: monotonic clock.
void fit_order_write(struct fit_order *o, int32_t from, int32_t to, int64_t now_ms);
// No write is in flight any more: the spec shows what became of the last one.
void fit_order_end(struct fit_order *o);
// The last write was never sent: nothing could come of it. Earlier writes are counted as before.
void fit_order_cancel(struct fit_order *o);
// Returns for how many replicas room is reserved now. spec and status: the replicas that the target requests, and those
// that exist as pods; status -1: unknown.
int64_t fit_order_count(struct fit_order *o, int32_t spec, int32_t status, int64_t now_ms);

#endif
