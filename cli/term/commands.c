// SPDX-License-Identifier: Apache-2.0
#include "cli/term/commands.h"

#include <string.h>

#include "base/err.h"
#include "base/print.h"

static const struct command table[] = {
        {"run", "[--policies DIR|FILE].. --prometheus URL [--dry-run] [--once]",
         "run the controller: observe, decide, act", cmd_run},
        {"plan", "[-f FILE.. | -n NAMESPACE | -A] --prometheus URL [--replicas N] [-o FORMAT] [--fail-on CONDITION]",
         "show the decision of each policy now, and why; writes nothing", cmd_plan},
        {"check", "FILE|DIR.. [-o FORMAT] [--fail-on CONDITION]", "check policy files: all errors at once, no network",
         cmd_check},
        {"test", "FILE|DIR.. [--run REGEX] [--diff] [--coverage] [--junit FILE]",
         "run policy unit tests: series in, decisions out, no network", cmd_test},
        {"step", "-f FILE [--policy NAMESPACE/NAME]", "run the engine as a filter: observations in, decisions out",
         cmd_step},
        {"backtest", "-f FILE --prometheus URL|--data FILE [--open-loop] [-o FORMAT] [--fail-on CONDITION]",
         "show what a policy would have cost on past demand", cmd_backtest},
        {"tune", "-f FILE --prometheus URL|--data FILE [--patch FILE] [-o FORMAT] [--fail-on CONDITION]",
         "find better numbers for a policy on past demand", cmd_tune},
        {"grant", "-f POOL [--explain]", "run the allocator of a pool as a filter: requests in, grants out", cmd_grant},
        {"detect", "[FILE | --job NAME --prometheus URL [-n NAMESPACE]] [-o FORMAT]",
         "find stragglers in training jobs, and memory leaks", cmd_detect},
        {"cost", "--prometheus URL [--since 30d] [--by WHAT] [-o FORMAT]",
         "show what the GPUs cost, and how much of that was wasted", cmd_cost},
        {"diagnose",
         "[WORKLOAD] [-n NAMESPACE | -A] --prometheus URL [--for 5m] [-o FORMAT] [-w] [--fail-on CONDITION]",
         "show why GPUs are slow or idle, and what to do", cmd_diagnose},
        {"trace", "FILE.json[.gz] [--fail-on CONDITION] [-o FORMAT]",
         "show when the GPUs of a profiler trace were idle, and why", cmd_trace},
        {"idle", "--prometheus URL [-n NAMESPACE | -A] [-o FORMAT]",
         "list idle GPUs: who holds them, since when, at what cost", cmd_idle},
        {"remediate",
         "[--act] [--prometheus URL] [--max-unavailable N] [--attempts N] [--clean DURATION] [--replay FILE]",
         "take failing GPUs out of service, and return them", cmd_remediate},
        {"get", "[KIND] [NAME..] [-n NAMESPACE | -A] [-o FORMAT] [-w]",
         "list policies, pools or remediations with their status", cmd_get},
        {"describe", "[NAME..] [-n NAMESPACE | -A] [-o FORMAT]",
         "show a policy in detail: signals, conditions, decisions, Events", cmd_describe},
        {"top", "[NAME..] [-n NAMESPACE | -A] [-o FORMAT]", "signals against their targets, most loaded first",
         cmd_top},
        {"capacity", "[NAME..] [-n NAMESPACE | -A | -f FILE..] [-o FORMAT]",
         "free GPUs; how many more replicas of each policy fit, and why", cmd_capacity},
        {"pause", "NAME.. [--reason TEXT]", "keep the replicas unchanged", cmd_pause},
        {"resume", "NAME..", "scale again", cmd_resume},
        {"ui", "[-n NAMESPACE] [--port PORT]", "open the status page of the leader", cmd_ui},
        {"explain", "FIELD", "describe a policy field: type, default, range", cmd_explain},
        {"convert", "FILE..", "convert HPAs, ScaledObjects, WatermarkPodAutoscalers to policies", cmd_convert},
        {"crd", "[KIND] [--cel] [-o FORMAT]", "print the CustomResourceDefinitions of gpuscale.dev", cmd_crd},
        {"completion", "bash|zsh|fish", "print a completion script for a shell", cmd_completion},
        {"version", "[-o json]", "print the version", cmd_version},
};

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
