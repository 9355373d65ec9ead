// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the leak detector, on memory that leaks under noise, and on memory that does not leak:
// allocator steps, sawtooths, warm-up, caches that fill. PROP_TABLE=1 prints the figures of docs/diagnosis.md.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "insight/leak.h"
#include "test/laws/prop.h"

#define GIB    1073741824.0
#define HOUR_S 3600
#define TAU    6.283185307179586
#define STEP_S 15

enum load { FLAT, NOISE, BATCHES, SAWTOOTH, ALLOCATOR, WARM_UP, CACHE, DAILY, LOAD__COUNT };
static const char *const load_names[] = {"constant",
                                         "noise of 1 GiB",
                                         "batches of 2 minutes",
                                         "sawtooth of 1 to 3 hours",
                                         "allocator steps",
                                         "warm-up of an hour",
                                         "cache that fills in 1 to 6 hours",
                                         "daily season"};
_Static_assert(sizeof load_names / sizeof load_names[0] == LOAD__COUNT, "one name per load");

struct outcome {
	double found_h, limit_h; // < 0: never
	int n_found;
};

static double uniform(struct prop_random *r)
{
	return ((double)prop_up_to(r, 1 << 24) + 0.5) / (double)((1 << 24) + 1);
}

static double normal(struct prop_random *r)
{
	return sqrt(-2 * log(uniform(r))) * cos(TAU * uniform(r));
}

static struct outcome run(uint64_t seed, enum load load, double leak_gib_per_h, double from_h, double hours)
{
	struct prop_random r = {seed * 7919 + 17};
	struct leak l = {.has_value = false};
	struct leak_report report;
	struct outcome o = {-1, -1, 0};
	double limit = 80, base = 20 + 25 * uniform(&r), period_h = 1 + 2 * uniform(&r), fill_h = 1 + 5 * uniform(&r);
	double amount = 5 + 15 * uniform(&r), steps = 0;
	for (int64_t i = 0; (double)i * STEP_S < hours * HOUR_S; i++) {
		double t = (double)i * STEP_S, h = t / HOUR_S, v = base + 0.05 * normal(&r);
		if (load == NOISE)
			v += normal(&r);
		if (load == BATCHES)
			v += fmod(t, 120) < 60 ? amount / 2 : 0;
		if (load == SAWTOOTH)
			v += amount * fmod(h, period_h) / period_h;
		if (load == ALLOCATOR && uniform(&r) < STEP_S / (2.0 * HOUR_S)) // one in two hours, fewer later
			steps += (0.5 + 2 * uniform(&r)) / (1 + h / 4);
		if (load == ALLOCATOR)
			v += steps;
		if (load == WARM_UP)
			v += amount * (1 - exp(-h / 0.3));
		if (load == CACHE)
			v += amount * fmin(1, h / fill_h);
		if (load == DAILY)
			v += amount / 2 * sin(TAU * h / 24);
		v += leak_gib_per_h * fmax(0, h - from_h);
		if (v >= limit) {
			o.limit_h = h;
			break;
		}
		if (leak_add(&l, (int64_t)(t * 1000), v * GIB, limit * GIB, -1, &report) == LEAK_FOUND &&
		    o.n_found++ == 0)
			o.found_h = h;
	}
	return o;
}

static void print_table(void)
{
	static const double rates[] = {0.25, 0.5, 1, 2, 4, 8};
	for (int i = 0; i < LOAD__COUNT; i++) {
		int alarms = 0, runs = 100;
		for (int k = 0; k < runs; k++)
			alarms += run(prop_seed() + (uint64_t)k, (enum load)i, 0, 0, 48).n_found > 0;
		printf("%-34s false %d of %d", load_names[i], alarms, runs);
		for (size_t f = 0; f < sizeof rates / sizeof *rates; f++) {
			int found = 0, n = 0;
			double lead = 0;
			for (int k = 0; k < 30; k++) {
				struct outcome o = run(prop_seed() + (uint64_t)k, (enum load)i, rates[f], 2, 400);
				n += o.limit_h > 0;
				found += o.limit_h > 0 && o.n_found && o.found_h >= 2 && o.found_h <= o.limit_h - 2;
				lead += o.limit_h > 0 && o.n_found ? o.limit_h - o.found_h : 0;
			}
			printf(" | %.2f: %d/%d, %.0f h", rates[f], found, n, n ? lead / n : 0);
		}
		printf("\n");
		fflush(stdout);
	}
}

// ---- the laws ----

static void healthy_memory_raises_no_alarm(void **state)
{
	int alarms = 0, runs = 8 * LOAD__COUNT;
	for (int k = 0; k < runs; k++) {
		int n = run(prop_seed() + (uint64_t)k, (enum load)(k % LOAD__COUNT), 0, 0, 48).n_found;
		if (n)
			printf("# %s: %d\n", load_names[k % LOAD__COUNT], n);
		alarms += n > 0;
	}
	if (alarms > 1)
		fail_msg("PROP_SEED=%llu: healthy memory raises no alarm: %d of %d", (unsigned long long)prop_seed(),
		         alarms, runs);
}

static void leak_is_found_two_hours_before_the_limit(void **state)
{
	static const double rates[] = {0.25, 0.5, 1, 2, 4};
	int found = 0, runs = 20 * LOAD__COUNT;
	for (int k = 0; k < runs; k++) {
		struct outcome o = run(prop_seed() + (uint64_t)k, (enum load)(k % LOAD__COUNT), rates[k % 5], 2, 400);
		found += o.n_found && o.found_h >= 2 && o.found_h <= o.limit_h - 2;
	}
	if (found < 95 * runs / 100)
		fail_msg("PROP_SEED=%llu: a leak is found two hours before the limit: %d of %d",
		         (unsigned long long)prop_seed(), found, runs);
}

int main(void)
{
	if (getenv("PROP_TABLE")) {
		print_table();
		return 0;
	}
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(healthy_memory_raises_no_alarm),
	        cmocka_unit_test(leak_is_found_two_hours_before_the_limit),
	};
	prop_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
