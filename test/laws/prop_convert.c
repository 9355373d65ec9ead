// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a converted policy decides like the object that it was converted from. Random HPAs, ScaledObjects
// and WatermarkPodAutoscalers and random values; the originals are modelled here, from their published rules, and
// independently of the engine. What a note of the output announces is left out: behavior that is missing, windows of
// cron triggers that open more slowly, replicas that are not ready, multiples.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/convert/convert.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "test/laws/prop.h"

#define TICK_S     15
#define METRICS    3
#define RULES      2
#define WINDOWS    3
#define BEFORE     40 // ticks before the start, in which only windows of cron triggers asked for replicas
#define START_S    INT64_C(1767571200) // 2026-01-05T00:00:00Z, a Monday
#define TEXT_BYTES 16384

// ---- an object, as text and as the numbers of its model ----

struct metric {
	bool is_average;
	double target, value;
	bool missing;
};

struct rule {
	bool is_percent;
	int32_t value, period_s;
};

struct direction {
	int32_t window_s;
	bool is_min;
	struct rule rules[RULES];
	int n_rules;
};

struct cron_window {
	int start_minute, end_minute, days; // of the day; days: a set, Sunday 1
	int32_t replicas;
};

struct original {
	int32_t min, max;
	struct metric metrics[METRICS];
	int n_metrics;
	struct direction up, down;
	struct cron_window windows[WINDOWS];
	int n_windows;
	double tolerance;
	// of a WatermarkPodAutoscaler, whose metrics have these marks
	double high[METRICS], low[METRICS], up_factor, down_factor;
	bool is_per_replica, tolerates_zero;
	int32_t up_wait_s, down_wait_s, up_delay_s, down_delay_s;
};

struct converted {
	struct arena arena;
	struct conversion conversion;
	struct engine engine;
	struct buf object, text; // the object and the policy that it became
};

// 10,000 sequences in the nightly run.
static int64_t ticks(void)
{
	return getenv("GPUSCALE_NIGHTLY") ? 10000 * PROP_TICKS_A_TRACE : prop_ticks();
}

static void convert(struct converted *v, int32_t replicas)
{
	struct doc_file file, result;
	struct err e;
	struct schema_errors errors;
	struct conversion *c = &v->conversion;
	struct policy_document document = {0};
	if (doc_parse_yaml(&v->arena, "object", buf_str(&v->object), v->object.len, &file, &e) < 0 ||
	    convert_object(c, &v->arena, file.roots[0], NULL, NULL, &e) < 0)
		fail_msg("%s\n%s", e.msg, buf_str(&v->object));
	buf_init(&v->text, TEXT_BYTES);
	convert_write(&v->text, c);
	schema_errors_init(&errors, "policy");
	if (doc_parse_yaml(&v->arena, "policy", buf_str(&v->text), v->text.len, &result, &e) < 0 ||
	    policy_decode(result.roots[0], &document, &v->arena, &errors) < 0)
		fail_msg("%s%s\n%s", e.msg, errors.n ? errors.items[0].message : "", buf_str(&v->text));
	assert_false(c->is_incomplete);
	engine_init(&v->engine, replicas);
	v->engine.policy = document.policy;
	v->engine.seen.n_signals = document.policy.n_signals;
	v->engine.now_ms = START_S * 1000;
	engine_start(&v->engine);
}

static void begin(struct converted *v)
{
	arena_init(&v->arena, 16 * 1024 * 1024);
	buf_init(&v->object, TEXT_BYTES);
}

static void end(struct converted *v)
{
	engine_done(&v->engine);
	buf_done(&v->object);
	buf_done(&v->text);
	arena_done(&v->arena);
}

static void differs(const char *law, int tick, const struct converted *v, int32_t wanted)
{
	fprintf(stderr, "%s%s", buf_str(&v->object), buf_str(&v->text));
	fail_msg("PROP_SEED=%llu: tick %d: %s: the original scales to %d, the policy from %d to %d",
	         (unsigned long long)prop_seed(), tick, law, wanted, v->engine.decision.current,
	         v->engine.decision.desired);
}

// ---- HPA: horizontal.go, replica_calculator.go ----

struct past {
	int64_t time_s;
	int32_t n;
};

struct hpa {
	int32_t current;
	struct past recommended[PROP_TICKS_A_TRACE + 1 + BEFORE], changes[PROP_TICKS_A_TRACE];
	int n_recommended, n_changes;
};

static void hpa_begin(struct hpa *h, int32_t replicas, int64_t now_s)
{
	*h = (struct hpa){.current = replicas};
	h->recommended[h->n_recommended++] = (struct past){now_s, replicas};
}

static int32_t hpa_one(const struct metric *m, double tolerance, int32_t current)
{
	double ratio = m->is_average ? m->value / (m->target * current) : m->value / m->target;
	if (ratio >= 1.0 - tolerance && ratio <= 1.0 + tolerance)
		return current;
	return (int32_t)ceil(m->is_average ? m->value / m->target : ratio * current);
}

