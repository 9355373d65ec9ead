// SPDX-License-Identifier: Apache-2.0
#include "insight/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash_table.h"
#include "policies/engine/quantile.h"

#define SHARES          64 // observations behind a share and the noise: ten minutes of blocks
#define TESTED_MAX      32 // latest observations that a chart keeps out of the estimates
#define RING            (SHARES + TESTED_MAX)
#define SHARES_MIN      20 // before that a rank is not judged
#define IMBALANCE_AT    30 // observations: when a rank is compared with the other ranks
#define BLOCK_VALUES    32
#define EVIDENCE_MIN    4 // observations that an alarm needs: one long step, however long, is not a straggler
#define RECOVERY_MIN    3
#define ALIKE_MIN       3    // ranks that change together
#define RECOVERY_LIMIT  6.9  // ln 1000
#define NOISE_MIN       0.01 // standard deviation: smaller estimates are luck
#define CORRELATION_MAX 0.9
#define NOISE_CLIP      3.0    // residuals count as at most so many standard deviations
#define IMBALANCE_MIN   0.0953 // ln 1.10
#define IMBALANCE_GROSS 0.2231 // ln 1.25: unequal however unequal the other ranks are
#define IMBALANCE_P     1e-3   // chance of such a rank in a job whose ranks follow a normal distribution
#define MAD_SIGMA       1.4826 // standard deviation of a normal distribution, as a multiple of the MAD,
#define MAD_ERROR       1.17   // the relative standard error of this estimate, times the root of n,
#define MEDIAN_ERROR    1.2533 // and the standard error of the median, times the root of n, in standard deviations
#define SHARE_ERRORS    2.0
#define EFFECT_NOISES   3.0              // the effect, in standard deviations of the noise, between its bounds
#define WINDOW_MS       (10 * 60 * 1000) // length of a share, if that is WINDOW_MIN to SHARES observations
#define WINDOW_MIN      24
#define PAST            64 // estimates behind the average of noise and correlation
#define REFRESH         4  // blocks between two estimates of share and noise

struct chart {
	double sum;         // sum of the evidence
	int64_t since_ms;   // when it was last 0
	double change, own; // sums of the residuals and of the changes of the rank's own values since then
	size_t n, n_shares; // blocks since then; the rank's n_shares at that time
};

enum due { SLOWER, FASTER, BACK, NOT_DUE };

struct rank {
	UT_hash_handle hh; // by name
	char name[STRAGGLER_RANK_BYTES];
	double block[BLOCK_VALUES]; // logarithms
	size_t n_block;             // values of the block, also beyond BLOCK_VALUES
	double observed;            // the median of the block; NaN: missing
	double shares[RING];        // ring
	size_t n_shares;            // ever
	double values[SHARES];      // ring: what was observed, also of a reported rank
	size_t n_values;
	double share, noise, correlation, level; // level: the median of `values`
	double anchor;                           // the share when a rank was last reported or recovered
	struct chart charts[NOT_DUE];            // BACK: of a reported rank
	double effect;                           // size of the change of a reported rank
	enum due state, due;                     // state: how it is reported; due: what to report in this block
	int64_t last_ms;
	bool is_compared, is_reference; // is_reference: counts towards the job in this block
};

struct straggler {
	bool more_is_slower;
	rank_event_fn *fn;
	void *arg;
	struct rank **ranks;
	size_t n, cap;
	struct rank *by_name; // hash table
	double *scratch;      // one per rank
	const char **alike;   // one per rank
	double gauge;         // how far the usual shares have moved together since the anchors
	bool is_open;         // a block has values
	int64_t block_ms, now_ms, gap_ms;
	int64_t last_block_ms, length_ms;    // start of the last block; time between blocks
	double noise, correlation;           // those of the usual rank, estimated from n_usual
	double past_noise, past_correlation; // averages: of the logarithm, of the correlation
	size_t n_usual, n_past;
	unsigned long n_blocks;
};

const char *const rank_event_names[] = {"Straggler", "Faster", "Recovered", "Imbalanced"};
_Static_assert(sizeof rank_event_names / sizeof *rank_event_names == RANK_EVENT__COUNT, "one name per kind");

