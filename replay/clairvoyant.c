// SPDX-License-Identifier: Apache-2.0
// V[k](n, b) is the least cost from slot k on, when n replicas were ready in slot k - 1 and b replica-seconds are
// queued. A slot is a few steps of the demand, equally short in a recording of any length: a schedule that is planned
// on longer ones misses the lateness of the bursts inside of them. V is computed back from the end of a window, which
// looks further ahead than the schedule is then played, so that neither memory nor the time per slot grow with the
// recording.
#include "replay/clairvoyant.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "replay/recording.h"
#include "replay/score.h"
#include "replay/world.h"

#define SLOT_MS      15000
#define PARTS        3        // parts of a slot, at most: the queue is followed in these
#define LEVELS_MAX   64       // replica counts
#define BACKLOGS     64       // grid points of the backlog
#define KEY_SHIFT    (23 - 7) // bits of the fraction of a float: the grid points are further apart than 1 in 2^7
#define KEY_OF_ONE   UINT32_C(0x3f800000)
#define KEYS         (40 << 7)
#define TABLES_BYTES (16 * 1024 * 1024) // memory for one window
#define LATE_ALIKE   0.001              // share of the requests: schedules that differ by less are late alike
#define AHEAD_SLOTS  240                // that a window looks ahead, at least: an hour
#define AHEAD_STARTS 8                  // and this many start-up times, up to
#define AHEAD_PARTS  4                  // this many times its length
#define NEAR_SLOTS   16                 // at least: replicas that nothing needs so near are not considered
// Prices of a late replica-second, in replica-seconds:
#define PRICE_FIRST 2
#define PRICE_UP    4
#define PRICE_DOWN  2
#define PRICE_NEAR  1.03 // the search ends when prices that miss and keep the objective are so close
#define PRICE_MIN   0.1
#define PRICE_MAX   1e6
#define GAIN_MIN    0.002 // or when no other price can save more than this share

struct slot {
	float work[PARTS], weight[PARTS]; // arriving
	float known_s[PARTS];             // time with data; in a gap, nothing is served and nothing costs
	int32_t need;                     // largest count of replicas that is worth considering
	size_t top;                       // its level in the window
};

typedef double table[LEVELS_MAX][BACKLOGS];

struct program {
	const struct closed_loop *loop;
	struct slot *slots;
	size_t n_slots, steps_per_slot, n_parts;
	bool part_is_step;
	double startup_s, price; // price of a late request; infinite: all replicas all the time
	int32_t min, max;
	// Data of the window:
	int32_t levels[LEVELS_MAX];
	size_t n_levels;
	double backlogs[BACKLOGS], per_gap[BACKLOGS]; // grid, and 1 / distance to the next point
	uint8_t points[KEYS];                         // by key: the point below it
	double *tables;                               // V of its slots but the first, n_levels rows each; TABLES_BYTES
	size_t first;
	size_t window, ahead;        // slots: of each window, and beyond it
	table ahead_of_it[2], grown; // V of the slots after the window, in turn
};

// ---- the slots ----

// Replica-seconds of real replicas; NaN: no data.
static double work_at(const struct program *p, size_t i)
{
	return p->loop->demand->work[i] / world_capacity_ratio(p->loop->world);
}

// The count that keeps a queue of late_s away: that of the mean of a slot, and of a burst within one.
static double need_of(const struct program *p, size_t i)
{
	const struct demand *d = p->loop->demand;
	double step_s = (double)d->step_ms / 1000, work = 0, need = 0;
	size_t n = (size_t)(SLOT_MS / d->step_ms);
	for (size_t k = 0; k < n && k <= i; k++) {
		work += isnan(d->work[i - k]) ? 0 : work_at(p, i - k);
		need = fmax(need, work / (step_s * (double)(k + 1) + p->loop->late_s));
	}
	return ceil(fmax(need, work * 1000 / SLOT_MS)) + 1;
}

static int32_t clamp(const struct program *p, double n)
{
	return n < p->min ? p->min : n > p->max ? p->max : (int32_t)n;
}

static bool may_grow(const struct program *p, size_t k)
{
	return (double)k * SLOT_MS / 1000 >= p->startup_s;
}

