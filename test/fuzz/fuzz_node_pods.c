// SPDX-License-Identifier: Apache-2.0
// The lists of pods that the remediation agent reads: any bytes are decoded or refused with an error, and every pod has
// a name from which its eviction is encoded.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "remedy/agent/node_view.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct err e;
	struct node_pod *pods = NULL;
	size_t n = 0;
	char *text = malloc(size ? size : 1); // exact size: the text has no terminator
	assert(text);
	memcpy(text, data, size);
	arena_init(&a, 1 << 20);
	err_clear(&e);
	if (node_pods_read(text, size, &a, &pods, &n, &e) < 0)
		assert(e.kind != ERR_NONE && e.msg[0]);
	assert(n <= NODE_PODS_MAX);
	for (size_t i = 0; i < n; i++) {
		struct buf path, body;
		buf_init(&path, 4096);
		buf_init(&body, 65536);
		assert(strchr(pods[i].name, '/') && pods[i].uid && pods[i].wait_ms >= 0);
		if (node_pods_eviction(pods[i].name, pods[i].uid, &path, &body) == 0)
			assert(path.len > 0 && body.len > 0);
		buf_done(&path);
		buf_done(&body);
	}
	arena_done(&a);
	free(text);
	return 0;
}
