// SPDX-License-Identifier: Apache-2.0
// Classifies API paths into a small set, for metrics.
#include "k8s/client/k8s_client.h"

#include <string.h>

#include "base/buf.h"

void k8s_path_class(const char *path, char out[K8S_RESOURCE_CLASS_BYTES])
{
	// Segments: [apis, GROUP | api], VERSION, [namespaces, NS], PLURAL, [NAME], [SUBRESOURCE].
	const char *segment[8];
	size_t len[8], n = 0;
	const char *end = path + strcspn(path, "?");
	for (const char *p = path; p < end && *p == '/' && n < 8; n++) {
		segment[n] = ++p;
		len[n] = strcspn(p, "/?");
		p += len[n];
	}
	size_t i = n > 0 && len[0] == 4 && memcmp(segment[0], "apis", 4) == 0 ? 3 : 2;
	bool is_api = i == 3 || (n > 0 && len[0] == 3 && memcmp(segment[0], "api", 3) == 0);
	const char *fixed = !is_api ? "other" : n <= i ? "discovery" : NULL;
	if (fixed) {
		memcpy(out, fixed, strlen(fixed) + 1);
		return;
	}
	if (n > i + 2 && len[i] == 10 && memcmp(segment[i], "namespaces", 10) == 0)
		i += 2;
	struct buf text;
	buf_init(&text, K8S_RESOURCE_CLASS_BYTES - 1);
	buf_put(&text, segment[i], len[i]);
	if (n > i + 2) {
		buf_putc(&text, '/');
		buf_put(&text, segment[i + 2], len[i + 2]);
	}
	memcpy(out, text.failed ? "other" : buf_str(&text), text.failed ? 6 : text.len + 1);
	buf_done(&text);
}