struct straggler *straggler_new(bool more_is_slower, rank_event_fn *fn, void *arg)
{
	struct straggler *s = calloc(1, sizeof *s);
	if (!s)
		return NULL;
	s->more_is_slower = more_is_slower;
	s->fn = fn;
	s->arg = arg;
	s->now_ms = INT64_MIN;
	s->last_block_ms = INT64_MIN;
	return s;
}

static void forget(struct straggler *s)
{
	HASH_CLEAR(hh, s->by_name);
	for (size_t i = 0; i < s->n; i++)
		free(s->ranks[i]);
	free(s->ranks);
	free(s->scratch);
	free((void *)s->alike);
	*s = (struct straggler){.more_is_slower = s->more_is_slower,
	                        .fn = s->fn,
	                        .arg = s->arg,
	                        .now_ms = s->now_ms,
	                        .last_block_ms = INT64_MIN};
}

void straggler_free(struct straggler *s)
{
	if (!s)
		return;
	forget(s);
	free(s);
}

// ---- ranks by name ----

static bool grow(struct straggler *s)
{
	size_t cap = s->cap ? 2 * s->cap : 16;
	struct rank **ranks = (struct rank **)realloc((void *)s->ranks, cap * sizeof *ranks);
	if (ranks)
		s->ranks = ranks;
	double *scratch = realloc(s->scratch, cap * sizeof *scratch);
	if (scratch)
		s->scratch = scratch;
	const char **alike = (const char **)realloc((void *)s->alike, cap * sizeof *alike);
	if (alike)
		s->alike = alike;
	if (!ranks || !scratch || !alike)
		return false;
	s->cap = cap;
	return true;
}

static struct rank *rank_of(struct straggler *s, const char *name)
{
	size_t len = strlen(name);
	struct rank *r;
	HASH_FIND_STR(s->by_name, name, r);
	if (r)
		return r;
	if (len >= STRAGGLER_RANK_BYTES || s->n == STRAGGLER_RANKS_MAX || (s->n == s->cap && !grow(s)))
		return NULL;
	r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	memcpy(r->name, name, len + 1);
	r->state = r->due = NOT_DUE;
	r->anchor = r->level = (double)NAN;
	HASH_ADD_STR(s->by_name, name, r);
	s->ranks[s->n++] = r;
	return r;
}

// ---- estimates ----

static size_t n_kept(const struct straggler *s, const struct rank *r)
{
	size_t window = (size_t)(WINDOW_MS / s->length_ms);
	window = window < WINDOW_MIN ? WINDOW_MIN : window > SHARES ? SHARES : window;
	return r->n_shares < window ? r->n_shares : window;
}

// How many of the latest observations are under test: those of the charts whose sum is above 0. If the values of a
// change that is not yet an alarm entered the estimates, share and noise of the rank would grow with them, and the
// chart with its larger noise would never reach its limit.
static size_t n_tested(const struct rank *r)
{
	size_t n = 0;
	for (int k = SLOWER; k <= FASTER; k++)
		if (r->charts[k].sum > 0 && r->n_shares - r->charts[k].n_shares > n)
			n = r->n_shares - r->charts[k].n_shares;
	return n < TESTED_MAX ? n : TESTED_MAX;
}

// The share is the median of the last observations, and the noise comes from the median absolute deviation. The
// correlation from one observation to the next is that of clipped residuals (Huber), which has a third of the error of
// one that is computed from medians; a window of n observations shows it smaller by (1 + 3 rho) / n (Kendall 1954).
static void estimate(const struct straggler *s, struct rank *r)
{
	double kept[SHARES], work[SHARES];
	size_t n_values = r->n_values < SHARES ? r->n_values : SHARES;
	memcpy(work, r->values, n_values * sizeof *work);
	r->level = n_values ? quantile_lower_median(work, n_values) : r->level;
	if (r->state != NOT_DUE)
		return;
	size_t tested = n_tested(r), n = n_kept(s, r);
	n = n + tested > r->n_shares ? r->n_shares - tested : n;
	size_t first = r->n_shares - tested - n;
	if (n == 0) // the rank has been a suspect since it appeared
		return;
	for (size_t i = 0; i < n; i++)
		kept[i] = r->shares[(first + i) % RING];
	memcpy(work, kept, n * sizeof *work);
	r->share = quantile_lower_median(work, n);
	if (n < 4)
		return;
	for (size_t i = 0; i < n; i++)
		work[i] = fabs(kept[i] - r->share);
	r->noise = MAD_SIGMA * quantile_lower_median(work, n);
	double squares = 0, products = 0, clip = NOISE_CLIP * r->noise;
	for (size_t i = 0; i < n; i++) {
		kept[i] = fmin(fmax(kept[i] - r->share, -clip), clip);
		squares += kept[i] * kept[i];
		products += i ? kept[i] * kept[i - 1] : 0;
	}
	double rho = squares > 0 ? products / squares : 0;
	r->correlation = ((double)n * rho + 1) / ((double)n - 3);
}