static int32_t limit_of(const struct hpa *h, const struct direction *d, int sign, int64_t now_s)
{
	double limit = 0;
	for (int i = 0; i < d->n_rules; i++) {
		const struct rule *r = &d->rules[i];
		double start = h->current, one;
		for (int k = 0; k < h->n_changes; k++)
			if (h->changes[k].time_s > now_s - r->period_s)
				start -= h->changes[k].n;
		if (!r->is_percent)
			one = start + sign * r->value;
		else
			one = sign > 0 ? ceil(start * (1 + r->value / 100.0)) : trunc(start * (1 - r->value / 100.0));
		bool takes_larger = (sign > 0) == !d->is_min;
		limit = i == 0 || (takes_larger ? one > limit : one < limit) ? one : limit;
	}
	return (int32_t)(sign > 0 ? fmax(limit, h->current) : fmin(limit, h->current));
}

static int32_t normalized(struct hpa *h, const struct original *o, int32_t desired, int64_t now_s)
{
	int32_t up = desired, down = desired, n = h->current;
	for (int i = 0; i < h->n_recommended; i++) {
		const struct past *p = &h->recommended[i];
		if (p->time_s > now_s - o->up.window_s && p->n < up)
			up = p->n;
		if (p->time_s > now_s - o->down.window_s && p->n > down)
			down = p->n;
	}
	h->recommended[h->n_recommended++] = (struct past){now_s, desired};
	n = n < up ? up : n > down ? down : n;
	if (n > h->current) {
		int32_t limit = limit_of(h, &o->up, 1, now_s);
		n = n > limit ? limit : n;
	} else if (n < h->current) {
		int32_t limit = limit_of(h, &o->down, -1, now_s);
		n = n < limit ? limit : n;
	}
	return n < o->min ? o->min : n > o->max ? o->max : n;
}

// One sync, at which the target follows.
static int32_t hpa_sync(struct hpa *h, const struct original *o, int64_t now_s)
{
	int32_t largest = 0, n;
	int n_valid = 0;
	for (int i = 0; i < o->n_metrics; i++) {
		if (o->metrics[i].missing)
			continue;
		n = hpa_one(&o->metrics[i], o->tolerance, h->current);
		largest = n_valid++ == 0 || n > largest ? n : largest;
	}
	if (h->current > o->max)
		n = o->max;
	else if (h->current < o->min)
		n = o->min;
	else if (n_valid == 0 || (n_valid < o->n_metrics && largest < h->current))
		n = h->current;
	else
		n = normalized(h, o, largest, now_s);
	if (n != h->current)
		h->changes[h->n_changes++] = (struct past){now_s, n - h->current};
	return h->current = n;
}

// ---- random objects ----

static void random_direction(struct prop_random *r, struct direction *d, struct buf *b, const char *name)
{
	d->window_s = prop_chance(r, 40) ? 0 : 15 * prop_up_to(r, 20);
	d->is_min = prop_chance(r, 30);
	d->n_rules = 1 + prop_up_to(r, RULES - 1);
	buf_printf(b, "    %s: {stabilizationWindowSeconds: %d, selectPolicy: %s, policies: [", name, d->window_s,
	           d->is_min ? "Min" : "Max");
	for (int i = 0; i < d->n_rules; i++) {
		struct rule *rule = &d->rules[i];
		rule->is_percent = prop_chance(r, 50);
		rule->value = 1 + prop_up_to(r, rule->is_percent ? 99 : 9);
		rule->period_s = 15 * (1 + prop_up_to(r, 7));
		buf_printf(b, "%s{type: %s, value: %d, periodSeconds: %d}", i ? ", " : "",
		           rule->is_percent ? "Percent" : "Pods", rule->value, rule->period_s);
	}
	buf_puts(b, "]}\n");
}

static void random_bounds(struct prop_random *r, struct original *o)
{
	*o = (struct original){.min = 1 + prop_up_to(r, 3)};
	o->tolerance = 0.1;
	o->max = o->min + prop_up_to(r, 40);
	o->n_metrics = 1 + prop_up_to(r, METRICS - 1);
}

// The next value of each metric: near what the present scale can carry, far from it, zero, or none.
static void show_values(struct prop_random *r, struct original *o, struct engine *e, int n, int32_t current,
                        int32_t percent_missing)
{
	for (int i = 0; i < n; i++) {
		struct metric *m = &o->metrics[i];
		double share = prop_chance(r, 70)   ? prop_up_to(r, 250) / 100.0
		               : prop_chance(r, 50) ? 0
		                                    : prop_up_to(r, 20);
		m->value = floor(4 * m->target * share * (m->is_average ? current : 1)) / 4;
		m->missing = prop_chance(r, percent_missing);
		if (m->missing)
			engine_show_state(e, (size_t)i, prop_chance(r, 50) ? OBS_FAILED : OBS_EMPTY);
		else
			engine_show(e, (size_t)i, m->value);
	}
}

