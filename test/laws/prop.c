// SPDX-License-Identifier: Apache-2.0
#include "test/laws/prop.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/num.h"
#include "policies/engine/schedule.h"

#define TICKS_DEFAULT 100000
#define TICKS_MAX     1000000000

static uint64_t next(struct prop_random *r) // splitmix64
{
	uint64_t z = r->s += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
int32_t prop_up_to(struct prop_random *r, int32_t n) // 0..n
{
	return (int32_t)(next(r) % ((uint64_t)n + 1));
}
bool prop_chance(struct prop_random *r, int32_t percent)
{
	return prop_up_to(r, 99) < percent;
}

static int64_t from_environment(const char *name, int64_t fallback, int64_t max)
{
	const char *text = getenv(name);
	int64_t v = fallback;
	struct err e;
	if (text && num_parse_i64(text, strlen(text), 0, max, &v, &e) < 0)
		fail_msg("%s: %s", name, e.msg);
	return v;
}

uint64_t prop_seed(void)
{
	return (uint64_t)from_environment("PROP_SEED", 20260105, INT64_MAX);
}

int64_t prop_ticks(void)
{
	return from_environment("PROP_TICKS", TICKS_DEFAULT, TICKS_MAX);
}

// ---- a random policy, state and load ----

static void random_signal(struct prop_random *r, struct engine *e)
{
	struct policy_signal *s;
	double target = 1 + prop_up_to(r, 40) / 4.0;
	switch (prop_up_to(r, 4)) {
	case 0:
		s = engine_add_value(e, "s", target);
		break;
	case 1:
		s = engine_add_value(e, "s", target);
		s->target.type = TARGET_AVERAGE_VALUE;
		break;
	case 2:
		s = engine_add_replicas(e, "s");
		break;
	case 3:
		s = engine_add_value(e, "s", target);
		s->target.type = TARGET_PODS;
		break;
	default:
		s = engine_add_watermarks(e, "s", target / 2, target, prop_up_to(r, 1));
		break;
	}
	s->target.tolerance_ratio = s->watermarks.tolerance_ratio = prop_up_to(r, 3) / 10.0;
	if (s->target.type != TARGET_PODS && prop_chance(r, 40))
		s->window = (struct policy_window){true, 15000 * (1 + prop_up_to(r, 30)),
		                                   prop_up_to(r, WINDOW_AGGREGATE__COUNT - 1), prop_up_to(r, 3)};
	if (prop_chance(r, 30))
		s->sustain = (struct policy_sustain){15000 * prop_up_to(r, 4), 15000 * prop_up_to(r, 10)};
	if (prop_chance(r, 20))
		s->on_missing = prop_up_to(r, ON_MISSING__COUNT - 1);
}

static void random_rates(struct prop_random *r, struct engine *e, int direction)
{
	for (int i = prop_up_to(r, 2); i > 0; i--)
		engine_add_rate(e, direction, prop_up_to(r, 1), 1 + prop_up_to(r, 120),
		                15000 * (1 + prop_up_to(r, 20)));
}

static void random_schedules(struct prop_random *r, struct engine *e)
{
	static const char *const texts[][2] = {{"*/20 * * * *", "10-59/20 * * * *"},
	                                       {"5/30 * * * *", "*/12 * * * *"},
	                                       {"0 * * * *", "45 * * * *"},
	                                       {"*/30 * * * *", "*/20 * * * *"}};
	if (!prop_chance(r, 25))
		return;
	e->policy.schedules = e->schedules;
	e->policy.n_schedules = (size_t)prop_up_to(r, 1) + 1;
	for (size_t i = 0; i < e->policy.n_schedules; i++) {
		struct policy_schedule *s = &e->schedules[i];
		const char *const *text = texts[prop_up_to(r, 3)];
		*s = (struct policy_schedule){.name = "s", .start_text = text[0], .end_text = text[1]};
		if (cron_parse(&s->start, text[0]) || cron_parse(&s->end, text[1]))
			fail();
		s->min_set = prop_chance(r, 60);
		s->combine = prop_chance(r, 30) ? SCHEDULE_MAX : SCHEDULE_LATEST;
		// 0 needs idle, and leaves it on: then the idle level may lie above the window's bounds.
		s->min_replicas = e->policy.idle.set && prop_chance(r, 40) ? 0 : 1 + prop_up_to(r, 8);
		s->max_set = prop_chance(r, 40);
		s->max_replicas = s->min_replicas + prop_up_to(r, prop_chance(r, 50) ? 3 : 20);
		s->max_replicas += s->max_replicas == 0;
		s->replicas_set = !s->min_set && !s->max_set;
		s->replicas = prop_up_to(r, 6);
	}
}

// Any multiple below minReplicas.
static int32_t random_idle_level(struct prop_random *r, const struct engine *e)
{
	int32_t m = e->policy.replica_multiple, least = e->policy.min_replicas > 1 ? e->policy.min_replicas : 1;
	return prop_up_to(r, least - 1) / m * m;
}

// The last two signals become demand and backlog, unless another stage needs one of them as it is.
static void random_objective(struct prop_random *r, struct engine *e)
{
	size_t n = e->policy.n_signals, first_free = e->policy.forecast.set || e->policy.panic.set ? 1 : 0;
	if (n < first_free + 2 || !prop_chance(r, 25))
		return;
	for (size_t i = n - 2; i < n; i++) {
		struct policy_signal *s = &e->signals[i];
		s->target = (struct policy_target){0};
		s->watermarks = (struct policy_watermarks){0};
		s->window = (struct policy_window){0};
		s->sustain = (struct policy_sustain){0};
	}
	e->policy.startup.set = true;
	e->policy.startup.start_ms = 15000 * (1 + prop_up_to(r, 20));
	e->policy.objective = (struct policy_objective){.set = true,
	                                                .demand = "s",
	                                                .backlog = "s",
	                                                .late_ratio = (1 + prop_up_to(r, 300)) / 1000.0,
	                                                .wait_ms = 1000 * (1 + prop_up_to(r, 60)),
	                                                .demand_index = n - 2,
	                                                .backlog_index = n - 1};
}

void prop_engine(struct prop_random *r, struct engine *e, int n_signals)
{
	engine_init(e, 1 + prop_up_to(r, 30));
	e->policy.min_replicas = prop_up_to(r, prop_chance(r, 20) ? 20 : 5);
	e->policy.max_replicas = e->policy.min_replicas + 1 + prop_up_to(r, 60);
	e->policy.replica_multiple = prop_chance(r, 30) ? 1 + prop_up_to(r, 4) : 1;
	e->policy.combine = prop_up_to(r, 1);
	e->policy.scale_up.select = prop_chance(r, 10) ? SELECT_DISABLED : prop_up_to(r, 1);
	e->policy.scale_down.select = prop_chance(r, 10) ? SELECT_DISABLED : prop_up_to(r, 1);
	if (prop_chance(r, 40))
		e->policy.scale_up.stabilization_window_ms = 15000 * prop_up_to(r, 20);
	if (prop_chance(r, 60))
		e->policy.scale_down.stabilization_window_ms = 15000 * prop_up_to(r, 40);
	if (prop_chance(r, 30))
		e->policy.cooldown = (struct policy_sustain){15000 * prop_up_to(r, 5), 15000 * prop_up_to(r, 20)};
	if (prop_chance(r, 25))
		e->policy.idle = (struct policy_idle){.set = true,
		                                      .after_ms = 15000 * prop_up_to(r, 4),
		                                      .initial_cooldown_ms = 15000 * prop_up_to(r, 2),
		                                      .replicas = prop_chance(r, 50) ? 0 : random_idle_level(r, e),
		                                      .activation = {"s", prop_up_to(r, 40)}};
	e->policy.min_replicas += e->policy.min_replicas == 0 && !e->policy.idle.set; // 0 needs idle, or an objective
	random_schedules(r, e);
	if (prop_chance(r, 25))
		e->policy.fallback = (struct policy_fallback){.set = true,
		                                              .failure_threshold = prop_up_to(r, 3),
		                                              .replicas = 1 + prop_up_to(r, 40),
		                                              .behavior = prop_up_to(r, FALLBACK_CURRENT_IF_LOWER),
		                                              .when = prop_up_to(r, 1)};
	if (prop_chance(r, 30))
		e->policy.startup = (struct policy_startup){true, prop_chance(r, 50), 15000 * (1 + prop_up_to(r, 20))};
	if (prop_chance(r, 35))
		e->policy.guards =
		        (struct policy_guards){.set = true,
		                               .max_pending_set = prop_chance(r, 50),
		                               .max_pending_pods = prop_up_to(r, 4),
		                               .min_available_percent = prop_chance(r, 50) ? prop_up_to(r, 100) : 0,
		                               .max_step = prop_chance(r, 40) ? 1 + prop_up_to(r, 8) : 0,
		                               .gain = {.set = prop_chance(r, 50),
		                                        .signal = "s",
		                                        .gain = (1 + prop_up_to(r, 98)) / 100.0,
		                                        .steady_ms = 15000 * prop_up_to(r, 2)}};
	random_rates(r, e, +1);
	random_rates(r, e, -1);
	for (int i = 0; i < n_signals; i++)
		random_signal(r, e);
	if (prop_chance(r, 60) && e->signals[0].window.set)
		e->policy.panic = (struct policy_panic){.set = true,
		                                        .signal = "s",
		                                        .window_ms = 15000 * (1 + prop_up_to(r, 3)),
		                                        .threshold = 1.5 + prop_up_to(r, 4) / 4.0};
	if (prop_chance(r, 25) && e->signals[0].target.type != TARGET_PODS)
		e->policy.forecast = (struct policy_forecast){
		        .set = true,
		        .signal = "s",
		        .model = prop_up_to(r, 1),
		        .season_ms = 15000 * (4 + prop_up_to(r, 40)),
		        .window_ms = 15000 * (4 + prop_up_to(r, 40)),
		        .horizon_ms = prop_chance(r, 30) ? FORECAST_HORIZON_STARTUP : 15000 * (1 + prop_up_to(r, 8)),
		        .use = prop_up_to(r, 1),
		        .band = prop_up_to(r, 2),
		        .alpha = prop_up_to(r, 10) / 10.0,
		        .beta = prop_up_to(r, 10) / 10.0,
		        .gamma = prop_up_to(r, 10) / 10.0};
	random_objective(r, e);
	engine_start(e);
}

// A copy with a state of its own.
void prop_copy(struct engine *to, const struct engine *from)
{
	*to = *from;
	to->policy.signals = to->signals;
	if (to->policy.n_schedules > 0)
		to->policy.schedules = to->schedules;
	to->policy.scale_up.rates = to->up;
	to->policy.scale_down.rates = to->down;
	to->seen.signals = to->seen_signals;
	for (size_t i = 0; i < POLICY_SIGNALS_MAX; i++)
		if (to->seen_signals[i].series)
			to->seen_signals[i].series = to->series[i];
	to->state = NULL;
	engine_start(to);
	memcpy(to->state, from->state, decide_state_bytes(&from->policy));
}

// Type Pods: one series each, never of more pods than there are.
void prop_show(struct engine *e, size_t i, double value, int32_t n_pods)
{
	if (e->signals[i].target.type != TARGET_PODS) {
		engine_show(e, i, value);
		return;
	}
	n_pods = n_pods > e->seen.spec_replicas ? e->seen.spec_replicas : n_pods;
	engine_show_pods(e, i, (size_t)(n_pods > 0 ? n_pods : 1), value, 0.5);
}

void prop_show_random(struct prop_random *r, struct engine *e, size_t i)
{
	if (prop_chance(r, 4)) {
		engine_show_state(e, i, prop_chance(r, 50) ? OBS_EMPTY : OBS_FAILED);
		return;
	}
	prop_show(e, i, prop_chance(r, 1) ? (double)NAN : prop_up_to(r, 400) / 8.0, prop_up_to(r, ENGINE_SERIES_MAX));
	if (prop_chance(r, 3))
		e->series[i][0].time_ms -= 15000 * prop_up_to(r, 8); // stale, now and then
}

void prop_advance(struct prop_random *r, struct engine *e)
{
	e->now_ms += prop_chance(r, 90) ? 15000 : 1000 * prop_up_to(r, 400);
}

// The cluster follows, not always at once.
void prop_follow(struct prop_random *r, struct engine *e)
{
	int32_t before = e->seen.spec_replicas;
	engine_apply(e);
	if (e->seen.spec_replicas != before && prop_chance(r, 30))
		e->seen.ready_replicas = prop_up_to(r, before);
	else if (prop_chance(r, 50))
		e->seen.ready_replicas = e->seen.spec_replicas;
	if (prop_chance(r, 1)) // the target is scaled by hand
		e->seen.spec_replicas = prop_up_to(r, 70);
}

void prop_fail_at(const char *law, int64_t tick, const struct engine *e)
{
	fail_msg("PROP_SEED=%llu: tick %lld: %s: %d -> %d %s %s (bounds %d..%d)", (unsigned long long)prop_seed(),
	         (long long)tick, law, e->decision.current, e->decision.desired, action_names[e->decision.action],
	         reason_info(e->decision.reason)->name, e->policy.min_replicas, e->policy.max_replicas);
}

bool prop_same_decision(const struct decision *a, const struct decision *b)
{
	if (a->desired != b->desired || a->action != b->action || a->reason != b->reason || a->driver != b->driver ||
	    a->write != b->write || a->n_trace != b->n_trace || a->n_signals != b->n_signals)
		return false;
	for (size_t i = 0; i < a->n_trace; i++)
		if (a->entries[i].reason != b->entries[i].reason || a->entries[i].before != b->entries[i].before ||
		    a->entries[i].after != b->entries[i].after ||
		    a->entries[i].duration_ms != b->entries[i].duration_ms)
			return false;
	for (size_t i = 0; i < a->n_signals; i++)
		if (a->signals[i].state != b->signals[i].state || a->signals[i].proposal != b->signals[i].proposal)
			return false;
	return true;
}

void prop_begin(void)
{
	const char *law = getenv("PROP_LAW");
	if (law)
		cmocka_set_test_filter(law);
	fprintf(stderr, "# PROP_SEED=%llu PROP_TICKS=%lld\n", (unsigned long long)prop_seed(), (long long)prop_ticks());
}
