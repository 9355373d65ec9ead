// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a counters file written for dcgm-exporter is read as it is meant, and what cannot be served is
// reported with file and line.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/csv_counters.h"

#define REMARKS_MAX (1024 * 1024)

// One line: "NAME type help;" per row, then "+version" and the number of skipped rows.
static void describe(const struct csv_counters *c, struct buf *out)
{
	for (size_t i = 0; i < c->n; i++)
		buf_printf(out, "%s %s %s; ", family_of(c->rows[i].field)->name + strlen("DCGM_FI_"),
		           metric_type_name(c->rows[i].type), c->rows[i].help);
	buf_printf(out, "%s%zu", c->driver_version ? "+version " : "", c->skipped);
}

static void rows_are_read_as_dcgm_exporter_does(void **state)
{
	(void)state;
	static const struct {
		const char *text, *want, *remarks;
	} cases[] = {
	        {"DCGM_FI_DEV_GPU_UTIL, gauge, GPU utilization (in %).\n",
	         "DEV_GPU_UTIL gauge GPU utilization (in %).; 0", ""},
	        {"# a comment\n\n  # another\nDCGM_FI_DEV_GPU_TEMP,gauge,x", "DEV_GPU_TEMP gauge x; 0", ""},
	        // The order is the file's, not the table's.
	        {"DCGM_FI_DEV_FB_USED, gauge, b\nDCGM_FI_DEV_SM_CLOCK, gauge, a\n",
	         "DEV_FB_USED gauge b; DEV_SM_CLOCK gauge a; 0", ""},
	        {"DCGM_FI_DRIVER_VERSION, label, Driver Version\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n",
	         "DEV_GPU_TEMP gauge x; +version 0", ""},
	        {"\xef\xbb\xbf\tDCGM_FI_DEV_GPU_TEMP\t ,  counter\t, x y \r\n", "DEV_GPU_TEMP counter x y; 0", ""},
	        {"DCGM_FI_DEV_GPU_TEMP,gauge,\"a, \"\"b\"\"\" \n", "DEV_GPU_TEMP gauge a, \"b\"; 0", ""},
	        {"\"DCGM_FI_DEV_GPU_TEMP\" , \"gauge\",x\n", "DEV_GPU_TEMP gauge x; 0", ""},
	        {"DCGM_FI_DEV_GPU_TEMP, gauge,\n", "DEV_GPU_TEMP gauge Temperature of the GPU (C).; 0", ""},
	        // What cannot be served.
	        {"DCGM_FI_DEV_GPU_UTL, gauge, x\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:1: DCGM_FI_DEV_GPU_UTL: unknown field; did you mean DCGM_FI_DEV_GPU_UTIL?\n"},
	        {"WHAT, gauge, x\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:1: WHAT: unknown field\n"},
	        {"DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_DEV_GPU_TEMP, gauge, y\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:2: DCGM_FI_DEV_GPU_TEMP: already defined in line 1\n"},
	        {"DCGM_FI_DEV_GPU_TEMP, gauge, x\nDCGM_FI_DEV_FB_USED, gouge, y\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:2: DCGM_FI_DEV_FB_USED: type \"gouge\": must be gauge, counter or label\n"},
	        {"DCGM_FI_DEV_FB_USED, histogram, y\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:1: DCGM_FI_DEV_FB_USED: type \"histogram\": must be gauge, counter or label\n"},
	        {"DCGM_FI_DEV_FB_USED, gauge\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:1: fewer columns than three: expected FIELD, type, help\n"},
	        {"DCGM_FI_DEV_FB_USED, gauge, a, b\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:1: more columns than three: expected FIELD, type, help; a help text with a comma needs quotes\n"},
	        {"DCGM_FI_DEV_FB_USED, gauge, \"a\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:1: unbalanced quotes: write \"..\" around a whole column, and \"\" for a quote in it\n"},
	        {"DCGM_EXP_XID_ERRORS_COUNT, gauge, x\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:1: DCGM_EXP_XID_ERRORS_COUNT: not supported: a metric of dcgm-exporter about itself\n"},
	        {"DCGM_FI_DEV_OEM_INFOROM_VER, label, x\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:1: DCGM_FI_DEV_OEM_INFOROM_VER: not supported as a label; only DCGM_FI_DRIVER_VERSION is\n"},
	        {"DCGM_FI_DRIVER_VERSION, label, x\nDCGM_FI_DRIVER_VERSION, label, x\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n",
	         "DEV_GPU_TEMP gauge x; +version 1", "f:2: DCGM_FI_DRIVER_VERSION: already defined in line 1\n"},
	        {"a\x1b[31m, gauge, x\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n", "DEV_GPU_TEMP gauge x; 1",
	         "f:1: a\\x1b[31m: unknown field\n"},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct csv_counters c;
		struct buf got, remarks;
		struct err e = {.kind = ERR_NONE};
		buf_init(&got, REMARKS_MAX);
		buf_init(&remarks, REMARKS_MAX);
		assert_int_equal(csv_counters_parse(&c, "f", cases[i].text, strlen(cases[i].text), &remarks, &e), 0);
		describe(&c, &got);
		assert_string_equal(buf_str(&got), cases[i].want);
		assert_string_equal(buf_str(&remarks), cases[i].remarks);
		csv_counters_done(&c);
		buf_done(&got);
		buf_done(&remarks);
	}
}

static void builtin_list_is_the_whole_table(void **state)
{
	(void)state;
	struct csv_counters c;
	csv_counters_init_builtin(&c);
	assert_int_equal(c.n, FIELD__COUNT);
	assert_true(c.driver_version);
	assert_int_equal(c.skipped, 0);
	for (size_t i = 0; i < c.n; i++)
		assert_int_equal(c.rows[i].field, i);
	csv_counters_done(&c);
}

