// SPDX-License-Identifier: Apache-2.0
// What promtool prints, for `gpuscale alerts replay`: any bytes are refused with an error or give intervals whose times
// are in order and within the recording.
#include <assert.h>
#include <stdint.h>

#include "base/err.h"
#include "replay/alert_replay.h"

#define END_MS 3600000

static void check_interval(const struct alert_interval *x)
{
	int64_t last_ms = 0;
	assert(x->pending_ms != ALERT_NEVER || x->firing_ms != ALERT_NEVER);
	assert(x->labels[0] == '{' || x->labels[0] == '\0');
	const int64_t times[] = {x->pending_ms, x->firing_ms, x->resolved_ms};
	for (int i = 0; i < 3; i++) {
		if (times[i] == ALERT_NEVER)
			continue;
		assert(times[i] >= last_ms && times[i] <= END_MS);
		last_ms = times[i];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct alert_replay r;
	struct alert_summary s;
	struct err e = {.kind = ERR_NONE};
	alert_replay_init(&r);
	r.end_ms = END_MS;
	r.interval_ms = 5000;
	if (alert_replay_read(&r, (const char *)data, size, &e) < 0)
		assert(e.kind != ERR_NONE);
	for (size_t i = 0; i < r.n_intervals; i++)
		check_interval(&r.intervals[i]);
	alert_replay_summarize(&r, NULL, &s);
	assert(s.n_pending + s.n_firing == r.n_intervals && s.n_false <= s.n_firing && s.firing_ms >= 0);
	alert_replay_done(&r);
	return 0;
}
