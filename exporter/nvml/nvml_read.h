// SPDX-License-Identifier: Apache-2.0
// Reads one device through NVML. Fields are independent: a field that the library lacks or the device does not
// support stays absent, never 0.
#ifndef GPUSCALE_EXPORTER_NVML_NVML_READ_H
#define GPUSCALE_EXPORTER_NVML_NVML_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/device.h"
#include "exporter/nvml/nvml_api.h"

#define NVML_READ_COSTLY_MS 5000  // fields that cost the driver 0.2 to 4 ms each are read this often
#define NVML_READ_SLOW_MS   10000 // so often those that rarely change

// Fields that are not read in every round, with their last values.
struct nvml_kept {
	bool is_read;
	int64_t read_ms;
	struct device_sample values;
};

// State of a device between two readings. Zero it before use.
struct nvml_reader {
	struct nvml_kept costly, slow; // read every NVML_READ_COSTLY_MS, NVML_READ_SLOW_MS
	bool has_nvlink;
	int64_t nvlink_ms;
	uint64_t nvlink_kib;
};

// True if `r` means that the device is lost until it is reset or the library is reopened.
bool nvml_result_is_lost(nvml_return r);
// True if `r` means that nothing can be read until the driver is back.
bool nvml_result_is_fatal(nvml_return r);

// Fills `s` with every field of the device except XID_ERRORS and the profiling fields. Returns NVML_SUCCESS, or a
// result for which nvml_result_is_lost() or nvml_result_is_fatal() is true. A device without a single field is
// NVML_GPU_IS_LOST.
nvml_return nvml_read_device(const struct nvml_api *api, nvml_device d, struct nvml_reader *reader, int64_t mono_ms,
                             struct device_sample *s);
// Reads only the device memory, the one set of fields that a MIG instance has here.
nvml_return nvml_read_memory(const struct nvml_api *api, nvml_device d, struct device_sample *s);

#endif
