// SPDX-License-Identifier: Apache-2.0
// Lists and watch events on any bytes: what is cut out does not depend on how the bytes were split, and of a list that
// is valid JSON exactly the items come out.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json_read.h"
#include "k8s/watch_scan.h"

#define OBJECT_BYTES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct log {
	struct buf text;
	size_t items, too_large, metadata, ends;
};

static void on_part(void *arg, enum watch_part part, const char *type, const char *json, size_t len)
{
	struct log *l = arg;
	l->items += part == WATCH_PART_ITEM;
	l->metadata += part == WATCH_PART_METADATA;
	l->too_large += part == WATCH_PART_TOO_LARGE;
	l->ends += part == WATCH_PART_END;
	assert((json != NULL) == (part != WATCH_PART_TOO_LARGE && part != WATCH_PART_END));
	if (json)
		assert(len >= 2 && len <= OBJECT_BYTES_MAX && json[0] == '{' && json[len - 1] == '}');
	if (part == WATCH_PART_TOO_LARGE)
		assert(len > OBJECT_BYTES_MAX);
	buf_printf(&l->text, "%d %s %zu ", (int)part, part == WATCH_PART_END ? "" : type, len);
	if (json)
		buf_put(&l->text, json, len);
	buf_putc(&l->text, '\n');
}

static int scan(enum watch_scan_mode mode, const char *text, size_t len, size_t step, struct log *l)
{
	struct watch_scan s;
	struct err e = {0};
	*l = (struct log){0};
	buf_init(&l->text, 1 << 24);
	watch_scan_init(&s, mode, OBJECT_BYTES_MAX, on_part, l);
	int rc = 0;
	for (size_t at = 0; at < len && rc == 0; at += step) {
		size_t n = len - at < step ? len - at : step;
		char *piece = malloc(n); // of its own, so that reading past it is seen
		memcpy(piece, text + at, n);
		rc = watch_scan_feed(&s, piece, n, &e);
		free(piece);
	}
	assert((rc < 0) == (e.kind != ERR_NONE));
	rc = rc == 0 && !watch_scan_is_between(&s) ? 1 : rc;
	watch_scan_done(&s);
	return rc;
}

static void compare_with_tree(const char *text, size_t len, const struct log *l, int rc)
{
	cJSON *root = json_read(text, len, NULL);
	const cJSON *items = json_get(root, "items"), *item;
	size_t n = 0;
	cJSON_ArrayForEach(item, items) n += cJSON_IsObject(item) ? 1 : 0;
	bool is_plain = cJSON_IsObject(root) && cJSON_GetArraySize(root) == 1 && cJSON_IsArray(items) &&
	                n == (size_t)cJSON_GetArraySize(items) && !memchr(text, '\\', len);
	if (is_plain && strcmp(root->child->string, "items") == 0)
		assert(rc == 0 && l->ends == 1 && l->items + l->too_large == n && l->metadata == 0);
	cJSON_Delete(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const size_t steps[] = {1, 7, 64};
	const char *text = (const char *)data;
	for (int mode = 0; mode < 2; mode++) {
		struct log whole, split;
		int rc = scan((enum watch_scan_mode)mode, text, size, size ? size : 1, &whole);
		for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
			int split_rc = scan((enum watch_scan_mode)mode, text, size, steps[i], &split);
			assert(split_rc == rc);
			assert(split.text.len == whole.text.len &&
			       (whole.text.len == 0 || memcmp(split.text.data, whole.text.data, whole.text.len) == 0));
			buf_done(&split.text);
		}
		if (mode == WATCH_SCAN_LIST)
			compare_with_tree(text, size, &whole, rc);
		buf_done(&whole.text);
	}
	return 0;
}
