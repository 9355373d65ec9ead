// SPDX-License-Identifier: Apache-2.0
// What the vendors that the kernel itself tells about (amdgpu, i915, xe) have in common: cards under /sys/class/drm.
// A vendor is a table of drivers and a function that reads one card.
#ifndef GPUSCALE_EXPORTER_BACKEND_SYSFS_H
#define GPUSCALE_EXPORTER_BACKEND_SYSFS_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/sysfs.h"

#define SYSFS_DRIVERS_MAX 3
#define SYSFS_HWMON_MAX   256 // hwmonN that are looked at

struct sysfs_card {
	char card[SYSFS_PATH_BYTES];   // .../class/drm/card0
	char device[SYSFS_PATH_BYTES]; // .../class/drm/card0/device
	char hwmon[SYSFS_PATH_BYTES];  // .../device/hwmon/hwmon3, "" if there is none
	char driver[32];               // "amdgpu"
	// Where counters stood at the last reading, for rates; what_ms 0: nowhere yet.
	int64_t energy_uj, energy_ms;
	int64_t idle_ms, idle_at_ms;
};

struct sysfs_vendor {
	const char *name; // of the backend
	const char *drivers[SYSFS_DRIVERS_MAX];
	const char *maker; // begins the model's name where the card has none
	void (*read)(struct sysfs_card *c, int64_t mono_ms, struct device_sample *s);
};

extern const struct sysfs_vendor amdgpu_vendor; // amdgpu.c
extern const struct sysfs_vendor intel_vendor;  // intel.c

#endif
