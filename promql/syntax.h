// SPDX-License-Identifier: Apache-2.0
// Reads a PromQL query in one pass, without a syntax tree: checks its grammar, types, numbers of arguments, durations
// and strings, and learns what is known of its values. The reader calls hooks for tokens and selectors, with which
// promql/confine.h rewrites queries and policies/lint checks them.
#ifndef GPUSCALE_PROMQL_SYNTAX_H
#define GPUSCALE_PROMQL_SYNTAX_H

#include "base/err.h"
#include "promql/functions.h"
#include "promql/lexer.h"

#define PROMQL_DEPTH_MAX 64 // nested parentheses

// The start of a selector, or one of its matchers.
struct promql_matcher {
	struct promql_token label; // quoted or not; the quoted name of a metric: its string
	bool is_name;              // label is the quoted name of a metric, and has no value
	bool is_not, is_regex;
	struct promql_token value; // not checked yet: any token
};

struct promql_syntax {
	const char *query; // NUL-terminated
	// Refuses what servers read differently or what reads series without naming them: metrics named as keywords,
	// functions of no known server, backslashes in backquotes, experimental syntax. Accepts selectors without a
	// matcher, which `selector` completes.
	bool is_strict;
	bool is_thanos; // the functions of Thanos exist, too
	void *arg;      // argument of the hooks, which may be NULL
	// Called for each token, in order, once it is known to fit; has_gap: space or a comment precedes it.
	void (*token)(void *arg, const struct promql_token *token, bool has_gap);
	// Called for each item in braces, before the token of its value. To refuse the query, return
	// promql_syntax_refuse().
	int (*matcher)(void *arg, const struct promql_matcher *matcher);
	// Called at the end of each selector: before the closing brace, or behind a name without braces.
	// name: of kind PROMQL_TOKEN_END without a name. needs_comma: a matcher without a comma precedes the brace.
	// may_be_empty: the selector reads no series itself. value: to be narrowed by the name.
	void (*selector)(void *arg, const struct promql_token *name, bool has_braces, bool needs_comma,
	                 bool may_be_empty, struct promql_value *value);
	// Called for each mistake that does not prevent reading on; query[offset..offset + len) is the place.
	void (*mistake)(void *arg, size_t offset, size_t len, const char *message);

	// ---- private ----
	const char *at; // behind the next token
	struct promql_token next;
	bool has_gap;
	const char *end;  // end of the last token that was accepted
	const char *open; // the innermost bracket that is not closed; NULL: none
	int depth;
	bool is_label_argument; // the next selector is an argument that only selects labels
	size_t error_at, error_len;
	struct err *e;
};

// Reads the query. Returns 0, or -1 when it cannot be read to its end: *e (ERR_INPUT, or ERR_LIMIT when it is nested
// deeper than PROMQL_DEPTH_MAX) has the reason, and query[*ret_offset .. *ret_offset + *ret_len) is the place.
int promql_syntax_read(struct promql_syntax *s, struct promql_value *ret_value, size_t *ret_offset, size_t *ret_len,
                       struct err *e);
// Refuses the query at `where`: for the hook `matcher`. Returns -1.
int promql_syntax_refuse(struct promql_syntax *s, const char *where, const char *why);

#endif
