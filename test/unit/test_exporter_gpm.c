// SPDX-License-Identifier: Apache-2.0
// Profiling fields through GPM, against the scripted library of test/fake/nvml.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/err.h"
#include "exporter/backend.h"
#include "exporter/nvml/nvml.h"
#include "test/support/nvml_fixture.h"

struct gpm_test {
	struct nvml_api api;
	nvml_device gpu;
	struct nvml_gpm g;
};

static void begin(struct gpm_test *t, const char *library)
{
	struct err e;
	*t = (struct gpm_test){.gpu = NULL};
	assert_int_equal(nvml_api_load(&t->api, library, &e), 0);
	assert_int_equal(t->api.handle_by_index(1, &t->gpu), NVML_SUCCESS);
}

static void end(struct gpm_test *t)
{
	nvml_gpm_done(&t->api, &t->g);
	backend_unload_library(&t->api, sizeof t->api);
}

// Reads at t_ms; how many fields there were, or minus the result.
static int read_at(struct gpm_test *t, int64_t t_ms, struct device_sample *s)
{
	*s = (struct device_sample){.lost = false};
	nvml_return r = nvml_gpm_read(&t->api, t->gpu, NVML_WHOLE_GPU, &t->g, t_ms, s);
	return r == NVML_SUCCESS ? (int)sample_count(s) : -r;
}

static void every_metric_arrives_in_its_field_and_unit(void **state)
{
	struct nvml_fixture *f = *state;
	struct gpm_test t;
	struct device_sample s;
	begin(&t, f->library[LIB_WHOLE]);
	assert_int_equal(read_at(&t, 0, &s), 0); // a difference needs two
	assert_int_equal(read_at(&t, 1000, &s), 16);
	// The scripted library gives every metric its own number.
	static const struct {
		enum field field;
		double want;
	} cases[] = {
	        {FIELD_GR_ENGINE_ACTIVE, 0.01},
	        {FIELD_SM_ACTIVE, 0.02},
	        {FIELD_SM_OCCUPANCY, 0.03},
	        {FIELD_PIPE_INT_ACTIVE, 0.04},
	        {FIELD_PIPE_TENSOR_ACTIVE, 0.05},
	        {FIELD_PIPE_TENSOR_DFMA_ACTIVE, 0.06},
	        {FIELD_PIPE_TENSOR_HMMA_ACTIVE, 0.07},
	        {FIELD_PIPE_TENSOR_IMMA_ACTIVE, 0.09},
	        {FIELD_DRAM_ACTIVE, 0.10},
	        {FIELD_PIPE_FP64_ACTIVE, 0.11},
	        {FIELD_PIPE_FP32_ACTIVE, 0.12},
	        {FIELD_PIPE_FP16_ACTIVE, 0.13},
	        {FIELD_PCIE_TX_BYTES, 20 * 1048576.0},
	        {FIELD_PCIE_RX_BYTES, 21 * 1048576.0},
	        {FIELD_NVLINK_RX_BYTES, 60 * 1048576.0},
	        {FIELD_NVLINK_TX_BYTES, 61 * 1048576.0},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_true(sample_has(&s, cases[i].field));
		assert_float_equal(sample_get(&s, cases[i].field), cases[i].want, 1e-12);
	}
	end(&t);
}

static void numbers_that_cannot_be_are_dropped(void **state)
{
	struct nvml_fixture *f = *state;
	struct gpm_test t;
	struct device_sample s;
	begin(&t, f->library[LIB_WHOLE]);
	read_at(&t, 0, &s);
	nvml_fixture_play(f, "set gpm2 * 100300\nset gpm5 * 140000000\nfail gpm10 * 3\nset gpm20 * 99999999999999\n");
	assert_int_equal(read_at(&t, 1000, &s), 13);
	assert_true(sample_has(&s, FIELD_SM_ACTIVE) && s.value[FIELD_SM_ACTIVE].f == 1); // 100.3 % is 1
	assert_false(sample_has(&s, FIELD_PIPE_TENSOR_ACTIVE));
	assert_false(sample_has(&s, FIELD_DRAM_ACTIVE));
	assert_false(sample_has(&s, FIELD_PCIE_TX_BYTES));
	end(&t);
}

