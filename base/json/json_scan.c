// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_scan.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "base/utf8.h"

// The token that the next byte may start or continue.
enum state {
	VALUE,         // a value
	FIRST_ELEMENT, // a value, or the ']' of an empty array
	FIRST_MEMBER,  // a member's name, or the '}' of an empty object
	MEMBER,        // a member's name
	COLON,
	AFTER_VALUE, // ',' or the closing bracket; at depth 0 nothing
	STRING,
	ESCAPE,   // after a backslash
	HEX,      // the four digits of \uXXXX
	LOW_HALF, // the backslash of the second half of a surrogate pair
	LOW_U,    // and its u
	UTF8,     // the rest of a character whose first bytes were in the previous piece
	WORD,
	NUMBER_SIGN, // after '-'
	NUMBER_ZERO, // after a leading 0
	NUMBER_INT,
	NUMBER_POINT, // after '.'
	NUMBER_FRACTION,
	NUMBER_E,      // after 'e'
	NUMBER_E_SIGN, // after the sign of an exponent
	NUMBER_EXPONENT,
};

static const char expected_value[] = "expected a value (object, array, string, number, true, false or null)";
static const char expected_name[] = "expected a member name in double quotes";
static const char expected_quote[] = "expected '\"' at the end of a string";
static const char expected_escape[] = "expected one of \" \\ / b f n r t u after a backslash";
static const char expected_hex[] = "expected four hexadecimal digits after \\u";
static const char expected_half[] = "expected the second half of a surrogate pair";
static const char expected_digit[] = "expected a digit";
static const char not_utf8[] = "this is not valid UTF-8";

// One call of json_scan_feed.
struct piece {
	const char *start, *p, *end;
	struct err *e;
};

void json_scan_init(struct json_scan *s, size_t string_bytes_max, json_token_fn *fn, void *arg)
{
	*s = (struct json_scan){.fn = fn, .arg = arg, .state = VALUE, .line = 1};
	buf_init(&s->kept, string_bytes_max);
}

void json_scan_done(struct json_scan *s)
{
	buf_done(&s->kept);
}

void json_scan_reset(struct json_scan *s)
{
	struct buf kept = s->kept;
	buf_reset(&kept);
	*s = (struct json_scan){.fn = s->fn,
	                        .arg = s->arg,
	                        .is_sequence = s->is_sequence,
	                        .is_lenient = s->is_lenient,
	                        .levels = s->levels,
	                        .n_levels = s->n_levels,
	                        .state = VALUE,
	                        .line = 1,
	                        .kept = kept};
}

// ---- errors ----

static int fail_at(struct json_scan *s, enum err_kind kind, size_t at, char found_byte, const char *what, struct err *e)
{
	unsigned char c = (unsigned char)found_byte;
	char found[16];
	s->has_failed = true;
	s->error_at = at;
	snprintf(found, sizeof found, c > ' ' && c <= '~' ? "'%c'" : "byte 0x%02x", c);
	return err_set(e, kind, "JSON %zu:%zu: found %s: %s", s->line, at - s->line_start + 1, found, what);
}

static size_t place_of(const struct json_scan *s, const struct piece *t)
{
	return s->offset + (size_t)(t->p - t->start);
}

// Reports an unexpected byte at t->p.
static int fail(struct json_scan *s, struct piece *t, const char *what)
{
	return fail_at(s, ERR_PROTOCOL, place_of(s, t), *t->p, what, t->e);
}

static int fail_token(struct json_scan *s, enum err_kind kind, const char *what, struct err *e)
{
	return fail_at(s, kind, s->token_at, s->token_first, what, e);
}

static int no_memory(struct json_scan *s, struct err *e)
{
	s->has_failed = true;
	return err_set(e, ERR_INTERNAL, "JSON: out of memory");
}

// ---- tokens ----

