// SPDX-License-Identifier: Apache-2.0
// json_read on any bytes; what it accepts must survive being written by json_write and read again.
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/json/json_scan.h"
#include "base/json/json_write.h"

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

// A summary of the tokens of a text, in order.
struct digest {
	uint64_t hash;
	size_t string_bytes_max;
};

static void add(struct digest *d, enum json_token_kind kind, const char *text, size_t len)
{
	if (len > d->string_bytes_max)
		len = d->string_bytes_max;
	d->hash = (d->hash ^ (uint64_t)kind) * 0x100000001b3 + len;
	for (size_t i = 0; i < len; i++)
		d->hash = (d->hash ^ (unsigned char)text[i]) * 0x100000001b3;
}

static int on_token(void *arg, const struct json_token *t, struct err *e)
{
	(void)e;
	struct digest *d = arg;
	assert(t->len == (t->bytes < d->string_bytes_max || t->kind == JSON_NUMBER ? t->bytes : d->string_bytes_max));
	if (t->kind == JSON_NUMBER)
		assert(t->len > 0 && t->len <= JSON_NUMBER_BYTES_MAX && t->text[t->len] == '\0');
	add(d, t->kind, t->text, t->kind == JSON_NUMBER ? 0 : t->len);
	return 0;
}

static void add_tree(struct digest *d, const cJSON *item)
{
	bool is_object = cJSON_IsObject(item);
	if (is_object || cJSON_IsArray(item)) {
		add(d, is_object ? JSON_OBJECT_BEGIN : JSON_ARRAY_BEGIN, "", 0);
		for (const cJSON *c = item->child; c; c = c->next) {
			if (is_object)
				add(d, JSON_KEY, c->string, strlen(c->string));
			add_tree(d, c);
		}
		add(d, is_object ? JSON_OBJECT_END : JSON_ARRAY_END, "", 0);
	} else if (cJSON_IsString(item)) {
		add(d, JSON_STRING, item->valuestring, strlen(item->valuestring));
	} else {
		add(d,
		    cJSON_IsNumber(item)  ? JSON_NUMBER
		    : cJSON_IsTrue(item)  ? JSON_TRUE
		    : cJSON_IsFalse(item) ? JSON_FALSE
		                          : JSON_NULL,
		    "", 0);
	}
}

// In pieces of any size, a text gives the tokens of cJSON's tree, or the same error as the whole text.
static void scan_in_pieces(const char *text, size_t size, const cJSON *tree, const struct err *whole)
{
	static const size_t ceilings[] = {1 << 20, 3};
	struct json_scan s;
	for (size_t i = 0; i < 4; i++) {
		struct digest got = {.string_bytes_max = ceilings[i / 2]}, want = got;
		struct err e;
		int rc = 0;
		size_t piece = i % 2 ? 1 + size / 3 : 1;
		err_clear(&e);
		json_scan_init(&s, got.string_bytes_max, on_token, &got);
		for (size_t at = 0; rc == 0 && at < size; at += piece)
			rc = json_scan_feed(&s, text + at, piece < size - at ? piece : size - at, &e);
		if (rc == 0)
			rc = json_scan_finish(&s, &e);
		json_scan_done(&s);
		assert((rc == 0) == (tree != NULL));
		if (!tree) {
			assert(e.kind == whole->kind && strcmp(e.msg, whole->msg) == 0);
			continue;
		}
		add_tree(&want, tree);
		assert(got.hash == want.hash);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e;
	err_clear(&e);
	cJSON *tree = json_read((const char *)data, size, &e);
	if (!tree) {
		// ERR_INTERNAL would mean that cJSON refused what our own check had accepted.
		assert((e.kind == ERR_PROTOCOL || e.kind == ERR_LIMIT) && e.msg[0]);
		scan_in_pieces((const char *)data, size, NULL, &e);
	} else {
		int64_t v = 0;
		scan_in_pieces((const char *)data, size, tree, &e);
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
