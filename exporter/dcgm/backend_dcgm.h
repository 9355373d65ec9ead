// SPDX-License-Identifier: Apache-2.0
// NVIDIA GPUs through a running nv-hostengine (DCGM).
#ifndef GPUSCALE_EXPORTER_DCGM_BACKEND_DCGM_H
#define GPUSCALE_EXPORTER_DCGM_BACKEND_DCGM_H

#include "exporter/backend.h"

// Uses xids, log, interval_ms, dcgm_library and dcgm_address of `config`. Fails only when memory is exhausted; the
// library is loaded by open().
struct backend *backend_dcgm_new(const struct backend_config *config, struct err *e);

#endif