static void hpa_decides_as_before(void **state)
{
	(void)state;
	struct prop_random r = {prop_seed() + 70};
	int64_t changes = 0;
	for (int64_t done = 0; done < ticks(); done += PROP_TICKS_A_TRACE) {
		struct converted v;
		struct original o;
		struct hpa h;
		begin(&v);
		random_bounds(&r, &o);
		buf_printf(
		        &v.object,
		        "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: a, namespace: b}\n"
		        "spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: a}\n"
		        "  minReplicas: %d\n  maxReplicas: %d\n  behavior:\n",
		        o.min, o.max);
		random_direction(&r, &o.up, &v.object, "scaleUp");
		random_direction(&r, &o.down, &v.object, "scaleDown");
		buf_puts(&v.object, "  metrics:\n");
		for (int i = 0; i < o.n_metrics; i++) {
			struct metric *m = &o.metrics[i];
			m->is_average = prop_chance(&r, 50);
			m->target = (1 + prop_up_to(&r, 40)) / 4.0;
			buf_printf(&v.object,
			           "  - {type: External, external: {metric: {name: m%d}, target: {type: %s, %s: "
			           "\"%.2f\"}}}\n",
			           i, m->is_average ? "AverageValue" : "Value",
			           m->is_average ? "averageValue" : "value", m->target);
		}
		int32_t replicas = 1 + prop_up_to(&r, o.max + 3);
		convert(&v, replicas);
		hpa_begin(&h, replicas, START_S);
		int32_t missing = prop_chance(&r, 50) ? 0 : 10;
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++) {
			show_values(&r, &o, &v.engine, o.n_metrics, h.current, missing);
			engine_tick(&v.engine);
			int32_t before = h.current, n = hpa_sync(&h, &o, v.engine.now_ms / 1000);
			if (v.engine.decision.desired != n)
				differs("hpa_decides_as_before", i, &v, n);
			changes += n != before;
			engine_apply(&v.engine);
			v.engine.now_ms += TICK_S * 1000;
		}
		end(&v);
	}
	assert_true(changes > 0);
}

// ---- KEDA: cron_scaler.go; its HPA is the one above ----

static bool is_open(const struct cron_window *w, int64_t now_s)
{
	int64_t day = now_s / 86400, minute = now_s % 86400 / 60;
	bool today = w->days >> (day + 4) % 7 & 1, yesterday = w->days >> (day + 3) % 7 & 1;
	if (w->start_minute < w->end_minute)
		return today && minute >= w->start_minute && minute < w->end_minute;
	return (today && minute >= w->start_minute) || (yesterday && minute < w->end_minute);
}

static void put_days(struct buf *b, int days, int shift)
{
	bool any = false;
	for (int i = 0; i < 7; i++)
		if (days >> i & 1) {
			buf_printf(b, "%s%d", any ? "," : "", (i + shift) % 7);
			any = true;
		}
}

static void random_window(struct prop_random *r, struct original *o, struct buf *b)
{
	struct cron_window *w = &o->windows[o->n_windows++];
	w->start_minute = prop_up_to(r, 1439);
	w->end_minute = (w->start_minute + 1 + prop_up_to(r, 1400)) % 1440;
	w->days = 1 + prop_up_to(r, 126);
	w->replicas = prop_up_to(r, o->max);
	int shift = w->end_minute < w->start_minute;
	buf_printf(b, "  - {type: cron, metadata: {timezone: UTC, desiredReplicas: \"%d\", start: \"%d %d * * ",
	           w->replicas, w->start_minute % 60, w->start_minute / 60);
	put_days(b, w->days, 0);
	buf_printf(b, "\", end: \"%d %d ? * ", w->end_minute % 60, w->end_minute / 60);
	put_days(b, w->days, shift);
	buf_puts(b, "\"}}\n");
}

// A cron trigger is a metric with the target 1.
static void show_windows(struct original *o, int n_metrics, int64_t now_s)
{
	o->n_metrics = n_metrics;
	for (int i = 0; i < o->n_windows; i++) {
		const struct cron_window *w = &o->windows[i];
		struct metric *m = &o->metrics[o->n_metrics++];
		*m = (struct metric){.is_average = true, .target = 1, .value = is_open(w, now_s) ? w->replicas : 1};
	}
}

// The recommendations of the time before `now_s`; returns the largest.
static int32_t hpa_remember_windows(struct hpa *h, const struct original *o, int64_t now_s)
{
	int32_t largest = o->min;
	for (int64_t at_s = now_s - TICK_S; at_s > now_s - o->down.window_s; at_s -= TICK_S) {
		int32_t n = o->min;
		for (int i = 0; i < o->n_windows; i++)
			if (is_open(&o->windows[i], at_s) && o->windows[i].replicas > n)
				n = o->windows[i].replicas;
		h->recommended[h->n_recommended++] = (struct past){at_s, n};
		largest = n > largest ? n : largest;
	}
	return largest;
}

