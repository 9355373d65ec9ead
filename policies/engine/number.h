// SPDX-License-Identifier: Apache-2.0
// Arithmetic that neither overflows nor is undefined, for any input.
#ifndef GPUSCALE_POLICIES_ENGINE_NUMBER_H
#define GPUSCALE_POLICIES_ENGINE_NUMBER_H

#include <stdint.h>
#include <string.h>

#define TIME_NONE INT64_MIN // "never happened"

static inline int32_t i32_min(int32_t a, int32_t b)
{
	return a < b ? a : b;
}
static inline int32_t i32_max(int32_t a, int32_t b)
{
	return a > b ? a : b;
}
static inline float f32_min(float a, float b)
{
	return a < b ? a : b;
}
static inline float f32_max(float a, float b)
{
	return a > b ? a : b;
}
static inline uint32_t f32_bits(float x)
{
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	return bits;
}
static inline int64_t i64_max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}
static inline int32_t i32_from_i64(int64_t v)
{
	return v > INT32_MAX ? INT32_MAX : v < INT32_MIN ? INT32_MIN : (int32_t)v;
}
// Converts x, which is already rounded (ceil, floor, trunc), limited to the range of int32; NaN becomes 0.
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
// a + b, a - b and a * b, limited to the range of int64.
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
static inline int64_t i64_mul(int64_t a, int64_t b)
{
	int64_t r;
	if (__builtin_mul_overflow(a, b, &r))
		return (a < 0) == (b < 0) ? INT64_MAX : INT64_MIN;
	return r;
}
// The next multiple of m at or above v, which may exceed int32, and the last one at or below v. v >= 0; m <= 1 returns
// v.
static inline int64_t multiple_up(int32_t v, int32_t m)
{
	return m <= 1 ? v : ((int64_t)v + m - 1) / m * m;
}
static inline int32_t multiple_down(int32_t v, int32_t m)
{
	return m <= 1 ? v : v / m * m;
}

#endif
