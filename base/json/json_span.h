// SPDX-License-Identifier: Apache-2.0
// Reads a few members of an object without building a tree: values are spans of the text. Use it for thousands of
// objects of which only a few members matter. When members share a name, the first counts.
// The text may be arbitrary: invalid JSON reads as absent, and no byte outside the span is read. Call
// json_span_is_whole() first where absence has a meaning.
#ifndef GPUSCALE_BASE_JSON_JSON_SPAN_H
#define GPUSCALE_BASE_JSON_JSON_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json_span {
	const char *text; // not NUL-terminated; NULL = absent
	size_t len;
};

#define JSON_SPAN_DEPTH_MAX 96

// Returns whether `s` is one JSON value with optional whitespace around it and at most JSON_SPAN_DEPTH_MAX levels.
// Checks that strings are terminated; json_span_text() validates the strings that are read.
bool json_span_is_whole(struct json_span s);

// Returns the type of the value by its first byte: '{' '[' '"' 't' 'f' 'n' for an object, array, string, true, false,
// null; '0' for anything else, a number; '\0': absent.
char json_span_kind(struct json_span s);

// Returns the value of the member `key` of `o`; absent when `o` is not an object or has no such member.
struct json_span json_span_get(struct json_span o, const char *key);
// Finds the members names[0..n) of `o` in one pass: sets ret[i] to the value of names[i].
void json_span_members(struct json_span o, const char *const *names, struct json_span *ret, size_t n);
// Returns the value at the end of a NULL-terminated path of keys.
struct json_span json_span_path(struct json_span o, const char *const *keys);
// Returns the first item of a list whose member `key` is `text`; absent when there is none.
struct json_span json_span_find(struct json_span list, const char *key, const char *text);

// Iterates over the members of an object or the elements of an array: zero the iterator and set `rest` to the value.
struct json_span_iter {
	struct json_span rest, key, value; // key: absent in an array
	bool is_inside;
};
bool json_span_next(struct json_span_iter *it);
// Returns the number of members of an object or elements of an array; 0 for any other value.
size_t json_span_count(struct json_span s);

// Writes the decoded text of a string to `out`; \u0000 and unpaired surrogates become '?'. Returns its length, or -1
// when `s` is not a string or needs more than `size` bytes with its NUL (then `out` is "").
int json_span_text(struct json_span s, char *out, size_t size);
// Returns whether `s` is the string `text`.
bool json_span_is(struct json_span s, const char *text);
// Reads an integer in [min, max]. Returns false when `s` is absent or anything else.
bool json_span_i64(struct json_span s, int64_t min, int64_t max, int64_t *ret_value);

#endif
