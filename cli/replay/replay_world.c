// SPDX-License-Identifier: Apache-2.0
// The flags that describe the simulated world.
#include <string.h>

#include "base/num.h"
#include "base/print.h"
#include "cli/replay/replay_input.h"

#define CAPACITY_MAX WORLD_REPLICAS_MAX

static double duration_s(const char *flag, const char *text, struct argp_state *state)
{
	return (double)option_duration_ms(flag, text, 0, state) / 1000;
}

static void set_startups(void *world, char *arg, struct argp_state *state)
{
	struct world_config *w = world;
	const char *list = arg;
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
static void set_objective(void *config, char *arg, struct argp_state *state)
{
	struct backtest_config *c = config;
	const char *list = arg;
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

// clang-format off
#define FLAGS_OF struct replay_args
const struct flag_set replay_world_flags = {.flags = (const struct flag[]){
	FLAG_TEXT(2, 0, "demand-signal", "NAME", config.signals[ORIGIN_DEMAND], "signal of the policy that is the simulated demand"),
	FLAG_TEXT(2, 0, "backlog-signal", "NAME", config.signals[ORIGIN_BACKLOG], "signal of the policy that is the simulated backlog, in replica-seconds"),
	FLAG_TEXT(2, 0, "utilization-signal", "NAME", config.signals[ORIGIN_UTILIZATION], "signal of the policy that is the simulated utilization, 0 to 1"),
	FLAG_CALL(2, 0, "startup", "TIME[,TIME..]", config.world, set_startups, "time from order to ready (as learnt in the status of the policy, else its startup.seconds, else 2m); with several times, each start draws one"),
	FLAG_I64(2, 0, "seed", "N", config.world.seed, 0, INT64_MAX, "seed of the random start-up times (0)"),
	FLAG_I32(2, 0, "capacity", "N", config.world.capacity, 1, CAPACITY_MAX, "replicas that fit in the cluster (unlimited)"),
	FLAG_F64(2, 0, "capacity-ratio", "RATIO", config.world.capacity_ratio, 0.1, 10, "work that a replica really serves, as a ratio to what the queries take for one (as learnt in the status of the policy, else 1)"),
	FLAG_I32(2, 0, "replicas", "N", config.replicas, 1, WORLD_REPLICAS_MAX, "replicas that are ready at the start (the recorded replicas if not 0, else the mean demand, rounded up)"),
	FLAG_CALL(2, 0, "objective", "LATE%,WAIT", config, set_objective, "at most LATE% of the requests wait longer than WAIT (that of the policy, else 1%,10s)"),
	FLAG_END}};
// clang-format on
