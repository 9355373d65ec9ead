// SPDX-License-Identifier: Apache-2.0
// A policy of any shape, then ticks with any observation. Beyond "does not crash": the laws of test/support/laws.h
// hold, a copy of the state, one packed and unpacked, and one migrated to the same policy give the same answer, a dry
// run gives it without a write, and foreign bytes are never taken for a state. The first byte says which: a policy that
// keeps the rules of the schema (all laws), or one with any numbers in it (those laws that hold for any). Zeros go on
// where the input ends, so that a short one is a whole story: interval after interval, the target follows, the signals
// stay as they are.
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/tz_table.h"
#include "policies/number.h"
#include "test/support/laws.h"

#define TICKS_MAX   48
#define AFTER_END   4 // ticks after the input has ended
#define SERIES_MAX  4
#define INTERVAL_MS 15000
#define NUMBER_MAX  16 // of replicas, where they are written as one byte

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

// The entropic schedule weighs every feature of every run: of 48 ticks there are so many that most of the time goes
// there. Without it this target runs three times as often, and gets farther in ten seconds. In front, so that the
// command line may have it otherwise.
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static char no_entropic[] = "-entropic=0", at_once[] = "-len_control=0", *args[64];
	if (*argc < 1 || (size_t)*argc + 3 > sizeof args / sizeof args[0])
		return 0;
	args[0] = (*argv)[0];
	args[1] = no_entropic;
	args[2] = at_once;
	for (int i = 1; i < *argc; i++)
		args[i + 2] = (*argv)[i];
	*argc += 2;
	*argv = args;
	return 0;
}

static void require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

// ---- reading the input ----

struct input {
	const uint8_t *data;
	size_t size;
	bool any; // any number, where a policy of the schema has bounds
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

static int64_t clamp(int64_t v, int64_t lo, int64_t hi)
{
	return v < lo ? lo : v > hi ? hi : v;
}

// Small numbers in one byte; bounds, large ones and any bit pattern in more.
static int32_t take_i32(struct input *in)
{
	static const int32_t usual[] = {-1, 100, 1000, 1000000, INT32_MAX - 1, INT32_MAX, INT32_MIN};
	uint8_t how = take_u8(in);
	if (how < 200)
		return how % (NUMBER_MAX + 1);
	if (how - 200u < sizeof usual / sizeof usual[0])
		return usual[how - 200];
	int32_t v;
	take(in, &v, how & 1 ? sizeof v : 2);
	return v;
}

static int32_t take_replicas(struct input *in, int32_t lo, int32_t hi)
{
	int32_t v = take_i32(in);
	return in->any ? v : (int32_t)clamp((int64_t)lo + v, lo, hi);
}

// A duration: so many intervals, odd times, and any bit pattern.
static int64_t take_any_ms(struct input *in)
{
	static const int64_t usual[] = {-1, 1, INT64_MAX, INT64_MIN, 3600000, INT64_C(31536000000)};
	uint8_t how = take_u8(in);
	if (how < 160)
		return (int64_t)(how % 24) * INTERVAL_MS;
	if (how < 200)
		return (int64_t)(how - 160) * 1000;
	if (how - 200u < sizeof usual / sizeof usual[0])
		return usual[how - 200];
	int64_t v;
	take(in, &v, how & 1 ? sizeof v : 3);
	return v;
}

static int64_t take_ms(struct input *in, int64_t lo, int64_t hi)
{
	int64_t v = take_any_ms(in);
	return in->any ? v : clamp(v, lo, hi);
}

static double take_f64(struct input *in)
{
	static const double usual[] = {
	        -1, 1e308, -1e308, 1e-308, 5e-324, -5e-324, 1e-300, 1e19, -0.0, 0.7, 0.30000000000000004};
	uint8_t how = take_u8(in);
	if (how < 200)
		return how / 4.0;
	if (how - 200u < sizeof usual / sizeof usual[0])
		return usual[how - 200];
	double v;
	take(in, &v, sizeof v); // NaN and infinities among them
	return v;
}

static double take_positive(struct input *in)
{
	double v = take_f64(in);
	return in->any || (isfinite(v) && v > 0) ? v : 1;
}

static double take_share(struct input *in, double max)
{
	double v = take_u8(in) / 255.0 * max;
	return in->any ? take_f64(in) : v;
}

static int take_choice(struct input *in, int n)
{
	return take_u8(in) % n;
}

// ---- a policy ----

struct world {
	struct policy policy;
	struct policy_signal signals[POLICY_SIGNALS_MAX];
	struct policy_schedule schedules[3];
	struct policy_rate up[POLICY_RATE_POLICIES_MAX], down[POLICY_RATE_POLICIES_MAX];
	struct formula_op ops[FORMULA_OPS_MAX];
	struct obs_signal seen[POLICY_SIGNALS_MAX];
	struct obs_series series[POLICY_SIGNALS_MAX][SERIES_MAX];
	struct obs_pod pods[SERIES_MAX];
	struct observation observation;
	int64_t now_ms;
};

static const char *const names[POLICY_SIGNALS_MAX] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                                      "i", "j", "k", "l", "m", "n", "o", "p"};