// Sets need of each slot: what it needs itself, and all that is of use while even these leave a queue.
static void set_needs(struct program *p)
{
	const struct demand *d = p->loop->demand;
	double queue = 0;
	int32_t top = p->min;
	for (size_t i = 0; i < d->n; i++) {
		struct slot *s = &p->slots[i / p->steps_per_slot];
		int32_t need = clamp(p, need_of(p, i));
		s->need = need > s->need ? need : s->need;
		top = need > top ? need : top;
	}
	for (size_t k = 0; k < p->n_slots; k++) {
		struct slot *s = &p->slots[k];
		for (size_t i = 0; i < p->n_parts; i++) {
			queue += (double)s->work[i] - (may_grow(p, k) ? top : p->loop->first) * (double)s->known_s[i];
			queue = queue > 0 ? queue : 0;
			s->need = queue > 0 ? top : s->need;
		}
	}
}

static int32_t highest_need(const struct program *p, size_t first, size_t end)
{
	int32_t need = p->min;
	for (size_t k = first; k < end && k < p->n_slots; k++)
		need = p->slots[k].need > need ? p->slots[k].need : need;
	return need;
}

// Replicas that wait for a need are cheaper than new ones for a start-up time at most, so that only near needs count.
static void spread_needs(struct program *p)
{
	size_t slots = (size_t)((p->startup_s + p->loop->late_s) * 1000 / SLOT_MS) + 1;
	size_t near = slots > NEAR_SLOTS ? slots : NEAR_SLOTS;
	int32_t before = p->min, own = highest_need(p, 0, near);
	for (size_t k = 0; k < p->n_slots; k += near) {
		int32_t after = highest_need(p, k + near, k + 2 * near), most = before > own ? before : own;
		for (size_t i = k; i < k + near && i < p->n_slots; i++)
			p->slots[i].need = after > most ? after : most;
		before = own;
		own = after;
	}
}

static int set_slots(struct program *p)
{
	const struct demand *d = p->loop->demand;
	size_t per_slot = (size_t)(SLOT_MS / d->step_ms);
	p->steps_per_slot = per_slot;
	p->n_slots = (d->n + per_slot - 1) / per_slot;
	p->n_parts = per_slot < PARTS ? per_slot : PARTS;
	p->part_is_step = p->n_parts == per_slot;
	p->slots = calloc(p->n_slots, sizeof *p->slots);
	if (!p->slots)
		return -1;
	for (size_t i = 0; i < d->n; i++) {
		struct slot *s = &p->slots[i / per_slot];
		size_t part = (i % per_slot) * p->n_parts / per_slot;
		if (isnan(d->work[i]))
			continue;
		s->work[part] += (float)work_at(p, i);
		s->weight[part] += (float)demand_weight(d, i);
		s->known_s[part] += (float)d->step_ms / 1000;
	}
	set_needs(p);
	spread_needs(p);
	return 0;
}

// ---- a window ----

// Replica counts from min to top: every one if they are few, else further and further apart.
static void set_levels(struct program *p, int32_t top)
{
	p->n_levels = 0;
	if (top - p->min < LEVELS_MAX) {
		for (int32_t n = p->min; n <= top; n++)
			p->levels[p->n_levels++] = n;
		return;
	}
	double grow = pow((double)top / (p->min > 1 ? p->min : 1), 1.0 / (LEVELS_MAX - 1)), level = p->min;
	for (int i = 0; i < LEVELS_MAX - 1; i++) {
		p->levels[p->n_levels++] = (int32_t)level;
		level = fmax(floor(level) + 1, level * grow);
		if (level >= top)
			break;
	}
	p->levels[p->n_levels++] = top;
}

// A number that grows with the backlog, and far more often than the grid has points: the float's exponent and the start
// of its fraction.
static inline uint32_t key_of(const struct program *p, double backlog)
{
	float f = (float)(backlog * p->per_gap[0]) + 1;
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	uint32_t key = (bits - KEY_OF_ONE) >> KEY_SHIFT;
	return key < KEYS - 1 ? key : KEYS - 1;
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
	for (uint32_t key = 0, i = 0; key < KEYS; key++) {
		while (i + 2 < BACKLOGS && key_of(p, p->backlogs[i + 1]) < key)
			i++;
		p->points[key] = (uint8_t)i;
	}
}

// Share above the limit of a straight line from a to b, at least one of which is above it.
static double share_above(double a, double b, double limit)
{
	double high = a > b ? a : b, low = a > b ? b : a;
	return low >= limit ? 1 : (high - limit) / (high - low);
}

