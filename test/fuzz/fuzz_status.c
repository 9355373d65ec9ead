// SPDX-License-Identifier: Apache-2.0
// The status of an object, which anybody with the right may have written: any bytes are read without harm, and what was
// read is a state that decide() can use.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"
#include "controller/status_doc.h"
#include "policies/decide.h"
#include "policies/observation.h"
#include "policies/policy.h"

static const struct policy_signal signals[] = {
        {.name = "want", .query = "q", .target = {.set = true, .type = TARGET_REPLICAS}, .stale_after_ms = 60000},
};
static const struct policy policy = {
        .namespace_name = "serving",
        .name = "llama",
        .min_replicas = 1,
        .max_replicas = 100,
        .replica_multiple = 1,
        .interval_ms = 15000,
        .signals = signals,
        .n_signals = 1,
        .scale_up = {.stabilization_window_ms = 60000},
        .scale_down = {.stabilization_window_ms = 300000},
        .cooldown = {.up_ms = 30000, .down_ms = 60000},
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const int64_t now_ms = 1767603600000;
	void *state = calloc(1, decide_state_bytes(&policy));
	struct status_record record = {0};
	struct decision decision;
	struct err e;
	assert(state);
	decide_state_init(&policy, state);
	if (status_doc_read((const char *)data, size, &policy, state, &record, now_ms, &e) == 0) {
		assert(record.n_decisions <= STATUS_DECISIONS_MAX);
		assert(decide_last_scale_ms(&policy, state) <= now_ms);
	}
	struct obs_series series = {.pod = "", .value = 7, .time_ms = now_ms};
	struct obs_signal seen = {.state = OBS_OK, .series = &series, .n_series = 1};
	struct observation observation = {
	        .spec_replicas = 3, .status_replicas = 3, .ready_replicas = 3, .signals = &seen, .n_signals = 1};
	decide(&policy, &observation, now_ms, state, &decision);
	assert(decision.desired >= 1 && decision.desired <= 100);
	status_record_done(&record);
	free(state);
	return 0;
}
