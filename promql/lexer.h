// SPDX-License-Identifier: Apache-2.0
// PromQL as a row of words. Purely lexical: takes any text, and says nothing about whether it means anything.
#ifndef GPUSCALE_PROMQL_LEXER_H
#define GPUSCALE_PROMQL_LEXER_H

#include <stdbool.h>
#include <stddef.h>

enum promql_token_kind {
	PROMQL_TOKEN_END,    // of the text
	PROMQL_TOKEN_NAME,   // metric, function, keyword, label: letters, digits, '_', ':'
	PROMQL_TOKEN_NUMBER, // number or duration: "0.5", "1e3", "0x1f", "5m"
	PROMQL_TOKEN_STRING, // with its quotes; one that is not closed goes to the end of the text
	PROMQL_TOKEN_SIGN,   // one character of anything else
	PROMQL_TOKEN__COUNT
};

struct promql_token {
	enum promql_token_kind kind;
	const char *start;
	size_t len;
};

// The token at or behind *p (NUL-terminated text), blanks and comments skipped; moves *p behind it.
struct promql_token promql_next(const char **p);
bool promql_token_is_sign(const struct promql_token *t, char sign);
// A NAME that is one of words (NULL-terminated), without regard to case, as PromQL's keywords are.
bool promql_token_is_word(const struct promql_token *t, const char *const *words);
// Behind the bracket that closes the `open` at p, strings inside respected; NULL if it is not closed.
const char *promql_skip_brackets(const char *p, char open, char close);

extern const char *const promql_label_list_words[]; // keywords that a list of labels follows: by, on, ..
extern const char *const promql_aggregations[];     // sum, avg, ..
extern const char *const promql_other_words[]; // operators and other names that are no metric: and, offset, inf, ..

#endif
