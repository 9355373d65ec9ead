// SPDX-License-Identifier: Apache-2.0
#include "replay/peers.h"

#include <math.h>
#include <stdio.h>

#include "replay/world.h"

#define SYNC_MS            15000
#define TOLERANCE          0.1
#define HPA_DOWN_WINDOW_MS 300000
#define HPA_UP_PODS        4 // the larger of 4 pods and 100 %, in 15 s
#define HPA_SCRAPE_LAG_S   15
#define UTILIZATION_S      60
#define KEDA_POLL_MS       30000
#define KEDA_POLL_S        30
#define KEDA_DRAIN_S       10  // the queue is to be worked off in this time
#define WPA_LOW            0.6 // low watermark: this part of the high one
#define WPA_UP_MS          60000
#define WPA_DOWN_MS        300000
#define KNATIVE_STABLE_S   60
#define KNATIVE_PANIC_S    6
#define KNATIVE_UP_RATE    1000
#define KNATIVE_PANIC      2.0 // panic at this many times the ready replicas

const struct peer_setting peer_settings[] = {
        // clang-format off
        {PEER_HPA, 0.3}, {PEER_HPA, 0.5}, {PEER_HPA, 0.7},
        {PEER_KEDA, 0.5}, {PEER_KEDA, 0.7}, {PEER_KEDA, 0.9},
        {PEER_WPA, 0.4}, {PEER_WPA, 0.6}, {PEER_WPA, 0.8},
        {PEER_KNATIVE, 0.5}, {PEER_KNATIVE, 0.7},
        // clang-format on
};
const size_t peer_n_settings = sizeof peer_settings / sizeof *peer_settings;

const char *const peer_names[] = {"HPA", "KEDA", "WPA", "Knative", "fixed"};
static const char *const setting_names[] = {"utilization", "demand", "high watermark", "target", "replicas"};
_Static_assert(sizeof peer_names / sizeof *peer_names == PEER__COUNT, "one name per kind");
_Static_assert(sizeof setting_names / sizeof *setting_names == PEER__COUNT, "one setting per kind");

void peer_setting_label(const struct peer_setting *setting, char *out, size_t size)
{
	snprintf(out, size, "%s %s %.1f", peer_names[setting->kind], setting_names[setting->kind], setting->value);
}

void peer_init(struct peer *p, enum peer_kind kind, double value, int32_t min, int32_t max)
{
	*p = (struct peer){
	        .kind = kind, .value = value, .min = min > 1 ? min : 1, .max = max, .scaled_ms = -1, .panic_ms = -1};
}

int64_t peer_interval_ms(const struct peer *p, int64_t step_ms)
{
	int64_t own = p->kind == PEER_KNATIVE ? 2000 : p->kind == PEER_FIXED ? 0 : SYNC_MS;
	return own > step_ms ? own : step_ms;
}

static int32_t within(const struct peer *p, double n)
{
	return n < p->min ? p->min : n > p->max ? p->max : (int32_t)n;
}

// HPA, behavior with its defaults. Its rate limit looks back 15 s, so at one decision every 15 s no earlier scale-up
// counts.
static int32_t hpa_behavior(struct peer *p, int64_t now_ms, int32_t current, double wanted)
{
	wanted = wanted < WORLD_REPLICAS_MAX ? wanted : WORLD_REPLICAS_MAX;
	uint64_t i = p->n_recommendations++ % PEER_RECOMMENDATIONS;
	p->recommendations[i].time_ms = now_ms;
	p->recommendations[i].replicas = (int32_t)wanted;
	if (wanted < current) {
		uint64_t n = p->n_recommendations < PEER_RECOMMENDATIONS ? p->n_recommendations : PEER_RECOMMENDATIONS;
		for (i = 0; i < n; i++)
			if (p->recommendations[i].time_ms > now_ms - HPA_DOWN_WINDOW_MS)
				wanted = fmax(wanted, p->recommendations[i].replicas);
		return within(p, wanted < current ? wanted : current);
	}
	double most = fmax(current + HPA_UP_PODS, 2.0 * current);
	return within(p, wanted < most ? wanted : most);
}

static int32_t hpa_decide(struct peer *p, const struct world *w)
{
	double ratio = world_utilization(w, UTILIZATION_S, HPA_SCRAPE_LAG_S) / p->value;
	int32_t current = world_replicas(w);
	double ready = fmax(1, w->ready);
	return hpa_behavior(p, w->now_ms, current, fabs(ratio - 1) <= TOLERANCE ? current : ceil(ratio * ready));
}

static int32_t keda_decide(struct peer *p, const struct world *w)
{
	if (w->now_ms % KEDA_POLL_MS < w->config->step_ms)
		p->polled = w->backlog / KEDA_DRAIN_S + world_demand(w, KEDA_POLL_S);
	int32_t current = world_replicas(w);
	double ratio = p->polled / (p->value * fmax(1, current));
	return hpa_behavior(p, w->now_ms, current, fabs(ratio - 1) <= TOLERANCE ? current : ceil(p->polled / p->value));
}

static int32_t wpa_decide(struct peer *p, const struct world *w)
{
	double used = world_utilization(w, UTILIZATION_S, 0), high = p->value, low = high * WPA_LOW;
	double ready = fmax(1, w->ready);
	int32_t current = world_replicas(w), half = current / 2, fifth = current / 5;
	double wanted = current;
	if (used > high * (1 + TOLERANCE))
		wanted = fmin(fmax(current, ceil(ready * used / high)), current + fmax(1, half));
	else if (used < low * (1 - TOLERANCE))
		wanted = fmax(fmin(current, fmax(1, floor(ready * used / low))), current - fmax(1, fifth));
	int64_t since_ms = p->scaled_ms < 0 ? INT64_MAX : w->now_ms - p->scaled_ms;
	if ((wanted > current && since_ms < WPA_UP_MS) || (wanted < current && since_ms < WPA_DOWN_MS))
		wanted = current;
	if (wanted != current)
		p->scaled_ms = w->now_ms;
	return within(p, wanted);
}

// Arriving work plus the queue, which is to be worked off within the window, over both windows.
static int32_t knative_decide(struct peer *p, const struct world *w)
{
	double base = fmax(1, w->ready), least = floor(base / 2), most = KNATIVE_UP_RATE * base;
	double stable = world_demand(w, KNATIVE_STABLE_S) + w->backlog / KNATIVE_STABLE_S;
	double panic = ceil((world_demand(w, KNATIVE_PANIC_S) + w->backlog / KNATIVE_PANIC_S) / p->value);
	double wanted = fmin(most, fmax(least, ceil(stable / p->value)));
	if (panic / base >= KNATIVE_PANIC) {
		p->panic_ms = w->now_ms;
	} else if (p->panic_ms >= 0 && w->now_ms - p->panic_ms > KNATIVE_STABLE_S * 1000) {
		p->panic_ms = -1;
		p->panic_most = 0;
	}
	if (p->panic_ms < 0)
		return within(p, wanted);
	wanted = fmax(wanted, fmin(most, fmax(least, panic)));
	p->panic_most = within(p, fmax(wanted, p->panic_most));
	return p->panic_most;
}

int32_t peer_candidate_decide(void *self, const struct world *w, bool has_data)
{
	struct peer *p = self;
	typedef int32_t decide_fn(struct peer *, const struct world *);
	static decide_fn *const rules[PEER__COUNT] = {hpa_decide, keda_decide, wpa_decide, knative_decide};
	if (!has_data)
		return world_replicas(w);
	return p->kind == PEER_FIXED ? (int32_t)p->value : rules[p->kind](p, w);
}
