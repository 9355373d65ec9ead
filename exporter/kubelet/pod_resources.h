// SPDX-License-Identifier: Apache-2.0
// Decodes ListPodResourcesResponse of the kubelet's pod-resources API v1 into a map from device to pods. No I/O.
// Device ids understood: "GPU-uuid", "MIG-uuid", "MIG-GPU-uuid/gi/ci" (drivers before 470), "nvidiaN", "nvidiaN/giM"
// (GKE), a PCI address (AMD), "cardN" and "cardN-M" (Intel). The suffixes "::R" (time slicing, MPS) and "/vgpuR"
// (GKE) select a replica of a shared GPU. Devices used through claims of dynamic resource allocation (DRA) have the
// UUID in a CDI name, or the name that the DRA driver publishes: "gpu-N" and "gpu-N-mig-PROFILE-.." (NVIDIA), "gpu-N-M"
// (AMD), "0000-03-00-0-0x56c0" (Intel). Kubernetes: staging/src/k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.
#ifndef GPUSCALE_EXPORTER_KUBELET_POD_RESOURCES_H
#define GPUSCALE_EXPORTER_KUBELET_POD_RESOURCES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/device.h"

struct err;
struct pod_map;

#define POD_MAP_ENTRIES_MAX    8192 // devices used by the containers of all pods of the node
#define POD_MAP_BYTES_MAX      (4 * 1024 * 1024)
#define POD_NAME_BYTES_MAX     253
#define POD_DEVICE_BYTES_MAX   128
#define POD_SHARERS_MAX        64 // pods reported for one device
#define POD_RESOURCE_NAMES_MAX 32

// Resource names, and names of DRA drivers, whose devices are GPUs, in addition to the built-in nvidia.com/gpu,
// nvidia.com/gpu.shared, nvidia.com/mig-*, amd.com/gpu and gpu.intel.com/*, and the drivers gpu.nvidia.com, gpu.amd.com
// and gpu.intel.com.
struct pod_resource_names {
	const char *names[POD_RESOURCE_NAMES_MAX];
	size_t n;
};

// The inputs of a pod map besides the reply.
struct pod_map_options {
	struct pod_resource_names extra;
	// Namespaces whose claims have administrative access, which the reply does not report: their devices belong to
	// others.
	struct pod_resource_names admin_namespaces;
};

// Decodes message[0..len). `options` may be NULL. Returns NULL and fills `e` on failure: ERR_PROTOCOL (malformed
// message), ERR_LIMIT (a limit is exceeded) or ERR_INTERNAL.
struct pod_map *pod_map_parse(const void *message, size_t len, const struct pod_map_options *options, struct err *e);
void pod_map_free(struct pod_map *m);
// Finds the pods of `m` that have finished, given the map before it (NULL: none). Before Kubernetes 1.34 the kubelet
// also lists these, and a device without a replica is given to one pod at a time: of several pods that use it through
// the same resource, only those that appeared with it last still do. pod_map_find() leaves the others out.
void pod_map_follow(struct pod_map *m, const struct pod_map *old);
// The number of devices that containers use, as the kubelet counts them.
size_t pod_map_entries(const struct pod_map *m);
// A pod that uses devices, valid as long as the map. `held` is a hash of its containers and their devices, in any
// order: both are fixed while a pod lives, so another hash means another pod of the same name.
struct pod_holder {
	const char *namespace_, *pod;
	uint64_t held;
};
// Writes the next pod, sorted by namespace and pod, to *ret_holder. Returns false when there is none. Start with *at
// = 0.
bool pod_map_next(const struct pod_map *m, size_t *at, struct pod_holder *ret_holder);
// Writes the pods that use devices[at], each once and sorted by namespace and pod, to `ret_shares`; at most
// POD_SHARERS_MAX. Returns their total number. `devices` are all devices of the node. A pod that uses a MIG instance
// does not use its GPU: an instance matches only its own ids.
size_t pod_map_find(const struct pod_map *m, const struct device *devices, size_t n_devices, size_t at,
                    struct pod_share ret_shares[POD_SHARERS_MAX]);

#endif
