// SPDX-License-Identifier: Apache-2.0
// Goal of this test: every workload gets exactly one verdict, the first whose conditions hold; every verdict can be
// reached; and no verdict rests on a missing measure.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/families.h"
#include "insight/gpu_use_query.h"
#include "insight/verdict.h"

#define ROUNDS    200000
#define TEXT_MAX  ((size_t)1024 * 1024)
#define NAME_ROOM 64

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *seed >> 33;
}

// Missing, an edge, or near some limit of the table.
static double random_value(uint64_t *seed, enum verdict_measure m)
{
	size_t n = verdict_n_rows;
	const struct verdict_row *rows = verdict_rows;
	uint64_t kind = next(seed) % 8;
	if (kind == 0)
		return NAN;
	if (kind == 1)
		return 0;
	if (kind == 2)
		return (double)(next(seed) % 1000) / 1000;
	const struct verdict_row *r = &rows[next(seed) % n];
	for (size_t i = 0; i < r->n_terms; i++)
		if (r->terms[i].measure == m)
			return r->terms[i].limit * (0.5 + (double)(next(seed) % 3) / 2) + (kind == 3 ? 1e-9 : 0);
	return (double)(next(seed) % 100) / 100;
}

static bool holds(const struct verdict_term *t, double v)
{
	switch (t->op) {
	case OP_ABOVE:
		return !isnan(v) && v > t->limit;
	case OP_BELOW:
		return !isnan(v) && v < t->limit;
	case OP_AT_LEAST:
		return !isnan(v) && v >= t->limit;
	case OP_NOT_AT_LEAST:
		return isnan(v) || v < t->limit;
	case OP_END:
		break;
	}
	return false;
}

static bool row_holds(const struct verdict_row *r, const double *values)
{
	for (size_t i = 0; i < r->n_terms; i++)
		if (!holds(&r->terms[i], values[r->terms[i].measure]))
			return false;
	return true;
}

static void every_vector_of_measures_has_the_first_verdict_that_holds(void **state)
{
	(void)state;
	uint64_t seed = 1;
	const struct verdict_row *rows = verdict_rows;
	size_t reached[VERDICT__COUNT] = {0};
	for (int round = 0; round < ROUNDS; round++) {
		double values[MEASURE__COUNT];
		for (int m = 0; m < MEASURE__COUNT; m++) // few of the faults at a time, so that later rows are reached
			values[m] = m >= MEASURE_LINK && next(&seed) % 16
			                    ? NAN
			                    : random_value(&seed, (enum verdict_measure)m);
		const struct verdict_row *r = verdict_decide(values);
		assert_non_null(r);
		assert_true(row_holds(r, values));
		for (const struct verdict_row *before = rows; before < r; before++)
			assert_false(row_holds(before, values));
		reached[r->verdict]++;
		double lost = verdict_lost_ratio(r->verdict, values);
		assert_true(isnan(lost) || (lost >= 0 && lost <= 1));
	}
	for (int v = 0; v < VERDICT__COUNT; v++)
		if (reached[v] == 0)
			fail_msg("verdict %s was not reached", verdict_infos[v].name);
}

static void workload_without_a_measure_is_unmeasured(void **state)
{
	(void)state;
	double values[MEASURE__COUNT];
	for (int m = 0; m < MEASURE__COUNT; m++)
		values[m] = NAN;
	assert_int_equal(verdict_decide(values)->verdict, VERDICT_UNMEASURED);
	enum verdict_measure evidence[VERDICT_EVIDENCE_MAX];
	assert_int_equal(verdict_evidence(verdict_decide(values), values, evidence), 0);
}

// A row that no vector can reach, because the rows before it take every case, would be a dead line of the table.
static void every_row_is_reached_by_some_vector(void **state)
{
	(void)state;
	size_t n = verdict_n_rows;
	const struct verdict_row *rows = verdict_rows;
	for (size_t i = 0; i < n; i++) {
		double values[MEASURE__COUNT];
		for (int m = 0; m < MEASURE__COUNT; m++)
			values[m] = NAN;
		for (size_t k = 0; k < rows[i].n_terms; k++) {
			const struct verdict_term *t = &rows[i].terms[k];
			// Just inside the limit.
			values[t->measure] = t->op == OP_ABOVE      ? t->limit * 1.01 + 1e-6
			                     : t->op == OP_AT_LEAST ? t->limit
			                                            : t->limit * 0.99;
		}
		if (verdict_decide(values) != &rows[i])
			fail_msg("row %zu (%s) is hidden by row %zu", i, verdict_infos[rows[i].verdict].name,
			         (size_t)(verdict_decide(values) - rows));
	}
}

static void rows_start_with_a_term_that_needs_its_measure(void **state)
{
	(void)state;
	size_t n = verdict_n_rows;
	const struct verdict_row *rows = verdict_rows;
	for (size_t i = 0; i + 1 < n; i++) {
		assert_true(rows[i].n_terms > 0);
		assert_true(rows[i].terms[0].op != OP_NOT_AT_LEAST); // `unless` has nothing to stand on in PromQL
	}
	assert_int_equal(rows[n - 1].n_terms, 0);
}

