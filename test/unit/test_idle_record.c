// SPDX-License-Identifier: Apache-2.0
// What a rule about idle GPUs does next with a workload: one row per case.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "controller/idle/idle_record.h"
#include "policies/schema/idle_rule_schema.h"

#define N(a)    (sizeof(a) / sizeof((a)[0]))
#define MIN     INT64_C(60000)
#define NOW     (1000 * MIN)
#define PRESENT .exists = true, .former = -1
#define FREE    PRESENT, .replicas = 3

static const struct idle_rule rule = {.action = IDLE_SCALE, .grace_ms = 60 * MIN, .max_per_hour = 4};

static void next_step(void **state)
{
	static const struct {
		const char *name;
		enum idle_state state;
		bool is_idle;
		int64_t warned_ms;
		struct idle_facts facts;
		enum idle_step want;
	} rows[] = {
	        // clang-format off
		{"idle workload is warned about first",           IDLE_REPORTED, true,  0,              {FREE},                                         IDLE_STEP_WARN},
		{"held workload is warned about when free",       IDLE_HELD,     true,  0,              {FREE},                                         IDLE_STEP_WARN},
		{"deleted workload is dropped",                   IDLE_WARNED,   true,  NOW - 60 * MIN, {.former = -1},                                 IDLE_STEP_DROP},
		{"grace period",                                  IDLE_WARNED,   true,  NOW - 59 * MIN, {FREE},                                         IDLE_STEP_NONE},
		{"end of the grace period",                       IDLE_WARNED,   true,  NOW - 60 * MIN, {FREE},                                         IDLE_STEP_RECORD},
		{"limit per hour",                                IDLE_WARNED,   true,  NOW - 60 * MIN, {FREE, .last_scale_ms = NOW - 14 * MIN},        IDLE_STEP_LIMIT},
		{"after the limit",                               IDLE_WARNED,   true,  NOW - 60 * MIN, {FREE, .last_scale_ms = NOW - 15 * MIN},        IDLE_STEP_RECORD},
		{"policy controls it",                            IDLE_WARNED,   true,  NOW - 60 * MIN, {FREE, .held_why = "policy"},                   IDLE_STEP_HOLD},
		{"policy controls it, before the write",          IDLE_SCALING,  true,  0,              {FREE, .is_recorded = true, .held_why = "x"},   IDLE_STEP_HOLD},
		{"exempt",                                        IDLE_WARNED,   true,  NOW - 60 * MIN, {FREE, .is_exempt = true},                      IDLE_STEP_EXEMPT},
		{"exempt, before the write",                      IDLE_SCALING,  true,  0,              {FREE, .is_recorded = true, .is_exempt = true}, IDLE_STEP_EXEMPT},
		{"restore of a workload that was not scaled",     IDLE_WARNED,   true,  NOW - 60 * MIN, {FREE, .wants_restore = true},                  IDLE_STEP_EXEMPT},
		{"at the replicas of the rule already",           IDLE_REPORTED, true,  0,              {PRESENT, .replicas = 0},                       IDLE_STEP_HOLD},
		{"unwritten status",                              IDLE_SCALING,  true,  0,              {FREE},                                         IDLE_STEP_NONE},
		{"written status",                                IDLE_SCALING,  true,  0,              {FREE, .is_recorded = true},                    IDLE_STEP_SCALE},
		{"works again before the write",                  IDLE_SCALING,  false, 0,              {FREE, .is_recorded = true},                    IDLE_STEP_DROP},
		{"write without an answer took effect",           IDLE_SCALING,  false, 0,              {.exists = true, .former = 3},                  IDLE_STEP_DONE},
		{"write without an answer did not take effect",   IDLE_SCALING,  true,  0,              {.exists = true, .former = 3, .replicas = 3, .is_recorded = true}, IDLE_STEP_SCALE},
		{"people scaled it to 0 before the write",        IDLE_SCALING,  false, 0,              {PRESENT, .replicas = 0},                       IDLE_STEP_DROP},
		{"scaled",                                        IDLE_SCALED,   false, 0,              {.exists = true, .former = 3},                  IDLE_STEP_NONE},
		{"people scaled it up",                           IDLE_SCALED,   false, 0,              {.exists = true, .former = 3, .replicas = 1},   IDLE_STEP_DROP},
		{"people ask to restore it",                      IDLE_SCALED,   false, 0,              {.exists = true, .former = 3, .wants_restore = true}, IDLE_STEP_RESTORE},
		{"deleted after it was scaled",                   IDLE_SCALED,   false, 0,              {.former = -1},                                 IDLE_STEP_DROP},
	        // clang-format on
	};
	(void)state;
	for (size_t i = 0; i < N(rows); i++) {
		const struct idle_workload *some = (const struct idle_workload *)(const void *)&rule;
		const struct idle_record r = {.state = rows[i].state,
		                              .warned_ms = rows[i].warned_ms,
		                              .replicas = 3,
		                              .found = rows[i].is_idle ? some : NULL};
		enum idle_step got = idle_record_next(&rule, &r, &rows[i].facts, NOW);
		if (got != rows[i].want)
			fail_msg("%s: step %d, want %d", rows[i].name, got, rows[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(next_step)};
	return cmocka_run_group_tests_name("idle_record", tests, NULL, NULL);
}