static void scaled_object_decides_as_before(void **state)
{
	(void)state;
	struct prop_random r = {prop_seed() + 71};
	int64_t opened = 0;
	for (int64_t done = 0; done < ticks(); done += PROP_TICKS_A_TRACE) {
		struct converted v;
		struct original o;
		struct hpa h;
		begin(&v);
		random_bounds(&r, &o);
		o.n_metrics = 1;
		o.tolerance = 0; // a schedule is exact
		o.up = (struct direction){.n_rules = 1, .rules = {{false, 1000, 15}}};
		o.down = (struct direction){
		        .n_rules = 1, .rules = {{true, 100, 15}}, .window_s = 60 * prop_up_to(&r, 10)};
		o.metrics[0] = (struct metric){.is_average = true, .target = (1 + prop_up_to(&r, 40)) / 4.0};
		buf_printf(
		        &v.object,
		        "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a, namespace: b}\n"
		        "spec:\n  scaleTargetRef: {name: a}\n  minReplicaCount: %d\n  maxReplicaCount: %d\n"
		        "  advanced: {horizontalPodAutoscalerConfig: {behavior: {\n"
		        "    scaleUp: {tolerance: \"0\", policies: [{type: Pods, value: 1000, periodSeconds: 15}]},\n"
		        "    scaleDown: {tolerance: \"0\", stabilizationWindowSeconds: %d}}}}\n  triggers:\n"
		        "  - {type: prometheus, metadata: {serverAddress: http://p, query: q, threshold: \"%.2f\", "
		        "ignoreNullValues: \"false\"}}\n",
		        o.min, o.max, o.down.window_s, o.metrics[0].target);
		for (int i = prop_up_to(&r, WINDOWS - 1); i > 0; i--)
			random_window(&r, &o, &v.object);
		int64_t start_s = START_S + 60 * (int64_t)prop_up_to(&r, 7 * 1440);
		hpa_begin(&h, o.min, start_s);
		h.current = hpa_remember_windows(&h, &o, start_s);
		h.recommended[0].n = h.current; // the first sync
		convert(&v, h.current);
		v.engine.now_ms = start_s * 1000;
		bool was_open[WINDOWS] = {false};
		int wrong = 0;
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++) {
			int64_t now_s = v.engine.now_ms / 1000;
			// A minute a tick once in a while would skip an event: the steps stay at 15 s, the load changes
			// slowly.
			if (i % 8 == 0)
				show_values(&r, &o, &v.engine, 1, o.min, 0);
			engine_tick(&v.engine);
			show_windows(&o, 1, now_s);
			int32_t n = hpa_sync(&h, &o, now_s);
			for (int k = 0; k < o.n_windows; k++) {
				opened += is_open(&o.windows[k], now_s) != was_open[k];
				was_open[k] = is_open(&o.windows[k], now_s);
			}
			// A metric is read every 15 s, a schedule acts at the minute: one tick apart.
			wrong = v.engine.decision.desired == n ? 0 : wrong + 1;
			if (wrong > 1)
				differs("scaled_object_decides_as_before", i, &v, n);
			engine_apply(&v.engine);
			v.engine.now_ms += TICK_S * 1000;
		}
		end(&v);
	}
	assert_true(opened > 0);
}

// ---- KEDA: scale_scaledobjects.go, between zero and one ----

// The operator scales to zero once no trigger was active for the cooldown, and back at once; its HPA does the rest.
static int32_t keda_poll(struct hpa *h, const struct original *o, bool is_active, int64_t cooldown_s, int64_t now_s,
                         int64_t *active_s)
{
	if (is_active)
		*active_s = now_s;
	if (h->current == 0)
		return h->current = is_active ? o->min : 0;
	hpa_sync(h, o, now_s);
	if (!is_active && now_s > *active_s + cooldown_s)
		h->current = 0;
	return h->current;
}

