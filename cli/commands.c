// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <string.h>

static const struct command table[] = {
        {"run", "[--policies DIR|FILE].. --prometheus URL [--dry-run] [--once]",
         "run the controller: observe, decide, act", cmd_run},
        {"plan", "-f FILE.. --prometheus URL [--replicas N] [-o FORMAT]",
         "show what would be done now, and why; writes nothing", cmd_plan},
        {"check", "FILE|DIR..", "check policy files: all errors at once, no network", cmd_check},
        {"test", "FILE|DIR.. [--run REGEX] [--diff] [--coverage] [--junit FILE]",
         "run policy unit tests: series in, decisions out, no network", cmd_test},
        {"step", "-f FILE [--policy NAMESPACE/NAME]", "the engine as a filter: lines of JSON in, decisions out",
         cmd_step},
        {"get", "[NAME..] [-n NAMESPACE | -A] [-o FORMAT] [-w]",
         "list the policies of a cluster, and why they are where they are", cmd_get},
        {"describe", "[NAME..] [-n NAMESPACE | -A]", "all about a policy: signals, conditions, decisions, Events",
         cmd_describe},
        {"top", "[NAME..] [-n NAMESPACE | -A]", "signals against their targets, most loaded first", cmd_top},
        {"pause", "NAME.. [--reason TEXT]", "keep the replicas as they are", cmd_pause},
        {"resume", "NAME..", "let them be scaled again", cmd_resume},
        {"explain", "FIELD", "describe a policy field: type, default, range", cmd_explain},
        {"convert", "FILE..", "make policies of HPAs, ScaledObjects, WatermarkPodAutoscalers", cmd_convert},
        {"crd", "[--cel] [-o FORMAT]", "print the CustomResourceDefinition of GPUAutoscalers", cmd_crd},
        {"completion", "bash|zsh|fish", "print a completion script for a shell", cmd_completion},
        {"version", "[-o json]", "print the version", cmd_version},
};

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
