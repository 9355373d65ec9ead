// SPDX-License-Identifier: Apache-2.0
// Streaming JSON writer onto a struct buf: commas, escapes and nesting are its business. indent 0 = one line.
#ifndef GPUSCALE_BASE_JSON_WRITE_H
#define GPUSCALE_BASE_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define JSON_WRITE_DEPTH_MAX 32

struct json_writer {
	struct buf *out;
	int indent; // blanks per level
	int depth;
	bool has_item[JSON_WRITE_DEPTH_MAX];
	bool after_key;
};

void json_write_init(struct json_writer *w, struct buf *out, int indent);
void json_write_object_begin(struct json_writer *w);
void json_write_object_end(struct json_writer *w);
void json_write_array_begin(struct json_writer *w);
void json_write_array_end(struct json_writer *w);
void json_write_key(struct json_writer *w, const char *key);
void json_write_str(struct json_writer *w, const char *s); // NULL writes null; invalid UTF-8 becomes U+FFFD
void json_write_i64(struct json_writer *w, int64_t v);
void json_write_f64(struct json_writer *w, double v); // NaN and Inf become null
void json_write_bool(struct json_writer *w, bool v);
void json_write_null(struct json_writer *w);

#endif