static int emit(struct json_scan *s, const struct json_token *token, struct err *e)
{
	if (!s->fn || s->fn(s->arg, token, e) == 0)
		return 0;
	if (token->kind == JSON_STRING || token->kind == JSON_NUMBER)
		s->error_at = s->token_at;
	s->has_failed = true;
	return -1;
}

static int emit_kind(struct json_scan *s, enum json_token_kind kind, struct err *e)
{
	return emit(s, &(struct json_token){.kind = kind, .text = ""}, e);
}

static void token_begins(struct json_scan *s, const struct piece *t)
{
	s->token_at = place_of(s, t);
	s->token_first = *t->p;
}

// Returns the word with the type of level n.
static uint64_t *word_of(struct json_scan *s, size_t n)
{
	return s->levels ? &s->levels[n / 64] : &s->objects;
}

static int open_level(struct json_scan *s, struct piece *t, bool is_object)
{
	if (s->depth == (s->levels ? 64 * s->n_levels : JSON_DEPTH_MAX)) {
		char message[64];
		snprintf(message, sizeof message, "nested deeper than the ceiling of %zu levels", s->depth);
		return fail_at(s, ERR_LIMIT, place_of(s, t), *t->p, message, t->e);
	}
	uint64_t bit = (uint64_t)1 << s->depth % 64, *word = word_of(s, s->depth);
	*word = is_object ? *word | bit : *word & ~bit;
	s->depth++;
	s->state = is_object ? FIRST_MEMBER : FIRST_ELEMENT;
	t->p++;
	return emit_kind(s, is_object ? JSON_OBJECT_BEGIN : JSON_ARRAY_BEGIN, t->e);
}
_Static_assert(JSON_NUMBER_BYTES_MAX == 63, "the message states this limit");

static bool in_object(struct json_scan *s)
{
	return *word_of(s, s->depth - 1) >> (s->depth - 1) % 64 & 1;
}

static int close_level(struct json_scan *s, struct piece *t)
{
	bool is_object = in_object(s);
	s->depth--;
	s->state = s->depth == 0 && s->is_sequence ? VALUE : AFTER_VALUE;
	t->p++;
	return emit_kind(s, is_object ? JSON_OBJECT_END : JSON_ARRAY_END, t->e);
}

// ---- strings ----

static void string_begins(struct json_scan *s, struct piece *t, bool is_key)
{
	token_begins(s, t);
	s->is_key = is_key;
	s->bytes = 0;
	buf_reset(&s->kept);
	s->state = STRING;
	t->p++;
}

static int keep(struct json_scan *s, const char *text, size_t len, struct err *e)
{
	size_t room = s->kept.max - s->kept.len;
	s->bytes += len;
	if (!s->fn || len == 0 || room == 0)
		return 0;
	return buf_put(&s->kept, text, len < room ? len : room) < 0 ? no_memory(s, e) : 0;
}

// [run, t->p) is the last part of the string; t->p is at its quote.
static int string_ended(struct json_scan *s, struct piece *t, const char *run)
{
	struct json_token token = {.kind = s->is_key ? JSON_KEY : JSON_STRING, .text = run};
	size_t len = (size_t)(t->p - run);
	if (s->bytes == 0) {
		s->bytes = len;
		token.len = len < s->kept.max ? len : s->kept.max;
	} else {
		if (keep(s, run, len, t->e) < 0)
			return -1;
		token.text = buf_str(&s->kept);
		token.len = s->kept.len;
	}
	token.bytes = s->bytes;
	s->state = s->is_key ? COLON : AFTER_VALUE;
	t->p++;
	return emit(s, &token, t->e);
}

static size_t utf8_wanted(char first)
{
	unsigned char c = (unsigned char)first;
	return c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
}

// Returns the first byte that is not an ordinary one of a string. Most bytes of a text are ordinary.
static const char *skip_ordinary(const char *p, const char *end, unsigned char last)
{
	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20 && (unsigned char)*p <= last)
		p++;
	return p;
}

