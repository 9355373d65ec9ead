// SPDX-License-Identifier: Apache-2.0
#include "base/num.h"

#include <assert.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num_text.h"
#include "base/text.h"

#define PLAIN_EXPONENT_MIN (-4)
#define PLAIN_EXPONENT_MAX 15

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

const char *num_shown(char *out, const char *s, size_t len)
{
	size_t n = text_show(out + 1, NUM_SHOWN_BYTES - 2, s, len);
	out[0] = '"';
	memcpy(out + 1 + n, "\"", 2);
	return out;
}

int num_check_len(const char *s, size_t len, const char *what, const char *fix, struct err *e)
{
	char shown[NUM_SHOWN_BYTES];
	if (len == 0)
		return err_set(e, ERR_INPUT, "empty text: expected %s, for example %s", what, fix);
	if (len > NUM_INPUT_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "%s has %zu bytes, more than the ceiling of %d for %s",
		               num_shown(shown, s, len), len, NUM_INPUT_BYTES_MAX, what);
	return 0;
}

int num_parse_i64(const char *s, size_t len, int64_t min, int64_t max, int64_t *ret_value, struct err *e)
{
	char shown[NUM_SHOWN_BYTES];
	if (num_check_len(s, len, "a whole number", "8", e) < 0)
		return -1;
	bool negative = s[0] == '-', fits = true;
	size_t i = negative;
	int64_t v = 0;                                 // kept negative: INT64_MIN has no positive twin
	for (size_t at = i; i < len || i == at; i++) { // a lone '-' enters once, to be refused
		if (i == len || !is_digit(s[i]))
			return err_set(e, ERR_INPUT,
			               "%s is not a whole number: expected decimal digits only, from %lld to %lld",
			               num_shown(shown, s, len), (long long)min, (long long)max);
		if (fits && (__builtin_mul_overflow(v, 10, &v) || __builtin_sub_overflow(v, s[i] - '0', &v)))
			fits = false;
	}
	if (fits && !negative && __builtin_sub_overflow((int64_t)0, v, &v))
		fits = false;
	if (!fits || v < min || v > max)
		return err_set(e, ERR_INPUT, "%s is out of range: expected a whole number from %lld to %lld",
		               num_shown(shown, s, len), (long long)min, (long long)max);
	*ret_value = v;
	return 0;
}

// Length of the longest prefix of s[0..len) that is [+-](digits[.digits*]|.digits), 0 if there is none.
static size_t mantissa_len(const char *s, size_t len)
{
	size_t i = len && (s[0] == '+' || s[0] == '-'), digits = 0;
	for (; i < len && is_digit(s[i]); i++)
		digits++;
	if (i < len && s[i] == '.')
		for (i++; i < len && is_digit(s[i]); i++)
			digits++;
	return digits ? i : 0;
}

// True when s[0..len) is [eE][+-]digits, whole.
static bool is_exponent(const char *s, size_t len)
{
	if (len < 2 || (s[0] != 'e' && s[0] != 'E'))
		return false;
	size_t i = s[1] == '+' || s[1] == '-' ? 2 : 1;
	if (i == len)
		return false;
	for (; i < len; i++)
		if (!is_digit(s[i]))
			return false;
	return true;
}

