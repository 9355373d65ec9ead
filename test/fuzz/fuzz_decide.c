// SPDX-License-Identifier: Apache-2.0
// A policy of any shape with any numbers in it, then ticks with any observation. Beyond "does not crash": the answer
// stays inside the bounds and explains itself, a copy of the state gives the same answer, and foreign bytes are never
// taken for a state.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/tz_table.h"
#include "policies/decide.h"
#include "policies/decision.h"
#include "policies/observation.h"
#include "policies/policy.h"

#define TICKS_MAX  64
#define SERIES_MAX 3

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

struct input {
	const uint8_t *data;
	size_t size;
};

static void take(struct input *in, void *to, size_t n) // zeros after the end
{
	size_t have = in->size < n ? in->size : n;
	memset(to, 0, n);
	if (have > 0)
		memcpy(to, in->data, have);
	in->data += have;
	in->size -= have;
}

static uint8_t take_u8(struct input *in)
{
	uint8_t v;
	take(in, &v, 1);
	return v;
}

// Numbers people write, and any bit pattern.
static int64_t take_ms(struct input *in)
{
	static const int64_t usual[] = {0,       1,  15000,     60000,     120000,    300000,
	                                3600000, -1, INT64_MAX, INT64_MIN, 1000000000};
	uint8_t how = take_u8(in);
	if (how < sizeof usual / sizeof usual[0])
		return usual[how];
	int64_t v;
	take(in, &v, how & 1 ? sizeof v : 2);
	return v;
}

static int32_t take_i32(struct input *in)
{
	static const int32_t usual[] = {0, 1, 2, 3, 4, 10, 100, 1000, -1, INT32_MAX, INT32_MIN};
	uint8_t how = take_u8(in);
	if (how < sizeof usual / sizeof usual[0])
		return usual[how];
	int32_t v;
	take(in, &v, sizeof v);
	return v;
}

static double take_f64(struct input *in)
{
	static const double usual[] = {0, 0.1, 0.5, 0.7, 1, 2, 8, 10, 20, 1e308, -1e308, 1e-300, -1};
	uint8_t how = take_u8(in);
	if (how < sizeof usual / sizeof usual[0])
		return usual[how];
	double v;
	take(in, &v, sizeof v);
	return v;
}

struct world {
	struct policy policy;
	struct policy_signal signals[POLICY_SIGNALS_MAX];
	struct policy_schedule schedules[3];
	struct policy_rate up[POLICY_RATE_POLICIES_MAX], down[POLICY_RATE_POLICIES_MAX];
	struct obs_signal seen[POLICY_SIGNALS_MAX];
	struct obs_series series[POLICY_SIGNALS_MAX][SERIES_MAX];
};

static void take_rules(struct input *in, struct policy_scaling_rules *rules, struct policy_rate *rates)
{
	rules->stabilization_window_ms = take_ms(in);
	rules->select = take_u8(in) % (SELECT_POLICY__COUNT + 1);
	rules->tolerance_set = take_u8(in) & 1;
	rules->tolerance_ratio = rules->tolerance_set ? take_f64(in) : 0;
	rules->rates = rates;
	rules->n_rates = take_u8(in) % (POLICY_RATE_POLICIES_MAX + 1);
	for (size_t i = 0; i < rules->n_rates; i++)
		rates[i] = (struct policy_rate){take_u8(in) % 2, take_i32(in), take_ms(in)};
}

static void take_signal(struct input *in, struct policy_signal *s)
{
	s->name = s->query = "s";
	uint8_t kind = take_u8(in);
	s->target = (struct policy_target){.set = !(kind & 1), .type = (kind >> 1) % 4, .value = take_f64(in)};
	s->target.tolerance_ratio = take_f64(in);
	if (kind & 1) {
		s->watermarks = (struct policy_watermarks){.set = true, .low = take_f64(in), .high = take_f64(in)};
		s->watermarks.tolerance_ratio = s->target.tolerance_ratio;
		s->watermarks.algorithm = (kind >> 1) % 3;
	}
	uint8_t window = take_u8(in);
	if (window & 1)
		s->window = (struct policy_window){true, take_ms(in), (window >> 1) % (WINDOW_AGGREGATE__COUNT + 1),
		                                   take_i32(in)};
	s->sustain = (struct policy_sustain){take_ms(in), take_ms(in)};
	s->stale_after_ms = take_ms(in);
	s->on_missing = take_u8(in) % (ON_MISSING__COUNT + 1);
	s->series = take_u8(in) % (SERIES_MODE__COUNT + 1);
}

