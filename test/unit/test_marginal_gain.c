// SPDX-License-Identifier: Apache-2.0
// Goal of this test: Amdahl's curve is found from the throughput at several replica counts, noise makes the fit more
// careful, and too few observations give none.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "policies/engine/state.h"

// 6.8 times the throughput of one on eight replicas: (8 / 6.8 - 1) / 7.
#define SERIAL         0.0252
#define BELIEVED_AFTER 60

static void assert_near(double got, double want, double error)
{
	if (!(fabs(got - want) <= error))
		fail_msg("%.9g, must be %.9g", got, want);
}

static double curve(double serial, int32_t n)
{
	return 100 * n / (1 + serial * (n - 1));
}

// Shows `times` observations of n replicas, with a relative error of up to `noise`, always the same ones.
static void show(struct marginal_gain *g, int32_t n, int times, double serial, double noise, uint32_t *random)
{
	marginal_gain_tick(g, n, n);
	for (int i = 0; i < times; i++) {
		*random = *random * 1664525u + 1013904223u;
		double error = noise * ((double)(*random >> 8) / (1 << 23) - 1);
		marginal_gain_observe(g, curve(serial, n) * (1 + error), BELIEVED_AFTER);
	}
}

static struct gain_fit fit_of(double serial, int32_t from, int32_t to, double noise, uint32_t seed)
{
	struct marginal_gain g = {0};
	struct gain_fit fit;
	for (int32_t n = from; n <= to; n++)
		show(&g, n, 10, serial, noise, &seed);
	assert_true(marginal_gain_fit(&g, &fit));
	return fit;
}

static void curve_of_6_8_on_8_stops_at_8(void **state)
{
	struct gain_fit fit = fit_of(SERIAL, 1, 8, 0, 1);
	assert_near(fit.serial, SERIAL, 1e-6);
	assert_int_equal(fit.usable, 8);
	assert_int_equal(marginal_gain_limit(fit.serial, 0.7, 100), 8);
	assert_near(marginal_gain_of(fit.serial, 9), 0.69, 0.005);
	assert_near(marginal_gain_of(fit.serial, 8), 0.72, 0.005);
	assert_near(8 / (1 + fit.serial * 7), 6.8, 0.001); // the speed-up itself
}

static void limit_is_the_last_replica_that_adds_enough(void **state)
{
	for (int s = 0; s <= 20; s++)
		for (int b = 1; b <= 9; b++)
			for (int32_t most = 1; most <= 70; most += 23) {
				double serial = s / 20.0, bound = b / 10.0;
				int32_t n = 0;
				while (n < most && marginal_gain_of(serial, n + 1) >= bound)
					n++;
				assert_int_equal(marginal_gain_limit(serial, bound, most), n);
			}
	assert_int_equal(marginal_gain_limit(0, 0.9, INT32_MAX - 1), INT32_MAX - 1);
}

// Up to 5 % of noise is allowed to move the stop by a few replicas, never to stop a target that scales well.
static void noise_does_not_stop_what_scales(void **state)
{
	for (uint32_t seed = 1; seed <= 200; seed++) {
		struct gain_fit good = fit_of(0.001, 2, 8, 0.05, seed), bad = fit_of(0.2, 2, 8, 0.05, seed);
		assert_true(marginal_gain_limit(good.serial, 0.7, 16) >= 9);
		assert_in_range(marginal_gain_limit(bad.serial, 0.5, 16), 2, 3);
	}
}

static void outlier_moves_a_point_by_a_fifth(void **state)
{
	struct marginal_gain g = {0};
	uint32_t random = 1;
	show(&g, 4, 10, SERIAL, 0, &random);
	marginal_gain_observe(&g, 2 * curve(SERIAL, 4), BELIEVED_AFTER);
	assert_near(g.points[0].throughput, 1.2 * curve(SERIAL, 4), 1e-9);
	marginal_gain_observe(&g, NAN, BELIEVED_AFTER);
	marginal_gain_observe(&g, INFINITY, BELIEVED_AFTER);
	marginal_gain_observe(&g, 0, BELIEVED_AFTER);
	marginal_gain_observe(&g, -1, BELIEVED_AFTER);
	assert_near(g.points[0].throughput, 1.2 * curve(SERIAL, 4), 1e-9);
}

