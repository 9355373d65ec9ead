// SPDX-License-Identifier: Apache-2.0
// A scale that may have been done though nobody was told: the process before this one died between the PATCH and its
// status, or the answer was lost. If the target is not what it was before, then it counts as our own scale, of the
// moment it is found: too much caution where somebody else scaled meanwhile, but forgetting it would do it twice.
#ifndef GPUSCALE_CONTROLLER_UNSURE_WRITE_H
#define GPUSCALE_CONTROLLER_UNSURE_WRITE_H

#include <stdbool.h>
#include <stdint.h>

struct err;

#define UNSURE_WRITE_MS 60000 // a write that got no answer may come as late as this: the API server's own limit

struct unsure_write {
	int32_t before;   // what the target was asked for; -1: there is nothing to find out
	int32_t to;       // what we asked for; -1: nobody knows, any difference counts
	int64_t until_ms; // wall clock: when it cannot come any more
};

void unsure_write_clear(struct unsure_write *u);
// A process before this one left its status; before: what it says the target was asked for, -1 when it does not.
void unsure_write_of_past(struct unsure_write *u, int32_t before);
// A write from -> to ended with this error. Cleared when it cannot have been done.
void unsure_write_failed(struct unsure_write *u, const struct err *error, int32_t from, int32_t to, int64_t now_ms);
// Is there something to find out? Then the target must be read from the API server itself, not from a watch.
bool unsure_write_is_open(const struct unsure_write *u);
// The target as it is now: true when the scale was done, from *ret_from to `replicas`. Cleared once it is known.
bool unsure_write_found(struct unsure_write *u, int32_t replicas, int64_t now_ms, int32_t *ret_from);

#endif