// Any bits as a calendar, in UTC or in a zone that jumps in the middle of the ticks.
static void take_schedule(struct input *in, struct policy_schedule *s)
{
	static const int64_t at_s[] = {1000000, 1000600, 1007200};
	static const int32_t offset_s[] = {7200, -3600, 93600};
	static const struct tz_table zone = {at_s, offset_s, 3, 3600};
	uint8_t flags = take_u8(in);
	*s = (struct policy_schedule){.name = "s", .start_text = "", .end_text = "", .time_zone = ""};
	take(in, &s->start.minutes, sizeof s->start.minutes);
	take(in, &s->end.minutes, sizeof s->end.minutes);
	s->start.minutes &= (UINT64_C(1) << 60) - 1;
	s->end.minutes &= (UINT64_C(1) << 60) - 1;
	s->start.hours = (uint32_t)take_i32(in) & 0xffffff;
	s->end.hours = (uint32_t)take_i32(in) & 0xffffff;
	s->start.days = s->end.days = (uint32_t)take_i32(in) & ~1u;
	s->start.months = s->end.months = 0x1ffe;
	s->start.weekdays = s->end.weekdays = take_u8(in) & 0x7f;
	s->start.any_day = s->end.any_weekday = flags & 1;
	s->zone = flags & 2 ? &zone : NULL;
	s->min_set = flags & 4;
	s->max_set = flags & 8;
	s->replicas_set = flags & 16;
	s->min_replicas = take_i32(in) & 0xffff;
	s->max_replicas = take_i32(in) & 0xffff;
	s->replicas = take_u8(in);
}

static void take_policy(struct input *in, struct world *w)
{
	struct policy *p = &w->policy;
	p->min_replicas = take_i32(in) & 0xffff;
	p->max_replicas = p->min_replicas + (take_i32(in) & 0xffff);
	p->max_replicas += p->max_replicas == 0; // the schema allows no 0
	p->replica_multiple = take_i32(in);
	p->interval_ms = take_ms(in);
	uint8_t flags = take_u8(in);
	p->dry_run = flags & 1;
	p->paused = (flags & 6) == 6;
	p->combine = flags >> 7;
	p->cooldown = (struct policy_sustain){take_ms(in), take_ms(in)};
	take_rules(in, &p->scale_up, w->up);
	take_rules(in, &p->scale_down, w->down);
	p->schedules = w->schedules;
	p->n_schedules = take_u8(in) % 4;
	for (size_t i = 0; i < p->n_schedules; i++)
		take_schedule(in, &w->schedules[i]);
	uint8_t idle = take_u8(in);
	if (idle & 1)
		p->idle = (struct policy_idle){.set = true,
		                               .after_ms = take_ms(in),
		                               .initial_cooldown_ms = take_ms(in),
		                               .replicas = take_i32(in) & 0xffff,
		                               .activation = {"s", take_f64(in)},
		                               .signal = idle >> 4};
	uint8_t fallback = take_u8(in);
	if (fallback & 1)
		p->fallback = (struct policy_fallback){.set = true,
		                                       .failure_threshold = take_i32(in),
		                                       .replicas = take_i32(in),
		                                       .behavior = (fallback >> 1) % FALLBACK_BEHAVIOR__COUNT,
		                                       .when = fallback >> 7};
	uint8_t startup = take_u8(in);
	if (startup & 1)
		p->startup = (struct policy_startup){true, startup & 2, startup & 2 ? take_ms(in) : 0};
	uint8_t guards = take_u8(in);
	if (guards & 1)
		p->guards = (struct policy_guards){true, guards & 2, take_i32(in), take_i32(in), take_i32(in)};
	p->signals = w->signals;
	p->n_signals = take_u8(in) % (POLICY_SIGNALS_MAX + 1);
	for (size_t i = 0; i < p->n_signals; i++)
		take_signal(in, &w->signals[i]);
	p->idle.set = p->idle.set && p->idle.signal < p->n_signals;
	p->idle.replicas = p->idle.replicas <= p->max_replicas ? p->idle.replicas : p->max_replicas;
	uint8_t forecast = take_u8(in);
	if ((forecast & 1) && p->n_signals > 0 &&
	    !(w->signals[0].target.set && w->signals[0].target.type == TARGET_PODS))
		p->forecast = (struct policy_forecast){.set = true,
		                                       .signal = "s",
		                                       .model = forecast >> 1 & 1,
		                                       .use = forecast >> 2 & 1,
		                                       .season_ms = take_ms(in),
		                                       .window_ms = take_ms(in),
		                                       .horizon_ms = take_ms(in),
		                                       .band = take_f64(in),
		                                       .alpha = take_f64(in),
		                                       .beta = take_f64(in),
		                                       .gamma = take_f64(in)};
	uint8_t panic = take_u8(in);
	if ((panic & 1) && p->n_signals > 0)
		p->panic = (struct policy_panic){
		        .set = true, .signal = "s", .window_ms = take_ms(in), .threshold = take_f64(in)};
}

