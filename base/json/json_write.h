// SPDX-License-Identifier: Apache-2.0
// Streaming JSON writer onto a struct buf; writes the commas, escapes and indentation. indent 0 = one line.
// Errors are the buffer's: look at out->failed once at the end. Nesting deeper than JSON_WRITE_DEPTH_MAX sets it too.
#ifndef GPUSCALE_BASE_JSON_JSON_WRITE_H
#define GPUSCALE_BASE_JSON_JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define JSON_WRITE_DEPTH_MAX 64

struct json_writer {
	struct buf *out;
	int indent; // spaces per level
	int depth;
	bool has_item[JSON_WRITE_DEPTH_MAX + 1];
	bool after_key;
};

// out stays the caller's; it is appended to.
void json_write_init(struct json_writer *w, struct buf *out, int indent);
// The same as the value of a declaration: struct json_writer w = JSON_WRITER(&out, 2);
#define JSON_WRITER(to, spaces) ((struct json_writer){.out = (to), .indent = (spaces)})
void json_write_object_begin(struct json_writer *w);
void json_write_object_end(struct json_writer *w);
void json_write_array_begin(struct json_writer *w);
void json_write_array_end(struct json_writer *w);
// Before every value inside an object.
void json_write_key(struct json_writer *w, const char *key);
void json_write_str(struct json_writer *w, const char *s); // NULL writes null; invalid UTF-8 becomes U+FFFD
void json_write_strn(struct json_writer *w, const char *s, size_t len); // as json_write_str, may contain NULs
void json_write_i64(struct json_writer *w, int64_t v);
void json_write_f64(struct json_writer *w, double v); // NaN and Inf become null
void json_write_bool(struct json_writer *w, bool v);
void json_write_null(struct json_writer *w);
// `json` as it is: one complete value that was written before.
void json_write_raw(struct json_writer *w, const char *json);

// A key with its value, inside an object.
void json_write_member_object(struct json_writer *w, const char *key); // begins it
void json_write_member_array(struct json_writer *w, const char *key);  // likewise
void json_write_member_str(struct json_writer *w, const char *key, const char *value);
void json_write_member_i64(struct json_writer *w, const char *key, int64_t value);
void json_write_member_f64(struct json_writer *w, const char *key, double value);
void json_write_member_bool(struct json_writer *w, const char *key, bool value);
void json_write_member_null(struct json_writer *w, const char *key);
// Several members in the form of the document, as in "{name:%s,score:{late:%g,changes:%d". A colon follows a key.
// Braces and brackets begin and end objects and arrays, which need not end in the same call. Values are a string or
// NULL (%s), int (%d), int64_t (%ld), size_t (%zu), double (%g), bool (%i), or a time in ms (%jd, as RFC 3339 in UTC),
// each as its function writes it.
void json_write_format(struct json_writer *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// For a message that people read: unsafe characters are visible (base/text.h) to every reader of the document, also to
// one that prints what it decodes. NULL writes null.
void json_write_member_text(struct json_writer *w, const char *key, const char *message);
// As RFC 3339, UTC.
void json_write_member_time(struct json_writer *w, const char *key, int64_t wall_ms);

// The escaped form of the character at s[0..len), len > 0: writes at most JSON_ESCAPED_BYTES_MAX bytes to out (no
// terminator), returns how many, and says in *ret_taken how many bytes of s they stand for.
#define JSON_ESCAPED_BYTES_MAX 12
size_t json_escape_char(const char *s, size_t len, char *out, size_t *ret_taken);

#endif
