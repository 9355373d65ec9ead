// SPDX-License-Identifier: Apache-2.0
// XID errors per GPU and code since the exporter started. An event thread adds to the store and the renderer reads
// it; the counts survive the loss of a device and a reload of the driver. Safe for use by several threads.
#ifndef GPUSCALE_EXPORTER_XID_H
#define GPUSCALE_EXPORTER_XID_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct xid_store;

#define XID_GPUS_MAX   64
#define XID_CODES_MAX  48 // distinct codes per GPU; further codes are counted as XID_CODE_OTHER
#define XID_CODE_OTHER (-1)

struct xid_count {
	int32_t code; // or XID_CODE_OTHER
	uint64_t count;
	int64_t last_wall_ms; // 0: never occurred
};

// Creates a store. GPUs start with a count of 0 for the codes that mean a broken GPU, so that the first occurrence is
// an increase. Returns NULL and fills `e` if memory is exhausted.
struct xid_store *xid_store_new(struct err *e);
void xid_store_free(struct xid_store *s);
// Adds the GPU. A known GPU, and one above XID_GPUS_MAX, changes nothing.
void xid_store_add_gpu(struct xid_store *s, const char *uuid);
// Counts one event of the GPU `uuid`, which is added if it is unknown.
void xid_store_count(struct xid_store *s, const char *uuid, int32_t code, int64_t wall_ms);
// The code of the last event of this GPU; 0 if there was none.
int32_t xid_store_last(struct xid_store *s, const char *uuid);
// Copies the counts of this GPU, in the order of their first occurrence, and returns their number.
size_t xid_store_read(struct xid_store *s, const char *uuid, struct xid_count ret_counts[XID_CODES_MAX + 1]);
// The number of events that could not be counted under their own code or GPU.
uint64_t xid_store_overflows(struct xid_store *s);

#endif
