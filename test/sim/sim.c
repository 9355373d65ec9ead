// SPDX-License-Identifier: Apache-2.0
// Closes the loop around `gpuscale step` (or a peer's rule, or a constant) with a workload that takes time to start,
// and prints what it cost and how many requests waited too long.
#include <argp.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/num.h"
#include "test/sim/filter.h"
#include "test/sim/knative.h"
#include "test/sim/trace.h"
#include "test/sim/world.h"

#define STEP_S         15.0
#define STARTUP_S      120.0
#define REPLICAS_MAX   1000
#define KNATIVE_TARGET 0.7 // Knative: container-concurrency-target-percentage

struct options {
	const char *policy, *gpuscale, *csv, *work, *requests, *make, *signals;
	double per_replica, hours, startup_s;
	int64_t constant, replicas, seed;
	bool knative, log, trace_only;
};

enum {
	KEY_POLICY = 0x100,
	KEY_GPUSCALE,
	KEY_CONSTANT,
	KEY_KNATIVE,
	KEY_CSV,
	KEY_WORK,
	KEY_REQUESTS,
	KEY_PER_REPLICA,
	KEY_MAKE,
	KEY_SEED,
	KEY_HOURS,
	KEY_REPLICAS,
	KEY_STARTUP,
	KEY_LOG,
	KEY_TRACE,
	KEY_SIGNALS,
};

static const struct argp_option flags[] = {
        {0, 0, 0, 0, "Who decides:", 1},
        {"policy", KEY_POLICY, "FILE", 0, "gpuscale step -f FILE", 1},
        {"gpuscale", KEY_GPUSCALE, "PROGRAM", 0, "its path (build/release/gpuscale)", 1},
        {"signals", KEY_SIGNALS, "NAMES", 0, "what it is told (demand,backlog,utilization)", 1},
        {"constant", KEY_CONSTANT, "N", 0, "always N replicas", 1},
        {"knative", KEY_KNATIVE, 0, 0, "Knative's rule at 0.7", 1},
        {0, 0, 0, 0, "Demand:", 2},
        {"csv", KEY_CSV, "FILE", 0, "a trace, with --work A+B, --requests COLUMN and --per-replica WORK_A_SECOND", 2},
        {"work", KEY_WORK, "A+B", 0, "columns of work", 2},
        {"requests", KEY_REQUESTS, "COLUMN", 0, "column of request counts", 2},
        {"per-replica", KEY_PER_REPLICA, "X", 0, "work that one replica does in a second (1)", 2},
        {"make", KEY_MAKE, "KIND", 0, "a made trace: diurnal, steps, bursts, ramps, spiky", 2},
        {"seed", KEY_SEED, "N", 0, "its seed (1)", 2},
        {"hours", KEY_HOURS, "H", 0, "its length (6)", 2},
        {0, 0, 0, 0, "The rest:", 3},
        {"replicas", KEY_REPLICAS, "N", 0, "ready at the start (mean demand, rounded up)", 3},
        {"startup", KEY_STARTUP, "SECONDS", 0, "from order to ready (120)", 3},
        {"log", KEY_LOG, 0, 0, "one line per step on standard error", 3},
        {"trace", KEY_TRACE, 0, 0, "print the trace and end", 3},
        {0}};

