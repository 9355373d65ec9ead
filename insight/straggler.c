// SPDX-License-Identifier: Apache-2.0
#include "insight/straggler.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "insight/median.h"

#define SHARES          64 // observations behind a share and the noise: ten minutes of blocks
#define SHARES_MIN      20 // before that a rank is not judged
#define IMBALANCE_AT    30 // observations: when a rank is compared with the other ranks
#define BLOCK_VALUES    32
#define EVIDENCE_MIN    4 // observations that an alarm needs: one long step, however long, is not a straggler
#define RECOVERY_MIN    3
#define RECOVERY_LIMIT  6.9  // ln 1000
#define NOISE_MIN       0.01 // standard deviation: smaller estimates are luck
#define CORRELATION_MAX 0.9
#define IMBALANCE_MIN   0.0953 // ln 1.10
#define IMBALANCE_GROSS 0.2231 // ln 1.25: unequal however unequal the other ranks are
#define IMBALANCE_P     1e-3   // chance of such a rank in a job whose ranks follow a normal distribution
#define MAD_SIGMA       1.4826 // of a normal distribution: the standard deviation, as a multiple of the MAD,
#define MAD_ERROR       1.17   // the relative standard error of this estimate, times the root of n,
#define MEDIAN_ERROR    1.2533 // and the standard error of the median, times the root of n, in standard deviations
#define SHARE_ERRORS    1.0
#define WINDOW_MS       (10 * 60 * 1000) // of a share, if that is WINDOW_MIN to SHARES observations
#define WINDOW_MIN      24
#define PAST            64 // estimates behind the average of noise and correlation
#define REFRESH         4  // blocks between two estimates of share and noise

struct rank {
	char name[STRAGGLER_RANK_BYTES];
	double block[BLOCK_VALUES]; // logarithms
	size_t n_block;             // values of the block, also beyond BLOCK_VALUES
	double observed;            // the median of the block; NaN: missing
	double shares[SHARES];      // ring
	size_t n_shares;            // ever
	double share, noise, correlation;
	double chart[2]; // slower, faster
	int64_t since_ms[2];
	double sum[2]; // of the residuals since then
	size_t n_sum[2];
	int state; // -1: usual; else 0 slower, 1 faster
	double recovery;
	int64_t recovery_since_ms;
	int64_t last_ms;
	bool is_compared;
};

struct straggler {
	bool more_is_slower;
	rank_event_fn *fn;
	void *arg;
	struct rank **ranks;
	size_t n, cap;
	uint32_t *slots; // hash table: index of the rank + 1; 0 = free
	size_t n_slots;
	double *scratch; // one per rank
	bool is_open;    // a block has values
	int64_t block_ms, now_ms, gap_ms;
	int64_t last_block_ms, length_ms;    // start of the last block; time between blocks
	double noise, correlation;           // of the usual rank, estimated from n_usual
	double past_noise, past_correlation; // averages: of the logarithm, of the correlation
	size_t n_usual, n_past;
	unsigned long n_blocks;
};

static const char *const names[] = {"Straggler", "Faster", "Recovered", "Imbalanced"};
_Static_assert(sizeof names / sizeof names[0] == RANK_EVENT__COUNT, "one name per kind");

const char *rank_event_name(enum rank_event_kind kind)
{
	return names[kind];
}

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
	for (size_t i = 0; i < s->n; i++)
		free(s->ranks[i]);
	free(s->ranks);
	free(s->slots);
	free(s->scratch);
	s->ranks = NULL;
	s->slots = NULL;
	s->scratch = NULL;
	s->n = s->cap = s->n_slots = 0;
	s->is_open = false;
	s->last_block_ms = INT64_MIN;
	s->n_blocks = 0;
	s->n_past = 0;
	s->past_noise = s->past_correlation = 0;
}

void straggler_free(struct straggler *s)
{
	if (!s)
		return;
	forget(s);
	free(s);
}

// ---- ranks by name ----

static size_t slot_of(const struct straggler *s, const char *name)
{
	size_t i = hash_mix(hash_text(HASH_START, name)) & (s->n_slots - 1);
	while (s->slots[i] && strcmp(s->ranks[s->slots[i] - 1]->name, name) != 0)
		i = (i + 1) & (s->n_slots - 1);
	return i;
}

static bool grow(struct straggler *s)
{
	size_t cap = s->cap ? 2 * s->cap : 16;
	struct rank **ranks = (struct rank **)realloc((void *)s->ranks, cap * sizeof *ranks);
	if (ranks)
		s->ranks = ranks;
	double *scratch = realloc(s->scratch, cap * sizeof *scratch);
	if (scratch)
		s->scratch = scratch;
	uint32_t *slots = calloc(2 * cap, sizeof *slots);
	if (!ranks || !scratch || !slots) {
		free(slots);
		return false;
	}
	free(s->slots);
	s->slots = slots;
	s->n_slots = 2 * cap;
	s->cap = cap;
	for (size_t i = 0; i < s->n; i++)
		s->slots[slot_of(s, s->ranks[i]->name)] = (uint32_t)i + 1;
	return true;
}

