// SPDX-License-Identifier: Apache-2.0
#include "test/support/any_policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/tz/tz_table.h"
#include "policies/engine/number.h"

#define NUMBER_MAX 16 // of replicas, where they are written as one byte

// ---- reading the input ----

static void take(struct any_input *in, void *to, size_t n) // zeros after the end
{
	size_t have = in->size < n ? in->size : n;
	memset(to, 0, n);
	if (have > 0)
		memcpy(to, in->data, have);
	in->data += have;
	in->size -= have;
}

uint8_t any_u8(struct any_input *in)
{
	uint8_t v;
	take(in, &v, 1);
	return v;
}

int64_t any_clamp(int64_t v, int64_t lo, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

// Small numbers in one byte; bounds, large ones and any bit pattern in more.
int32_t any_i32(struct any_input *in)
{
	static const int32_t usual[] = {-1, 100, 1000, 1000000, INT32_MAX - 1, INT32_MAX, INT32_MIN};
	uint8_t how = any_u8(in);
	if (how < 200)
		return how % (NUMBER_MAX + 1);
	if (how - 200u < sizeof usual / sizeof usual[0])
		return usual[how - 200];
	int32_t v;
	take(in, &v, how & 1 ? sizeof v : 2);
	return v;
}

static int32_t take_replicas(struct any_input *in, int32_t lo, int32_t hi)
{
	int32_t v = any_i32(in);
	return in->any ? v : (int32_t)any_clamp((int64_t)lo + v, lo, hi);
}

// A duration: so many intervals, odd times, and any bit pattern.
int64_t any_ms(struct any_input *in)
{
	static const int64_t usual[] = {-1, 1, INT64_MAX, INT64_MIN, 3600000, INT64_C(31536000000)};
	uint8_t how = any_u8(in);
	if (how < 160)
		return (int64_t)(how % 24) * ANY_INTERVAL_MS;
	if (how < 200)
		return (int64_t)(how - 160) * 1000;
	if (how - 200u < sizeof usual / sizeof usual[0])
		return usual[how - 200];
	int64_t v;
	take(in, &v, how & 1 ? sizeof v : 3);
	return v;
}

static int64_t take_ms(struct any_input *in, int64_t lo, int64_t hi)
{
	int64_t v = any_ms(in);
	return in->any ? v : any_clamp(v, lo, hi);
}

double any_f64(struct any_input *in)
{
	static const double usual[] = {
	        -1, 1e308, -1e308, 1e-308, 5e-324, -5e-324, 1e-300, 1e19, -0.0, 0.7, 0.30000000000000004};
	uint8_t how = any_u8(in);
	if (how < 200)
		return how / 4.0;
	if (how - 200u < sizeof usual / sizeof usual[0])
		return usual[how - 200];
	double v;
	take(in, &v, sizeof v); // NaN and infinities among them
	return v;
}

static double take_positive(struct any_input *in)
{
	double v = any_f64(in);
	return in->any || (isfinite(v) && v > 0) ? v : 1;
}

static double take_share(struct any_input *in, double max)
{
	double v = any_u8(in) / 255.0 * max;
	return in->any ? any_f64(in) : v;
}

int any_choice(struct any_input *in, int n)
{
	return any_u8(in) % n;
}

// ---- a policy ----

static const char *const names[POLICY_SIGNALS_MAX] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                      "i", "j", "k", "l", "m", "n", "o", "p"};

static void take_rules(struct any_input *in, struct policy_scaling_rules *rules, struct policy_rate *rates)
{
	rules->stabilization_window_ms = take_ms(in, 0, 3600000);
	uint8_t how = any_u8(in);
	rules->select = (how & 3) % SELECT_POLICY__COUNT;
	rules->tolerance_set = how & 4;
	rules->tolerance_ratio = rules->tolerance_set ? take_share(in, 1) : 0;
	rules->rates = rates;
	rules->n_rates = how & 8 ? (how >> 4) % (POLICY_RATE_POLICIES_MAX + 1) : 0;
	for (size_t i = 0; i < rules->n_rates; i++)
		rates[i] = (struct policy_rate){any_choice(in, RATE_TYPE__COUNT), take_replicas(in, 1, INT32_MAX),
		                                take_ms(in, 1000, 1800000)};
}