static void wrong_throughput_is_ignored_unless_it_lasts(void **state)
{
	static const double wrong[] = {1e3, 1e18, 1e-5, 2.1};
	uint32_t random = 1;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct marginal_gain g = {0};
		double right = curve(SERIAL, 4);
		show(&g, 4, 10, SERIAL, 0, &random);
		for (int k = 1; k < BELIEVED_AFTER; k++)
			marginal_gain_observe(&g, right * wrong[i], BELIEVED_AFTER);
		assert_near(g.points[0].throughput, right, 0);
		marginal_gain_observe(&g, right, BELIEVED_AFTER);
		for (int k = 0; k < BELIEVED_AFTER; k++)
			marginal_gain_observe(&g, right * wrong[i], BELIEVED_AFTER);
		assert_near(g.points[0].throughput, right * wrong[i], 0);
		assert_int_equal(g.points[0].n, 1);
		// As the first observation of a count, it is replaced by the next one.
		marginal_gain_tick(&g, 5, 5);
		marginal_gain_observe(&g, right * wrong[i], BELIEVED_AFTER);
		marginal_gain_observe(&g, right, BELIEVED_AFTER);
		assert_near(g.points[1].throughput, right, 0);
	}
}

// Shows n replicas whose throughput is wrong by the factor.
static void show_wrong(struct marginal_gain *g, int32_t n, int times, double factor)
{
	marginal_gain_tick(g, n, n);
	for (int i = 0; i < times; i++)
		marginal_gain_observe(g, curve(SERIAL, n) * factor, BELIEVED_AFTER);
}

static void wrong_throughput_of_a_new_count_is_ignored_unless_it_lasts(void **state)
{
	static const double wrong[] = {1e-18, 1e-3, 0.1, 5, 1e3, 1e18};
	uint32_t random = 1;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
		for (int32_t known = 1; known <= 5; known++) {
			struct marginal_gain g = {0};
			struct gain_fit fit;
			for (int32_t n = 1; n <= known; n++)
				show(&g, n, 10, SERIAL, 0, &random);
			for (int32_t n = known + 1; n <= known + 2; n++)
				show_wrong(&g, n, BELIEVED_AFTER - 1, wrong[i]);
			bool fits = marginal_gain_fit(&g, &fit);
			assert_int_equal(fit.usable, known);
			assert_true(fits == (known >= 3));
			for (int32_t n = known + 2; n > known; n--)
				show(&g, n, 10, SERIAL, 0, &random);
			assert_true(marginal_gain_fit(&g, &fit));
			assert_near(fit.serial, SERIAL, 1e-6);
			// One that lasts is believed from then on.
			show_wrong(&g, known + 3, BELIEVED_AFTER + 9, wrong[i]);
			assert_near(g.points[g.n_points - 1].throughput / (curve(SERIAL, known + 3) * wrong[i]), 1,
			            1e-9);
			assert_int_equal(g.points[g.n_points - 1].n, 10);
		}
}

static void counts_that_contradict_each_other_stop_no_growth(void **state)
{
	static const double wrong[] = {1e-3, 0.1, 0.3, 5, 1e3};
	uint32_t random = 1;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct marginal_gain g = {0};
		struct gain_fit fit;
		for (int32_t n = 1; n <= 4; n++)
			show(&g, n, 10, SERIAL, 0, &random);
		for (int32_t n = 5; n <= 7; n++)
			show_wrong(&g, n, BELIEVED_AFTER + 9, wrong[i]);
		assert_false(marginal_gain_fit(&g, &fit));
		for (int32_t n = 7; n >= 5; n--)
			show(&g, n, BELIEVED_AFTER + 9, SERIAL, 0, &random);
		assert_true(marginal_gain_fit(&g, &fit));
		assert_near(fit.serial, SERIAL, 1e-6);
	}
}

static void doubt_of_one_count_is_not_that_of_another(void **state)
{
	struct marginal_gain g = {0};
	uint32_t random = 1;
	for (int32_t n = 4; n <= 5; n++)
		show(&g, n, 10, SERIAL, 0, &random);
	for (int i = 0; i < BELIEVED_AFTER; i++)
		show_wrong(&g, 4 + i % 2, 1, 1e-3);
	show_wrong(&g, 4, BELIEVED_AFTER - 1, 1e-3);
	assert_near(g.points[0].throughput, curve(SERIAL, 4), 0);
	assert_near(g.points[1].throughput, curve(SERIAL, 5), 0);
	// A replica that is not ready for a moment ends no doubt.
	marginal_gain_tick(&g, 4, 3);
	show_wrong(&g, 4, 1, 1e-3);
	assert_near(g.points[0].throughput, curve(SERIAL, 4) * 1e-3, 0);
}