// The queue through one slot: returns its cost, and the backlog at its end.
static double stage(const struct program *p, const struct slot *s, int32_t replicas, double backlog,
                    double *ret_backlog)
{
	double most = replicas * p->loop->late_s, late = 0, known_s = 0;
	for (size_t i = 0; i < p->n_parts; i++) {
		double before = backlog;
		known_s += (double)s->known_s[i];
		backlog += (double)s->work[i] - replicas * (double)s->known_s[i];
		backlog = backlog > 0 ? backlog : 0;
		if (p->part_is_step)
			late += backlog > most ? (double)s->weight[i] : 0;
		else if (before > most || backlog > most)
			late += (double)s->weight[i] * share_above(before, backlog, most);
	}
	*ret_backlog = backlog;
	return replicas * known_s + p->price * late;
}

// V between the grid points.
static inline double value_at(const struct program *p, const double row[BACKLOGS], double backlog)
{
	size_t j = p->points[key_of(p, backlog)];
	j += backlog >= p->backlogs[j + 1];
	j = j < BACKLOGS - 2 ? j : BACKLOGS - 2;
	double part = (backlog - p->backlogs[j]) * p->per_gap[j];
	return row[j] + (row[j + 1] - row[j]) * (part < 1 ? part : 1);
}

// The same for every backlog of the grid at once, where a part is one step: from b, the backlog after a few parts is b
// and what they change in sum, or what it is from 0 if that is more. Adds V of `next`.
static void stage_steps(const struct program *p, const struct slot *s, int32_t replicas, const double next[BACKLOGS],
                        double ret[BACKLOGS])
{
	double most = replicas * p->loop->late_s, sum = 0, from_0 = 0;
	double limit[PARTS] = {0}, late[PARTS] = {0}, cost = 0;
	for (size_t i = 0; i < p->n_parts; i++) {
		double served = replicas * (double)s->known_s[i];
		cost += served;
		sum += (double)s->work[i] - served;
		from_0 += (double)s->work[i] - served;
		from_0 = from_0 > 0 ? from_0 : 0;
		limit[i] = most - sum;
		late[i] = from_0 > most ? 0 : p->price * (double)s->weight[i];
		cost += from_0 > most ? p->price * (double)s->weight[i] : 0;
	}
	for (size_t b = 0; b < BACKLOGS; b++) {
		double sure = cost;
		for (size_t i = 0; i < PARTS; i++)
			sure += p->backlogs[b] > limit[i] ? late[i] : 0;
		ret[b] = sure;
	}
	size_t b = 0;
	for (double v = value_at(p, next, from_0); b < BACKLOGS && p->backlogs[b] + sum <= from_0; b++)
		ret[b] += v;
	for (; b < BACKLOGS; b++)
		ret[b] += value_at(p, next, p->backlogs[b] + sum);
}

// V of slot k; of the slots of the window but its first one.
static double (*table_of(const struct program *p, size_t k))[BACKLOGS]
{
	return (double(*)[BACKLOGS])(p->tables + (k - p->first - 1) * p->n_levels * BACKLOGS);
}

// More replicas than the highest level of a slot can be removed there at no cost.
static const double *row_of(const struct program *p, size_t k, const double (*v)[BACKLOGS], size_t level)
{
	size_t top = k < p->n_slots ? p->slots[k].top : p->n_levels - 1;
	return v[level < top ? level : top];
}

// Fewer replicas cost no more; each further one costs its start-up time.
static void step_back_replicas(struct program *p, size_t k, double (*v)[BACKLOGS])
{
	size_t n = p->slots[k].top + 1;
	double least[BACKLOGS];
	bool grows = may_grow(p, k);
	for (size_t b = 0; b < BACKLOGS; b++)
		least[b] = DBL_MAX;
	for (size_t l = n; grows && l-- > 0;) {
		double started = p->startup_s * p->levels[l];
		for (size_t b = 0; b < BACKLOGS; b++) {
			double ordered = v[l][b] + started;
			p->grown[l][b] = least[b] - started;
			least[b] = ordered < least[b] ? ordered : least[b];
		}
	}
	for (size_t b = 0; b < BACKLOGS; b++)
		least[b] = DBL_MAX;
	for (size_t l = 0; l < n; l++)
		for (size_t b = 0; b < BACKLOGS; b++) {
			least[b] = v[l][b] < least[b] ? v[l][b] : least[b];
			v[l][b] = grows && p->grown[l][b] < least[b] ? p->grown[l][b] : least[b];
		}
}

// One slot back: `next` is V of slot k + 1.
static void step_back(struct program *p, size_t k, const double (*next)[BACKLOGS], double (*ret)[BACKLOGS])
{
	for (size_t l = 0; l <= p->slots[k].top; l++) {
		const double *row = row_of(p, k + 1, next, l);
		if (p->part_is_step) {
			stage_steps(p, &p->slots[k], p->levels[l], row, ret[l]);
			continue;
		}
		for (size_t b = 0; b < BACKLOGS; b++) {
			double backlog, cost = stage(p, &p->slots[k], p->levels[l], p->backlogs[b], &backlog);
			ret[l][b] = cost + value_at(p, row, backlog);
		}
	}
	step_back_replicas(p, k, ret);
}

