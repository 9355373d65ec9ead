// SPDX-License-Identifier: Apache-2.0
#include "cli/term/commands.h"

#include <string.h>

#include "base/err.h"
#include "base/print.h"

// clang-format off
static const struct command table[] = {
	{"run",        "run the controller: observe, decide, act", cmd_run},
	{"plan",       "show the decision of each policy now, and why; writes nothing", cmd_plan},
	{"check",      "check policy files: all errors at once, no network", cmd_check},
	{"test",       "run policy unit tests: series in, decisions out, no network", cmd_test},
	{"step",       "run the engine as a filter: observations in, decisions out", cmd_step},
	{"backtest",   "show what a policy would have cost on past demand", cmd_backtest},
	{"tune",       "find better numbers for a policy on past demand", cmd_tune},
	{"grant",      "run the allocator of a pool as a filter: requests in, grants out", cmd_grant},
	{"spread",     "run the allocator of variants as a filter: units in, replicas out", cmd_spread},
	{"detect",     "find stragglers in training jobs, and memory leaks", cmd_detect},
	{"advise",     "show what workloads cost, and a policy that costs less", cmd_advise},
	{"cost",       "show what the GPUs cost, and how much of that was wasted", cmd_cost},
	{"diagnose",   "show why GPUs are slow or idle, and what to do", cmd_diagnose},
	{"trace",      "show when the GPUs of a profiler trace were idle, and why", cmd_trace},
	{"idle",       "list idle GPUs: who holds them, since when, at what cost", cmd_idle},
	{"remediate",  "take failing GPUs out of service, and return them", cmd_remediate},
	{"get",        "list policies, pools or remediations with their status", cmd_get},
	{"describe",   "show a policy in detail: signals, conditions, decisions, Events", cmd_describe},
	{"top",        "signals against their targets, most loaded first", cmd_top},
	{"capacity",   "free GPUs; how many more replicas of each policy fit, and why", cmd_capacity},
	{"pause",      "keep the replicas unchanged", cmd_pause},
	{"resume",     "scale again", cmd_resume},
	{"ui",         "open the status page of the leader", cmd_ui},
	{"explain",    "describe a policy field: type, default, range", cmd_explain},
	{"convert",    "convert HPAs, ScaledObjects, WatermarkPodAutoscalers to policies", cmd_convert},
	{"takeover",   "move ScaledObjects from KEDA's operator to gpuscale, and back", cmd_takeover},
	{"crd",        "print the CustomResourceDefinitions of gpuscale.dev", cmd_crd},
	{"completion", "print a completion script for a shell", cmd_completion},
	{"version",    "print the version", cmd_version},
};
// clang-format on

int command_failed(const char *command, const struct err *e)
{
	print_error("%s: %s\n", command, e->msg);
	return err_kind_info(e->kind)->exit_code;
}

const struct command *command_table(size_t *ret_n)
{
	*ret_n = sizeof table / sizeof table[0];
	return table;
}

const struct command *command_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcmp(table[i].name, name) == 0)
			return &table[i];
	return NULL;
}
