// SPDX-License-Identifier: Apache-2.0
// Reads the DCGM_FI_PROF_* fields without DCGM, on Hopper and newer GPUs: NVML's GPM reports each as a mean between
// two samples.
#ifndef GPUSCALE_EXPORTER_NVML_NVML_GPM_H
#define GPUSCALE_EXPORTER_NVML_NVML_GPM_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/nvml/nvml_api.h"
#include "exporter/nvml/nvml_find.h"

#define NVML_GPM_APART_MIN_MS 100    // two samples closer than this are not compared
#define NVML_GPM_APART_MAX_MS 600000 // after a longer pause the previous sample is discarded

// State of a device or instance between two rounds. Zero it before use.
struct nvml_gpm {
	bool asked, supported;
	bool seeded; // `previous` has a sample taken at previous_ms
	int64_t previous_ms;
	nvml_gpm_sample previous, current; // NULL until the device reports support
	struct device_sample values;       // the last values, for rounds that come too early
};

// Adds the profiling fields to `s`, from the second call on. `instance` is NVML_WHOLE_GPU or the id of a MIG GPU
// instance of `gpu`. Returns NVML_SUCCESS or the reason why there are none; NVML_NOT_SUPPORTED and
// NVML_FUNCTION_NOT_FOUND are permanent for this GPU or library.
nvml_return nvml_gpm_read(const struct nvml_api *api, nvml_device gpu, int instance, struct nvml_gpm *g,
                          int64_t mono_ms, struct device_sample *s);
// Frees the samples of `g` in the library and zeroes `g`.
void nvml_gpm_done(const struct nvml_api *api, struct nvml_gpm *g);

#endif