static int scan_string(struct json_scan *s, struct piece *t)
{
	const char *run = t->p;
	unsigned char last = s->is_lenient ? 0xff : 0x7f;
	while ((t->p = skip_ordinary(t->p, t->end, last)) < t->end) {
		unsigned char c = (unsigned char)*t->p;
		if (c == '"')
			return string_ended(s, t, run);
		if (c == '\\') {
			if (keep(s, run, (size_t)(t->p - run), t->e) < 0)
				return -1;
			s->state = ESCAPE;
			t->p++;
			return 0;
		}
		if (c < 0x20)
			return fail(s, t, "control characters in strings must be escaped");
		size_t left = (size_t)(t->end - t->p), n = utf8_char_len(t->p, left);
		if (n > 0) {
			t->p += n;
			continue;
		}
		if (left >= utf8_wanted(*t->p))
			return fail(s, t, not_utf8);
		if (keep(s, run, (size_t)(t->p - run), t->e) < 0)
			return -1;
		token_begins(s, t);
		memcpy(s->utf8, t->p, left);
		s->utf8_len = left;
		t->p = t->end;
		s->state = UTF8;
		return 0;
	}
	return keep(s, run, (size_t)(t->p - run), t->e);
}

static int scan_utf8(struct json_scan *s, struct piece *t)
{
	size_t wanted = utf8_wanted(s->utf8[0]);
	s->utf8[s->utf8_len++] = *t->p++;
	if (s->utf8_len < wanted)
		return 0;
	if (utf8_char_len(s->utf8, wanted) != wanted)
		return fail_token(s, ERR_PROTOCOL, not_utf8, t->e);
	s->state = STRING;
	return keep(s, s->utf8, wanted, t->e);
}

