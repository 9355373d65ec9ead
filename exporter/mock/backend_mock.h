// SPDX-License-Identifier: Apache-2.0
// GPUs simulated from a script (docs/exporter.md, "Mock scripts").
#ifndef GPUSCALE_EXPORTER_MOCK_BACKEND_MOCK_H
#define GPUSCALE_EXPORTER_MOCK_BACKEND_MOCK_H

#include "exporter/backend.h"

// Uses xids, log, mock_script and ret_errors of `config`. Reads the script and fails if it has errors: ret_errors then
// contains one line for each.
struct backend *backend_mock_new(const struct backend_config *config, struct err *e);

#endif
