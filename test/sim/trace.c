// SPDX-License-Identifier: Apache-2.0
#include "test/sim/trace.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"

#define COLUMNS_MAX         16
#define MADE_BIN_S          5.0
#define MADE_WORK_MEAN      2.0 // replica-seconds of one request
#define MADE_WORK_SIGMA     1.0 // of the logarithm
#define MADE_REQUESTS_LIMIT 100000

// ---- from a file ----

static char *read_text(const char *path, struct err *e)
{
	FILE *f = fopen(path, "rb");
	if (!f) {
		err_set(e, ERR_NOT_FOUND, "%s: cannot be opened", path);
		return NULL;
	}
	char *text = malloc(TRACE_FILE_BYTES_MAX + 1);
	size_t n = text ? fread(text, 1, TRACE_FILE_BYTES_MAX + 1, f) : 0;
	fclose(f);
	if (!text || n > TRACE_FILE_BYTES_MAX) {
		free(text);
		err_set(e, ERR_LIMIT, "%s: larger than %d bytes", path, TRACE_FILE_BYTES_MAX);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

// Is `name` one of the parts of "a+b"?
static bool names_column(const char *sum, const char *name, size_t len)
{
	for (;;) {
		size_t part = strcspn(sum, "+");
		if (part == len && memcmp(sum, name, len) == 0)
			return true;
		if (sum[part] == '\0')
			return false;
		sum += part + 1;
	}
}

struct header {
	int time, requests; // columns
	bool is_work[COLUMNS_MAX];
	int n;
};

static int read_header(const char *line, const char *work, const char *requests, struct header *ret, struct err *e)
{
	*ret = (struct header){.time = -1, .requests = -1};
	bool any_work = false;
	for (;;) {
		size_t len = strcspn(line, ",\r\n");
		if (ret->n == COLUMNS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d columns", COLUMNS_MAX);
		if (len == 3 && memcmp(line, "t_s", 3) == 0)
			ret->time = ret->n;
		if (strlen(requests) == len && memcmp(line, requests, len) == 0)
			ret->requests = ret->n;
		if (names_column(work, line, len))
			ret->is_work[ret->n] = any_work = true;
		ret->n++;
		if (line[len] != ',')
			break;
		line += len + 1;
	}
	if (ret->time < 0 || ret->requests < 0 || !any_work)
		return err_set(e, ERR_INPUT, "the header needs the columns t_s, %s and %s", requests, work);
	return 0;
}

static int read_row(const char *line, const struct header *h, double *ret_time_s, struct trace_bin *ret_bin,
                    struct err *e)
{
	*ret_bin = (struct trace_bin){0};
	int i = 0;
	for (;; i++) {
		size_t len = strcspn(line, ",\r\n");
		double v = 0;
		if (i >= h->n || num_parse_f64(line, len, &v, e) < 0 || v < 0)
			return err_set(e, ERR_INPUT, "column %d: \"%.*s\" is not a number of 0 or more", i + 1,
			               (int)len, line);
		if (i == h->time)
			*ret_time_s = v;
		if (i == h->requests)
			ret_bin->requests = v;
		if (h->is_work[i])
			ret_bin->work += v;
		if (line[len] != ',')
			break;
		line += len + 1;
	}
	return i + 1 == h->n ? 0 : err_set(e, ERR_INPUT, "%d columns, the header has %d", i + 1, h->n);
}

static int read_rows(const char *p, const struct header *h, double per_replica, struct trace *t, struct err *e)
{
	double first_s = 0;
	for (size_t line = 2; *p; line++) {
		size_t len = strcspn(p, "\n");
		double time_s = 0;
		struct trace_bin bin;
		if (read_row(p, h, &time_s, &bin, e) < 0)
			return err_wrap(e, "line %zu", line);
		if (t->n == TRACE_BINS_MAX)
			return err_set(e, ERR_LIMIT, "more than %d bins", TRACE_BINS_MAX);
		if (t->n == 0)
			first_s = time_s;
		if (t->n == 1)
			t->bin_s = time_s - first_s;
		if (t->n >= 1 && (t->bin_s <= 0 || fabs(time_s - first_s - (double)t->n * t->bin_s) > 1e-6))
			return err_set(e, ERR_INPUT, "line %zu: t_s does not grow by equal steps", line);
		bin.work /= per_replica;
		t->bins[t->n++] = bin;
		p += len + (p[len] == '\n');
	}
	return t->n >= 2 ? 0 : err_set(e, ERR_INPUT, "fewer than two rows");
}

int trace_read(const char *path, const char *work, const char *requests, double per_replica, struct trace *ret_trace,
               struct err *e)
{
	*ret_trace = (struct trace){0};
	char *text = read_text(path, e);
	if (!text)
		return -1;
	struct header h;
	size_t first = strcspn(text, "\n");
	int rc = read_header(text, work, requests, &h, e);
	ret_trace->bins = rc < 0 ? NULL : calloc(TRACE_BINS_MAX, sizeof *ret_trace->bins);
	if (rc == 0 && !ret_trace->bins)
		rc = err_set(e, ERR_INTERNAL, "out of memory");
	if (rc == 0)
		rc = read_rows(text + first + (text[first] == '\n'), &h, per_replica, ret_trace, e);
	free(text);
	if (rc < 0) {
		trace_done(ret_trace);
		return err_wrap(e, "%s", path);
	}
	return 0;
}

// ---- from a seed ----

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
