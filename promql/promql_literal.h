// SPDX-License-Identifier: Apache-2.0
// The literals of PromQL: numbers, durations and escapes in strings.
#ifndef GPUSCALE_PROMQL_PROMQL_LITERAL_H
#define GPUSCALE_PROMQL_PROMQL_LITERAL_H

#include <stdbool.h>
#include <stddef.h>

// Returns whether p[0..len) is a number: 12, .5, 1e-3, 0x1f, 1_000.
bool promql_is_number(const char *p, size_t len);
// Returns whether p[0..len) looks like a duration on some server: "1h30m", also "1.5h", in any order of the units.
bool promql_is_duration(const char *p, size_t len);
// Returns the length of the valid escape sequence of a string in quotes `quote` that starts with the backslash at p;
// 0 when it is invalid.
size_t promql_escape_len(const char *p, char quote);

#endif
