// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/accelerators.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "base/json/json_read.h"

bool resource_is_accelerator(const char *name)
{
	// A name that ends with '*' stands for every name that begins so.
	static const char *const known[] = {
	        "nvidia.com/gpu",      "nvidia.com/gpu.*",   "nvidia.com/mig-*",       "amd.com/gpu",
	        "gpu.intel.com/*",     "habana.ai/gaudi",    "aws.amazon.com/neuron*", "google.com/tpu",
	        "huawei.com/Ascend*",  "cambricon.com/mlu*", "furiosa.ai/*",           "qualcomm.com/qaic*",
	        "rebellions.ai/ATOM*", "metax-tech.com/gpu", "mthreads.com/*",         "tenstorrent.com/*",
	        "aliyun.com/gpu-*",
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		size_t len = strlen(known[i]);
		if (known[i][len - 1] == '*' ? strncmp(name, known[i], len - 1) == 0 : strcmp(name, known[i]) == 0)
			return true;
	}
	return false;
}

bool accelerators_in(const struct cJSON *resources, bool or_none_left)
{
	for (const cJSON *c = cJSON_IsObject(resources) ? resources->child : NULL; c; c = c->next)
		if (cJSON_IsString(c) && (or_none_left || strcmp(c->valuestring, "0") != 0) &&
		    resource_is_accelerator(c->string))
			return true;
	return false;
}

bool accelerators_of_pod(const struct cJSON *spec)
{
	static const char *const lists[] = {"containers", "initContainers"};
	const cJSON *claims = json_get(spec, "resourceClaims");
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		const cJSON *list = json_get(spec, lists[i]);
		for (const cJSON *c = cJSON_IsArray(list) ? list->child : NULL; c; c = c->next) {
			const cJSON *resources = json_get(c, "resources");
			if (accelerators_in(json_get(resources, "limits"), false) ||
			    accelerators_in(json_get(resources, "requests"), false))
				return true;
		}
	}
	return cJSON_IsArray(claims) && claims->child;
}
