// SPDX-License-Identifier: Apache-2.0
#include "base/json/json_scan.h"

#include "base/base.h"

// The token that the next byte may start or continue. A number, a word, an escape or a character that continues in the
// next piece waits in json_scan.split.
enum state {
	VALUE,         // a value
	FIRST_ELEMENT, // a value, or the ']' of an empty array
	FIRST_MEMBER,  // a member's name, or the '}' of an empty object
	MEMBER,        // a member's name
	COLON,
	AFTER_VALUE, // ',' or the closing bracket; at depth 0 nothing
	STRING,
};

static const char expected_value[] = "expected a value (object, array, string, number, true, false or null)";
static const char expected_name[] = "expected a member name in double quotes";
static const char expected_quote[] = "expected '\"' at the end of a string";
static const char expected_escape[] = "expected one of \" \\ / b f n r t u after a backslash";
static const char expected_hex[] = "expected four hexadecimal digits after \\u";
static const char expected_half[] = "expected the second half of a surrogate pair";
static const char expected_digit[] = "expected a digit";
static const char not_utf8[] = "this is not valid UTF-8";

// Bytes of the text that follow each other: of one call of json_scan_feed, or of a token that is split between calls.
struct piece {
	const char *start, *p, *end;
	size_t at; // position of `start` in the text
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

static size_t place_of(const struct piece *t)
{
	return t->at + (size_t)(t->p - t->start);
}

// Reports an unexpected byte at p.
static int fail_byte(struct json_scan *s, struct piece *t, const char *p, const char *what)
{
	t->p = p;
	return fail_at(s, ERR_PROTOCOL, place_of(t), *p, what, t->e);
}

// Reports an unexpected byte at t->p.
static int fail(struct json_scan *s, struct piece *t, const char *what)
{
	return fail_byte(s, t, t->p, what);
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
		return fail_at(s, ERR_LIMIT, place_of(t), *t->p, message, t->e);
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
	s->token_at = place_of(t);
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

// Returns the first byte that is not an ordinary one of a string. Most bytes of a text are ordinary.
static const char *skip_ordinary(const char *p, const char *end, unsigned char last)
{
	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20 && (unsigned char)*p <= last)
		p++;
	return p;
}

static int keep_char(struct json_scan *s, unsigned c, struct err *e)
{
	char out[4];
	return keep(s, out, utf8_put(c, out), e);
}

// ---- what may be split between pieces ----

// These functions read one escape, character, number or word, which starts at t->p. They return 0, -1 when it is
// invalid, or 1 when the piece ends within it, or at the end of a number that may continue: s->missing is then what is
// expected next, or NULL when nothing is missing.

static int wait_for(struct json_scan *s, const char *what)
{
	s->missing = what;
	return 1;
}

// Reads the digits of \uXXXX at *p.
static int scan_hex(struct json_scan *s, struct piece *t, const char **p, unsigned *ret_unit)
{
	*ret_unit = 0;
	for (int i = 0; i < 4; i++, (*p)++) {
		int d = *p < t->end ? num_hex_digit(**p) : 0;
		if (*p == t->end)
			return wait_for(s, expected_hex);
		if (d < 0)
			return fail_byte(s, t, *p, expected_hex);
		*ret_unit = *ret_unit * 16 + (unsigned)d;
	}
	return 0;
}

// Reads a character after \u, which may be a surrogate pair. In a lenient scan each half is a character.
static int scan_unit(struct json_scan *s, struct piece *t, const char *p)
{
	unsigned unit, high = 0;
	for (;;) {
		int rc = scan_hex(s, t, &p, &unit);
		if (rc != 0)
			return rc;
		if (s->is_lenient)
			break;
		bool is_high = unit >= 0xd800 && unit <= 0xdbff, is_low = unit >= 0xdc00 && unit <= 0xdfff;
		if (unit == 0)
			return fail_byte(s, t, p - 1, "\\u0000 inside a string is not supported");
		if (is_low && !high)
			return fail_byte(s, t, p - 1, "second half of a surrogate pair without the first");
		if (!is_low && high)
			return fail_byte(s, t, p - 1, expected_half);
		if (!is_high)
			break;
		high = unit;
		for (int i = 0; i < 2; i++, p++) {
			if (p == t->end)
				return wait_for(s, expected_half);
			if (*p != "\\u"[i])
				return fail_byte(s, t, p, expected_half);
		}
	}
	t->p = p;
	return keep_char(s, high ? 0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00) : unit, t->e);
}

