// SPDX-License-Identifier: Apache-2.0
// Rewrites the renamed metrics in the queries of one file of policies, for `gpuscale check --fix`.
#ifndef GPUSCALE_CLI_POLICY_FIX_FILE_H
#define GPUSCALE_CLI_POLICY_FIX_FILE_H

struct buf;
struct err;

// Replaces, in the file at `path`, each metric that was renamed with the same meaning; every other byte stays as it is.
// The file is replaced as a whole: it keeps its owner, group and mode, a symbolic link stays
// one, and when another program saves it meanwhile, the saved text is fixed. A file without such a metric, and one that
// does not parse, is not written. Appends one line "file:line: old is now new" per replacement to `out`. Returns -1 and
// fills `e` when the file cannot be read or written.
int fix_file(const char *path, struct buf *out, struct err *e);

#endif
