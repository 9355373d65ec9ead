// SPDX-License-Identifier: Apache-2.0
// Lines of `gpuscale step`: any bytes get one line of JSON as an answer, and a decision stays within the bounds.
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/test/filters.h"

static const struct policy_signal signals[] = {
        {.name = "want", .query = "q", .target = {.set = true, .type = TARGET_REPLICAS}, .stale_after_ms = 60000},
        {.name = "load",
         .query = "q",
         .target = {.set = true, .type = TARGET_VALUE, .value = 0.5, .tolerance_ratio = 0.1},
         .series = SERIES_MAX,
         .on_missing = ON_MISSING_IGNORE,
         .stale_after_ms = 60000},
};
static const struct scale_target target = {"apps/v1", "Deployment", "llama", NULL};
static const struct policy policy = {.namespace_name = "serving",
                                     .name = "llama",
                                     .min_replicas = 1,
                                     .max_replicas = 100,
                                     .replica_multiple = 1,
                                     .interval_ms = 15000,
                                     .signals = signals,
                                     .n_signals = 2,
                                     .cooldown = {.up_ms = 30000, .down_ms = 60000}};

static void check_answer(const struct buf *out, int rc)
{
	struct err e;
	assert(!out->failed && out->len > 0 && memchr(buf_str(out), '\n', out->len) == buf_str(out) + out->len - 1);
	cJSON *tree = json_read(buf_str(out), out->len, &e);
	assert(tree);
	assert(!json_get(tree, "error") == (rc == 0));
	int64_t current = 0, desired = 0;
	if (rc == 0) {
		assert(json_get_i64(tree, "currentReplicas", 0, INT32_MAX, &current, &e) == 1);
		assert(json_get_i64(tree, "desiredReplicas", 0, INT32_MAX, &desired, &e) == 1);
		assert(desired <= 100 && (desired >= 1 || current == 0));
	}
	cJSON_Delete(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step *s = step_new(&(struct binding){.policy = &policy, .target = &target});
	struct buf out;
	assert(s);
	buf_init(&out, 1 << 20);
	while (size > 0) {
		const uint8_t *nl = memchr(data, '\n', size);
		size_t len = nl ? (size_t)(nl - data) : size;
		struct err e;
		buf_reset(&out);
		int rc = step_answer(s, (const char *)data, len, &out, &e);
		check_answer(&out, rc);
		data += nl ? len + 1 : len;
		size -= nl ? len + 1 : len;
	}
	buf_done(&out);
	step_free(s);
	return 0;
}