static double number(const char *text, double min, double max, struct argp_state *state)
{
	struct err e;
	double v = 0;
	if (num_parse_f64(text, strlen(text), &v, &e) < 0)
		argp_error(state, "%s", e.msg);
	if (v < min || v > max)
		argp_error(state, "%s is not between %g and %g", text, min, max);
	return v;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;
	switch (key) {
	case KEY_POLICY:
		o->policy = arg;
		return 0;
	case KEY_GPUSCALE:
		o->gpuscale = arg;
		return 0;
	case KEY_SIGNALS:
		o->signals = arg;
		return 0;
	case KEY_CONSTANT:
		o->constant = (int64_t)number(arg, 1, REPLICAS_MAX, state);
		return 0;
	case KEY_KNATIVE:
		o->knative = true;
		return 0;
	case KEY_CSV:
		o->csv = arg;
		return 0;
	case KEY_WORK:
		o->work = arg;
		return 0;
	case KEY_REQUESTS:
		o->requests = arg;
		return 0;
	case KEY_PER_REPLICA:
		o->per_replica = number(arg, 1e-9, 1e12, state);
		return 0;
	case KEY_MAKE:
		o->make = arg;
		return 0;
	case KEY_SEED:
		o->seed = (int64_t)number(arg, 0, 1e15, state);
		return 0;
	case KEY_HOURS:
		o->hours = number(arg, 0.01, 1000, state);
		return 0;
	case KEY_REPLICAS:
		o->replicas = (int64_t)number(arg, 1, REPLICAS_MAX, state);
		return 0;
	case KEY_STARTUP:
		o->startup_s = number(arg, 0, 86400, state);
		return 0;
	case KEY_LOG:
		o->log = true;
		return 0;
	case KEY_TRACE:
		o->trace_only = true;
		return 0;
	case ARGP_KEY_END:
		if (!o->csv == !o->make)
			argp_error(state, "name one of --csv and --make");
		if (o->csv && (!o->work || !o->requests))
			argp_error(state, "--csv needs --work and --requests");
		if (!o->trace_only && !!o->policy + !!o->constant + o->knative != 1)
			argp_error(state, "name one of --policy, --constant and --knative");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

// Plays the trace; the filter is open when a policy decides.
static int play(const struct options *o, struct world *w, struct filter *f, struct err *e)
{
	struct knative k;
	knative_init(&k, STEP_S, KNATIVE_TARGET);
	struct world_view view;
	while (world_step(w, STEP_S, &view)) {
		int32_t want = (int32_t)o->constant, has = world_replicas(w);
		if (o->policy && filter_ask(f, w->now_s, has, w->ready, &view, &want, e) < 0)
			return -1;
		if (o->knative)
			want = knative_decide(&k, w->now_s, view.demand, w->ready);
		if (want > REPLICAS_MAX)
			return err_set(e, ERR_LIMIT, "%d replicas are wanted, the ceiling is %d", want, REPLICAS_MAX);
		if (o->log)
			fprintf(stderr, "%6.0f demand %6.2f backlog %8.1f utilization %.2f ready %3d of %3d -> %3d\n",
			        w->now_s, view.demand, view.backlog, view.utilization, w->ready, has, want);
		world_scale(w, want);
	}
	return 0;
}

static int run(const struct options *o, const struct trace *trace, struct err *e)
{
	double work = 0;
	for (size_t i = 0; i < trace->n; i++)
		work += trace->bins[i].work;
	if (fmod(STEP_S, trace->bin_s) != 0)
		return err_set(e, ERR_INPUT, "bins of %g s do not fit into steps of %g s", trace->bin_s, STEP_S);
	double mean = work / ((double)trace->n * trace->bin_s);
	int32_t first = (int32_t)(o->constant ? o->constant : o->replicas);
	if (first == 0)
		first = (int32_t)fmax(1, fmin(ceil(mean), REPLICAS_MAX));
	struct world *w = calloc(1, sizeof *w);
	struct filter f = {.pid = -1};
	int rc = !w || world_init(w, trace, o->startup_s, first) < 0 ? err_set(e, ERR_INTERNAL, "out of memory") : 0;
	if (rc == 0 && o->policy)
		rc = filter_open(&f, o->gpuscale, o->policy, o->signals, e);
	if (rc == 0)
		rc = play(o, w, &f, e);
	if (filter_close(&f, rc == 0 ? e : NULL) < 0)
		rc = -1;
	if (rc == 0) {
		world_finish(w);
		printf("%.3f %.3f %d %d %.2f\n", w->replica_s / 3600, w->requests > 0 ? 100 * w->late / w->requests : 0,
		       w->reversals, w->scales, mean);
	}
	if (w)
		world_done(w);
	free(w);
	return rc;
}

static void print_trace(const struct trace *t)
{
	puts("t_s,requests,work");
	for (size_t i = 0; i < t->n; i++)
		printf("%.0f,%.0f,%.4f\n", (double)i * t->bin_s, t->bins[i].requests, t->bins[i].work);
}

int main(int argc, char **argv)
{
	const struct argp argp = {
	        flags, parse,
	        NULL,  "Prints: GPU-hours, late requests in percent, reversals of direction, scales, mean demand",
	        NULL,  NULL,
	        NULL};
	struct options o = {.signals = "demand,backlog,utilization",
	                    .gpuscale = "build/release/gpuscale",
	                    .per_replica = 1,
	                    .hours = 6,
	                    .startup_s = STARTUP_S,
	                    .seed = 1};
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, &o);
	signal(SIGPIPE, SIG_IGN);
	struct trace trace;
	struct err e;
	err_clear(&e);
	int rc = o.csv ? trace_read(o.csv, o.work, o.requests, o.per_replica, &trace, &e)
	               : trace_make(o.make, (uint64_t)o.seed, o.hours, &trace, &e);
	if (rc == 0) {
		if (o.trace_only)
			print_trace(&trace);
		else
			rc = run(&o, &trace, &e);
		trace_done(&trace);
	}
	if (rc < 0)
		fprintf(stderr, "sim: %s\n", e.msg);
	return rc < 0 ? 1 : 0;
}
