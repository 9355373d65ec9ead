// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/watch_scan.h"

#include <stdio.h>
#include <string.h>

#include "base/err.h"

// The position among the members of the outermost object.
enum member_state {
	FIRST_NAME, // or '}'
	NEXT_NAME,
	IN_NAME,
	BEFORE_COLON,
	BEFORE_VALUE,
	IN_TEXT,   // a string
	IN_SCALAR, // a number, true, false, null
	IN_NESTED, // an object or array
	AFTER_VALUE,
};

// The position among the elements of "items".
enum item_state {
	FIRST_ITEM, // or ']'
	NEXT_ITEM,
	AFTER_ITEM,
};

void watch_scan_init(struct watch_scan *s, enum watch_scan_mode mode, size_t object_bytes_max, watch_part_fn *fn,
                     void *arg)
{
	*s = (struct watch_scan){.mode = mode, .object_bytes_max = object_bytes_max, .fn = fn, .arg = arg};
	buf_init(&s->part, object_bytes_max);
}

void watch_scan_done(struct watch_scan *s)
{
	buf_done(&s->part);
}

bool watch_scan_is_between(const struct watch_scan *s)
{
	return s->depth == 0 && !s->has_failed;
}

static int fail(struct watch_scan *s, struct err *e, const char *what)
{
	s->has_failed = true;
	return err_set(e, ERR_PROTOCOL, "%s: %s", s->mode == WATCH_SCAN_LIST ? "list" : "watch event", what);
}

// ---- the captured part ----

static void capture_begin(struct watch_scan *s)
{
	s->is_capturing = true;
	s->is_too_large = false;
	s->capture_depth = s->depth;
	s->part_bytes = 0;
}

// Keeps run[0..len), the end of a piece that ends inside an object.
static int capture_keep(struct watch_scan *s, const char *run, size_t len, struct err *e)
{
	s->part_bytes += len;
	if (s->part_bytes > s->object_bytes_max) {
		s->is_too_large = true;
		buf_done(&s->part);
	}
	if (s->is_too_large || buf_put(&s->part, run, len) == 0)
		return 0;
	s->has_failed = true;
	return err_set(e, ERR_INTERNAL, "out of memory for an object of %zu bytes", s->part_bytes);
}

static void emit(struct watch_scan *s, enum watch_part part, const char *json, size_t len)
{
	if (s->is_too_large) {
		s->fn(s->arg, WATCH_PART_TOO_LARGE, s->type, NULL, s->part_bytes);
		return;
	}
	s->fn(s->arg, part, s->type, json, len);
}

// run[0..len) is the end of the object.
static int capture_end(struct watch_scan *s, const char *run, size_t len, struct err *e)
{
	enum watch_part part = s->in_items                  ? WATCH_PART_ITEM
	                       : s->mode == WATCH_SCAN_LIST ? WATCH_PART_METADATA
	                                                    : WATCH_PART_EVENT;
	s->is_capturing = false;
	bool is_whole = s->part_bytes == 0 && len <= s->object_bytes_max; // it arrived in one piece: no copy
	bool waits = part == WATCH_PART_EVENT && !s->has_type;
	if (is_whole && !waits) {
		emit(s, part, run, len);
		return 0;
	}
	if (capture_keep(s, run, len, e) < 0)
		return -1;
	s->is_held = waits;
	if (waits)
		return 0;
	emit(s, part, buf_str(&s->part), s->part.len);
	buf_done(&s->part);
	return 0;
}

static void value_ended(struct watch_scan *s)
{
	s->member = AFTER_VALUE;
	s->in_items = false;
}

static int document_ended(struct watch_scan *s, struct err *e)
{
	// Without "items" it is not a list: an empty list would mean that every object was deleted.
	if (!s->has_wanted)
		return fail(s, e, s->mode == WATCH_SCAN_LIST ? "it has no items" : "it has no object");
	s->is_done = s->mode == WATCH_SCAN_LIST;
	if (s->is_held)
		emit(s, WATCH_PART_EVENT, buf_str(&s->part), s->part.len);
	buf_done(&s->part);
	s->is_held = s->has_type = s->is_too_large = false;
	s->fn(s->arg, WATCH_PART_END, s->type, NULL, 0);
	s->type[0] = '\0';
	return 0;
}

