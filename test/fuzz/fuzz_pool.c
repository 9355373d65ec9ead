// SPDX-License-Identifier: Apache-2.0
// Files of pools: any bytes are decoded or refused with a place, and a pool that is accepted can be allocated from.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"
#include "policies/schema/pool_schema.h"

static void check_pool(const struct gpu_pool *p)
{
	assert(p->name[0] && p->gpus >= 1 && p->gpus <= POOL_GPUS_MAX && p->turn_every_ms > 0 && p->n_entries > 0);
	assert(p->per_hour >= 0 && p->price >= 0);
	for (size_t i = 0; i < p->n_entries; i++) {
		struct pool_member m = {0};
		gpu_pool_apply(p, &p->entries[i], &m);
		assert(m.gpus_per_replica >= 1 && m.gpus_per_replica <= POOL_GPUS_PER_REPLICA_MAX);
		assert(m.weight_milli >= 1 && m.weight_milli <= POOL_WEIGHT_MAX_MILLI);
		assert(m.price_micro >= 0 && m.price_micro <= POOL_PRICE_MAX_MICRO);
	}
	for (size_t i = 0; i < p->n_ratios; i++)
		assert(gpu_pool_milli(p->ratios[i].min) < gpu_pool_milli(p->ratios[i].max));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a;
	struct doc_file doc;
	struct err e;
	struct schema_errors *errors = malloc(sizeof *errors);
	assert(errors);
	arena_init(&a, 64 << 20);
	if (doc_parse_yaml(&a, "pool.yaml", (const char *)data, size, &doc, &e) == 0)
		for (size_t i = 0; i < doc.n_roots; i++) {
			struct gpu_pool pool = {0};
			schema_errors_init(errors, "pool.yaml");
			int rc = pool_decode(doc.roots[i], &pool, &a, errors);
			assert((rc == 0) == (errors->n + errors->dropped == 0));
			if (rc == 0)
				check_pool(&pool);
		}
	arena_done(&a);
	free(errors);
	return 0;
}
