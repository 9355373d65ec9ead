// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a family has one name under each naming, no two fields that differ share one without an attribute
// that distinguishes them, and the commands read a page of any naming.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/cmd/page_view.h"
#include "exporter/csv_counters.h"
#include "exporter/device.h"
#include "exporter/families.h"
#include "exporter/page/render_page.h"
#include "exporter/xid.h"

// Names and units of DCGM 4.7, the names that dcgm-exporter 4.9 serves by default.
static void default_families_have_the_names_and_units_of_4_9(void **state)
{
	(void)state;
	static const struct {
		enum field f;
		const char *name;
		double factor;
	} want[] = {
	        {FIELD_SM_CLOCK, "DCGM_FI_DEV_SM_CLOCK_HERTZ", 1e6},
	        {FIELD_MEM_CLOCK, "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", 1e6},
	        {FIELD_MEMORY_TEMP, "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS", 1},
	        {FIELD_GPU_TEMP, "DCGM_FI_DEV_GPU_TEMP_CELSIUS", 1},
	        {FIELD_POWER_USAGE, "DCGM_FI_DEV_BOARD_POWER_WATTS", 1},
	        {FIELD_TOTAL_ENERGY, "DCGM_FI_DEV_GPU_ENERGY_JOULES_TOTAL", 1e-3},
	        {FIELD_PCIE_REPLAY, "DCGM_FI_DEV_PCIE_REPLAY_TOTAL", 1},
	        {FIELD_GPU_UTIL, "DCGM_FI_DEV_GPU_UTIL_RATIO", 0.01},
	        {FIELD_MEM_COPY_UTIL, "DCGM_FI_DEV_MEMORY_UTIL_RATIO", 0.01},
	        {FIELD_ENC_UTIL, "DCGM_FI_DEV_ENC_UTIL_RATIO", 0.01},
	        {FIELD_DEC_UTIL, "DCGM_FI_DEV_DEC_UTIL_RATIO", 0.01},
	        {FIELD_XID_ERRORS, "DCGM_FI_DEV_XID_ERROR", 1},
	        {FIELD_FB_FREE, "DCGM_FI_DEV_FB_FREE_BYTES", 1048576},
	        {FIELD_FB_USED, "DCGM_FI_DEV_FB_USED_BYTES", 1048576},
	        {FIELD_FB_RESERVED, "DCGM_FI_DEV_FB_RESERVED_BYTES", 1048576},
	        {FIELD_UNCORRECTABLE_REMAPPED_ROWS, "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL", 1},
	        {FIELD_ROW_REMAP_FAILURE, "DCGM_FI_DEV_ROW_REMAP_FAILED", 1},
	        {FIELD_NVLINK_BANDWIDTH_TOTAL, "DCGM_FI_DEV_NVLINK_THROUGHPUT_BYTES_PER_SECOND", 1024000},
	        {FIELD_VGPU_LICENSE_STATUS, "DCGM_FI_DEV_VGPU_LICENSE_STATUS", 1},
	        {FIELD_GR_ENGINE_ACTIVE, "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO", 1},
	        {FIELD_PIPE_TENSOR_ACTIVE, "DCGM_FI_PROF_TENSOR_UTIL_RATIO", 1},
	        {FIELD_DRAM_ACTIVE, "DCGM_FI_PROF_DRAM_UTIL_RATIO", 1},
	        {FIELD_PCIE_TX_BYTES, "DCGM_FI_PROF_PCIE_TX_BYTES", 1},
	};
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		struct naming_family nf = naming_family_of(NAMING_4_9, want[i].f);
		assert_string_equal(nf.name, want[i].name);
		assert_true(nf.factor == want[i].factor);
		assert_string_equal(naming_family_of(NAMING_LEGACY, want[i].f).name, family_of(want[i].f)->name);
	}
}

static void conventions_give_the_names_that_prometheus_writes(void **state)
{
	(void)state;
	static const struct {
		enum field f;
		const char *name;
		double factor;
	} want[] = {
	        {FIELD_GPU_UTIL, "hw_gpu_utilization_ratio", 0.01},
	        {FIELD_FB_USED, "hw_gpu_memory_usage_bytes", 1048576},
	        {FIELD_FB_TOTAL, "hw_gpu_memory_limit_bytes", 1048576},
	        {FIELD_FB_USED_PERCENT, "hw_gpu_memory_utilization_ratio", 1},
	        {FIELD_TOTAL_ENERGY, "hw_energy_joules_total", 1e-3},
	        {FIELD_POWER_USAGE, "hw_power_watts", 1},
	        {FIELD_GPU_TEMP, "hw_temperature_celsius", 1},
	        {FIELD_ECC_DBE_VOL, "hw_errors_total", 1},
	        {FIELD_SM_ACTIVE, "DCGM_FI_PROF_SM_UTIL_RATIO", 1}, // the conventions have no such metric
	};
	for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
		struct naming_family nf = naming_family_of(NAMING_OTEL, want[i].f);
		assert_string_equal(nf.name, want[i].name);
		assert_true(nf.factor == want[i].factor);
	}
}

