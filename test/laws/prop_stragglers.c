// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the straggler detector, on random jobs whose noise is not the one that it assumes: heavy
// tails, correlation, checkpoints, drift, missing values, from one value a second to one a minute. PROP_TABLE=1 prints
// the operating curve of docs/diagnosis.md.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/num.h"
#include "insight/straggler.h"
#include "test/laws/prop.h"

#define RANKS_MAX 512
#define HOUR_S    3600
#define TAU       6.283185307179586

enum noise { PLAIN, NOISY, CORRELATED, HEAVY, SPIKES, CHECKPOINTS, MISSING, DRIFT, STEPS, NOISE__COUNT };
static const char *const noise_names[] = {"normal, 2 %",
                                          "normal, 10 %",
                                          "correlated (0.9), 3 %",
                                          "Student t, 3 degrees, 2 %",
                                          "normal, 2 %, and 1 % of values 2 to 10 times",
                                          "normal, 2 %, and uneven checkpoints of 30 s on all ranks",
                                          "normal, 2 %, and 30 % of values missing",
                                          "normal, 2 %, and shares that drift by 8 % in 1 to 2 hours",
                                          "normal, 2 %, and sudden changes of the whole job"};
_Static_assert(sizeof noise_names / sizeof noise_names[0] == NOISE__COUNT, "one name per noise");

struct job {
	struct prop_random r;
	enum noise noise;
	int n_ranks, cadence_s, slow_rank, n_slow; // the ranks from slow_rank on, cyclically
	double slow_by;                            // factor
	int slow_at_s, slow_until_s;
	double card[RANKS_MAX], last[RANKS_MAX], phase[RANKS_MAX], period_s[RANKS_MAX];
	double level;
};

struct outcome {
	int stragglers, faster, recovered, imbalanced; // of any rank
	int hits;                                      // of the slow rank
	int others;                                    // events of ranks that have not changed
	int64_t found_ms, recovered_ms;
	const struct job *job;
};

static double uniform(struct prop_random *r)
{
	return ((double)prop_up_to(r, 1 << 24) + 0.5) / (double)((1 << 24) + 1);
}

static double normal(struct prop_random *r)
{
	return sqrt(-2 * log(uniform(r))) * cos(TAU * uniform(r));
}

static bool is_slow(const struct job *j, const char *name)
{
	struct err e;
	int64_t rank = -1;
	if (num_parse_i64(name, strlen(name), 0, INT32_MAX, &rank, &e) < 0)
		fail_msg("%s", e.msg);
	return j->slow_rank >= 0 && ((int)rank - j->slow_rank + j->n_ranks) % j->n_ranks < j->n_slow;
}

static void count_event(void *arg, const struct rank_event *event)
{
	struct outcome *o = arg;
	bool is_slow_rank = is_slow(o->job, event->rank);
	o->stragglers += event->kind == RANK_STRAGGLER;
	o->faster += event->kind == RANK_FASTER;
	o->recovered += event->kind == RANK_RECOVERED;
	o->imbalanced += event->kind == RANK_IMBALANCED;
	o->others += !is_slow_rank;
	for (size_t i = 0; i < event->n_alike; i++)
		o->others += !is_slow(o->job, event->alike[i]);
	if (is_slow_rank && event->kind != RANK_RECOVERED && event->kind != RANK_FASTER && o->hits++ == 0)
		o->found_ms = event->time_ms;
	if (is_slow_rank && event->kind == RANK_RECOVERED)
		o->recovered_ms = event->time_ms;
}

