// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/quantity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

// Removes zeros from the end of digits[0..len), three at a time, at most `most` times. Returns how many times.
static int cut_thousands(char *digits, size_t *len, int most)
{
	int n = 0;
	while (n<most && * len> 3 && memcmp(digits + *len - 3, "000", 3) == 0) {
		*len -= 3;
		n++;
	}
	digits[*len] = '\0';
	return n;
}

int quantity_format(char out[QUANTITY_BYTES], double value, struct err *e)
{
	static const char suffixes[] = "num\0kMGTPE"; // in steps of a thousand from a billionth
	if (!isfinite(value))
		return err_set(e, ERR_INPUT, "the value is not a number");
	if (fabs(value) > QUANTITY_MAX)
		return err_set(e, ERR_LIMIT, "the value %g exceeds the largest quantity (%g)", value, QUANTITY_MAX);
	// printf rounds the exact decimal expansion; without the point, it counts billionths.
	char digits[QUANTITY_BYTES];
	int n = snprintf(digits, sizeof digits, "%.9f", fabs(value));
	char *point = strchr(digits, '.');
	memmove(point, point + 1, strlen(point));
	size_t len = (size_t)n - 1;
	char *first = digits + strspn(digits, "0");
	if (!*first) {
		memcpy(out, "0", 2);
		return 1;
	}
	len -= (size_t)(first - digits);
	char suffix = suffixes[cut_thousands(first, &len, (int)sizeof suffixes - 2)];
	const char tail[] = {suffix, '\0'};
	return snprintf(out, QUANTITY_BYTES, "%s%s%s", value < 0 ? "-" : "", first, tail);
}
