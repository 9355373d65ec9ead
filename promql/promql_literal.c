// SPDX-License-Identifier: Apache-2.0
// Prometheus: promql/parser/lex.go.
#include "promql/promql_literal.h"

#include <ctype.h>
#include <string.h>

static size_t count_digits(const char *p, size_t len)
{
	size_t n = 0;
	while (n < len && (isdigit((unsigned char)p[n]) || (p[n] == '_' && n > 0 && n + 1 < len && p[n - 1] != '_' &&
	                                                    isdigit((unsigned char)p[n + 1]))))
		n++;
	return n;
}

// Returns the length of the digits, with or without a fraction; 0 when there are none.
static size_t count_decimal(const char *p, size_t len)
{
	size_t n = count_digits(p, len), fraction = 0;
	if (n < len && p[n] == '.')
		fraction = 1 + count_digits(p + n + 1, len - n - 1);
	return n + fraction > 1 || n == 1 ? n + fraction : 0;
}

bool promql_is_duration(const char *p, size_t len)
{
	static const char *const units[] = {"ms", "s", "m", "h", "d", "w", "y"};
	if (len == 0)
		return false;
	while (len > 0) {
		size_t n = count_decimal(p, len), unit = 0;
		for (size_t i = 0; n > 0 && unit == 0 && i < sizeof units / sizeof units[0]; i++) {
			size_t size = strlen(units[i]);
			if (len - n >= size && memcmp(p + n, units[i], size) == 0)
				unit = size;
		}
		if (unit == 0)
			return false;
		p += n + unit;
		len -= n + unit;
	}
	return true;
}

bool promql_is_number(const char *p, size_t len)
{
	if (len > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
		for (size_t i = 2; i < len; i++)
			if (!isxdigit((unsigned char)p[i]) && (p[i] != '_' || p[i - 1] == '_' || i + 1 == len))
				return false;
		return true;
	}
	size_t n = count_decimal(p, len);
	if (n > 0 && n < len && (p[n] == 'e' || p[n] == 'E')) {
		size_t sign = n + 1 < len && (p[n + 1] == '+' || p[n + 1] == '-');
		size_t exponent = count_digits(p + n + 1 + sign, len - n - 1 - sign);
		n = exponent ? n + 1 + sign + exponent : 0;
	}
	return n == len && n > 0;
}

size_t promql_escape_len(const char *p, char quote)
{
	static const struct {
		char letter;
		size_t digits;
	} codes[] = {{'x', 2}, {'u', 4}, {'U', 8}};
	if (strchr("abfnrtv\\", p[1]) || p[1] == quote)
		return 2;
	if (p[1] >= '0' && p[1] <= '7')
		return strspn(p + 1, "01234567") >= 3 ? 4 : 0;
	for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
		if (p[1] == codes[i].letter)
			return strspn(p + 2, "0123456789abcdefABCDEF") >= codes[i].digits ? 2 + codes[i].digits : 0;
	return 0;
}
