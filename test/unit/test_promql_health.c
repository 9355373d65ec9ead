// SPDX-License-Identifier: Apache-2.0
// Goal of this test: three failures of the last five bring a source down, unless it answered somebody meanwhile; two
// probes bring it back; nothing less does either.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "promql/promql_health.h"

// '+' answered, '-' failed, 't' timed out, 'a' failed while others were answered: each another query. 'G' is a query
// that is answered, 'B' and 'C' are two that fail, every time.
static enum promql_health_state after(const char *outcomes)
{
	struct promql_health h = {0};
	for (uint64_t other = 1000; *outcomes; outcomes++) {
		bool upper = *outcomes < 'a' && *outcomes > '-';
		uint64_t query = upper ? (uint64_t)*outcomes : other++;
		if (*outcomes == '+' || *outcomes == 'G')
			promql_health_answered(&h, query);
		else
			promql_health_failed(&h, query, *outcomes == 'a', *outcomes == 't');
	}
	return h.state;
}

static void outcomes_make_the_state(void **state)
{
	(void)state;
	static const struct {
		const char *outcomes;
		enum promql_health_state state;
	} rows[] = {
	        {"", PROMQL_UP},
	        {"+", PROMQL_UP},
	        {"-", PROMQL_DEGRADED},
	        {"--", PROMQL_DEGRADED},
	        {"---", PROMQL_DOWN},
	        {"ttt", PROMQL_DOWN},
	        {"-+-+-", PROMQL_DOWN}, // three of five
	        {"-++--", PROMQL_DOWN},
	        {"-+++--", PROMQL_DEGRADED}, // the first is forgotten
	        {"-+++++", PROMQL_UP},       // degraded lasts as long as the failure is remembered
	        {"-++++", PROMQL_DEGRADED},
	        {"aaaaaaaa", PROMQL_DEGRADED}, // slow queries among good ones
	        {"aaaaa-", PROMQL_DOWN},
	        {"---+", PROMQL_DOWN}, // one probe is not enough
	        {"---++", PROMQL_UP},
	        {"---+-+", PROMQL_DOWN}, // a failed one starts over
	        {"---+-++", PROMQL_UP},
	        {"---+t+", PROMQL_UP},        // a slow one does not
	        {"---++--", PROMQL_DEGRADED}, // back up, it has its full credit again
	        {"---++---", PROMQL_DOWN},
	        {"BBB", PROMQL_DOWN}, // nobody else asks: it is the source
	        {"GBBB", PROMQL_DOWN},
	        {"GBGBGBGBGB", PROMQL_DEGRADED}, // it is the query
	        {"GBGBBGGBBG", PROMQL_DEGRADED},
	        {"GBCGBCGBCGCB", PROMQL_DEGRADED},
	        {"GBGB--", PROMQL_DOWN}, // until others fail, too
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (after(rows[i].outcomes) != rows[i].state)
			fail_msg("after \"%s\": %s, not %s", rows[i].outcomes,
			         promql_health_name(after(rows[i].outcomes)), promql_health_name(rows[i].state));
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(outcomes_make_the_state)};
	return cmocka_run_group_tests_name("promql_health", tests, NULL, NULL);
}