// Neither a throughput that no replica raises, nor one that each raises as much, is in doubt.
static void curves_between_flat_and_linear_contradict_nothing(void **state)
{
	for (int32_t step = 1; step <= 9; step++)
		for (int up = 0; up <= 1; up++)
			for (int flat = 0; flat <= 1; flat++) {
				struct marginal_gain g = {0};
				struct gain_fit fit;
				uint32_t random = 1;
				for (int32_t i = 0; i < 4; i++)
					show(&g, 1 + step * (up ? i : 3 - i), 10, flat, 0.05, &random);
				assert_true(marginal_gain_fit(&g, &fit));
				assert_int_equal(fit.usable, 4);
			}
}

static void few_observations_give_no_fit(void **state)
{
	struct marginal_gain g = {0};
	struct gain_fit fit;
	uint32_t random = 1;
	assert_false(marginal_gain_fit(&g, &fit));
	show(&g, 4, 10, SERIAL, 0, &random);
	show(&g, 5, 10, SERIAL, 0, &random);
	assert_false(marginal_gain_fit(&g, &fit));
	assert_int_equal(fit.usable, 2);
	show(&g, 6, 2, SERIAL, 0, &random); // two observations are too few
	assert_false(marginal_gain_fit(&g, &fit));
	assert_int_equal(fit.usable, 2);
	show(&g, 6, 1, SERIAL, 0, &random);
	assert_true(marginal_gain_fit(&g, &fit));
	assert_int_equal(fit.usable, 3);

	g = (struct marginal_gain){0};
	for (int32_t n = 20; n <= 28; n++) // too close together
		show(&g, n, 10, SERIAL, 0, &random);
	assert_false(marginal_gain_fit(&g, &fit));
	assert_int_equal(fit.usable, 9);
}

static void replicas_that_are_not_all_ready_are_not_steady(void **state)
{
	struct marginal_gain g = {0};
	marginal_gain_tick(&g, 4, 3);
	assert_int_equal(g.steady, 0);
	marginal_gain_observe(&g, 100, BELIEVED_AFTER);
	assert_int_equal(g.n_points, 0);
	marginal_gain_tick(&g, 4, -1);
	assert_int_equal(g.steady, 0);
	marginal_gain_tick(&g, 4, 4);
	marginal_gain_tick(&g, 4, 4);
	assert_int_equal(g.steady_ticks, 1);
	marginal_gain_tick(&g, 5, 5);
	assert_int_equal(g.steady_ticks, 0);
	marginal_gain_tick(&g, 0, 0);
	assert_int_equal(g.steady, 0);
}

static void old_counts_are_forgotten_and_the_oldest_makes_room(void **state)
{
	struct marginal_gain g = {0};
	struct gain_fit fit;
	uint32_t random = 1;
	for (int32_t n = 1; n <= 40; n++)
		show(&g, n, 5, SERIAL, 0, &random);
	assert_int_equal(g.n_points, MARGINAL_GAIN_COUNTS_MAX);
	assert_true(marginal_gain_fit(&g, &fit));
	assert_near(fit.serial, SERIAL, 1e-6);
	for (uint32_t i = 0; i < g.n_points; i++)
		assert_true(g.points[i].replicas > 40 - MARGINAL_GAIN_COUNTS_MAX);
	show(&g, 40, 4096, SERIAL, 0, &random); // a day at one scale: it is tried again
	assert_false(marginal_gain_fit(&g, &fit));
	assert_int_equal(fit.usable, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(curve_of_6_8_on_8_stops_at_8),
	        cmocka_unit_test(limit_is_the_last_replica_that_adds_enough),
	        cmocka_unit_test(noise_does_not_stop_what_scales),
	        cmocka_unit_test(outlier_moves_a_point_by_a_fifth),
	        cmocka_unit_test(wrong_throughput_is_ignored_unless_it_lasts),
	        cmocka_unit_test(wrong_throughput_of_a_new_count_is_ignored_unless_it_lasts),
	        cmocka_unit_test(counts_that_contradict_each_other_stop_no_growth),
	        cmocka_unit_test(doubt_of_one_count_is_not_that_of_another),
	        cmocka_unit_test(curves_between_flat_and_linear_contradict_nothing),
	        cmocka_unit_test(few_observations_give_no_fit),
	        cmocka_unit_test(replicas_that_are_not_all_ready_are_not_steady),
	        cmocka_unit_test(old_counts_are_forgotten_and_the_oldest_makes_room),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
