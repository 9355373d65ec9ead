// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_write.h"

#include <math.h>

#include "base/base.h"

#define JSON_WRITE_KEY_BYTES 64 // of a format

void json_write_init(struct json_writer *w, struct buf *out, int indent)
{
	*w = (struct json_writer){.out = out, .indent = indent};
}

static void newline(struct json_writer *w)
{
	if (!w->indent)
		return;
	buf_putc(w->out, '\n');
	for (int i = 0; i < w->depth * w->indent; i++)
		buf_putc(w->out, ' ');
}

// Comma and line break in front of a key, or of a value that has none.
static void begin_item(struct json_writer *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	if (w->depth == 0)
		return;
	if (w->depth <= JSON_WRITE_DEPTH_MAX) {
		if (w->has_item[w->depth])
			buf_putc(w->out, ',');
		w->has_item[w->depth] = true;
	}
	newline(w);
}

static void begin(struct json_writer *w, char bracket)
{
	begin_item(w);
	buf_putc(w->out, bracket);
	if (++w->depth > JSON_WRITE_DEPTH_MAX)
		w->out->failed = true; // how deep is decided by data (a user's tree), so no assert
	else
		w->has_item[w->depth] = false;
}

static void end(struct json_writer *w, char bracket)
{
	assert(w->depth > 0 && !w->after_key);
	bool had = w->depth <= JSON_WRITE_DEPTH_MAX && w->has_item[w->depth];
	w->depth--;
	if (had)
		newline(w);
	buf_putc(w->out, bracket);
}

void json_write_object_begin(struct json_writer *w)
{
	begin(w, '{');
}

void json_write_object_end(struct json_writer *w)
{
	end(w, '}');
}

void json_write_array_begin(struct json_writer *w)
{
	begin(w, '[');
}

void json_write_array_end(struct json_writer *w)
{
	end(w, ']');
}

size_t json_escape_char(const char *s, size_t len, char *out, size_t *ret_taken)
{
	static const char plain[] = "\"\\\b\f\n\r\t", escaped[] = "\"\\bfnrt";
	unsigned char c = (unsigned char)s[0];
	const char *at = c ? strchr(plain, c) : NULL;
	*ret_taken = 1;
	if (at) {
		out[0] = '\\';
		out[1] = escaped[at - plain];
		return 2;
	}
	size_t n = utf8_char_len(s, len);
	if (n == 0) {
		memcpy(out, UTF8_REPLACEMENT, sizeof UTF8_REPLACEMENT - 1);
		return sizeof UTF8_REPLACEMENT - 1;
	}
	uint32_t cp = text_code_point(s, n);
	if (text_is_unsafe(cp)) { // legal in JSON most of them, but harmful on a terminal or in YAML
		char u[JSON_ESCAPED_BYTES_MAX + 1];
		int n_u = cp > 0xffff ? snprintf(u, sizeof u, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (cp >> 10)),
		                                 (unsigned)(0xdc00 + (cp & 0x3ff)))
		                      : snprintf(u, sizeof u, "\\u%04x", (unsigned)cp);
		memcpy(out, u, (size_t)n_u);
		*ret_taken = n;
		return (size_t)n_u;
	}
	memcpy(out, s, n);
	*ret_taken = n;
	return n;
}

static void put_string(struct buf *out, const char *s, size_t len)
{
	buf_putc(out, '"');
	size_t from = 0, i = 0;
	while (i < len) {
		if (s[i] >= ' ' && s[i] <= '~' && s[i] != '"' && s[i] != '\\') {
			i++;
			continue;
		}
		char text[JSON_ESCAPED_BYTES_MAX];
		size_t taken, n = json_escape_char(s + i, len - i, text, &taken);
		if (n != taken) { // plain characters are written in one piece
			buf_put(out, s + from, i - from);
			buf_put(out, text, n);
			from = i + taken;
		}
		i += taken;
	}
	buf_put(out, s + from, len - from);
	buf_putc(out, '"');
}

void json_write_key(struct json_writer *w, const char *key)
{
	assert(w->depth > 0 && !w->after_key);
	begin_item(w);
	put_string(w->out, key, strlen(key));
	buf_puts(w->out, w->indent ? ": " : ":");
	w->after_key = true;
}

void json_write_strn(struct json_writer *w, const char *s, size_t len)
{
	begin_item(w);
	put_string(w->out, s, len);
}

void json_write_str(struct json_writer *w, const char *s)
{
	if (s)
		json_write_strn(w, s, strlen(s));
	else
		json_write_null(w);
}