static struct rank *rank_of(struct straggler *s, const char *name)
{
	size_t len = strlen(name);
	if (s->n_slots > 0) {
		size_t slot = slot_of(s, name);
		if (s->slots[slot])
			return s->ranks[s->slots[slot] - 1];
	}
	if (len >= STRAGGLER_RANK_BYTES || s->n == STRAGGLER_RANKS_MAX || (s->n == s->cap && !grow(s)))
		return NULL;
	struct rank *r = calloc(1, sizeof *r);
	if (!r)
		return NULL;
	memcpy(r->name, name, len + 1);
	r->state = -1;
	s->slots[slot_of(s, name)] = (uint32_t)s->n + 1;
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

// The share is the median of the last observations; the noise and its correlation from one observation to the next
// come from median absolute deviations, of the values and of their differences: var(difference) = 2 var (1 - rho).
static void estimate(const struct straggler *s, struct rank *r)
{
	double kept[SHARES], work[SHARES];
	size_t n = n_kept(s, r), first = r->n_shares - n;
	if (n == 0) // the rank has been a suspect since it appeared
		return;
	for (size_t i = 0; i < n; i++)
		kept[i] = r->shares[(first + i) % SHARES];
	memcpy(work, kept, n * sizeof *work);
	r->share = median_lower(work, n);
	if (n < 2)
		return;
	for (size_t i = 0; i < n; i++)
		work[i] = fabs(kept[i] - r->share);
	r->noise = MAD_SIGMA * median_lower(work, n);
	for (size_t i = 1; i < n; i++)
		work[i - 1] = fabs(kept[i] - kept[i - 1]);
	double change = MAD_SIGMA * median_lower(work, n - 1);
	double rho = r->noise > 0 ? 1 - change * change / (2 * r->noise * r->noise) : 0;
	r->correlation = fmin(fmax(rho, 0), CORRELATION_MAX);
}

// Ten minutes of correlated noise are worth a few independent values: they often show less noise than the job has.
// Noise and correlation belong to the job and change slowly, so an estimate below their average is luck.
static void remember(struct straggler *s)
{
	double part = 1 / (double)(s->n_past < PAST ? ++s->n_past : PAST);
	s->past_noise += part * (log(fmax(s->noise, NOISE_MIN)) - s->past_noise);
	s->past_correlation += part * (s->correlation - s->past_correlation);
	s->noise = fmax(s->noise, exp(s->past_noise));
	s->correlation = fmax(s->correlation, s->past_correlation);
}

static void estimate_usual(struct straggler *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->ranks[i]->n_shares >= SHARES_MIN)
			s->scratch[n++] = s->ranks[i]->noise;
	s->noise = n ? median_lower(s->scratch, n) : 0;
	n = 0;
	for (size_t i = 0; i < s->n; i++)
		if (s->ranks[i]->n_shares >= SHARES_MIN)
			s->scratch[n++] = s->ranks[i]->correlation;
	s->correlation = n ? median_lower(s->scratch, n) : 0;
	s->n_usual = n;
	if (n > 0)
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
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		is_due = is_due || (s->ranks[i]->n_shares >= IMBALANCE_AT && !s->ranks[i]->is_compared);
	if (!is_due)
		return;
	for (size_t i = 0; i < s->n; i++)
		if (s->ranks[i]->n_shares >= SHARES_MIN)
			s->scratch[n++] = s->ranks[i]->share;
	double centre = median_lower(s->scratch, n);
	for (size_t i = 0; i < n; i++)
		s->scratch[i] = fabs(s->scratch[i] - centre);
	double spread = MAD_SIGMA * median_lower(s->scratch, n);
	double limit = fmax(IMBALANCE_MIN, spread * normal_tail(IMBALANCE_P / 2 / (double)n));
	limit = fmin(limit, IMBALANCE_GROSS);
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		if (r->n_shares < IMBALANCE_AT || r->is_compared)
			continue;
		r->is_compared = true;
		double off = r->share - centre;
		if (fabs(off) > limit && n > 1)
			s->fn(s->arg, &(struct rank_event){RANK_IMBALANCED, r->name, s->now_ms, s->block_ms, exp(off)});
	}
}

// ---- charts ----

// ln of the false alarms allowed, as the number of observations of all ranks in both directions between two of them.
static double alarm_limit(const struct straggler *s, size_t n_ranks)
{
	double blocks = STRAGGLER_FALSE_HOURS * 3.6e6 / (double)s->length_ms;
	return log(2 * blocks * (double)n_ranks);
}

// The log-likelihood ratio of an observation z, shifted by the effect against not shifted. Correlated observations
// count as the fewer independent ones they are worth: the variance is the long-run variance. The noise, which all
// ranks together estimate, is taken one standard error larger, and the share is given SHARE_ERRORS of its own.
static double evidence(const struct straggler *s, const struct rank *r, double z)
{
	double rho = s->correlation, n = (double)n_kept(s, r), n_independent = n * (1 - rho) / (1 + rho);
	double noise = fmax(fmax(s->noise, r->noise), NOISE_MIN);
	noise *= 1 + MAD_ERROR / sqrt(n_independent * (double)(s->n_usual > 0 ? s->n_usual : 1));
	double effect = log(STRAGGLER_EFFECT), variance = noise * noise * (1 + rho) / (1 - rho);
	double error = MEDIAN_ERROR * sqrt(variance / n); // n, because the variance is that of the long run
	return effect * (2 * (z - SHARE_ERRORS * error) - effect) / (2 * variance);
}