static int scan_escape(struct json_scan *s, struct piece *t)
{
	static const char after_backslash[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
	char c = *t->p;
	if (c == 'u') {
		s->unit = 0;
		s->hex_len = 0;
		s->state = HEX;
		t->p++;
		return 0;
	}
	const char *found = c ? strchr(after_backslash, c) : NULL;
	if (!found)
		return fail(s, t, expected_escape);
	s->state = STRING;
	t->p++;
	return keep(s, meaning + (found - after_backslash), 1, t->e);
}

static int keep_char(struct json_scan *s, unsigned c, struct err *e)
{
	char out[4];
	return keep(s, out, utf8_put(c, out), e);
}

static int scan_hex(struct json_scan *s, struct piece *t)
{
	int d = num_hex_digit(*t->p);
	if (d < 0)
		return fail(s, t, expected_hex);
	s->unit = s->unit * 16 + (unsigned)d;
	if (++s->hex_len < 4) {
		t->p++;
		return 0;
	}
	bool is_low = s->unit >= 0xdc00 && s->unit <= 0xdfff;
	if (s->is_lenient) {
		t->p++;
		s->state = STRING;
		return keep_char(s, s->unit, t->e);
	}
	if (s->unit == 0)
		return fail(s, t, "\\u0000 inside a string is not supported");
	if (is_low && !s->high)
		return fail(s, t, "second half of a surrogate pair without the first");
	if (!is_low && s->high)
		return fail(s, t, expected_half);
	t->p++;
	if (s->unit >= 0xd800 && s->unit <= 0xdbff) {
		s->high = s->unit;
		s->state = LOW_HALF;
		return 0;
	}
	unsigned c = s->high ? 0x10000 + ((s->high - 0xd800) << 10) + (s->unit - 0xdc00) : s->unit;
	s->high = 0;
	s->state = STRING;
	return keep_char(s, c, t->e);
}

// ---- numbers and words ----

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_number(int state)
{
	return state >= NUMBER_SIGN;
}

// Returns the state after c, or -1 when the number ends before c or c is invalid.
static int behind_number_byte(int state, char c)
{
	bool digit = is_digit(c);
	switch (state) {
	case NUMBER_SIGN:
		return c == '0' ? NUMBER_ZERO : digit ? NUMBER_INT : -1;
	case NUMBER_INT:
		if (digit)
			return NUMBER_INT;
		// fall through
	case NUMBER_ZERO:
		return c == '.' ? NUMBER_POINT : c == 'e' || c == 'E' ? NUMBER_E : -1;
	case NUMBER_FRACTION:
		if (c == 'e' || c == 'E')
			return NUMBER_E;
		// fall through
	case NUMBER_POINT:
		return digit ? NUMBER_FRACTION : -1;
	case NUMBER_E:
		if (c == '+' || c == '-')
			return NUMBER_E_SIGN;
		// fall through
	default:
		return digit ? NUMBER_EXPONENT : -1;
	}
}

static bool may_end(int number_state)
{
	return number_state == NUMBER_ZERO || number_state == NUMBER_INT || number_state == NUMBER_FRACTION ||
	       number_state == NUMBER_EXPONENT;
}

static int number_ended(struct json_scan *s, struct err *e)
{
	s->number[s->number_len] = '\0';
	s->state = AFTER_VALUE;
	return emit(s, &(struct json_token){JSON_NUMBER, s->number, s->number_len, s->number_len}, e);
}

static int scan_number(struct json_scan *s, struct piece *t)
{
	for (; t->p < t->end; t->p++) {
		int next = behind_number_byte(s->state, *t->p);
		if (next < 0)
			return may_end(s->state) ? number_ended(s, t->e) : fail(s, t, expected_digit);
		if (s->number_len == JSON_NUMBER_BYTES_MAX)
			return fail_token(s, ERR_LIMIT, "this number is longer than the ceiling of 63 bytes", t->e);
		s->number[s->number_len++] = *t->p;
		s->state = next;
	}
	return 0;
}

static int scan_word(struct json_scan *s, struct piece *t)
{
	if (*t->p != s->word[s->word_len])
		return fail_token(s, ERR_PROTOCOL, expected_value, t->e);
	t->p++;
	if (s->word[++s->word_len])
		return 0;
	s->state = AFTER_VALUE;
	return emit_kind(s, s->word[0] == 't' ? JSON_TRUE : s->word[0] == 'f' ? JSON_FALSE : JSON_NULL, t->e);
}

// ---- the document ----

// t->p is at the first byte of a value.
static int value_begins(struct json_scan *s, struct piece *t)
{
	char c = *t->p;
	switch (c) {
	case '{':
	case '[':
		return open_level(s, t, c == '{');
	case '"':
		string_begins(s, t, false);
		return 0;
	case 't':
	case 'f':
	case 'n':
		token_begins(s, t);
		s->word = c == 't' ? "true" : c == 'f' ? "false" : "null";
		s->word_len = 0;
		s->state = WORD;
		return 0;
	default:
		if (c != '-' && !is_digit(c))
			return fail(s, t, expected_value);
		token_begins(s, t);
		s->number[0] = c;
		s->number_len = 1;
		s->state = c == '-' ? NUMBER_SIGN : c == '0' ? NUMBER_ZERO : NUMBER_INT;
		t->p++;
		return 0;
	}
}

static int after_value(struct json_scan *s, struct piece *t)
{
	if (s->depth == 0)
		return fail(s, t, "expected nothing after the end of the document");
	bool is_object = in_object(s);
	if (*t->p == (is_object ? '}' : ']'))
		return close_level(s, t);
	if (*t->p != ',')
		return fail(s, t,
		            is_object ? "expected ',' or '}' after a member" : "expected ',' or ']' after an element");
	s->state = is_object ? MEMBER : VALUE;
	t->p++;
	return 0;
}

// Handles a byte between tokens. Skips whitespace.
static int scan_between(struct json_scan *s, struct piece *t)
{
	char c = *t->p;
	if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
		t->p++;
		if (c == '\n') {
			s->line++;
			s->line_start = place_of(s, t);
		}
		return 0;
	}
	switch (s->state) {
	case FIRST_ELEMENT:
		return c == ']' ? close_level(s, t) : value_begins(s, t);
	case VALUE:
		return value_begins(s, t);
	case FIRST_MEMBER:
		if (c == '}')
			return close_level(s, t);
		// fall through
	case MEMBER:
		if (c != '"')
			return fail(s, t, expected_name);
		string_begins(s, t, true);
		return 0;
	case COLON:
		if (c != ':')
			return fail(s, t, "expected ':' after a member name");
		s->state = VALUE;
		t->p++;
		return 0;
	default:
		return after_value(s, t);
	}
}

