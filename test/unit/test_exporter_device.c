// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a sample keeps what a GPU can report, drops and counts what none can, whatever the backend.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "exporter/device.h"

static void values_that_no_gpu_can_have_are_dropped_and_counted(void **state)
{
	(void)state;
	static const struct {
		enum field field;
		double value, want; // NAN: dropped
	} cases[] = {
	        {FIELD_GPU_UTIL, 100, 100},
	        {FIELD_GPU_UTIL, 101, NAN},
	        {FIELD_GPU_UTIL, 150000, NAN},
	        {FIELD_GPU_UTIL, -1, NAN},
	        {FIELD_FAN_SPEED, 120, 120},
	        {FIELD_FAN_SPEED, 65535, NAN},
	        {FIELD_GPU_TEMP, -40, -40},
	        {FIELD_GPU_TEMP, -101, NAN},
	        {FIELD_GPU_TEMP, 250, NAN},
	        {FIELD_MEMORY_TEMP, 4294967295.0, NAN},
	        {FIELD_POWER_USAGE, 4294967.295, NAN},
	        {FIELD_POWER_USAGE, NAN, NAN},
	        {FIELD_POWER_USAGE, INFINITY, NAN},
	        {FIELD_PSTATE, 16, NAN},
	        {FIELD_SM_ACTIVE, 1.05, 1},
	        {FIELD_SM_ACTIVE, 1.294, NAN},
	        {FIELD_FB_USED_PERCENT, 1.5, NAN},
	        {FIELD_ROW_REMAP_FAILURE, 2, NAN},
	        {FIELD_SM_CLOCK, 1e7, NAN},
	        {FIELD_FB_USED, 8e18, NAN},
	        {FIELD_PCIE_RX_BYTES, 1e14, NAN},
	        {FIELD_XID_ERRORS, -1, NAN},
	        {FIELD_TOTAL_ENERGY, 1e15, 1e15},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		enum field f = cases[i].field;
		struct device_sample s = {.implausible = 2};
		if (family_of(f)->kind == FIELD_INT)
			sample_set_i64(&s, f, (int64_t)cases[i].value);
		else
			sample_set_f64(&s, f, cases[i].value);
		sample_check(&s);
		bool dropped = isnan(cases[i].want);
		if (sample_has(&s, f) == dropped || s.implausible != (dropped ? 3 : 2))
			fail_msg("%s %g", family_of(f)->name, cases[i].value);
		if (!dropped)
			assert_true(sample_get(&s, f) == cases[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(values_that_no_gpu_can_have_are_dropped_and_counted),
	};
	return cmocka_run_group_tests_name("exporter_device", tests, NULL, NULL);
}
