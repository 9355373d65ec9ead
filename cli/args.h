// SPDX-License-Identifier: Apache-2.0
// The arguments of a command: argp, and what it lacks. A flag that does not exist is told with the one that is probably
// meant, -h is --help, and wrong usage ends with EXIT_USAGE.
#ifndef GPUSCALE_CLI_ARGS_H
#define GPUSCALE_CLI_ARGS_H

struct argp;

// Parses argv (argv[0] is "gpuscale <name>") into input, as argp_parse() does. Does not return when the usage is wrong
// or help was asked for.
void args_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif
