// SPDX-License-Identifier: Apache-2.0
// The format of a state file: a line with format version and checksum, then one JSON object shaped like a GPUAutoscaler
// whose `status` is written by controller/status/status_doc.h. Pure: text in, text out.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATE_FILE_H
#define GPUSCALE_CONTROLLER_STATUS_STATE_FILE_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct binding;
struct policy;

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

#endif
