// SPDX-License-Identifier: Apache-2.0
#ifndef GPUSCALE_POLICIES_ENGINE_QUANTILE_H
#define GPUSCALE_POLICIES_ENGINE_QUANTILE_H

#include <stddef.h>
#include <stdint.h>

// Returns the q-quantile (0 <= q <= 1) of n >= 1 finite values, linearly interpolated between the two nearest ranks, as
// quantile_over_time does it. Reorders `values`. Prometheus: promql/quantile.go, quantile().
double quantile(double q, double *values, uint32_t n);

// Returns the k-th smallest of values[0..n), k < n, none of which is NaN. Reorders them: afterwards values[k] is this
// one, no value before it is larger and no value after it is smaller. Takes linear time on average.
double quantile_select(double *values, size_t n, size_t k);
// Returns the lower median of values[0..n), n > 0: the element at index (n - 1) / 2 of their order. Reorders them.
double quantile_lower_median(double *values, size_t n);

#endif