static void take_rules(struct input *in, struct policy_scaling_rules *rules, struct policy_rate *rates)
{
	rules->stabilization_window_ms = take_ms(in, 0, 3600000);
	uint8_t how = take_u8(in);
	rules->select = (how & 3) % SELECT_POLICY__COUNT;
	rules->tolerance_set = how & 4;
	rules->tolerance_ratio = rules->tolerance_set ? take_share(in, 1) : 0;
	rules->rates = rates;
	rules->n_rates = how & 8 ? (how >> 4) % (POLICY_RATE_POLICIES_MAX + 1) : 0;
	for (size_t i = 0; i < rules->n_rates; i++)
		rates[i] = (struct policy_rate){take_choice(in, RATE_TYPE__COUNT), take_replicas(in, 1, INT32_MAX),
		                                take_ms(in, 1000, 1800000)};
}

static void take_signal(struct input *in, struct policy_signal *s, int64_t interval_ms)
{
	uint8_t kind = take_u8(in), parts = take_u8(in);
	s->target = (struct policy_target){.set = !(kind & 1), .type = (kind >> 1) % TARGET_TYPE__COUNT};
	if (s->target.set) {
		s->target.value = take_positive(in);
		s->target.tolerance_ratio = parts & 1 ? take_share(in, 1) : 0.1;
	} else {
		double low = take_f64(in), high = take_f64(in);
		bool ordered = isfinite(low) && isfinite(high) && low >= 0 && low < high;
		s->watermarks = (struct policy_watermarks){.set = true,
		                                           .low = in->any || ordered ? low : 2,
		                                           .high = in->any || ordered ? high : 8,
		                                           .algorithm = (kind >> 1) % WATERMARK_ALGORITHM__COUNT,
		                                           .tolerance_ratio = parts & 1 ? take_share(in, 1) : 0.1};
	}
	bool is_pods = s->target.set && s->target.type == TARGET_PODS;
	if ((parts & 2) && (in->any || !is_pods)) {
		s->window = (struct policy_window){true, take_ms(in, 1000, clamp(interval_ms, 1, 3600000) * 24),
		                                   take_choice(in, WINDOW_AGGREGATE__COUNT), 0};
		int64_t samples = i64_sub(s->window.duration_ms, 1) / interval_ms;
		s->window.min_samples =
		        take_replicas(in, 0, (int32_t)clamp(samples, 0, POLICY_WINDOW_SAMPLES_MAX - 1) + 1);
	}
	if (parts & 4)
		s->sustain = (struct policy_sustain){take_ms(in, 0, 86400000), take_ms(in, 0, 86400000)};
	s->stale_after_ms = parts & 8 ? take_ms(in, 1000, 86400000) : 60000;
	s->on_missing = (parts >> 4) % ON_MISSING__COUNT;
	s->series = is_pods && !in->any ? SERIES_SINGLE : (parts >> 6) % SERIES_MODE__COUNT;
}

// Minutes at which something opens or closes: often enough for the ticks to see it.
static void take_cron(struct input *in, struct cron *c)
{
	uint8_t how = take_u8(in);
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
	c->weekdays = (take_u8(in) & 0x7f) | 1;
	c->any_day = how & 1;
	c->any_weekday = how & 2;
}

