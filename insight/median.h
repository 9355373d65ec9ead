// SPDX-License-Identifier: Apache-2.0
// Medians and other elements of an order.
#ifndef GPUSCALE_INSIGHT_MEDIAN_H
#define GPUSCALE_INSIGHT_MEDIAN_H

#include <stddef.h>

// Returns the element at index k < n of the order of v[0..n), none of which is NaN. Reorders v: afterwards, v[k] is
// this element, and no element behind it is smaller. Hoare's selection: linear time on average.
double median_at(double *v, size_t n, size_t k);
// Returns the lower median of v[0..n), n > 0: the element at index (n - 1) / 2.
double median_lower(double *v, size_t n);

#endif
