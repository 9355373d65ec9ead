// SPDX-License-Identifier: Apache-2.0
// Stores the state of policies that have no object in the API server: one file per policy in a directory
// (controller/status/state_file.h). Each file is replaced atomically, so a process that is killed leaves either the old
// or the new version. A separate thread writes, because disks can be slow; writes that are queued while it is busy are
// synced together.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATE_DIR_H
#define GPUSCALE_CONTROLLER_STATUS_STATE_DIR_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct event_base;
struct state_dir;
struct state_write;

#define STATE_DIR_FILES_MAX 20000 // as many as policies; further files are not created
#define STATE_DIR_BATCH_MAX 64    // files written before the directory is synced and the callbacks run

// Called from the loop once per write, unless a newer write replaced it. error is NULL when the file is on disk.
typedef void state_written_fn(void *arg, const struct err *error);

// The place of one file. The caller zeroes it once; after that it belongs to the state_dir. It must not move, and must
// stay valid until state_slot_cancel().
struct state_slot {
	struct state_dir *dir;
	struct state_write *queued; // NULL: no write is queued
	state_written_fn *fn;
	void *arg;
};

// Creates the directory if it is missing (its parent must exist) and locks it. Returns NULL and *e: ERR_CONFLICT when
// another process uses the directory, ERR_IO when it is not writable. The caller closes it with state_dir_close.
struct state_dir *state_dir_open(const char *path, struct event_base *loop, struct err *e);
// Completes the queued writes, then stops the thread. No callback runs any more. NULL is fine.
void state_dir_close(struct state_dir *d);
// Returns the boot ID of the kernel; "" when it is unknown.
const char *state_dir_boot_id(const struct state_dir *d);

// Blocks until all queued writes are done, and runs their callbacks. Call before the process exits, after the loop.
void state_dir_drain(struct state_dir *d);

// Appends the content of the file to `out`, including queued writes. Returns 1, 0 when the file does not exist, or -1
// and *e.
int state_dir_read(struct state_dir *d, const char *name, struct buf *out, struct err *e);
// Queues new content for the file and replaces a write that the slot has queued. Copies its strings.
void state_dir_put(struct state_dir *d, struct state_slot *slot, const char *name, const char *text, size_t len,
                   state_written_fn *fn, void *arg);
// Queues the removal of the file, after the writes that are queued for it.
void state_dir_remove(struct state_dir *d, const char *name);
// Cancels the callback; the queued content is still written.
void state_slot_cancel(struct state_slot *slot);

#endif
