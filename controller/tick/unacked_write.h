// SPDX-License-Identifier: Apache-2.0
// A scale that may have taken effect without being recorded: an earlier process exited between the PATCH and its
// status, or the answer was lost. If the target has changed since, the change counts as a scale by this controller, at
// the moment it is found. That is too cautious when another client scaled meanwhile, but a forgotten scale would be
// repeated.
#ifndef GPUSCALE_CONTROLLER_TICK_UNACKED_WRITE_H
#define GPUSCALE_CONTROLLER_TICK_UNACKED_WRITE_H

#include <stdbool.h>
#include <stdint.h>

struct err;

#define UNACKED_WRITE_MS 60000 // latest effect of a write without an answer: the API server's request limit

struct unacked_write {
	int32_t before;   // replicas before the write; -1: no write is open
	int32_t to;       // replicas written; -1: unknown, any difference counts
	int64_t until_ms; // monotonic clock: when the write can no longer take effect
};

// Returns whether a write that ended with this error may have taken effect all the same.
bool unacked_write_is_possible(const struct err *error);
void unacked_write_clear(struct unacked_write *u);
// Records what the status of an earlier process implies. before: the replicas it requested; -1: not in the status.
void unacked_write_of_past(struct unacked_write *u, int32_t before);
// Records that a write from -> to ended with this error. Clears the record when the error proves that the write was not
// done. now_mono_ms, here and below: the monotonic clock.
void unacked_write_failed(struct unacked_write *u, const struct err *error, int32_t from, int32_t to,
                          int64_t now_mono_ms);
// Returns whether a write is open. Then read the target from the API server itself, not from a watch.
bool unacked_write_is_open(const struct unacked_write *u);
// Compares with the target's present replicas. Returns true when the scale took effect, from *ret_from to `replicas`.
// Clears the record once the outcome is known.
bool unacked_write_found(struct unacked_write *u, int32_t replicas, int64_t now_mono_ms, int32_t *ret_from);

#endif
