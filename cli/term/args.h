// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of a command with argp, and adds what argp lacks: an unknown flag is reported with the most
// similar one, -h is --help, a flag can be an environment variable, every command takes --color, and a usage error
// exits with EXIT_USAGE.
#ifndef GPUSCALE_CLI_TERM_ARGS_H
#define GPUSCALE_CLI_TERM_ARGS_H

struct argp;

// Parses argv (argv[0] is "gpuscale <name>") into `input`, like argp_parse(). Does not return on a usage error or if
// help was requested. The variable GPUSCALE_<NAME>_<FLAG>=VALUE is the flag --<flag>=VALUE in front of argv; a flag
// without an argument has the value true or false. At most 128 variables are read; `environ` is changed, and `input`
// may point into it.
void args_parse(const struct argp *argp, int argc, char **argv, void *input);

#endif
