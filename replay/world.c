// SPDX-License-Identifier: Apache-2.0
#include "replay/world.h"

#include <math.h>

#include "base/base.h"
#include "base/hash.h"
#include "policies/engine/number.h"
#include "replay/recording.h"
#include "replay/score.h"

void world_init(struct world *w, const struct world_config *config, int32_t replicas)
{
	assert(config->n_startups > 0);
	memset(w, 0, sizeof *w);
	w->config = config;
	w->ready = replicas < WORLD_REPLICAS_MAX ? replicas : WORLD_REPLICAS_MAX;
	if (config->capacity > 0 && w->ready > config->capacity) {
		w->unscheduled = w->ready - config->capacity;
		w->ready = config->capacity;
	}
	if (config->engine.model)
		w->engine = engine_new(&config->engine, config->seed, config->step_ms);
	w->next_ready_ms = INT64_MAX;
	w->random = config->seed;
}

void world_done(struct world *w)
{
	free(w->orders);
	engine_free(w->engine);
	w->orders = NULL;
	w->engine = NULL;
}

static void complete_starts(struct world *w)
{
	if (w->now_ms < w->next_ready_ms)
		return;
	size_t kept = 0;
	w->next_ready_ms = INT64_MAX;
	for (size_t i = 0; i < w->n_orders; i++) {
		struct world_order o = w->orders[i];
		if (o.ready_ms <= w->now_ms) {
			w->ready += o.n;
			w->starting -= o.n;
			continue;
		}
		w->orders[kept++] = o;
		if (o.ready_ms < w->next_ready_ms)
			w->next_ready_ms = o.ready_ms;
	}
	w->n_orders = kept;
}

static int step_engine(struct world *w, double work)
{
	if (!w->engine || engine_step(w->engine, w->ready, work, w->score) < 0)
		return -1;
	struct engine_now now = engine_history_now(engine_history(w->engine));
	size_t i = w->n_history++ % WORLD_HISTORY;
	w->backlog = now.backlog;
	w->engine_wait_s = now.wait_s;
	w->utilization[i] = now.utilization;
	w->demand[i] = now.demand;
	w->now_ms += w->config->step_ms;
	return 0;
}

double world_step(struct world *w, double work)
{
	double step_s = (double)w->config->step_ms / 1000;
	complete_starts(w);
	if (w->config->engine.model)
		return step_engine(w, work);
	double room = (double)w->ready * step_s * world_capacity_ratio(w->config);
	w->backlog += work;
	double served = w->backlog < room ? w->backlog : room;
	w->backlog -= served;
	size_t i = w->n_history++ % WORLD_HISTORY;
	w->utilization[i] = room > 0 ? served / room : w->backlog > 0 ? 1 : 0;
	w->demand[i] = work / step_s;
	w->now_ms += w->config->step_ms;
	return served;
}

int world_skip(struct world *w)
{
	complete_starts(w);
	if (w->config->engine.model)
		return step_engine(w, 0);
	w->n_history = 0; // a mean over a gap would join what does not belong together
	w->now_ms += w->config->step_ms;
	return 0;
}

int32_t world_replicas(const struct world *w)
{
	return w->ready + w->starting + w->unscheduled;
}

int32_t world_paid(const struct world *w)
{
	return w->ready + w->starting + (w->engine ? engine_draining(w->engine) : 0);
}

static int add_order(struct world *w, int32_t n, double startup_s)
{
	if (alloc_reserve(&w->orders, w->n_orders, &w->cap_orders, sizeof *w->orders, 64) < 0)
		return -1;
	int64_t ready_ms = w->now_ms + llround(startup_s * 1000);
	w->orders[w->n_orders++] = (struct world_order){ready_ms, n};
	w->starting += n;
	if (ready_ms < w->next_ready_ms)
		w->next_ready_ms = ready_ms;
	return 0;
}

static int start(struct world *w, int32_t n)
{
	const struct world_config *c = w->config;
	if (n <= 0)
		return 0;
	if (c->n_startups == 1)
		return add_order(w, n, c->startups_s[0]);
	for (; n > 0; n--)
		if (add_order(w, 1, c->startups_s[hash_draw(&w->random) % c->n_startups]) < 0)
			return -1;
	return 0;
}

static void remove_starting(struct world *w, int32_t n)
{
	while (n > 0) {
		struct world_order *newest = &w->orders[w->n_orders - 1];
		int32_t part = i32_min(newest->n, n);
		newest->n -= part;
		w->starting -= part;
		n -= part;
		w->n_orders -= newest->n == 0;
	}
}