// Ten minutes of correlated noise are worth a few independent values: they often show less noise than the job has.
// Noise and correlation belong to the job and change slowly, so an estimate below their average is luck.
static void remember(struct straggler *s)
{
	double part = 1 / (double)(s->n_past < PAST ? ++s->n_past : PAST);
	s->past_noise += part * (log(fmax(s->noise, NOISE_MIN)) - s->past_noise);
	s->past_correlation += part * (s->correlation - s->past_correlation);
	s->noise = fmax(s->noise, exp(s->past_noise));
	s->correlation = fmin(fmax(fmax(s->correlation, s->past_correlation), 0), CORRELATION_MAX);
}

// The median of an estimate, at an offset in struct rank, over the ranks that are judged; *ret_n: how many they are.
static double median_of(struct straggler *s, size_t at, size_t *ret_n)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->ranks[i]->n_shares >= SHARES_MIN)
			memcpy(&s->scratch[n++], (const char *)s->ranks[i] + at, sizeof s->scratch[0]);
	*ret_n = n;
	return n ? quantile_lower_median(s->scratch, n) : 0;
}

static void estimate_usual(struct straggler *s)
{
	s->noise = median_of(s, offsetof(struct rank, noise), &s->n_usual);
	s->correlation = median_of(s, offsetof(struct rank, correlation), &s->n_usual);
	if (s->n_usual > 0)
		remember(s);
}

// ---- permanent differences ----

// The quantile of the normal distribution for a small upper tail p (Abramowitz and Stegun 26.2.23).
static double normal_tail(double p)
{
	double t = sqrt(-2 * log(p));
	return t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

static void compare_ranks(struct straggler *s)
{
	bool is_due = false;
	size_t n;
	for (size_t i = 0; i < s->n; i++)
		is_due = is_due || (s->ranks[i]->n_shares >= IMBALANCE_AT && !s->ranks[i]->is_compared);
	if (!is_due)
		return;
	double centre = median_of(s, offsetof(struct rank, share), &n);
	for (size_t i = 0; i < n; i++)
		s->scratch[i] = fabs(s->scratch[i] - centre);
	double spread = MAD_SIGMA * quantile_lower_median(s->scratch, n);
	double limit = fmax(IMBALANCE_MIN, spread * normal_tail(IMBALANCE_P / 2 / (double)n));
	limit = fmin(limit, IMBALANCE_GROSS);
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		if (r->n_shares < IMBALANCE_AT || r->is_compared)
			continue;
		r->is_compared = true;
		double off = r->share - centre;
		if (fabs(off) > limit && n > 1)
			s->fn(s->arg, &(struct rank_event){RANK_IMBALANCED, r->name, s->now_ms, s->block_ms, exp(off),
			                                   NULL, 0});
	}
}

// ---- charts ----

// ln of the false alarms allowed, as the number of observations of all ranks in both directions between two of them.
static double alarm_limit(const struct straggler *s, size_t n_ranks)
{
	double blocks = STRAGGLER_FALSE_HOURS * 3.6e6 / (double)s->length_ms;
	return log(2 * blocks * (double)n_ranks);
}

// Correlated observations count as the fewer independent ones they are worth: this is the long-run variance. The noise,
// which all ranks together estimate, is taken one standard error larger.
static double variance_of(const struct straggler *s, const struct rank *r)
{
	double rho = s->correlation, n_independent = (double)n_kept(s, r) * (1 - rho) / (1 + rho);
	double noise = fmax(fmax(s->noise, r->noise), NOISE_MIN);
	noise *= 1 + MAD_ERROR / sqrt(n_independent * (double)(s->n_usual > 0 ? s->n_usual : 1));
	return noise * noise * (1 + rho) / (1 - rho);
}

