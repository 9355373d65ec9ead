// SPDX-License-Identifier: Apache-2.0
// Lines of `gpuscale detect`, JSON and CSV: any bytes are refused with an error or give events, each of them one line
// of JSON.
#include <assert.h>
#include <cjson/cJSON.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "insight/detect.h"

#define OUTPUT_MAX ((size_t)16 * 1024 * 1024)

static void check_events(const struct buf *out)
{
	const char *p = buf_str(out), *end = p + out->len;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		struct err e;
		assert(nl);
		cJSON *event = json_read(p, (size_t)(nl - p), &e);
		assert(event && json_get_str(event, "event", NULL) && json_get_str(event, "rank", NULL));
		cJSON_Delete(event);
		p = nl + 1;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *p = (const char *)data, *end = p + size;
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	struct detect *l = detect_new(&out);
	assert(l);
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = nl ? (size_t)(nl - p) : (size_t)(end - p);
		struct err e;
		err_clear(&e);
		if (detect_read(l, p, len, &e) < 0)
			assert(e.kind != ERR_NONE && e.msg[0]);
		p = nl ? nl + 1 : end;
	}
	detect_finish(l);
	if (!out.failed)
		check_events(&out);
	detect_free(l);
	buf_done(&out);
	return 0;
}
