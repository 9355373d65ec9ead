// SPDX-License-Identifier: Apache-2.0
// V[k](n, b) is the least cost from slot k on, when n replicas were ready in slot k - 1 and b replica-seconds are
// queued. A slot is a few steps of the demand. V is kept at every CHECKPOINT-th slot on the way back, and computed
// again from there on the way forward, so that memory does not grow with the recording.
#include "replay/clairvoyant.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/closed_loop.h"
#include "replay/demand.h"
#include "replay/score.h"
#include "replay/world.h"

#define SLOT_MS     15000 // shortest slot
#define PARTS       3     // of a slot: the queue is followed in these
#define LEVELS_MAX  64    // replica counts
#define BACKLOGS    64    // grid points of the backlog
#define STATES_MAX  6000000
#define CHECKPOINT  128
#define PRICE_MIN   0.1 // of a late replica-second, in replica-seconds
#define PRICE_MAX   1e6
#define PRICE_STEPS 9 // bisections of its logarithm

struct slot {
	float work[PARTS], weight[PARTS]; // arriving
	float known_s;                    // time with data; a gap costs nothing
};

struct program {
	const struct closed_loop *loop;
	struct slot *slots;
	size_t n_slots, steps_per_slot;
	double part_s, startup_s, price;
	int32_t levels[LEVELS_MAX];
	size_t n_levels;
	double backlogs[BACKLOGS], per_gap[BACKLOGS]; // grid, and 1 / distance to the next point
	double *checkpoints, *segment;                // tables V, one after the other
};

typedef double table[LEVELS_MAX][BACKLOGS];

static double peak_of(const struct demand *d)
{
	size_t n = (size_t)(SLOT_MS / d->step_ms);
	double peak = 0, sum = 0;
	for (size_t i = 0; i < d->n; i++) {
		sum += isnan(d->work[i]) ? 0 : d->work[i];
		if (i >= n)
			sum -= isnan(d->work[i - n]) ? 0 : d->work[i - n];
		peak = sum > peak ? sum : peak;
	}
	return peak * 1000 / SLOT_MS;
}

// Replica counts from min to what the peak needs: every one if they are few, else further and further apart.
static void set_levels(struct program *p, int32_t min, int32_t max)
{
	double need = ceil(peak_of(p->loop->demand)) + 1;
	int32_t top = need < max ? (int32_t)need : max;
	top = top > min ? top : min;
	if (top - min < LEVELS_MAX) {
		for (int32_t n = min; n <= top; n++)
			p->levels[p->n_levels++] = n;
		return;
	}
	double grow = pow((double)top / (min > 1 ? min : 1), 1.0 / (LEVELS_MAX - 1)), level = min;
	for (int i = 0; i < LEVELS_MAX - 1; i++) {
		p->levels[p->n_levels++] = (int32_t)level;
		level = fmax(floor(level) + 1, level * grow);
		if (level >= top)
			break;
	}
	p->levels[p->n_levels++] = top;
}

static void set_backlogs(struct program *p)
{
	double top = 2 * (p->startup_s + p->loop->late_s + 60) * fmax(1, p->levels[p->n_levels - 1]);
	double first = fmax(0.25 * p->loop->late_s, 0.1), grow = pow(top / first, 1.0 / (BACKLOGS - 2));
	p->backlogs[0] = 0;
	for (size_t i = 1; i < BACKLOGS; i++)
		p->backlogs[i] = i == 1 ? first : p->backlogs[i - 1] * grow;
	for (size_t i = 0; i + 1 < BACKLOGS; i++)
		p->per_gap[i] = 1 / (p->backlogs[i + 1] - p->backlogs[i]);
}

static int set_slots(struct program *p)
{
	const struct demand *d = p->loop->demand;
	size_t per_slot = (size_t)(SLOT_MS / d->step_ms), all = p->n_levels * BACKLOGS;
	while ((d->n / per_slot + 1) * all > STATES_MAX)
		per_slot += (size_t)(SLOT_MS / d->step_ms);
	p->steps_per_slot = per_slot;
	p->n_slots = (d->n + per_slot - 1) / per_slot;
	p->part_s = (double)per_slot * (double)d->step_ms / 1000 / PARTS;
	p->slots = calloc(p->n_slots, sizeof *p->slots);
	if (!p->slots)
		return -1;
	for (size_t i = 0; i < d->n; i++) {
		struct slot *s = &p->slots[i / per_slot];
		size_t part = (i % per_slot) * PARTS / per_slot;
		if (isnan(d->work[i]))
			continue;
		s->work[part] += (float)d->work[i];
		s->weight[part] += (float)demand_weight(d, i);
		s->known_s += (float)d->step_ms / 1000;
	}
	return 0;
}