// ---- the outermost object ----

static bool name_is(const struct watch_scan *s, const char *name)
{
	return strcmp(s->name, name) == 0;
}

static const char *wanted_name(const struct watch_scan *s)
{
	return s->mode == WATCH_SCAN_LIST ? "items" : "object";
}

static bool wants_object(const struct watch_scan *s)
{
	return name_is(s, s->mode == WATCH_SCAN_LIST ? "metadata" : "object");
}

static int open_bracket(struct watch_scan *s, char c, struct err *e)
{
	if (s->depth == WATCH_SCAN_DEPTH_MAX) {
		s->has_failed = true;
		return err_set(e, ERR_LIMIT, "JSON nested deeper than the ceiling of %d levels", WATCH_SCAN_DEPTH_MAX);
	}
	s->closers[s->depth++] = c == '{' ? '}' : ']';
	return 0;
}

// "items" may be null: some servers send that for an empty list.
static int check_wanted(struct watch_scan *s, char c, struct err *e)
{
	if (s->has_wanted)
		return fail(s, e, s->mode == WATCH_SCAN_LIST ? "items comes twice" : "object comes twice");
	if (s->mode == WATCH_SCAN_LIST && c != '[' && c != 'n')
		return fail(s, e, "items is not a list");
	if (s->mode == WATCH_SCAN_EVENTS && c != '{')
		return fail(s, e, "object is not an object");
	s->has_wanted = true;
	return 0;
}

static void take_scalar_byte(struct watch_scan *s, char c)
{
	static const char null[] = "null";
	s->null_len = s->null_len < sizeof null - 1 && c == null[s->null_len] ? s->null_len + 1 : sizeof null;
}

static int scalar_ended(struct watch_scan *s, struct err *e)
{
	if (name_is(s, wanted_name(s)) && s->null_len != 4)
		return fail(s, e, "items is not a list");
	value_ended(s);
	return 0;
}

// c starts a value of the outermost object.
static int value_begins(struct watch_scan *s, char c, struct err *e)
{
	if (name_is(s, wanted_name(s)) && check_wanted(s, c, e) < 0)
		return -1;
	if (c == '"') {
		s->member = IN_TEXT;
		s->in_string = true;
		s->in_type = s->mode == WATCH_SCAN_EVENTS && name_is(s, "type");
		s->name_len = 0;
		return 0;
	}
	if (c != '{' && c != '[') {
		s->member = IN_SCALAR;
		s->null_len = 0;
		take_scalar_byte(s, c);
		return 0;
	}
	s->member = IN_NESTED;
	s->item = FIRST_ITEM;
	s->in_items = c == '[' && s->mode == WATCH_SCAN_LIST && name_is(s, "items");
	if (c == '{' && wants_object(s))
		capture_begin(s);
	return open_bracket(s, c, e);
}

// Processes a byte of the outermost object outside strings and nested values.
static int member_byte(struct watch_scan *s, char c, struct err *e)
{
	bool is_blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
	if (s->member == IN_SCALAR) {
		if (c == ',' || c == '}' || is_blank) {
			if (scalar_ended(s, e) < 0)
				return -1;
		} else if (c == '"' || c == '{' || c == '[' || c == ']' || c == ':') {
			return fail(s, e, "expected ',' or '}' after a value");
		} else {
			take_scalar_byte(s, c);
		}
	}
	if (is_blank || s->member == IN_SCALAR)
		return 0;
	if (s->depth == 0) {
		if (s->is_done)
			return fail(s, e, "expected nothing after it");
		if (c != '{')
			return fail(s, e, "expected a JSON object");
		s->member = FIRST_NAME;
		s->has_type = s->has_wanted = false;
		return open_bracket(s, c, e);
	}
	switch (s->member) {
	case FIRST_NAME:
	case NEXT_NAME:
		if (c == '"') {
			s->member = IN_NAME;
			s->in_string = true;
			s->name_len = 0;
			return 0;
		}
		if (c != '}' || s->member == NEXT_NAME)
			return fail(s, e, "expected a member name");
		break;
	case BEFORE_COLON:
		if (c != ':')
			return fail(s, e, "expected ':' after a member name");
		s->member = BEFORE_VALUE;
		return 0;
	case BEFORE_VALUE:
		return value_begins(s, c, e);
	default:
		if (c == ',') {
			s->member = NEXT_NAME;
			return 0;
		}
		if (c != '}')
			return fail(s, e, "expected ',' or '}' after a member");
		break;
	}
	s->depth = 0;
	return document_ended(s, e);
}

