// SPDX-License-Identifier: Apache-2.0
// json_read on any bytes; what it accepts must survive being written by json_write and read again.
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_read.h"
#include "base/json_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Recursion is bounded by JSON_DEPTH_MAX.
static void write_tree(struct json_writer *w, const cJSON *item)
{
	if (cJSON_IsObject(item) || cJSON_IsArray(item)) {
		if (cJSON_IsObject(item))
			json_write_object_begin(w);
		else
			json_write_array_begin(w);
		for (const cJSON *c = item->child; c; c = c->next) {
			if (cJSON_IsObject(item))
				json_write_key(w, c->string);
			write_tree(w, c);
		}
		if (cJSON_IsObject(item))
			json_write_object_end(w);
		else
			json_write_array_end(w);
	} else if (cJSON_IsString(item)) {
		json_write_str(w, item->valuestring);
	} else if (cJSON_IsNumber(item)) {
		json_write_f64(w, item->valuedouble);
	} else if (cJSON_IsBool(item)) {
		json_write_bool(w, cJSON_IsTrue(item));
	} else {
		assert(cJSON_IsNull(item));
		json_write_null(w);
	}
}

static void write_and_compare(const cJSON *tree, int indent, size_t size)
{
	struct buf first, second;
	struct json_writer w;
	struct err e;
	buf_init(&first, size * 64 * 8 + 64); // escapes, and an indent for each of up to 64 levels
	buf_init(&second, first.max);
	json_write_init(&w, &first, indent);
	write_tree(&w, tree);
	assert(!first.failed && w.depth == 0);
	cJSON *again = json_read(buf_str(&first), first.len, &e);
	assert(again);
	json_write_init(&w, &second, indent);
	write_tree(&w, again);
	assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
	cJSON_Delete(again);
	buf_done(&first);
	buf_done(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e;
	err_clear(&e);
	cJSON *tree = json_read((const char *)data, size, &e);
	if (!tree) {
		// ERR_INTERNAL would mean that cJSON refused what our own check had accepted.
		assert((e.kind == ERR_PROTOCOL || e.kind == ERR_LIMIT) && e.msg[0]);
	} else {
		int64_t v = 0;
		int rc = json_get_i64(tree, "a", -10, 10, &v, &e);
		assert(rc != 1 || (v >= -10 && v <= 10));
		assert(json_get_str(tree, "a", "fallback"));
		write_and_compare(tree, 0, size);
		write_and_compare(tree, 2, size);
		cJSON_Delete(tree);
	}
	// Any bytes, as a string and as a key, make valid JSON.
	struct buf b;
	buf_init(&b, size * 8 + 64);
	struct json_writer w;
	json_write_init(&w, &b, 0);
	json_write_array_begin(&w);
	json_write_strn(&w, (const char *)data, strnlen((const char *)data, size));
	json_write_array_end(&w);
	assert(!b.failed);
	tree = json_read(buf_str(&b), b.len, &e);
	assert(tree);
	cJSON_Delete(tree);
	buf_done(&b);
	return 0;
}
