// SPDX-License-Identifier: Apache-2.0
// Groups of flags that several commands share: their hidden flags are described by `gpuscale help NAME` only.
#ifndef GPUSCALE_CLI_TERM_FLAG_GROUP_H
#define GPUSCALE_CLI_TERM_FLAG_GROUP_H

#include <stdbool.h>
#include <stddef.h>

// Prints the help of a group, "prometheus". Returns false if no group has that name.
bool flag_group_help(const char *name);
// Returns the name of a group, or NULL from the end of the table on.
const char *flag_group_name(size_t i);

#endif
