// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a failed query marks a source down only together with the probe or, where the probe does not
// count, with another query sent alone; one answer marks it up.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "promql/promql_health.h"

// '+' answered, 'P' the probe answered, 'p' the probe failed. 'B' and 'C' are two queries that fail alone, 'M' a
// combined request that fails, 'b' and 'q' are B and the probe failing after another query was answered.
static enum promql_health_state after(const char *outcomes)
{
	struct promql_health h = {0};
	for (; *outcomes; outcomes++) {
		switch (*outcomes) {
		case '+':
		case 'P':
			promql_health_answered(&h, *outcomes == 'P');
			break;
		case 'p':
		case 'q':
			promql_health_probe_failed(&h, *outcomes == 'q');
			break;
		case 'b':
			promql_health_failed(&h, 'B', true, true);
			break;
		default:
			promql_health_failed(&h, (uint64_t)*outcomes, *outcomes != 'M', false);
		}
	}
	return h.state;
}

static void outcomes_give_the_state(void **state)
{
	(void)state;
	static const struct {
		const char *outcomes;
		enum promql_health_state state;
	} rows[] = {
	        {"", PROMQL_UP},
	        {"+", PROMQL_UP},
	        {"B", PROMQL_DEGRADED},
	        {"BBBBBBBB", PROMQL_DEGRADED}, // however often
	        {"Bp", PROMQL_DOWN},           // nothing was ever answered: the probe counts
	        {"BPBP", PROMQL_DEGRADED},
	        {"BPBCBCBCBC", PROMQL_DEGRADED}, // however many, as long as the probe is answered
	        {"PBp", PROMQL_DOWN},
	        {"PMp", PROMQL_DOWN},
	        {"PMMMM", PROMQL_DEGRADED}, // a failed combined request does not count by itself
	        {"Pp", PROMQL_DEGRADED},    // nor does the probe
	        {"PBq", PROMQL_DEGRADED},   // another query was answered in between
	        {"Pbp", PROMQL_DEGRADED},
	        {"PB+p", PROMQL_DEGRADED},
	        {"PBp+", PROMQL_UP}, // whatever is answered
	        {"PBpP", PROMQL_UP},
	        {"PBp+B", PROMQL_DEGRADED},
	        {"PBpPBp", PROMQL_DOWN},
	        {"B++++", PROMQL_DEGRADED}, // until the failure is forgotten
	        {"B+++++", PROMQL_UP},
	        {"+Bp", PROMQL_DEGRADED}, // queries were answered and the probe never was: it does not count
	        {"+BpBp", PROMQL_DEGRADED},
	        {"+MpMp", PROMQL_DEGRADED},
	        {"+BC", PROMQL_DOWN}, // then two queries sent alone count
	        {"+BMBM", PROMQL_DEGRADED},
	        {"+BpBpBp", PROMQL_DOWN}, // or one that failed three times
	        {"+BB+BB+BB", PROMQL_DEGRADED},
	        {"+B+C", PROMQL_DEGRADED},
	        {"+BbC", PROMQL_DOWN},
	        {"+BPC", PROMQL_DEGRADED}, // the probe was answered after all
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (after(rows[i].outcomes) != rows[i].state)
			fail_msg("after \"%s\": %s, not %s", rows[i].outcomes,
			         promql_health_names[after(rows[i].outcomes)], promql_health_names[rows[i].state]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(outcomes_give_the_state)};
	return cmocka_run_group_tests_name("promql_health", tests, NULL, NULL);
}