// Plans the schedule from slot `first` on: sets the window, and V of its slots.
static void plan_window(struct program *p, size_t first)
{
	size_t end = first + p->window < p->n_slots ? first + p->window : p->n_slots;
	size_t horizon = end + p->ahead < p->n_slots ? end + p->ahead : p->n_slots;
	p->first = first;
	set_levels(p, highest_need(p, first, horizon));
	set_backlogs(p);
	for (size_t k = first; k < horizon; k++) {
		size_t top = p->n_levels - 1;
		while (top > 0 && p->levels[top - 1] >= p->slots[k].need)
			top--;
		p->slots[k].top = top;
	}
	double(*next)[BACKLOGS] = end == horizon ? table_of(p, end) : p->ahead_of_it[0];
	memset(next, 0, p->n_levels * sizeof *next);
	for (size_t k = horizon; k-- > first + 1;) {
		double(*v)[BACKLOGS] = k <= end ? table_of(p, k) : p->ahead_of_it[(horizon - k) % 2];
		step_back(p, k, (const double(*)[BACKLOGS])next, v);
		next = v;
	}
}

static int32_t choose(const struct program *p, size_t k, int32_t replicas, double backlog)
{
	const double(*next)[BACKLOGS] = (const double(*)[BACKLOGS])table_of(p, k + 1);
	int32_t best = p->levels[0];
	double least = DBL_MAX;
	for (size_t l = 0; l <= p->slots[k].top; l++) {
		int32_t n = p->levels[l];
		if (n > replicas && (l > 0 && !may_grow(p, k)))
			break;
		double after, cost = stage(p, &p->slots[k], n, backlog, &after);
		cost += value_at(p, row_of(p, k + 1, next, l), after) +
		        (n > replicas ? p->startup_s * (n - replicas) : 0);
		if (cost < least) {
			least = cost;
			best = n;
		}
	}
	return best;
}

// ---- the whole recording ----

// The schedule that is late least, at any cost: all replicas from the start on.
static int32_t most(const struct program *p, size_t k, int32_t replicas)
{
	return replicas > p->max || may_grow(p, k) ? p->max : replicas;
}

// Plans the schedule and plays it on the queue of the simulator; stops once more than `most_late` is late.
static void play(struct program *p, double most_late, bool report, struct score *ret)
{
	const struct demand *d = p->loop->demand;
	double step_s = (double)d->step_ms / 1000, backlog = 0;
	int32_t replicas = p->loop->first;
	score_init(ret, true);
	for (size_t k = 0; k < p->n_slots && !(ret->late > most_late); k++) {
		if (k % p->window == 0 && isfinite(p->price))
			plan_window(p, k);
		int32_t n = isfinite(p->price) ? choose(p, k, replicas, backlog) : most(p, k, replicas);
		score_add_scale(ret, replicas, n);
		if (n > replicas)
			ret->replica_s += p->startup_s * (n - replicas);
		replicas = n;
		for (size_t i = k * p->steps_per_slot; i < (k + 1) * p->steps_per_slot && i < d->n; i++) {
			double wait = 0;
			if (!isnan(d->work[i])) {
				backlog = fmax(0, backlog + work_at(p, i) - replicas * step_s);
				wait = backlog <= 0 ? 0 : replicas > 0 ? backlog / replicas : INFINITY;
			}
			if (report)
				closed_loop_report(p->loop, i, replicas, -1, wait,
				                   wait > p->loop->late_s ? demand_weight(d, i) : 0);
			if (isnan(d->work[i]))
				continue;
			score_add_step(ret, d->step_ms, replicas, replicas >= p->loop->max);
			score_add_requests(ret, demand_weight(d, i), wait, p->loop->late_s);
		}
	}
}

struct search {
	double late_ratio, weight, unit; // weight: of all requests; unit: replica-seconds of one
	double low, high;                // prices that miss and keep the objective; 0: none yet
	double best;
	bool reached, is_enough;
	struct score *ret, *scratch;
};