static void scaled_object_is_idle_as_before(void **state)
{
	(void)state;
	struct prop_random r = {prop_seed() + 73};
	int64_t woken = 0, idle = 0;
	for (int64_t done = 0; done < ticks(); done += PROP_TICKS_A_TRACE) {
		struct converted v;
		struct original o;
		struct hpa h;
		begin(&v);
		random_bounds(&r, &o);
		o.min = 1;
		o.tolerance = 0; // from zero, the two go different ways, which it would keep apart
		o.n_metrics = 1 + prop_up_to(&r, 1);
		o.up = (struct direction){.n_rules = 1, .rules = {{false, 1000, 15}}};
		o.down = (struct direction){.n_rules = 1, .rules = {{true, 100, 15}}};
		int32_t cooldown_s = 15 * prop_up_to(&r, 20), activation[2] = {prop_up_to(&r, 4), prop_up_to(&r, 4)};
		buf_printf(
		        &v.object,
		        "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a, namespace: b}\n"
		        "spec:\n  scaleTargetRef: {name: a}\n  maxReplicaCount: %d\n  cooldownPeriod: %d\n"
		        "  advanced: {horizontalPodAutoscalerConfig: {behavior: {\n"
		        "    scaleUp: {tolerance: \"0\", policies: [{type: Pods, value: 1000, periodSeconds: 15}]},\n"
		        "    scaleDown: {tolerance: \"0\", stabilizationWindowSeconds: 0}}}",
		        o.max, cooldown_s);
		for (int i = 0; i < o.n_metrics; i++) {
			o.metrics[i] = (struct metric){.is_average = true, .target = (1 + prop_up_to(&r, 40)) / 4.0};
			if (activation[i] > o.max * o.metrics[i].target) // else the output has a note
				activation[i] = (int32_t)(o.max * o.metrics[i].target);
		}
		bool has_formula = o.n_metrics > 1 && prop_chance(&r, 30);
		if (has_formula)
			buf_printf(&v.object,
			           ", scalingModifiers: {formula: m0 + m1, target: \"%.2f\", activationTarget: "
			           "\"%d\"}",
			           o.metrics[0].target, activation[0]);
		buf_puts(&v.object, "}\n  triggers:\n");
		for (int i = 0; i < o.n_metrics; i++)
			buf_printf(&v.object,
			           "  - {type: prometheus, name: m%d, metadata: {serverAddress: http://p, query: q, "
			           "threshold: \"%.2f\", activationThreshold: \"%d\"}}\n",
			           i, o.metrics[i].target, activation[i]);
		convert(&v, 1);
		hpa_begin(&h, 1, START_S);
		int64_t active_s = START_S;
		int wrong = 0;
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++) {
			bool is_active = false;
			for (int k = 0; k < o.n_metrics; k++) {
				struct metric *m = &o.metrics[k];
				if (i % 24 == 0)
					m->value = prop_chance(&r, 60) ? prop_up_to(&r, activation[k])
					                               : prop_up_to(&r, 100);
				is_active |= m->value > activation[k];
				engine_show(&v.engine, (size_t)k, m->value);
			}
			struct original seen = o;
			if (has_formula) {
				seen.n_metrics = 1;
				seen.metrics[0].value = o.metrics[0].value + o.metrics[1].value;
				is_active = seen.metrics[0].value > activation[0];
			}
			engine_tick(&v.engine);
			int32_t before = h.current,
			        n = keda_poll(&h, &seen, is_active, cooldown_s, v.engine.now_ms / 1000, &active_s);
			woken += before == 0 && n > 0;
			idle += before > 0 && n == 0;
			// KEDA counts from the last active poll, a policy from the first quiet tick; from zero, KEDA
			// goes to one first, and its HPA from there.
			wrong = v.engine.decision.desired == n ? 0 : wrong + 1;
			if (wrong > 2)
				differs("scaled_object_is_idle_as_before", i, &v, n);
			engine_apply(&v.engine);
			v.engine.now_ms += TICK_S * 1000;
		}
		end(&v);
	}
	assert_true(woken > 0 && idle > 0);
}

// ---- KEDA: modifiers/formula.go, fallback.go ----

// The values of two triggers; nil: one that has failed for long.
struct given {
	double a, b;
	bool a_nil, b_nil;
};

static double both(const struct given *g)
{
	return g->a + g->b;
}
static double larger(const struct given *g)
{
	return fmax(g->a, g->b * 2);
}
static double smallest(const struct given *g)
{
	return fmin(fmin(g->a, g->b), 40);
}
static double chosen(const struct given *g)
{
	return g->a > g->b && !(g->b >= 9) ? g->a : g->b / 2 + 1;
}
static double average(const struct given *g)
{
	return (g->a + g->b) / 2;
}
static double counted(const struct given *g)
{
	return ((g->a > 3) + (g->b > 3)) * 4 + (g->a == 0 || g->b == 0);
}
static double apart(const struct given *g)
{
	return fabs(g->a - g->b) + 1;
}
static double rounded(const struct given *g)
{
	return ceil(g->a / 4) + floor(g->b / 4) + round(g->a / 2) + trunc(g->b / 3);
}
static double defaults(const struct given *g)
{
	return (g->a_nil ? 6 : g->a) + (g->b_nil ? 2 : g->b);
}
static double first(const struct given *g)
{
	return !g->a_nil ? g->a : !g->b_nil ? g->b : 8;
}
static double missing(const struct given *g)
{
	return (g->a_nil + g->b_nil) * 5 + (g->b_nil ? 1 : g->b);
}

// The last three need fallback.behavior scalingModifiers.
static const struct {
	const char *text;
	double (*value)(const struct given *);
} formulas[] = {
        {"a + b", both},
        {"max(a, b * 2)", larger},
        {"min([a, b, 40])", smallest},
        {"a > b and not (b >= 9) ? a : b / 2 + 1", chosen},
        {"mean([a, b])", average},
        {"count([a, b], {# > 3}) * 4 + (any([a, b], # == 0) ? 1 : 0)", counted},
        {"let x = a - b; abs(x) + 1", apart},
        {"ceil(a / 4) + floor(b / 4) + round(a * 0.5) + int(float(b) / 3)", rounded},
        {"(a ?? 6) + (b ?? 2)", defaults},
        {"a ?? b ?? 8", first},
        {"count([a == nil, b == nil]) * 5 + (b != nil ? b : 1)", missing},
};
#define FORMULAS         ((int)(sizeof formulas / sizeof formulas[0]))
#define FORMULAS_OF_NILS 3

