// SPDX-License-Identifier: Apache-2.0
// The common part of the backends that read kernel drivers (amdgpu, i915, xe) under /sys/class/drm. A vendor is a
// table of drivers and a function that reads one card.
#ifndef GPUSCALE_EXPORTER_SYSFS_BACKEND_SYSFS_H
#define GPUSCALE_EXPORTER_SYSFS_BACKEND_SYSFS_H

#include <stdint.h>

#include "exporter/backend.h"
#include "exporter/device.h"
#include "exporter/sysfs/sysfs.h"

#define SYSFS_DRIVERS_MAX 3
#define SYSFS_HWMON_MAX   256 // highest hwmonN probed

struct sysfs_card {
	char card[SYSFS_PATH_BYTES];   // .../class/drm/card0
	char device[SYSFS_PATH_BYTES]; // .../class/drm/card0/device
	char hwmon[SYSFS_PATH_BYTES];  // .../device/hwmon/hwmon3, "" if there is none
	char driver[32];               // "amdgpu"
	// Counters at the last reading, for rates; what_ms 0: not read yet.
	int64_t energy_uj, energy_ms;
	int64_t idle_ms, idle_at_ms;
};

struct sysfs_vendor {
	const char *name; // name of the backend
	const char *drivers[SYSFS_DRIVERS_MAX];
	const char *maker; // prefix of the model name if the card has none
	void (*read)(struct sysfs_card *c, int64_t mono_ms, struct device_sample *s);
};

// AMD GPUs (driver amdgpu) and Intel GPUs (drivers i915 and xe). Use log and sysfs_root of `config`. Fail only when
// memory is exhausted.
struct backend *backend_amdgpu_new(const struct backend_config *config, struct err *e);
struct backend *backend_intel_new(const struct backend_config *config, struct err *e);

extern const struct sysfs_vendor amdgpu_vendor; // amdgpu.c
extern const struct sysfs_vendor intel_vendor;  // intel.c

#endif
