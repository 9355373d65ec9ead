// SPDX-License-Identifier: Apache-2.0
// A page of metrics read back into what it says about each GPU, for the commands: this exporter's, or dcgm-exporter's.
#ifndef GPUSCALE_EXPORTER_CMD_VIEW_H
#define GPUSCALE_EXPORTER_CMD_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/xid.h"

struct err;

#define VIEW_LINE_BYTES_MAX (16 * 1024)
#define VIEW_LABELS_MAX     32
#define VIEW_PODS_BYTES     512
#define VIEW_AGE_MAX_S      1e9

struct view_xid {
	int32_t code; // or XID_CODE_OTHER
	uint64_t count;
	double last_s; // Unix time; 0: not told
};

// One GPU, or one MIG instance. The texts are those of the labels, "" when absent.
struct view_gpu {
	struct device device;       // index -1 when the label is no number
	char pods[VIEW_PODS_BYTES]; // "namespace/pod", several separated by a comma, the last "..." when there are more
	bool lost;                  // it does not answer
	bool has[FIELD__COUNT];
	double value[FIELD__COUNT];
	struct view_xid xids[XID_CODES_MAX + 1];
	size_t n_xids;
};

struct view {
	struct view_gpu gpus[DEVICES_MAX]; // by index, a GPU before its instances
	size_t n;
	bool has_up, up; // gpuscale_exporter_up
	bool has_age;
	double age_s;          // of the sample
	int64_t lost, missing; // GPUs that do not answer, or are not there any more
	bool dropped;          // the sample is so old that the exporter leaves it out
};

// Reads text[0..len) in text format 0.0.4. NULL and *e (ERR_INPUT with the line, ERR_LIMIT, ERR_INTERNAL) when it is no
// such page.
struct view *view_new(const char *text, size_t len, struct err *e);
void view_free(struct view *v);
// The value of a family by name. False when the GPU has none, or the family is unknown.
bool view_get(const struct view_gpu *g, const char *family, double *ret_value);

#endif
