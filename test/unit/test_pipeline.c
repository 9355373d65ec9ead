// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the table of stages has one order everywhere (engine, documentation), and says correctly when a
// stage has an effect.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "policies/engine/decide.h"
#include "policies/engine/policy.h"

#define PAGE "docs/algorithm.md"

static void chapters_of_the_algorithm_page_follow_the_table(void **state)
{
	(void)state;
	char line[512], name[32];
	int n = 0;
	FILE *page = fopen(PAGE, "r");
	assert_non_null(page);
	while (fgets(line, sizeof line, page)) {
		// Chapters of stages start in lower case, the others (State, Clock, Laws) do not.
		if (strncmp(line, "## ", 3) != 0 || !(line[3] >= 'a' && line[3] <= 'z'))
			continue;
		size_t len = strcspn(line + 3, ":\n");
		assert_true(len < sizeof name);
		memcpy(name, line + 3, len);
		name[len] = '\0';
		assert_true(n < STAGE__COUNT);
		assert_string_equal(name, stage_name((enum stage)n));
		n++;
	}
	fclose(page);
	assert_int_equal(n, STAGE__COUNT);
}

static void picture_of_the_pipeline_follows_the_table(void **state)
{
	(void)state;
	char line[512], expected[512] = "";
	bool found = false;
	for (int s = 0; s < STAGE__COUNT; s++)
		snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s", s > 0 ? " -> " : "",
		         stage_name((enum stage)s));
	FILE *page = fopen(PAGE, "r");
	assert_non_null(page);
	while (fgets(line, sizeof line, page)) {
		line[strcspn(line, "\n")] = '\0';
		found |= strcmp(line, expected) == 0;
	}
	fclose(page);
	assert_true(found);
}

static void stage_is_enabled_by_its_field(void **state)
{
	(void)state;
	struct policy_signal signal = {.name = "a"};
	const struct policy plain = {.signals = &signal, .n_signals = 1, .replica_multiple = 1};
	static const enum stage always[] = {STAGE_SOURCES,   STAGE_SIGNALS, STAGE_COMBINE,
	                                    STAGE_STABILIZE, STAGE_RATE,    STAGE_BOUNDS};
	bool is_always[STAGE_DECIDE__COUNT] = {false};
	for (size_t i = 0; i < sizeof always / sizeof always[0]; i++)
		is_always[always[i]] = true;
	for (int s = 0; s < STAGE_DECIDE__COUNT; s++)
		assert_int_equal(stage_is_enabled((enum stage)s, &plain), is_always[s]);

#define ENABLED_BY(stage, field, v)                                                                                    \
	do {                                                                                                           \
		struct policy p = plain;                                                                               \
		p.field = v;                                                                                           \
		assert_true(stage_is_enabled(stage, &p));                                                              \
	} while (0)
	ENABLED_BY(STAGE_PANIC, panic.set, true);
	ENABLED_BY(STAGE_FORECAST, forecast.set, true);
	ENABLED_BY(STAGE_OBJECTIVE, objective.set, true);
	ENABLED_BY(STAGE_COOLDOWN, cooldown.up_ms, 1);
	ENABLED_BY(STAGE_COOLDOWN, cooldown.down_ms, 1);
	ENABLED_BY(STAGE_IDLE, idle.set, true);
	ENABLED_BY(STAGE_MULTIPLE, replica_multiple, 2);
	ENABLED_BY(STAGE_GUARDS, guards.set, true);
	ENABLED_BY(STAGE_MODE, paused, true);
	ENABLED_BY(STAGE_MODE, dry_run, true);
	signal.window.set = true;
	assert_true(stage_is_enabled(STAGE_WINDOWS, &plain));
	signal.sustain.down_ms = 1;
	assert_true(stage_is_enabled(STAGE_SUSTAIN, &plain));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(chapters_of_the_algorithm_page_follow_the_table),
	        cmocka_unit_test(picture_of_the_pipeline_follows_the_table),
	        cmocka_unit_test(stage_is_enabled_by_its_field),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