static void no_two_fields_have_one_name_and_the_same_attributes(void **state)
{
	(void)state;
	for (int n = 0; n < NAMING__COUNT; n++)
		for (enum field f = 0; f < FIELD__COUNT; f++)
			for (enum field g = 0; g < f; g++) {
				struct naming_family x = naming_family_of((enum naming)n, f),
				                     y = naming_family_of((enum naming)n, g);
				if (strcmp(x.name, y.name) != 0)
					continue;
				assert_non_null(x.otel);
				assert_int_not_equal(
				        memcmp(x.otel->attributes, y.otel->attributes, sizeof x.otel->attributes), 0);
				assert_int_equal(x.type, y.type);
			}
}

static void help_states_the_unit_of_the_naming(void **state)
{
	(void)state;
	static const struct {
		enum naming n;
		enum field f;
		const char *help, *want;
	} cases[] = {
	        {NAMING_4_9, FIELD_SM_CLOCK, "SM clock (MHz).", "SM clock (Hz)."},
	        {NAMING_4_9, FIELD_FB_USED, "Framebuffer memory used (in MiB).", "Framebuffer memory used (bytes)."},
	        {NAMING_4_9, FIELD_GPU_UTIL, "no unit", "no unit (0-1)."},
	        {NAMING_4_9, FIELD_GPU_TEMP, "Temperature of the GPU (C).", "Temperature of the GPU (C)."},
	        {NAMING_OTEL, FIELD_GPU_UTIL, "x", "Share of time spent in a task (0-1)."},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		char help[NAMING_HELP_BYTES];
		struct naming_family nf = naming_family_of(cases[i].n, cases[i].f);
		naming_write_help(help, sizeof help, &nf, cases[i].f, cases[i].help);
		assert_string_equal(help, cases[i].want);
	}
}

static void counters_file_may_use_the_names_of_4_9(void **state)
{
	(void)state;
	static const char text[] = "DCGM_FI_DEV_GPU_UTIL_RATIO, gauge, x\nDCGM_FI_SYSTEM_DRIVER_VERSION, label, v\n"
	                           "DCGM_FI_DEV_GPU_UTIL, gauge, the same field again\n";
	struct csv_counters c;
	struct buf remarks;
	struct err e;
	buf_init(&remarks, 4096);
	assert_int_equal(csv_counters_parse(&c, "f", text, strlen(text), &remarks, &e), 0);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.rows[0].field, FIELD_GPU_UTIL);
	assert_true(c.driver_version);
	assert_int_equal(c.skipped, 1);
	csv_counters_done(&c);
	buf_done(&remarks);
}

// Every family of a page comes back with the value that the device reported, whatever the naming.
static void commands_read_every_naming(void **state)
{
	(void)state;
	for (int n = 0; n < NAMING__COUNT; n++) {
		struct err e;
		struct buf out;
		struct render_page r;
		struct xid_store *xids = xid_store_new(&e);
		struct device d = {.index = 0, .uuid = "GPU-a"};
		struct device_sample s = {0};
		for (enum field f = 0; f < FIELD__COUNT; f++)
			if (family_of(f)->kind == FIELD_INT)
				sample_set_i64(&s, f, 100 + f);
			else
				sample_set_f64(&s, f, 0.25 + (int)f);
		const struct render_page_options o = {
		        .hostname_label = "hostname", .hostname = "h", .names = (enum naming)n, .xids = xids};
		const struct sampler_round round = {.devices = &d, .samples = &s, .n = 1, .driver_version = "1"};
		render_page_init(&r, &o);
		buf_init(&out, 1024 * 1024);
		render_page_round(&r, &round, &out);
		struct page_view *v = page_view_new(buf_str(&out), out.len, &e);
		assert_non_null(v);
		assert_int_equal(v->n, 1);
		for (enum field f = 0; f < FIELD__COUNT; f++) {
			double value = NAN;
			assert_true(page_view_get(&v->gpus[0], family_of(f)->name, &value));
			assert_true(fabs(value - sample_get(&s, f)) < 1e-3);
		}
		page_view_free(v);
		render_page_done(&r);
		buf_done(&out);
		xid_store_free(xids);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(default_families_have_the_names_and_units_of_4_9),
	        cmocka_unit_test(conventions_give_the_names_that_prometheus_writes),
	        cmocka_unit_test(no_two_fields_have_one_name_and_the_same_attributes),
	        cmocka_unit_test(help_states_the_unit_of_the_naming),
	        cmocka_unit_test(counters_file_may_use_the_names_of_4_9),
	        cmocka_unit_test(commands_read_every_naming),
	};
	return cmocka_run_group_tests_name("exporter_naming", tests, NULL, NULL);
}
