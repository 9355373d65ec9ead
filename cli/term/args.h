// SPDX-License-Identifier: Apache-2.0
// Parses the arguments of a command by a table of flags, and adds what argp lacks: an unknown flag is reported with the
// most similar one, -h is --help, a flag can be an environment variable, every command takes --color, and a usage error
// exits with EXIT_USAGE.
#ifndef GPUSCALE_CLI_TERM_ARGS_H
#define GPUSCALE_CLI_TERM_ARGS_H

struct flag_set;

// Parses argv (argv[0] is "gpuscale <name>") into `options`, which has its defaults. Does not return on a usage error
// or if help was requested. The variable GPUSCALE_<NAME>_<FLAG>=VALUE is the flag --<flag>=VALUE in front of argv; a
// flag without an argument has the value true or false. A variable that names no flag is a usage error of a service,
// and a warning of any other command. At most 128 variables are read; `environ` is changed, and `options` may point
// into it.
void args_parse(const struct flag_set *command, int argc, char **argv, void *options);

#endif
