// SPDX-License-Identifier: Apache-2.0
// What it costs to share one pool among 1,000 members that ask for half as much again as there is, in the least
// favourable of several mixtures.
// Prints "ms=N mixture=NAME allocations=N rounds=N".
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "policies/pool/pool_allocate.h"
#include "test/support/alloc_count.h"

#define MEMBERS 1000
#define ROUNDS  200
#define RATIOS  64

enum mixture { MIX_EQUAL, MIX_WEIGHTS, MIX_PRIORITIES, MIX_BUDGET, MIX_RATIOS, MIX__COUNT };
static const char *const mixture_names[] = {"equal", "weights", "priorities", "budget", "ratios"};
_Static_assert(sizeof mixture_names / sizeof mixture_names[0] == MIX__COUNT, "one name per mixture");

struct bench {
	struct pool_request request;
	struct pool_member members[MEMBERS];
	struct pool_ratio ratios[RATIOS];
	struct pool_grant grants[MEMBERS];
	unsigned random;
};

static int32_t up_to(struct bench *b, int32_t n)
{
	b->random = b->random * 1103515245 + 12345;
	return (int32_t)(b->random >> 16) % (n + 1);
}

// CPU time: what others run on the same core in between does not count.
static int64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void prepare(struct bench *b, enum mixture mix)
{
	memset(b, 0, sizeof *b);
	b->random = 12345;
	int64_t wanted = 0, cost = 0;
	for (size_t i = 0; i < MEMBERS; i++) {
		struct pool_member *m = &b->members[i];
		bool differs = mix != MIX_EQUAL;
		*m = (struct pool_member){.min = 1,
		                          .guaranteed = 1,
		                          .most = 1000,
		                          .max = 100,
		                          .gpus_per_replica = differs ? 1 << up_to(b, 3) : 1,
		                          .weight_milli = differs ? 500 + up_to(b, 2000) : 1000,
		                          .priority = mix == MIX_PRIORITIES ? up_to(b, 999) : 0,
		                          .backfill = differs && up_to(b, 9) == 0};
		m->price_micro = mix == MIX_BUDGET ? 1000000 + 250000 * up_to(b, 8) : 0;
		m->asked = 5 + up_to(b, 40);
		m->current = m->pending = 1 + up_to(b, 4);
		wanted += (int64_t)m->asked * m->gpus_per_replica;
		cost += (int64_t)m->asked * m->gpus_per_replica * m->price_micro;
	}
	b->request = (struct pool_request){.gpus = wanted * 2 / 3,
	                                   .has_budget = mix == MIX_BUDGET,
	                                   .budget_micro = cost / 2,
	                                   .members = b->members,
	                                   .n_members = MEMBERS,
	                                   .ratios = b->ratios};
	for (size_t i = 0; mix == MIX_RATIOS && i < RATIOS; i++)
		b->ratios[b->request.n_ratios++] = (struct pool_ratio){2 * i, 2 * i + 1, 250, 1000};
}

// The grants are carried out, and a tenth of the members ask for something else.
static void go_on(struct bench *b)
{
	for (size_t i = 0; i < MEMBERS; i++) {
		struct pool_member *m = &b->members[i];
		m->current = m->pending = b->grants[i].replicas;
		if (up_to(b, 9) == 0)
			m->asked = 5 + up_to(b, 40);
	}
	b->request.turn++;
}

static int by_value(const void *a, const void *b)
{
	int64_t x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

static int64_t median_ns(struct bench *b, size_t *allocations)
{
	int64_t times_ns[ROUNDS];
	struct pool_total total;
	for (size_t i = 0; i < ROUNDS; i++) {
		size_t before = alloc_count;
		int64_t start_ns = cpu_ns();
		pool_allocate(&b->request, b->grants, &total);
		times_ns[i] = cpu_ns() - start_ns;
		*allocations += alloc_count - before;
		go_on(b);
	}
	qsort(times_ns, ROUNDS, sizeof times_ns[0], by_value);
	return times_ns[ROUNDS / 2];
}

int main(void)
{
	static struct bench b;
	int64_t most_ns = -1;
	size_t worst = 0, allocations = 0;
	for (size_t mix = 0; mix < MIX__COUNT; mix++) {
		prepare(&b, (enum mixture)mix);
		int64_t ns = median_ns(&b, &allocations);
		fprintf(stderr, "%s: %.3f ms\n", mixture_names[mix], (double)ns / 1e6);
		if (ns <= most_ns)
			continue;
		most_ns = ns;
		worst = mix;
	}
	if (!alloc_count_works()) {
		fputs("bench_pool: allocations cannot be counted in this build\n", stderr);
		return 1;
	}
	printf("ms=%.4f mixture=%s allocations=%zu rounds=%d\n", (double)most_ns / 1e6, mixture_names[worst],
	       allocations, ROUNDS * MIX__COUNT);
	return 0;
}
