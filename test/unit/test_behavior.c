// SPDX-License-Identifier: Apache-2.0
// Goal of this test: stabilization and rate limits are those of the HPA, value by value and reason by reason.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/json_read.h"
#include "test/support/engine.h"

#define SAMPLE_PATH       "test/data/hpa-rate-sample.jsonl"
#define SAMPLE_ROWS       30
#define SAMPLE_LINE_BYTES 4096

// ---- the published sample: 30 calls of the rate stage ----

static int32_t number_in(const cJSON *o, const char *key)
{
	const cJSON *v = json_get(o, key);
	assert_true(cJSON_IsNumber(v));
	return (int32_t)v->valuedouble;
}

static void add_rates(struct engine *e, int direction, const cJSON *list)
{
	const cJSON *row;
	cJSON_ArrayForEach(row, list)
	{
		const char *type = cJSON_GetArrayItem(row, 0)->valuestring;
		assert_true(strcmp(type, "Pods") == 0 || strcmp(type, "Percent") == 0);
		engine_add_rate(e, direction, strcmp(type, "Pods") == 0 ? RATE_PODS : RATE_PERCENT,
		                (int32_t)cJSON_GetArrayItem(row, 1)->valuedouble,
		                (int64_t)(cJSON_GetArrayItem(row, 2)->valuedouble * 1000));
	}
}

struct event {
	int64_t ago_ms;
	int32_t change;
};

static size_t read_events(struct event *out, size_t n, const cJSON *list, int direction)
{
	const cJSON *row;
	cJSON_ArrayForEach(row, list)
	{
		out[n++] = (struct event){(int64_t)(-cJSON_GetArrayItem(row, 0)->valuedouble * 1000),
		                          direction * (int32_t)cJSON_GetArrayItem(row, 1)->valuedouble};
		assert_true(n < 32);
	}
	return n;
}

static int older_first(const void *a, const void *b)
{
	int64_t x = ((const struct event *)a)->ago_ms, y = ((const struct event *)b)->ago_ms;
	return (x < y) - (x > y);
}

static void check_row(const cJSON *row, int line)
{
	struct engine e;
	engine_init(&e, number_in(row, "current"));
	e.policy.min_replicas = number_in(row, "min");
	e.policy.max_replicas = number_in(row, "max");
	add_rates(&e, +1, json_get(row, "upPolicies"));
	add_rates(&e, -1, json_get(row, "downPolicies"));
	engine_add_replicas(&e, "desired");
	engine_start(&e);
	struct event events[32];
	size_t n = read_events(events, 0, json_get(row, "upEvents"), +1);
	n = read_events(events, n, json_get(row, "downEvents"), -1);
	qsort(events, n, sizeof events[0], older_first);
	for (size_t i = 0; i < n; i++)
		decide_record_scale(&e.policy, e.state, e.now_ms - events[i].ago_ms, 100, 100 + events[i].change);
	engine_show(&e, 0, number_in(row, "desired"));
	const struct decision *d = engine_tick(&e);
	const char *reason = json_get_str(row, "reason", "");
	if (d->desired != number_in(row, "expected") || strcmp(reason_info(d->reason)->name, reason) != 0)
		fail_msg("row %d: %d %s, must be %d %s", line, d->desired, reason_info(d->reason)->name,
		         number_in(row, "expected"), reason);
	engine_done(&e);
}

static void the_sample_of_the_rate_stage_comes_out_row_by_row(void **state)
{
	FILE *f = fopen(SAMPLE_PATH, "re");
	assert_non_null(f);
	char line[SAMPLE_LINE_BYTES];
	int n = 0;
	while (fgets(line, sizeof line, f)) {
		struct err err;
		cJSON *row = json_read(line, strlen(line), &err);
		assert_non_null(row);
		check_row(row, ++n);
		cJSON_Delete(row);
	}
	fclose(f);
	assert_int_equal(n, SAMPLE_ROWS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(the_sample_of_the_rate_stage_comes_out_row_by_row),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
