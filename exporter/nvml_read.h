// SPDX-License-Identifier: Apache-2.0
// The readings of one device through NVML. Each is taken alone: what the library lacks or the device does not support
// gives no sample, never a zero.
#ifndef GPUSCALE_EXPORTER_NVML_READ_H
#define GPUSCALE_EXPORTER_NVML_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/nvml_api.h"

#define NVML_READ_SLOW_MS 10000 // what hardly ever changes is read this often

// What is kept between two readings of a device. Zeroed: nothing was read yet.
struct nvml_reader {
	bool has_slow;
	int64_t slow_ms;
	struct device_sample slow; // the last values of what is read every NVML_READ_SLOW_MS
	bool has_nvlink;
	int64_t nvlink_ms;
	uint64_t nvlink_kib;
};

// True when this result says that the device is gone until it is reset or the library is opened again.
bool nvml_result_is_lost(nvml_return r);
// True when it says that nothing can be read any more: the driver went away.
bool nvml_result_is_fatal(nvml_return r);

// Fills s with everything the device gives but XID_ERRORS and the profiling fields. NVML_SUCCESS, or the result for
// which nvml_result_is_lost or _is_fatal holds; a device that gave nothing at all is NVML_GPU_IS_LOST.
nvml_return nvml_read_device(const struct nvml_api *api, nvml_device d, struct nvml_reader *reader, int64_t mono_ms,
                             struct device_sample *s);
// Device memory alone: all that a MIG instance has of its own here.
nvml_return nvml_read_memory(const struct nvml_api *api, nvml_device d, struct device_sample *s);

#endif
