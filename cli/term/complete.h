// SPDX-License-Identifier: Apache-2.0
// `gpuscale __complete WORD..`: the candidates for the last word, from the tables of commands and flags. The scripts of
// `gpuscale completion` and kubectl_complete-gpuscale call it. It prints a line "CANDIDATE<TAB>DESCRIPTION" each, and
// at last ":4", or ":0" where the shell should offer files: the protocol of cobra, which kubectl reads.
#ifndef GPUSCALE_CLI_TERM_COMPLETE_H
#define GPUSCALE_CLI_TERM_COMPLETE_H

#define COMPLETE_COMMAND "__complete"

struct flag_parser;

// Prints the candidates for words[n - 1], the last of n words after the program's name. Returns the exit code.
int complete_words(int n, char **words);
// Prints the candidates for the last argument of a command whose arguments `parser` parses, and exits: args_parse()
// calls it when argv[0] is COMPLETE_COMMAND.
_Noreturn void complete_arguments(const struct flag_parser *parser, int argc, char **argv);

#endif