static void evidence_starts_with_the_measures_of_the_row(void **state)
{
	(void)state;
	double values[MEASURE__COUNT];
	for (int m = 0; m < MEASURE__COUNT; m++)
		values[m] = NAN;
	values[MEASURE_SM] = 0.2;
	values[MEASURE_CPU] = 0.95;
	values[MEASURE_BUSY] = 0.3;
	const struct verdict_row *r = verdict_decide(values);
	enum verdict_measure e[VERDICT_EVIDENCE_MAX];
	assert_int_equal(r->verdict, VERDICT_PREPROCESSING);
	assert_int_equal(verdict_evidence(r, values, e), 3);
	assert_int_equal(e[0], MEASURE_SM);
	assert_int_equal(e[1], MEASURE_CPU);
	assert_int_equal(e[2], MEASURE_BUSY);
	assert_true(fabs(verdict_lost_ratio(r->verdict, values) - 0.8) < 1e-9);
}

static void every_measure_and_verdict_is_in_the_rules_and_on_the_page(void **state)
{
	(void)state;
	struct buf rules, page;
	buf_init(&rules, TEXT_MAX);
	buf_init(&page, TEXT_MAX);
	verdict_rules_print(&rules, VERDICT_WINDOW_S);
	verdict_page_print(&page);
	assert_false(rules.failed || page.failed);
	char name[NAME_ROOM];
	for (int m = 0; m < MEASURE__COUNT; m++) {
		snprintf(name, sizeof name, "- record: workload:%s:diagnosed\n", verdict_measures[m].name);
		assert_non_null(strstr(buf_str(&rules), name));
	}
	for (int v = 0; v < VERDICT__COUNT; v++) {
		snprintf(name, sizeof name, "\"%s\"", verdict_infos[v].name);
		assert_non_null(strstr(buf_str(&rules), name));
		snprintf(name, sizeof name, "\n### %s\n", verdict_infos[v].name);
		assert_non_null(strstr(buf_str(&page), name));
	}
	assert_null(strchr(buf_str(&rules), '\t'));
	buf_done(&rules);
	buf_done(&page);
}

static void windows_replace_their_placeholders(void **state)
{
	(void)state;
	struct buf query;
	buf_init(&query, TEXT_MAX);
	for (int m = 0; m < MEASURE__COUNT; m++)
		verdict_query_measure(&query, (enum verdict_measure)m, 40);
	assert_null(strstr(buf_str(&query), "$W"));
	assert_null(strstr(buf_str(&query), "$L"));
	assert_null(strstr(buf_str(&query), "$S"));
	assert_non_null(strstr(buf_str(&query), "[40s:2s]"));
	assert_non_null(strstr(buf_str(&query), "offset 240s"));
	buf_done(&query);
}

// Exporters serve GPU_UTIL of a MIG instance as 0.
static void no_query_reads_the_utilization_of_an_instance(void **state)
{
	(void)state;
	struct buf query;
	struct err e;
	buf_init(&query, TEXT_MAX);
	for (int m = 0; m < MEASURE__COUNT; m++)
		verdict_query_measure(&query, (enum verdict_measure)m, 60);
	for (int m = 0; m < GPU_MEASURE__COUNT; m++)
		gpu_use_query(&query, (enum gpu_measure)m, &(struct gpu_use_parts){0}, 5);
	for (int what = 0; what < GPU_IDLE__COUNT; what++)
		assert_int_equal(gpu_idle_query(&query, (enum gpu_idle)what, 60, 600, NULL, &e), 0);
	assert_false(query.failed);
	size_t n = 0;
	for (int f = 0; f < FIELD__COUNT; f++) {
		const struct family *family = family_of((enum field)f);
		size_t len = strlen(family->name);
		for (const char *at = buf_str(&query); (at = strstr(at, family->name)); at += len) {
			if (family->scope != FAMILY_WHOLE || at[len] == '_')
				continue;
			assert_memory_equal(at + len, "{GPU_I_ID=\"\"}", sizeof "{GPU_I_ID=\"\"}" - 1);
			n++;
		}
	}
	assert_true(n > 10);
	buf_done(&query);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_vector_of_measures_has_the_first_verdict_that_holds),
	        cmocka_unit_test(workload_without_a_measure_is_unmeasured),
	        cmocka_unit_test(every_row_is_reached_by_some_vector),
	        cmocka_unit_test(rows_start_with_a_term_that_needs_its_measure),
	        cmocka_unit_test(evidence_starts_with_the_measures_of_the_row),
	        cmocka_unit_test(every_measure_and_verdict_is_in_the_rules_and_on_the_page),
	        cmocka_unit_test(windows_replace_their_placeholders),
	        cmocka_unit_test(no_query_reads_the_utilization_of_an_instance),
	};
	return cmocka_run_group_tests_name("verdicts", tests, NULL, NULL);
}
