// SPDX-License-Identifier: Apache-2.0
// XID events of NVML, counted by a thread of their own, so that none is lost between two samples.
#ifndef GPUSCALE_EXPORTER_NVML_EVENTS_H
#define GPUSCALE_EXPORTER_NVML_EVENTS_H

#include <stdbool.h>

#include "exporter/nvml_api.h"

struct err;
struct nvml_events;
struct nvml_found;
struct xid_store;

#define NVML_EVENTS_WAIT_MS 500 // longest wait in the driver, and so of nvml_events_free

// Registers every GPU of found that knows XID events, with its counters in xids, and starts the thread. NULL and *e
// when the library or every GPU lacks events.
struct nvml_events *nvml_events_new(const struct nvml_api *api, const struct nvml_found *found, struct xid_store *xids,
                                    struct err *e);
// Are these the GPUs of found? MIG instances do not matter.
bool nvml_events_match(const struct nvml_events *ev, const struct nvml_found *found);
// Whether XID events of this GPU are told. ev may be NULL: no events at all.
bool nvml_events_cover(const struct nvml_events *ev, const char *uuid);
void nvml_events_free(struct nvml_events *ev);

#endif
