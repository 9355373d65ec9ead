// SPDX-License-Identifier: Apache-2.0
// The median of numbers.
#ifndef GPUSCALE_INSIGHT_MEDIAN_H
#define GPUSCALE_INSIGHT_MEDIAN_H

#include <stddef.h>

// Returns the lower median of v[0..n), n > 0, none of which is NaN: the element at index (n - 1) / 2 of their order.
// Reorders v. Hoare's selection: linear time on average.
double median_lower(double *v, size_t n);

#endif