static void take_signal(struct any_input *in, struct policy_signal *s, int64_t interval_ms)
{
	uint8_t kind = any_u8(in), parts = any_u8(in);
	s->target = (struct policy_target){.set = !(kind & 1), .type = (kind >> 1) % TARGET_TYPE__COUNT};
	if (s->target.set) {
		s->target.value = take_positive(in);
		s->target.tolerance_ratio = parts & 1 ? take_share(in, 1) : 0.1;
	} else {
		double low = any_f64(in), high = any_f64(in);
		bool ordered = isfinite(low) && isfinite(high) && low >= 0 && low < high;
		s->watermarks = (struct policy_watermarks){.set = true,
		                                           .low = in->any || ordered ? low : 2,
		                                           .high = in->any || ordered ? high : 8,
		                                           .algorithm = (kind >> 1) % WATERMARK_ALGORITHM__COUNT,
		                                           .tolerance_ratio = parts & 1 ? take_share(in, 1) : 0.1};
	}
	bool is_pods = s->target.set && s->target.type == TARGET_PODS;
	if ((parts & 2) && (in->any || !is_pods)) {
		s->window = (struct policy_window){true, take_ms(in, 1000, any_clamp(interval_ms, 1, 3600000) * 24),
		                                   any_choice(in, WINDOW_AGGREGATE__COUNT), 0};
		int64_t samples = i64_sub(s->window.duration_ms, 1) / interval_ms;
		s->window.min_samples =
		        take_replicas(in, 0, (int32_t)any_clamp(samples, 0, POLICY_WINDOW_SAMPLES_MAX - 1) + 1);
	}
	if (parts & 4)
		s->sustain = (struct policy_sustain){take_ms(in, 0, 86400000), take_ms(in, 0, 86400000)};
	s->stale_after_ms = parts & 8 ? take_ms(in, 1000, 86400000) : 60000;
	s->on_missing = (parts >> 4) % ON_MISSING__COUNT;
	s->series = is_pods && !in->any ? SERIES_SINGLE : (parts >> 6) % SERIES_MODE__COUNT;
}

// Minutes at which something opens or closes: often enough for the ticks to see it.
static void take_cron(struct any_input *in, struct cron *c)
{
	uint8_t how = any_u8(in);
	*c = (struct cron){.hours = 0xffffff, .days = 0xfffffffe, .months = 0x1ffe, .weekdays = 0x7f};
	c->any_day = c->any_weekday = true;
	uint64_t every = UINT64_C(0);
	for (int m = how % 5; m < 60; m += 1 + how % 31)
		every |= UINT64_C(1) << m;
	c->minutes = every;
	if (how < 224)
		return;
	take(in, &c->hours, sizeof c->hours); // any bits as a calendar
	take(in, &c->days, sizeof c->days);
	c->hours &= 0xffffff;
	c->days = (c->days & 0xfffffffe) | 2; // a date that never comes is refused, and looked for through 41 years
	c->weekdays = (any_u8(in) & 0x7f) | 1;
	c->any_day = how & 1;
	c->any_weekday = how & 2;
}

// In UTC or in a zone that jumps in the middle of the ticks.
static void take_schedule(struct any_input *in, struct policy_schedule *s, const struct policy *p)
{
	static const int64_t at_s[] = {1000000, 1000600, 1007200};
	static const int32_t offset_s[] = {7200, -3600, 93600};
	static const struct tz_table zone = {at_s, offset_s, 3, 3600};
	uint8_t how = any_u8(in);
	*s = (struct policy_schedule){.name = "s", .start_text = "", .end_text = "", .time_zone = ""};
	s->combine = how >> 3 & 1 ? SCHEDULE_MAX : SCHEDULE_LATEST;
	take_cron(in, &s->start);
	take_cron(in, &s->end);
	s->zone = how & 1 ? &zone : NULL;
	s->replicas_set = (how & 6) == 0;
	s->min_set = how & 2;
	s->max_set = how & 4;
	s->replicas = i32_max(take_replicas(in, 0, POLICY_REPLICAS_MAX), 0);
	s->min_replicas =
	        i32_max(take_replicas(in, p->idle.set ? 0 : 1, s->max_set ? POLICY_REPLICAS_MAX : p->max_replicas), 0);
	int32_t least = s->min_set ? i32_max(s->min_replicas, 1) : i32_max(p->min_replicas, 1);
	s->max_replicas = i32_max(take_replicas(in, least, POLICY_REPLICAS_MAX), 0);
}