// Whether `s` is better than `than`. Where neither keeps the objective, the last late requests cost many times what the
// others do: a schedule that is less late by hardly anything is not better when it costs twice as much.
static bool is_worth_it(const struct score *s, const struct score *than, double late_percent)
{
	bool misses = !score_keeps(s, late_percent) && !score_keeps(than, late_percent);
	bool alike = than->late - s->late <= LATE_ALIKE * than->requests;
	return score_is_better(s, than, late_percent) && !(misses && alike && s->replica_s > 2 * than->replica_s);
}

static void try_price(struct program *p, struct search *s, double price)
{
	double most_late = s->late_ratio * s->weight;
	p->price = price * s->unit;
	play(p, most_late, false, s->scratch);
	if (!score_keeps(s->scratch, 100 * s->late_ratio)) {
		s->low = price;
		return;
	}
	s->high = price;
	if (!s->reached || s->scratch->replica_s < s->ret->replica_s) {
		*s->ret = *s->scratch;
		s->best = price;
	}
	s->reached = true;
	// The cost of the schedule beyond the dual bound, which is all that another price could save.
	s->is_enough = p->price * (most_late - s->scratch->late) < GAIN_MIN * s->scratch->replica_s;
}

// Searches the lowest price of a late request that keeps the objective: work that is served costs a replica-second per
// second, so that little is late above a price of a few.
static void search_price(struct program *p, struct search *s)
{
	for (double price = PRICE_FIRST; s->high <= 0 && price < PRICE_MAX; price *= PRICE_UP)
		try_price(p, s, price);
	while (s->low <= 0 && !s->is_enough && s->high > PRICE_MIN)
		try_price(p, s, s->high / PRICE_DOWN);
	while (s->high > 0 && !s->is_enough && s->high > PRICE_NEAR * s->low)
		try_price(p, s, sqrt(s->high * s->low));
	p->price = (s->reached ? s->best : PRICE_MAX) * s->unit;
	if (s->reached)
		return;
	play(p, INFINITY, false, s->ret);
	p->price = INFINITY;
	play(p, INFINITY, false, s->scratch);
	if (is_worth_it(s->scratch, s->ret, 100 * s->late_ratio))
		*s->ret = *s->scratch;
	else
		p->price = PRICE_MAX * s->unit;
}

static int prepare(struct program *p)
{
	const struct world_config *w = p->loop->world;
	for (size_t i = 0; i < w->n_startups; i++)
		p->startup_s += w->startups_s[i] / (double)w->n_startups;
	p->max = w->capacity > 0 && w->capacity < p->max ? w->capacity : p->max;
	p->min = p->min < p->max ? p->min : p->max;
	p->tables = malloc(TABLES_BYTES);
	if (!p->tables || set_slots(p) < 0)
		return -1;
	set_levels(p, highest_need(p, 0, p->n_slots));
	size_t starts = (size_t)(p->startup_s * 1000 / SLOT_MS) * AHEAD_STARTS;
	p->window = TABLES_BYTES / (p->n_levels * sizeof p->grown[0]);
	p->ahead = starts > AHEAD_SLOTS ? starts : AHEAD_SLOTS;
	p->ahead = p->ahead < AHEAD_PARTS * p->window ? p->ahead : AHEAD_PARTS * p->window;
	return 0;
}

static void search(struct program *p, double late_ratio, const struct score *known, struct score *scratch,
                   struct score *ret, bool *ret_is_known)
{
	const struct demand *d = p->loop->demand;
	struct search s = {.late_ratio = late_ratio, .unit = 1, .ret = ret, .scratch = scratch};
	for (size_t i = 0; i < d->n; i++)
		s.weight += isnan(d->work[i]) ? 0 : demand_weight(d, i);
	if (s.weight > 0)
		s.unit = d->total / s.weight;
	search_price(p, &s);
	*ret_is_known = known && is_worth_it(known, ret, 100 * late_ratio);
	if (*ret_is_known)
		*ret = *known;
	else if (p->loop->on_step) // only the schedule that was chosen is reported
		play(p, INFINITY, true, scratch);
}

int clairvoyant_run(const struct closed_loop *loop, int32_t min, int32_t max, double late_ratio,
                    const struct score *known, struct score *ret_score, bool *ret_is_known)
{
	struct program *p = calloc(1, sizeof *p);
	struct score *scratch = malloc(sizeof *scratch);
	int rc = -1;
	if (p && scratch) {
		p->loop = loop;
		p->min = min;
		p->max = max;
		rc = prepare(p);
	}
	if (rc == 0)
		search(p, late_ratio, known, scratch, ret_score, ret_is_known);
	if (p) {
		free(p->slots);
		free(p->tables);
	}
	free(p);
	free(scratch);
	return rc;
}