// In UTC or in a zone that jumps in the middle of the ticks.
static void take_schedule(struct input *in, struct policy_schedule *s, const struct policy *p)
{
	static const int64_t at_s[] = {1000000, 1000600, 1007200};
	static const int32_t offset_s[] = {7200, -3600, 93600};
	static const struct tz_table zone = {at_s, offset_s, 3, 3600};
	uint8_t how = take_u8(in);
	*s = (struct policy_schedule){.name = "s", .start_text = "", .end_text = "", .time_zone = ""};
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

static void take_bounds(struct input *in, struct policy *p)
{
	uint8_t how = take_u8(in);
	p->dry_run = how & 1;
	p->paused = (how & 6) == 6;
	p->idle.set = how & 8;
	p->replica_multiple = how & 16 ? take_replicas(in, 1, 64) : 1;
	p->min_replicas = take_replicas(in, p->idle.set ? 0 : 1, POLICY_REPLICAS_MAX);
	p->max_replicas = take_replicas(in, i32_max(p->min_replicas, 1), POLICY_REPLICAS_MAX);
	if (how & 64) // room to move in
		p->max_replicas = i32_min(i32_max(p->max_replicas, 0) + 20, POLICY_REPLICAS_MAX);
	p->interval_ms = how & 32 ? take_ms(in, 100, 3600000) : INTERVAL_MS;
	if (p->min_replicas < 0 || p->max_replicas < 1 || p->min_replicas > p->max_replicas) { // no policy at all
		p->min_replicas = i32_max(p->min_replicas & 0xffff, p->idle.set ? 0 : 1);
		p->max_replicas = p->min_replicas + 1 + (p->max_replicas & 0xffff);
	}
	if (!in->any && multiple_down(p->max_replicas, p->replica_multiple) < i32_max(p->min_replicas, 1))
		p->replica_multiple = 1;
}

static void take_idle(struct input *in, struct policy *p)
{
	size_t signal = take_u8(in) % p->n_signals;
	if (!in->any && p->signals[signal].target.set && p->signals[signal].target.type == TARGET_PODS)
		p->idle.set = p->min_replicas == 0; // the schema allows no such signal, nor 0 without idle
	int32_t below = i32_max(p->min_replicas, 1), n = i32_max(take_replicas(in, 0, below - 1), 0);
	p->idle.after_ms = take_ms(in, 0, 604800000);
	p->idle.initial_cooldown_ms = take_ms(in, 0, 604800000);
	p->idle.replicas = in->any ? n : multiple_down(n, p->replica_multiple);
	p->idle.activation.above = take_f64(in);
	if (!in->any && !isfinite(p->idle.activation.above))
		p->idle.activation.above = 0;
	p->idle.activation.signal = names[signal];
	p->idle.signal = signal;
}

static void take_formula(struct input *in, struct world *w)
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
	uint8_t which = take_u8(in);
	const char *text = w->policy.n_signals > 1 && (which & 1) ? two[(which >> 1) % 4] : texts[(which >> 1) % 7];
	require(formula_compile(text, strlen(text), names, w->policy.n_signals, w->ops, &w->policy.formula, &fault) ==
	                0,
	        text);
}

static void take_forecast(struct input *in, struct policy *p)
{
	uint8_t how = take_u8(in);
	size_t i = (how >> 4) % p->n_signals;
	if (p->signals[i].target.set && p->signals[i].target.type == TARGET_PODS)
		return;
	p->forecast =
	        (struct policy_forecast){.set = true,
	                                 .signal = names[i],
	                                 .signal_index = i,
	                                 .model = how & 1,
	                                 .use = how >> 1 & 1,
	                                 .season_ms = take_ms(in, 4 * INTERVAL_MS, 604800000),
	                                 .window_ms = take_ms(in, 4 * INTERVAL_MS, 86400000),
	                                 .horizon_ms = how & 4 ? FORECAST_HORIZON_STARTUP : take_ms(in, 1000, 86400000),
	                                 .band = take_share(in, 10),
	                                 .alpha = take_share(in, 1),
	                                 .beta = take_share(in, 1),
	                                 .gamma = take_share(in, 1)};
}

static void take_panic(struct input *in, struct policy *p)
{
	size_t i = take_u8(in) % p->n_signals;
	const struct policy_signal *s = &p->signals[i];
	if (!in->any && (!s->window.set || s->window.aggregate != WINDOW_AVG || s->window.duration_ms <= 0))
		return;
	p->panic = (struct policy_panic){.set = true,
	                                 .signal = names[i],
	                                 .signal_index = i,
	                                 .window_ms = take_ms(in, 1, s->window.duration_ms),
	                                 .threshold = 1 + take_positive(in)};
}

