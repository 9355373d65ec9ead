// SPDX-License-Identifier: Apache-2.0
#include "replay/closed_loop.h"

#include <math.h>

#include "replay/demand.h"
#include "replay/score.h"

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

void closed_loop_play_init(struct closed_loop_play *p, const struct closed_loop *loop)
{
	*p = (struct closed_loop_play){.loop = loop};
	world_init(&p->world, loop->world, loop->first);
}

void closed_loop_play_done(struct closed_loop_play *p)
{
	world_done(&p->world);
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
	struct closed_loop_play p;
	closed_loop_play_init(&p, loop);
	int rc = closed_loop_play(&p, candidate, loop->demand->n, ret_score);
	closed_loop_play_done(&p);
	return rc;
}
