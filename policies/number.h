// SPDX-License-Identifier: Apache-2.0
// Arithmetic that cannot overflow or be undefined, whatever numbers come from outside.
#ifndef GPUSCALE_POLICIES_NUMBER_H
#define GPUSCALE_POLICIES_NUMBER_H

#include <stdint.h>

#define TIME_NONE INT64_MIN // "never happened"

static inline int32_t i32_min(int32_t a, int32_t b)
{
	return a < b ? a : b;
}
static inline int32_t i32_max(int32_t a, int32_t b)
{
	return a > b ? a : b;
}
static inline int64_t i64_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}
static inline int32_t i32_from_i64(int64_t v)
{
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
// x must be whole already (ceil, floor, trunc); NaN gives 0.
static inline int32_t i32_from_whole(double x)
{
	if (x >= (double)INT32_MAX)
		return INT32_MAX;
	if (x <= (double)INT32_MIN)
		return INT32_MIN;
	return x == x ? (int32_t)x : 0;
}
// As i32_from_whole, and never below 0.
static inline int32_t replicas_from_whole(double x)
{
	return i32_max(i32_from_whole(x), 0);
}
// a + b and a - b, held at the ends of the range.
static inline int64_t i64_add(int64_t a, int64_t b)
{
	int64_t r;
	if (__builtin_add_overflow(a, b, &r))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return r;
}
static inline int64_t i64_sub(int64_t a, int64_t b)
{
	int64_t r;
	if (__builtin_sub_overflow(a, b, &r))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return r;
}
// The next multiple of m at or above v (which no int32 may hold), the last one at or below v. v >= 0; m <= 1 gives v.
static inline int64_t multiple_up(int32_t v, int32_t m)
{
	return m <= 1 ? v : ((int64_t)v + m - 1) / m * m;
}
static inline int32_t multiple_down(int32_t v, int32_t m)
{
	return m <= 1 ? v : v / m * m;
}

#endif
