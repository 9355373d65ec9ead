// SPDX-License-Identifier: Apache-2.0
// Splits PromQL into tokens. Purely lexical: accepts any text, whether or not it is a valid query.
#ifndef GPUSCALE_PROMQL_LEXER_H
#define GPUSCALE_PROMQL_LEXER_H

#include <stdbool.h>
#include <stddef.h>

enum promql_token_kind {
	PROMQL_TOKEN_END,    // end of the text
	PROMQL_TOKEN_NAME,   // metric, function, keyword, label: letters, digits, '_', ':'
	PROMQL_TOKEN_NUMBER, // number or duration: "0.5", "1e-3", "0x1f", "1_000", "5m"; any letters may follow the
	                     // first digit
	PROMQL_TOKEN_STRING, // with its quotes; an unclosed one extends to the end of the text
	PROMQL_TOKEN_SIGN,   // any other character
	PROMQL_TOKEN__COUNT
};

struct promql_token {
	enum promql_token_kind kind;
	const char *start;
	size_t len;
	bool is_open; // a STRING without its closing quote
};

// Returns the next token of the NUL-terminated text at *p, skipping spaces and comments, and moves *p behind it.
struct promql_token promql_next(const char **p);
bool promql_token_is_sign(const struct promql_token *t, char sign);
// Returns whether the token is a NAME in words (NULL-terminated), ignoring case as PromQL does for keywords.
bool promql_token_is_word(const struct promql_token *t, const char *const *words);
// Returns the position behind the bracket that closes the bracket `open` at p, ignoring strings; NULL when it is not
// closed.
const char *promql_skip_brackets(const char *p, char open, char close);

extern const char *const promql_label_list_words[]; // keywords that a list of labels follows: by, on, ..
extern const char *const promql_aggregations[];     // sum, avg, ..
extern const char *const promql_other_words[]; // operators and other names that are not metrics: and, offset, inf, ..

// ---- literals: numbers, durations and escapes in strings ----

// Returns whether p[0..len) is a number: 12, .5, 1e-3, 0x1f, 1_000.
bool promql_is_number(const char *p, size_t len);
// Returns whether p[0..len) looks like a duration on some server: "1h30m", also "1.5h", in any order of the units.
bool promql_is_duration(const char *p, size_t len);
// Returns the length of the valid escape sequence of a string in quotes `quote` that starts with the backslash at p;
// 0 when it is invalid.
size_t promql_escape_len(const char *p, char quote);

#endif
