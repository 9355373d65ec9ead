// SPDX-License-Identifier: Apache-2.0
#include "test/sim/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GRAIN_S 1.0 // of the queue

int world_init(struct world *w, const struct trace *trace, double startup_s, int32_t replicas)
{
	memset(w, 0, sizeof *w);
	w->trace = trace;
	w->startup_s = startup_s;
	w->ready = replicas;
	w->arrived_by = calloc(trace->n, sizeof *w->arrived_by);
	return w->arrived_by ? 0 : -1;
}

void world_done(struct world *w)
{
	free(w->arrived_by);
	w->arrived_by = NULL;
}

int32_t world_replicas(const struct world *w)
{
	return w->ready + (int32_t)w->n_starting;
}

void world_scale(struct world *w, int32_t replicas)
{
	int32_t change = replicas - world_replicas(w);
	if (change == 0)
		return;
	w->scales++;
	if (w->direction && (change > 0) != (w->direction > 0))
		w->reversals++;
	w->direction = change;
	for (; change > 0 && w->n_starting < WORLD_STARTING_MAX; change--)
		w->starting[w->n_starting++] = w->now_s + w->startup_s;
	for (; change < 0 && w->n_starting > 0; change++)
		w->n_starting--;
	if (change < 0)
		w->ready += change;
}

static void become_ready(struct world *w)
{
	size_t n = 0;
	while (n < w->n_starting && w->starting[n] <= w->now_s)
		n++;
	w->ready += (int32_t)n;
	w->n_starting -= n;
	memmove(w->starting, w->starting + n, w->n_starting * sizeof *w->starting);
}

// Counts the requests whose service began by now. Those of a bin arrive evenly over it, and the share of its work that
// was served is the share of them that has been.
static void count_served(struct world *w, double before)
{
	while (w->oldest < w->bin) {
		const struct trace_bin *b = &w->trace->bins[w->oldest];
		double end = w->arrived_by[w->oldest], begin = end - b->work;
		double from = fmax(begin, before), to = fmin(end, w->served);
		if (b->work > 0 && to > from) {
			double middle = ((from + to) / 2 - begin) / b->work;
			double arrived_s = ((double)w->oldest + middle) * w->trace->bin_s;
			double weight = b->requests * (to - from) / b->work;
			w->requests += weight;
			if (w->now_s - GRAIN_S / 2 - arrived_s > WORLD_LATE_S)
				w->late += weight;
		}
		if (w->served < end)
			return;
		w->oldest++;
	}
}

bool world_step(struct world *w, double step_s, struct world_view *ret_view)
{
	double bin_s = w->trace->bin_s, demand = 0, done = 0, room = 0, end_s = w->now_s + step_s;
	while (w->now_s < end_s && w->bin < w->trace->n) {
		const struct trace_bin *b = &w->trace->bins[w->bin];
		double so_far = w->arrived;
		w->arrived_by[w->bin++] = so_far + b->work;
		for (double at = 0; at < bin_s;) {
			double dt = fmin(GRAIN_S, bin_s - at);
			at += dt;
			w->arrived = at >= bin_s ? so_far + b->work : so_far + b->work * at / bin_s;
			w->replica_s += (double)world_replicas(w) * dt;
			w->now_s += dt;
			become_ready(w);
			double before = w->served, can = (double)w->ready * dt;
			w->served = fmin(w->arrived, w->served + can);
			done += w->served - before;
			room += can;
			count_served(w, before);
		}
		demand += b->work;
	}
	ret_view->demand = demand / step_s;
	ret_view->backlog = w->arrived - w->served;
	ret_view->utilization = room > 0 ? done / room : 0;
	return w->bin < w->trace->n;
}

void world_finish(struct world *w)
{
	double rate = fmax(1, (double)w->ready);
	for (size_t n = 0; n < TRACE_BINS_MAX && w->served < w->arrived; n++) {
		double before = w->served;
		w->served = fmin(w->arrived, w->served + rate * GRAIN_S);
		w->now_s += GRAIN_S;
		count_served(w, before);
	}
}
