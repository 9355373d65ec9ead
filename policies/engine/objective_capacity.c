// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/objective_capacity.h"

#include <math.h>
#include <stddef.h>

#include "policies/engine/number.h"
#include "policies/engine/objective_load.h"

#define FIRST_S  10.0f   // for which the figure of the queries counts at first
#define MEMORY_S 2700.0f // in which what was observed fades, for as long as there is more than FIRST_S of it
#define GAP_S    300.0f  // a stretch does not span a longer gap
#define QUEUE_S  0.25f   // work per ready replica that must wait, so that none of them is idle
#define QUIET_S  300.0f  // without a queue, before more than the ratio counts: batches take in work that did not wait
// Until work has waited for the first time, a load that is served at nearly the capacity may be far below it. The ratio
// then grows by a hundredth a minute, up to a tenth beyond what was reached.
#define NEVER_S         86400.0f // without a queue: none was seen yet
#define PROBE_BEYOND    1.1f
#define PROBE_RATE      (0.01f / 60)
#define PACE_S          60.0f   // over which the work that is served is smoothed
#define REACHED_S       1800.0f // in which its maximum fades
#define UNSEEN_MOST     2.3f    // a figure may be off by a factor of two; beyond, a backlog must have been seen
#define UNMEASURED_MOST 1.3f    // the same, for a backlog that is 0 where nothing measures it
#define STEADY_S        30.0f   // a replica that has just become ready may still warm up, and the metrics lag
#define SHARE_LEAST     0.25f   // of the replicas, below which a measured busy share is too inexact
#define SANE_S          1e5f    // longer than any of the durations can be
#define CLIP            3.0f    // what one stretch may say, as a multiple of what is known

void objective_capacity_init(struct objective_capacity *c)
{
	*c = (struct objective_capacity){
	        .served_s = FIRST_S, .busy_s = FIRST_S, .quiet_s = NEVER_S, .observed_ms = TIME_NONE};
}

float objective_capacity_ratio(const struct objective_capacity *c)
{
	float ratio = c->busy_s > 0 ? c->served_s / c->busy_s : 1;
	return f32_min(f32_max(ratio, OBJECTIVE_CAPACITY_LEAST), OBJECTIVE_CAPACITY_MOST);
}

static void fade(struct objective_capacity *c, float seconds)
{
	float keep = 1 - seconds / MEMORY_S;
	c->learnt_s *= keep;
	if (c->busy_s * keep < FIRST_S)
		return;
	c->served_s *= keep;
	c->busy_s *= keep;
}

static void learn(struct objective_capacity *c, float served_s, float busy_s)
{
	float expected = objective_capacity_ratio(c) * busy_s;
	fade(c, busy_s);
	c->served_s += f32_min(f32_max(served_s, expected / CLIP), expected * CLIP);
	c->busy_s += busy_s;
	c->learnt_s += busy_s;
}

// Learns from work that did not wait: more than the ratio says is a lower bound, and until work has waited for long,
// the ratio probes. Neither holds for a backlog that has always been 0 where that may mean that nothing measures it, or
// where more was served than a figure can be wrong by.
static void learn_unqueued(struct objective_capacity *c, float served_s, bool may_be_unmeasured)
{
	float ratio = objective_capacity_ratio(c);
	if (c->backlog_seen <= 0 && (may_be_unmeasured || c->backlog_seen < 0)) {
		c->backlog_seen = c->pace > UNMEASURED_MOST * ratio ? -1 : c->backlog_seen;
		return;
	}
	if (c->quiet_s >= QUIET_S && served_s > ratio * c->stretch_s)
		learn(c, served_s, c->stretch_s);
	if (c->quiet_s >= NEVER_S && ratio < PROBE_BEYOND * c->reached)
		c->served_s *= 1 + PROBE_RATE * c->stretch_s;
	if (c->backlog_seen == 0 && ratio >= UNSEEN_MOST) {
		c->served_s = c->busy_s = FIRST_S;
		c->learnt_s = 0;
		c->backlog_seen = -1;
	}
}

// Judges the stretch that ends now.
static void classify(struct objective_capacity *c, bool may_be_unmeasured)
{
	float ready = (float)c->ready, queue = QUEUE_S * ready * objective_capacity_ratio(c);
	float served_s = (c->arrived + c->backlog_first - c->backlog_last) / ready;
	bool queued = c->backlog_first > queue && c->backlog_last > queue;
	if (queued)
		c->quiet_s = 0;
	else if (c->quiet_s < QUIET_S)
		c->quiet_s += c->stretch_s;
	c->pace += f32_min(c->stretch_s / PACE_S, 1) * (served_s / c->stretch_s - c->pace);
	c->reached = f32_max(c->reached * (1 - c->stretch_s / REACHED_S), c->pace);
	if (queued) {
		learn(c, served_s, c->stretch_s);
	} else if (c->share_s >= SHARE_LEAST * c->stretch_s) {
		learn(c, served_s, c->share_s);
	} else {
		fade(c, c->stretch_s);
		learn_unqueued(c, served_s, may_be_unmeasured);
	}
}

static void start_stretch(struct objective_capacity *c, float backlog)
{
	c->stretch_s = c->arrived = c->share_s = 0;
	c->backlog_first = c->backlog_last = backlog;
}

void objective_capacity_observe(struct objective_capacity *c, const struct objective_capacity_input *in, int64_t now_ms)
{
	float seconds = c->observed_ms == TIME_NONE ? 0 : (float)i64_sub(now_ms, c->observed_ms) / 1000;
	bool continues = c->observed_ms != TIME_NONE && seconds >= 0 && seconds < GAP_S && c->ready == in->ready;
	float backlog = (float)in->backlog / in->unthrottled;
	c->observed_ms = now_ms;
	if (in->backlog > 0)
		c->backlog_seen = 1;
	if (!continues || in->ready <= 0) {
		c->steady_s = 0;
		c->ready = in->ready;
		start_stretch(c, backlog);
		return;
	}
	c->steady_s = f32_min(c->steady_s + seconds, STEADY_S);
	c->stretch_s += seconds;
	c->arrived += (float)in->demand / in->unthrottled * seconds;
	c->share_s += f32_max(in->busy_share, 0) * seconds;
	c->backlog_last = backlog;
	if (c->stretch_s < OBJECTIVE_STEP_S)
		return;
	if (c->steady_s >= STEADY_S)
		classify(c, in->may_be_unmeasured);
	start_stretch(c, backlog);
}

void objective_capacity_pause(struct objective_capacity *c)
{
	c->observed_ms = TIME_NONE;
}

bool objective_capacity_doubts_backlog(const struct objective_capacity *c)
{
	return c->backlog_seen < 0;
}

bool objective_capacity_is_sane(const struct objective_capacity *c)
{
	const float durations[] = {c->busy_s, c->learnt_s, c->stretch_s, c->share_s, c->steady_s, c->quiet_s};
	for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++)
		if (!(durations[i] >= 0 && durations[i] <= SANE_S))
			return false;
	// The work of a stretch and its ends are bounded like demand and backlog.
	return c->busy_s >= 1 && c->served_s > 0 && c->served_s <= CLIP * OBJECTIVE_CAPACITY_MOST * c->busy_s &&
	       fabsf(c->pace) <= 1e12f && fabsf(c->reached) <= 1e12f && fabsf(c->arrived) <= 1e12f &&
	       fabsf(c->backlog_first) <= 1e12f && fabsf(c->backlog_last) <= 1e12f;
}
