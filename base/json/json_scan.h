// SPDX-License-Identifier: Apache-2.0
// Scans JSON that arrives in pieces of any size and calls back for every token. The scanner keeps only the token that
// is split between two pieces and one bit for each open level, so its memory does not grow with the text.
// Strict, as RFC 8259: valid UTF-8 only, no raw control characters in strings, no \u0000, numbers up to 63 bytes, at
// most JSON_DEPTH_MAX levels, one document with nothing but whitespace around it. A caller may set a member of the
// scanner that relaxes this. The caller handles members with equal names.
#ifndef GPUSCALE_BASE_JSON_JSON_SCAN_H
#define GPUSCALE_BASE_JSON_JSON_SCAN_H

#include <stdint.h>

#include "base/buf.h"

struct err;

#define JSON_DEPTH_MAX        64
#define JSON_NUMBER_BYTES_MAX 63 // cJSON truncates longer numbers

enum json_token_kind {
	JSON_OBJECT_BEGIN,
	JSON_OBJECT_END,
	JSON_ARRAY_BEGIN,
	JSON_ARRAY_END,
	JSON_KEY, // the key of the member whose value follows
	JSON_STRING,
	JSON_NUMBER,
	JSON_TRUE,
	JSON_FALSE,
	JSON_NULL,
};

// `text` is the decoded text of a key or string, or the digits of a number; valid during the call, not NUL-terminated.
// A key or string longer than the scanner's limit is cut there: `bytes` is its whole length.
struct json_token {
	enum json_token_kind kind;
	const char *text;
	size_t len, bytes;
};
// Called for every token. Return 0 to continue, or -1 and *e to stop the scan. May read the scanner's depth, which
// includes a container that starts with this token and excludes one that ends with it.
typedef int json_token_fn(void *arg, const struct json_token *token, struct err *e);

struct json_scan {
	json_token_fn *fn; // NULL: the text is only validated
	void *arg;
	bool is_sequence; // documents may follow each other
	bool is_lenient;  // strings may contain any \uXXXX and any byte from 0x20 on
	// Memory of the caller for the types of more levels: 64 in each of n_levels words. NULL: JSON_DEPTH_MAX levels.
	uint64_t *levels;
	size_t n_levels;
	size_t depth;
	// The byte of the text, from 0, at which a failure was noticed; in a callback for a bracket, the bracket.
	size_t error_at;
	// Private to the scanner.
	uint64_t objects; // bit n is set when open level n is an object; without `levels`
	int state;        // enum state of json_scan.c
	bool has_failed;
	size_t offset, line, line_start; // position of the current piece in the text; lines count from 1
	// The token in progress.
	size_t token_at; // its position in the text
	bool is_key;
	struct buf kept; // the part of a string from earlier pieces, escapes decoded
	size_t bytes;    // bytes of the string
	// The start of a number, word, escape or character that the previous piece ended within.
	char split[JSON_NUMBER_BYTES_MAX + 2];
	size_t split_len, split_at; // split_at: its position in the text
	const char *missing;        // what is expected after it; NULL: nothing, it is a number
};
_Static_assert(JSON_DEPTH_MAX <= 64, "json_scan.objects has one bit per level");

// Initializes the scanner. Keeps at most string_bytes_max bytes of a key or string. Allocates nothing.
void json_scan_init(struct json_scan *s, size_t string_bytes_max, json_token_fn *fn, void *arg);
void json_scan_done(struct json_scan *s);
// Starts a new text; reuses the memory.
void json_scan_reset(struct json_scan *s);
// Returns whether the text so far ends before or behind a whole document.
bool json_scan_is_between(const struct json_scan *s);
// Scans the next `len` bytes. Returns 0, or -1 and *e: ERR_PROTOCOL with "JSON line:col: " (col in bytes), ERR_LIMIT
// (depth, length of a number), ERR_INTERNAL (out of memory), or the error of fn. After an error, every further call
// fails.
int json_scan_feed(struct json_scan *s, const char *data, size_t len, struct err *e);
// Ends the text. Returns -1 and *e as json_scan_feed when the document is incomplete.
int json_scan_finish(struct json_scan *s, struct err *e);

// Returns where the number at p ends, or cannot continue; *ret_is_number is false when it lacks a digit there. p < end.
const char *json_scan_number_end(const char *p, const char *end, bool *ret_is_number);

#endif
