// SPDX-License-Identifier: Apache-2.0
// Series notation: what is accepted has points, finite ones unless a word says otherwise.
#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/series_notation.h"

#define INPUT_MAX  4096
#define MEMORY_MAX (16 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > INPUT_MAX)
		return 0;
	char *text = malloc(size + 1); // exactly as long as it is, so that reading past its end is seen
	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	bool may_be_infinite = strcasestr(text, "nan") || strcasestr(text, "inf");
	struct arena a;
	struct err e = {0};
	struct series_point *points;
	size_t n = 0;
	arena_init(&a, MEMORY_MAX);
	if (series_notation_parse(&a, text, &points, &n, &e) == 0) {
		assert(n > 0 && n <= SERIES_NOTATION_POINTS_MAX);
		for (size_t i = 0; i < n; i++) {
			assert(points[i].kind == SERIES_POINT_VALUE || points[i].value == 0);
			assert(isfinite(points[i].value) || may_be_infinite);
			assert(!points[i].detail || (points[i].kind == SERIES_POINT_ERROR && *points[i].detail));
		}
	} else {
		assert(e.kind == ERR_INPUT || e.kind == ERR_LIMIT);
	}
	arena_done(&a);
	free(text);
	return 0;
}
