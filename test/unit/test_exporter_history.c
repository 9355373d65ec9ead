// SPDX-License-Identifier: Apache-2.0
// What is remembered of devices between rounds: windows, counters that go on, GPUs that went.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "exporter/device.h"

#define NONE (-1e300)

static struct device device(const char *uuid, const char *mig_id)
{
	struct device d = {.index = 0};
	snprintf(d.uuid, sizeof d.uuid, "%s", uuid);
	snprintf(d.mig_id, sizeof d.mig_id, "%s", mig_id);
	return d;
}

static struct device_history *make(int64_t window_ms, int64_t interval_ms)
{
	struct err e;
	struct device_history *h = device_history_new(window_ms, interval_ms, &e);
	if (!h)
		fail_msg("%s", e.msg);
	return h;
}

static void add_sm_active(struct device_history *h, int64_t t_ms, const struct device *d, double v)
{
	struct device_sample s = {.lost = false};
	if (v != NONE)
		sample_set_f64(&s, FIELD_SM_ACTIVE, v);
	device_history_add(h, t_ms, d, &s, 1);
}

static void window_keeps_a_spike_and_lets_it_go_after_its_time(void **state)
{
	(void)state;
	const struct device d = device("GPU-a", "");
	struct device_history *h = make(1000, 200);
	struct window w;
	static const struct {
		int64_t t_ms;
		double value, min, max, avg; // NONE as min: no window
	} steps[] = {
	        {0, 0.1, 0.1, 0.1, 0.1},
	        {200, 0.9, 0.1, 0.9, 0.5}, // a spike of one sample
	        {400, 0.1, 0.1, 0.9, (0.1 + 0.9 + 0.1) / 3},
	        {600, NONE, NONE, 0, 0}, // no value now, no window now
	        {800, 0.2, 0.1, 0.9, (0.1 + 0.9 + 0.1 + 0.2) / 4},
	        {1000, 0.2, 0.1, 0.9, (0.9 + 0.1 + 0.2 + 0.2) / 4}, // the first one is at the edge: out
	        {1200, 0.2, 0.1, 0.2, (0.1 + 0.2 + 0.2 + 0.2) / 4},
	        {1400, 0.2, 0.2, 0.2, 0.2},
	        {9999, 0.7, 0.7, 0.7, 0.7}, // after a long pause the past is over
	};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		add_sm_active(h, steps[i].t_ms, &d, steps[i].value);
		bool has = device_history_window(h, 0, FIELD_SM_ACTIVE, &w);
		assert_int_equal(has, steps[i].min != NONE);
		if (!has)
			continue;
		assert_float_equal(w.min, steps[i].min, 1e-12);
		assert_float_equal(w.max, steps[i].max, 1e-12);
		assert_float_equal(w.avg, steps[i].avg, 1e-12);
	}
	assert_false(device_history_window(h, 0, FIELD_ENC_UTIL, &w));  // none is kept for it
	assert_false(device_history_window(h, 1, FIELD_SM_ACTIVE, &w)); // no such device
	device_history_free(h);
}

static void reading_counts_for_the_time_before_it(void **state)
{
	(void)state;
	const struct device d = device("GPU-a", "");
	struct device_history *h = make(10000, 1000);
	struct window w;
	add_sm_active(h, 1000, &d, 0);   // counts 1 s, an interval: the time before is unknown
	add_sm_active(h, 2000, &d, 1);   // 1 s
	add_sm_active(h, 4000, &d, 0.5); // 2 s: a round was late
	assert_true(device_history_window(h, 0, FIELD_SM_ACTIVE, &w));
	assert_float_equal(w.avg, (0 + 1 + 2 * 0.5) / 4, 1e-12);
	add_sm_active(h, 8000, &d, 1); // 4 s ago is more than three intervals: counts for one
	assert_true(device_history_window(h, 0, FIELD_SM_ACTIVE, &w));
	assert_float_equal(w.avg, (0 + 1 + 2 * 0.5 + 1) / 5, 1e-12);
	device_history_free(h);
}

static void mean_power_is_energy_by_time(void **state)
{
	(void)state;
	const struct device d = device("GPU-a", "");
	struct device_history *h = make(3000, 1000);
	struct window w;
	static const struct {
		int64_t t_ms, energy_mj; // -1: none
		double watts, avg;
	} steps[] = {
	        {0, 1000000, 100, 100},
	        {1000, 1300000, 100, 300},                // 300 J in 1 s, whatever the last reading says
	        {2000, 1400000, 100, 200},                // 400 J in 2 s
	        {3000, 1400000, 100, 400.0 / 3},          // 400 J in 3 s
	        {4000, 1400000, 100, 100.0 / 3},          // the first second is out
	        {5000, 100000, 100, 100000.0 / 3000},     // the driver started over: 100 J since then
	        {6000, -1, 120, (100.0 + 100 + 120) / 3}, // without the counter: the mean of the readings
	};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct device_sample s = {.lost = false};
		if (steps[i].energy_mj >= 0)
			sample_set_i64(&s, FIELD_TOTAL_ENERGY, steps[i].energy_mj);
		sample_set_f64(&s, FIELD_POWER_USAGE, steps[i].watts);
		device_history_add(h, steps[i].t_ms, &d, &s, 1);
		assert_true(device_history_window(h, 0, FIELD_POWER_USAGE, &w));
		assert_true(w.min == 100 && w.max == steps[i].watts);
		assert_float_equal(w.avg, steps[i].avg, 1e-9);
	}
	device_history_free(h);
}

