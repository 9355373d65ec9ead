// SPDX-License-Identifier: Apache-2.0
// Reduces the answer to a range query to the samples that a signal would have had, one per time.
#ifndef GPUSCALE_CONTROLLER_TICK_RANGE_SAMPLES_H
#define GPUSCALE_CONTROLLER_TICK_RANGE_SAMPLES_H

#include <stddef.h>

struct obs_series;
struct policy_signal;
struct promql_result;

// Reduces the series at each time by the rule of `signal`, as decide() does, and writes up to `max` samples to `out`,
// in the order of time; their pod is "". A time at which the series break the rule, such as several series where one is
// expected, or at which the value is not finite, gives no sample and counts in *ret_n_refused (may be NULL). Returns
// the number of samples; fewer when memory is exhausted.
size_t range_samples(const struct promql_result *r, const struct policy_signal *signal, struct obs_series *out,
                     size_t max, size_t *ret_n_refused);

#endif
