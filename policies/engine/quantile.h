// SPDX-License-Identifier: Apache-2.0
#ifndef GPUSCALE_POLICIES_ENGINE_QUANTILE_H
#define GPUSCALE_POLICIES_ENGINE_QUANTILE_H

#include <stdint.h>

// Returns the q-quantile (0 <= q <= 1) of n >= 1 finite values, linearly interpolated between the two nearest ranks, as
// quantile_over_time does it. Reorders `values`. Prometheus: promql/quantile.go, quantile().
double quantile(double q, double *values, uint32_t n);

#endif
