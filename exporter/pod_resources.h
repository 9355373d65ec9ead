// SPDX-License-Identifier: Apache-2.0
// Which pods hold which GPUs, as the kubelet's pod-resources API v1 tells: ListPodResourcesResponse of protobuf bytes
// to a map, and the question "who holds this device". No I/O.
// Device ids understood: "GPU-uuid", "MIG-uuid", "MIG-GPU-uuid/gi/ci" (drivers before 470), "nvidiaN", "nvidiaN/giM"
// (GKE), a PCI address (AMD), "cardN" and "cardN-M" (Intel); "::R" (time slicing, MPS) and "/vgpuR" (GKE) name a
// replica of a shared GPU. Kubernetes: staging/src/k8s.io/kubelet/pkg/apis/podresources/v1/api.proto.
#ifndef GPUSCALE_EXPORTER_POD_RESOURCES_H
#define GPUSCALE_EXPORTER_POD_RESOURCES_H

#include <stddef.h>
#include <stdint.h>

struct device;
struct err;
struct pod_map;

#define POD_MAP_ENTRIES_MAX    8192 // devices held by containers, all pods of the node
#define POD_MAP_BYTES_MAX      (4 * 1024 * 1024)
#define POD_NAME_BYTES_MAX     253
#define POD_DEVICE_BYTES_MAX   128
#define POD_SHARERS_MAX        64 // pods shown on one device
#define POD_RESOURCE_NAMES_MAX 32

// Resource names whose devices count, beside the built-in nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-*,
// amd.com/gpu, gpu.intel.com/*.
struct pod_resource_names {
	const char *names[POD_RESOURCE_NAMES_MAX];
	size_t n;
};

// A pod on a device. Lives as long as the map.
struct pod_share {
	const char *namespace_, *pod;
	const char *container; // "" when several containers of the pod hold the device
	int32_t replica;       // the lowest that the pod holds; -1: the device is not shared
};

// Reads message[0..len). NULL and *e: ERR_PROTOCOL (not such a message), ERR_LIMIT (a ceiling), ERR_INTERNAL.
// extra may be NULL.
struct pod_map *pod_map_parse(const void *message, size_t len, const struct pod_resource_names *extra, struct err *e);
void pod_map_free(struct pod_map *m);
// Devices held, as the kubelet counts them.
size_t pod_map_entries(const struct pod_map *m);
// The pods that hold `device`, each once, sorted by namespace and pod; writes at most POD_SHARERS_MAX and returns how
// many there are. A MIG instance is found by its own names alone: who holds a part does not hold the GPU.
size_t pod_map_find(const struct pod_map *m, const struct device *device, struct pod_share ret_shares[POD_SHARERS_MAX]);

#endif
