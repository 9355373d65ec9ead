// SPDX-License-Identifier: Apache-2.0
// Stores the state of policies that have no object in the API server: one file per policy in a directory.
// Each file is replaced atomically, so a process that is killed leaves either the old
// or the new version. A separate thread writes, because disks can be slow; writes that are queued while it is busy are
// synced together.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATE_DIR_H
#define GPUSCALE_CONTROLLER_STATUS_STATE_DIR_H

#include <stddef.h>
#include <stdint.h>

struct binding;
struct buf;
struct err;
struct event_base;
struct state_dir;
struct state_write;

// ---- the format of a file ----
// A line with format version and checksum, then one JSON object shaped like a GPUAutoscaler whose `status` is written
// by controller/status/status_doc.h. Pure: text in, text out.

#define STATE_FILE_VERSION    1
#define STATE_FILE_BYTES_MAX  (80 * 1024) // a status at its ceiling, and the surrounding fields
#define STATE_FILE_NAME_BYTES 256         // NAME_MAX of Linux, and the terminator
#define STATE_BOOT_ID_BYTES   64

// The clock that the times in the file use. With the boot ID, the reader can compute by how much the wall clock was set
// since.
struct state_clock {
	char boot_id[STATE_BOOT_ID_BYTES]; // of the kernel; "": unknown
	int64_t offset_ms;                 // wall clock - boot clock, when the file was written
};

// Writes "NAMESPACE_NAME.state" to `out`, or "NAMESPACE_NAME_KIND_TARGET.state" for one of several bindings. Returns 0,
// or -1 and *e (ERR_LIMIT) when that is too long for a file name.
int state_file_name(char out[STATE_FILE_NAME_BYTES], const struct binding *binding, struct err *e);

// Appends the content of the file to `out`. `status` is {"status":{..}} as status_doc_write() formats it.
void state_file_write(struct buf *out, const struct binding *binding, const struct state_clock *clock,
                      const char *status);

struct state_file {
	const char *json; // the object, a part of the input text
	size_t json_len;
	struct state_clock clock;
};
// Parses the content of a state file. Returns 0, or -1 and *e when the file must not be used: ERR_PROTOCOL for a
// truncated or damaged file, ERR_UNSUPPORTED for another version, ERR_CONFLICT for the state of another policy or
// target. The message states what was expected and what was found.
int state_file_read(const char *text, size_t len, const struct binding *binding, struct state_file *ret_file,
                    struct err *e);

// The envelope of a state file, for content of another kind. seal() appends the line with version and checksum, and the
// content. unseal() sets *ret_body to where the content starts; it returns 0, or -1 and *e as state_file_read().
void state_file_seal(struct buf *out, const char *body, size_t len);
int state_file_unseal(const char *text, size_t len, size_t *ret_body, struct err *e);

// ---- the directory ----

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
