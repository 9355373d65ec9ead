// SPDX-License-Identifier: Apache-2.0
// Goal of this test: what would make leases of other names than the ones asked for is refused at the start.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "controller/shard/shards.h"

static void options_that_cannot_be_are_refused(void **state)
{
	(void)state;
	char long_name[300];
	memset(long_name, 'a', sizeof long_name - 1);
	long_name[sizeof long_name - 1] = '\0';
	const struct {
		const char *namespace_name, *lease_name, *identity;
		int32_t n_shards;
		const char *fault;
	} rows[] = {
	        {"", "gpuscale", "a", 1, "--lease-namespace"},
	        {"..", "gpuscale", "a", 1, "--lease-namespace"},
	        {"a/b", "gpuscale", "a", 1, "--lease-namespace"},
	        {"a?b", "gpuscale", "a", 1, "--lease-namespace"},
	        {long_name, "gpuscale", "a", 1, "--lease-namespace"},
	        {"ns", "", "a", 1, "--lease-name"},
	        {"ns", "-a", "a", 1, "--lease-name"},
	        {"ns", "a/b", "a", 1, "--lease-name"},
	        {"ns", long_name, "a", 1, "--lease-name"},
	        {"ns", "gpuscale", "", 1, "--identity"},
	        {"ns", "gpuscale", long_name, 1, "--identity"},
	        {"ns", "gpuscale", "a", 0, "--shards"},
	        {"ns", "gpuscale", "a", SHARDS_MAX + 1, "--shards"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = {0};
		struct shards_options o = {
		        .namespace_name = rows[i].namespace_name,
		        .lease_name = rows[i].lease_name,
		        .identity = rows[i].identity,
		        .n_shards = rows[i].n_shards,
		        .timing = {.duration_ms = 15000, .renew_deadline_ms = 10000, .retry_period_ms = 2000}};
		assert_null(shards_new(&o, &e));
		assert_int_equal(e.kind, ERR_USAGE);
		if (!strstr(e.msg, rows[i].fault))
			fail_msg("row %zu: %s", i, e.msg);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(options_that_cannot_be_are_refused)};
	return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
