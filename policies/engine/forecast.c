// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/forecast.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "policies/engine/number.h"
#include "policies/engine/policy.h"

#define GAP_SHARE     20 // a gap of up to a twentieth of the season is bridged
#define ERRORS_WEIGHT 50 // errors older than about this many slots no longer influence the variance
#define DIVERGED      10 // a fit of this many times the load: no load explains that

static int64_t span_ms(const struct policy_forecast *config)
{
	return config->model == FORECAST_LINEAR ? config->window_ms : config->season_ms;
}

uint32_t forecast_slots_needed(const struct policy_forecast *config, int64_t interval_ms)
{
	if (!config->set)
		return 0;
	int64_t max = config->model == FORECAST_LINEAR ? FORECAST_WINDOW_SLOTS_MAX : FORECAST_SEASON_SLOTS_MAX;
	int64_t slots = span_ms(config) / i64_max(interval_ms, 1);
	return (uint32_t)(slots > max ? max : i64_max(slots, FORECAST_SLOTS_MIN));
}

uint32_t forecast_doubles_needed(const struct policy_forecast *config, int64_t interval_ms)
{
	uint32_t n = forecast_slots_needed(config, interval_ms);
	return n > 0 && config->model == FORECAST_HOLT_WINTERS ? 2 * n + 1 : n;
}

int64_t forecast_learning_ms(const struct policy_forecast *config)
{
	int64_t span = span_ms(config);
	return config->model == FORECAST_LINEAR ? span : i64_add(span, span);
}

int64_t forecast_trial_ms(const struct policy_forecast *config)
{
	int64_t span = span_ms(config) < SKILL_DAY_MS ? span_ms(config) : SKILL_DAY_MS;
	return config->model == FORECAST_LINEAR ? span : span / 4;
}

// The values that the schema allows are smaller; larger ones are limited, so that nothing overflows.
#define SPAN_MAX_MS (INT64_C(1) << 40)
#define TIME_MAX_MS (INT64_C(1) << 60)

static int64_t bounded_span_ms(const struct forecast *f, const struct policy_forecast *config)
{
	int64_t span = i64_max(span_ms(config), f->n_slots);
	return span < SPAN_MAX_MS ? span : SPAN_MAX_MS;
}

int64_t forecast_slot_ms(const struct forecast *f, const struct policy_forecast *config)
{
	return i64_max(bounded_span_ms(f, config) / i64_max(f->n_slots, 1), 1);
}

static void restart(struct forecast *f)
{
	*f = (struct forecast){
	        .slots_offset = f->slots_offset, .n_slots = f->n_slots, .index = TIME_NONE, .first = TIME_NONE};
	doubt_init(&f->doubt);
	for (uint32_t i = 0; i < f->n_slots; i++)
		forecast_slots(f)[i] = 0;
}

void forecast_init(struct forecast *f, double *slots, uint32_t n_slots)
{
	f->slots_offset = (uintptr_t)slots - (uintptr_t)f;
	f->n_slots = n_slots;
	restart(f);
}

static int64_t bounded_time_ms(int64_t time_ms)
{
	return time_ms < 0 ? 0 : time_ms < TIME_MAX_MS ? time_ms : TIME_MAX_MS;
}

// Slots are counted from the epoch in n_slots per span, without a rounded length that would drift.
static int64_t slot_at(const struct forecast *f, const struct policy_forecast *config, int64_t time_ms)
{
	int64_t span = bounded_span_ms(f, config);
	time_ms = bounded_time_ms(time_ms);
	return time_ms / span * f->n_slots + time_ms % span * f->n_slots / span;
}

