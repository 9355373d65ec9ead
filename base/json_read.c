// SPDX-License-Identifier: Apache-2.0
#include "base/json_read.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

// cJSON copies a number into 64 bytes and silently parses less than it was given when it is longer.
#define NUMBER_BYTES_MAX 63

// The grammar is checked here, before cJSON sees the text: cJSON takes things that are not JSON (leading zeros, control
// characters and wrong UTF-8 in strings, \u0000 as the end of a string) and recurses as deep as the text says.
struct scan {
	const char *text;
	size_t len, at;
	struct err *e;
};

static int fail(const struct scan *s, enum err_kind kind, const char *what)
{
	size_t line = 1, line_start = 0;
	for (size_t i = 0; i < s->at && i < s->len; i++)
		if (s->text[i] == '\n') {
			line++;
			line_start = i + 1;
		}
	size_t col = s->at - line_start + 1;
	if (s->at >= s->len)
		return err_set(s->e, kind, "JSON %zu:%zu: the text ends early: %s", line, col, what);
	unsigned char c = (unsigned char)s->text[s->at];
	char found[16];
	snprintf(found, sizeof found, c > ' ' && c <= '~' ? "'%c'" : "byte 0x%02x", c);
	return err_set(s->e, kind, "JSON %zu:%zu: found %s: %s", line, col, found, what);
}

static bool at_char(const struct scan *s, char c)
{
	return s->at < s->len && s->text[s->at] == c;
}

static bool at_digit(const struct scan *s)
{
	return s->at < s->len && s->text[s->at] >= '0' && s->text[s->at] <= '9';
}

