// SPDX-License-Identifier: Apache-2.0
// Reads small files in /sys: one number or one line each. A missing or invalid file has no value.
#ifndef GPUSCALE_EXPORTER_SYSFS_SYSFS_H
#define GPUSCALE_EXPORTER_SYSFS_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/device.h"

#define SYSFS_PATH_BYTES 384
#define SYSFS_TEXT_BYTES 1024 // longer files are truncated

// Reads the file dir/name without trailing spaces. False if it cannot be read or is empty.
bool sysfs_read_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES]);
// Reads the decimal number in the file dir/name. False if there is none.
bool sysfs_read_i64(const char *dir, const char *name, int64_t *ret_value);
// Copies the value of the line "key=value" of a text such as uevent to `out`. False if the line is missing or does
// not fit.
bool sysfs_find_key(const char *text, const char *key, char *out, size_t size);
// Finds the first directory dir/prefixN with N from 0 to max - 1. False if there is none.
bool sysfs_find_dir(const char *dir, const char *prefix, int max, char out[SYSFS_PATH_BYTES]);

// ---- readings that are common to the kernel drivers ----

// A file with one number: value = number x scale. A negative number has no value.
struct sysfs_row {
	enum field field;
	const char *file;
	double scale;
};

// Reads each row whose field has no value yet: several rows of one field are tried in order.
void sysfs_read_rows(const char *dir, const struct sysfs_row *rows, size_t n, struct device_sample *s);
// Reads the current and the highest PCIe generation and number of lanes from current_link_speed and similar files.
// Kernel: drivers/pci/pci-sysfs.c.
void sysfs_read_link(const char *device_dir, struct device_sample *s);
// Reads the temperatures in hwmon by their labels: the first of `gpu_labels` that exists is GPU_TEMP, the first of
// `memory_labels` MEMORY_TEMP; both lists end with NULL. Without any labels, temp1 is GPU_TEMP.
void sysfs_read_temperatures(const char *hwmon, const char *const *gpu_labels, const char *const *memory_labels,
                             struct device_sample *s);
// Sets FB_USED, FB_FREE and FB_USED_PERCENT if `total` and one of `used` and `free` (bytes) are known; -1 means
// unknown.
void sysfs_set_memory(struct device_sample *s, int64_t total, int64_t used, int64_t free);

#endif
