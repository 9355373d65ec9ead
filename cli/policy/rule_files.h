// SPDX-License-Identifier: Apache-2.0
// Which rule files `gpuscale alerts` reads: files, folders of *.yaml, or by default the shipped ones.
#ifndef GPUSCALE_CLI_POLICY_RULE_FILES_H
#define GPUSCALE_CLI_POLICY_RULE_FILES_H

#include <stddef.h>

struct alert_rules;
struct arena;
struct err;

// Reads `paths[0..n)`; n 0: the shipped rules, which `make install` puts beside the program (../share/gpuscale/rules),
// or those of the source tree in which the program was built. Texts are in `a`. Returns 0, or -1 and *e: the errors of
// alert_rules_add, ERR_IO, ERR_INPUT for a folder without rule files, ERR_NOT_FOUND without shipped rules.
int rule_files_read(const char *const *paths, size_t n, struct alert_rules *r, struct arena *a, struct err *e);

#endif