static const char *const behaviors[] = {"static", "currentReplicas", "currentReplicasIfHigher",
                                        "currentReplicasIfLower", "scalingModifiers"};
#define SCALING_MODIFIERS 4

struct modified {
	int formula, behavior; // -1: none
	int32_t threshold, replicas, failures[2];
	bool is_average, zero_when_empty[2];
	double target;
	bool is_lifting;
	int32_t n_good;
};

static int32_t fallback_of(const struct modified *m, int32_t current)
{
	switch (m->behavior) {
	case 1:
		return current;
	case 2:
		return current > m->replicas ? current : m->replicas;
	case 3:
		return current < m->replicas ? current : m->replicas;
	default:
		return m->replicas;
	}
}

// Replaces the metrics of failed triggers, then makes one of both by the formula.
static void modify(struct original *o, struct modified *m, int32_t current)
{
	bool long_failed[2], failing = false, any_long = false;
	for (int i = 0; i < 2; i++) {
		m->failures[i] = o->metrics[i].missing ? m->failures[i] + 1 : 0;
		failing |= o->metrics[i].missing;
		long_failed[i] = m->behavior >= 0 && m->failures[i] > m->threshold;
		any_long |= long_failed[i];
	}
	double fallback = m->behavior >= 0 ? fallback_of(m, current) : 0;
	for (int i = 0; i < 2 && m->formula < 0; i++) {
		if (!long_failed[i])
			continue;
		o->metrics[i].value = o->metrics[i].target * fallback;
		o->metrics[i].missing = false;
	}
	if (m->formula >= 0) {
		const struct given g = {o->metrics[0].value, o->metrics[1].value, long_failed[0], long_failed[1]};
		bool fills = m->behavior == SCALING_MODIFIERS;
		struct metric *c = &o->metrics[0];
		bool awaited = (o->metrics[0].missing && !long_failed[0]) || (o->metrics[1].missing && !long_failed[1]);
		*c = (struct metric){.is_average = m->is_average, .target = m->target};
		c->missing = fills ? awaited : failing && !any_long;
		c->value = any_long && !fills ? m->target * fallback : formulas[m->formula].value(&g);
		o->n_metrics = 1;
	}
	if (any_long && !(m->formula >= 0 && o->metrics[0].missing)) {
		m->is_lifting = true;
		m->n_good = 0;
	} else if (m->is_lifting) {
		m->n_good = failing ? 0 : m->n_good + 1;
		m->is_lifting = m->n_good < (m->threshold > 1 ? m->threshold : 1);
	}
}

static void random_modified(struct prop_random *r, struct original *o, struct modified *m, struct buf *b)
{
	*m = (struct modified){.formula = prop_chance(r, 70) ? prop_up_to(r, FORMULAS - 1) : -1, .behavior = -1};
	bool fills = m->formula >= FORMULAS - FORMULAS_OF_NILS;
	if (fills)
		m->behavior = SCALING_MODIFIERS;
	else if (prop_chance(r, 60))
		m->behavior = prop_up_to(r, SCALING_MODIFIERS - 1);
	m->threshold = prop_up_to(r, 3);
	m->replicas = o->min + prop_up_to(r, o->max - o->min);
	m->is_average = m->behavior >= 0 || prop_chance(r, 60);
	m->target = (1 + prop_up_to(r, 16)) / 4.0;
	if (m->behavior >= 0)
		buf_printf(b, "  fallback: {failureThreshold: %d, replicas: %d, behavior: %s}\n", m->threshold,
		           m->replicas, behaviors[m->behavior]);
	buf_puts(b, "  advanced:\n");
	if (m->formula >= 0)
		buf_printf(b, "    scalingModifiers: {formula: \"%s\", target: \"%.2f\", metricType: %s}\n",
		           formulas[m->formula].text, m->target, m->is_average ? "AverageValue" : "Value");
	buf_puts(b, "    horizontalPodAutoscalerConfig: {behavior: {\n"
	            "      scaleUp: {tolerance: \"0\", policies: [{type: Pods, value: 1000, periodSeconds: 15}]},\n"
	            "      scaleDown: {tolerance: \"0\", stabilizationWindowSeconds: 0}}}\n  triggers:\n");
	for (int i = 0; i < 2; i++) {
		m->zero_when_empty[i] = prop_chance(r, 50);
		o->metrics[i] = (struct metric){.is_average = true, .target = (1 + prop_up_to(r, 40)) / 4.0};
		buf_printf(b,
		           "  - {type: prometheus, name: %s, metadata: {serverAddress: http://p, query: q, threshold: "
		           "\"%.2f\", ignoreNullValues: \"%s\"}}\n",
		           i == 0 ? "a" : "b", o->metrics[i].target, m->zero_when_empty[i] ? "true" : "false");
	}
}

