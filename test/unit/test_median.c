// SPDX-License-Identifier: Apache-2.0
// Goal of this test: every element of an order is the one that sorting finds, also among equal values.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/engine/quantile.h"

#define N_MAX  40
#define ROUNDS 5000

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static void element_is_that_of_the_sorted_values(void **state)
{
	uint64_t seed = 1;
	for (int round = 0; round < ROUNDS; round++) {
		double v[N_MAX], sorted[N_MAX];
		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
		size_t n = 1 + (seed >> 33) % N_MAX, k = (seed >> 13) % n;
		for (size_t i = 0; i < n; i++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
			v[i] = (double)((seed >> 33) % (round % 2 ? 5 : 1000));
		}
		memcpy(sorted, v, sizeof sorted);
		qsort(sorted, n, sizeof *sorted, compare);
		assert_true(quantile_select(v, n, k) == sorted[k] && v[k] == sorted[k]);
		for (size_t i = k; i < n; i++)
			assert_true(v[i] >= sorted[k]);
		assert_true(quantile_lower_median(v, n) == sorted[(n - 1) / 2]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(element_is_that_of_the_sorted_values)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
