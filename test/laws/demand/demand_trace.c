// SPDX-License-Identifier: Apache-2.0
// demand-trace KIND SEED HOURS: prints generated demand as a recording for `gpuscale backtest`.
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "test/laws/demand/trace.h"

#define SEED_MAX  INT64_C(1000000000000000)
#define HOURS_MAX 1000

static int print_trace(const struct trace *t)
{
	puts("t_s,demand,requests");
	for (size_t i = 0; i < t->n; i++)
		printf("%.0f,%.6f,%.0f\n", (double)i * t->bin_s, t->bins[i].work / t->bin_s, t->bins[i].requests);
	return fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	struct err e;
	struct trace trace;
	int64_t seed = 0, hours = 0;
	if (argc != 4) {
		fputs("usage: demand-trace KIND SEED HOURS\n", stderr);
		return 2;
	}
	if (num_parse_i64(argv[2], strlen(argv[2]), 0, SEED_MAX, &seed, &e) < 0 ||
	    num_parse_i64(argv[3], strlen(argv[3]), 1, HOURS_MAX, &hours, &e) < 0 ||
	    trace_make(argv[1], (uint64_t)seed, (double)hours, &trace, &e) < 0) {
		fprintf(stderr, "demand-trace: %s\n", e.msg);
		return 1;
	}
	int rc = print_trace(&trace);
	trace_done(&trace);
	return rc;
}
