// SPDX-License-Identifier: Apache-2.0
// Any bytes as a TZif file. Beyond "does not crash": a table that is taken rises, and the two halves of local time
// agree on it.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/tz/tzfile.h"
#include "policies/engine/schedule.h"
#include "test/support/timezone_local.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check(const struct tz_table *t)
{
	require(t->n <= TZFILE_TIMES_MAX + 2 * (TZFILE_LAST_YEAR - TZFILE_FIRST_YEAR + 1));
	for (size_t i = 0; i < t->n; i++) {
		require(i == 0 || t->at_s[i] > t->at_s[i - 1]);
		require(t->offset_s[i] >= -TZ_OFFSET_MAX_S && t->offset_s[i] <= TZ_OFFSET_MAX_S);
		if (t->at_s[i] < -4 * TZ_OFFSET_MAX_S || t->at_s[i] > 253402300799)
			continue;
		for (int64_t u = t->at_s[i] - 1; u <= t->at_s[i] + 1; u++) {
			int64_t reached = timezone_reached(t, u);
			require(reached >= timezone_local(t, u));
			require(timezone_moment(t, reached) <= u && timezone_moment(t, reached + 1) > u);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct tz_table t;
	struct err e;
	arena_init(&a, 1 << 20);
	if (tzfile_parse("fuzz", data, size, &a, &t, &e) == 0)
		check(&t);
	else
		require(e.kind != ERR_NONE && e.msg[0] != '\0');
	// the rule alone, which the checksum-free file seldom reaches
	char rule[128];
	size_t n = size < sizeof rule - 1 ? size : sizeof rule - 1;
	memcpy(rule, data, n);
	rule[n] = '\0';
	int64_t at_s[262];
	int32_t offset_s[262], first;
	int times = tzfile_rule(rule, TZFILE_FIRST_YEAR, at_s, offset_s, 262, &first);
	if (times >= 0) {
		struct tz_table by_rule = {at_s, offset_s, (size_t)times, first};
		check(&by_rule);
	}
	arena_done(&a);
	return 0;
}