static void take_policy(struct input *in, struct world *w)
{
	struct policy *p = &w->policy;
	p->signals = w->signals;
	p->schedules = w->schedules;
	take_bounds(in, p);
	uint8_t parts = take_u8(in), n = take_u8(in);
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
		p->n_schedules = 1 + take_u8(in) % 3;
		for (size_t i = 0; i < p->n_schedules; i++)
			take_schedule(in, &w->schedules[i], p);
	}
	if (parts & 16) {
		int behaviors = p->combine == COMBINE_FORMULA ? FALLBACK_BEHAVIOR__COUNT : FALLBACK_SCALING_MODIFIERS;
		p->fallback = (struct policy_fallback){.set = true,
		                                       .failure_threshold = take_replicas(in, 0, 10000),
		                                       .replicas = take_replicas(in, 1, POLICY_REPLICAS_MAX),
		                                       .behavior = take_choice(in, behaviors),
		                                       .when = take_choice(in, FALLBACK_WHEN__COUNT)};
	}
	if (parts & 32) {
		bool given = take_u8(in) & 1;
		p->startup = (struct policy_startup){true, given, given ? take_ms(in, 1000, 86400000) : 0};
	}
	if (parts & 64) {
		uint8_t how = take_u8(in);
		p->guards = (struct policy_guards){
		        .set = true,
		        .max_pending_set = how & 1,
		        .max_pending_pods = take_replicas(in, 0, POLICY_REPLICAS_MAX),
		        .min_available_percent = how & 2 ? take_replicas(in, 1, 100) : 0,
		        .max_step = how & 4 ? take_replicas(in, p->replica_multiple, POLICY_REPLICAS_MAX) : 0};
	}
	if (parts & 128) {
		uint8_t which = take_u8(in);
		if (which & 1)
			take_forecast(in, p);
		if (which & 2)
			take_panic(in, p);
	}
}

// ---- what is seen ----

static void take_sight(struct input *in, struct world *w, size_t i)
{
	static const char *const pods[SERIES_MAX] = {"x", "y", "", "x"};
	uint8_t how = take_u8(in);
	w->seen[i].n_series = how & 4 ? (how >> 3) % (SERIES_MAX + 1) : 1;
	w->seen[i].state = how & 3 ? OBS_OK : (enum obs_state)((how >> 2) % OBS_STATE__COUNT);
	w->seen[i].series = w->series[i];
	for (size_t k = 0; k < w->seen[i].n_series; k++)
		w->series[i][k] =
		        (struct obs_series){pods[how & 128 ? SERIES_MAX - 1 - k : k], take_f64(in), w->now_ms};
	if (how & 64)
		w->series[i][0].time_ms = i64_sub(w->now_ms, take_any_ms(in));
}

static void show(struct input *in, struct world *w, uint8_t how)
{
	for (size_t i = 0; i < w->policy.n_signals; i++)
		for (size_t k = 0; k < SERIES_MAX; k++)
			w->series[i][k].time_ms = w->now_ms;
	switch (how & 3) {
	case 1: {
		size_t i = take_u8(in) % w->policy.n_signals;
		w->series[i][0].value = take_f64(in);
		break;
	}
	case 2:
		take_sight(in, w, take_u8(in) % w->policy.n_signals);
		break;
	case 3:
		for (size_t i = 0; i < w->policy.n_signals; i++)
			take_sight(in, w, i);
		break;
	default:
		break;
	}
}

static void pass_time(struct input *in, struct world *w, uint8_t how)
{
	switch (how & 3) {
	case 1:
		w->now_ms = i64_add(w->now_ms, (int64_t)take_u8(in) * 1000);
		break;
	case 2:
		w->now_ms = i64_add(w->now_ms, take_any_ms(in)); // back, and years ahead
		break;
	case 3:
		w->now_ms = i64_add(w->now_ms, 1);
		break;
	default:
		w->now_ms = i64_add(w->now_ms, INTERVAL_MS);
		break;
	}
	w->now_ms = clamp(w->now_ms, -(INT64_C(1) << 50), INT64_C(1) << 50);
}

