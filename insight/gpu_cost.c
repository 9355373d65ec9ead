// SPDX-License-Identifier: Apache-2.0
#include "insight/gpu_cost.h"

#include <math.h>

#include "base/base.h"
#include "policies/load/policy_ref.h"
#include "policies/price/price_book.h"

// A cent is 10^4 millionths, and an hour is 3.6 * 10^6 ms (a kWh, 3.6 * 10^6 J).
#define EXACT_PER_CENT ((gpu_money)3600000 * 10000)

#define FIRST     64
#define VALUE_MAX 1e12 // 31,000 GPUs for a year, or a watt-second figure of the same

// ---- use ----

void gpu_use_init(struct gpu_use_set *s)
{
	*s = (struct gpu_use_set){0};
	arena_init(&s->names, GPU_USE_BYTES_MAX);
	buf_init(&s->key, GPU_USE_BYTES_MAX);
}

void gpu_use_done(struct gpu_use_set *s)
{
	HASH_CLEAR(hh, s->rows);
	arena_done(&s->names);
	buf_done(&s->key);
}

static struct gpu_use *find_or_add(struct gpu_use_set *s, const char *model, const char *namespace_name,
                                   const char *part, struct err *e)
{
	struct gpu_use *row = NULL;
	size_t n = HASH_COUNT(s->rows);
	buf_reset(&s->key);
	buf_printf(&s->key, "%s%c%s%c%s", model, '\0', namespace_name, '\0', part);
	if (!s->key.failed)
		HASH_FIND(hh, s->rows, buf_str(&s->key), s->key.len, row);
	if (row)
		return row;
	if (n == GPU_USE_ROWS_MAX) {
		err_set(e, ERR_LIMIT, "more than %d pods or values of a label: ask for a shorter period",
		        GPU_USE_ROWS_MAX);
		return NULL;
	}
	row = arena_alloc(&s->names, sizeof *row);
	const char *names = arena_strndup(&s->names, buf_str(&s->key), s->key.len);
	if (!row || !names || s->key.failed) {
		err_set(e, ERR_INTERNAL, "out of memory for the use of GPUs by %zu pods", n);
		return NULL;
	}
	row->model = names;
	row->namespace_name = row->model + strlen(row->model) + 1;
	row->part = row->namespace_name + strlen(row->namespace_name) + 1;
	HASH_ADD_KEYPTR(hh, s->rows, names, s->key.len, row);
	return row;
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
	for (struct gpu_use *row = s->rows; row; row = row->hh.next) {
		int64_t *m = row->milli;
		m[GPU_MEASURED] = at_most(m[GPU_MEASURED], m[GPU_ALLOCATED]);
		m[GPU_IDLE] = at_most(m[GPU_IDLE], m[GPU_MEASURED]);
		m[GPU_FAKE] = at_most(m[GPU_FAKE], m[GPU_MEASURED] - m[GPU_IDLE]);
	}
}

// ---- cost ----

void gpu_cost_init(struct gpu_cost *c, const struct price_book *book, const struct price_discount *discount)
{
	*c = (struct gpu_cost){.book = book, .discount = discount, .total.saved_cents = GPU_COST_UNKNOWN};
}

void gpu_cost_done(struct gpu_cost *c)
{
	free(c->rows);
	free(c->unpriced);
}

static void add_unpriced(struct gpu_cost *c, const struct gpu_use *use)
{
	for (size_t i = 0; i < c->n_unpriced; i++)
		if (strcmp(c->unpriced[i].model, use->model) == 0) {
			c->unpriced[i].milli += use->milli[GPU_ALLOCATED];
			return;
		}
	if (alloc_reserve(&c->unpriced, c->n_unpriced, &c->cap_unpriced, sizeof *c->unpriced, FIRST) < 0)
		c->failed = true;
	else
		c->unpriced[c->n_unpriced++] = (struct gpu_unpriced){use->model, use->milli[GPU_ALLOCATED]};
}

static void add_row(struct gpu_cost_row *to, const struct gpu_cost_row *from)
{
	for (int m = 0; m < GPU_MEASURE__COUNT; m++)
		to->milli[m] += from->milli[m];
	for (int a = 0; a < COST__COUNT; a++)
		to->exact[a] += from->exact[a];
}

void gpu_cost_add(struct gpu_cost *c, const char *key, const struct gpu_use *use)
{
	bool is_priced;
	int64_t micro = price_book_micro(c->book, use->model, c->discount, &is_priced);
	int64_t micro_kwh = c->book->has_electricity ? price_micro(c->book->electricity.per_kwh) : 0;
	struct gpu_cost_row row = {.key = key, .saved_cents = GPU_COST_UNKNOWN};
	memcpy(row.milli, use->milli, sizeof row.milli);
	row.exact[COST_TOTAL] = (gpu_money)use->milli[GPU_ALLOCATED] * micro;
	row.exact[COST_IDLE] = (gpu_money)use->milli[GPU_IDLE] * micro;
	row.exact[COST_FAKE] = (gpu_money)use->milli[GPU_FAKE] * micro;
	row.exact[COST_ELECTRICITY] = (gpu_money)use->milli[GPU_ENERGY] * micro_kwh / 1000;
	if (!is_priced)
		add_unpriced(c, use);
	if (!key) {
		add_row(&c->unallocated, &row);
		return;
	}
	if (alloc_reserve(&c->rows, c->n, &c->cap, sizeof *c->rows, FIRST) < 0) {
		c->failed = true;
		return;
	}
	c->rows[c->n++] = row;
	add_row(&c->total, &row);
}

