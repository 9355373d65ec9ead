// SPDX-License-Identifier: Apache-2.0
// The functions and aggregations of PromQL, as one table: arguments, result, and what is known of the result's values.
#ifndef GPUSCALE_PROMQL_FUNCTIONS_H
#define GPUSCALE_PROMQL_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
