// SPDX-License-Identifier: Apache-2.0
// The planner's memory of one node as JSON, for the annotation gpuscale.dev/remediation: evidence for people, and
// the state from which another process continues. Version 1.
#ifndef GPUSCALE_REMEDY_REMEDY_RECORD_H
#define GPUSCALE_REMEDY_REMEDY_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "remedy/plan/remedy_state.h"

struct buf;
struct err;

#define REMEDY_RECORD_BYTES_MAX (64 * 1024)
#define REMEDY_FAULT_NAME_BYTES 32

// Writes the name of a fault, "XID79" or "GPULost", to `out`.
void remedy_fault_name(int32_t id, char out[REMEDY_FAULT_NAME_BYTES]);

// Appends the record of `n` as one JSON object without a line end.
void remedy_record_write(const struct remedy_node *n, struct buf *out);
// Reads the record text[0..len) at `now_ms` into *ret_node, of which it fills GPUs, faults, pods (names NULL) and
// attempts; the rest stays zero. A person may have edited it: times in the future become now, numbers beyond their
// range are errors. -1 and *e (ERR_PROTOCOL, ERR_LIMIT): not a record; the message names the field.
int remedy_record_read(const char *text, size_t len, int64_t now_ms, struct remedy_node *ret_node, struct err *e);

#endif
