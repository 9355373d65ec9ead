// SPDX-License-Identifier: Apache-2.0
// How fast this machine is at this moment, against the machine of docs/evidence/performance.md: a fixed amount of
// integer work with reads and writes of memory. Prints "factor=N ns=N ns_min=N ns_max=N": with factor 2 the machine
// takes twice as long. `factor` and `ns` are of the median batch, because the benchmarks report medians and means of
// the same moments.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

// The median batch on the reference machine, which is the one where bench_decide took 146 ns for 2,689 instructions. It
// is derived: on a slower machine, over 60 runs of both programs in turn, the median batch took 9,330 times as long as
// the median decision of 2,659 instructions (the ratio's quartiles are 8,960 and 10,290). 9,330 * 146 ns * 2,659 /
// 2,689:
#define REFERENCE_NS 1347000.0

#define BATCHES     60
#define ROUNDS      2000000
#define TABLE_SLOTS 32768 // 256 KiB: more than the first cache, less than the second

// CPU time: what others run on the same core in between does not count.
static int64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

// The rounds do not depend on each other, so that the processor overlaps them, as it does in decide().
static void work(uint64_t *table)
{
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		uint64_t x = i * 0x9e3779b97f4a7c15;
		x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
		x = (x ^ x >> 27) * 0x94d049bb133111eb;
		table[(x ^ x >> 31) % TABLE_SLOTS] += x;
	}
}

static int by_value(const void *a, const void *b)
{
	int64_t x, y;
	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

int main(void)
{
	static uint64_t table[TABLE_SLOTS];
	int64_t batch_ns[BATCHES];
	uint64_t sum = 0;
	for (int i = 0; i < BATCHES; i++) {
		int64_t start_ns = cpu_ns();
		work(table);
		batch_ns[i] = cpu_ns() - start_ns;
	}
	for (size_t i = 0; i < TABLE_SLOTS; i++)
		sum += table[i];
	qsort(batch_ns, BATCHES, sizeof batch_ns[0], by_value);
	int64_t median_ns = batch_ns[BATCHES / 2];
	// The sum is printed so that the compiler keeps the work.
	printf("factor=%.3f ns=%" PRId64 " ns_min=%" PRId64 " ns_max=%" PRId64 " sum=%" PRIx64 "\n",
	       (double)median_ns / REFERENCE_NS, median_ns, batch_ns[0], batch_ns[BATCHES - 1], sum);
	return 0;
}