static int scan_escape(struct json_scan *s, struct piece *t)
{
	static const char after_backslash[] = "\"\\/bfnrt", meaning[] = "\"\\/\b\f\n\r\t";
	const char *p = t->p + 1;
	if (p == t->end)
		return wait_for(s, expected_escape);
	if (*p == 'u')
		return scan_unit(s, t, p + 1);
	const char *found = *p ? strchr(after_backslash, *p) : NULL;
	if (!found)
		return fail_byte(s, t, p, expected_escape);
	t->p = p + 1;
	return keep(s, meaning + (found - after_backslash), 1, t->e);
}

static int scan_char(struct json_scan *s, struct piece *t)
{
	unsigned char c = (unsigned char)*t->p;
	size_t left = (size_t)(t->end - t->p), n = utf8_char_len(t->p, left);
	if (n == 0 && left < (c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2))
		return wait_for(s, not_utf8);
	if (n == 0)
		return fail(s, t, not_utf8);
	t->p += n;
	return keep(s, t->p - n, n, t->e);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *p, const char *end, bool *ret_has_digits)
{
	const char *start = p;
	while (p < end && is_digit(*p))
		p++;
	*ret_has_digits = p > start;
	return p;
}

const char *json_scan_number_end(const char *p, const char *end, bool *ret_is_number)
{
	bool *ok = ret_is_number;
	p += *p == '-';
	*ok = p < end && *p == '0';
	p = *ok ? p + 1 : skip_digits(p, end, ok);
	if (*ok && p < end && *p == '.')
		p = skip_digits(p + 1, end, ok);
	if (*ok && p < end && (*p == 'e' || *p == 'E')) {
		p++;
		p = skip_digits(p + (p < end && (*p == '+' || *p == '-')), end, ok);
	}
	return p;
}

static int number_ended(struct json_scan *s, const char *text, size_t len, struct err *e)
{
	memmove(s->split, text, len);
	s->split[len] = '\0';
	s->state = AFTER_VALUE;
	return emit(s, &(struct json_token){JSON_NUMBER, s->split, len, len}, e);
}

static int scan_number(struct json_scan *s, struct piece *t)
{
	bool is_number;
	const char *start = t->p, *p = json_scan_number_end(start, t->end, &is_number);
	if (p - start > JSON_NUMBER_BYTES_MAX)
		return fail_at(s, ERR_LIMIT, s->token_at, *start, "this number is longer than the ceiling of 63 bytes",
		               t->e);
	if (p == t->end)
		return wait_for(s, is_number ? NULL : expected_digit);
	if (!is_number)
		return fail_byte(s, t, p, expected_digit);
	t->p = p;
	return number_ended(s, start, (size_t)(p - start), t->e);
}

static int scan_word(struct json_scan *s, struct piece *t)
{
	bool is_true = *t->p == 't', is_false = *t->p == 'f';
	const char *word = is_true ? "true" : is_false ? "false" : "null";
	size_t len = strlen(word), left = (size_t)(t->end - t->p);
	if (memcmp(t->p, word, left < len ? left : len) != 0)
		return fail(s, t, expected_value);
	if (left < len)
		return wait_for(s, expected_value);
	t->p += len;
	s->state = AFTER_VALUE;
	s->error_at = place_of(t) - 1;
	return emit_kind(s, is_true ? JSON_TRUE : is_false ? JSON_FALSE : JSON_NULL, t->e);
}

static bool is_word(char first)
{
	return first == 't' || first == 'f' || first == 'n';
}

static int scan_part(struct json_scan *s, struct piece *t)
{
	if (s->state == STRING)
		return *t->p == '\\' ? scan_escape(s, t) : scan_char(s, t);
	return is_word(*t->p) ? scan_word(s, t) : scan_number(s, t);
}

