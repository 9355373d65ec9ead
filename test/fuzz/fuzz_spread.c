// SPDX-License-Identifier: Apache-2.0
// Lines of `gpuscale spread`: any bytes get one line of JSON as an answer (test/laws/prop_spread.c has the laws of the
// allocator).
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "policies/test/filters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out;
	struct err e;
	buf_init(&out, 1 << 20);
	for (unsigned long long n = 1; size > 0; n++) {
		const uint8_t *nl = memchr(data, '\n', size);
		size_t len = nl ? (size_t)(nl - data) : size;
		buf_reset(&out);
		int rc = spread_line_answer((const char *)data, len, n, &out, &e);
		assert(!out.failed && out.len > 0 &&
		       memchr(buf_str(&out), '\n', out.len) == buf_str(&out) + out.len - 1);
		cJSON *tree = json_read(buf_str(&out), out.len, &e);
		assert(tree && !json_get(tree, "error") == (rc == 0) && !json_get(tree, "variants") == (rc != 0));
		cJSON_Delete(tree);
		len += nl ? 1 : 0;
		data += len, size -= len;
	}
	buf_done(&out);
	return 0;
}
