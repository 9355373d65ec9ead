// SPDX-License-Identifier: Apache-2.0
// What one decide() costs: two signals, a window Avg and a window Max, every history full, the scale moving so that no
// stage is spared. Prints "ns=N allocations=N ..."; with an argument it only runs that many decisions, for callgrind.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/num.h"
#include "test/support/alloc_count.h"
#include "test/support/engine.h"

#define BATCHES       25
#define BATCH_SIZE    20000
#define INTERVAL_MS   15000
#define WINDOW_MS     600000 // 40 samples each
#define STABILIZE_MS  300000
#define WARM_UP_TICKS 2000
#define LOAD_STEPS    1024 // length of the prepared load, a power of two

struct bench {
	struct engine engine;
	double load[LOAD_STEPS];
	unsigned step;
};

// CPU time: what others run on the same core in between does not count.
static int64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

// A load that wanders: a repeated one would let the history merge equal recommendations and be short.
static void prepare(struct bench *b)
{
	struct engine *e = &b->engine;
	engine_init(e, 8);
	e->policy.interval_ms = INTERVAL_MS;
	e->policy.scale_down.stabilization_window_ms = STABILIZE_MS;
	engine_add_rate(e, +1, RATE_PODS, 4, 15000);
	engine_add_rate(e, +1, RATE_PERCENT, 100, 15000);
	engine_add_rate(e, -1, RATE_PERCENT, 50, 60000);
	e->policy.cooldown.up_ms = 30000;
	e->policy.cooldown.down_ms = 60000;
	engine_add_value(e, "sm_active", 0.7)->window =
	        (struct policy_window){.set = true, .duration_ms = WINDOW_MS, .aggregate = WINDOW_AVG};
	struct policy_signal *queue = engine_add_watermarks(e, "queue", 2, 8, WATERMARK_AVERAGE);
	queue->window = (struct policy_window){.set = true, .duration_ms = WINDOW_MS, .aggregate = WINDOW_MAX};
	queue->sustain = (struct policy_sustain){.up_ms = 30000, .down_ms = 60000};
	engine_start(e);
	unsigned random = 12345;
	double level = 0.5;
	for (size_t i = 0; i < LOAD_STEPS; i++) {
		random = random * 1103515245 + 12345;
		level += ((double)(random >> 16 & 0x7fff) / 32768 - 0.5) * 0.2 + (0.5 - level) * 0.02;
		b->load[i] = level < 0 ? 0 : level;
	}
}

static void tick(struct bench *b)
{
	struct engine *e = &b->engine;
	double load = b->load[b->step++ & (LOAD_STEPS - 1)];
	e->now_ms += INTERVAL_MS;
	engine_show(e, 0, load);
	engine_show(e, 1, load * 80);
	decide(&e->policy, &e->seen, e->now_ms, e->state, &e->decision);
	engine_apply(e);
}

static int by_value(const void *a, const void *b)
{
	int64_t x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

static void measure(struct bench *b)
{
	int64_t batch_ns[BATCHES];
	int scaled = 0;
	size_t allocations = alloc_count;
	for (int i = 0; i < BATCHES; i++) {
		int64_t start_ns = cpu_ns();
		for (int k = 0; k < BATCH_SIZE; k++) {
			tick(b);
			scaled += b->engine.decision.write;
		}
		batch_ns[i] = cpu_ns() - start_ns;
	}
	allocations = alloc_count - allocations;
	qsort(batch_ns, BATCHES, sizeof batch_ns[0], by_value);
	if (!alloc_count_works()) {
		fputs("bench_decide: allocations cannot be counted in this build\n", stderr);
		exit(1);
	}
	printf("ns=%.1f ns_min=%.1f ns_max=%.1f allocations=%zu decisions=%d scaled_percent=%.1f trace_entries=%zu "
	       "state_bytes=%zu\n",
	       (double)batch_ns[BATCHES / 2] / BATCH_SIZE, (double)batch_ns[0] / BATCH_SIZE,
	       (double)batch_ns[BATCHES - 1] / BATCH_SIZE, allocations, BATCHES * BATCH_SIZE,
	       100.0 * scaled / (BATCHES * BATCH_SIZE), b->engine.decision.n_trace,
	       decide_state_bytes(&b->engine.policy));
}

int main(int argc, char **argv)
{
	static struct bench b;
	struct err e;
	int64_t ticks = 0;
	if (argc > 2 || (argc == 2 && num_parse_i64(argv[1], strlen(argv[1]), 1, 1000000, &ticks, &e) < 0)) {
		fputs("usage: bench_decide [DECISIONS]\n", stderr);
		return 2;
	}
	prepare(&b);
	for (int i = 0; i < WARM_UP_TICKS; i++)
		tick(&b);
	if (ticks == 0)
		measure(&b);
	for (int64_t i = 0; i < ticks; i++)
		tick(&b);
	engine_done(&b.engine);
	return 0;
}