static void counters_go_on_when_the_driver_starts_over(void **state)
{
	(void)state;
	const struct device d[] = {device("GPU-a", ""), device("GPU-b", "")};
	struct device_history *h = make(0, 1000);
	static const struct {
		bool there;
		int64_t energy, vol, want_energy;
	} steps[] = {
	        {true, 1000, 5, 1000}, {true, 1200, 6, 1200}, {false, 0, 0, 0},     {true, 50, 0, 1250},
	        {true, 60, 1, 1260},   {true, 0, 1, 1260},    {true, 700, 2, 1960},
	};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct device_sample s[2] = {{.lost = false}, {.lost = false}};
		sample_set_i64(&s[1], FIELD_TOTAL_ENERGY, 7);
		if (steps[i].there) {
			sample_set_i64(&s[0], FIELD_TOTAL_ENERGY, steps[i].energy);
			sample_set_i64(&s[0], FIELD_ECC_DBE_VOL, steps[i].vol);
		}
		device_history_add(h, (int64_t)i * 1000, d, s, 2);
		assert_int_equal(s[1].value[FIELD_TOTAL_ENERGY].i, 7);
		assert_int_equal(sample_has(&s[0], FIELD_TOTAL_ENERGY), steps[i].there);
		if (!steps[i].there)
			continue;
		assert_int_equal(s[0].value[FIELD_TOTAL_ENERGY].i, steps[i].want_energy);
		// Since the last reset is what this one says: it must start over.
		assert_int_equal(s[0].value[FIELD_ECC_DBE_VOL].i, steps[i].vol);
	}
	device_history_free(h);
}

static void counters_never_wrap_around(void **state)
{
	(void)state;
	static const int64_t values[] = {INT64_MAX, 5, INT64_MAX, 7, 3, INT64_MAX - 1, INT64_MIN, -1, 2};
	const struct device d = device("GPU-a", "");
	struct device_history *h = make(1000, 200);
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		struct device_sample s = {.lost = false};
		sample_set_i64(&s, FIELD_TOTAL_ENERGY, values[i]);
		device_history_add(h, (int64_t)i * 200, &d, &s, 1);
		assert_int_equal(sample_has(&s, FIELD_TOTAL_ENERGY), values[i] >= 0); // a count is not negative
		if (values[i] >= 0)
			assert_true(s.value[FIELD_TOTAL_ENERGY].i >= values[i]);
	}
	device_history_free(h);
}

static void devices_are_known_by_name_not_by_place(void **state)
{
	(void)state;
	struct device_history *h = make(5000, 1000);
	struct window w;
	const struct device before[] = {device("GPU-a", ""), device("GPU-a", "7"), device("GPU-b", "")};
	const struct device now[] = {device("GPU-a", ""), device("GPU-b", "")};
	struct device_sample s[3] = {{.lost = false}, {.lost = false}, {.lost = false}};
	for (int i = 0; i < 3; i++)
		sample_set_f64(&s[i], FIELD_SM_ACTIVE, 0.1 * (i + 1));
	device_history_add(h, 0, before, s, 3);
	assert_int_equal(device_history_missing(h, false), 0);
	s[0].value[FIELD_SM_ACTIVE].f = s[1].value[FIELD_SM_ACTIVE].f = 0.5;
	device_history_add(h, 1000, now, s, 2); // the instance was destroyed, GPU-b moved up
	assert_true(device_history_window(h, 1, FIELD_SM_ACTIVE, &w));
	assert_float_equal(w.min, 0.3, 1e-12);
	assert_int_equal(device_history_missing(h, false), 0); // an instance is not a GPU
	device_history_add(h, 2000, now, s, 1);
	assert_int_equal(device_history_missing(h, false), 1);
	assert_int_equal(device_history_missing(h, true), 2);
	device_history_add(h, 3000, now, s, 2);
	assert_int_equal(device_history_missing(h, false), 0);
	device_history_free(h);
}

static void history_never_grows_past_its_ceiling(void **state)
{
	(void)state;
	struct device_history *h = make(1000, 1000);
	struct device_sample s = {.lost = false};
	struct window w;
	sample_set_f64(&s, FIELD_SM_ACTIVE, 0.5);
	const struct device first = device("GPU-first", "");
	device_history_add(h, 0, &first, &s, 1);
	// MIG instances with ever new names, as a cluster that partitions on demand makes them.
	for (int i = 0; i < 3 * DEVICE_HISTORY_DEVICES_MAX; i++) {
		char id[16];
		snprintf(id, sizeof id, "%d", i);
		const struct device d[] = {first, device("GPU-first", id)};
		struct device_sample both[] = {s, s};
		device_history_add(h, 1000 * (i + 1), d, both, 2);
		assert_true(device_history_window(h, 1, FIELD_SM_ACTIVE, &w));
	}
	assert_int_equal(device_history_missing(h, false), 0);
	device_history_free(h);
	struct err e;
	assert_null(device_history_new(61000, 100, &e));
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "a window of 1m1s at an interval of 100ms has 610 samples, the ceiling is 600"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(window_keeps_a_spike_and_lets_it_go_after_its_time),
	        cmocka_unit_test(reading_counts_for_the_time_before_it),
	        cmocka_unit_test(mean_power_is_energy_by_time),
	        cmocka_unit_test(counters_go_on_when_the_driver_starts_over),
	        cmocka_unit_test(counters_never_wrap_around),
	        cmocka_unit_test(devices_are_known_by_name_not_by_place),
	        cmocka_unit_test(history_never_grows_past_its_ceiling),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
