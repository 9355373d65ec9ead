// SPDX-License-Identifier: Apache-2.0
// Chooses a backend by the GPUs of the node.
#ifndef GPUSCALE_EXPORTER_CMD_BACKEND_AUTO_H
#define GPUSCALE_EXPORTER_CMD_BACKEND_AUTO_H

#include <stddef.h>

#include "exporter/backend.h"

#define BACKEND_CANDIDATES_MAX 16

// Returns a backend that uses the first of candidates[0..n) that opens, tried in their order whenever none is open.
// Takes ownership of the candidates on success. If a PCI device under `sysfs_root` is a display controller of NVIDIA's,
// only the first candidate is tried, which must be the NVIDIA backend: a driver that loads late is waited for instead
// of being replaced by a graphics chip on the board. While the first candidate is used and none of its GPUs has
// profiling fields, those of `profiling` are added for the GPUs of the same UUID, tried again every minute; it is
// owned, too. `log` may be NULL. Returns NULL and fills `e` when memory is exhausted.
struct backend *backend_auto_new(struct backend *const *candidates, size_t n, struct backend *profiling,
                                 const char *sysfs_root, struct log *log, struct err *e);

#endif
