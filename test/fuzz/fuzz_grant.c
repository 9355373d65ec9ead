// SPDX-License-Identifier: Apache-2.0
// Lines of `gpuscale grant`: any bytes get one line of JSON as an answer, and the grants keep the cap, the bounds and
// the minimums, whatever the numbers are.
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"
#include "policies/test/filters.h"

static struct gpu_pool_entry entries[] = {
        {.namespace_name = "serving", .name = "chat", .gpus_per_replica = 4, .priority = 10, .weight = 1.5},
        {.namespace_name = "batch",
         .name = "",
         .gpus_per_replica = 1,
         .weight = 1,
         .backfill = true,
         .max_gpus = 8,
         .max_min_replicas = 2},
};
static struct gpu_pool_ratio ratios[] = {{.of = "serving/prefill", .to = "serving/decode", .min = 0.25, .max = 1}};
static const struct gpu_pool pools[] = {
        {.name = "h100",
         .gpus = 32,
         .turn_every_ms = 60000,
         .entries = entries,
         .n_entries = 2,
         .ratios = ratios,
         .n_ratios = 1},
        {.name = "a100",
         .gpus = 1000000,
         .has_budget = true,
         .has_per_hour = true,
         .has_per_month = true,
         .per_hour = 50,
         .per_month = 20000,
         .price = 2,
         .turn_every_ms = 60000},
};

static bool pair_holds(const struct pool_ratio *r, int32_t of, int32_t to)
{
	return of >= pool_pair_of_min(r, to) && of <= pool_pair_of_max(r, to);
}

// The laws for any numbers (test/laws/prop_pool.c has the others).
static void check_grants(const struct pool_request *q, struct arena *a)
{
	struct pool_grant *grants = arena_calloc(a, q->n_members ? q->n_members : 1, sizeof *grants);
	struct pool_total total;
	assert(grants);
	pool_allocate(q, grants, &total);
	int64_t held = 0, used = 0;
	for (size_t i = 0; i < q->n_members; i++) {
		const struct pool_member *m = &q->members[i];
		int64_t before = pool_held(m), granted = grants[i].replicas;
		assert(granted >= 0 && granted <= POOL_REPLICAS_MAX && grants[i].reason < POOL_REASON__COUNT);
		assert(m->is_fixed || granted <= before || (granted <= m->max && granted <= m->most));
		assert(!m->is_fixed || granted == m->current);
		granted = granted < m->most ? granted : m->most;
		held += before * m->gpus_per_replica;
		used += (granted > before ? granted : before) * m->gpus_per_replica;
	}
	assert(used == total.used_gpus && (used <= q->gpus || used == held));
	for (size_t i = 0; i < q->n_ratios; i++) {
		const struct pool_ratio *r = &q->ratios[i];
		const struct pool_member *of = &q->members[r->of], *to = &q->members[r->to];
		bool held_before = pair_holds(r, of->current, to->current) && pair_holds(r, of->pending, to->pending) &&
		                   pair_holds(r, of->current, to->pending) && pair_holds(r, of->pending, to->current);
		assert(!held_before || pair_holds(r, grants[r->of].replicas, grants[r->to].replicas));
	}
}

static void check_answer(const struct buf *out, int rc)
{
	struct err e;
	assert(!out->failed && out->len > 0 && memchr(buf_str(out), '\n', out->len) == buf_str(out) + out->len - 1);
	cJSON *tree = json_read(buf_str(out), out->len, &e);
	assert(tree);
	assert(!json_get(tree, "error") == (rc == 0) && !json_get(tree, "grants") == (rc != 0));
	cJSON_Delete(tree);
}

static void answer_all(const struct gpu_pool *pool, const uint8_t *data, size_t size)
{
	struct grant *g = grant_new(pool, true);
	struct buf out;
	struct arena a;
	struct grant_line line;
	struct err e;
	assert(g);
	buf_init(&out, 64 << 20);
	arena_init(&a, 16 << 20);
	while (size > 0) {
		const uint8_t *nl = memchr(data, '\n', size);
		size_t len = nl ? (size_t)(nl - data) : size;
		buf_reset(&out);
		arena_reset(&a);
		check_answer(&out, grant_answer(g, (const char *)data, len, &out, &e));
		if (grant_line_parse(pool, (const char *)data, len, 1, &a, &line, &e) == 0)
			check_grants(&line.request, &a);
		data += len + (nl != NULL);
		size -= len + (nl != NULL);
	}
	arena_done(&a);
	buf_done(&out);
	grant_free(g);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < sizeof pools / sizeof pools[0]; i++)
		answer_all(&pools[i], data, size);
	return 0;
}