static void take_bounds(struct any_input *in, struct policy *p)
{
	uint8_t how = any_u8(in);
	p->dry_run = how & 1;
	p->paused = (how & 6) == 6;
	p->idle.set = how & 8;
	p->replica_multiple = how & 16 ? take_replicas(in, 1, 64) : 1;
	p->min_replicas = take_replicas(in, p->idle.set ? 0 : 1, POLICY_REPLICAS_MAX);
	p->max_replicas = take_replicas(in, i32_max(p->min_replicas, 1), POLICY_REPLICAS_MAX);
	if (how & 64) // room to move in
		p->max_replicas = i32_min(i32_max(p->max_replicas, 0), POLICY_REPLICAS_MAX - 20) + 20;
	p->interval_ms = how & 32 ? take_ms(in, 100, 3600000) : ANY_INTERVAL_MS;
	if (p->min_replicas < 0 || p->max_replicas < 1 || p->min_replicas > p->max_replicas) { // no policy at all
		p->min_replicas = i32_max(p->min_replicas & 0xffff, p->idle.set ? 0 : 1);
		p->max_replicas = p->min_replicas + 1 + (p->max_replicas & 0xffff);
	}
	if (!in->any && multiple_down(p->max_replicas, p->replica_multiple) < i32_max(p->min_replicas, 1))
		p->replica_multiple = 1;
}

static void take_idle(struct any_input *in, struct policy *p)
{
	size_t signal = any_u8(in) % p->n_signals;
	if (!in->any && p->signals[signal].target.set && p->signals[signal].target.type == TARGET_PODS)
		p->idle.set = p->min_replicas == 0; // the schema allows no such signal, nor 0 without idle
	int32_t below = i32_max(p->min_replicas, 1), n = i32_max(take_replicas(in, 0, below - 1), 0);
	p->idle.after_ms = take_ms(in, 0, 604800000);
	p->idle.initial_cooldown_ms = take_ms(in, 0, 604800000);
	p->idle.replicas = in->any ? n : multiple_down(n, p->replica_multiple);
	p->idle.activation.above = any_f64(in);
	if (!in->any && !isfinite(p->idle.activation.above))
		p->idle.activation.above = 0;
	p->idle.activation.signal = names[signal];
	p->idle.activation.index = signal;
}

static void take_formula(struct any_input *in, struct any_policy *w)
{
	static const char *const texts[] = {"a",
	                                    "a ?? 3",
	                                    "max(a, current + 1)",
	                                    "a.value / 7",
	                                    "a > 3 ? 0 : 9",
	                                    "clamp(a, 2, 5)",
	                                    "a * 99999999999 % 7"};
	static const char *const two[] = {"max(a, b ?? 0)", "a + b", "b.value > 2 ? a : b", "(a ?? b) ?? 4"};
	struct formula_fault fault;
	uint8_t which = any_u8(in);
	const char *text = w->policy.n_signals > 1 && (which & 1) ? two[(which >> 1) % 4] : texts[(which >> 1) % 7];
	if (formula_compile(text, strlen(text), names, w->policy.n_signals, FORMULA_PROPOSALS, w->ops,
	                    &w->policy.formula, &fault) < 0)
		abort();
}