// Returns the position of time_ms among the means of the slots; 3.0 is the position of the mean of slot 3. The samples
// come every interval from the start of a slot on, so that their middle is half an interval before the slot's.
static double place_of(const struct forecast *f, const struct policy_forecast *config, int64_t interval_ms,
                       int64_t time_ms)
{
	int64_t span = bounded_span_ms(f, config);
	time_ms = bounded_time_ms(time_ms);
	double slots_per_ms = (double)f->n_slots / (double)span;
	return (double)(time_ms / span * f->n_slots) + (double)(time_ms % span) * slots_per_ms - 0.5 +
	       (double)interval_ms * slots_per_ms / 2;
}

static double *slot_of(const struct forecast *f, int64_t index)
{
	return &forecast_slots(f)[index % f->n_slots];
}

// ---- Holt-Winters ----

// The means of the last n + 1 slots, after the n slots of the model: the load a season ago is then known for the last
// full slot too.
static double *mean_of(const struct forecast *f, int64_t index)
{
	return &forecast_slots(f)[f->n_slots + index % (f->n_slots + 1)];
}

// After two seasons: level and trend from their means, the season from their average without the trend.
static void initialize(struct forecast *f)
{
	double m = f->n_slots, difference = (f->totals[1] - f->totals[0]) / m;
	double mean = (f->totals[0] + f->totals[1]) / (2 * m);
	f->trend = difference / m;
	f->level = f->totals[1] / m + f->trend * (m - 1) / 2;
	for (uint32_t j = 0; j < f->n_slots; j++) {
		double *s = slot_of(f, f->first + j);
		*s = *s / 2 - mean - f->trend * (j - (m - 1) / 2);
	}
	// Slots of the two seasons differ by the trend and two errors.
	f->variance = fmax(f->squares / m - difference * difference, 0) / 2;
	f->n_errors = f->n_slots;
	f->learnt = 1;
}

static void learn(struct forecast *f, int64_t index, double y)
{
	double *s = slot_of(f, index);
	int64_t age = index - f->first;
	if (age < f->n_slots) {
		*s = y;
		f->totals[0] += y;
		return;
	}
	f->squares += (y - *s) * (y - *s);
	*s += y;
	f->totals[1] += y;
	if (age == 2 * (int64_t)f->n_slots - 1)
		initialize(f);
}

static void smooth(struct forecast *f, const struct policy_forecast *config, int64_t index, double y)
{
	double *s = slot_of(f, index);
	double expected = f->level + f->trend;
	double error = y - expected - *s;
	double level = config->alpha * (y - *s) + (1 - config->alpha) * expected;
	f->trend = config->beta * (level - f->level) + (1 - config->beta) * f->trend;
	*s = config->gamma * (y - expected) + (1 - config->gamma) * *s;
	f->level = level;
	f->n_errors++;
	f->variance +=
	        (error * error - f->variance) / (double)(f->n_errors < ERRORS_WEIGHT ? f->n_errors : ERRORS_WEIGHT);
}

// Some weights, such as a large beta with a large gamma, make every error larger than the one before. The load is the
// largest mean of the last season, or that of the first two, so that days without load do not count.
static bool has_diverged(const struct forecast *f)
{
	const double *slots = forecast_slots(f);
	double largest = fmax(f->totals[0], f->totals[1]) / f->n_slots, farthest = fabs(f->trend);
	for (uint32_t i = 0; i <= f->n_slots; i++)
		if (fabs(slots[f->n_slots + i]) > largest)
			largest = fabs(slots[f->n_slots + i]);
	for (uint32_t i = 0; i < f->n_slots; i++)
		if (fabs(f->level + slots[i]) > farthest)
			farthest = fabs(f->level + slots[i]);
	return farthest > DIVERGED * largest;
}

static void close_season_slot(struct forecast *f, const struct policy_forecast *config, double y)
{
	*mean_of(f, f->index) = y;
	if (f->learnt)
		smooth(f, config, f->index, y);
	else
		learn(f, f->index, y);
	if (!isfinite(f->level + f->trend + f->variance + *slot_of(f, f->index) + f->squares) ||
	    (f->learnt && has_diverged(f)))
		restart(f);
}

