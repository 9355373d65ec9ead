// SPDX-License-Identifier: Apache-2.0
// Recordings for `gpuscale backtest`, CSV and OpenMetrics: any bytes are refused with an error or become a demand that
// is finite or a gap, and a short run in closed loop scores finite costs.
#include <assert.h>
#include <math.h>
#include <stdint.h>

#include "base/err.h"
#include "replay/recording.h"
#include "replay/score.h"
#include "replay/world.h"

#define STEPS_MAX 20000 // a longer recording is only converted

static int32_t follow(void *self, const struct world *w, bool has_data)
{
	(void)self;
	return has_data ? (int32_t)fmin(world_demand(w, 15), 100) + 1 : world_replicas(w);
}

static void check_demand(const struct demand *d)
{
	int64_t known = 0;
	for (size_t i = 0; i < d->n; i++) {
		assert(isnan(d->work[i]) || (d->work[i] >= 0 && isfinite(d->work[i])));
		assert(!d->weight || isnan(d->work[i]) || (d->weight[i] >= 0 && isfinite(d->weight[i])));
		known += isnan(d->work[i]) ? 0 : d->step_ms;
	}
	assert(known == d->known_ms && (d->n_gaps > 0) == (known < (int64_t)d->n * d->step_ms));
	if (d->n > STEPS_MAX)
		return;
	struct score s;
	const struct world_config config = {.step_ms = d->step_ms, .startups_s = {120, 30}, .n_startups = 2};
	const struct closed_loop loop = {.demand = d, .world = &config, .first = 1, .max = 100, .late_s = 10};
	const struct candidate c = {follow, NULL, 15000};
	assert(closed_loop_run(&loop, &c, &s) == 0);
	assert(isfinite(s.replica_s) && s.replica_s >= 0 && s.late <= s.requests * (1 + 1e-9));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording r;
	struct err e;
	if (recording_parse((const char *)data, size, "fuzz", &r, &e) == 0) {
		assert(r.n_rows >= 2 && r.step_ms > 0);
		for (size_t i = 1; i < r.n_rows; i++)
			assert(r.time_ms[i] > r.time_ms[i - 1] && recording_hold_ms(&r, i) > 0);
		for (size_t i = 0; i < r.n_columns; i++)
			assert(r.names[i][0] && recording_column(&r, r.names[i]) == (int)i);
		struct demand d = {0};
		if (r.n_columns > 0) {
			int requests = r.n_columns > 1 ? 1 : -1;
			if (demand_from_recording(&r, 0, requests, 1, "fuzz", &d, &e) == 0)
				check_demand(&d);
			demand_done(&d);
		}
	} else {
		assert(e.kind != ERR_NONE && e.msg[0]);
	}
	recording_done(&r);
	return 0;
}
