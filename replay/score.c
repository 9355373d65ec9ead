// SPDX-License-Identifier: Apache-2.0
#include "replay/score.h"

#include <math.h>
#include <string.h>

// Waits of 0 are bucket 0; then each bucket is 2 % wider than the one before, from 10 ms on; the last one is infinite.
#define WAIT_FIRST_S 0.01
#define WAIT_GROWTH  1.02
#define GAP_SCALE    100 // times between tokens are counted as waits of so many times their length

void score_init(struct score *s, bool has_waits)
{
	memset(s, 0, sizeof *s);
	s->has_waits = has_waits;
}

void score_add_step(struct score *s, int64_t step_ms, int32_t paid, bool is_at_max)
{
	s->replica_s += (double)paid * (double)step_ms / 1000;
	s->counted_ms += (double)step_ms;
	if (is_at_max)
		s->at_max_ms += (double)step_ms;
}

static size_t bucket_of(double wait_s)
{
	if (!(wait_s > 0))
		return 0;
	if (isinf(wait_s))
		return SCORE_WAIT_BUCKETS - 1;
	double i = 1 + floor(log(wait_s / WAIT_FIRST_S) / log(WAIT_GROWTH));
	return i < 1 ? 1 : i > SCORE_WAIT_BUCKETS - 2 ? SCORE_WAIT_BUCKETS - 2 : (size_t)i;
}

void score_add_requests(struct score *s, double weight, double wait_s, double late_s)
{
	s->requests += weight;
	if (wait_s > late_s)
		s->late += weight;
	s->waits[bucket_of(wait_s)] += weight;
}

void score_add_token_gap(struct score *s, double n, double gap_s)
{
	s->token_gaps += n;
	s->gaps[bucket_of(gap_s * GAP_SCALE)] += n;
}

void score_add_scale(struct score *s, int32_t from, int32_t to)
{
	if (from == to)
		return;
	int32_t direction = to > from ? 1 : -1;
	if (s->direction != 0 && direction != s->direction)
		s->changes++;
	s->direction = direction;
}

double score_late_percent(const struct score *s)
{
	return s->has_waits && s->requests > 0 ? 100 * s->late / s->requests : NAN;
}

static double quantile_of(const double *buckets, double all, double quantile)
{
	double left = quantile * all;
	size_t i = 0;
	if (!(all > 0))
		return NAN;
	while (i < SCORE_WAIT_BUCKETS - 1 && buckets[i] < left)
		left -= buckets[i++];
	if (i == 0)
		return 0;
	return i == SCORE_WAIT_BUCKETS - 1 ? INFINITY : WAIT_FIRST_S * pow(WAIT_GROWTH, (double)i - 0.5);
}

double score_wait_quantile_s(const struct score *s, double quantile)
{
	return s->has_waits ? quantile_of(s->waits, s->requests, quantile) : NAN;
}

double score_token_gap_quantile_s(const struct score *s, double quantile)
{
	return quantile_of(s->gaps, s->token_gaps, quantile) / GAP_SCALE;
}

double score_capacity(const struct score *s)
{
	return s->full_s > 0 ? s->full_work / s->full_s : NAN;
}

double score_at_max_percent(const struct score *s)
{
	return s->counted_ms > 0 ? 100 * s->at_max_ms / s->counted_ms : NAN;
}

bool score_keeps(const struct score *s, double late_percent)
{
	return !(score_late_percent(s) > late_percent);
}

bool score_is_better(const struct score *s, const struct score *than, double late_percent)
{
	bool keeps = score_keeps(s, late_percent);
	if (keeps != score_keeps(than, late_percent))
		return keeps;
	return keeps ? s->replica_s < than->replica_s : s->late < than->late;
}