static void raise_alarm(struct straggler *s, struct rank *r, int side)
{
	r->state = side;
	r->recovery = 0;
	s->fn(s->arg, &(struct rank_event){side == 0 ? RANK_STRAGGLER : RANK_FASTER, r->name, s->now_ms,
	                                   r->since_ms[side], exp(r->sum[side] / (double)r->n_sum[side])});
}

// n_sides 1: only slower. Of two ranks, each is slower as the other is faster; the slower one delays the job.
static void chart_change(struct straggler *s, struct rank *r, double z, double limit, int n_sides)
{
	for (int side = 0; side < n_sides; side++) {
		double step = evidence(s, r, side == 0 ? z : -z);
		if (r->chart[side] <= 0) {
			r->since_ms[side] = s->block_ms;
			r->sum[side] = 0;
			r->n_sum[side] = 0;
		}
		r->sum[side] += z;
		r->n_sum[side]++;
		r->chart[side] = fmax(0, r->chart[side] + fmin(step, limit / EVIDENCE_MIN));
		// A small tolerance, because EVIDENCE_MIN rounded parts may fall short of the whole.
		if (r->chart[side] >= limit * (1 - 1e-9)) {
			raise_alarm(s, r, side);
			return;
		}
	}
}

static void chart_recovery(struct straggler *s, struct rank *r, double z)
{
	double step = -evidence(s, r, r->state == 0 ? z : -z);
	if (r->recovery <= 0)
		r->recovery_since_ms = s->block_ms;
	r->recovery = fmax(0, r->recovery + fmin(step, RECOVERY_LIMIT / RECOVERY_MIN));
	if (r->recovery < RECOVERY_LIMIT * (1 - 1e-9))
		return;
	r->state = -1;
	r->chart[0] = r->chart[1] = 0;
	s->fn(s->arg, &(struct rank_event){RANK_RECOVERED, r->name, s->now_ms, r->recovery_since_ms, exp(z)});
}

// ---- blocks ----

static void observe_ranks(struct straggler *s, size_t *ret_present)
{
	*ret_present = 0;
	for (size_t i = 0; i < s->n; i++) {
		struct rank *r = s->ranks[i];
		size_t n = r->n_block < BLOCK_VALUES ? r->n_block : BLOCK_VALUES;
		r->observed = n ? median_lower(r->block, n) : (double)NAN;
		*ret_present += n > 0;
		r->n_block = 0;
	}
}

// The job at this moment as one rank sees it: the median of value minus share over the other ranks. A rank that counted
// towards its own reference would hide part of its noise. These are the neighbours in the order of all ranks that the
// median of the others can consist of: of an even number of ranks only two.
struct reference {
	double low, middle, high;
	bool is_even;
};

static struct reference job_now(const struct straggler *s)
{
	size_t n = 0;
	for (size_t i = 0; i < s->n; i++)
		if (!isnan(s->ranks[i]->observed) && s->ranks[i]->n_shares >= REFRESH)
			s->scratch[n++] = s->ranks[i]->observed - s->ranks[i]->share;
	if (n < 2) {
		n = 0;
		for (size_t i = 0; i < s->n; i++)
			if (!isnan(s->ranks[i]->observed))
				s->scratch[n++] = s->ranks[i]->observed - s->ranks[i]->share;
	}
	size_t m = (n - 1) / 2;
	struct reference job = {.middle = median_at(s->scratch, n, m), .is_even = n % 2 == 0};
	job.low = job.high = job.middle;
	for (size_t i = 0; i < m; i++)
		job.low = i ? fmax(job.low, s->scratch[i]) : s->scratch[i];
	for (size_t i = m + 1; i < n; i++)
		job.high = i > m + 1 ? fmin(job.high, s->scratch[i]) : s->scratch[i];
	return job;
}

static double job_without(const struct reference *job, const struct rank *r)
{
	double v = r->observed - r->share;
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
		if (isnan(r->observed))
			continue;
		double share = r->observed - job_without(&job, r), z = share - r->share;
		if (r->n_shares >= SHARES_MIN && r->state < 0)
			chart_change(s, r, z, limit, active > 2 ? 2 : 1);
		else if (r->state >= 0)
			chart_recovery(s, r, z);
		if (r->state < 0 &&
		    fmax(r->chart[0], r->chart[1]) < limit / 2) // a suspect does not define what is usual
			r->shares[r->n_shares++ % SHARES] = share;
	}
	if (s->n_blocks++ % REFRESH != REFRESH - 1)
		return;
	for (size_t i = 0; i < s->n; i++)
		if (s->ranks[i]->state < 0)
			estimate(s, s->ranks[i]);
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