// The slots between the last one and `next` have no samples.
static void skip_season_slots(struct forecast *f, const struct policy_forecast *config, int64_t next)
{
	int64_t missing = next - f->index - 1;
	int64_t short_gap = i64_max(f->n_slots / GAP_SHARE, 1);
	if (missing >= 2 * (int64_t)f->n_slots || (missing > short_gap && !f->learnt)) {
		restart(f);
		return;
	}
	for (int64_t i = f->index + 1; i < next && f->learnt; i++)
		*mean_of(f, i) = *mean_of(f, i + 1); // mean of the season before
	if (!f->learnt) {
		for (int64_t i = 0; i < missing && f->index != TIME_NONE; i++) {
			f->index++;
			close_season_slot(f, config, f->last);
		}
	} else if (missing > short_gap) {
		f->trend = 0; // the season is still valid
	} else {
		f->level += f->trend * (double)missing;
	}
}

// The error h slots ahead. Hyndman, Athanasopoulos, section 8.7, table of class 1 models: ETS(A,A,A), whose beta is
// alpha times the beta of the recurrences.
static double season_deviation(const struct forecast *f, const struct policy_forecast *config, double h)
{
	double a = config->alpha, b = config->alpha * config->beta, g = config->gamma, m = f->n_slots;
	h = fmax(h, 1);
	double k = floor((h - 1) / m);
	double growth =
	        1 + (h - 1) * (a * a + a * b * h + b * b * h * (2 * h - 1) / 6) + g * k * (2 * a + g + b * m * (k + 1));
	return sqrt(f->variance * growth);
}

static bool season_at(const struct forecast *f, const struct policy_forecast *config, double place, double *ret_load,
                      double *ret_deviation)
{
	// The last full slot is that before `index`.
	double h = fmax(place - (double)(f->index - 1), 0);
	double whole = floor(place), part = place - whole;
	int64_t at = (int64_t)fmin(fmax(whole, 0), (double)TIME_MAX_MS);
	double season = (1 - part) * *slot_of(f, at) + part * *slot_of(f, at + 1);
	*ret_load = f->level + h * f->trend + season;
	*ret_deviation = season_deviation(f, config, h);
	return isfinite(*ret_load) && isfinite(*ret_deviation);
}

double forecast_season_ago(const struct forecast *f, const struct policy_forecast *config, int64_t interval_ms,
                           int64_t time_ms)
{
	double place = place_of(f, config, interval_ms, time_ms), whole = floor(place), part = place - whole;
	int64_t n = f->n_slots, at = (int64_t)fmin(fmax(whole, 0), (double)TIME_MAX_MS), ago[2];
	for (int i = 0; i < 2; i++)
		ago[i] = i64_max(at + i - n * i64_max((at + i - f->index) / n + 1, 1), 0);
	return (1 - part) * *mean_of(f, ago[0]) + part * *mean_of(f, ago[1]);
}

// ---- Linear ----

static void skip_window_slots(struct forecast *f, int64_t next)
{
	if (next - f->index > f->n_slots) {
		restart(f);
		return;
	}
	for (int64_t i = f->index + 1; i < next; i++)
		*slot_of(f, i) = (double)NAN;
}

static bool line_at(const struct forecast *f, double place, double *ret_load, double *ret_deviation)
{
	double n = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0, rest = 0;
	int64_t last = f->index - 1;
	for (int64_t i = 0; i < f->n_slots; i++) {
		double y = *slot_of(f, last - i), x = (double)-i;
		if (isnan(y))
			continue;
		n++;
		sum_x += x;
		sum_y += y;
		sum_xx += x * x;
		sum_xy += x * y;
	}
	if (n < 3 || n < f->n_slots / 2)
		return false;
	double mean_x = sum_x / n, mean_y = sum_y / n;
	double spread = sum_xx - n * mean_x * mean_x;
	double slope = (sum_xy - n * mean_x * mean_y) / spread;
	for (int64_t i = 0; i < f->n_slots; i++) {
		double y = *slot_of(f, last - i);
		double error = y - mean_y - slope * ((double)-i - mean_x);
		rest += isnan(y) ? 0 : error * error;
	}
	double ahead = place - (double)last - mean_x;
	*ret_load = mean_y + slope * ahead;
	*ret_deviation = sqrt(rest / (n - 2) * (1 + 1 / n + ahead * ahead / spread));
	return isfinite(*ret_load) && isfinite(*ret_deviation);
}

