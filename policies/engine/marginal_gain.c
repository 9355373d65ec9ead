// SPDX-License-Identifier: Apache-2.0
#include "policies/engine/marginal_gain.h"

#include <math.h>
#include <stddef.h>

#include "policies/engine/number.h"

#define MEMORY           4096 // observations; older counts are forgotten, so that a stopped target is tried again
#define OBSERVATIONS_MIN 3    // observations per replica count
#define SPREAD_MIN       1.5  // largest / smallest replica count of a fit
#define RISE             0.2
#define FALL             0.02

void marginal_gain_tick(struct marginal_gain *g, int32_t spec, int32_t ready)
{
	bool is_whole = spec > 0 && ready == spec;
	g->steady_ticks = is_whole && g->steady == spec ? g->steady_ticks + 1 : 0;
	g->steady = is_whole ? spec : 0;
	if (g->doubted != spec)
		g->n_doubtful = 0;
	g->doubted = spec;
}

static bool is_recent(const struct marginal_gain *g, const struct gain_point *p)
{
	return g->n_observed - p->newest < MEMORY;
}

static bool is_known(const struct marginal_gain *g, const struct gain_point *p)
{
	return p->n >= OBSERVATIONS_MIN && is_recent(g, p);
}

// Returns the entry of `replicas`: its own, an unused one, or the one that was not observed for longest.
static struct gain_point *point_of(struct marginal_gain *g, int32_t replicas)
{
	struct gain_point *oldest = &g->points[0];
	for (uint32_t i = 0; i < g->n_points; i++) {
		if (g->points[i].replicas == replicas)
			return &g->points[i];
		if (g->points[i].newest < oldest->newest)
			oldest = &g->points[i];
	}
	if (g->n_points < MARGINAL_GAIN_COUNTS_MAX)
		oldest = &g->points[g->n_points++];
	*oldest = (struct gain_point){.replicas = replicas};
	return oldest;
}

// Returns whether the point cannot be right if the throughput is.
static bool is_far(const struct gain_point *p, double throughput)
{
	return throughput > MARGINAL_GAIN_FACTOR * p->throughput || p->throughput > MARGINAL_GAIN_FACTOR * throughput;
}

// Returns whether a curve between flat and linear has both points, give or take MARGINAL_GAIN_FACTOR.
static bool agrees(const struct gain_point *p, int32_t replicas, double throughput)
{
	double linear = p->throughput * (double)replicas / (double)p->replicas;
	return throughput * MARGINAL_GAIN_FACTOR >= fmin(p->throughput, linear) &&
	       throughput <= MARGINAL_GAIN_FACTOR * fmax(p->throughput, linear);
}

struct neighbours {
	int32_t n, contradict;
};

// Counts the next known points below and above `replicas`, and those that contradict the throughput.
static struct neighbours compare(const struct marginal_gain *g, int32_t replicas, double throughput)
{
	const struct gain_point *next[2] = {NULL, NULL}; // below, above
	struct neighbours r = {0};
	for (uint32_t i = 0; i < g->n_points; i++) {
		const struct gain_point *p = &g->points[i], **side = &next[p->replicas > replicas];
		if (p->replicas == replicas || !is_known(g, p))
			continue;
		if (!*side || (p->replicas < replicas) == (p->replicas > (*side)->replicas))
			*side = p;
	}
	for (int i = 0; i < 2; i++) {
		r.n += next[i] != NULL;
		r.contradict += next[i] && !agrees(next[i], replicas, throughput);
	}
	return r;
}

// Returns whether the throughput of g->steady replicas is believed only once it has lasted.
static bool is_doubtful(const struct marginal_gain *g, const struct gain_point *p, double throughput)
{
	if (p->n >= OBSERVATIONS_MIN)
		return is_far(p, throughput);
	struct neighbours at = compare(g, p->replicas, throughput);
	return at.n > 0 && at.contradict == at.n;
}

void marginal_gain_observe(struct marginal_gain *g, double throughput, uint64_t believed_after)
{
	if (g->steady <= 0 || !isfinite(throughput) || throughput <= 0)
		return;
	struct gain_point *p = point_of(g, g->steady);
	if (p->n > 0 && !is_recent(g, p))
		p->n = 0;
	bool doubtful = is_doubtful(g, p, throughput);
	g->n_doubtful = doubtful ? g->n_doubtful + (g->n_doubtful < UINT32_MAX) : 0;
	if (doubtful && g->n_doubtful < believed_after)
		return;
	if (p->n > 0 && is_far(p, throughput))
		p->n = 0;
	double miss = throughput - p->throughput;
	p->throughput = p->n == 0 ? throughput : p->throughput + miss * (miss > 0 ? RISE : FALL);
	p->n += p->n < UINT32_MAX;
	p->newest = ++g->n_observed;
}

// Sums for the least squares of y = a + b x with x = n - 1 and y = n / throughput. Each point has the weight 1 / y^2,
// so that errors count in proportion to the throughput.
struct sums {
	double w, wx, wxx, wy, wxy, wyy;
	int32_t n, contradict, smallest, largest;
};

static struct sums add_up(const struct marginal_gain *g)
{
	struct sums s = {0};
	for (uint32_t i = 0; i < g->n_points; i++) {
		const struct gain_point *p = &g->points[i];
		if (!is_known(g, p))
			continue;
		s.contradict += compare(g, p->replicas, p->throughput).contradict;
		double x = (double)p->replicas - 1, y = (double)p->replicas / p->throughput, w = 1 / (y * y);
		s.w += w;
		s.wx += w * x;
		s.wxx += w * x * x;
		s.wy += w * y;
		s.wxy += w * x * y;
		s.wyy += w * y * y;
		s.smallest = s.n == 0 ? p->replicas : i32_min(s.smallest, p->replicas);
		s.largest = i32_max(s.largest, p->replicas);
		s.n++;
	}
	return s;
}

bool marginal_gain_fit(const struct marginal_gain *g, struct gain_fit *ret)
{
	struct sums s = add_up(g);
	*ret = (struct gain_fit){.usable = s.n};
	if (s.n < MARGINAL_GAIN_COUNTS_MIN || s.contradict > 0 || (double)s.largest < SPREAD_MIN * (double)s.smallest)
		return false;
	double spread = s.w * s.wxx - s.wx * s.wx;
	double b = (s.w * s.wxy - s.wx * s.wy) / spread, a = (s.wy - b * s.wx) / s.w;
	if (!(spread > 0) || !isfinite(b) || !(a > 0))
		return false;
	double left = fmax(s.wyy - a * s.wy - b * s.wxy, 0); // sum of the squared errors
	double error = sqrt(left / (double)(s.n - 2) * s.w / spread);
	ret->serial = fmax((b - error) / a, 0);
	return isfinite(ret->serial);
}

static double speedup(double serial, double n)
{
	return n / (1 + serial * (n - 1));
}

double marginal_gain_of(double serial, int32_t n)
{
	return n <= 1 ? 1 : speedup(serial, (double)n) - speedup(serial, (double)n - 1);
}

int32_t marginal_gain_limit(double serial, double bound, int32_t most)
{
	int32_t enough = 0, beyond = i32_from_i64((int64_t)most + 1);
	// Each replica adds less than the one before it.
	while (beyond - enough > 1) {
		int32_t middle = enough + (beyond - enough) / 2;
		if (marginal_gain_of(serial, middle) >= bound)
			enough = middle;
		else
			beyond = middle;
	}
	return enough;
}
