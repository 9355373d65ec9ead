// SPDX-License-Identifier: Apache-2.0
// Goal: the record of a fleet restores cooldown and rate limits of each target, treats replicas that it does not have
// as scaled now, and takes any text without harm.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "controller/fleet/fleet_targets.h"
#include "policies/engine/decide.h"
#include "policies/engine/policy.h"

#define NOW_MS INT64_C(1767603600000)

static const struct policy_signal signals[] = {
        {.name = "want", .query = "q", .target = {.set = true, .type = TARGET_REPLICAS}, .stale_after_ms = 60000},
};
static const struct policy policy = {
        .namespace_name = "serving",
        .name = "models",
        .min_replicas = 1,
        .max_replicas = 100,
        .replica_multiple = 1,
        .interval_ms = 15000,
        .signals = signals,
        .n_signals = 1,
        .cooldown = {.up_ms = 30000, .down_ms = 600000},
};

static struct fleet_target *new_target(const char *key, int32_t replicas)
{
	struct fleet_target *t = calloc(1, sizeof *t);
	t->key = key;
	t->name = strchr(key, '/') + 1;
	t->spec_replicas = replicas;
	unacked_write_clear(&t->unacked);
	return t;
}

static void *new_state(void)
{
	void *s = malloc(decide_state_bytes(&policy));
	decide_state_init(&policy, s);
	return s;
}

static void record_restores_scales_and_replicas(void **unused)
{
	struct fleet_target *a = new_target("serving/a", 5), *b = new_target("serving/b", 2);
	void *before = new_state(), *after = new_state();
	struct decide_scale_event events[2 * DECIDE_HISTORY_MAX];
	struct buf text;
	int32_t from;
	buf_init(&text, FLEET_RECORD_BYTES_MAX);
	decide_record_scale(&policy, before, NOW_MS - 60000, 3, 5);
	fleet_record_put(&text, a, &policy, before, NOW_MS);
	fleet_record_put(&text, b, &policy, NULL, NOW_MS);
	struct fleet_record *r = fleet_record_read(buf_str(&text), text.len);
	fleet_record_restore(r, a, &policy, after, NOW_MS);
	assert_int_equal(decide_last_scale_ms(&policy, after), NOW_MS - 60000);
	assert_int_equal(decide_scale_events(&policy, after, events, 2 * DECIDE_HISTORY_MAX), 1);
	assert_int_equal(events[0].change, 2);
	assert_false(unacked_write_found(&a->unacked, 5, 0, &from)); // as recorded
	decide_state_init(&policy, after);
	fleet_record_restore(r, b, &policy, after, NOW_MS);
	assert_int_equal(decide_last_scale_ms(&policy, after), -1);
	assert_true(unacked_write_found(&b->unacked, 4, 0, &from)); // not as recorded: it was scaled
	assert_int_equal(from, 2);
	fleet_record_free(r);
	buf_done(&text);
	free(before);
	free(after);
	fleet_target_free(a);
	fleet_target_free(b);
}

static void record_leaves_out_scales_that_no_longer_count(void **unused)
{
	struct fleet_target *a = new_target("serving/a", 5);
	void *state = new_state();
	struct buf text;
	buf_init(&text, FLEET_RECORD_BYTES_MAX);
	decide_record_scale(&policy, state, NOW_MS - 900000, 3, 5);
	fleet_record_put(&text, a, &policy, state, NOW_MS);
	assert_null(strchr(buf_str(&text), '@'));
	buf_done(&text);
	free(state);
	fleet_target_free(a);
}

static void record_takes_any_text(void **unused)
{
	static const char *const texts[] = {"",
	                                    "=",
	                                    "zzzzzzzzzz=1",
	                                    "0123456789=",
	                                    "0123456789=-1",
	                                    "0123456789=1@",
	                                    "0123456789=1@9999999999999999999+1-1",
	                                    "0123456789=1@5+1",
	                                    "  0123456789=99999999999  "};
	struct fleet_target *a = new_target("serving/a", 5);
	void *state = new_state();
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct fleet_record *r = fleet_record_read(texts[i], strlen(texts[i]));
		fleet_record_restore(r, a, &policy, state, NOW_MS);
		assert_int_equal(decide_last_scale_ms(&policy, state), -1);
		fleet_record_free(r);
	}
	free(state);
	fleet_target_free(a);
}

static void record_of_the_future_is_of_now(void **unused)
{
	struct fleet_target *a = new_target("serving/a", 5);
	void *before = new_state(), *after = new_state();
	struct buf text;
	buf_init(&text, FLEET_RECORD_BYTES_MAX);
	decide_record_scale(&policy, before, NOW_MS + 5000, 3, 5);
	fleet_record_put(&text, a, &policy, before, NOW_MS);
	struct fleet_record *r = fleet_record_read(buf_str(&text), text.len);
	fleet_record_restore(r, a, &policy, after, NOW_MS);
	assert_int_equal(decide_last_scale_ms(&policy, after), NOW_MS);
	fleet_record_free(r);
	buf_done(&text);
	free(before);
	free(after);
	fleet_target_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(record_restores_scales_and_replicas),
	        cmocka_unit_test(record_leaves_out_scales_that_no_longer_count),
	        cmocka_unit_test(record_takes_any_text),
	        cmocka_unit_test(record_of_the_future_is_of_now),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