static void formula_and_fallback_decide_as_before(void **state)
{
	(void)state;
	struct prop_random r = {prop_seed() + 74};
	int64_t changes = 0, held = 0;
	for (int64_t done = 0; done < ticks(); done += PROP_TICKS_A_TRACE) {
		struct converted v;
		struct original o;
		struct modified m;
		struct hpa h;
		begin(&v);
		random_bounds(&r, &o);
		o.tolerance = 0; // a fallback is exact
		o.up = (struct direction){.n_rules = 1, .rules = {{false, 1000, 15}}};
		o.down = (struct direction){.n_rules = 1, .rules = {{true, 100, 15}}};
		buf_printf(&v.object,
		           "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: a, namespace: b}\n"
		           "spec:\n  scaleTargetRef: {name: a}\n  minReplicaCount: %d\n  maxReplicaCount: %d\n",
		           o.min, o.max);
		random_modified(&r, &o, &m, &v.object);
		convert(&v, o.min);
		hpa_begin(&h, o.min, START_S);
		int stays[2] = {0, 0};
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++) {
			for (int k = 0; k < 2; k++) { // some ticks with data, then some without
				struct metric *one = &o.metrics[k];
				if (stays[k]-- <= 0) {
					stays[k] = prop_up_to(&r, 8);
					one->missing = prop_chance(&r, 35);
				}
				one->value = one->missing ? 0 : prop_up_to(&r, 60) / 4.0;
				bool empty = one->missing && prop_chance(&r, 40);
				if (!one->missing)
					engine_show(&v.engine, (size_t)k, one->value);
				else
					engine_show_state(&v.engine, (size_t)k, empty ? OBS_EMPTY : OBS_FAILED);
				one->missing &= !(empty && m.zero_when_empty[k]);
			}
			struct original seen = o;
			seen.n_metrics = 2;
			engine_tick(&v.engine);
			modify(&seen, &m, h.current);
			bool no_less = m.is_lifting && m.n_good > 0;
			int32_t before = h.current, n = hpa_sync(&h, &seen, v.engine.now_ms / 1000);
			if (no_less && n < before) // announced by a note
				n = h.current = before;
			if (v.engine.decision.desired != n)
				differs("formula_and_fallback_decide_as_before", i, &v, n);
			changes += n != before;
			held += v.engine.decision.action == ACTION_HOLD;
			engine_apply(&v.engine);
			v.engine.now_ms += TICK_S * 1000;
		}
		end(&v);
	}
	assert_true(changes > 0 && held > 0);
}

// ---- WPA: replica_calculator.go, watermarkpodautoscaler_controller.go ----

struct wpa {
	int32_t current;
	int64_t scaled_s, above_s, below_s; // -1: never, not now
};

static int32_t wpa_one(const struct original *o, int i, int32_t current, int *ret_side)
{
	const struct metric *m = &o->metrics[i];
	double usage = o->is_per_replica ? m->value / current : m->value;
	*ret_side = 0;
	if (m->value <= 0 && !o->tolerates_zero)
		return current;
	if (usage > o->high[i] * (1 + o->tolerance)) {
		double n = ceil(current * usage / o->high[i]);
		*ret_side = 1;
		return n > current ? (int32_t)n : current;
	}
	if (usage < o->low[i] * (1 - o->tolerance)) {
		double n = fmax(1, floor(current * usage / o->low[i]));
		*ret_side = -1;
		return n < current ? (int32_t)n : current;
	}
	return current;
}

static int32_t wpa_reconcile(struct wpa *w, const struct original *o, int64_t now_s)
{
	int32_t n = 0, step;
	int above = 0, below = 0, side;
	for (int i = 0; i < o->n_metrics; i++) {
		int32_t one = wpa_one(o, i, w->current, &side);
		n = i == 0 || one > n ? one : n;
		above |= side > 0;
		below |= side < 0;
	}
	w->above_s = !above ? -1 : w->above_s < 0 ? now_s : w->above_s;
	w->below_s = !below ? -1 : w->below_s < 0 ? now_s : w->below_s;
	step = (int32_t)floor(w->current * o->up_factor / 100);
	int32_t highest = o->up_factor > 0 ? w->current + (step > 1 ? step : 1) : w->current;
	step = (int32_t)floor(w->current * o->down_factor / 100);
	int32_t lowest = o->down_factor > 0 ? w->current - (step > 1 ? step : 1) : w->current;
	n = n > highest ? highest : n < lowest ? lowest : n;
	n = n < o->min ? o->min : n > o->max ? o->max : n;
	if (n == w->current)
		return n;
	int32_t wait_s = n > w->current ? o->up_wait_s : o->down_wait_s;
	if (w->scaled_s >= 0 && now_s < w->scaled_s + wait_s)
		return w->current;
	int64_t since_s = n > w->current ? w->above_s : w->below_s;
	if (now_s - since_s < (n > w->current ? o->up_delay_s : o->down_delay_s))
		return w->current;
	w->scaled_s = now_s;
	return w->current = n;
}