// Reads an escape, character, number or word, or moves its start to s->split.
static int scan_or_split(struct json_scan *s, struct piece *t)
{
	const char *start = t->p;
	int rc = scan_part(s, t);
	if (rc <= 0)
		return rc;
	s->split_at = place_of(t);
	s->split_len = (size_t)(t->end - start);
	memcpy(s->split, start, s->split_len);
	t->p = t->end;
	return 0;
}

// Reads what the previous piece ended within.
static int scan_split(struct json_scan *s, struct piece *t)
{
	while (t->p < t->end) {
		s->split[s->split_len++] = *t->p++;
		struct piece joined = {s->split, s->split, s->split + s->split_len, s->split_at, t->e};
		int rc = scan_part(s, &joined);
		if (rc < 0)
			return -1;
		if (rc > 0)
			continue;
		t->p -= joined.end - joined.p; // the byte after a number
		s->split_len = 0;
		return 0;
	}
	return 0;
}

static int scan_string(struct json_scan *s, struct piece *t)
{
	const char *run = t->p;
	unsigned char last = s->is_lenient ? 0xff : 0x7f;
	while ((t->p = skip_ordinary(t->p, t->end, last)) < t->end) {
		unsigned char c = (unsigned char)*t->p;
		if (c == '"')
			return string_ended(s, t, run);
		if (c < 0x20)
			return fail(s, t, "control characters in strings must be escaped");
		size_t n = c == '\\' ? 0 : utf8_char_len(t->p, (size_t)(t->end - t->p));
		if (n == 0)
			return keep(s, run, (size_t)(t->p - run), t->e) < 0 ? -1 : scan_or_split(s, t);
		t->p += n;
	}
	return keep(s, run, (size_t)(t->p - run), t->e);
}

// ---- the document ----

// t->p is at the first byte of a value.
static int value_begins(struct json_scan *s, struct piece *t)
{
	char c = *t->p;
	if (c == '{' || c == '[')
		return open_level(s, t, c == '{');
	if (c == '"') {
		string_begins(s, t, false);
		return 0;
	}
	if (c != '-' && !is_digit(c) && !is_word(c))
		return fail(s, t, expected_value);
	s->token_at = place_of(t);
	return scan_or_split(s, t);
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
			s->line_start = place_of(t);
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

static int scan_some(struct json_scan *s, struct piece *t)
{
	if (s->split_len > 0)
		return scan_split(s, t);
	return s->state == STRING ? scan_string(s, t) : scan_between(s, t);
}

bool json_scan_is_between(const struct json_scan *s)
{
	return s->depth == 0 && !s->has_failed && s->split_len == 0 && (s->state == VALUE || s->state == AFTER_VALUE);
}

int json_scan_feed(struct json_scan *s, const char *data, size_t len, struct err *e)
{
	struct piece t = {data, data, len ? data + len : data, s->offset, e};
	if (s->has_failed)
		return err_set(e, ERR_PROTOCOL, "JSON: an earlier part of it was broken");
	while (t.p < t.end) {
		s->error_at = place_of(&t); // place of an error of the callback
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
	};
	if (s->has_failed)
		return err_set(e, ERR_PROTOCOL, "JSON: an earlier part of it was broken");
	bool is_number = s->split_len > 0 && s->state != STRING && !is_word(s->split[0]);
	if (s->split_len > 0 && s->split[0] != '\\' && !is_number)
		return fail_at(s, ERR_PROTOCOL, s->split_at, s->split[0], s->missing, e);
	if (is_number && !s->missing) {
		if (number_ended(s, s->split, s->split_len, e) < 0)
			return -1;
		s->split_len = 0;
	}
	if (json_scan_is_between(s) && (s->state == AFTER_VALUE || s->is_sequence))
		return 0;
	const char *what = s->split_len > 0 ? s->missing : missing[s->state];
	if (s->state == AFTER_VALUE)
		what = in_object(s) ? "expected ',' or '}' after a member" : "expected ',' or ']' after an element";
	s->has_failed = true;
	s->error_at = s->offset;
	return err_set(e, ERR_PROTOCOL, "JSON %zu:%zu: the text ends early: %s", s->line, s->offset - s->line_start + 1,
	               what);
}