static void take_observation(struct input *in, struct world *w, int64_t now_ms, struct observation *o)
{
	*o = (struct observation){take_i32(in), take_i32(in),        take_i32(in), take_i32(in),
	                          w->seen,      w->policy.n_signals, NULL,         0};
	for (size_t i = 0; i < o->n_signals; i++) {
		uint8_t how = take_u8(in);
		w->seen[i] = (struct obs_signal){how & 3 ? OBS_OK : (enum obs_state)(take_u8(in) % OBS_STATE__COUNT),
		                                 NULL, w->series[i], (how >> 2) % (SERIES_MAX + 1)};
		for (size_t k = 0; k < w->seen[i].n_series; k++)
			w->series[i][k] = (struct obs_series){
			        "", take_f64(in), how & 64 ? take_ms(in) : now_ms - (how & 128 ? take_u8(in) : 0)};
	}
}

static void check(const struct policy *p, const struct decision *d)
{
	require(d->current >= 0 && d->desired >= 0);
	require(d->driver >= 0 && (size_t)d->driver < d->n_trace && d->n_trace <= DECISION_TRACE_MAX);
	require(d->reason > REASON_NONE && d->reason < REASON__COUNT);
	require(!d->write || (d->desired != d->current && !p->dry_run && !p->paused));
	bool is_idle_level = p->idle.set && p->idle.replicas == 0;
	for (size_t i = 0; i < p->n_schedules; i++)
		is_idle_level |= p->schedules[i].replicas_set && p->schedules[i].replicas == 0;
	if (p->paused || (d->current == 0 && p->min_replicas != 0 && !is_idle_level))
		require(d->desired == d->current);
	else
		require(d->desired >= d->min_replicas && d->desired <= d->max_replicas);
	require(p->idle.set || p->n_schedules > 0 ||
	        (d->min_replicas == p->min_replicas && d->max_replicas == p->max_replicas));
	for (size_t i = 0; i < d->n_signals; i++)
		require(d->signals[i].proposal >= 0 && d->signals[i].state < SIGNAL_STATE__COUNT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct world w = {0};
	take_policy(&in, &w);
	size_t bytes = decide_state_bytes(&w.policy);
	require(bytes % 8 == 0 && bytes < 1024 * 1024);
	void *state = malloc(bytes), *copy = malloc(bytes);
	require(state && copy);
	memset(copy, size & 0xff, bytes);
	require(!decide_state_matches(&w.policy, copy, bytes));
	decide_state_init(&w.policy, state);
	require(decide_state_matches(&w.policy, state, bytes));

	int64_t now_ms = 1000000000;
	struct decision d, again;
	for (int i = 0; i < TICKS_MAX && in.size > 0; i++) {
		struct observation o;
		int64_t step_ms = take_ms(&in);
		if (step_ms > -3600000 && step_ms < 3600000)
			now_ms += step_ms;
		take_observation(&in, &w, now_ms, &o);
		memcpy(copy, state, bytes);
		decide(&w.policy, &o, now_ms, state, &d);
		decide(&w.policy, &o, now_ms, copy, &again);
		check(&w.policy, &d);
		require(d.desired == again.desired && d.reason == again.reason && memcmp(state, copy, bytes) == 0);
		uint8_t then = take_u8(&in);
		if (then & 1)
			decide_record_scale(&w.policy, state, now_ms, d.current, d.desired);
		if (then & 2)
			decide_record_scale(&w.policy, state, take_ms(&in), take_i32(&in), take_i32(&in));
		if (then & 4)
			decide_record_recommendation(&w.policy, state, take_ms(&in), take_i32(&in));
		if (then & 32)
			decide_record_start(&w.policy, state, take_ms(&in));
		if ((then & 8) && w.policy.n_signals > 0)
			decide_refill(&w.policy, state, take_u8(&in) % w.policy.n_signals, w.series[0], SERIES_MAX,
			              take_i32(&in), now_ms);
		if (then & 16) {
			decide_state_init(&w.policy, copy);
			decide_state_migrate(&w.policy, state, &w.policy, copy);
			memcpy(state, copy, bytes);
		}
		require(decide_state_matches(&w.policy, state, bytes));
	}
	struct decide_recommendation r[2 * DECIDE_HISTORY_MAX];
	struct decide_scale_event e[2 * DECIDE_HISTORY_MAX];
	require(decide_recommendations(&w.policy, state, r, 2 * DECIDE_HISTORY_MAX) <= 2 * DECIDE_HISTORY_MAX);
	require(decide_scale_events(&w.policy, state, e, 2 * DECIDE_HISTORY_MAX) <= 2 * DECIDE_HISTORY_MAX);
	free(state);
	free(copy);
	return 0;
}