// The cluster: follows, follows late, does as it likes, shows nonsense.
static void follow(struct input *in, struct world *w, uint8_t how, void *state, const struct decision *d)
{
	struct observation *o = &w->observation;
	if (d->write && (how & 3) < 2) {
		decide_record_scale(&w->policy, state, d->time_ms, d->current, d->desired);
		o->spec_replicas = o->status_replicas = d->desired;
	}
	switch (how & 3) {
	case 0:
		o->ready_replicas = o->spec_replicas;
		o->pending_replicas = 0;
		break;
	case 1:
		o->ready_replicas = (int32_t)((int64_t)take_u8(in) * o->spec_replicas / 255);
		o->pending_replicas = o->spec_replicas - o->ready_replicas;
		break;
	case 2:
		o->spec_replicas = take_i32(in);
		break;
	default:
		o->ready_replicas = take_i32(in);
		o->status_replicas = take_i32(in);
		o->pending_replicas = take_i32(in);
		o->n_pods = take_u8(in) % (SERIES_MAX + 1);
		o->pods = o->n_pods > 0 ? w->pods : NULL;
		for (size_t i = 0; i < o->n_pods; i++)
			w->pods[i] =
			        (struct obs_pod){i & 1 ? "y" : "x", (enum pod_state)take_choice(in, POD_STATE__COUNT)};
		break;
	}
}

// ---- one tick ----

// FUZZ_SHOW=1 tells what happens in an input, tick by tick.
static void tell(const struct decision *d)
{
	fprintf(stderr, "%lld: %d (ready %d, pending %d) -> %d in %d..%d %s %s%s\n", (long long)d->time_ms, d->current,
	        d->ready, d->pending, d->desired, d->min_replicas, d->max_replicas, action_name(d->action),
	        reason_info(d->reason)->name, d->write ? ", to be written" : "");
	for (size_t i = 0; i < d->n_trace; i++) {
		const struct trace_entry *e = &d->trace[i];
		fprintf(stderr, "    %s %s signal %d: %d -> %d, value %g, limit %g, %lld ms of %lld, count %d\n",
		        stage_name(e->stage), reason_info(e->reason)->name, e->signal, e->before, e->after, e->value,
		        e->limit, (long long)e->duration_ms, (long long)e->window_ms, e->count);
	}
}

static bool is_same(const struct decision *a, const struct decision *b)
{
	return a->desired == b->desired && a->reason == b->reason && a->action == b->action && a->driver == b->driver &&
	       a->write == b->write && a->n_trace == b->n_trace && a->min_replicas == b->min_replicas &&
	       a->max_replicas == b->max_replicas;
}

struct states {
	void *now, *other, *packed;
	size_t bytes;
};

static void tick(const struct input *in, const struct world *w, struct states *s, struct decision *d, uint8_t look)
{
	const struct policy *p = &w->policy;
	struct decision again;
	memcpy(s->other, s->now, s->bytes);
	struct policy plan = *p;
	plan.dry_run = true;
	switch (look & 3) {
	case 1: // the time between two ticks is spent packed
		require(decide_state_packed_bytes(p, s->now) <= s->bytes, "a packed state is not larger");
		decide_state_pack(p, s->now, s->packed);
		memset(s->other, look, s->bytes);
		decide_state_unpack(p, s->packed, s->other);
		break;
	case 2: // the policy is read again
		decide_state_init(p, s->other);
		decide_state_migrate(p, s->now, p, s->other);
		break;
	default:
		break;
	}
	require(decide_state_matches(p, s->other, s->bytes), "a state is taken back");
	decide(p, &w->observation, w->now_ms, s->other, &again);
	memcpy(s->packed, s->now, s->bytes); // what was on record before
	decide(p, &w->observation, w->now_ms, s->now, d);
	if (getenv("FUZZ_SHOW"))
		tell(d);
	if (getenv("FUZZ_SHOW") && !is_same(d, &again))
		tell(&again);
	require(is_same(d, &again) || ((look & 3) == 2 && in->any), "equal states decide the same");
	require((look & 3) > 0 || memcmp(s->now, s->other, s->bytes) == 0, "equal inputs, equal states");
	memcpy(s->other, s->packed, s->bytes);
	decide(&plan, &w->observation, w->now_ms, s->other, &again);
	require(again.desired == d->desired && again.action == d->action && again.reason == d->reason && !again.write,
	        "a plan is what a run does");
	const struct law_tick t = {p, &w->observation, d, s->packed};
	const char *law = in->any ? laws_broken_by_any(&t) : laws_broken(&t);
	require(law == NULL, law);
}

