// SPDX-License-Identifier: Apache-2.0
#include "insight/gpu_use.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"

#define ROWS_FIRST 256
#define VALUE_MAX  1e12 // 31,000 GPUs for a year, or a watt-second figure of the same

void gpu_use_init(struct gpu_use_set *s)
{
	*s = (struct gpu_use_set){0};
	arena_init(&s->names, GPU_USE_BYTES_MAX);
}

void gpu_use_done(struct gpu_use_set *s)
{
	free(s->rows);
	free(s->slots);
	arena_done(&s->names);
}

static uint64_t hash_row(const char *model, const char *namespace_name, const char *part)
{
	return hash_mix(hash_text(hash_text(hash_text(HASH_START, model), namespace_name), part));
}

static bool is_row(const struct gpu_use *r, const char *model, const char *namespace_name, const char *part)
{
	return strcmp(r->part, part) == 0 && strcmp(r->namespace_name, namespace_name) == 0 &&
	       strcmp(r->model, model) == 0;
}

static uint32_t *slot_of(const struct gpu_use_set *s, const char *model, const char *namespace_name, const char *part)
{
	size_t i = (size_t)hash_row(model, namespace_name, part) & (s->n_slots - 1);
	while (s->slots[i] && !is_row(&s->rows[s->slots[i] - 1], model, namespace_name, part))
		i = (i + 1) & (s->n_slots - 1);
	return &s->slots[i];
}

// Twice as many slots as rows, so that a search always meets a free one.
static int grow(struct gpu_use_set *s)
{
	size_t cap = s->cap ? 2 * s->cap : ROWS_FIRST;
	struct gpu_use *rows = realloc(s->rows, cap * sizeof *rows);
	if (rows)
		s->rows = rows;
	uint32_t *slots = calloc(2 * cap, sizeof *slots);
	if (!rows || !slots) {
		free(slots);
		return -1;
	}
	free(s->slots);
	s->slots = slots;
	s->cap = cap;
	s->n_slots = 2 * cap;
	for (size_t i = 0; i < s->n; i++)
		*slot_of(s, rows[i].model, rows[i].namespace_name, rows[i].part) = (uint32_t)(i + 1);
	return 0;
}

static struct gpu_use *find_or_add(struct gpu_use_set *s, const char *model, const char *namespace_name,
                                   const char *part, struct err *e)
{
	if (s->n == s->cap && grow(s) < 0) {
		err_set(e, ERR_INTERNAL, "out of memory for the use of GPUs by %zu pods", s->n);
		return NULL;
	}
	uint32_t *slot = slot_of(s, model, namespace_name, part);
	if (*slot)
		return &s->rows[*slot - 1];
	if (s->n == GPU_USE_ROWS_MAX) {
		err_set(e, ERR_LIMIT, "more than %d pods or values of a label: ask for a shorter period",
		        GPU_USE_ROWS_MAX);
		return NULL;
	}
	struct gpu_use row = {arena_strdup(&s->names, model),
	                      arena_strdup(&s->names, namespace_name),
	                      arena_strdup(&s->names, part),
	                      {0}};
	if (!row.model || !row.namespace_name || !row.part) {
		err_set(e, ERR_INTERNAL, "out of memory for the use of GPUs by %zu pods", s->n);
		return NULL;
	}
	s->rows[s->n] = row;
	*slot = (uint32_t)++s->n;
	return &s->rows[s->n - 1];
}

int gpu_use_add(struct gpu_use_set *s, const char *model, const char *namespace_name, const char *part,
                enum gpu_measure measure, double value, struct err *e)
{
	if (!(value >= 0 && value <= VALUE_MAX))
		return err_set(e, ERR_PROTOCOL, "expected a number from 0 to %g for %s of %s/%s, got %g", VALUE_MAX,
		               model, namespace_name, part, value);
	struct gpu_use *row = find_or_add(s, model, namespace_name, part, e);
	if (!row)
		return -1;
	row->milli[measure] += llround(value * 1000);
	return 0;
}

static int64_t at_most(int64_t v, int64_t limit)
{
	return v < limit ? v : limit;
}

void gpu_use_close(struct gpu_use_set *s)
{
	for (size_t i = 0; i < s->n; i++) {
		int64_t *m = s->rows[i].milli;
		m[GPU_MEASURED] = at_most(m[GPU_MEASURED], m[GPU_ALLOCATED]);
		m[GPU_IDLE] = at_most(m[GPU_IDLE], m[GPU_MEASURED]);
		m[GPU_FAKE] = at_most(m[GPU_FAKE], m[GPU_MEASURED] - m[GPU_IDLE]);
	}
}
