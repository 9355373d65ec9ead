// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_span.h"

#include <string.h>

#include "base/json/json_scan.h"
#include "base/num.h"
#include "base/text.h"

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && (*p == ' ' || *p == '\n' || *p == '\t' || *p == '\r'))
		p++;
	return p;
}

// p is at a '"'. NULL when the string does not end.
static const char *skip_string(const char *p, const char *end)
{
	for (p++; p < end; p++) {
		if (*p == '"')
			return p + 1;
		if (*p == '\\' && ++p == end)
			break;
	}
	return NULL;
}

static const char *skip_nested(const char *p, const char *end)
{
	size_t depth = 0;
	while (p && p < end) {
		char c = *p;
		if (c == '"') {
			p = skip_string(p, end);
			continue;
		}
		p++;
		if (c == '{' || c == '[')
			depth++;
		else if ((c == '}' || c == ']') && --depth == 0)
			return p;
	}
	return NULL;
}

// The end of the value at p; NULL when there is none.
static const char *skip_value(const char *p, const char *end)
{
	if (p == end)
		return NULL;
	if (*p == '"')
		return skip_string(p, end);
	if (*p == '{' || *p == '[')
		return skip_nested(p, end);
	const char *start = p;
	while (p < end && !memchr(",}] \t\r\n:", *p, 8))
		p++;
	return p > start ? p : NULL;
}

// ---- the grammar ----

static bool is_word(const char *p, const char *end, const char *word)
{
	size_t len = strlen(word);
	return (size_t)(end - p) == len && memcmp(p, word, len) == 0;
}

// The end of a string, number or literal at p; NULL when there is none.
static const char *skip_scalar(const char *p, const char *end)
{
	const char *to = skip_value(p, end);
	bool is_number;
	if (!to || *p == '"')
		return to;
	return (json_scan_number_end(p, to, &is_number) == to && is_number) || is_word(p, to, "true") ||
	                       is_word(p, to, "false") || is_word(p, to, "null")
	               ? to
	               : NULL;
}

// Goes past a member's name and its ':'; NULL when they are not there.
static const char *skip_key(const char *p, const char *end)
{
	p = p < end && *p == '"' ? skip_string(p, end) : NULL;
	p = p ? skip_blanks(p, end) : NULL;
	return p && p < end && *p == ':' ? skip_blanks(p + 1, end) : NULL;
}

// No recursion: `closers` has the bracket that each open level waits for.
bool json_span_is_whole(struct json_span s)
{
	char closers[JSON_SPAN_DEPTH_MAX];
	size_t depth = 0;
	const char *end = s.text ? s.text + s.len : NULL, *p = s.text ? skip_blanks(s.text, end) : NULL;
	while (p && p < end) {
		if (*p == '{' || *p == '[') {
			if (depth == JSON_SPAN_DEPTH_MAX)
				return false;
			char closer = *p == '{' ? '}' : ']';
			closers[depth++] = closer;
			p = skip_blanks(p + 1, end);
			if (p == end || *p != closer) {
				p = closer == '}' ? skip_key(p, end) : p;
				continue;
			}
		} else if (!(p = skip_scalar(p, end))) {
			return false;
		}
		// A value has ended: close what ends with it, or go on to the next one.
		for (p = skip_blanks(p, end); depth > 0 && p < end && *p == closers[depth - 1];
		     p = skip_blanks(p + 1, end))
			depth--;
		if (depth == 0)
			return p == end;
		if (p == end || *p != ',')
			return false;
		p = skip_blanks(p + 1, end);
		if (closers[depth - 1] == '}')
			p = skip_key(p, end);
	}
	return false;
}

char json_span_kind(struct json_span s)
{
	if (!s.text || s.len == 0)
		return '\0';
	return strchr("{[\"tfn", s.text[0]) && s.text[0] ? s.text[0] : '0';
}

// ---- members ----

static struct json_span span(const char *from, const char *to)
{
	return (struct json_span){from, (size_t)(to - from)};
}

bool json_span_next(struct json_span_iter *it)
{
	const char *p = it->rest.text, *end = p ? p + it->rest.len : NULL;
	if (!p)
		return false;
	it->rest.text = NULL; // it stays at its end unless all goes well
	p = skip_blanks(p, end);
	if (p == end)
		return false;
	if (!it->is_inside) {
		if (*p != '{' && *p != '[')
			return false;
		it->key.text = *p == '{' ? p : NULL; // says which, until the first key
		it->is_inside = true;
		p = skip_blanks(p + 1, end);
		if (p == end || *p == '}' || *p == ']')
			return false;
	} else {
		if (*p != ',')
			return false;
		p = skip_blanks(p + 1, end);
	}
	if (it->key.text) {
		const char *key_end = p < end && *p == '"' ? skip_string(p, end) : NULL;
		if (!key_end)
			return false;
		it->key = span(p, key_end);
		p = skip_blanks(key_end, end);
		if (p == end || *p != ':')
			return false;
		p = skip_blanks(p + 1, end);
	}
	const char *value_end = skip_value(p, end);
	if (!value_end)
		return false;
	it->value = span(p, value_end);
	it->rest = span(value_end, end);
	return true;
}