static void rounds_too_close_repeat_and_a_long_pause_begins_anew(void **state)
{
	struct nvml_fixture *f = *state;
	struct gpm_test t;
	struct device_sample s;
	begin(&t, f->library[LIB_WHOLE]);
	static const struct {
		int64_t t_ms;
		const char *script;
		double want; // SM_ACTIVE; -1: none
	} steps[] = {
	        {0, "set gpm2 * 10000\n", -1},
	        {99, "set gpm2 * 20000\n", -1},
	        {100, "set gpm2 * 30000\n", 0.3},
	        {150, "set gpm2 * 40000\n", 0.3},
	        {200, "set gpm2 * 50000\n", 0.5},
	        {200 + 600000, "set gpm2 * 60000\n", 0.6},
	        {200 + 600000 + 600001, "set gpm2 * 70000\n", -1},
	        {1300000, "set gpm2 * 80000\n", 0.8},
	        {1301000, "fail nvmlGpmSampleGet * 15\n", -1},
	        {1302000, "set gpm2 * 90000\n", -1}, // the past ended with the failure
	        {1303000, "set gpm2 * 91000\n", 0.91},
	        {1304000, "fail nvmlGpmMetricsGet * 999\n", -1},
	        {1305000, "set gpm2 * 92000\n", 0.92},
	        {1200000, "set gpm2 * 93000\n", -1}, // a clock that goes back
	};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		nvml_fixture_play(f, steps[i].script);
		read_at(&t, steps[i].t_ms, &s);
		assert_int_equal(sample_has(&s, FIELD_SM_ACTIVE), steps[i].want >= 0);
		if (steps[i].want >= 0)
			assert_float_equal(s.value[FIELD_SM_ACTIVE].f, steps[i].want, 1e-12);
	}
	end(&t);
}

static void gpus_without_gpm_are_asked_once(void **state)
{
	struct nvml_fixture *f = *state;
	struct gpm_test t;
	struct device_sample s;
	begin(&t, f->library[LIB_WHOLE]);
	nvml_fixture_play(f, "set gpm_supported * 0\n");
	assert_int_equal(read_at(&t, 0, &s), -NVML_NOT_SUPPORTED);
	nvml_fixture_play(f, "");
	assert_int_equal(read_at(&t, 1000, &s), -NVML_NOT_SUPPORTED);
	end(&t);
	begin(&t, f->library[LIB_OLD]);
	assert_int_equal(read_at(&t, 0, &s), -NVML_FUNCTION_NOT_FOUND);
	end(&t);
	// What may pass is asked again.
	begin(&t, f->library[LIB_WHOLE]);
	nvml_fixture_play(f, "fail nvmlGpmSampleAlloc * 999\n");
	assert_int_equal(read_at(&t, 0, &s), -NVML_UNKNOWN);
	nvml_fixture_play(f, "fail nvmlGpmQueryDeviceSupport * 4\n");
	assert_int_equal(read_at(&t, 1000, &s), -NVML_NO_PERMISSION);
	nvml_fixture_play(f, "");
	assert_int_equal(read_at(&t, 2000, &s), 0);
	assert_int_equal(read_at(&t, 3000, &s), 16);
	end(&t);
}

static void instance_is_sampled_through_its_gpu(void **state)
{
	struct nvml_fixture *f = *state;
	struct gpm_test t;
	struct device_sample s = {.lost = false};
	begin(&t, f->library[LIB_WHOLE]);
	nvml_fixture_play(f, "mig 1 7 1g.18gb\n");
	assert_int_equal(nvml_gpm_read(&t.api, t.gpu, 7, &t.g, 0, &s), NVML_SUCCESS);
	assert_int_equal(nvml_gpm_read(&t.api, t.gpu, 7, &t.g, 1000, &s), NVML_SUCCESS);
	assert_float_equal(s.value[FIELD_SM_ACTIVE].f, 0.09, 1e-12); // 2 % and 7 for the instance
	nvml_fixture_play(f, "");
	assert_int_equal(nvml_gpm_read(&t.api, t.gpu, 7, &t.g, 2000, &s), NVML_NOT_FOUND);
	end(&t);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, nvml_fixture_setup, nvml_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(every_metric_arrives_in_its_field_and_unit),
	        TEST(numbers_that_cannot_be_are_dropped),
	        TEST(rounds_too_close_repeat_and_a_long_pause_begins_anew),
	        TEST(gpus_without_gpm_are_asked_once),
	        TEST(instance_is_sampled_through_its_gpu),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