static void random_wpa(struct prop_random *r, struct original *o, struct buf *b)
{
	random_bounds(r, o);
	o->is_per_replica = prop_chance(r, 50);
	o->tolerates_zero = prop_chance(r, 50);
	o->tolerance = prop_chance(r, 40) ? 0.1 : (1 + prop_up_to(r, 30)) / 100.0;
	bool has_factors = prop_chance(r, 60), has_waits = prop_chance(r, 60);
	o->up_factor = has_factors ? prop_up_to(r, 300) / 2.0 : 50;
	o->down_factor = has_factors ? prop_up_to(r, 180) / 2.0 : 20;
	o->up_wait_s = has_waits ? 15 * (1 + prop_up_to(r, 10)) : 60;
	o->down_wait_s = has_waits ? 15 * (1 + prop_up_to(r, 10)) : 300;
	if (o->n_metrics == 1 && o->tolerates_zero && prop_chance(r, 40)) { // else the output has a note
		o->up_delay_s = 15 * prop_up_to(r, 6);
		o->down_delay_s = 15 * prop_up_to(r, 6);
	}
	buf_printf(
	        b,
	        "apiVersion: datadoghq.com/v1alpha1\nkind: WatermarkPodAutoscaler\nmetadata: {name: a, namespace: b}\n"
	        "spec:\n  scaleTargetRef: {kind: Deployment, name: a}\n  minReplicas: %d\n  maxReplicas: %d\n"
	        "  algorithm: %s\n  tolerateZero: %s\n  tolerance: \"%.2f\"\n  upscaleDelayAboveWatermarkSeconds: %d\n"
	        "  downscaleDelayBelowWatermarkSeconds: %d\n  upscaleForbiddenWindowSeconds: %d\n"
	        "  downscaleForbiddenWindowSeconds: %d\n",
	        o->min, o->max, o->is_per_replica ? "average" : "absolute", o->tolerates_zero ? "true" : "false",
	        o->tolerance > 0.0999 && o->tolerance < 0.1001 ? 0 : o->tolerance, o->up_delay_s, o->down_delay_s,
	        has_waits ? o->up_wait_s : 0, has_waits ? o->down_wait_s : 0);
	if (has_factors)
		buf_printf(b, "  scaleUpLimitFactor: \"%.1f\"\n  scaleDownLimitFactor: \"%.1f\"\n", o->up_factor,
		           o->down_factor);
	buf_puts(b, "  metrics:\n");
	for (int i = 0; i < o->n_metrics; i++) {
		bool is_one = prop_chance(r, 30);
		o->high[i] = (2 + prop_up_to(r, 80)) / 4.0;
		o->low[i] = is_one ? o->high[i] : o->high[i] - (1 + prop_up_to(r, (int32_t)(o->high[i] * 4) - 1)) / 4.0;
		o->metrics[i] = (struct metric){.is_average = o->is_per_replica, .target = o->high[i]};
		buf_printf(b, "  - {type: External, external: {metricName: m%d, highWatermark: \"%.2f\"", i,
		           o->high[i]);
		if (!is_one)
			buf_printf(b, ", lowWatermark: \"%.2f\"", o->low[i]);
		buf_puts(b, ", metricSelector: {matchLabels: {app: a}}}}\n");
	}
}

static void watermark_pod_autoscaler_decides_as_before(void **state)
{
	(void)state;
	struct prop_random r = {prop_seed() + 72};
	int64_t changes = 0;
	for (int64_t done = 0; done < ticks(); done += PROP_TICKS_A_TRACE) {
		struct converted v;
		struct original o;
		begin(&v);
		random_wpa(&r, &o, &v.object);
		struct wpa w = {
		        .current = o.min + prop_up_to(&r, o.max - o.min), .scaled_s = -1, .above_s = -1, .below_s = -1};
		convert(&v, w.current);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++) {
			show_values(&r, &o, &v.engine, o.n_metrics, w.current, 0);
			engine_tick(&v.engine);
			int32_t before = w.current, n = wpa_reconcile(&w, &o, v.engine.now_ms / 1000);
			if (v.engine.decision.desired != n)
				differs("watermark_pod_autoscaler_decides_as_before", i, &v, n);
			changes += n != before;
			engine_apply(&v.engine);
			v.engine.now_ms += TICK_S * 1000;
		}
		end(&v);
	}
	assert_true(changes > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(hpa_decides_as_before),
	        cmocka_unit_test(scaled_object_decides_as_before),
	        cmocka_unit_test(scaled_object_is_idle_as_before),
	        cmocka_unit_test(formula_and_fallback_decide_as_before),
	        cmocka_unit_test(watermark_pod_autoscaler_decides_as_before),
	};
	prop_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
