// SPDX-License-Identifier: Apache-2.0
// A policy of any shape, then ticks with any observation. Beyond "does not crash": the laws of test/support/laws.h
// hold, a copy of the state, one packed and unpacked, and one migrated to the same policy give the same answer, a dry
// run gives it without a write, and arbitrary bytes are never accepted as a state. The first byte says which: a policy
// that keeps the rules of the schema (all laws), or one with any numbers in it (those laws that hold for any). Zeros go
// on where the input ends, so that a short one is a whole story: interval after interval, the target follows, the
// signals stay as they are.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/engine/decide.h"
#include "policies/engine/number.h"
#include "test/support/any_policy.h"
#include "test/support/laws.h"

#define TICKS_MAX  48
#define AFTER_END  4 // ticks after the input has ended
#define SERIES_MAX 4

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

// ---- what is seen ----

struct world {
	struct any_policy p;
	struct obs_signal seen[POLICY_SIGNALS_MAX];
	struct obs_series series[POLICY_SIGNALS_MAX][SERIES_MAX];
	struct obs_pod pods[SERIES_MAX];
	struct observation observation;
	int64_t now_ms;
};

static void take_sight(struct any_input *in, struct world *w, size_t i)
{
	static const char *const pods[SERIES_MAX] = {"x", "y", "", "x"};
	uint8_t how = any_u8(in);
	w->seen[i].n_series = how & 4 ? (how >> 3) % (SERIES_MAX + 1) : 1;
	w->seen[i].state = how & 3 ? OBS_OK : (enum obs_state)((how >> 2) % OBS_STATE__COUNT);
	w->seen[i].series = w->series[i];
	for (size_t k = 0; k < w->seen[i].n_series; k++)
		w->series[i][k] = (struct obs_series){pods[how & 128 ? SERIES_MAX - 1 - k : k], any_f64(in), w->now_ms};
	if (how & 64)
		w->series[i][0].time_ms = i64_sub(w->now_ms, any_ms(in));
}

static void show(struct any_input *in, struct world *w, uint8_t how)
{
	for (size_t i = 0; i < w->p.policy.n_signals; i++)
		for (size_t k = 0; k < SERIES_MAX; k++)
			w->series[i][k].time_ms = w->now_ms;
	switch (how & 3) {
	case 1: {
		size_t i = any_u8(in) % w->p.policy.n_signals;
		w->series[i][0].value = any_f64(in);
		break;
	}
	case 2:
		take_sight(in, w, any_u8(in) % w->p.policy.n_signals);
		break;
	case 3:
		for (size_t i = 0; i < w->p.policy.n_signals; i++)
			take_sight(in, w, i);
		break;
	default:
		break;
	}
}

static void pass_time(struct any_input *in, struct world *w, uint8_t how)
{
	switch (how & 3) {
	case 1:
		w->now_ms = i64_add(w->now_ms, (int64_t)any_u8(in) * 1000);
		break;
	case 2:
		w->now_ms = i64_add(w->now_ms, any_ms(in)); // back, and years ahead
		break;
	case 3:
		w->now_ms = i64_add(w->now_ms, 1);
		break;
	default:
		w->now_ms = i64_add(w->now_ms, ANY_INTERVAL_MS);
		break;
	}
	w->now_ms = any_clamp(w->now_ms, -(INT64_C(1) << 47), INT64_C(1) << 47); // the calendar is known that far
}

// The cluster: follows, follows late, does as it likes, shows nonsense.
static void follow(struct any_input *in, struct world *w, uint8_t how, void *state, const struct decision *d)
{
	struct observation *o = &w->observation;
	if (d->write && (how & 3) < 2) {
		decide_record_scale(&w->p.policy, state, d->time_ms, d->current, d->desired);
		o->spec_replicas = o->status_replicas = d->desired;
	}
	switch (how & 3) {
	case 0:
		o->ready_replicas = o->spec_replicas;
		o->pending_replicas = 0;
		break;
	case 1:
		o->ready_replicas = (int32_t)((int64_t)any_u8(in) * o->spec_replicas / 255);
		o->pending_replicas = o->spec_replicas - o->ready_replicas;
		break;
	case 2:
		o->spec_replicas = any_i32(in);
		break;
	default:
		o->ready_replicas = any_i32(in);
		o->status_replicas = any_i32(in);
		o->pending_replicas = any_i32(in);
		o->n_pods = any_u8(in) % (SERIES_MAX + 1);
		o->pods = o->n_pods > 0 ? w->pods : NULL;
		for (size_t i = 0; i < o->n_pods; i++)
			w->pods[i] =
			        (struct obs_pod){i & 1 ? "y" : "x", (enum pod_state)any_choice(in, POD_STATE__COUNT)};
		break;
	}
}

// ---- one tick ----