static int parse(const char *text, size_t len, struct err *e)
{
	struct csv_counters c;
	struct buf remarks;
	buf_init(&remarks, REMARKS_MAX);
	int rc = csv_counters_parse(&c, "f", text, len, &remarks, e);
	if (rc == 0)
		csv_counters_done(&c);
	buf_done(&remarks);
	return rc;
}

static void default_counters_of_dcgm_exporter_are_known(void **state)
{
	(void)state;
	// The rows that are switched on in dcgm-exporter's default-counters.csv (4.5 - 4.8).
	static const char text[] = "DCGM_FI_DEV_SM_CLOCK, gauge, x\nDCGM_FI_DEV_MEM_CLOCK, gauge, x\n"
	                           "DCGM_FI_DEV_MEMORY_TEMP, gauge, x\nDCGM_FI_DEV_GPU_TEMP, gauge, x\n"
	                           "DCGM_FI_DEV_POWER_USAGE, gauge, x\n"
	                           "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION, counter, x\n"
	                           "DCGM_FI_DEV_PCIE_REPLAY_COUNTER, counter, x\nDCGM_FI_DEV_GPU_UTIL, gauge, x\n"
	                           "DCGM_FI_DEV_MEM_COPY_UTIL, gauge, x\nDCGM_FI_DEV_ENC_UTIL, gauge, x\n"
	                           "DCGM_FI_DEV_DEC_UTIL, gauge, x\nDCGM_FI_DEV_XID_ERRORS, gauge, x\n"
	                           "DCGM_FI_DEV_FB_FREE, gauge, x\nDCGM_FI_DEV_FB_USED, gauge, x\n"
	                           "DCGM_FI_DEV_FB_RESERVED, gauge, x\n"
	                           "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS, counter, x\n"
	                           "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS, counter, x\n"
	                           "DCGM_FI_DEV_ROW_REMAP_FAILURE, gauge, x\n"
	                           "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL, counter, x\n"
	                           "DCGM_FI_DEV_VGPU_LICENSE_STATUS, gauge, x\nDCGM_FI_DRIVER_VERSION, label, x\n"
	                           "DCGM_FI_PROF_GR_ENGINE_ACTIVE, gauge, x\n"
	                           "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE, gauge, x\nDCGM_FI_PROF_DRAM_ACTIVE, gauge, x\n"
	                           "DCGM_FI_PROF_PCIE_TX_BYTES, gauge, x\nDCGM_FI_PROF_PCIE_RX_BYTES, gauge, x\n";
	struct csv_counters c;
	struct buf remarks;
	struct err e;
	buf_init(&remarks, REMARKS_MAX);
	assert_int_equal(csv_counters_parse(&c, "f", text, strlen(text), &remarks, &e), 0);
	assert_string_equal(buf_str(&remarks), "");
	assert_int_equal(c.n, 25);
	assert_true(c.driver_version);
	csv_counters_done(&c);
	buf_done(&remarks);
}

static void invalid_counters_file_is_refused(void **state)
{
	(void)state;
	struct err e = {.kind = ERR_NONE};
	assert_int_equal(parse("", 0, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	assert_string_equal(e.msg, "f: no row names a field that can be served");
	assert_int_equal(parse("# only\n", 7, &e), -1);
	assert_int_equal(parse("WHAT, gauge, x\n", 15, &e), -1);
	assert_int_equal(parse("DCGM_FI_DEV_GPU_TEMP, gauge, \0\n", 31, &e), -1);
	assert_string_equal(e.msg, "f: holds a NUL byte: not a counters file");
	char *big = malloc(CSV_COUNTERS_BYTES_MAX + 1);
	assert_non_null(big);
	memset(big, '#', CSV_COUNTERS_BYTES_MAX + 1);
	assert_int_equal(parse(big, CSV_COUNTERS_BYTES_MAX + 1, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	free(big);

	struct csv_counters c;
	assert_int_equal(csv_counters_read(&c, "/nonexistent/counters.csv", NULL, &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(e.msg, "/nonexistent/counters.csv"));
}

static void remarks_and_lines_have_ceilings(void **state)
{
	(void)state;
	struct buf text, remarks;
	struct csv_counters c;
	struct err e;
	buf_init(&text, CSV_COUNTERS_BYTES_MAX);
	buf_init(&remarks, REMARKS_MAX);
	for (int i = 0; i < 200; i++)
		buf_printf(&text, "WHAT_%d, gauge, x\n", i);
	buf_puts(&text, "DCGM_FI_DEV_GPU_TEMP, gauge, ");
	for (int i = 0; i < CSV_COUNTERS_LINE_BYTES_MAX; i++)
		buf_putc(&text, 'x');
	buf_puts(&text, "\nDCGM_FI_DEV_FB_USED, gauge, x\n");
	assert_int_equal(csv_counters_parse(&c, "f", text.data, text.len, &remarks, &e), 0);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.skipped, 201);
	size_t lines = 0;
	for (const char *p = buf_str(&remarks); (p = strchr(p, '\n')); p++)
		lines++;
	assert_int_equal(lines, CSV_COUNTERS_REMARKS_MAX + 1);
	assert_non_null(strstr(buf_str(&remarks), "f: 137 more rows are skipped\n"));
	csv_counters_done(&c);
	buf_done(&text);
	buf_done(&remarks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(rows_are_read_as_dcgm_exporter_does),
	        cmocka_unit_test(builtin_list_is_the_whole_table),
	        cmocka_unit_test(default_counters_of_dcgm_exporter_are_known),
	        cmocka_unit_test(invalid_counters_file_is_refused),
	        cmocka_unit_test(remarks_and_lines_have_ceilings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