// The log-likelihood ratio of an observation z, shifted by the effect against not shifted.
static double evidence(double effect, double z, double variance)
{
	return effect * (2 * z - effect) / (2 * variance);
}

// Adds the evidence of an observation, of which at least n_min are needed. Returns true at the limit.
static bool chart_add(struct straggler *s, const struct rank *r, struct chart *c, double step, double z, double limit,
                      int n_min)
{
	if (c->sum <= 0)
		*c = (struct chart){.since_ms = s->block_ms, .n_shares = r->n_shares};
	c->change += z;
	c->own += r->observed - r->level;
	c->n++;
	c->sum = fmax(0, c->sum + fmin(step, limit / n_min));
	return c->sum >= limit * (1 - 1e-9); // because n_min rounded parts may fall short of the whole
}

// Whether the other ranks have changed and not this one: its own values moved by less than half of `change`. Such a
// chart starts again.
static bool is_of_others(struct chart *c, double change)
{
	if (!(fabs(c->own) / (double)c->n < fabs(change) / 2))
		return false;
	c->sum = 0;
	return true;
}

static void become_due(struct rank *r, enum due due)
{
	const struct chart *c = &r->charts[due];
	r->due = due;
	if (due != BACK)
		r->effect = fabs(c->change) / (double)c->n;
}

// n_sides 1: only slower. Of two ranks, each is slower as the other is faster; the slower one delays the job.
static void chart_change(struct straggler *s, struct rank *r, double z, double limit, int n_sides)
{
	double variance = variance_of(s, r), effect = EFFECT_NOISES * sqrt(variance);
	effect = fmin(fmax(effect, log(STRAGGLER_EFFECT_LEAST)), log(STRAGGLER_EFFECT));
	double error = MEDIAN_ERROR * sqrt(variance / (double)n_kept(s, r)); // error of the share
	for (int side = SLOWER; side < n_sides; side++) {
		struct chart *c = &r->charts[side];
		double step = evidence(effect, (side == SLOWER ? z : -z) - SHARE_ERRORS * error, variance);
		if (!chart_add(s, r, c, step, z, limit, EVIDENCE_MIN) || is_of_others(c, c->change / (double)c->n))
			continue;
		become_due(r, (enum due)side);
		return;
	}
}

// The way back is the same change in the other direction, from the size that the first one had.
static void chart_recovery(struct straggler *s, struct rank *r, double z)
{
	struct chart *c = &r->charts[BACK];
	double effect = fmin(r->effect, log(STRAGGLER_EFFECT));
	double step = evidence(effect, effect - (r->state == SLOWER ? z : -z), variance_of(s, r));
	if (chart_add(s, r, c, step, z, RECOVERY_LIMIT, RECOVERY_MIN) && !is_of_others(c, effect))
		become_due(r, BACK);
}

// ---- reports ----

// The share of a reported rank is frozen, and follows only what the other shares do together since then: job(t) plus a
// constant and the shares minus this constant are the same model.
static void find_gauge(struct straggler *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		if (r->state != NOT_DUE || r->n_shares < SHARES_MIN || s->now_ms - r->last_ms > STRAGGLER_FORGET_MS)
			continue;
		if (isnan(r->anchor))
			r->anchor = r->share - s->gauge;
		s->scratch[n++] = r->share - r->anchor;
	}
	if (n > 0)
		s->gauge = quantile_lower_median(s->scratch, n);
}

static void move_frozen(struct straggler *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		for (size_t k = 0; k < RING && r->state != NOT_DUE; k++)
			r->shares[k] += s->gauge;
		r->share += r->state != NOT_DUE ? s->gauge : 0;
		r->anchor = r->n_shares >= SHARES_MIN ? r->share : (double)NAN;
		if (r->due == NOT_DUE)
			continue;
		r->state = r->due == BACK ? NOT_DUE : r->due;
		r->level += r->charts[r->due].own / (double)r->charts[r->due].n;
		r->n_values = 0;
		for (int k = SLOWER; k <= BACK; k++)
			r->charts[k].sum = 0;
	}
	s->gauge = 0;
}

