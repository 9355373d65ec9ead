// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs through NVML, the library of the driver.
#ifndef GPUSCALE_EXPORTER_NVML_BACKEND_NVML_H
#define GPUSCALE_EXPORTER_NVML_BACKEND_NVML_H

#include "exporter/backend.h"

// Uses xids, log, nvml_library and proc_root of `config`. Fails only when memory is exhausted; the library is loaded by
// open().
struct backend *backend_nvml_new(const struct backend_config *config, struct err *e);

#endif
