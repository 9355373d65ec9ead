// SPDX-License-Identifier: Apache-2.0
// Readings that the drivers of the kernel have in common.
#ifndef GPUSCALE_EXPORTER_SYSFS_READ_H
#define GPUSCALE_EXPORTER_SYSFS_READ_H

#include <stddef.h>

#include "exporter/device.h"

// A file with one number: value = number x scale. Numbers below 0 are no reading.
struct sysfs_row {
	enum field field;
	const char *file;
	double scale;
};

// For each row whose field has no value yet: several rows of one field are tried in their order.
void sysfs_read_rows(const char *dir, const struct sysfs_row *rows, size_t n, struct device_sample *s);
// PCIe generation and lanes, now and at most, from current_link_speed and its like. Kernel: drivers/pci/pci-sysfs.c.
void sysfs_read_link(const char *device_dir, struct device_sample *s);
// Temperatures in hwmon by their labels: the first of gpu_labels that is there is GPU_TEMP, of memory_labels
// MEMORY_TEMP; lists end with NULL. Without labels at all, temp1 is the GPU's.
void sysfs_read_temperatures(const char *hwmon, const char *const *gpu_labels, const char *const *memory_labels,
                             struct device_sample *s);
// FB_USED, FB_FREE and FB_USED_PERCENT where total and one of used and free (bytes) are known; -1: unknown.
void sysfs_set_memory(struct device_sample *s, int64_t total, int64_t used, int64_t free);

#endif