static double noise_of(struct job *j, int rank, int t)
{
	double z = normal(&j->r);
	switch (j->noise) {
	case NOISY:
		return 0.1 * z;
	case CORRELATED: { // 0.9 from one block to the next, whatever the cadence
		double rho = pow(0.9, fmin(1, j->cadence_s / 10.0));
		if (j->cadence_s > 10)
			rho = 0.9;
		j->last[rank] = rho * j->last[rank] + sqrt(1 - rho * rho) * z;
		return 0.03 * j->last[rank];
	}
	case HEAVY: {
		double a = normal(&j->r), b = normal(&j->r), c = normal(&j->r);
		return 0.02 * z / sqrt((a * a + b * b + c * c) / 3);
	}
	case SPIKES:
		return 0.02 * z + (prop_chance(&j->r, 1) ? log(2 + 8 * uniform(&j->r)) : 0);
	case CHECKPOINTS:
		return 0.02 * z + (t % 600 < 30 ? log(5 + 10 * uniform(&j->r)) : 0);
	case DRIFT:
		return 0.02 * z + 0.08 * sin(j->phase[rank] + TAU * t / j->period_s[rank]);
	default:
		return 0.02 * z;
	}
}

static void job_init(struct job *j, uint64_t seed, enum noise noise, int n_ranks, int cadence_s)
{
	memset(j, 0, sizeof *j);
	j->r = (struct prop_random){seed};
	j->noise = noise;
	j->n_ranks = n_ranks;
	j->cadence_s = cadence_s;
	j->slow_rank = -1;
	j->n_slow = 1;
	for (int i = 0; i < n_ranks; i++) {
		j->card[i] = 0.02 * normal(&j->r);
		j->last[i] = normal(&j->r);
		j->phase[i] = TAU * uniform(&j->r);
		j->period_s[i] = HOUR_S * (1 + uniform(&j->r));
	}
}

static struct outcome run(struct job *j, int seconds)
{
	static char names[RANKS_MAX][8];
	struct outcome o = {.job = j, .found_ms = -1, .recovered_ms = -1};
	struct straggler *s = straggler_new(true, count_event, &o);
	assert_non_null(s);
	for (int i = 0; i < j->n_ranks; i++)
		snprintf(names[i], sizeof names[i], "%d", i);
	for (int t = 0; t < seconds; t += j->cadence_s) {
		if (j->noise == STEPS && prop_chance(&j->r, 1))
			j->level = normal(&j->r);
		assert_true(straggler_at(s, (int64_t)t * 1000));
		for (int i = 0; i < j->n_ranks; i++) {
			double v = j->level + j->card[i] + noise_of(j, i, t);
			if (j->slow_rank >= 0 && (i - j->slow_rank + j->n_ranks) % j->n_ranks < j->n_slow &&
			    t >= j->slow_at_s && t < j->slow_until_s)
				v += log(j->slow_by);
			if (j->noise != MISSING || !prop_chance(&j->r, 30))
				assert_true(straggler_add(s, names[i], exp(v)));
		}
		straggler_tick(s);
	}
	straggler_free(s);
	return o;
}