// FUZZ_SHOW=1 prints what happens in an input, tick by tick.
static void tell(const struct decision *d)
{
	fprintf(stderr, "%lld: %d (ready %d, pending %d) -> %d in %d..%d %s %s%s\n", (long long)d->time_ms, d->current,
	        d->ready, d->pending, d->desired, d->min_replicas, d->max_replicas, action_names[d->action],
	        reason_info(d->reason)->name, d->write ? ", to be written" : "");
	for (size_t i = 0; i < d->n_trace; i++) {
		const struct trace_entry *e = &d->entries[i];
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

static void tick(const struct any_input *in, const struct world *w, struct states *s, struct decision *d, uint8_t look)
{
	const struct policy *p = &w->p.policy;
	struct decision again;
	memcpy(s->other, s->now, s->bytes);
	struct policy plan = *p;
	plan.dry_run = true;
	switch (look & 3) {
	case 1: // the time between two ticks is spent packed
		require(decide_state_packed_bytes(p, s->now) <= DECIDE_STATE_PACKED_MAX(s->bytes),
		        "a packed state keeps its ceiling");
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

// The caller that restores a record limits its times to now.
static int64_t take_past_ms(struct any_input *in, const struct world *w)
{
	int64_t v = any_ms(in);
	return in->any ? v : w->now_ms - any_clamp(v, 0, INT64_C(1) << 40);
}

static void record_anything(struct any_input *in, struct world *w, void *state)
{
	const struct policy *p = &w->p.policy;
	uint8_t what = any_u8(in);
	if (what & 1)
		decide_record_scale(p, state, take_past_ms(in, w), any_i32(in), any_i32(in));
	if (what & 2)
		decide_record_recommendation(p, state, take_past_ms(in, w), i32_max(any_i32(in), 0));
	if (what & 4)
		decide_record_start(p, state, any_ms(in));
	if (what & 8)
		decide_record_last_scale(p, state, take_past_ms(in, w));
	if (what & 16)
		decide_refill(p, state, any_u8(in) % p->n_signals, w->series[0], SERIES_MAX, any_i32(in), w->now_ms);
	if (what & 32)
		decide_refill_forecast(p, state, w->series[0], SERIES_MAX, w->now_ms);
}

static void run(struct any_input *in, struct world *w, struct states *s)
{
	struct decision d;
	int after_end = 0;
	for (int i = 0; i < TICKS_MAX && after_end < AFTER_END; i++) {
		after_end += in->size == 0;
		uint8_t op = any_u8(in), more = op >> 6;
		pass_time(in, w, op);
		show(in, w, op >> 2);
		if (more == 3)
			record_anything(in, w, s->now);
		uint8_t look = more == 2 ? any_u8(in) : 0, n = more == 1 ? 1 + any_u8(in) % 8 : 1;
		for (int k = 0; k < n; k++) {
			if (k > 0)
				w->now_ms += ANY_INTERVAL_MS;
			for (size_t g = 0; k > 0 && g < w->p.policy.n_signals; g++)
				w->series[g][0].time_ms = w->now_ms;
			tick(in, w, s, &d, look);
			struct any_input none = {NULL, 0, in->any};
			follow(k + 1 < n ? &none : in, w, k + 1 < n ? 0 : op >> 4, s->now, &d);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct any_input in = {data, size, false};
	static struct world w; // 20 KiB
	memset(&w, 0, sizeof w);
	in.any = any_u8(&in) % 4 == 3;
	any_policy_take(&in, &w.p);
	struct states s = {.bytes = decide_state_bytes(&w.p.policy)};
	require(s.bytes % 8 == 0 && s.bytes < 1024 * 1024, "a state has a ceiling");
	s.now = calloc(1, s.bytes);
	s.other = malloc(s.bytes);
	s.packed = malloc(DECIDE_STATE_PACKED_MAX(s.bytes));
	require(s.now && s.other && s.packed, "memory");
	memset(s.other, size & 0xff, s.bytes);
	require(!decide_state_matches(&w.p.policy, s.other, s.bytes), "arbitrary bytes are not a state");
	decide_state_init(&w.p.policy, s.now);
	require(decide_state_matches(&w.p.policy, s.now, s.bytes), "a state is taken back");

	w.now_ms = 1000000000;
	w.observation = (struct observation){.signals = w.seen, .n_signals = w.p.policy.n_signals};
	int32_t n = (int32_t)any_clamp((int64_t)i32_max(w.p.policy.min_replicas, 1) + any_u8(&in), 0,
	                               w.p.policy.max_replicas);
	w.observation.spec_replicas = w.observation.status_replicas = w.observation.ready_replicas = n;
	for (size_t i = 0; i < w.p.policy.n_signals; i++) {
		w.seen[i] = (struct obs_signal){OBS_OK, NULL, w.series[i], 1, 0};
		for (size_t k = 0; k < SERIES_MAX; k++)
			w.series[i][k] = (struct obs_series){"", any_f64(&in), w.now_ms};
	}
	run(&in, &w, &s);
	struct decide_recommendation r[2 * DECIDE_HISTORY_MAX];
	struct decide_scale_event e[2 * DECIDE_HISTORY_MAX];
	require(decide_recommendations(&w.p.policy, s.now, r, 2 * DECIDE_HISTORY_MAX) <= 2 * DECIDE_HISTORY_MAX &&
	                decide_scale_events(&w.p.policy, s.now, e, 2 * DECIDE_HISTORY_MAX) <= 2 * DECIDE_HISTORY_MAX,
	        "the record has a ceiling");
	free(s.now);
	free(s.other);
	free(s.packed);
	return 0;
}