static int scan_low(struct json_scan *s, struct piece *t)
{
	char wanted = s->state == LOW_HALF ? '\\' : 'u';
	if (*t->p != wanted)
		return fail(s, t, expected_half);
	s->unit = 0;
	s->hex_len = 0;
	s->state = s->state == LOW_HALF ? LOW_U : HEX;
	t->p++;
	return 0;
}

static int scan_some(struct json_scan *s, struct piece *t)
{
	switch (s->state) {
	case STRING:
		return scan_string(s, t);
	case ESCAPE:
		return scan_escape(s, t);
	case HEX:
		return scan_hex(s, t);
	case LOW_HALF:
	case LOW_U:
		return scan_low(s, t);
	case UTF8:
		return scan_utf8(s, t);
	case WORD:
		return scan_word(s, t);
	default:
		return is_number(s->state) ? scan_number(s, t) : scan_between(s, t);
	}
}

bool json_scan_is_between(const struct json_scan *s)
{
	return s->depth == 0 && !s->has_failed && (s->state == VALUE || s->state == AFTER_VALUE);
}

int json_scan_feed(struct json_scan *s, const char *data, size_t len, struct err *e)
{
	struct piece t = {data, data, len ? data + len : data, e};
	if (s->has_failed)
		return err_set(e, ERR_PROTOCOL, "JSON: an earlier part of it was broken");
	while (t.p < t.end) {
		s->error_at = place_of(s, &t); // place of an error of the callback
		if (scan_some(s, &t) < 0)
			return -1;
	}
	s->offset += len;
	return 0;
}

int json_scan_finish(struct json_scan *s, struct err *e)
{
	static const char *const missing[] = {
	        [VALUE] = expected_value,
	        [FIRST_ELEMENT] = expected_value,
	        [FIRST_MEMBER] = expected_name,
	        [MEMBER] = expected_name,
	        [COLON] = "expected ':' after a member name",
	        [STRING] = expected_quote,
	        [ESCAPE] = expected_escape,
	        [HEX] = expected_hex,
	        [LOW_HALF] = expected_half,
	        [LOW_U] = expected_half,
	        [NUMBER_SIGN] = expected_digit,
	        [NUMBER_POINT] = expected_digit,
	        [NUMBER_E] = expected_digit,
	        [NUMBER_E_SIGN] = expected_digit,
	        [NUMBER_EXPONENT] = NULL,
	};
	if (s->has_failed)
		return err_set(e, ERR_PROTOCOL, "JSON: an earlier part of it was broken");
	if (s->state == UTF8)
		return fail_token(s, ERR_PROTOCOL, not_utf8, e);
	if (s->state == WORD)
		return fail_token(s, ERR_PROTOCOL, expected_value, e);
	if (is_number(s->state) && may_end(s->state) && number_ended(s, e) < 0)
		return -1;
	if (json_scan_is_between(s) && (s->state == AFTER_VALUE || s->is_sequence))
		return 0;
	const char *what = missing[s->state];
	if (s->state == AFTER_VALUE)
		what = in_object(s) ? "expected ',' or '}' after a member" : "expected ',' or ']' after an element";
	s->has_failed = true;
	s->error_at = s->offset;
	return err_set(e, ERR_PROTOCOL, "JSON %zu:%zu: the text ends early: %s", s->line, s->offset - s->line_start + 1,
	               what);
}
