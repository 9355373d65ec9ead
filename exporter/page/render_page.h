// SPDX-License-Identifier: Apache-2.0
// Renders one round of samples as dcgm-exporter does: label order gpu, UUID, pci_bus_id, device, modelName,
// [GPU_I_PROFILE, GPU_I_ID], Hostname, [DCGM_FI_DRIVER_VERSION], [label_*], [container], [hpc_job], [namespace], [pod],
// [pod_uid], [vgpu];
// doubles with six decimals; no output for a family without values (dcgm-exporter: internal/pkg/rendermetrics). A GPU
// that several pods share has one series per pod, each with the value of the whole GPU; gpuscale_gpu_pod_share is the
// share of each pod.
#ifndef GPUSCALE_EXPORTER_PAGE_RENDER_PAGE_H
#define GPUSCALE_EXPORTER_PAGE_RENDER_PAGE_H

#include "base/buf.h"
#include "exporter/csv_counters.h"
#include "exporter/sampler.h"

struct health_policy;
struct hpc_jobs;
struct kubelet_pods;
struct pod_metadata;
struct pod_share;
struct xid_store;

// Most series of one family: devices, or pods on devices. Further ones are omitted and counted
// (kubelet_pods_release). With every family and labels of usual length, this many fit the limit of bytes.
#define RENDER_PAGE_BLOCKS_MAX 384
#define RENDER_PAGE_BYTES_MAX  (16 * 1024 * 1024)

struct render_page_options {
	const char *hostname_label; // "Hostname" or "hostname"
	const char *hostname;       // "" leaves the label out
	enum naming names;
	// Which families are served, in which order, and whether the driver's version is a label. NULL serves every
	// family of the table, with that label.
	const struct csv_counters *counters; // not owned
	// The pod whose sidecar this process is: it uses every GPU. NULL: no such pod. Not owned.
	const struct pod_share *sidecar_of;
	struct hpc_jobs *jobs;     // which jobs use the GPUs; not owned; NULL: jobs are not labelled
	struct kubelet_pods *pods; // which pods use the GPUs; not owned; NULL: only what the samples contain
	// UIDs and labels of these pods; not owned; NULL: no such labels.
	struct pod_metadata *metadata;
	bool pod_uid;                       // whether the UID is a label
	const struct pod_labels *labels;    // the selected labels of `metadata`; not owned
	struct xid_store *xids;             // not owned
	const struct health_policy *health; // rules of gpuscale_gpu_health; not owned; NULL omits the family
};

struct render_page {
	struct render_page_options options;
	struct csv_counters builtin; // without options.counters
	const char *driver_version;  // driver of the round that is being rendered
	struct buf labels;           // scratch, kept between rounds
};

// Prepares `r` with a copy of `options`. Release it with render_page_done().
void render_page_init(struct render_page *r, const struct render_page_options *options);
void render_page_done(struct render_page *r);

// Appends the families of `round` to `out`, then the XID counters of its devices. `render_page` is a struct
// render_page; the signature is that of sampler_render_fn. out->failed is set when the text exceeds the limit of
// `out`.
void render_page_round(void *render_page, const struct sampler_round *round, struct buf *out);

#endif
