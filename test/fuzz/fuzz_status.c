// SPDX-License-Identifier: Apache-2.0
// The status of an object, which any client with the right may have written: any bytes are read without harm, what was
// read is a state that decide() can use, and it comes back when it is written and read once more.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "controller/fleet/fleet_targets.h"
#include "controller/status/status_conditions.h"
#include "controller/status/status_doc.h"
#include "policies/engine/decide.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"

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

#define NOW_MS INT64_C(1767603600000)

static void *fresh_state(void)
{
	void *state = calloc(1, decide_state_bytes(&policy));
	assert(state);
	decide_state_init(&policy, state);
	return state;
}

static void check_record(const struct status_record *r, const void *state)
{
	int64_t last_ms = decide_last_scale_ms(&policy, state);
	assert(r->n_decisions <= STATUS_DECISIONS_MAX && r->replicas >= -1);
	assert(last_ms >= -1 && last_ms <= NOW_MS && (!r->is_unsure || last_ms == NOW_MS));
	for (size_t i = 0; i < r->n_decisions; i++) {
		const struct status_decision *d = &r->decisions[i];
		assert(d->time_ms >= 0 && d->time_ms <= NOW_MS && d->from >= 0 && d->to >= 0 && d->message);
		assert((int)d->action >= 0 && d->action < ACTION__COUNT && (int)d->reason >= 0 &&
		       d->reason < REASON__COUNT);
	}
	for (int i = 0; i < CONDITION_TYPE__COUNT; i++)
		assert(r->since_ms[i] >= 0 && r->since_ms[i] <= NOW_MS);
}

static void check_comes_back(struct status_record *record, const void *state)
{
	struct status_facts facts = {.phase = STATUS_INVALID, .text = "fuzz"};
	struct condition conditions[CONDITION_TYPE__COUNT];
	struct status_record again = {0};
	void *other = fresh_state();
	struct buf text;
	struct err e;
	status_conditions(&facts, conditions);
	buf_init(&text, 4 * STATUS_BYTES_MAX);
	status_doc_write(&text, &(struct status_doc){.facts = &facts,
	                                             .conditions = conditions,
	                                             .record = record,
	                                             .policy = &policy,
	                                             .state = state,
	                                             .generation = 1,
	                                             .now_ms = NOW_MS});
	assert(!text.failed);
	assert(status_doc_read(buf_str(&text), text.len, &(struct binding){.policy = &policy}, other, &again, NOW_MS,
	                       &e) == 0);
	assert(!again.is_unsure && again.n_decisions == record->n_decisions);
	assert(decide_last_scale_ms(&policy, other) == decide_last_scale_ms(&policy, state));
	for (size_t i = 0; i < again.n_decisions; i++)
		assert(again.decisions[i].time_ms == record->decisions[i].time_ms &&
		       again.decisions[i].to == record->decisions[i].to &&
		       again.decisions[i].reason == record->decisions[i].reason);
	status_record_done(&again);
	buf_done(&text);
	free(other);
}

static void check_decides(void *state)
{
	struct obs_series series = {.pod = "", .value = 7, .time_ms = NOW_MS};
	struct obs_signal seen = {.state = OBS_OK, .series = &series, .n_series = 1};
	struct observation observation = {
	        .spec_replicas = 3, .status_replicas = 3, .ready_replicas = 3, .signals = &seen, .n_signals = 1};
	struct decision decision;
	decide(&policy, &observation, NOW_MS, state, &decision);
	assert(decision.desired >= 1 && decision.desired <= 100);
}

// The record of a fleet is one text of its status.
static void check_fleet_record(const char *text, size_t size)
{
	struct fleet_record *r = fleet_record_read(text, size);
	struct fleet_target *t = calloc(1, sizeof *t);
	void *state = fresh_state();
	assert(t);
	t->key = "a/b";
	fleet_record_restore(r, t, &policy, state, NOW_MS);
	assert(decide_last_scale_ms(&policy, state) <= NOW_MS);
	check_decides(state);
	fleet_record_free(r);
	free(state);
	free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	void *state = fresh_state();
	struct status_record record = {0};
	struct err e;
	err_clear(&e);
	char *text = malloc(size ? size : 1); // exact size: the text has no terminator
	assert(text);
	if (size)
		memcpy(text, data, size);
	if (status_doc_read(text, size, &(struct binding){.policy = &policy}, state, &record, NOW_MS, &e) == 0) {
		check_record(&record, state);
		check_comes_back(&record, state);
	} else {
		assert(e.kind != ERR_NONE && e.msg[0] && record.n_decisions == 0 && record.replicas == -1);
		assert(decide_last_scale_ms(&policy, state) == -1);
	}
	check_decides(state);
	check_fleet_record(text, size);
	status_record_done(&record);
	free(state);
	free(text);
	return 0;
}
