// SPDX-License-Identifier: Apache-2.0
// The table of commands. Each command parses its own arguments and returns the exit code of the process: 0 done, 1
// failed, 2 usage error, 3 a condition of --fail-on is met (plan, check, tune, diagnose, backtest, trace).
#ifndef GPUSCALE_CLI_TERM_COMMANDS_H
#define GPUSCALE_CLI_TERM_COMMANDS_H

#include <stddef.h>

struct err;

#define EXIT_OK      0
#define EXIT_FAILED  1
#define EXIT_USAGE   2
#define EXIT_CHANGES 3

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

int cmd_run(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_test(int argc, char **argv);
int cmd_step(int argc, char **argv);
int cmd_grant(int argc, char **argv);
int cmd_spread(int argc, char **argv);
int cmd_backtest(int argc, char **argv);
int cmd_tune(int argc, char **argv);
int cmd_get(int argc, char **argv);
int cmd_describe(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_capacity(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_ui(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_idle(int argc, char **argv);
int cmd_detect(int argc, char **argv);
int cmd_advise(int argc, char **argv);
int cmd_cost(int argc, char **argv);
int cmd_diagnose(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_remediate(int argc, char **argv);
int cmd_convert(int argc, char **argv);
int cmd_takeover(int argc, char **argv);
int cmd_crd(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_version(int argc, char **argv);

#endif
