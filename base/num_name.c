// SPDX-License-Identifier: Apache-2.0
// The closest of several names: every "did you mean".
#include "base/num.h"

#include <string.h>

#define NAME_BYTES_MAX 64

static char folded(char c)
{
	return (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;
	return m < c ? m : c;
}

// Optimal string alignment distance: insert, delete, replace, or swap two neighbours.
static size_t distance(const char *a, size_t na, const char *b, size_t nb)
{
	size_t rows[3][NAME_BYTES_MAX + 1];
	size_t *before = rows[0], *last = rows[1], *row = rows[2];
	for (size_t j = 0; j <= nb; j++)
		before[j] = last[j] = j;
	for (size_t i = 1; i <= na; i++) {
		row[0] = i;
		for (size_t j = 1; j <= nb; j++) {
			char x = folded(a[i - 1]), y = folded(b[j - 1]);
			row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == folded(b[j - 2]) && y == folded(a[i - 2]) &&
			    before[j - 2] + 1 < row[j])
				row[j] = before[j - 2] + 1;
		}
		size_t *spare = before;
		before = last;
		last = row;
		row = spare;
	}
	return last[nb];
}

const char *num_closest_name(const char *word, const char *const *names, size_t n)
{
	size_t len = strnlen(word, NAME_BYTES_MAX + 1);
	if (len == 0 || len > NAME_BYTES_MAX)
		return NULL;
	size_t limit = len / 3 ? len / 3 : 1;
	const char *best = NULL;
	for (size_t i = 0; i < n; i++) {
		size_t name_len = strnlen(names[i], NAME_BYTES_MAX + 1);
		if (name_len > NAME_BYTES_MAX)
			continue;
		size_t d = distance(word, len, names[i], name_len);
		// A word replaced letter by letter is another word, however short.
		if (d > limit || (d && d >= len && d >= name_len))
			continue;
		best = names[i];
		if (d == 0)
			break;
		limit = d - 1; // only a closer one may replace it
	}
	return best;
}