// Of a straight line from a to b, at least one of which is above the limit.
static double share_above(double a, double b, double limit)
{
	double high = a > b ? a : b, low = a > b ? b : a;
	return low >= limit ? 1 : (high - limit) / (high - low);
}

// The queue through one slot: returns its cost, and the backlog at its end.
static double stage(const struct program *p, const struct slot *s, int32_t replicas, double backlog,
                    double *ret_backlog)
{
	double room = replicas * p->part_s, most = replicas * p->loop->late_s, late = 0;
	for (int i = 0; i < PARTS; i++) {
		double before = backlog;
		backlog += (double)s->work[i] - room;
		backlog = backlog > 0 ? backlog : 0;
		if (before > most || backlog > most)
			late += (double)s->weight[i] * share_above(before, backlog, most);
	}
	*ret_backlog = backlog;
	return replicas * (double)s->known_s + p->price * late;
}

// V between the grid points; *j is a grid point at or below that of `backlog`.
static double value_at(const struct program *p, const double row[BACKLOGS], double backlog, size_t *j)
{
	size_t i = *j;
	while (i + 2 < BACKLOGS && p->backlogs[i + 1] <= backlog)
		i++;
	*j = i;
	double part = (backlog - p->backlogs[*j]) * p->per_gap[*j];
	return row[*j] + (row[*j + 1] - row[*j]) * (part < 1 ? part : 1);
}

static bool may_grow(const struct program *p, size_t k)
{
	return (double)k * p->part_s * PARTS >= p->startup_s;
}

// One slot back: `next` is V of slot k + 1.
static void step_back(const struct program *p, size_t k, table next, table ret)
{
	for (size_t l = 0; l < p->n_levels; l++) {
		size_t j = 0;
		for (size_t b = 0; b < BACKLOGS; b++) {
			double backlog, cost = stage(p, &p->slots[k], p->levels[l], p->backlogs[b], &backlog);
			ret[l][b] = cost + value_at(p, next[l], backlog, &j);
		}
	}
	bool grows = may_grow(p, k);
	// Fewer replicas cost no more; each further one costs its start-up time.
	for (size_t b = 0; b < BACKLOGS; b++) {
		double grown[LEVELS_MAX], least = DBL_MAX;
		for (size_t l = p->n_levels; l-- > 0;) {
			double ordered = ret[l][b] + p->startup_s * p->levels[l];
			grown[l] = least - p->startup_s * p->levels[l];
			least = ordered < least ? ordered : least;
		}
		least = DBL_MAX;
		for (size_t l = 0; l < p->n_levels; l++) {
			least = ret[l][b] < least ? ret[l][b] : least;
			ret[l][b] = grows && grown[l] < least ? grown[l] : least;
		}
	}
}

static table *table_of(double *tables, size_t i)
{
	return (table *)(tables + i * LEVELS_MAX * BACKLOGS);
}

// V of the slots CHECKPOINT * i; the one after the last slot is 0.
static void solve_back(const struct program *p)
{
	table tables[2];
	memset(tables, 0, sizeof tables);
	for (size_t k = p->n_slots; k-- > 0;) {
		if ((k + 1) % CHECKPOINT == 0)
			memcpy(table_of(p->checkpoints, (k + 1) / CHECKPOINT), tables[(k + 1) % 2], sizeof(table));
		step_back(p, k, tables[(k + 1) % 2], tables[k % 2]);
	}
}

// V of the slots first + 1 .. first + CHECKPOINT into the segment.
static void solve_segment(const struct program *p, size_t first)
{
	size_t end = first + CHECKPOINT < p->n_slots ? first + CHECKPOINT : p->n_slots;
	table *last = table_of(p->segment, end - first - 1);
	if (end == p->n_slots)
		memset(last, 0, sizeof *last);
	else
		memcpy(last, table_of(p->checkpoints, end / CHECKPOINT), sizeof *last);
	for (size_t k = end - 1; k > first; k--)
		step_back(p, k, *table_of(p->segment, k - first), *table_of(p->segment, k - first - 1));
}

