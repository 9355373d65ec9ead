// SPDX-License-Identifier: Apache-2.0
// Finds the GPUs and MIG instances that NVML lists, in the order of the exposition: each GPU, then its instances.
#ifndef GPUSCALE_EXPORTER_NVML_NVML_FIND_H
#define GPUSCALE_EXPORTER_NVML_NVML_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "exporter/device.h"
#include "exporter/nvml/nvml_api.h"

struct err;
struct log;

struct nvml_handle {
	nvml_device gpu;    // the GPU, also for an instance; NULL: the library counts it, but returned no handle
	nvml_device device; // the GPU or the instance
	int instance;       // id of the MIG GPU instance, or NVML_WHOLE_GPU
};

struct nvml_found {
	size_t n;
	struct device devices[DEVICES_MAX];
	struct nvml_handle handles[DEVICES_MAX];
};

// Lists the devices. A GPU without a handle is listed with its number only, unless the library does not permit its use.
// Instances above DEVICES_MAX are omitted. All of these are logged to `log`, which may be NULL. A GPU instance with
// several compute instances is one device, named after the first. Returns -1 and fills `e` if there is no GPU at all,
// or the library fails; e->code is then its result.
int nvml_find(const struct nvml_api *api, struct log *log, struct nvml_found *ret_found, struct err *e);
// Inserts device `k` of `from` and its instances into `f`, which must not contain them, ordered by number. They replace
// a GPU without a handle of this number. Devices above DEVICES_MAX are omitted.
void nvml_found_insert(struct nvml_found *f, const struct nvml_found *from, size_t k);
// True if `f` contains the GPU with this UUID, regardless of instances.
bool nvml_found_has(const struct nvml_found *f, const char *uuid);
// True if both lists contain the same devices with the same handles.
bool nvml_found_equal(const struct nvml_found *a, const struct nvml_found *b);
// Fills `e` with the library's text for `r`, prefixed by `what`, and returns -1.
int nvml_fail(const struct nvml_api *api, struct err *e, const char *what, nvml_return r);

#endif
