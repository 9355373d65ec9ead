// SPDX-License-Identifier: Apache-2.0
#include "insight/median.h"

#include <assert.h>

static void swap(double *a, double *b)
{
	double t = *a;
	*a = *b;
	*b = t;
}

double median_at(double *v, size_t n, size_t k)
{
	assert(k < n);
	size_t low = 0, high = n - 1;
	while (low < high) {
		double pivot = v[low + (high - low) / 2];
		size_t i = low, j = high;
		for (;;) {
			while (v[i] < pivot)
				i++;
			while (v[j] > pivot)
				j--;
			if (i >= j)
				break;
			swap(&v[i++], &v[j--]);
		}
		// v[low..j] <= pivot <= v[j+1..high], and j < high, because the pivot is not the last element.
		if (k <= j)
			high = j;
		else
			low = j + 1;
	}
	return v[k];
}

double median_lower(double *v, size_t n)
{
	return median_at(v, n, (n - 1) / 2);
}
