// SPDX-License-Identifier: Apache-2.0
// Decodes a page of metrics of this exporter, or of dcgm-exporter, into the state of each GPU, for the commands.
#ifndef GPUSCALE_EXPORTER_CMD_PAGE_VIEW_H
#define GPUSCALE_EXPORTER_CMD_PAGE_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/xid.h"

struct err;

#define PAGE_VIEW_LINE_BYTES_MAX (16 * 1024)
#define PAGE_VIEW_LABELS_MAX     32
#define PAGE_VIEW_PODS_BYTES     512
#define PAGE_VIEW_AGE_MAX_S      1e9
#define PAGE_VIEW_PROCESSES_MAX  2048

// The kinds of faults that a page may not show, such as one of dcgm-exporter without their counters.
enum page_known { PAGE_KNOWN_XIDS, PAGE_KNOWN_ECC, PAGE_KNOWN_MEMORY, PAGE_KNOWN__COUNT };

struct page_view_xid {
	int32_t code; // or XID_CODE_OTHER
	uint64_t count;
	double last_s; // Unix time; 0: unknown
	bool undated;  // from dcgm-exporter, whose pages have no times
};

// Statistics of a family: gpuscale_gpu_NAME_window_min, _avg and _max.
enum page_window { PAGE_WINDOW_MIN, PAGE_WINDOW_AVG, PAGE_WINDOW_MAX, PAGE_WINDOW__COUNT };

// One GPU or MIG instance. Texts come from the labels; "" if absent.
struct page_view_gpu {
	struct device device;            // index -1 if the label is not a number
	char pods[PAGE_VIEW_PODS_BYTES]; // "namespace/pod", several separated by a comma, the last "..." when there are
	                                 // more
	bool lost;                       // it does not respond
	bool has[FIELD__COUNT];
	double value[FIELD__COUNT];
	bool has_window[FIELD__COUNT][PAGE_WINDOW__COUNT]; // statistics of the exporter's window
	double window[FIELD__COUNT][PAGE_WINDOW__COUNT];
	struct page_view_xid xids[XID_CODES_MAX + 1];
	size_t n_xids;
	bool knows[PAGE_KNOWN__COUNT]; // the page would show such a fault of this GPU
};

// GPU memory of a process.
struct page_view_process {
	char uuid[DEVICE_UUID_BYTES], mig_id[DEVICE_NODE_BYTES]; // IDs of its GPU or instance
	char pid[DEVICE_NODE_BYTES];
	char name[64]; // "" if unknown
	double memory_bytes;
};

struct page_view {
	struct page_view_gpu gpus[DEVICES_MAX]; // ordered by index, each GPU before its instances
	size_t n;
	bool is_own;                       // a page of this exporter
	bool has_count;                    // dcgm-exporter counts XIDs of every GPU, and lists only those that occurred
	size_t unknown[PAGE_KNOWN__COUNT]; // GPUs whose faults of a kind the page would not show
	struct page_view_process processes[PAGE_VIEW_PROCESSES_MAX]; // in the order of the page
	size_t n_processes;
	size_t processes_left_out; // above the limit, or without a valid amount of memory
	bool has_up, up;           // gpuscale_exporter_up
	bool has_age;
	double age_s;          // age of the sample
	int64_t lost, missing; // GPUs that do not respond; GPUs that are gone
	bool dropped;          // the sample is too old and was omitted by the exporter
};

// Decodes text[0..len) in text format 0.0.4. Returns NULL and fills `e` (ERR_INPUT with the line, ERR_LIMIT,
// ERR_INTERNAL) if the page is invalid.
struct page_view *page_view_new(const char *text, size_t len, struct err *e);
void page_view_free(struct page_view *v);
// Reads the value of the family called `family`. False if the GPU has none or the family is unknown.
bool page_view_get(const struct page_view_gpu *g, const char *family, double *ret_value);
// The number of GPUs. MIG instances are not counted, but a GPU of which the page lists only instances is.
size_t page_view_count(const struct page_view *v);
// Reads a statistic of the family in the exporter's window. False if the page has none.
bool page_view_get_window(const struct page_view_gpu *g, const char *family, enum page_window w, double *ret_value);

#endif