// Ranks that start to change in one block have one cause: ALIKE_MIN of them or more are one event, as soon as one of
// them is due and the others have a part of the evidence.
static bool is_alike(const struct straggler *s, const struct rank *r, const struct rank *o)
{
	const struct chart *a = &r->charts[r->due], *b = &o->charts[r->due];
	int64_t apart_ms = a->since_ms - b->since_ms;
	return apart_ms <= s->length_ms && apart_ms >= -s->length_ms &&
	       (o->due == r->due || (o->due == NOT_DUE && o->state == r->state && b->sum >= a->sum / EVIDENCE_MIN));
}

static void join_alike(struct straggler *s)
{
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		size_t n = 0;
		for (size_t k = 0; k < s->n && r->due != NOT_DUE; k++)
			n += is_alike(s, r, s->ranks[k]);
		for (size_t k = 0; k < s->n && n >= ALIKE_MIN; k++)
			if (is_alike(s, r, s->ranks[k]))
				become_due(s->ranks[k], r->due);
	}
}

// Takes the ranks that belong to the event of rank `first`.
static size_t take_alike(const struct straggler *s, size_t first)
{
	struct rank *r = s->ranks[first];
	size_t n = 0;
	for (size_t i = first + 1; i < s->n; i++)
		if (s->ranks[i]->due == r->due && is_alike(s, r, s->ranks[i]))
			s->alike[n++] = s->ranks[i]->name;
	if (n + 1 < ALIKE_MIN)
		return 0;
	for (size_t i = first + 1; i < s->n; i++)
		if (s->ranks[i]->due == r->due && is_alike(s, r, s->ranks[i]))
			s->ranks[i]->due = NOT_DUE;
	return n;
}

static void report(struct straggler *s)
{
	static const enum rank_event_kind kinds[] = {RANK_STRAGGLER, RANK_FASTER, RANK_RECOVERED};
	bool is_any = false;
	for (size_t i = 0; i < s->n; i++)
		is_any = is_any || s->ranks[i]->due != NOT_DUE;
	if (!is_any)
		return;
	join_alike(s);
	move_frozen(s);
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		if (r->due == NOT_DUE)
			continue;
		const struct chart *c = &r->charts[r->due];
		double ratio = exp(c->change / (double)c->n);
		size_t n_alike = take_alike(s, i);
		s->fn(s->arg,
		      &(struct rank_event){kinds[r->due], r->name, s->now_ms, c->since_ms, ratio, s->alike, n_alike});
		r->due = NOT_DUE;
	}
}

// ---- blocks ----

static void observe_ranks(struct straggler *s, size_t *ret_present)
{
	*ret_present = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		size_t n = r->n_block < BLOCK_VALUES ? r->n_block : BLOCK_VALUES;
		r->observed = n ? quantile_lower_median(r->block, n) : (double)NAN;
		*ret_present += n > 0;
		r->n_block = 0;
	}
}

static double share_of(const struct straggler *s, const struct rank *r)
{
	return r->share + (r->state != NOT_DUE ? s->gauge : 0);
}

// The job at this moment as one rank sees it: the median of value minus share over the other ranks. A rank that counted
// towards its own reference would hide part of its noise. These are the neighbours in the order of all ranks that the
// median of the others can consist of: of an even number of ranks only two.
struct reference {
	size_t n;
	double low, middle, high;
	bool is_even;
};

// Reported ranks do not count as long as other ranks do: the share of a reported rank is not what it was.
static struct reference job_now(struct straggler *s)
{
	size_t n = 0, n_reported = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		r->is_reference = !isnan(r->observed) && r->n_shares >= REFRESH && r->state == NOT_DUE;
		n += r->is_reference;
		n_reported += !isnan(r->observed) && r->state != NOT_DUE;
	}
	bool is_all = n == 0 || (n == 1 && n_reported == 0);
	n = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		r->is_reference = is_all ? !isnan(r->observed) : r->is_reference;
		if (r->is_reference)
			s->scratch[n++] = r->observed - share_of(s, r);
	}
	size_t m = (n - 1) / 2;
	struct reference job = {.n = n, .middle = quantile_select(s->scratch, n, m), .is_even = n % 2 == 0};
	job.low = job.high = job.middle;
	for (size_t i = 0; i < m; i++)
		job.low = i ? fmax(job.low, s->scratch[i]) : s->scratch[i];
	for (size_t i = m + 1; i < n; i++)
		job.high = i > m + 1 ? fmin(job.high, s->scratch[i]) : s->scratch[i];
	return job;
}

