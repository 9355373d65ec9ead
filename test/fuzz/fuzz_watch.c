// SPDX-License-Identifier: Apache-2.0
// Lists and watch events on any bytes: what is cut out does not depend on how the bytes were split; of what is valid
// JSON exactly the items come out, or the object, and what has none is refused.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/watch_scan.h"

#define OBJECT_BYTES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct log {
	struct buf text;
	size_t items, objects, too_large, metadata, ends;
};

static void on_part(void *arg, enum watch_part part, const char *type, const char *json, size_t len)
{
	struct log *l = arg;
	l->items += part == WATCH_PART_ITEM;
	l->objects += part == WATCH_PART_EVENT;
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
	rc = rc == 0 && !json_scan_is_between(&s.json) ? 1 : rc;
	watch_scan_done(&s);
	return rc;
}

// How many parts are to come out of the member that is wanted; -1: it is none.
static int count_parts(enum watch_scan_mode mode, const cJSON *wanted)
{
	const cJSON *item;
	int n = 0;
	if (mode == WATCH_SCAN_EVENTS)
		return cJSON_IsObject(wanted) ? 1 : -1;
	cJSON_ArrayForEach(item, wanted)
	{
		if (!cJSON_IsObject(item))
			return -1;
		n++;
	}
	return cJSON_IsArray(wanted) || cJSON_IsNull(wanted) ? n : -1;
}

static void compare_with_tree(enum watch_scan_mode mode, const char *text, size_t len, const struct log *l, int rc)
{
	cJSON *root = json_read(text, len, NULL);
	const cJSON *member;
	int wanted = 0, parts = -1, metadata = 0;
	if (root && !memchr(text, '\\', len)) { // names are compared as they are written
		cJSON_ArrayForEach(member, root)
		{
			const char *name = cJSON_IsObject(root) ? member->string : "";
			if (strcmp(name, mode == WATCH_SCAN_LIST ? "items" : "object") == 0) {
				wanted++;
				parts = count_parts(mode, member);
			}
			if (mode == WATCH_SCAN_LIST && strcmp(name, "metadata") == 0)
				metadata += cJSON_IsObject(member) != 0;
		}
		assert((rc == 0) == (wanted == 1 && parts >= 0));
		if (rc == 0)
			assert(l->ends == 1 &&
			       l->items + l->objects + l->metadata + l->too_large == (size_t)(parts + metadata));
	}
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
		compare_with_tree((enum watch_scan_mode)mode, text, size, &whole, rc);
		buf_done(&whole.text);
	}
	return 0;
}