int world_scale(struct world *w, int32_t replicas)
{
	int32_t change = i32_min(replicas, WORLD_REPLICAS_MAX) - world_replicas(w);
	if (change > 0) {
		int32_t all = w->config->capacity > 0 ? w->config->capacity : WORLD_REPLICAS_MAX;
		int32_t now = i32_min(change, i32_max(all - world_paid(w), 0));
		w->unscheduled += change - now;
		return start(w, now);
	}
	int32_t unscheduled = i32_min(-change, w->unscheduled);
	w->unscheduled -= unscheduled;
	int32_t starting = i32_min(-change - unscheduled, w->starting);
	remove_starting(w, starting);
	w->ready -= -change - unscheduled - starting;
	return 0;
}

static double mean(const struct world *w, const double *ring, int window_s, int lag_s)
{
	uint64_t n = (uint64_t)(window_s * 1000 / w->config->step_ms),
	         lag = (uint64_t)(lag_s * 1000 / w->config->step_ms);
	if (n == 0)
		n = 1;
	assert(n + lag <= WORLD_HISTORY);
	if (w->n_history == 0)
		return 0;
	if (w->n_history <= lag) // too early for the lag: the newest
		return ring[(w->n_history - 1) % WORLD_HISTORY];
	uint64_t end = w->n_history - lag, from = end > n ? end - n : 0;
	double sum = 0;
	for (uint64_t i = from; i < end; i++)
		sum += ring[i % WORLD_HISTORY];
	return sum / (double)(end - from);
}

double world_utilization(const struct world *w, int window_s, int lag_s)
{
	return mean(w, w->utilization, window_s, lag_s);
}

double world_demand(const struct world *w, int window_s)
{
	return mean(w, w->demand, window_s, 0);
}

double world_wait_s(const struct world *w)
{
	if (w->engine)
		return w->engine_wait_s;
	return w->backlog <= 0 ? 0 : w->ready > 0 ? w->backlog / w->ready / world_capacity_ratio(w->config) : INFINITY;
}

// ---- the closed loop ----

void closed_loop_report(const struct closed_loop *loop, size_t i, int32_t replicas, int32_t ready, double wait_s,
                        double late)
{
	const struct demand *d = loop->demand;
	if (!loop->on_step)
		return;
	bool has_data = !isnan(d->work[i]);
	const struct loop_step step = {
	        .time_ms = d->start_ms + (int64_t)i * d->step_ms,
	        .span_ms = d->step_ms,
	        .demand = d->work[i] * 1000 / (double)d->step_ms,
	        .replicas = replicas,
	        .ready = ready,
	        .wait_s = has_data ? wait_s : NAN,
	        .late = has_data ? late : 0,
	};
	loop->on_step(loop->context, &step);
}

int closed_loop_play(struct closed_loop_play *p, const struct candidate *candidate, size_t end, struct score *ret_score)
{
	const struct closed_loop *loop = p->loop;
	const struct demand *d = loop->demand;
	struct world *w = &p->world;
	int rc = 0;
	score_init(ret_score, true);
	ret_score->direction = p->direction;
	w->score = ret_score;
	for (; p->next < end && rc == 0; p->next++) {
		bool has_data = !isnan(d->work[p->next]);
		double late = ret_score->late;
		if (!has_data) {
			rc = world_skip(w);
		} else if (world_step(w, d->work[p->next]) < 0) {
			rc = -1;
		} else {
			score_add_step(ret_score, d->step_ms, world_paid(w), world_replicas(w) >= loop->max);
			if (!w->engine)
				score_add_requests(ret_score, demand_weight(d, p->next), world_wait_s(w), loop->late_s);
		}
		closed_loop_report(loop, p->next, world_paid(w), w->ready, world_wait_s(w), ret_score->late - late);
		if (rc < 0 || w->now_ms % candidate->interval_ms >= d->step_ms)
			continue;
		int32_t replicas = world_replicas(w), wanted = candidate->decide(candidate->self, w, has_data);
		score_add_scale(ret_score, replicas, wanted);
		rc = wanted == replicas ? 0 : world_scale(w, wanted);
	}
	if (rc == 0 && w->engine && p->next == d->n)
		engine_score_waiting(w->engine, ret_score);
	p->direction = ret_score->direction;
	return rc;
}

int closed_loop_run(const struct closed_loop *loop, const struct candidate *candidate, struct score *ret_score)
{
	struct closed_loop_play p = {.loop = loop};
	world_init(&p.world, loop->world, loop->first);
	int rc = closed_loop_play(&p, candidate, loop->demand->n, ret_score);
	world_done(&p.world);
	return rc;
}
