// SPDX-License-Identifier: Apache-2.0
// What it costs to spread one decision over 8 variants of up to 40 replicas: 5,000 random requests.
// Prints "us=N us_p99=N us_max=N rounds=N": median, 99th percentile and maximum of the CPU time.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "policies/spread/spread.h"

#define VARIANTS 8
#define ROUNDS   5000

static unsigned next_random = 12345;

static int32_t up_to(int32_t n)
{
	next_random = next_random * 1103515245 + 12345;
	return (int32_t)(next_random >> 16) % (n + 1);
}

// CPU time: what others run on the same core in between does not count.
static int64_t cpu_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int64_t time_of_one(void)
{
	struct spread_variant v[VARIANTS];
	struct spread_share shares[VARIANTS];
	struct spread_total total;
	double room = 0;
	for (size_t i = 0; i < VARIANTS; i++) {
		v[i] = (struct spread_variant){.capacity = 1 + up_to(5000) / 100.0,
		                               .price = 0.5 + up_to(1500) / 100.0,
		                               .current = up_to(40),
		                               .max = 40,
		                               .fit = up_to(40)};
		room += v[i].capacity * (v[i].current + v[i].fit < 40 ? v[i].current + v[i].fit : 40);
	}
	const struct spread_request request = {v, VARIANTS, room * up_to(1000) / 1000.0, up_to(200) / 100.0};
	int64_t start_ns = cpu_ns();
	spread(&request, shares, &total);
	return cpu_ns() - start_ns;
}

int main(void)
{
	static int64_t times_ns[ROUNDS];
	for (size_t i = 0; i < ROUNDS; i++)
		times_ns[i] = time_of_one();
	qsort(times_ns, ROUNDS, sizeof times_ns[0], by_value);
	printf("us=%.2f us_p99=%.2f us_max=%.2f rounds=%d\n", (double)times_ns[ROUNDS / 2] / 1e3,
	       (double)times_ns[ROUNDS * 99 / 100] / 1e3, (double)times_ns[ROUNDS - 1] / 1e3, ROUNDS);
	return 0;
}