static void take_forecast(struct any_input *in, struct policy *p)
{
	uint8_t how = any_u8(in);
	size_t i = (how >> 4) % p->n_signals;
	if (p->signals[i].target.set && p->signals[i].target.type == TARGET_PODS)
		return;
	p->forecast =
	        (struct policy_forecast){.set = true,
	                                 .signal = names[i],
	                                 .signal_index = i,
	                                 .model = how & 1,
	                                 .use = how >> 1 & 1,
	                                 .season_ms = take_ms(in, 4 * ANY_INTERVAL_MS, 604800000),
	                                 .window_ms = take_ms(in, 4 * ANY_INTERVAL_MS, 86400000),
	                                 .horizon_ms = how & 4 ? FORECAST_HORIZON_STARTUP : take_ms(in, 1000, 86400000),
	                                 .band = take_share(in, 10),
	                                 .alpha = take_share(in, 1),
	                                 .beta = take_share(in, 1),
	                                 .gamma = take_share(in, 1)};
}

static void take_panic(struct any_input *in, struct policy *p)
{
	size_t i = any_u8(in) % p->n_signals;
	const struct policy_signal *s = &p->signals[i];
	if (!in->any && (!s->window.set || s->window.aggregate != WINDOW_AVG || s->window.duration_ms <= 0))
		return;
	p->panic = (struct policy_panic){.set = true,
	                                 .signal = names[i],
	                                 .signal_index = i,
	                                 .window_ms = take_ms(in, 1, s->window.duration_ms),
	                                 .threshold = 1 + take_positive(in)};
}

// Demand and backlog are the last two signals.
static void take_objective(struct any_input *in, struct any_policy *w)
{
	struct policy *p = &w->policy;
	size_t demand = p->n_signals - 2, backlog = p->n_signals - 1;
	if (p->n_signals < 2 || (p->forecast.set && p->forecast.signal_index >= demand) ||
	    (p->panic.set && p->panic.signal_index >= demand))
		return;
	p->objective = (struct policy_objective){.set = true,
	                                         .demand = names[demand],
	                                         .backlog = names[backlog],
	                                         .late_ratio = in->any ? any_f64(in) : 0.0001 + take_share(in, 0.4),
	                                         .wait_ms = take_ms(in, 1000, 3600000),
	                                         .demand_index = demand,
	                                         .backlog_index = backlog};
	for (size_t i = demand; i < p->n_signals && !in->any; i++) {
		w->signals[i].target = (struct policy_target){0};
		w->signals[i].watermarks = (struct policy_watermarks){0};
		w->signals[i].window = (struct policy_window){0};
		w->signals[i].sustain = (struct policy_sustain){0};
	}
	p->startup.set = true;
	p->interval_ms = in->any ? p->interval_ms : any_clamp(p->interval_ms, 100, 120000);
}

// The last signal may be a formula over the first ones, of which the first may be nothing but its input.
static void take_value_formula(struct any_input *in, struct any_policy *w)
{
	static const char *const texts[] = {"a",
	                                    "a ?? 3",
	                                    "sum([a, b]) / 2",
	                                    "count([a, b], {# > 2}) * 3",
	                                    "let x = a; x > 3 ? b : x / b",
	                                    "(a ?? 4) + count([b], # == nil)"};
	struct policy *p = &w->policy;
	size_t last = p->n_signals - 1;
	uint8_t how = any_u8(in);
	const char *text = texts[(how >> 4) % (p->n_signals > 2 ? 6 : 2)];
	struct formula_fault fault;
	bool is_named = p->objective.set || p->forecast.set || p->panic.set;
	if (p->idle.set && (how & 4)) {
		w->any_of[0] = p->idle.activation;
		w->any_of[1] = (struct policy_activation){names[0], any_f64(in), 0};
		if (!in->any && !isfinite(w->any_of[1].above))
			w->any_of[1].above = 0;
		p->idle.any_of = w->any_of;
		p->idle.n_any_of = 2;
	}
	if (!(how & 1) || last == 0 || is_named)
		return;
	struct policy_signal *s = &w->signals[last];
	s->query = NULL;
	s->formula_text = text;
	s->window = (struct policy_window){0};
	s->series = SERIES_SINGLE;
	s->on_missing = s->on_missing == ON_MISSING_ZERO ? ON_MISSING_HOLD : s->on_missing;
	s->target.type = s->target.type == TARGET_PODS ? TARGET_VALUE : s->target.type;
	if (formula_compile(text, strlen(text), names, last, FORMULA_VALUES, w->value_ops, &w->values[last], &fault) <
	    0)
		abort();
	p->formulas = UINT32_C(1) << last;
	p->inputs = w->values[last].reads;
	p->value_formulas = w->values;
	if (how & 2) {
		w->signals[0].target = (struct policy_target){0};
		w->signals[0].watermarks = (struct policy_watermarks){0};
	}
}

