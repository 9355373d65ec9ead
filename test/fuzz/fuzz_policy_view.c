// SPDX-License-Identifier: Apache-2.0
// Arbitrary objects as `get`, `top` and `describe` meet them: whoever may write an object or its status may write
// anything. Beyond "does not crash": every line of a table can be printed on a terminal, and there is one row per
// object.
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_read.h"
#include "cli/policy_render.h"
#include "cli/policy_view.h"

#define OUTPUT_MAX ((size_t)8 * 1024 * 1024)
#define NOW_MS     1767603600000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static size_t check_printable(const struct buf *out)
{
	size_t lines = 0;
	require(!out->failed);
	for (size_t i = 0; i < out->len; i++) {
		unsigned char c = (unsigned char)out->data[i];
		lines += c == '\n';
		require(c == '\n' || (c >= 0x20 && c != 0x7f));
	}
	return lines;
}

static void render_all(const struct policy_views *v, const cJSON *events)
{
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	for (int format = 0; format < OUTPUT__COUNT; format++) {
		for (int all = 0; all < 2; all++) {
			buf_reset(&out);
			policy_render_list(&out, v, (enum output_format)format, false, all, NOW_MS);
			if (format == OUTPUT_TABLE || format == OUTPUT_WIDE)
				require(check_printable(&out) == (v->n ? v->n + 1 : 0));
			require(!out.failed);
		}
	}
	buf_reset(&out);
	policy_render_top(&out, v, true, true, NOW_MS);
	check_printable(&out);
	for (size_t i = 0; i < v->n; i++) {
		buf_reset(&out);
		policy_render_describe(&out, &v->items[i], events, NULL, NOW_MS);
		check_printable(&out);
	}
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e;
	if (size > 65536)
		return 0;
	cJSON *root = json_read((const char *)data, size, &e);
	if (!root)
		return 0;
	struct policy_views v;
	policy_views_init(&v);
	cJSON *item, *items = cJSON_GetObjectItemCaseSensitive(root, "items");
	int rc = 0;
	if (cJSON_IsArray(items))
		cJSON_ArrayForEach(item, items) rc = rc < 0 ? rc : policy_views_add(&v, item, &e);
	else
		rc = policy_views_add(&v, root, &e);
	require(rc == 0 || e.kind != ERR_NONE);
	policy_views_sort(&v);
	render_all(&v, cJSON_IsArray(items) ? root : NULL);
	policy_views_done(&v);
	cJSON_Delete(root);
	return 0;
}