static int compare_by_key(const void *a, const void *b)
{
	return strcmp(((const struct gpu_cost_row *)a)->key, ((const struct gpu_cost_row *)b)->key);
}

static int compare_by_cost(const void *a, const void *b)
{
	const struct gpu_cost_row *x = a, *y = b;
	if (x->exact[COST_TOTAL] != y->exact[COST_TOTAL])
		return x->exact[COST_TOTAL] < y->exact[COST_TOTAL] ? 1 : -1;
	if (x->milli[GPU_ALLOCATED] != y->milli[GPU_ALLOCATED])
		return x->milli[GPU_ALLOCATED] < y->milli[GPU_ALLOCATED] ? 1 : -1;
	return strcmp(x->key, y->key);
}

struct remainder {
	gpu_money rest;
	size_t row;
};

static int compare_remainders(const void *a, const void *b)
{
	const struct remainder *x = a, *y = b;
	if (x->rest != y->rest)
		return x->rest < y->rest ? 1 : -1;
	return x->row < y->row ? -1 : x->row > y->row;
}

static int64_t to_cents(gpu_money exact)
{
	return (int64_t)((exact + EXACT_PER_CENT / 2) / EXACT_PER_CENT);
}

static void round_amount(struct gpu_cost *c, enum gpu_amount a, struct remainder *r)
{
	int64_t left = to_cents(c->total.exact[a]);
	c->total.cents[a] = left;
	c->unallocated.cents[a] = to_cents(c->unallocated.exact[a]);
	for (size_t i = 0; i < c->n; i++) {
		c->rows[i].cents[a] = (int64_t)(c->rows[i].exact[a] / EXACT_PER_CENT);
		left -= c->rows[i].cents[a];
		r[i] = (struct remainder){c->rows[i].exact[a] % EXACT_PER_CENT, i};
	}
	// The remainders add up to less than one cent per row that has one, so no other row gets a cent.
	qsort(r, c->n, sizeof *r, compare_remainders);
	for (size_t i = 0; i < c->n && left > 0; i++, left--)
		c->rows[r[i].row].cents[a]++;
}

void gpu_cost_close(struct gpu_cost *c)
{
	size_t n = 0;
	struct remainder *r = calloc(c->n ? c->n : 1, sizeof *r);
	if (!r || c->failed) {
		free(r);
		c->failed = true;
		return;
	}
	if (c->n)
		qsort(c->rows, c->n, sizeof *c->rows, compare_by_key);
	for (size_t i = 0; i < c->n; i++)
		if (n > 0 && strcmp(c->rows[n - 1].key, c->rows[i].key) == 0)
			add_row(&c->rows[n - 1], &c->rows[i]);
		else
			c->rows[n++] = c->rows[i];
	c->n = n;
	if (n)
		qsort(c->rows, n, sizeof *c->rows, compare_by_cost);
	for (int a = 0; a < COST__COUNT; a++)
		round_amount(c, (enum gpu_amount)a, r);
	free(r);
}

void gpu_cost_set_saved(struct gpu_cost_row *row, int64_t most_milli)
{
	double used_milli = (double)row->milli[GPU_ALLOCATED];
	if (used_milli > 0)
		row->saved_cents = (int64_t)floor((double)row->exact[COST_TOTAL] / (double)EXACT_PER_CENT *
		                                          ((double)most_milli / used_milli - 1) +
		                                  0.5);
}

#define LETTERS "abcdefghijklmnopqrstuvwxyz0123456789"

// "HASH-SUFFIX": what a ReplicaSet of a Deployment adds to its name.
static bool is_replica_set_part(const char *rest)
{
	size_t hash = strspn(rest, LETTERS);
	return hash > 0 && rest[hash] == '-' && strspn(rest + hash + 1, LETTERS) == 5 && rest[hash + 6] == '\0';
}

static bool is_number(const char *rest)
{
	size_t n = strspn(rest, "0123456789");
	return n > 0 && rest[n] == '\0';
}

bool pod_is_of_target(const struct scale_target *t, const char *pod)
{
	size_t len = strlen(t->name);
	if (strncmp(pod, t->name, len) != 0 || pod[len] != '-')
		return false;
	const char *rest = pod + len + 1;
	if (strcmp(t->kind, "Deployment") == 0)
		return is_replica_set_part(rest);
	return strcmp(t->kind, "StatefulSet") == 0 ? is_number(rest) : rest[0] != '\0';
}

const struct policy *pod_policy_find(const struct policy *const *policies, size_t n, const char *namespace_name,
                                     const char *pod)
{
	const struct binding *found = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct policy_ref *ref = policy_ref_of(policies[i]);
		if (strcmp(policies[i]->namespace_name, namespace_name) != 0)
			continue;
		for (const struct binding *b = ref->bindings; b < ref->bindings + ref->n_bindings; b++)
			if (pod_is_of_target(b->target, pod) &&
			    (!found || strlen(b->target->name) > strlen(found->target->name)))
				found = b;
	}
	return found ? found->policy : NULL;
}
