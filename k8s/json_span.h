// SPDX-License-Identifier: Apache-2.0
// Reads a few members of an object without building a tree of it: values are spans of the text. For objects that come
// by the thousand and of which little matters. Of members with one name the first counts.
// The text may be anything: what is not JSON reads as absent, and nothing outside of the span is touched. Where absent
// means something, json_span_is_whole() is asked before.
#ifndef GPUSCALE_K8S_JSON_SPAN_H
#define GPUSCALE_K8S_JSON_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_span {
	const char *text; // not NUL-terminated; NULL = absent
	size_t len;
};

#define JSON_SPAN_DEPTH_MAX 96

// Is it one JSON value, blanks around it allowed: brackets, members, literals and numbers as the grammar has them, at
// most JSON_SPAN_DEPTH_MAX levels? Strings only have to end; json_span_text() looks into those that are read.
bool json_span_is_whole(struct json_span s);

// What its first byte says it is: '{' '[' '"' 't' 'f' 'n' for an object, array, string, true, false, null; '0' for
// anything else, a number; '\0': absent.
char json_span_kind(struct json_span s);

// The value of o's member `key`; absent when o is no object or has none.
struct json_span json_span_get(struct json_span o, const char *key);
// The value at the end of a path of keys, NULL-terminated.
struct json_span json_span_path(struct json_span o, const char *const *keys);

// Goes through an object's members or an array's elements: zero the iterator, set `rest` to the value.
struct json_span_iter {
	struct json_span rest, key, value; // key: absent in an array
	bool is_inside;
};
bool json_span_next(struct json_span_iter *it);

// Writes a string's text to out, escapes resolved; \u0000 and halves of surrogate pairs become '?'. Returns its length;
// -1 when it is no string or needs more than size bytes with its NUL (out is "" then).
int json_span_text(struct json_span s, char *out, size_t size);
// Is it the string `text`?
bool json_span_is(struct json_span s, const char *text);
// A whole number in [min, max]. False when absent or anything else.
bool json_span_i64(struct json_span s, int64_t min, int64_t max, int64_t *ret_value);

#endif
