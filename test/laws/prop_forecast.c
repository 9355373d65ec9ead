// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a forecast does no harm. Over a long run of any load, the loads that the engine acts on are hardly
// further from the loads that come than without a forecast.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "test/laws/prop.h"

#define TICKS  4000
#define SEASON 40 // ticks
#define AHEAD  6

// Loads with a season, with one of another length, without one, and noise: kind and scale change from phase to phase.
struct load {
	int kind;
	double level, spread, season[SEASON];
};

static void load_begin(struct prop_random *r, struct load *l)
{
	l->kind = prop_up_to(r, 4);
	l->level = 100 + prop_up_to(r, 900);
	l->spread = l->level * prop_up_to(r, 50) / 100;
	for (int i = 0; i < SEASON; i++)
		l->season[i] = prop_up_to(r, 100) / 100.0 - 0.5;
}

static double load_next(struct prop_random *r, struct load *l, int64_t tick)
{
	double noise = l->spread * (prop_up_to(r, 200) / 100.0 - 1);
	switch (l->kind) {
	case 0: // a season with some noise
		return l->level * (1 + l->season[tick % SEASON]) + noise / 5;
	case 1: // noise around a level
		return l->level + noise;
	case 2: // a random walk
		l->level = fmax(l->level + noise / 5, 0);
		return l->level;
	case 3: // steps of any length
		l->level = prop_chance(r, 4) ? 100 + prop_up_to(r, 900) : l->level;
		return l->level;
	default: // a season whose length is not the configured one
		return l->level * (1 + l->season[tick * 7 / 11 % SEASON]);
	}
}

// Without a forecast, the policy acts as if the load of now stayed. A lead earned before the forecast was turned on may
// be lost again until it is turned off: on these loads, up to a ninth over a run.
static void forecast_is_hardly_worse_than_none(void **state)
{
	struct prop_random r = {prop_seed() + 25};
	struct engine e;
	int64_t n = prop_ticks(), on = 0, off = 0;
	for (int64_t done = 0; done < n;) {
		struct load l;
		double ahead[AHEAD] = {0}, before[AHEAD] = {0}, error = 0, without = 0, most = 0;
		engine_init(&e, 1);
		engine_add_value(&e, "s", 1)->target.type = TARGET_AVERAGE_VALUE;
		e.policy.max_replicas = 100000;
		e.policy.forecast = (struct policy_forecast){.set = true,
		                                             .signal = "s",
		                                             .model = prop_up_to(&r, 1),
		                                             .season_ms = 15000 * SEASON,
		                                             .window_ms = 15000 * (4 + prop_up_to(&r, 40)),
		                                             .horizon_ms = 15000 * AHEAD,
		                                             .use = FORECAST_BOTH,
		                                             .alpha = prop_up_to(&r, 10) / 10.0,
		                                             .beta = prop_up_to(&r, 2) / 10.0,
		                                             .gamma = prop_up_to(&r, 10) / 10.0};
		engine_start(&e);
		for (int i = 0; i < TICKS; i++, done++, e.now_ms += 15000) {
			if (i == 0 || prop_up_to(&r, 499) == 0) // in the mean, a phase takes 500 ticks
				load_begin(&r, &l);
			double load = load_next(&r, &l, i);
			engine_show(&e, 0, load);
			engine_tick(&e);
			const struct trace_entry *used = engine_find(&e, REASON_FORECAST);
			used = used ? used : engine_find(&e, REASON_FORECAST_COVERED);
			on += used != NULL;
			off += engine_find(&e, REASON_FORECAST_OFF) != NULL;
			double *slot = &ahead[i % AHEAD], *plain = &before[i % AHEAD];
			if (i >= AHEAD) {
				error += fabs(*slot - load);
				without += fabs(*plain - load);
			}
			*slot = used ? used->value : load;
			*plain = load;
			most = fmax(most, load);
		}
		if (error > 1.15 * without + AHEAD * most)
			prop_fail_at("a forecast is hardly worse than none", done, &e);
		engine_done(&e);
	}
	assert_true(on > n / 20 && off > n / 20); // the law was put to the test
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(forecast_is_hardly_worse_than_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
