// SPDX-License-Identifier: Apache-2.0
#include "controller/tick/range_samples.h"

#include <stdint.h>
#include <stdlib.h>

#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/engine/source.h"
#include "promql/promql_result.h"

// The series of a range answer share one grid of times, but each may miss some.
static int64_t next_time(const struct promql_result *r, const size_t *at)
{
	int64_t t = INT64_MAX;
	for (size_t i = 0; i < r->n_series; i++)
		if (at[i] < r->series[i].n_samples && r->series[i].samples[at[i]].time_ms < t)
			t = r->series[i].samples[at[i]].time_ms;
	return t;
}

// Collects the samples at time t and moves behind them.
static size_t take_time(const struct promql_result *r, size_t *at, int64_t t, struct obs_series *column)
{
	size_t n = 0;
	for (size_t i = 0; i < r->n_series; i++)
		if (at[i] < r->series[i].n_samples && r->series[i].samples[at[i]].time_ms == t)
			column[n++] = (struct obs_series){
			        .pod = "", .value = r->series[i].samples[at[i]++].value, .time_ms = t};
	return n;
}

size_t range_samples(const struct promql_result *r, const struct policy_signal *signal, struct obs_series *out,
                     size_t max, size_t *ret_n_refused)
{
	size_t n = 0, n_refused = 0;
	size_t *at = calloc(r->n_series ? r->n_series : 1, sizeof *at);
	struct obs_series *column = calloc(r->n_series ? r->n_series : 1, sizeof *column);
	while (at && column && n < max) {
		int64_t t = next_time(r, at);
		if (t == INT64_MAX)
			break;
		struct obs_signal at_t = {.state = OBS_OK, .series = column, .n_series = take_time(r, at, t, column)};
		struct reading one = source_read(signal, &at_t, t); // as of the sample's own time: not stale
		if (one.reason == REASON_NONE)
			out[n++] = (struct obs_series){.pod = "", .value = one.value, .time_ms = t};
		else
			n_refused++;
	}
	free(at);
	free(column);
	if (ret_n_refused)
		*ret_n_refused = n_refused;
	return n;
}
