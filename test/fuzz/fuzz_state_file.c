// SPDX-License-Identifier: Apache-2.0
// Reads a file of saved state that a disk, an older release or a person may have changed. Any bytes are read without
// harm; an accepted file gives a state that decide() can use, and nothing in it blocks scaling for longer than the
// policy's own times. Bytes without a valid first line are given one, so that the rest is parsed as well.
#include <assert.h>
#include <openssl/sha.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "controller/status/state_dir.h"
#include "controller/status/status_doc.h"
#include "policies/engine/decide.h"
#include "policies/engine/observation.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"

static const struct policy_signal signals[] = {
        {.name = "want", .query = "q", .target = {.set = true, .type = TARGET_REPLICAS}, .stale_after_ms = 60000},
};
static const struct policy policy = {
        .namespace_name = "default",
        .name = "web",
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

static const struct scale_target target = {"apps/v1", "Deployment", "web", NULL};
static const struct binding binding = {.policy = &policy, .target = &target};

#define NOW_MS INT64_C(1767603600000)

static void check_decides(void *state)
{
	struct obs_series series = {.pod = "", .value = 7};
	struct obs_signal seen = {.state = OBS_OK, .series = &series, .n_series = 1};
	struct observation observation = {
	        .spec_replicas = 3, .status_replicas = 3, .ready_replicas = 3, .signals = &seen, .n_signals = 1};
	struct decision decision;
	for (int64_t now_ms = NOW_MS; now_ms <= NOW_MS + 300000; now_ms += 15000) {
		series.time_ms = now_ms;
		decide(&policy, &observation, now_ms, state, &decision);
		assert(decision.desired >= 1 && decision.desired <= 100);
	}
	assert(decision.desired == 7); // five minutes later at the latest
}

static void restore(const struct state_file *file, int64_t step_ms)
{
	struct status_record record = {0};
	struct err e;
	void *state = calloc(1, decide_state_bytes(&policy));
	assert(state);
	decide_state_init(&policy, state);
	if (status_doc_read(file->json, file->json_len, &(struct binding){.policy = &policy}, state, &record,
	                    NOW_MS - step_ms, &e) == 0) {
		decide_clock_was_set(&policy, state, step_ms);
		status_record_clock_was_set(&record, step_ms);
		check_decides(state);
	}
	status_record_done(&record);
	free(state);
}

static void read_text(const char *text, size_t len)
{
	struct state_file file;
	struct err e;
	err_clear(&e);
	if (state_file_read(text, len, &binding, &file, &e) < 0) {
		assert(e.kind != ERR_NONE && e.msg[0]);
		return;
	}
	assert(file.json >= text && file.json + file.json_len == text + len);
	assert(strlen(file.clock.boot_id) < STATE_BOOT_ID_BYTES);
	restore(&file, 0);
	restore(&file, 3600000);
	restore(&file, -3600000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	struct buf text;
	char *copy = malloc(size ? size : 1); // exact size: the text has no terminator
	assert(copy);
	if (size)
		memcpy(copy, data, size);
	read_text(copy, size);
	buf_init(&text, size + 256);
	SHA256(data, size, digest);
	buf_printf(&text, "gpuscale-state %d ", STATE_FILE_VERSION);
	for (size_t i = 0; i < sizeof digest; i++)
		buf_printf(&text, "%02x", digest[i]);
	buf_putc(&text, '\n');
	if (size)
		buf_put(&text, data, size);
	read_text(buf_str(&text), text.len);
	buf_done(&text);
	free(copy);
	return 0;
}
