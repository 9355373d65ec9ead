// SPDX-License-Identifier: Apache-2.0
// The kubelet's reply: whatever the bytes are, the map keeps its ceilings and its order.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/text.h"
#include "exporter/device.h"
#include "exporter/kubelet/pod_resources.h"

static bool is_utf8(const char *s)
{
	for (size_t n; *s; s += n)
		if ((n = utf8_char_len(s, strlen(s))) == 0)
			return false;
	return true;
}

static void find(const struct pod_map *m, const struct device *devices, size_t n_devices, size_t at)
{
	struct pod_share s[POD_SHARERS_MAX];
	size_t n = pod_map_find(m, devices, n_devices, at, s);
	assert(n <= pod_map_entries(m));
	for (size_t i = 0; i < n && i < POD_SHARERS_MAX; i++) {
		assert(strlen(s[i].pod) <= POD_NAME_BYTES_MAX && strlen(s[i].namespace_) <= POD_NAME_BYTES_MAX);
		assert(s[i].container && s[i].replica >= -1);
		assert(is_utf8(s[i].pod) && is_utf8(s[i].namespace_) && is_utf8(s[i].container));
		int order = i ? strcmp(s[i - 1].namespace_, s[i].namespace_) : -1;
		assert(order < 0 || (order == 0 && strcmp(s[i - 1].pod, s[i].pod) < 0));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct device node[] = {
	        {.uuid = "GPU-a", .pci_bus_id = "00000000:C1:00.0", .node = "nvidia0"},
	        {.uuid = "GPU-a", .node = "nvidia0", .mig_id = "1", .mig_uuid = "MIG-b", .mig_profile = "1g.10gb+me"},
	        {.uuid = "GPU-a", .node = "nvidia0", .mig_id = "2", .mig_uuid = "MIG-c", .mig_profile = "2g.20gb"},
	        {.pci_bus_id = "0000:03:00.0", .node = "card0"},
	};
	static const struct pod_map_options options = {.extra = {{"x"}, 1}, .admin_namespaces = {{"admin"}, 1}};
	struct err e = {.kind = ERR_NONE};
	struct pod_map *m = pod_map_parse(data, size, &options, &e);
	assert(m || (e.kind != ERR_NONE && e.msg[0]));
	for (size_t at = 0; m && at < sizeof node / sizeof node[0]; at++)
		find(m, node, sizeof node / sizeof node[0], at);
	pod_map_free(m);
	return 0;
}
