// SPDX-License-Identifier: Apache-2.0
// The replies behind a scale: Scale, APIResourceList and PodList on any bytes. What is accepted is in range and safe
// to put into a URL.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "k8s/client/discovery.h"
#include "k8s/client/scale.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct err e = {0};
	struct scale scale;
	if (scale_decode(text, size, &scale, &e) == 0)
		assert(scale.spec_replicas >= 0 && scale.status_replicas >= 0 && scale.resource_version[0]);
	else
		assert(e.kind != ERR_NONE);

	struct k8s_resource_list list;
	if (discovery_decode(text, size, &list, &e) == 0) {
		for (size_t i = 0; i < list.n; i++)
			assert(list.items[i].kind[0] && list.items[i].plural[0] &&
			       !strpbrk(list.items[i].plural, "/?#% \r\n"));
		free(list.items);
	} else {
		assert(!list.items && list.n == 0);
	}

	struct pod_counts counts = {0};
	static char next[PODS_CONTINUE_BYTES_MAX];
	struct pod_list pods;
	pod_list_init(&pods);
	pods.reads_removal = true;
	if (pods_decode_page(text, size, &counts, &pods, next, &e) == 0) {
		assert(pods.n == (size_t)counts.total);
		for (size_t i = 0; i < pods.n; i++)
			assert(pods.items[i].removal->marked_ms >= 0 && pods.items[i].removal->resource_version);
		assert(counts.total >= 0 && counts.total <= PODS_MAX && counts.ready <= counts.total);
		assert(counts.pending <= counts.total && counts.failed <= counts.total &&
		       counts.terminating <= counts.total);
	}
	pod_list_done(&pods);
	return 0;
}
