// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_time.h"

#include <math.h>
#include <stdbool.h>

#include "base/num.h"

// "1435781451.781", without going through a double. false: it is written in another way.
static bool parse_plain_time(const char *text, size_t len, int64_t *ret_ms)
{
	int64_t s = 0, ms = 0, unit = 100;
	size_t i = 0;
	for (; i < len && i < 12 && text[i] >= '0' && text[i] <= '9'; i++)
		s = s * 10 + (text[i] - '0');
	if (i == 0 || (i < len && text[i] != '.') || len - i > 4)
		return false;
	for (i++; i < len; i++, unit /= 10) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		ms += (text[i] - '0') * unit;
	}
	*ret_ms = s * 1000 + ms;
	return true;
}

int promql_time_parse(const char *text, size_t len, int64_t *ret_ms)
{
	double seconds;
	if (parse_plain_time(text, len, ret_ms))
		return 0;
	// 2^53 ms is past the year 285000; beyond it a double no longer represents whole milliseconds.
	if (num_parse_f64(text, len, &seconds, NULL) < 0 || fabs(seconds) > 9007199254740.0)
		return -1;
	*ret_ms = llround(seconds * 1000.0);
	return 0;
}