static void skip_blanks(struct scan *s)
{
	while (at_char(s, ' ') || at_char(s, '\n') || at_char(s, '\t') || at_char(s, '\r'))
		s->at++;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The four digits after \u; -1 on error.
static int scan_u16(struct scan *s, unsigned *ret_unit)
{
	*ret_unit = 0;
	for (int i = 0; i < 4; i++, s->at++) {
		int d = s->at < s->len ? hex_digit(s->text[s->at]) : -1;
		if (d < 0)
			return fail(s, ERR_PROTOCOL, "expected four hexadecimal digits after \\u");
		*ret_unit = *ret_unit * 16 + (unsigned)d;
	}
	return 0;
}

static int scan_escape(struct scan *s)
{
	static const char after_backslash[] = {'"', '\\', '/', 'b', 'f', 'n', 'r', 't', 'u'};
	s->at++;
	if (s->at >= s->len || !memchr(after_backslash, s->text[s->at], sizeof after_backslash))
		return fail(s, ERR_PROTOCOL, "expected one of \" \\ / b f n r t u after a backslash");
	if (s->text[s->at++] != 'u')
		return 0;
	unsigned unit, low;
	if (scan_u16(s, &unit) < 0)
		return -1;
	if (unit == 0)
		return fail(s, ERR_PROTOCOL, "\\u0000 inside a string is not supported");
	if (unit >= 0xdc00 && unit <= 0xdfff)
		return fail(s, ERR_PROTOCOL, "second half of a surrogate pair without the first");
	if (unit < 0xd800 || unit > 0xdbff)
		return 0;
	if (s->len - s->at < 2 || s->text[s->at] != '\\' || s->text[s->at + 1] != 'u')
		return fail(s, ERR_PROTOCOL, "expected the second half of a surrogate pair");
	s->at += 2;
	if (scan_u16(s, &low) < 0)
		return -1;
	if (low < 0xdc00 || low > 0xdfff)
		return fail(s, ERR_PROTOCOL, "expected the second half of a surrogate pair");
	return 0;
}

static int scan_string(struct scan *s)
{
	for (s->at++; s->at < s->len;) {
		unsigned char c = (unsigned char)s->text[s->at];
		if (c == '"') {
			s->at++;
			return 0;
		}
		if (c == '\\') {
			if (scan_escape(s) < 0)
				return -1;
			continue;
		}
		if (c < 0x20)
			return fail(s, ERR_PROTOCOL, "control characters in strings must be escaped");
		size_t n = c < 0x80 ? 1 : utf8_char_len(s->text + s->at, s->len - s->at);
		if (n == 0)
			return fail(s, ERR_PROTOCOL, "this is not valid UTF-8");
		s->at += n;
	}
	return fail(s, ERR_PROTOCOL, "expected '\"' at the end of a string");
}

static int scan_digits(struct scan *s)
{
	if (!at_digit(s))
		return fail(s, ERR_PROTOCOL, "expected a digit");
	while (at_digit(s))
		s->at++;
	return 0;
}

static int scan_number(struct scan *s)
{
	size_t start = s->at;
	if (at_char(s, '-'))
		s->at++;
	if (at_char(s, '0'))
		s->at++;
	else if (scan_digits(s) < 0)
		return -1;
	if (at_char(s, '.')) {
		s->at++;
		if (scan_digits(s) < 0)
			return -1;
	}
	if (at_char(s, 'e') || at_char(s, 'E')) {
		s->at++;
		if (at_char(s, '+') || at_char(s, '-'))
			s->at++;
		if (scan_digits(s) < 0)
			return -1;
	}
	if (s->at - start > NUMBER_BYTES_MAX) {
		s->at = start;
		return fail(s, ERR_LIMIT, "this number is longer than the ceiling of 63 bytes");
	}
	return 0;
}

static int scan_word(struct scan *s, const char *word)
{
	size_t n = strlen(word);
	if (s->len - s->at < n || memcmp(s->text + s->at, word, n) != 0)
		return fail(s, ERR_PROTOCOL, "expected a value (object, array, string, number, true, false or null)");
	s->at += n;
	return 0;
}

static int scan_scalar(struct scan *s)
{
	switch (s->at < s->len ? s->text[s->at] : '\0') {
	case '"':
		return scan_string(s);
	case 't':
		return scan_word(s, "true");
	case 'f':
		return scan_word(s, "false");
	case 'n':
		return scan_word(s, "null");
	default:
		if (at_char(s, '-') || at_digit(s))
			return scan_number(s);
		return fail(s, ERR_PROTOCOL, "expected a value (object, array, string, number, true, false or null)");
	}
}

static int scan_key(struct scan *s)
{
	skip_blanks(s);
	if (!at_char(s, '"'))
		return fail(s, ERR_PROTOCOL, "expected a member name in double quotes");
	if (scan_string(s) < 0)
		return -1;
	skip_blanks(s);
	if (!at_char(s, ':'))
		return fail(s, ERR_PROTOCOL, "expected ':' after a member name");
	s->at++;
	return 0;
}

// No recursion: `closer` holds the bracket that each open level waits for.
static int scan_document(struct scan *s)
{
	char closer[JSON_DEPTH_MAX];
	size_t depth = 0;
	for (;;) {
		skip_blanks(s);
		if (at_char(s, '{') || at_char(s, '[')) {
			if (depth == JSON_DEPTH_MAX)
				return fail(s, ERR_LIMIT, "nested deeper than the ceiling of 64 levels");
			bool object = s->text[s->at++] == '{';
			closer[depth++] = object ? '}' : ']';
			skip_blanks(s);
			if (!at_char(s, closer[depth - 1])) {
				if (object && scan_key(s) < 0)
					return -1;
				continue;
			}
			s->at++;
			depth--;
		} else if (scan_scalar(s) < 0) {
			return -1;
		}
		// A value has ended: close what ends with it, or go on to the next one.
		for (skip_blanks(s); depth && at_char(s, closer[depth - 1]); skip_blanks(s)) {
			s->at++;
			depth--;
		}
		if (depth == 0)
			break;
		bool object = closer[depth - 1] == '}';
		if (!at_char(s, ','))
			return fail(s, ERR_PROTOCOL,
			            object ? "expected ',' or '}' after a member"
			                   : "expected ',' or ']' after an element");
		s->at++;
		if (object && scan_key(s) < 0)
			return -1;
	}
	if (s->at < s->len)
		return fail(s, ERR_PROTOCOL, "expected nothing after the end of the document");
	return 0;
}

_Static_assert(NUMBER_BYTES_MAX == 63 && JSON_DEPTH_MAX == 64, "the messages above state these ceilings");

cJSON *json_read(const char *text, size_t len, struct err *e)
{
	if (len > JSON_BYTES_MAX) {
		err_set(e, ERR_LIMIT, "JSON of %zu bytes is larger than the ceiling of %d bytes", len, JSON_BYTES_MAX);
		return NULL;
	}
	struct scan s = {.text = text, .len = len, .e = e};
	if (scan_document(&s) < 0)
		return NULL;
	cJSON *tree = cJSON_ParseWithLengthOpts(text, len, NULL, 0);
	if (!tree)
		err_set(e, ERR_INTERNAL, "JSON of %zu bytes: out of memory", len);
	return tree;
}

const cJSON *json_get(const cJSON *o, const char *key)
{
	return cJSON_IsObject(o) ? cJSON_GetObjectItemCaseSensitive(o, key) : NULL;
}

bool json_may_be(const cJSON *item, cJSON_bool (*is_shape)(const cJSON *item))
{
	return !item || cJSON_IsNull(item) || is_shape(item);
}

const char *json_get_str(const cJSON *o, const char *key, const char *fallback)
{
	const cJSON *item = json_get(o, key);
	return cJSON_IsString(item) ? item->valuestring : fallback;
}

int json_get_i64(const cJSON *o, const char *key, int64_t min, int64_t max, int64_t *ret_value, struct err *e)
{
	const double exact_max = 9007199254740992.0; // 2^53: beyond it a double skips whole numbers
	const cJSON *item = json_get(o, key);
	if (!item || cJSON_IsNull(item))
		return 0;
	if (!cJSON_IsNumber(item))
		return err_set(e, ERR_PROTOCOL, "%s is not a number: expected a whole number from %lld to %lld", key,
		               (long long)min, (long long)max);
	double v = item->valuedouble;
	if (!(fabs(v) < exact_max) || v != trunc(v) || (int64_t)v < min || (int64_t)v > max)
		return err_set(e, ERR_PROTOCOL, "%s is %g: expected a whole number from %lld to %lld", key, v,
		               (long long)min, (long long)max);
	*ret_value = (int64_t)v;
	return 1;
}

int json_get_text(const cJSON *o, const char *key, char *out, size_t size, struct err *e)
{
	const cJSON *item = json_get(o, key);
	out[0] = '\0';
	if (!item || cJSON_IsNull(item))
		return 0;
	if (!cJSON_IsString(item))
		return err_set(e, ERR_PROTOCOL, "%s is not a string", key);
	size_t len = strlen(item->valuestring);
	if (len >= size)
		return err_set(e, ERR_LIMIT, "%s has %zu bytes, the ceiling is %zu", key, len, size - 1);
	memcpy(out, item->valuestring, len + 1);
	return 0;
}