// ---- both ----

void forecast_observe(struct forecast *f, const struct policy_forecast *config, int64_t time_ms, double load)
{
	assert(f->n_slots >= FORECAST_SLOTS_MIN && isfinite(load));
	int64_t index = slot_at(f, config, time_ms);
	if (f->index != TIME_NONE && index > f->index) {
		f->last = f->sum / (double)f->n_samples;
		f->n_samples = 0;
		f->sum = 0;
		if (config->model == FORECAST_LINEAR)
			*slot_of(f, f->index) = f->last;
		else
			close_season_slot(f, config, f->last);
		if (f->index != TIME_NONE && index > f->index + 1) {
			if (config->model == FORECAST_LINEAR)
				skip_window_slots(f, index);
			else
				skip_season_slots(f, config, index);
		}
	}
	if (f->index == TIME_NONE)
		f->first = index;
	f->index = i64_max(f->index, index);
	f->sum += load;
	f->n_samples++;
	if (!isfinite(f->sum))
		restart(f);
}

void forecast_repeat(struct forecast *f, const struct policy_forecast *config, int64_t time_ms)
{
	if (f->index != TIME_NONE)
		forecast_observe(f, config, time_ms, f->sum / (double)f->n_samples);
}

bool forecast_at(const struct forecast *f, const struct policy_forecast *config, int64_t interval_ms, int64_t time_ms,
                 double *ret_load, double *ret_deviation, int64_t *ret_left_ms)
{
	double place = place_of(f, config, interval_ms, time_ms);
	int64_t needed = (config->model == FORECAST_LINEAR ? 1 : 2) * (int64_t)f->n_slots;
	int64_t seen = f->index == TIME_NONE ? 0 : f->index - f->first;
	*ret_left_ms = i64_max(needed - seen, 0) * forecast_slot_ms(f, config);
	if (config->model == FORECAST_LINEAR)
		return seen >= needed && line_at(f, place, ret_load, ret_deviation);
	return f->learnt && season_at(f, config, place, ret_load, ret_deviation);
}

static void reverse(double *slots, int64_t from, int64_t to)
{
	for (; from < to - 1; from++, to--) {
		double other = slots[to - 1];
		slots[to - 1] = slots[from];
		slots[from] = other;
	}
}

// Moves every slot k places forward: by three reversals, without a second ring.
static void rotate(double *slots, int64_t n, int64_t k)
{
	k = (k % n + n) % n;
	reverse(slots, 0, n);
	reverse(slots, 0, k);
	reverse(slots, k, n);
}

bool forecast_move(struct forecast *f, const struct policy_forecast *config, int64_t step_ms)
{
	int64_t k = step_ms / forecast_slot_ms(f, config);
	if (k == 0)
		return false;
	if (f->index == TIME_NONE)
		return true;
	if (k > TIME_MAX_MS || i64_add(f->first, k) < 0 || i64_add(f->index, k) > TIME_MAX_MS) {
		restart(f);
		return true;
	}
	f->index += k;
	f->first += k;
	rotate(forecast_slots(f), f->n_slots, k);
	if (config->model == FORECAST_HOLT_WINTERS)
		rotate(forecast_slots(f) + f->n_slots, f->n_slots + 1, k);
	return true;
}

bool forecast_is_same(const struct policy_forecast *a, const struct policy_forecast *b)
{
	return a->set && b->set && a->model == b->model && span_ms(a) == span_ms(b) &&
	       strcmp(a->signal, b->signal) == 0;
}