// Whoever reads a record back takes no time from ahead of now.
static int64_t take_past_ms(struct input *in, const struct world *w)
{
	int64_t v = take_any_ms(in);
	return in->any ? v : w->now_ms - clamp(v, 0, INT64_C(1) << 40);
}

static void record_anything(struct input *in, struct world *w, void *state)
{
	const struct policy *p = &w->policy;
	uint8_t what = take_u8(in);
	if (what & 1)
		decide_record_scale(p, state, take_past_ms(in, w), take_i32(in), take_i32(in));
	if (what & 2)
		decide_record_recommendation(p, state, take_past_ms(in, w), i32_max(take_i32(in), 0));
	if (what & 4)
		decide_record_start(p, state, take_any_ms(in));
	if (what & 8)
		decide_record_last_scale(p, state, take_past_ms(in, w));
	if (what & 16)
		decide_refill(p, state, take_u8(in) % p->n_signals, w->series[0], SERIES_MAX, take_i32(in), w->now_ms);
	if (what & 32)
		decide_refill_forecast(p, state, w->series[0], SERIES_MAX, w->now_ms);
}

static void run(struct input *in, struct world *w, struct states *s)
{
	struct decision d;
	int after_end = 0;
	for (int i = 0; i < TICKS_MAX && after_end < AFTER_END; i++) {
		after_end += in->size == 0;
		uint8_t op = take_u8(in), more = op >> 6;
		pass_time(in, w, op);
		show(in, w, op >> 2);
		if (more == 3)
			record_anything(in, w, s->now);
		uint8_t look = more == 2 ? take_u8(in) : 0, n = more == 1 ? 1 + take_u8(in) % 8 : 1;
		for (int k = 0; k < n; k++) {
			if (k > 0)
				w->now_ms += INTERVAL_MS;
			for (size_t g = 0; k > 0 && g < w->policy.n_signals; g++)
				w->series[g][0].time_ms = w->now_ms;
			tick(in, w, s, &d, look);
			struct input none = {NULL, 0, in->any};
			follow(k + 1 < n ? &none : in, w, k + 1 < n ? 0 : op >> 4, s->now, &d);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size, false};
	static struct world w; // 20 KiB
	memset(&w, 0, sizeof w);
	in.any = take_u8(&in) % 4 == 3;
	take_policy(&in, &w);
	struct states s = {.bytes = decide_state_bytes(&w.policy)};
	require(s.bytes % 8 == 0 && s.bytes < 1024 * 1024, "a state has a ceiling");
	s.now = calloc(1, s.bytes);
	s.other = malloc(s.bytes);
	s.packed = malloc(s.bytes);
	require(s.now && s.other && s.packed, "memory");
	memset(s.other, size & 0xff, s.bytes);
	require(!decide_state_matches(&w.policy, s.other, s.bytes), "foreign bytes are no state");
	decide_state_init(&w.policy, s.now);
	require(decide_state_matches(&w.policy, s.now, s.bytes), "a state is taken back");

	w.now_ms = 1000000000;
	w.observation = (struct observation){.signals = w.seen, .n_signals = w.policy.n_signals};
	int32_t n = (int32_t)clamp((int64_t)i32_max(w.policy.min_replicas, 1) + take_u8(&in), 0, w.policy.max_replicas);
	w.observation.spec_replicas = w.observation.status_replicas = w.observation.ready_replicas = n;
	for (size_t i = 0; i < w.policy.n_signals; i++) {
		w.seen[i] = (struct obs_signal){OBS_OK, NULL, w.series[i], 1};
		for (size_t k = 0; k < SERIES_MAX; k++)
			w.series[i][k] = (struct obs_series){"", take_f64(&in), w.now_ms};
	}
	run(&in, &w, &s);
	struct decide_recommendation r[2 * DECIDE_HISTORY_MAX];
	struct decide_scale_event e[2 * DECIDE_HISTORY_MAX];
	require(decide_recommendations(&w.policy, s.now, r, 2 * DECIDE_HISTORY_MAX) <= 2 * DECIDE_HISTORY_MAX &&
	                decide_scale_events(&w.policy, s.now, e, 2 * DECIDE_HISTORY_MAX) <= 2 * DECIDE_HISTORY_MAX,
	        "the record has a ceiling");
	free(s.now);
	free(s.other);
	free(s.packed);
	return 0;
}
