// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of a command with argp, and adds what argp lacks: an unknown flag is reported with the most
// similar one, -h is --help, a usage error exits with EXIT_USAGE, and every command takes --color.
#ifndef GPUSCALE_CLI_TERM_ARGS_H
#define GPUSCALE_CLI_TERM_ARGS_H

struct argp;

// Parses argv (argv[0] is "gpuscale <name>") into `input`, like argp_parse(). Does not return on a usage error or if
// help was requested.
void args_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif
