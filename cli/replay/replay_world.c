// SPDX-License-Identifier: Apache-2.0
// The flags that describe the simulated world.
#include <string.h>

#include "base/num.h"
#include "base/print.h"
#include "cli/replay/replay_input.h"

#define CAPACITY_MAX WORLD_REPLICAS_MAX

enum {
	KEY_STARTUP = 0x820,
	KEY_SEED,
	KEY_CAPACITY,
	KEY_CAPACITY_RATIO,
	KEY_REPLICAS,
	KEY_OBJECTIVE,
	KEY_DEMAND_SIGNAL,
	KEY_BACKLOG_SIGNAL,
	KEY_UTILIZATION_SIGNAL,
};

static double duration_s(const char *flag, const char *text, struct argp_state *state)
{
	return (double)option_duration_ms(flag, text, 0, state) / 1000;
}

static void set_startups(struct world_config *w, const char *list, struct argp_state *state)
{
	char item[OPTION_ITEM_BYTES];
	w->n_startups = 0;
	while (option_next_item("--startup", &list, item, state)) {
		if (w->n_startups == WORLD_STARTUPS_MAX)
			print_usage(state, "--startup: more than %d times", WORLD_STARTUPS_MAX);
		double s = duration_s("--startup", item, state);
		if (s > STARTUP_MAX_S)
			print_usage(state, "--startup: %s is longer than a day", item);
		w->startups_s[w->n_startups++] = s;
	}
}

// "1%,10s", "1%" or "10s".
static void set_objective(struct backtest_config *c, const char *list, struct argp_state *state)
{
	char item[OPTION_ITEM_BYTES];
	while (option_next_item("--objective", &list, item, state)) {
		size_t len = strlen(item);
		double percent = 0;
		if (item[len - 1] != '%')
			c->wait_s = duration_s("--objective", item, state);
		else if (num_parse_f64(item, len - 1, &percent, NULL) < 0 || !(percent >= 0 && percent <= 100))
			print_usage(state, "--objective: expected 0%% to 100%%, got \"%s\"", item);
		else
			c->late_ratio = percent / 100;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct replay_args *a = state->input;
	struct backtest_config *c = &a->config;
	switch (key) {
	case KEY_STARTUP:
		set_startups(&c->world, arg, state);
		return 0;
	case KEY_SEED:
		c->world.seed = (uint64_t)option_i64("--seed", arg, 0, INT64_MAX, state);
		return 0;
	case KEY_CAPACITY:
		c->world.capacity = (int32_t)option_i64("--capacity", arg, 1, CAPACITY_MAX, state);
		return 0;
	case KEY_CAPACITY_RATIO:
		c->world.capacity_ratio = option_f64("--capacity-ratio", arg, 0.1, 10, state);
		return 0;
	case KEY_REPLICAS:
		c->replicas = (int32_t)option_i64("--replicas", arg, 1, WORLD_REPLICAS_MAX, state);
		return 0;
	case KEY_OBJECTIVE:
		set_objective(c, arg, state);
		return 0;
	case KEY_DEMAND_SIGNAL:
		c->signals[ORIGIN_DEMAND] = arg;
		return 0;
	case KEY_BACKLOG_SIGNAL:
		c->signals[ORIGIN_BACKLOG] = arg;
		return 0;
	case KEY_UTILIZATION_SIGNAL:
		c->signals[ORIGIN_UTILIZATION] = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option flags[] = {
        {"demand-signal", KEY_DEMAND_SIGNAL, "NAME", 0, "signal of the policy that is the simulated demand", 2},
        {"backlog-signal", KEY_BACKLOG_SIGNAL, "NAME", 0,
         "signal of the policy that is the simulated backlog, in replica-seconds", 2},
        {"utilization-signal", KEY_UTILIZATION_SIGNAL, "NAME", 0,
         "signal of the policy that is the simulated utilization, 0 to 1", 2},
        {"startup", KEY_STARTUP, "TIME[,TIME..]", 0,
         "time from order to ready (as learnt in the status of the policy, else its startup.seconds, else 2m); with "
         "several times, each start draws one",
         2},
        {"seed", KEY_SEED, "N", 0, "seed of the random start-up times (0)", 2},
        {"capacity", KEY_CAPACITY, "N", 0, "replicas that fit in the cluster (unlimited)", 2},
        {"capacity-ratio", KEY_CAPACITY_RATIO, "RATIO", 0,
         "work that a replica really serves, as a ratio to what the queries take for one (as learnt in the status of "
         "the "
         "policy, else 1)",
         2},
        {"replicas", KEY_REPLICAS, "N", 0,
         "replicas that are ready at the start (the recorded replicas if not 0, else the mean demand, rounded up)", 2},
        {"objective", KEY_OBJECTIVE, "LATE%,WAIT", 0,
         "at most LATE% of the requests wait longer than WAIT (that of the policy, else 1%,10s)", 2},
        {0},
};
const struct argp replay_world_argp = {flags, parse, NULL, NULL, NULL, NULL, NULL};