// ---- skill ----

#define SKILL_TO_START 0.05 // the lead over the naive forecasts that turns the model on: no flapping around 0
#define INDIFFERENT    0.01 // share of the mean load: smaller errors, and smaller leads of the season, change no decision

void skill_reset(struct skill *s)
{
	memset(s, 0, sizeof *s);
	s->newest_ms = s->compared_until_ms = TIME_NONE;
}

void skill_drop_pending(struct skill *s)
{
	s->newest_ms = s->compared_until_ms = TIME_NONE;
	s->start = s->len = 0;
}

// Each comparison stands for the time since the previous one; after a gap, for at most max_ms.
static void compare(struct skill *s, const struct skill_pending *p, int64_t since_ms, int64_t max_ms, double load)
{
	int64_t stands_for_ms = since_ms < max_ms ? since_ms : max_ms;
	double fade = exp(-(double)since_ms / (double)SKILL_DAY_MS), w = (double)stands_for_ms;
	s->weight = s->weight * fade + w;
	s->load = s->load * fade + w * fabs(load);
	s->model = s->model * fade + w * fabs(p->model - load);
	s->season = s->season * fade + w * fabs(p->season - load);
	s->last = s->last * fade + w * fabs(p->last - load);
	s->compared_until_ms = p->due_ms;
	s->compared_ms = i64_add(s->compared_ms, stands_for_ms);
}

void skill_observe(struct skill *s, int64_t gap_ms, int64_t time_ms, double load)
{
	int64_t before_ms = s->newest_ms == TIME_NONE ? time_ms : s->newest_ms;
	int64_t step_ms = i64_sub(time_ms, before_ms);
	for (; s->len > 0 && s->pending[s->start].due_ms <= time_ms; s->len--) {
		const struct skill_pending *p = &s->pending[s->start];
		s->start = (s->start + 1) % SKILL_PENDING_MAX;
		if (step_ms <= 0 || step_ms > gap_ms)
			continue;
		double part = (double)i64_sub(p->due_ms, before_ms) / (double)step_ms;
		int64_t since_ms =
		        s->compared_until_ms == TIME_NONE ? step_ms : i64_sub(p->due_ms, s->compared_until_ms);
		compare(s, p, since_ms, gap_ms, s->newest + part * (load - s->newest));
	}
	s->newest_ms = time_ms;
	s->newest = load;
	if (!isfinite(s->weight + s->load + s->model + s->season + s->last))
		skill_reset(s);
}

void skill_remember(struct skill *s, int64_t now_ms, const struct skill_pending *forecasts)
{
	int64_t every_ms = i64_sub(forecasts->due_ms, now_ms) / (SKILL_PENDING_MAX - 1) + 1;
	uint32_t newest = (s->start + s->len - 1) % SKILL_PENDING_MAX;
	if (s->len == SKILL_PENDING_MAX ||
	    (s->len > 0 && i64_sub(forecasts->due_ms, s->pending[newest].due_ms) < every_ms))
		return;
	s->pending[(s->start + s->len) % SKILL_PENDING_MAX] = *forecasts;
	s->len++;
}

bool skill_evaluate(struct skill *s, int64_t trial_ms)
{
	// For a load that repeats exactly, the model and the season before are the same forecast.
	double indifferent = INDIFFERENT * s->load;
	double naive = fmin(fmax(s->last, indifferent), s->season + indifferent);
	if (s->compared_ms < trial_ms || s->weight <= 0)
		s->on = 0;
	else if (s->model <= (1 - SKILL_TO_START) * naive)
		s->on = 1;
	else if (s->model >= naive)
		s->on = 0;
	return s->on;
}

void skill_errors(const struct skill *s, double *ret_model, double *ret_naive)
{
	*ret_model = s->weight > 0 ? s->model / s->weight : 0;
	*ret_naive = s->weight > 0 ? fmin(s->last, s->season) / s->weight : 0;
}
