// SPDX-License-Identifier: Apache-2.0
// XID errors counted per GPU and code since the exporter started. Kept outside the sampling path: an event thread adds,
// the renderer reads, and the counts stay when a device is lost or the driver is reloaded. Safe from several threads.
#ifndef GPUSCALE_EXPORTER_XID_H
#define GPUSCALE_EXPORTER_XID_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct xid_store;

#define XID_GPUS_MAX   64
#define XID_CODES_MAX  48 // distinct codes per GPU; more are counted under XID_CODE_OTHER
#define XID_CODE_OTHER (-1)

struct xid_count {
	int32_t code; // or XID_CODE_OTHER
	uint64_t count;
	int64_t last_wall_ms; // 0: never seen, a code that starts at 0
};

// A store whose GPUs begin with a count of 0 for the codes that mean a broken GPU, so that the first one is a rise.
// NULL and *e when memory ends.
struct xid_store *xid_store_new(struct err *e);
void xid_store_free(struct xid_store *s);
// Makes the GPU known. Doing so again, or past XID_GPUS_MAX, changes nothing.
void xid_store_add_gpu(struct xid_store *s, const char *uuid);
// Counts one event of GPU `uuid` (made known if it was not).
void xid_store_count(struct xid_store *s, const char *uuid, int32_t code, int64_t wall_ms);
// Code of the last event of this GPU, 0 if there was none.
int32_t xid_store_last(struct xid_store *s, const char *uuid);
// Copies at most max counts of this GPU, in the order first seen; returns how many.
size_t xid_store_read(struct xid_store *s, const char *uuid, struct xid_count *ret_counts, size_t max);
// Events that could not be kept under their own code or GPU.
uint64_t xid_store_overflows(struct xid_store *s);

#endif