void json_write_i64(struct json_writer *w, int64_t v)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%lld", (long long)v);
	begin_item(w);
	buf_put(w->out, text, (size_t)n);
}

void json_write_f64(struct json_writer *w, double v)
{
	if (!isfinite(v)) {
		json_write_null(w);
		return;
	}
	char text[NUM_TEXT_BYTES];
	size_t n = num_format_f64(text, v);
	begin_item(w);
	buf_put(w->out, text, n);
}

void json_write_bool(struct json_writer *w, bool v)
{
	begin_item(w);
	buf_puts(w->out, v ? "true" : "false");
}

void json_write_null(struct json_writer *w)
{
	begin_item(w);
	buf_puts(w->out, "null");
}

void json_write_raw(struct json_writer *w, const char *json)
{
	begin_item(w);
	buf_puts(w->out, json);
}

void json_write_member_object(struct json_writer *w, const char *key)
{
	json_write_key(w, key);
	json_write_object_begin(w);
}

void json_write_member_array(struct json_writer *w, const char *key)
{
	json_write_key(w, key);
	json_write_array_begin(w);
}

void json_write_member_str(struct json_writer *w, const char *key, const char *value)
{
	json_write_key(w, key);
	json_write_str(w, value);
}

void json_write_member_text(struct json_writer *w, const char *key, const char *message)
{
	struct buf shown;
	buf_init(&shown, w->out->max);
	for (size_t i = 0, len = message ? strlen(message) : 0, taken; i < len; i += taken) {
		char text[TEXT_CHAR_BYTES];
		buf_put(&shown, text, text_show_char(message + i, len - i, text, &taken));
	}
	w->out->failed |= shown.failed;
	json_write_member_str(w, key, message ? buf_str(&shown) : NULL);
	buf_done(&shown);
}

void json_write_member_i64(struct json_writer *w, const char *key, int64_t value)
{
	json_write_key(w, key);
	json_write_i64(w, value);
}

void json_write_member_f64(struct json_writer *w, const char *key, double value)
{
	json_write_key(w, key);
	json_write_f64(w, value);
}

void json_write_member_bool(struct json_writer *w, const char *key, bool value)
{
	json_write_key(w, key);
	json_write_bool(w, value);
}

void json_write_member_null(struct json_writer *w, const char *key)
{
	json_write_key(w, key);
	json_write_null(w);
}

void json_write_member_time(struct json_writer *w, const char *key, int64_t wall_ms)
{
	char text[NUM_TEXT_BYTES];
	num_format_rfc3339_ms(text, wall_ms);
	json_write_member_str(w, key, text);
}

// The arguments of json_write_format(), in a struct, so that a function can take the next one.
struct values {
	va_list ap;
};

static const char *write_value(struct json_writer *w, const char *conversion, struct values *v)
{
	char text[NUM_TEXT_BYTES];
	switch (conversion[0]) {
	case 's':
		json_write_str(w, va_arg(v->ap, const char *));
		return conversion + 1;
	case 'd':
		json_write_i64(w, va_arg(v->ap, int));
		return conversion + 1;
	case 'g':
		json_write_f64(w, va_arg(v->ap, double));
		return conversion + 1;
	case 'i':
		json_write_bool(w, va_arg(v->ap, int));
		return conversion + 1;
	case 'j':
		num_format_rfc3339_ms(text, va_arg(v->ap, int64_t));
		json_write_str(w, text);
		return conversion + 2;
	default:
		assert(strncmp(conversion, "ld", 2) == 0 || strncmp(conversion, "zu", 2) == 0);
		json_write_i64(w, va_arg(v->ap, int64_t)); // a size_t of the program is smaller than INT64_MAX
		return conversion + 2;
	}
}

void json_write_format(struct json_writer *w, const char *fmt, ...)
{
	struct values v;
	char key[JSON_WRITE_KEY_BYTES];
	va_start(v.ap, fmt);
	while (*fmt) {
		size_t len = strcspn(fmt, ":%,{}[]");
		char sign = fmt[len];
		if (len > 0) {
			assert(sign == ':' && len < sizeof key);
			memcpy(key, fmt, len);
			key[len] = '\0';
			json_write_key(w, key);
		}
		fmt += len + 1;
		if (sign == '%')
			fmt = write_value(w, fmt, &v);
		else if (sign == '{')
			json_write_object_begin(w);
		else if (sign == '}')
			json_write_object_end(w);
		else if (sign == '[')
			json_write_array_begin(w);
		else if (sign == ']')
			json_write_array_end(w);
	}
	va_end(v.ap);
}