int num_hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Reads a decimal of at most 15 digits without exponent, as most numbers are. Its digits as a whole number and the
// power of ten are exact doubles, so their quotient is the double nearest to the decimal (Clinger 1990).
static bool short_value(const char *s, size_t len, double *ret_value)
{
	static const double powers[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
	                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
	if (len > 17) // with sign and point
		return false;
	int64_t digits = 0;
	size_t n = 0, point = len;
	bool negative = s[0] == '-';
	for (size_t i = negative || s[0] == '+'; i < len; i++) {
		if (s[i] == '.') {
			point = i + 1;
		} else if (is_digit(s[i])) {
			digits = digits * 10 + (s[i] - '0');
			n++;
		} else {
			return false;
		}
	}
	if (n > 15)
		return false;
	double v = (double)digits / powers[len - point];
	*ret_value = negative ? -v : v;
	return true;
}

// s[0..len) is decimal with an optional exponent, checked by the caller. The "C" locale object costs nothing in glibc
// and musl: newlocale returns a constant for it.
static double decimal_value(const char *s, size_t len, const char *exponent)
{
	char text[NUM_INPUT_BYTES_MAX + 8];
	double v;
	if (exponent[0] == '\0' && short_value(s, len, &v))
		return v;
	assert(len + strlen(exponent) < sizeof text);
	memcpy(text, s, len);
	memcpy(text + len, exponent, strlen(exponent) + 1);
	locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	assert(c);
	v = strtod_l(text, NULL, c);
	freelocale(c);
	return v;
}

static int out_of_range(const char *s, size_t len, struct err *e)
{
	char shown[NUM_SHOWN_BYTES];
	return err_set(e, ERR_INPUT, "%s is out of range: expected a number between -1.8e308 and 1.8e308",
	               num_shown(shown, s, len));
}

static int parse_decimal(const char *s, size_t len, const char *what, double *ret_value, struct err *e)
{
	char shown[NUM_SHOWN_BYTES];
	if (num_check_len(s, len, what, "0.7", e) < 0)
		return -1;
	size_t m = mantissa_len(s, len);
	if (m == 0 || (m < len && !is_exponent(s + m, len - m)))
		return err_set(e, ERR_INPUT, "%s is not a number: expected %s, for example 0.7 or -1e3",
		               num_shown(shown, s, len), what);
	double v = decimal_value(s, len, "");
	if (!isfinite(v))
		return out_of_range(s, len, e);
	*ret_value = v;
	return 0;
}

int num_parse_f64(const char *s, size_t len, double *ret_value, struct err *e)
{
	return parse_decimal(s, len, "a finite decimal number", ret_value, e);
}

int num_parse_sample(const char *s, size_t len, double *ret_value, struct err *e)
{
	static const struct {
		const char *text;
		double value;
	} specials[] = {{"NaN", NAN}, {"+Inf", INFINITY}, {"-Inf", -INFINITY}, {"Inf", INFINITY}};
	bool is_plain = len > 0 && is_digit(s[0]);
	for (size_t i = 0; !is_plain && i < sizeof specials / sizeof specials[0]; i++)
		if (strlen(specials[i].text) == len && memcmp(specials[i].text, s, len) == 0) {
			*ret_value = specials[i].value;
			return 0;
		}
	return parse_decimal(s, len, "a decimal number, NaN, +Inf or -Inf", ret_value, e);
}

int num_parse_quantity(const char *s, size_t len, double *ret_value, struct err *e)
{
	static const struct {
		const char *suffix;
		const char *exponent; // decimal power: through the text, so that 700m is exactly the double 0.7
		int power_of_two;
	} suffixes[] = {
	        {"", "", 0},    {"n", "e-9", 0}, {"u", "e-6", 0}, {"m", "e-3", 0}, {"k", "e3", 0}, {"M", "e6", 0},
	        {"G", "e9", 0}, {"T", "e12", 0}, {"P", "e15", 0}, {"E", "e18", 0}, {"Ki", "", 10}, {"Mi", "", 20},
	        {"Gi", "", 30}, {"Ti", "", 40},  {"Pi", "", 50},  {"Ei", "", 60},
	};
	char shown[NUM_SHOWN_BYTES];
	if (num_check_len(s, len, "a quantity", "\"0.7\", \"700m\" or \"16Gi\"", e) < 0)
		return -1;
	size_t m = mantissa_len(s, len);
	if (m == 0)
		return err_set(e, ERR_INPUT,
		               "%s is not a quantity: expected a decimal number with an optional suffix, for example "
		               "\"0.7\", \"700m\" or \"16Gi\"",
		               num_shown(shown, s, len));
	double v = NAN;
	bool known = false;
	if (is_exponent(s + m, len - m)) {
		v = decimal_value(s, len, "");
		known = true;
	}
	for (size_t i = 0; !known && i < sizeof suffixes / sizeof suffixes[0]; i++)
		if (strlen(suffixes[i].suffix) == len - m && memcmp(suffixes[i].suffix, s + m, len - m) == 0) {
			v = ldexp(decimal_value(s, m, suffixes[i].exponent), suffixes[i].power_of_two);
			known = true;
		}
	if (!known)
		return err_set(
		        e, ERR_INPUT,
		        "%s is not a quantity: expected the suffix n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, "
		        "Ei, an exponent such as e3, or nothing%s",
		        num_shown(shown, s, len),
		        len - m == 1 && s[m] == 'K' ? "; 1000 is written k, 1024 is written Ki" : "");
	if (!isfinite(v))
		return out_of_range(s, len, e);
	*ret_value = v;
	return 0;
}

// The digits of |v| in p significant places, without point, and the decimal exponent of the first one.
// Taken apart by hand, so that the locale's decimal point does not matter.
static size_t significant_digits(double v, int p, char digits[static 20], int *ret_exponent)
{
	char text[48];
	snprintf(text, sizeof text, "%.*e", p - 1, fabs(v));
	size_t n = 0, i = 0;
	for (; text[i] != 'e'; i++)
		if (is_digit(text[i]))
			digits[n++] = text[i];
	bool negative = text[++i] == '-';
	int exponent = 0;
	for (i++; is_digit(text[i]); i++)
		exponent = exponent * 10 + (text[i] - '0');
	*ret_exponent = negative ? -exponent : exponent;
	while (n > 1 && digits[n - 1] == '0')
		n--;
	return n;
}

static bool reads_back(const char *digits, size_t n, int exponent, double v)
{
	char tail[16];
	snprintf(tail, sizeof tail, "e%d", exponent - (int)n + 1);
	return decimal_value(digits, n, tail) == fabs(v);
}

size_t num_format_f64(char *out, double value)
{
	if (isnan(value))
		return (size_t)snprintf(out, NUM_TEXT_BYTES, "NaN");
	if (isinf(value))
		return (size_t)snprintf(out, NUM_TEXT_BYTES, value > 0 ? "+Inf" : "-Inf");
	if (fabs(value) < 1e15 && value == trunc(value)) // counters and replicas: most of what is ever written
		return (size_t)snprintf(out, NUM_TEXT_BYTES, "%s%lld", signbit(value) ? "-" : "",
		                        (long long)fabs(value));
	// Any text of up to 15 digits survives a double, so shorter precisions need no trying, except where a
	// subnormal has fewer digits than that.
	char digits[20] = "";
	int exponent = 0;
	size_t n = 0;
	for (int p = fabs(value) < DBL_MIN ? 1 : 15; p <= 17; p++) {
		n = significant_digits(value, p, digits, &exponent);
		if (reads_back(digits, n, exponent, value))
			break;
	}
	char *o = out;
	if (signbit(value))
		*o++ = '-';
	if (exponent < PLAIN_EXPONENT_MIN || exponent > PLAIN_EXPONENT_MAX) {
		*o++ = digits[0];
		if (n > 1) {
			*o++ = '.';
			memcpy(o, digits + 1, n - 1);
			o += n - 1;
		}
		o += snprintf(o, 8, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
		return (size_t)(o - out);
	}
	if (exponent < 0) {
		*o++ = '0';
		*o++ = '.';
		for (int z = exponent + 1; z < 0; z++)
			*o++ = '0';
	}
	for (size_t i = 0; i < n || (int)i <= exponent; i++) {
		if (exponent >= 0 && (int)i == exponent + 1)
			*o++ = '.';
		*o++ = (char)(i < n ? digits[i] : '0');
	}
	*o = '\0';
	return (size_t)(o - out);
}