// ---- strings ----

// A name or type that is longer than any relevant one is not relevant.
static void take_name_byte(struct watch_scan *s, char c)
{
	if (s->name_len < WATCH_SCAN_NAME_BYTES)
		s->name[s->name_len] = c;
	s->name_len += s->name_len < WATCH_SCAN_NAME_BYTES;
}

static void string_ended(struct watch_scan *s)
{
	s->in_string = false;
	if (s->depth != 1)
		return;
	bool is_short = s->name_len < WATCH_SCAN_NAME_BYTES;
	if (s->member == IN_NAME) {
		s->name[is_short ? s->name_len : 0] = '\0';
		s->member = BEFORE_COLON;
		return;
	}
	if (s->in_type) {
		size_t n = is_short ? s->name_len : 0;
		memcpy(s->type, s->name, n);
		s->type[n] = '\0';
		s->has_type = true;
	}
	s->in_type = false;
	value_ended(s);
}

// Processes text[at..len) until the string ends. Returns the position behind it.
static size_t scan_string(struct watch_scan *s, const char *text, size_t at, size_t len)
{
	bool is_name = s->depth == 1;
	for (; at < len; at++) {
		char c = text[at];
		if (s->is_escaped) {
			s->is_escaped = false;
		} else if (c == '\\') {
			s->is_escaped = true;
		} else if (c == '"') {
			string_ended(s);
			return at + 1;
		}
		if (is_name)
			take_name_byte(s, c);
	}
	return at;
}

// ---- nested values ----

// Processes a byte between the elements of "items".
static int item_byte(struct watch_scan *s, char c, struct err *e)
{
	if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
		return 0;
	if (c == ']' && s->item != NEXT_ITEM)
		return 0;
	if (s->item == AFTER_ITEM) {
		s->item = NEXT_ITEM;
		return c == ',' ? 0 : fail(s, e, "expected ',' or ']' after an item");
	}
	s->item = AFTER_ITEM;
	return c == '{' ? 0 : fail(s, e, "an item is not an object");
}

int watch_scan_feed(struct watch_scan *s, const char *data, size_t len, struct err *e)
{
	if (s->has_failed)
		return fail(s, e, "an earlier part of it was broken");
	size_t run = 0; // where the captured part starts in this piece
	for (size_t i = 0; i < len;) {
		if (s->in_string) {
			i = scan_string(s, data, i, len);
			continue;
		}
		char c = data[i++];
		if (s->depth < 2) {
			if (member_byte(s, c, e) < 0)
				return -1;
			if (s->is_capturing)
				run = i - 1; // it starts with this byte
			continue;
		}
		bool is_between_items = s->in_items && s->depth == 2;
		if (is_between_items && item_byte(s, c, e) < 0)
			return -1;
		if (c == '"') {
			s->in_string = true;
		} else if (c == '{' || c == '[') {
			if (is_between_items) {
				capture_begin(s);
				run = i - 1;
			}
			if (open_bracket(s, c, e) < 0)
				return -1;
		} else if (c == '}' || c == ']') {
			if (s->closers[s->depth - 1] != c)
				return fail(s, e, "brackets do not match");
			s->depth--;
			if (s->is_capturing && s->depth == s->capture_depth &&
			    capture_end(s, data + run, i - run, e) < 0)
				return -1;
			if (s->depth == 1)
				value_ended(s);
		}
	}
	return s->is_capturing ? capture_keep(s, data + run, len - run, e) : 0;
}
