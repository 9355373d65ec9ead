// SPDX-License-Identifier: Apache-2.0
// The GPU time of a policy, and the prices that follow their file.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process/log.h"
#include "controller/controller.h"
#include "controller/policy/policy_report.h"
#include "policies/engine/policy.h"
#include "policies/price/price_book.h"

#define START INT64_C(1790812800000)

static void time_counts_with_the_replicas_before_it(void **state)
{
	struct policy p = {.max_replicas = 10, .interval_ms = 15000, .gpus = {true, 2, ""}};
	struct gpu_time t = {0};
	gpu_time_add(&t, &p, &p.gpus, START, 3);
	assert_int_equal(t.used_ms, 0);
	gpu_time_add(&t, &p, &p.gpus, START + 15000, 4);
	assert_int_equal(t.used_ms, 15000 * 3 * 2);
	assert_int_equal(t.saved_ms, 15000 * 7 * 2);
	gpu_time_add(&t, &p, &p.gpus, START + 25000, 12); // above maxReplicas: nothing is saved
	assert_int_equal(t.used_ms, 15000 * 3 * 2 + 10000 * 4 * 2);
	assert_int_equal(t.saved_ms, 15000 * 7 * 2 + 10000 * 6 * 2);
	int64_t saved_ms = t.saved_ms;
	gpu_time_add(&t, &p, &p.gpus, START + 35000, 1);
	assert_int_equal(t.saved_ms, saved_ms);
}

static void unknown_time_is_not_counted(void **state)
{
	struct policy p = {.max_replicas = 10, .interval_ms = 15000, .gpus = {true, 1, ""}};
	struct gpu_time t = {0};
	gpu_time_add(&t, &p, &p.gpus, START, 3);
	gpu_time_add(&t, &p, &p.gpus, START - 60000, 3); // the clock was set back
	assert_int_equal(t.used_ms, 0);
	gpu_time_add(&t, &p, &p.gpus, START + 3600000, 3); // four intervals of the hour
	assert_int_equal(t.used_ms, 60000 * 3);
	p.gpus.set = false;
	gpu_time_add(&t, &p, &p.gpus, START + 3610000, 3);
	assert_int_equal(t.used_ms, 60000 * 3);
}

static void write_prices(const char *path, const char *price)
{
	char next[64];
	snprintf(next, sizeof next, "%s.next", path);
	FILE *f = fopen(next, "w");
	assert_non_null(f);
	fprintf(f,
	        "apiVersion: gpuscale.dev/v1alpha1\nkind: PriceBook\ncurrency: EUR\nmodels:\n"
	        "- {name: L4, names: [NVIDIA L4], perGPUHour: %s, source: contract, asOf: \"2026-01-01\"}\n",
	        price);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(rename(next, path), 0);
}

static void prices_follow_their_file(void **state)
{
	char path[] = "/tmp/test_gpu_time.XXXXXX";
	struct clock clock;
	struct err e;
	enum price_basis basis;
	close(mkstemp(path));
	clock_init_real(&clock);
	struct log *log = log_new(open("/dev/null", O_WRONLY), LOG_FORMAT_TEXT, LOG_ERROR, &clock);
	assert_null(price_follower_new(path, log, &e)); // empty
	write_prices(path, "\"1.5\"");
	struct price_follower *f = price_follower_new(path, log, &e);
	assert_non_null(f);
	assert_int_equal(policy_gpu_micro(price_follower_book(f, START), "L4", &basis), 1500000);
	assert_int_equal(basis, PRICE_LISTED);
	write_prices(path, "\"2.5\"");
	assert_int_equal(policy_gpu_micro(price_follower_book(f, START + 500), "L4", &basis), 1500000); // once a second
	assert_int_equal(policy_gpu_micro(price_follower_book(f, START + 1500), "NVIDIA L4", &basis), 2500000);
	write_prices(path, "cheap"); // invalid: the previous prices stay
	assert_int_equal(policy_gpu_micro(price_follower_book(f, START + 3000), "L4", &basis), 2500000);
	assert_int_equal(policy_gpu_micro(price_follower_book(f, START + 6000), "H100-SXM", &basis), 0);
	assert_int_equal(basis, PRICE_NONE);
	price_follower_free(f);
	log_free(log);
	unlink(path);
}

static void shipped_prices_are_the_default(void **state)
{
	struct err e;
	enum price_basis basis;
	struct price_follower *f = price_follower_new(NULL, NULL, &e);
	const struct price_book *book = price_follower_book(f, START);
	assert_non_null(book);
	assert_true(policy_gpu_micro(book, "H100-SXM", &basis) > 0);
	assert_int_equal(basis, PRICE_LISTED);
	assert_true(policy_gpu_micro(book, "no such model", &basis) > 0);
	assert_int_equal(basis, PRICE_ASSUMED);
	assert_int_equal(policy_gpu_micro(book, "", &basis), 0);
	assert_int_equal(basis, PRICE_NONE);
	price_follower_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(time_counts_with_the_replicas_before_it),
	        cmocka_unit_test(unknown_time_is_not_counted),
	        cmocka_unit_test(prices_follow_their_file),
	        cmocka_unit_test(shipped_prices_are_the_default),
	};
	return cmocka_run_group_tests_name("gpu time", tests, NULL, NULL);
}
