// SPDX-License-Identifier: Apache-2.0
// Times of the query API: seconds since the epoch as a JSON number. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_TIME_H
#define GPUSCALE_PROMQL_PROMQL_TIME_H

#include <stddef.h>
#include <stdint.h>

// Reads the JSON number text[0..len), in seconds since the epoch, and sets *ret_ms to it, rounded to milliseconds. -1
// when it is not a number, or so large that a double does not represent its milliseconds; *ret_ms is then untouched.
int promql_time_parse(const char *text, size_t len, int64_t *ret_ms);

#endif
