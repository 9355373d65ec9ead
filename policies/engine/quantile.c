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

// Quickselect with the median of three.
double quantile_select(double *values, size_t n, size_t k)
{
	assert(k < n);
	size_t lo = 0, hi = n - 1;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (values[mid] < values[lo])
			swap(&values[mid], &values[lo]);
		if (values[hi] < values[lo])
			swap(&values[hi], &values[lo]);
		if (values[hi] < values[mid])
			swap(&values[hi], &values[mid]);
		double pivot = values[mid];
		size_t i = lo, j = hi;
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
	return values[k];
}

double quantile_lower_median(double *values, size_t n)
{
	return quantile_select(values, n, (n - 1) / 2);
}

double quantile(double q, double *values, uint32_t n)
{
	assert(n > 0 && q >= 0 && q <= 1);
	double rank = q * (double)(n - 1);
	uint32_t lower = (uint32_t)floor(rank);
	double weight = rank - floor(rank);
	double at_lower = quantile_select(values, n, lower);
	if (lower + 1 >= n)
		return at_lower;
	double at_upper = values[lower + 1];
	for (uint32_t i = lower + 2; i < n; i++)
		if (values[i] < at_upper)
			at_upper = values[i];
	return at_lower * (1 - weight) + at_upper * weight;
}
