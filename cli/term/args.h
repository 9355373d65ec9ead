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

// `gpuscale __complete WORD..`: the candidates for the last word, from the tables of commands and flags. The scripts of
// `gpuscale completion` and kubectl_complete-gpuscale call it. It prints a line "CANDIDATE<TAB>DESCRIPTION" each, and
// at last ":4", or ":0" where the shell should offer files: the protocol of cobra, which kubectl reads.
#define COMPLETE_COMMAND "__complete"
// Prints the candidates for words[n - 1], the last of n words after the program's name. Returns the exit code. A
// command is called with COMPLETE_COMMAND as argv[0]: args_parse() then prints the candidates for its last argument,
// and exits.
int complete_words(int n, char **words);

#endif
