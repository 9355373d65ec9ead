// SPDX-License-Identifier: Apache-2.0
// Intel GPUs from a made-up /sys, as i915 and xe lay it out.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "exporter/backend.h"
#include "test/support/tree.h"

#define I915 "class/drm/card0/"
#define XE   "class/drm/card1/"

static int setup(void **state)
{
	static struct tree t;
	tree_make(&t);
	tree_write(&t, I915 "device/uevent", "DRIVER=i915\nPCI_ID=8086:56A0\nPCI_SLOT_NAME=0000:03:00.0\n");
	tree_write(&t, I915 "gt_act_freq_mhz", "2000\n");
	tree_write(&t, XE "device/uevent", "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:0a:00.0\n");
	tree_write(&t, XE "device/tile0/gt0/freq0/cur_freq", "1200\n");
	*state = &t;
	return 0;
}

static int teardown(void **state)
{
	tree_remove(*state);
	return 0;
}

static void each_driver_has_its_files(void **state)
{
	const struct tree *t = *state;
	static const struct {
		const char *file, *text;
		int card;
		enum field field;
		double want; // -1: no sample
	} cases[] = {
	        {I915 "gt_cur_freq_mhz", "2400\n", 0, FIELD_SM_CLOCK, 2000}, // as it is, not as asked for
	        {I915 "gt_RP0_freq_mhz", "2450\n", 0, FIELD_MAX_SM_CLOCK, 2450},
	        {I915 "gt/gt0/rps_RP0_freq_mhz", "2500\n", 0, FIELD_MAX_SM_CLOCK, 2500},
	        {I915 "lmem_total_bytes", "17179869184\n", 0, FIELD_FB_TOTAL, 16384},
	        {I915 "lmem_avail_bytes", "4294967296\n", 0, FIELD_FB_USED, 12288},
	        {I915 "device/hwmon/hwmon2/power1_max", "190000000\n", 0, FIELD_POWER_LIMIT, 190},
	        {I915 "device/hwmon/hwmon2/energy1_input", "987654321000\n", 0, FIELD_TOTAL_ENERGY, 987654321},
	        {I915 "device/hwmon/hwmon2/temp1_input", "44000\n", 0, FIELD_GPU_TEMP, 44},
	        {XE "device/tile0/gt0/freq0/cur_freq", "1200\n", 1, FIELD_SM_CLOCK, 1200},
	        {XE "device/tile0/gt0/freq0/act_freq", "0\n", 1, FIELD_SM_CLOCK, 0}, // asleep
	        {XE "device/tile0/gt0/freq0/rp0_freq", "2850\n", 1, FIELD_MAX_SM_CLOCK, 2850},
	        {XE "device/tile0/physical_vram_size_bytes", "12884901888\n", 1, FIELD_FB_TOTAL, 12288},
	        {XE "device/tile0/physical_vram_size_bytes", "12884901888\n", 1, FIELD_FB_USED, -1},
	        {XE "device/hwmon/hwmon3/energy2_input", "5000000000\n", 1, FIELD_TOTAL_ENERGY, 5000000},
	        {XE "device/hwmon/hwmon3/temp2_label", "pkg\n", 1, FIELD_GPU_TEMP, -1},
	        {XE "device/hwmon/hwmon3/temp2_input", "44000\n", 1, FIELD_GPU_TEMP, 44},
	        {XE "device/hwmon/hwmon3/temp3_label", "vram\n", 1, FIELD_MEMORY_TEMP, -1},
	        {XE "device/hwmon/hwmon3/temp3_input", "52000\n", 1, FIELD_MEMORY_TEMP, 52},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct err e;
		struct device_sample s[DEVICES_MAX];
		tree_write(t, cases[i].file, cases[i].text);
		struct backend *b = backend_intel_new(&(struct backend_config){.sysfs_root = t->root}, &e);
		assert_int_equal(b->ops->open(b, &e), 0);
		assert_int_equal(b->ops->sample(b, 0, 0, s, &e), 0);
		const struct device_sample *got = &s[cases[i].card];
		if (sample_has(got, cases[i].field) != (cases[i].want >= 0))
			fail_msg("%s = %s: sample %d", cases[i].file, cases[i].text, sample_has(got, cases[i].field));
		if (cases[i].want >= 0)
			assert_float_equal(sample_get(got, cases[i].field), cases[i].want, 1e-9);
		b->ops->close(b);
		b->ops->destroy(b);
	}
}

static void power_and_utilisation_are_rates_of_counters(void **state)
{
	const struct tree *t = *state;
	static const struct {
		int64_t t_ms;
		const char *energy_uj, *idle_ms;
		double watts, percent; // -1: none
	} steps[] = {
	        {0, "1000000000\n", "5000\n", -1, -1},
	        {1000, "1150000000\n", "5250\n", 150, 75}, // 150 J in 1 s; slept 250 ms of it
	        {3000, "1250000000\n", "7250\n", 50, 0},
	        {4000, "1250000000\n", "8300\n", 0, 0}, // slept a little more than there was: rounding
	        {5000, "100\n", "0\n", -1, -1},         // the driver started over
	        {6000, "100000100\n", "0\n", 100, 100},
	        {7000, "100000100\n", "2003\n", 0, -1}, // slept two seconds of one: not idle, but not known
	        {8000, "-5\n", "-9223372036854775808\n", -1, -1},
	        {9000, "300000100\n", "2503\n", 100, 75}, // since the last good reading
	};
	struct err e;
	struct device_sample s[DEVICES_MAX];
	struct backend *b = NULL;
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		tree_write(t, I915 "device/hwmon/hwmon2/energy1_input", steps[i].energy_uj);
		tree_write(t, I915 "gt/gt0/rc6_residency_ms", steps[i].idle_ms);
		tree_write(t, XE "device/tile0/gt0/gtidle/idle_residency_ms", steps[i].idle_ms);
		if (!b) {
			b = backend_intel_new(&(struct backend_config){.sysfs_root = t->root}, &e);
			assert_int_equal(b->ops->open(b, &e), 0);
		}
		assert_int_equal(b->ops->sample(b, steps[i].t_ms, 0, s, &e), 0);
		assert_int_equal(sample_has(&s[0], FIELD_POWER_USAGE), steps[i].watts >= 0);
		if (steps[i].watts >= 0)
			assert_float_equal(s[0].value[FIELD_POWER_USAGE].f, steps[i].watts, 1e-9);
		for (int card = 0; card < 2; card++) {
			assert_int_equal(sample_has(&s[card], FIELD_GPU_UTIL), steps[i].percent >= 0);
			if (steps[i].percent >= 0)
				assert_int_equal(s[card].value[FIELD_GPU_UTIL].i, (int64_t)steps[i].percent);
		}
	}
	b->ops->close(b);
	b->ops->destroy(b);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
	        TEST(each_driver_has_its_files),
	        TEST(power_and_utilisation_are_rates_of_counters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