static double job_without(const struct straggler *s, const struct reference *job, const struct rank *r)
{
	double v = r->observed - share_of(s, r);
	if (!r->is_reference)
		return job->is_even ? (job->middle + job->high) / 2 : job->middle;
	if (job->is_even)
		return v > job->middle ? job->middle : job->high;
	return ((v > job->middle ? job->middle : job->high) + (v < job->middle ? job->middle : job->low)) / 2;
}

static size_t n_active(const struct straggler *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		n += s->now_ms - s->ranks[i]->last_ms <= STRAGGLER_FORGET_MS;
	return n;
}

// A suspect does not define what is usual.
static void observe(struct straggler *s, struct rank *r, double share, double limit, int n_sides)
{
	double z = share - share_of(s, r);
	if (r->state != NOT_DUE)
		chart_recovery(s, r, z);
	else if (r->n_shares >= SHARES_MIN)
		chart_change(s, r, z, limit, n_sides);
	bool is_usual = r->state == NOT_DUE && r->due == NOT_DUE;
	if (is_usual ? fmax(r->charts[SLOWER].sum, r->charts[FASTER].sum) >= limit / 3
	             : r->charts[BACK].sum >= RECOVERY_LIMIT / 2)
		return;
	r->values[r->n_values++ % SHARES] = r->observed;
	if (is_usual)
		r->shares[r->n_shares++ % RING] = share;
}

static void close_block(struct straggler *s)
{
	size_t present, active = n_active(s);
	s->is_open = false;
	observe_ranks(s, &present);
	if (s->last_block_ms != INT64_MIN) {
		int64_t length_ms = s->block_ms - s->last_block_ms;
		s->length_ms = length_ms > STRAGGLER_BLOCK_MS ? length_ms : STRAGGLER_BLOCK_MS;
	} else {
		s->length_ms = STRAGGLER_BLOCK_MS;
	}
	s->last_block_ms = s->block_ms;
	if (present < 2 || 2 * present < active) // a job of which less than half reports is not judged
		return;
	struct reference job = job_now(s);
	double limit = alarm_limit(s, active);
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		if (!isnan(r->observed) && (job.n > 1 || !r->is_reference))
			observe(s, r, r->observed - job_without(s, &job, r), limit, active > 2 ? 2 : 1);
	}
	report(s);
	if (s->n_blocks++ % REFRESH != REFRESH - 1)
		return;
	for (size_t i = 0; i < s->n; i++)
		estimate(s, s->ranks[i]);
	find_gauge(s);
	estimate_usual(s);
	compare_ranks(s);
}

bool straggler_at(struct straggler *s, int64_t time_ms)
{
	if (time_ms < s->now_ms)
		return false;
	if (s->is_open && time_ms - s->block_ms >= STRAGGLER_BLOCK_MS)
		close_block(s);
	if (s->now_ms != INT64_MIN && time_ms - s->now_ms > STRAGGLER_FORGET_MS)
		forget(s);
	s->gap_ms = s->now_ms == INT64_MIN ? 0 : time_ms - s->now_ms;
	s->now_ms = time_ms;
	return true;
}

bool straggler_add(struct straggler *s, const char *rank, double value)
{
	struct rank *r = rank_of(s, rank);
	if (!r)
		return false;
	if (!isfinite(value) || value <= 0)
		return true;
	if (!s->is_open) {
		s->is_open = true;
		s->block_ms = s->now_ms;
	}
	r->block[r->n_block++ % BLOCK_VALUES] = s->more_is_slower ? log(value) : -log(value);
	r->last_ms = s->now_ms;
	return true;
}

void straggler_tick(struct straggler *s)
{
	if (s->is_open && s->now_ms + s->gap_ms - s->block_ms >= STRAGGLER_BLOCK_MS && s->gap_ms > 0)
		close_block(s);
}
