// SPDX-License-Identifier: Apache-2.0
// Counts XID events of NVML in a separate thread, so that none is lost between two samples.
#ifndef GPUSCALE_EXPORTER_NVML_NVML_EVENTS_H
#define GPUSCALE_EXPORTER_NVML_NVML_EVENTS_H

#include <stdbool.h>

#include "exporter/nvml/nvml_api.h"

struct err;
struct nvml_events;
struct nvml_found;
struct xid_store;

#define NVML_EVENTS_WAIT_MS 500 // longest wait in the driver, which bounds nvml_events_free()

// Registers every GPU of `found` that supports XID events, adds its counters to `xids` and starts the thread. Returns
// NULL and fills `e` if the library has no events or no GPU supports them.
struct nvml_events *nvml_events_new(const struct nvml_api *api, const struct nvml_found *found, struct xid_store *xids,
                                    struct err *e);
// True if `ev` covers exactly the GPUs of `found`. MIG instances are ignored.
bool nvml_events_match(const struct nvml_events *ev, const struct nvml_found *found);
// True if XID events of the GPU `uuid` are reported. `ev` may be NULL.
bool nvml_events_cover(const struct nvml_events *ev, const char *uuid);
void nvml_events_free(struct nvml_events *ev);

#endif
