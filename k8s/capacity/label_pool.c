// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/label_pool.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/hash_table.h"

struct pooled_label {
	UT_hash_handle hh;
	struct hashed_label hashed;
	size_t refs;
	char text[]; // the key and the value, each with its NUL
};

uint32_t label_hash(const char *text)
{
	return (uint32_t)hash_mix(hash_text(HASH_START, text));
}

const struct label *label_pool_take(struct label_pool *p, const char *key, const char *value)
{
	char text[LABEL_POOL_TEXT_BYTES];
	size_t key_size = strlen(key) + 1, size = key_size + strlen(value) + 1;
	if (size > sizeof text)
		return NULL;
	memcpy(text, key, key_size);
	memcpy(text + key_size, value, size - key_size);
	struct pooled_label *l = hash_table_get(&p->labels, text, size, offsetof(struct pooled_label, text));
	if (l->refs++ == 0)
		l->hashed = (struct hashed_label){{l->text, l->text + key_size}, label_hash(l->text)};
	return &l->hashed.label;
}

void label_pool_release(struct label_pool *p, const struct label *label)
{
	struct pooled_label *l =
	        (struct pooled_label *)((uintptr_t)label - offsetof(struct pooled_label, hashed.label));
	if (--l->refs > 0)
		return;
	HASH_DELETE(hh, p->labels, l);
	free(l);
}

static int by_key_hash(const void *a, const void *b)
{
	uint32_t x = label_pool_key_hash(*(const struct label *const *)a),
	         y = label_pool_key_hash(*(const struct label *const *)b);
	return (x > y) - (x < y);
}

void label_pool_sort(const struct label **labels, size_t n)
{
	if (n > 1)
		qsort(labels, n, sizeof(const struct label *), by_key_hash);
}

// ---- known labels ----

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