static struct outcome run_slow(uint64_t seed, enum noise noise, int n_ranks, int cadence_s, double slow_by, int at_s,
                               int until_s, int seconds)
{
	static struct job j;
	job_init(&j, seed, noise, n_ranks, cadence_s);
	j.slow_rank = prop_up_to(&j.r, n_ranks - 1);
	j.slow_by = slow_by;
	j.slow_at_s = at_s;
	j.slow_until_s = until_s;
	return run(&j, seconds);
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

// ---- the operating curve ----

static void print_table(void)
{
	static const int cadences[] = {10, 15, 60}, sizes[] = {2, 8, 64, 512};
	static struct job j;
	const char *hours_text = getenv("PROP_HOURS");
	struct err e;
	int64_t hours = 200;
	if (hours_text && num_parse_i64(hours_text, strlen(hours_text), 1, 1000000, &hours, &e) < 0)
		fail_msg("PROP_HOURS: %s", e.msg);
	for (int f = 0; f < NOISE__COUNT; f++) {
		printf("%s\n", noise_names[f]);
		for (size_t c = 0; c < sizeof cadences / sizeof *cadences; c++) {
			printf("  every %2d s: false alarms", cadences[c]);
			for (size_t n = 0; n < 3; n++) {
				int h = (int)(n == 2 ? hours / 4 : hours);
				int alarms = 0;
				for (int k = 0; k < h; k += 20) {
					job_init(&j, prop_seed() + (uint64_t)(k + f * 1000), (enum noise)f, sizes[n],
					         cadences[c]);
					struct outcome o = run(&j, 20 * HOUR_S);
					alarms += o.stragglers + o.faster;
				}
				printf(" n=%d: %d/%dh", sizes[n], alarms, h);
			}
			for (int by = 10; by <= 30; by += by == 10 ? 5 : 15) {
				int found = 0, runs = 40;
				double delay[64];
				for (int k = 0; k < runs; k++) {
					int at = 40 * 60 > 40 * cadences[c] ? 40 * 60 : 40 * cadences[c];
					struct outcome o =
					        run_slow(prop_seed() + (uint64_t)k, (enum noise)f, 8, cadences[c],
					                 1 + by / 100.0, at, 1 << 30, at + 1800);
					if (o.hits && o.found_ms >= at * 1000LL)
						delay[found++] = (double)(o.found_ms - at * 1000LL) / 1000;
				}
				qsort(delay, (size_t)found, sizeof *delay, compare);
				printf(" | +%d%%: %d/%d in %.0f s", by, found, runs, found ? delay[found / 2] : -1.0);
			}
			printf("\n");
			fflush(stdout);
		}
	}
}

// ---- the laws ----

// At most one false alarm per 1,000 job-hours is the aim. At that rate, more than three in these hours are a matter of
// 2 in 100 seeds.
static void healthy_job_raises_no_alarm(void **state)
{
	static const int sizes[] = {2, 3, 8, 24};
	static struct job j;
	int alarms = 0, hours = 0;
	for (int k = 0; hours < 1000; k++) {
		enum noise noise = (enum noise)(k % NOISE__COUNT);
		int n_ranks = sizes[k / NOISE__COUNT % 4];
		job_init(&j, prop_seed() + (uint64_t)k, noise, n_ranks, k % 2 ? 10 : 15);
		struct outcome o = run(&j, 12 * HOUR_S);
		if (o.stragglers + o.faster)
			printf("# %s, %d ranks, every %d s: %d stragglers, %d faster\n", noise_names[noise], n_ranks,
			       j.cadence_s, o.stragglers, o.faster);
		alarms += o.stragglers + o.faster;
		hours += 12;
	}
	if (alarms > 3)
		fail_msg("PROP_SEED=%llu: a healthy job raises no alarm: %d in %d job-hours",
		         (unsigned long long)prop_seed(), alarms, hours);
}

// Ten minutes of such noise are worth a few independent values. The noise of the last ten minutes alone gives about ten
// alarms in these hours.
static void correlated_noise_of_two_ranks_raises_no_alarm(void **state)
{
	static struct job j;
	int alarms = 0, hours = 0;
	for (int k = 0; hours < 400; k++, hours += 20) {
		job_init(&j, prop_seed() + (uint64_t)k, CORRELATED, 2, 10);
		struct outcome o = run(&j, 20 * HOUR_S);
		alarms += o.stragglers + o.faster;
	}
	if (alarms > 2)
		fail_msg("PROP_SEED=%llu: correlated noise of two ranks raises no alarm: %d in %d job-hours",
		         (unsigned long long)prop_seed(), alarms, hours);
}

static void slower_rank_is_found(void **state)
{
	static const enum noise noises[] = {PLAIN, HEAVY, SPIKES, CHECKPOINTS, MISSING, STEPS};
	static const int sizes[] = {8, 32, 512};
	int found = 0, other = 0, runs = 0;
	for (int k = 0; k < 60; k++, runs++) {
		struct outcome o =
		        run_slow(prop_seed() + (uint64_t)k, noises[k % 6], sizes[k % 3], 10, 1.15, 1200, 1 << 30, 2000);
		found += o.hits > 0 && o.found_ms >= 1200 * 1000LL;
		other += o.stragglers + o.faster + o.imbalanced - o.hits;
	}
	if (found < 9 * runs / 10 || other > runs / 20)
		fail_msg("PROP_SEED=%llu: a rank 15 %% slower is found: %d of %d, and %d other ranks",
		         (unsigned long long)prop_seed(), found, runs, other);
}

static void faster_rank_is_reported_as_faster(void **state)
{
	int found = 0, slower = 0, runs = 40;
	for (int k = 0; k < runs; k++) {
		struct outcome o = run_slow(prop_seed() + (uint64_t)k, PLAIN, 8, 10, 1 / 1.2, 1200, 1 << 30, 2000);
		found += o.faster == 1;
		slower += o.stragglers;
	}
	if (found < 9 * runs / 10 || slower > 0)
		fail_msg("PROP_SEED=%llu: a faster rank is reported as faster: %d of %d, and %d as stragglers",
		         (unsigned long long)prop_seed(), found, runs, slower);
}

static void recovered_rank_is_cleared(void **state)
{
	int cleared = 0, runs = 40;
	for (int k = 0; k < runs; k++) {
		struct outcome o = run_slow(prop_seed() + (uint64_t)k, PLAIN, 8, 10, 1.3, 1200, 1800, 2400);
		cleared += o.hits == 1 && o.recovered == 1 && o.recovered_ms >= 1800 * 1000LL;
	}
	if (cleared < 9 * runs / 10)
		fail_msg("PROP_SEED=%llu: a recovered rank is cleared: %d of %d", (unsigned long long)prop_seed(),
		         cleared, runs);
}

static void unequal_rank_is_reported_once(void **state)
{
	static const int sizes[] = {8, 32, 512};
	int found = 0, alarms = 0, runs = 60;
	for (int k = 0; k < runs; k++) {
		struct outcome o = run_slow(prop_seed() + (uint64_t)k, PLAIN, sizes[k % 3], 10, 1.15, 0, 1 << 30, 3000);
		found += o.hits == 1 && o.imbalanced == 1;
		if (o.hits != 1 || o.imbalanced != 1)
			printf("# %d ranks: %d reports, %d of the slow rank\n", sizes[k % 3], o.imbalanced, o.hits);
		alarms += o.stragglers + o.faster;
	}
	if (found < 9 * runs / 10 || alarms > 0)
		fail_msg("PROP_SEED=%llu: an unequal rank is reported once: %d of %d, and %d alarms",
		         (unsigned long long)prop_seed(), found, runs, alarms);
}

// ---- recorded jobs, resampled ----

#define WORKERS      10
#define OBSERVATIONS 300
#define START        30 // the first five minutes, in which a real job is not judged either
#define PATHS        (2 * WORKERS)

// A recorded worker: the logarithm of its value, less that of the job, every 10 s while the worker is healthy.
struct path {
	double v[OBSERVATIONS];
	int n;
};

// Reads a job of test/support/traces; worker k is healthy until healthy_s[k].
static void read_paths(const char *file, const int healthy_s[WORKERS], struct path *paths)
{
	static double v[OBSERVATIONS][WORKERS];
	char line[128];
	FILE *f = fopen(file, "r");
	assert_non_null(f);
	memset(v, 0, sizeof v);
	assert_non_null(fgets(line, sizeof line, f)); // worker,gpu,time,batch_time_norm
	while (fgets(line, sizeof line, f)) {
		int64_t field[4];
		struct err e;
		char *at = line;
		for (int i = 0; i < 4; i++) {
			size_t len = strcspn(at, ",\r\n");
			if (num_parse_i64(at, len, 0, INT32_MAX, &field[i], &e) < 0)
				fail_msg("%s: %s: %s", file, line, e.msg);
			at += len + 1;
		}
		if (field[0] < WORKERS && field[2] / 10 < OBSERVATIONS && field[3] > 0)
			v[field[2] / 10][field[0]] = log((double)field[3]);
	}
	fclose(f);
	for (int t = START; t < OBSERVATIONS; t++) {
		double sum = 0;
		int n = 0;
		for (int k = 0; k < WORKERS; k++)
			if (v[t][k] > 0 && healthy_s[k] > OBSERVATIONS * 10) {
				sum += v[t][k];
				n++;
			}
		for (int k = 0; k < WORKERS && n > 2; k++)
			if (v[t][k] > 0 && t * 10 < healthy_s[k])
				paths[k].v[paths[k].n++] = v[t][k] - sum / n;
	}
}

// Every rank follows a random worker, forwards and backwards with turns at random times: its noise, the correlation of
// the noise and its drift are the recorded ones, and no jump is added. The job itself is a random walk.
static int alarms_of_resampled_job(const struct path *paths, struct prop_random *r, int n_ranks, int hours)
{
	static struct job none;
	const struct path *path[RANKS_MAX];
	int at[RANKS_MAX], step[RANKS_MAX];
	struct outcome o = {.job = &none};
	double level = 0;
	char name[8];
	none.slow_rank = -1;
	none.n_ranks = n_ranks;
	struct straggler *s = straggler_new(true, count_event, &o);
	assert_non_null(s);
	for (int i = 0; i < n_ranks; i++) {
		path[i] = &paths[prop_up_to(r, PATHS - 1)];
		at[i] = prop_up_to(r, path[i]->n - 1);
		step[i] = prop_chance(r, 50) ? 1 : -1;
	}
	for (int t = 0; t < hours * HOUR_S; t += 10) {
		assert_true(straggler_at(s, (int64_t)t * 1000));
		level += 0.005 * normal(r);
		for (int i = 0; i < n_ranks; i++) {
			step[i] = prop_up_to(r, 99) == 0 ? -step[i] : step[i];
			step[i] = at[i] + step[i] < 0 || at[i] + step[i] >= path[i]->n ? -step[i] : step[i];
			at[i] += step[i];
			snprintf(name, sizeof name, "%d", i);
			assert_true(straggler_add(s, name, exp(level + path[i]->v[at[i]])));
		}
		straggler_tick(s);
	}
	straggler_free(s);
	return o.stragglers + o.faster;
}

// The aim is one false alarm in 1,000 job-hours. At that rate, more than three in these hours are a matter of 2 in 100
// seeds, and more than 18 in 10,000 hours of 1 in 100.
static void resampled_job_raises_no_alarm(void **state)
{
	static const int job1[WORKERS] = {9999, 9999, 9999, 9999, 9999, 9999, 1780, 9999, 9999, 9999};
	static const int job3[WORKERS] = {9999, 9999, 9999, 9999, 9999, 9999, 2050, 2050, 2050, 2050};
	static const int sizes[] = {2, 4, 8, 10, 16, 32};
	static struct path paths[PATHS];
	struct prop_random r = {prop_seed()};
	int alarms = 0, hours = 0, wanted = getenv("GPUSCALE_NIGHTLY") ? 10000 : 1000;
	(void)state;
	memset(paths, 0, sizeof paths);
	read_paths("test/support/traces/pai_job1_step_times.csv", job1, paths);
	read_paths("test/support/traces/pai_job3_step_times.csv", job3, paths + WORKERS);
	for (int k = 0; hours < wanted; k++, hours += 10) {
		int n = alarms_of_resampled_job(paths, &r, sizes[k % 6], 10);
		if (n)
			printf("# %d ranks: %d alarms\n", sizes[k % 6], n);
		alarms += n;
	}
	if (alarms > (wanted > 1000 ? 18 : 3))
		fail_msg("PROP_SEED=%llu: a resampled job raises no alarm: %d in %d job-hours",
		         (unsigned long long)prop_seed(), alarms, hours);
}

// ---- lasting changes ----

static void lasting_straggler_is_reported_once(void **state)
{
	static const int sizes[] = {4, 5, 8, 16, 64}, cadences[] = {10, 15, 5, 1};
	int runs = getenv("GPUSCALE_NIGHTLY") ? 300 : 45, bad = 0;
	(void)state;
	for (int k = 0; k < runs; k++) {
		int n_ranks = sizes[k % 5], cadence_s = cadences[k / 5 % (n_ranks > 8 ? 2 : 4)];
		int end_s = 1200 + 4 * HOUR_S;
		struct outcome o = run_slow(prop_seed() + (uint64_t)k, PLAIN, n_ranks, cadence_s,
		                            1.1 + k / 5 % 3 * 0.05, 1200, end_s, end_s + HOUR_S / 2);
		if (o.hits == 1 && o.stragglers == 1 && o.recovered == 1 && o.faster + o.imbalanced == 0 &&
		    o.recovered_ms >= end_s * 1000LL && o.recovered_ms <= (end_s + 60) * 1000LL)
			continue;
		bad++;
		printf("# run %d, %d ranks: %d hits, %d stragglers, %d faster, %d recovered (last %+.0f s after the "
		       "end), "
		       "%d imbalanced\n",
		       k, n_ranks, o.hits, o.stragglers, o.faster, o.recovered, (double)o.recovered_ms / 1000 - end_s,
		       o.imbalanced);
	}
	if (bad > runs / 40)
		fail_msg("PROP_SEED=%llu: a lasting straggler is reported once: not in %d of %d runs",
		         (unsigned long long)prop_seed(), bad, runs);
}

// Several ranks change at once, as when a switch or a shared disk slows down, and change back later: one alarm at most,
// which names none of the others, and its end. When most ranks change, the job does.
static void common_change_is_one_alarm(void **state)
{
	int runs = getenv("GPUSCALE_NIGHTLY") ? 2000 : 300, worse = 0, missed = 0, minorities = 0;
	(void)state;
	for (int k = 0; k < runs; k++) {
		static struct job j;
		job_init(&j, prop_seed() + (uint64_t)k, PLAIN, 4 + k % 13, 10);
		j.slow_rank = prop_up_to(&j.r, j.n_ranks - 1);
		j.n_slow = 2 + prop_up_to(&j.r, j.n_ranks - 3);
		j.slow_by = prop_chance(&j.r, 70) ? 1.12 + 0.3 * uniform(&j.r) : 0.87 - 0.1 * uniform(&j.r);
		j.slow_at_s = 1200 + prop_up_to(&j.r, 9);
		j.slow_until_s = j.slow_at_s + 600 + prop_up_to(&j.r, 7200);
		struct outcome o = run(&j, 3 * HOUR_S);
		int most = j.n_slow == 2 ? 2 : 1; // two ranks may be a coincidence
		bool is_minority = 2 * j.n_slow < j.n_ranks;
		worse += o.stragglers + o.faster > most || o.recovered > most || o.others > 0;
		if (o.stragglers + o.faster > most || o.recovered > most || o.others > 0)
			printf("# %d: %d of %d ranks, x %.2f: %d stragglers, %d faster, %d recovered, %d others\n", k,
			       j.n_slow, j.n_ranks, j.slow_by, o.stragglers, o.faster, o.recovered, o.others);
		minorities += is_minority;
		missed += is_minority && (o.stragglers + o.faster == 0 || o.recovered == 0);
	}
	if (worse > runs / 25 || missed > minorities / 20)
		fail_msg("PROP_SEED=%llu: a common change is one alarm: %d of %d runs had more; %d of %d minorities "
		         "were missed",
		         (unsigned long long)prop_seed(), worse, runs, missed, minorities);
}

int main(void)
{
	if (getenv("PROP_TABLE")) {
		print_table();
		return 0;
	}
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(healthy_job_raises_no_alarm),
	        cmocka_unit_test(correlated_noise_of_two_ranks_raises_no_alarm),
	        cmocka_unit_test(slower_rank_is_found),
	        cmocka_unit_test(faster_rank_is_reported_as_faster),
	        cmocka_unit_test(recovered_rank_is_cleared),
	        cmocka_unit_test(unequal_rank_is_reported_once),
	        cmocka_unit_test(resampled_job_raises_no_alarm),
	        cmocka_unit_test(lasting_straggler_is_reported_once),
	        cmocka_unit_test(common_change_is_one_alarm),
	};
	prop_begin();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
