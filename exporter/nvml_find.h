// SPDX-License-Identifier: Apache-2.0
// Which GPUs and MIG instances NVML knows, in the order of the exposition: each GPU, then its instances.
#ifndef GPUSCALE_EXPORTER_NVML_FIND_H
#define GPUSCALE_EXPORTER_NVML_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "exporter/device.h"
#include "exporter/nvml_api.h"

struct err;
struct log;

#define NVML_WHOLE_GPU (-1)

struct nvml_handle {
	nvml_device gpu;    // the GPU, also of an instance
	nvml_device device; // the GPU or the instance
	int instance;       // id of the MIG GPU instance, or NVML_WHOLE_GPU
};

struct nvml_found {
	size_t n;
	size_t unreachable; // GPUs that were left out because they cannot be addressed
	struct device devices[DEVICES_MAX];
	struct nvml_handle handles[DEVICES_MAX];
};

// Looks again. GPUs that cannot be addressed are left out, and so are instances past DEVICES_MAX (log says so; may be
// NULL). A GPU instance with several compute instances is one device, named by its first one. -1 and *e when there is
// no GPU at all; e->code is then the library's result.
int nvml_find(const struct nvml_api *api, struct log *log, struct nvml_found *ret_found, struct err *e);
// Puts device k of `from` and its instances to where their number belongs in `f`, which must not hold them; what passes
// DEVICES_MAX is left out.
void nvml_found_insert(struct nvml_found *f, const struct nvml_found *from, size_t k);
// The same devices, with the same handles?
bool nvml_found_equal(const struct nvml_found *a, const struct nvml_found *b);
// Fills *e for a result of the library and returns -1.
int nvml_fail(const struct nvml_api *api, struct err *e, const char *what, nvml_return r);

#endif
