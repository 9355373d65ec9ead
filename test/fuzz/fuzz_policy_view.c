// SPDX-License-Identifier: Apache-2.0
// Arbitrary objects as `get`, `top` and `describe` meet them: a client that may write an object or its status may write
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
#include "base/json/json_read.h"
#include "base/json/json_span.h"
#include "cli/objects/cmd_describe.h"
#include "cli/objects/kube_pages.h"
#include "cli/objects/policy_fetch.h"
#include "cli/objects/policy_render.h"
#include "k8s/client/k8s_request.h"
#include "k8s/client/scale.h"

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
		require(c != 0xc2 || i + 1 == out->len || (unsigned char)out->data[i + 1] >= 0xa0); // C1
	}
	return lines;
}

static void render_all(const struct policy_views *v, const struct policy_events *events)
{
	struct buf out;
	buf_init(&out, OUTPUT_MAX);
	for (int format = 0; format < OUTPUT__COUNT; format++) {
		for (int all = 0; all < 2; all++) {
			buf_reset(&out);
			policy_render_list(&out, v, NULL, (enum output_format)format, false, all, NOW_MS);
			if (format == OUTPUT_TABLE || format == OUTPUT_WIDE)
				require(check_printable(&out) == (v->n ? v->n + 1 : 0));
			require(!out.failed);
			check_printable(&out);
		}
	}
	for (int format = 0; format < OUTPUT__COUNT; format++) {
		buf_reset(&out);
		policy_render_top(&out, v, NULL, (enum output_format)format, true, true, NOW_MS);
		check_printable(&out);
	}
	for (size_t i = 0; i < v->n; i++) {
		buf_reset(&out);
		policy_render_describe(&out, &v->items[i], events, "not read", NOW_MS);
		check_printable(&out);
	}
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e;
	if (size > 65536)
		return 0;
	cJSON *root = json_read((const char *)data, size, &e); // NULL: may still be a list with something odd in it
	struct policy_views v;
	policy_views_init(&v, OBJECT_POLICY);
	cJSON *items = cJSON_GetObjectItemCaseSensitive(root, "items");
	int rc = 0;
	err_clear(&e);
	if (!root || cJSON_IsArray(items))
		rc = kube_pages_each("policies", (const char *)data, size, policy_views_add_item, &v, &e);
	else
		rc = policy_views_add(&v, root, &e);
	require(rc == 0 || (e.kind != ERR_NONE && e.msg[0]));
	require(rc < 0 || !root || v.n + v.n_faults == (cJSON_IsArray(items) ? (size_t)cJSON_GetArraySize(items) : 1));
	for (size_t i = 0; i < v.n; i++)
		require(k8s_name_is_valid(v.items[i].name) && k8s_name_is_valid(v.items[i].namespace_name));
	policy_views_sort(&v);
	struct policy_events events;
	policy_events_init(&events);
	bool is_list = kube_pages_each("Events", (const char *)data, size, policy_events_add, &events, &e) == 0;
	require(events.n <= events.total && (is_list || events.total == 0));
	for (size_t i = 1; i < events.n; i++)
		require(events.items[i - 1].last_ms >= events.items[i].last_ms);
	render_all(&v, is_list ? &events : NULL);
	policy_views_done(&v);
	cJSON_Delete(root);
	return 0;
}
