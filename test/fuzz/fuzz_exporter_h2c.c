// SPDX-License-Identifier: Apache-2.0
// Bytes of an HTTP/2 peer: whatever they are, and however they are cut, the call ends the same way.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "exporter/kubelet/h2c.h"

static int play(const uint8_t *data, size_t size, size_t piece, struct err *e)
{
	struct h2c *c = malloc(sizeof *c);
	int rc = 0;
	if (!c || h2c_init(c, "/v1.PodResourcesLister/List", 65536, e) < 0)
		abort();
	for (size_t at = 0; rc == 0 && at < size; at += piece)
		rc = h2c_feed(c, data + at, size - at < piece ? size - at : piece, e);
	assert(c->message.len <= 65536);
	// A reply is one only when it is whole and the call went well: less would be "no pod holds a GPU".
	assert(rc <= 0 || (c->grpc_status == 0 && c->n_prefix == 5 && c->message.len == c->message_len));
	assert(rc >= 0 || e->msg[0]);
	assert(!c->out.failed);
	h2c_done(c);
	free(c);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err whole = {.kind = ERR_NONE}, cut = {.kind = ERR_NONE};
	int rc = play(data, size, size ? size : 1, &whole);
	int rc_cut = play(data, size, 3, &cut);
	// libnghttp2 permits 8 CONTINUATION frames, and counts one for each piece of a frame's head.
	if (strstr(cut.msg, "CONTINUATION"))
		return 0;
	assert(rc_cut == rc);
	assert(whole.kind == cut.kind && strcmp(whole.msg, cut.msg) == 0);
	assert((rc < 0) == (whole.kind != ERR_NONE));
	return 0;
}
