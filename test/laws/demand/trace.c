// SPDX-License-Identifier: Apache-2.0
#include "test/laws/demand/trace.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

#define MADE_BIN_S          5.0
#define MADE_WORK_MEAN      2.0 // replica-seconds of one request
#define MADE_WORK_SIGMA     1.0 // of the logarithm
#define MADE_REQUESTS_LIMIT 100000

// splitmix64: one multiply-xor chain, good enough to draw loads from, and the same on every machine.
static double draw(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	z ^= z >> 31;
	return ((double)(z >> 11) + 0.5) / 9007199254740992.0; // in (0, 1)
}

static double draw_between(uint64_t *state, double low, double high)
{
	return low + (high - low) * draw(state);
}

static double draw_normal(uint64_t *state)
{
	double u = draw(state), v = draw(state);
	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static size_t draw_poisson(uint64_t *state, double mean)
{
	size_t n = 0;
	for (double t = -log(draw(state)); t < mean && n < MADE_REQUESTS_LIMIT; t -= log(draw(state)))
		n++;
	return n;
}

struct shape {
	uint64_t *random;
	double until_s, level, other_until_s;
	bool high;
};

typedef double level_fn(struct shape *s, double t_s); // replicas' worth that arrive at t_s

static double level_diurnal(struct shape *s, double t_s)
{
	return 8 - 6 * cos(2 * M_PI * t_s / 14400);
}

static double level_steps(struct shape *s, double t_s)
{
	if (t_s >= s->until_s) {
		s->until_s = t_s + draw_between(s->random, 1200, 3600);
		s->level = draw_between(s->random, 2, 20);
	}
	return s->level;
}

static double level_bursts(struct shape *s, double t_s)
{
	if (t_s >= s->until_s) {
		s->high = !s->high && t_s > 0;
		s->until_s = t_s + (s->high ? draw_between(s->random, 60, 240) : -720 * log(draw(s->random)));
		s->level = s->high ? draw_between(s->random, 10, 20) : 4;
	}
	return s->level;
}

static double level_ramps(struct shape *s, double t_s)
{
	double t = fmod(t_s, 6900);
	if (t < 1800)
		return 3;
	if (t < 2100)
		return 3 + 15 * (t - 1800) / 300;
	if (t < 5700)
		return 18;
	return 18 - 15 * (t - 5700) / 1200;
}

static double level_spiky(struct shape *s, double t_s)
{
	if (t_s >= s->until_s) {
		s->high = !s->high;
		s->until_s = t_s - 25 * log(draw(s->random));
		s->level = s->high ? -10 * log(draw(s->random)) : 0;
	}
	return s->level;
}

static level_fn *const levels[] = {level_diurnal, level_steps, level_bursts, level_ramps, level_spiky};
const char *const trace_kinds[] = {"diurnal", "steps", "bursts", "ramps", "spiky", NULL};
_Static_assert(sizeof trace_kinds / sizeof *trace_kinds == sizeof levels / sizeof *levels + 1, "one name per shape");

int trace_make(const char *kind, uint64_t seed, double hours, struct trace *ret_trace, struct err *e)
{
	*ret_trace = (struct trace){.bin_s = MADE_BIN_S};
	size_t k = 0;
	while (trace_kinds[k] && strcmp(trace_kinds[k], kind) != 0)
		k++;
	if (!trace_kinds[k])
		return err_set(e, ERR_INPUT, "no shape \"%s\": use diurnal, steps, bursts, ramps or spiky", kind);
	double bins = floor(hours * 3600 / MADE_BIN_S);
	if (!(bins >= 2 && bins <= TRACE_BINS_MAX))
		return err_set(e, ERR_LIMIT, "%g hours are not between two bins and %d", hours, TRACE_BINS_MAX);
	ret_trace->n = (size_t)bins;
	ret_trace->bins = calloc(ret_trace->n, sizeof *ret_trace->bins);
	if (!ret_trace->bins)
		return err_set(e, ERR_INTERNAL, "out of memory");
	uint64_t random = seed;
	struct shape shape = {.random = &random};
	for (size_t i = 0; i < ret_trace->n; i++) {
		double level = levels[k](&shape, (double)i * MADE_BIN_S);
		size_t n = draw_poisson(&random, level * MADE_BIN_S / MADE_WORK_MEAN);
		ret_trace->bins[i].requests = (double)n;
		for (size_t r = 0; r < n; r++)
			ret_trace->bins[i].work += MADE_WORK_MEAN * exp(MADE_WORK_SIGMA * draw_normal(&random) -
			                                                MADE_WORK_SIGMA * MADE_WORK_SIGMA / 2);
	}
	return 0;
}

void trace_done(struct trace *t)
{
	free(t->bins);
	*t = (struct trace){0};
}
