// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/gpu_labels.h"

#include <string.h>

// The first that is set counts. Labels of device plugins name the card; those of providers name what was ordered.
// clang-format off
static const char *const model_keys[] = {
	"nvidia.com/gpu.product",                // GPU feature discovery
	"amd.com/gpu.product-name",              // AMD node labeller
	"beta.amd.com/gpu.product-name",
	"gpu.intel.com/product",                 // Intel GPU device plugin
	"cloud.google.com/gke-accelerator",
	"cloud.google.com/gke-tpu-accelerator",
	"karpenter.k8s.aws/instance-gpu-name",
	"karpenter.azure.com/sku-gpu-name",
	"k8s.amazonaws.com/accelerator",
	"gpu.nvidia.com/model",                  // CoreWeave
	"gpu.nvidia.com/class",
};
static const char *const pool_keys[] = {
	"karpenter.sh/nodepool",
	"cloud.google.com/gke-nodepool",
	"eks.amazonaws.com/nodegroup",
	"alpha.eksctl.io/nodegroup-name",
	"kubernetes.azure.com/agentpool",
	"agentpool",                             // Azure, older clusters
	"oci.oraclecloud.com/node-pool",
	"ibm-cloud.kubernetes.io/worker-pool-name",
	"doks.digitalocean.com/node-pool",
	"k8s.scaleway.com/pool-name",
	"k8s.ovh.net/nodepool",
	"lke.linode.com/pool-id",
	"node-pool.nks.ncloud.com/name",
	"node.cluster.x-k8s.io/machine-pool",
	"node.kubernetes.io/instance-type",      // last: better than no name
};
// clang-format on

static const struct label *find(const struct label *const *labels, size_t n, const char *key)
{
	for (size_t i = 0; i < n; i++) {
		if (strcmp(labels[i]->key, key) == 0 && labels[i]->value[0])
			return labels[i];
	}
	return NULL;
}

static const struct label *find_first(const struct label *const *labels, size_t n, const char *const *keys,
                                      size_t n_keys)
{
	const struct label *found = NULL;
	for (size_t i = 0; i < n_keys && !found; i++)
		found = find(labels, n, keys[i]);
	return found;
}

const struct label *gpu_label_model(const struct label *const *labels, size_t n)
{
	return find_first(labels, n, model_keys, sizeof model_keys / sizeof model_keys[0]);
}

const struct label *gpu_label_pool(const struct label *const *labels, size_t n, const char *extra)
{
	const struct label *found = extra ? find(labels, n, extra) : NULL;
	return found ? found : find_first(labels, n, pool_keys, sizeof pool_keys / sizeof pool_keys[0]);
}
