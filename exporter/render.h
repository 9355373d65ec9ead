// SPDX-License-Identifier: Apache-2.0
// dcgm-exporter's text exposition of one round of samples: label order gpu, UUID, pci_bus_id, device, modelName,
// [GPU_I_PROFILE, GPU_I_ID], Hostname, [DCGM_FI_DRIVER_VERSION], [container], [namespace], [pod], [vgpu]; doubles with
// six decimals; a family no device has a value for prints nothing (dcgm-exporter: internal/pkg/rendermetrics).
// A GPU that several pods share has one series for each pod, all with the GPU's whole value; gpuscale_gpu_pod_share
// tells each pod's part.
#ifndef GPUSCALE_EXPORTER_RENDER_H
#define GPUSCALE_EXPORTER_RENDER_H

#include <stddef.h>

#include "exporter/device.h"

struct buf;
struct counters;
struct pods;
struct device_history;
struct xid_store;

// Devices, or pods on them: what is beyond is left out and counted (pods_release). With every family and labels of
// usual length this many stay under the ceiling of bytes.
#define RENDER_BLOCKS_MAX 384
#define RENDER_BYTES_MAX  (16 * 1024 * 1024)

struct render_options {
	const char *hostname_label; // "Hostname" or "hostname"
	const char *hostname;       // "": the label is left out
	const char *driver_version; // label DCGM_FI_DRIVER_VERSION; "": left out
	// Which families, in which order, and whether the driver's version is a label. NULL: every one, with it.
	const struct counters *counters;
	struct pods *pods;                    // who holds the GPUs; NULL: only what the samples say
	const struct device_history *history; // windows of the samples; NULL: none
};

// Appends the families of samples[0..n), then the XID counters of these devices. labels is scratch, reused.
// out->failed tells when the ceiling was passed.
void render_samples(struct buf *out, struct buf *labels, const struct render_options *options,
                    const struct device *devices, const struct device_sample *samples, size_t n,
                    struct xid_store *xids);

#endif