static int32_t choose(const struct program *p, size_t k, int32_t replicas, double backlog, table next)
{
	int32_t best = p->levels[0];
	double least = DBL_MAX;
	for (size_t l = 0; l < p->n_levels; l++) {
		int32_t n = p->levels[l];
		if (n > replicas && (l > 0 && !may_grow(p, k)))
			break;
		double after, cost = stage(p, &p->slots[k], n, backlog, &after);
		size_t j = 0;
		cost += value_at(p, next[l], after, &j) + (n > replicas ? p->startup_s * (n - replicas) : 0);
		if (cost < least) {
			least = cost;
			best = n;
		}
	}
	return best;
}

// Plays the schedule on the queue of the simulator.
static void play(const struct program *p, bool report, struct score *ret)
{
	const struct demand *d = p->loop->demand;
	double step_s = (double)d->step_ms / 1000, backlog = 0;
	int32_t replicas = p->loop->first;
	score_init(ret, true);
	for (size_t k = 0; k < p->n_slots; k++) {
		if (k % CHECKPOINT == 0)
			solve_segment(p, k);
		int32_t n = choose(p, k, replicas, backlog, *table_of(p->segment, k % CHECKPOINT));
		score_add_scale(ret, replicas, n);
		if (n > replicas)
			ret->replica_s += p->startup_s * (n - replicas);
		replicas = n;
		for (size_t i = k * p->steps_per_slot; i < (k + 1) * p->steps_per_slot && i < d->n; i++) {
			double wait = 0;
			if (!isnan(d->work[i])) {
				backlog = fmax(0, backlog + d->work[i] - replicas * step_s);
				wait = backlog <= 0 ? 0 : replicas > 0 ? backlog / replicas : INFINITY;
			}
			if (report)
				closed_loop_report(p->loop, i, replicas, -1, wait);
			if (isnan(d->work[i]))
				continue;
			score_add_step(ret, d->step_ms, replicas, replicas >= p->loop->max);
			score_add_requests(ret, demand_weight(d, i), wait, p->loop->late_s);
		}
	}
}

static void solve(struct program *p, double price, bool report, struct score *ret)
{
	const struct demand *d = p->loop->demand;
	double weight = 0;
	for (size_t i = 0; i < d->n; i++)
		weight += isnan(d->work[i]) ? 0 : demand_weight(d, i);
	p->price = weight > 0 ? price * d->total / weight : price;
	solve_back(p);
	play(p, report, ret);
}

// The lowest price of a late request that keeps the objective.
static void search(struct program *p, double late_ratio, struct score *ret, struct score *scratch, bool *ret_reached)
{
	double low = log(PRICE_MIN), high = log(PRICE_MAX), best = PRICE_MAX;
	solve(p, PRICE_MAX, false, ret);
	*ret_reached = !(score_late_percent(ret) > 100 * late_ratio);
	// The lowest price first: it is enough where waiting saves nothing.
	for (int i = -1; *ret_reached && i < PRICE_STEPS && low < high; i++) {
		double middle = i < 0 ? low : (low + high) / 2;
		solve(p, exp(middle), false, scratch);
		if (score_late_percent(scratch) > 100 * late_ratio) {
			low = middle;
			continue;
		}
		high = middle;
		if (scratch->replica_s < ret->replica_s) {
			*ret = *scratch;
			best = exp(middle);
		}
	}
	if (p->loop->on_step) // only the schedule that was chosen is reported
		solve(p, best, true, scratch);
}

int clairvoyant_run(const struct closed_loop *loop, int32_t min, int32_t max, double late_ratio,
                    struct score *ret_score, bool *ret_reached)
{
	struct program p = {.loop = loop};
	for (size_t i = 0; i < loop->world->n_startups; i++)
		p.startup_s += loop->world->startups_s[i] / (double)loop->world->n_startups;
	if (loop->world->capacity > 0 && loop->world->capacity < max)
		max = loop->world->capacity;
	set_levels(&p, min < max ? min : max, max);
	set_backlogs(&p);
	int rc = set_slots(&p);
	size_t bytes = sizeof(table);
	p.checkpoints = rc == 0 ? malloc((p.n_slots / CHECKPOINT + 1) * bytes) : NULL;
	p.segment = malloc(CHECKPOINT * bytes);
	struct score *scratch = malloc(sizeof *scratch);
	if (p.checkpoints && p.segment && scratch)
		search(&p, late_ratio, ret_score, scratch, ret_reached);
	else
		rc = -1;
	free(scratch);
	free(p.segment);
	free(p.checkpoints);
	free(p.slots);
	return rc;
}
