// SPDX-License-Identifier: Apache-2.0
// Quantile of a window, interpolated as Prometheus does.
#include "policies/engine/quantile.h"

#include <assert.h>
#include <math.h>

static void swap(double *a, double *b)
{
	double t = *a;
	*a = *b;
	*b = t;
}

// Quickselect with the median of three: afterwards values[k] is the k-th smallest, no value before it is larger and no
// value after it is smaller. n is at most a few hundred, which bounds the worst case.
static void select_kth(double *values, uint32_t n, uint32_t k)
{
	uint32_t lo = 0, hi = n - 1;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (values[mid] < values[lo])
			swap(&values[mid], &values[lo]);
		if (values[hi] < values[lo])
			swap(&values[hi], &values[lo]);
		if (values[hi] < values[mid])
			swap(&values[hi], &values[mid]);
		double pivot = values[mid];
		uint32_t i = lo, j = hi;
		for (;;) {
			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i >= j)
				break;
			swap(&values[i++], &values[j--]);
		}
		if (k <= j)
			hi = j;
		else
			lo = j + 1;
	}
}

double quantile(double q, double *values, uint32_t n)
{
	assert(n > 0 && q >= 0 && q <= 1);
	double rank = q * (double)(n - 1);
	uint32_t lower = (uint32_t)floor(rank);
	double weight = rank - floor(rank);
	select_kth(values, n, lower);
	double at_lower = values[lower];
	if (lower + 1 >= n)
		return at_lower;
	double at_upper = values[lower + 1];
	for (uint32_t i = lower + 2; i < n; i++)
		if (values[i] < at_upper)
			at_upper = values[i];
	return at_lower * (1 - weight) + at_upper * weight;
}
