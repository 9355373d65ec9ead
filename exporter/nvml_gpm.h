// SPDX-License-Identifier: Apache-2.0
// DCGM_FI_PROF_* without DCGM, on Hopper and newer: NVML's GPM gives each as the mean between two samples.
#ifndef GPUSCALE_EXPORTER_NVML_GPM_H
#define GPUSCALE_EXPORTER_NVML_GPM_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/nvml_api.h"
#include "exporter/nvml_find.h"

#define NVML_GPM_APART_MIN_MS 100    // two samples closer than this say nothing
#define NVML_GPM_APART_MAX_MS 600000 // after a longer pause the past is dropped and a new one begun

// What is kept of a device or instance. Zeroed: nothing was read yet.
struct nvml_gpm {
	bool asked, supported;
	bool seeded; // `previous` holds a sample, taken at previous_ms
	int64_t previous_ms;
	nvml_gpm_sample previous, current; // NULL until the device is known to support GPM
	struct device_sample values;       // the last ones, for rounds that come too early
};

// Adds the profiling fields to *s, from the second reading on. instance: NVML_WHOLE_GPU, or the id of a MIG GPU
// instance of `gpu`. Anything but NVML_SUCCESS: why there are none; NVML_NOT_SUPPORTED and NVML_FUNCTION_NOT_FOUND mean
// that this GPU or library never has them.
nvml_return nvml_gpm_read(const struct nvml_api *api, nvml_device gpu, int instance, struct nvml_gpm *g,
                          int64_t mono_ms, struct device_sample *s);
// Frees what the library holds for it; *g is zeroed.
void nvml_gpm_done(const struct nvml_api *api, struct nvml_gpm *g);

#endif