bool json_span_is(struct json_span s, const char *text)
{
	size_t len = strlen(text);
	return s.text && s.len == len + 2 && s.text[0] == '"' && memcmp(s.text + 1, text, len) == 0;
}

struct json_span json_span_get(struct json_span o, const char *key)
{
	struct json_span_iter it = {.rest = o};
	while (json_span_next(&it)) {
		if (json_span_is(it.key, key))
			return it.value;
	}
	return (struct json_span){0};
}

void json_span_members(struct json_span o, const char *const *names, struct json_span *ret, size_t n)
{
	struct json_span_iter it = {.rest = o};
	size_t left = n;
	memset(ret, 0, n * sizeof *ret);
	while (left > 0 && json_span_next(&it)) {
		for (size_t i = 0; i < n; i++) {
			if (ret[i].text || !json_span_is(it.key, names[i]))
				continue;
			ret[i] = it.value;
			left--;
		}
	}
}

size_t json_span_count(struct json_span s)
{
	struct json_span_iter it = {.rest = s};
	size_t n = 0;
	while (json_span_next(&it))
		n++;
	return n;
}

struct json_span json_span_path(struct json_span o, const char *const *keys)
{
	for (; *keys && o.text; keys++)
		o = json_span_get(o, *keys);
	return o;
}

struct json_span json_span_find(struct json_span list, const char *key, const char *text)
{
	struct json_span_iter it = {.rest = list};
	while (json_span_next(&it)) {
		if (json_span_is(json_span_get(it.value, key), text))
			return it.value;
	}
	return (struct json_span){NULL, 0};
}

// ---- scalars ----

// Four hexadecimal digits at p; -1 when they are not there.
static int32_t read_u16(const char *p, const char *end)
{
	int32_t unit = 0;
	if (end - p < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		int d = num_hex_digit(p[i]);
		if (d < 0)
			return -1;
		unit = unit * 16 + d;
	}
	return unit;
}

// The escape after the backslash at *p, which is moved behind it. 0 when it is broken.
static size_t read_escape(const char **p, const char *end, char out[4])
{
	static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
	if (*p == end)
		return 0;
	char c = *(*p)++;
	const char *at = c ? strchr(names, c) : NULL;
	if (at) {
		out[0] = values[at - names];
		return 1;
	}
	int32_t unit = c == 'u' ? read_u16(*p, end) : -1;
	if (unit < 0)
		return 0;
	*p += 4;
	uint32_t code = (uint32_t)unit;
	if (code >= 0xD800 && code < 0xDC00 && end - *p >= 6 && (*p)[0] == '\\' && (*p)[1] == 'u') {
		int32_t low = read_u16(*p + 2, end);
		if (low >= 0xDC00 && low < 0xE000) {
			*p += 6;
			code = 0x10000 + ((code - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
		}
	}
	bool is_character = code != 0 && (code < 0xD800 || code > 0xDFFF);
	return utf8_put(is_character ? code : '?', out);
}

int json_span_text(struct json_span s, char *out, size_t size)
{
	out[0] = '\0';
	if (!s.text || s.len < 2 || s.text[0] != '"' || s.text[s.len - 1] != '"')
		return -1;
	const char *p = s.text + 1, *end = s.text + s.len - 1;
	size_t n = 0;
	while (p < end) {
		char bytes[4] = {*p++};
		size_t len = bytes[0] != '\\' ? 1 : read_escape(&p, end, bytes);
		if (len == 0 || n + len >= size || bytes[0] == '\0') {
			out[0] = '\0';
			return -1;
		}
		memcpy(out + n, bytes, len);
		n += len;
	}
	out[n] = '\0';
	return (int)n;
}

bool json_span_i64(struct json_span s, int64_t min, int64_t max, int64_t *ret_value)
{
	size_t digits = s.text ? s.len - (s.len > 0 && s.text[0] == '-') : 0;
	return digits > 0 && digits <= 18 &&
	       num_parse_i64(s.text, s.len, min, max, ret_value, NULL) == 0; // 18 digits fit
}
