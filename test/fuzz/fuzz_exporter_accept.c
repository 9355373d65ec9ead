// SPDX-License-Identifier: Apache-2.0
// Accept and Accept-Encoding as clients send them; and as text, which the conversion must survive.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "exporter/page/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf header, out;
	buf_init(&header, 1024 * 1024);
	buf_init(&out, 4 * 1024 * 1024);
	buf_put(&header, data, size);
	const char *text = buf_str(&header);
	assert(page_format_wanted(text) < PAGE_FORMAT__COUNT);
	(void)page_gzip_wanted(text);
	openmetrics_convert(&out, text, header.len);
	assert(!out.failed);
	assert(out.len == 0 || out.data[out.len - 1] == '\n');
	buf_done(&header);
	buf_done(&out);
	return 0;
}
