// SPDX-License-Identifier: Apache-2.0
// What one decide() costs, every history full, the scale moving so that no stage is spared.
//   bench_decide             two signals, a window Avg and a window Max
//   bench_decide objective   an objective, which simulates its rules at every tick
// Prints "ns=N allocations=N ..."; with a number as last argument it only runs that many decisions, for callgrind.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/num.h"
#include "test/support/alloc_count.h"
#include "test/support/engine.h"

#define BATCHES       25
#define BATCH_SIZE    20000 // with an objective, a tenth of it
#define INTERVAL_MS   15000
#define WINDOW_MS     600000 // 40 samples each
#define STABILIZE_MS  300000
#define WARM_UP_TICKS 2000
#define LOAD_STEPS    1024 // length of the prepared load, a power of two

struct bench {
	struct engine engine;
	double load[LOAD_STEPS];
	unsigned step;
	double scale[2]; // signals for a load of 1
	int batch_size;
};

// CPU time: what others run on the same core in between does not count.
static int64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static void prepare_windows(struct bench *b)
{
	struct engine *e = &b->engine;
	b->scale[0] = 1;
	b->scale[1] = 80;
	b->batch_size = BATCH_SIZE;
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
}

static void prepare_objective(struct bench *b)
{
	struct engine *e = &b->engine;
	b->scale[0] = 12;
	b->scale[1] = 30;
	b->batch_size = BATCH_SIZE / 10;
	engine_add_objective(e);
}

// A load that wanders: a repeated one would let the history merge equal recommendations and be short.
static void prepare_load(struct bench *b)
{
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
	engine_show(e, 0, load * b->scale[0]);
	engine_show(e, 1, load * b->scale[1]);
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
		for (int k = 0; k < b->batch_size; k++) {
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
	       (double)batch_ns[BATCHES / 2] / b->batch_size, (double)batch_ns[0] / b->batch_size,
	       (double)batch_ns[BATCHES - 1] / b->batch_size, allocations, BATCHES * b->batch_size,
	       100.0 * scaled / (BATCHES * b->batch_size), b->engine.decision.n_trace,
	       decide_state_bytes(&b->engine.policy));
}

int main(int argc, char **argv)
{
	static struct bench b;
	struct err e;
	int64_t ticks = 0;
	bool objective = argc > 1 && strcmp(argv[1], "objective") == 0;
	const char *count = argc > 1 + objective ? argv[1 + objective] : NULL;
	if (argc > 2 + objective || (count && num_parse_i64(count, strlen(count), 1, 1000000, &ticks, &e) < 0)) {
		fputs("usage: bench_decide [objective] [DECISIONS]\n", stderr);
		return 2;
	}
	engine_init(&b.engine, 8);
	b.engine.policy.interval_ms = INTERVAL_MS;
	if (objective)
		prepare_objective(&b);
	else
		prepare_windows(&b);
	engine_start(&b.engine);
	prepare_load(&b);
	for (int i = 0; i < WARM_UP_TICKS; i++)
		tick(&b);
	if (ticks == 0)
		measure(&b);
	for (int64_t i = 0; i < ticks; i++)
		tick(&b);
	engine_done(&b.engine);
	return 0;
}