void any_policy_take(struct any_input *in, struct any_policy *w)
{
	struct policy *p = &w->policy;
	p->signals = w->signals;
	p->schedules = w->schedules;
	take_bounds(in, p);
	uint8_t parts = any_u8(in), n = any_u8(in);
	p->n_signals = 1 + (n < 250 ? n % 3 : n % POLICY_SIGNALS_MAX);
	for (size_t i = 0; i < p->n_signals; i++) {
		w->signals[i].name = w->signals[i].query = names[i];
		take_signal(in, &w->signals[i], i64_max(p->interval_ms, 1));
	}
	if (p->idle.set)
		take_idle(in, p);
	p->combine = (parts & 3) % COMBINE__COUNT;
	if (p->combine == COMBINE_FORMULA)
		take_formula(in, w);
	if (parts & 4) {
		take_rules(in, &p->scale_up, w->up);
		take_rules(in, &p->scale_down, w->down);
		p->cooldown = (struct policy_sustain){take_ms(in, 0, 86400000), take_ms(in, 0, 86400000)};
	}
	if (parts & 8) {
		p->n_schedules = 1 + any_u8(in) % 3;
		for (size_t i = 0; i < p->n_schedules; i++)
			take_schedule(in, &w->schedules[i], p);
	}
	if (parts & 16) {
		int behaviors = p->combine == COMBINE_FORMULA ? FALLBACK_BEHAVIOR__COUNT : FALLBACK_SCALING_MODIFIERS;
		p->fallback = (struct policy_fallback){.set = true,
		                                       .failure_threshold = take_replicas(in, 0, 10000),
		                                       .replicas = take_replicas(in, 1, POLICY_REPLICAS_MAX),
		                                       .behavior = any_choice(in, behaviors),
		                                       .when = any_choice(in, FALLBACK_WHEN__COUNT)};
	}
	if (parts & 32) {
		bool given = any_u8(in) & 1;
		p->startup = (struct policy_startup){true, given, given ? take_ms(in, 1000, 86400000) : 0};
	}
	if (parts & 64) {
		uint8_t how = any_u8(in);
		p->guards = (struct policy_guards){
		        .set = true,
		        .max_pending_set = how & 1,
		        .max_pending_pods = take_replicas(in, 0, POLICY_REPLICAS_MAX),
		        .min_available_percent = how & 2 ? take_replicas(in, 1, 100) : 0,
		        .max_step = how & 4 ? take_replicas(in, p->replica_multiple, POLICY_REPLICAS_MAX) : 0,
		        .unhealthy = (how >> 5) % UNHEALTHY_MODE__COUNT};
		if (how & 8)
			p->guards.gain = (struct policy_gain_guard){.set = true,
			                                            .signal = p->signals[0].name,
			                                            .gain = 0.01 + any_u8(in) / 261.0,
			                                            .steady_ms = take_ms(in, 0, 86400000)};
		if (how & 16)
			p->guards.throttled = (struct policy_throttled_guard){
			        .set = true,
			        .signal = p->signals[0].name,
			        .share = any_u8(in) / 255.0,
			        .signal_index = (size_t)any_choice(in, (int)p->n_signals)};
	}
	if (parts & 128) {
		uint8_t which = any_u8(in);
		if (which & 1)
			take_forecast(in, p);
		if (which & 2)
			take_panic(in, p);
		if (which & 4)
			take_objective(in, w);
	}
	if (n % 4 == 3) // bytes of its own only where inputs had none to spare
		take_value_formula(in, w);
}
