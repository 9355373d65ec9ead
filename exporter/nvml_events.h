// SPDX-License-Identifier: Apache-2.0
// XID events of NVML, counted by a thread of their own, so that none is lost between two samples.
#ifndef GPUSCALE_EXPORTER_NVML_EVENTS_H
#define GPUSCALE_EXPORTER_NVML_EVENTS_H

#include <stddef.h>

#include "exporter/nvml_api.h"

struct device;
struct err;
struct nvml_events;
struct xid_store;

#define NVML_EVENTS_WAIT_MS 500 // longest wait in the driver, and so of nvml_events_free

// Registers every device that knows XID events and starts the thread. The arrays must stay until free. NULL and *e
// when the library or every device lacks events.
struct nvml_events *nvml_events_new(const struct nvml_api *api, const nvml_device *handles,
                                    const struct device *devices, size_t n, struct xid_store *xids, struct err *e);
void nvml_events_free(struct nvml_events *ev);

#endif
