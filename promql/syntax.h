// SPDX-License-Identifier: Apache-2.0
// Reads a PromQL query in one pass, without a syntax tree: checks its grammar, types, numbers of arguments, durations
// and strings, and learns what is known of its values. The reader calls hooks for tokens and selectors, with which
// promql/confine.h rewrites queries and policies/lint checks them.
#ifndef GPUSCALE_PROMQL_SYNTAX_H
#define GPUSCALE_PROMQL_SYNTAX_H

#include "base/err.h"
#include "promql/lexer.h"

// ---- the functions and aggregations, as one table, and what is known of values without their data ----

#define PROMQL_ARGUMENTS_ANY 255

// What the values of a result say about those of the data argument: the first vector or range, else the first argument.
enum promql_effect {
	PROMQL_UNKNOWN, // nothing
	PROMQL_SAME,    // within the bounds of the argument, as an average or a maximum is
	PROMQL_TOTAL,   // has its sign, and is 0 when it is 0
	PROMQL_RATE,    // at least 0; 0 without traffic
	PROMQL_COUNT,   // a finite number that is at least 0
	PROMQL_ONE,     // 1
	PROMQL_ROUNDED, // within the bounds of the argument, rounded to whole numbers
	PROMQL_CLAMP,   // clamp(x, least, most)
	PROMQL_CLAMP_MIN,
	PROMQL_CLAMP_MAX,
	PROMQL_MEAN,  // mean of a histogram: not a number while the histogram is empty
	PROMQL_SHARE, // share of a histogram, from 0 to 1: as PROMQL_MEAN
	PROMQL_EFFECT__COUNT
};

struct promql_function {
	const char *name;
	// Types of the arguments: v instant vector, m range vector, s scalar, t string. More arguments than letters
	// have the last type.
	const char *arguments;
	unsigned char least, most; // number of arguments; PROMQL_ARGUMENTS_ANY: no upper limit
	char result;               // v or s
	unsigned char effect;      // enum promql_effect
	bool is_aggregation;       // by (..) and without (..) are permitted; case does not matter
	bool reads_more;           // reads series that its arguments do not select
	bool is_thanos;            // only Thanos has it
};

// Returns the row of a name of `len` bytes, NULL for an unknown one. Functions are case-sensitive, aggregations are
// not, as in PromQL.
const struct promql_function *promql_function_find(const char *name, size_t len);
// Returns the most similar name, NULL when no name is similar.
const char *promql_function_similar(const char *name, size_t len);

enum promql_value_type {
	PROMQL_VALUE_ANY, // after a mistake that was reported: fits everywhere
	PROMQL_VALUE_SCALAR,
	PROMQL_VALUE_VECTOR,
	PROMQL_VALUE_RANGE,
	PROMQL_VALUE_STRING,
	PROMQL_VALUE_TYPE__COUNT
};

// The known properties of the values of an expression.
struct promql_value {
	enum promql_value_type type;
	double low, high;        // no finite value lies outside; -INFINITY and INFINITY: unknown
	bool is_idle_zero;       // 0 without traffic
	bool is_idle_empty;      // has no samples without traffic
	struct promql_token nan; // if len > 0: the operator or function that gives NaN or infinity without traffic
	const char *start, *end; // range of the text
};

// The arguments that the value of a call depends on.
struct promql_arguments {
	struct promql_value data, limit[2]; // data: that of enum promql_effect; limit: arguments 2 and 3
	struct promql_value wrong;          // the first one of another type than `expected`
	enum promql_value_type expected;    // PROMQL_VALUE_ANY: all types are right
	bool has_data;
	size_t n;
};

// Binary operators in the order of their precedence.
enum promql_rank {
	PROMQL_RANK_OR,
	PROMQL_RANK_AND,
	PROMQL_RANK_COMPARE,
	PROMQL_RANK_ADD,
	PROMQL_RANK_MULTIPLY,
	PROMQL_RANK_POWER,
	PROMQL_RANK_OPERAND
};

struct promql_operation {
	enum promql_rank rank;
	char sign;     // + - * / % ^, < > = !, or the first letter of a word
	bool is_equal; // the second character is '='
	bool is_bool;
	bool has_labels; // on (..) or ignoring (..) with at least one label
	bool is_grouped; // group_left or group_right
	bool is_filled;
	struct promql_token token;
};

extern const struct promql_value promql_value_unknown; // value of type PROMQL_VALUE_ANY
// Returns the value of a number or a duration.
struct promql_value promql_value_of_number(const struct promql_token *t);
// Adds the next argument of a call of `f`; NULL: an unknown function.
void promql_arguments_add(struct promql_arguments *a, const struct promql_function *f, const struct promql_value *v);
// Sets *v to the value of a call.
void promql_value_apply(const struct promql_function *f, const struct promql_token *name,
                        const struct promql_arguments *a, struct promql_value *v);
// Sets *v, which may be a or b, to the value of the operation.
void promql_value_combine(const struct promql_operation *o, const struct promql_value *a, const struct promql_value *b,
                          struct promql_value *v);

// ---- the reader ----

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
