// SPDX-License-Identifier: Apache-2.0
// Saves the state of a policy from a file to the state directory and restores it: finds the right file and converts its
// times to the current clock.
#ifndef GPUSCALE_CONTROLLER_STATUS_SAVED_STATE_H
#define GPUSCALE_CONTROLLER_STATUS_SAVED_STATE_H

#include <stdint.h>

#include "controller/status/state_dir.h"

struct clock;
struct err;
struct binding;
struct status_record;

// Restores what the previous process saved into a fresh state and an empty record. Returns 1 on success, 0 when nothing
// was saved, or -1 and *e when the file cannot be used. After -1 nothing is restored, and the last scale counts as of
// now_ms, unless the file belongs to another policy or target (ERR_CONFLICT).
int saved_state_read(struct state_dir *dir, const struct clock *clock, const struct binding *binding, void *state,
                     struct status_record *record, int64_t now_ms, struct err *e);
// Queues a write of `status`, {"status":{..}}. Returns 0, or -1 and *e; after -1, fn is not called.
int saved_state_put(struct state_dir *dir, const struct clock *clock, struct state_slot *slot,
                    const struct binding *binding, const char *status, state_written_fn *fn, void *arg, struct err *e);
void saved_state_forget(struct state_dir *dir, const struct binding *binding);

#endif
