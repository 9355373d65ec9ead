// SPDX-License-Identifier: Apache-2.0
// The table of commands. Each command parses its own arguments and returns the exit code of the process: 0 done, 1
// failed, 2 usage error, 3 a condition of --fail-on is met (plan, check, tune, diagnose, backtest, trace).
#ifndef GPUSCALE_CLI_TERM_COMMANDS_H
#define GPUSCALE_CLI_TERM_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define EXIT_OK      0
#define EXIT_FAILED  1
#define EXIT_USAGE   2
#define EXIT_CHANGES 3

// The table: name, summary. cli/*/cmd_NAME.c defines cmd_NAME(), except that cmd_pause.c defines cmd_resume(), too, and
// cmd_filters.c those of step, grant and spread.
// clang-format off
#define COMMANDS(ROW) \
	ROW(run,        "run the controller: observe, decide, act") \
	ROW(plan,       "show the decision of each policy now, and why; writes nothing") \
	ROW(check,      "check policy files: all errors at once, no network") \
	ROW(test,       "run policy unit tests: series in, decisions out, no network") \
	ROW(step,       "run the engine as a filter: observations in, decisions out") \
	ROW(backtest,   "show what a policy would have cost on past demand") \
	ROW(tune,       "find better numbers for a policy on past demand") \
	ROW(grant,      "run the allocator of a pool as a filter: requests in, grants out") \
	ROW(spread,     "run the allocator of variants as a filter: units in, replicas out") \
	ROW(detect,     "find stragglers in training jobs, and memory leaks") \
	ROW(advise,     "show what workloads cost, and a policy that costs less") \
	ROW(cost,       "show what the GPUs cost, and how much of that was wasted") \
	ROW(diagnose,   "show why GPUs are slow or idle, and what to do") \
	ROW(trace,      "show when the GPUs of a profiler trace were idle, and why") \
	ROW(idle,       "list idle GPUs: who holds them, since when, at what cost") \
	ROW(remediate,  "take failing GPUs out of service, and return them") \
	ROW(get,        "list policies, pools or remediations with their status") \
	ROW(describe,   "show a policy in detail: signals, conditions, decisions, Events") \
	ROW(top,        "signals against their targets, most loaded first") \
	ROW(capacity,   "free GPUs; how many more replicas of each policy fit, and why") \
	ROW(pause,      "keep the replicas unchanged") \
	ROW(resume,     "scale again") \
	ROW(ui,         "open the status page of the leader") \
	ROW(explain,    "describe a policy field: type, default, range") \
	ROW(convert,    "convert HPAs, ScaledObjects, WatermarkPodAutoscalers to policies") \
	ROW(takeover,   "move ScaledObjects from KEDA's operator to gpuscale, and back") \
	ROW(crd,        "print the CustomResourceDefinitions of gpuscale.dev") \
	ROW(completion, "print a completion script for a shell") \
	ROW(version,    "print the version")
// clang-format on
#define COMMAND_FUNCTION(name, summary) int cmd_##name(int argc, char **argv);
COMMANDS(COMMAND_FUNCTION)

struct command {
	const char *name;
	const char *summary;               // one line
	int (*run)(int argc, char **argv); // argv[0] is "gpuscale <name>"
};

// Prints "COMMAND: MESSAGE" of the error, and returns its exit code.
int command_failed(const char *command, const struct err *e);

// The row called `name`, or NULL.
const struct command *command_find(const char *name);
// All rows, in the order of the help text.
const struct command *command_table(size_t *ret_n);

// Groups of flags that several commands share: their hidden flags are described by `gpuscale help NAME` only.
// Prints the help of a group, "prometheus". Returns false if no group has that name.
bool flag_group_help(const char *name);
// Returns the name of a group, or NULL from the end of the table on.
const char *flag_group_name(size_t i);

#endif
