// SPDX-License-Identifier: Apache-2.0
// Replaces a file that a person may be editing: no save of another program is lost, and a crash leaves the old file or
// the new one.
#ifndef GPUSCALE_CLI_TERM_REPLACE_FILE_H
#define GPUSCALE_CLI_TERM_REPLACE_FILE_H

#include <limits.h>
#include <stdbool.h>

struct buf;
struct err;

// A file that was opened to be replaced.
struct replace_file {
	char path[PATH_MAX]; // of the file itself, where the given path is a symbolic link
	int fd;              // open for reading; -1: not open
	bool has_lease;      // a program that opens the file for writing waits
	unsigned links;      // names of the file
};

// Opens the regular file at `path` and appends its content to `text`. Where the file system permits leases, other
// programs that open the file for writing wait until replace_file_close(). Returns 0, or -1 and *e: the errors of
// file_open() (base/file_open.h), ERR_LIMIT, ERR_IO, ERR_REJECTED when another program keeps the file open for writing
// for a second. Call replace_file_close() in both cases.
int replace_file_open(struct replace_file *f, const char *path, struct buf *text, struct err *e);

// Writes `text` to a new file with the owner, group and mode of the old one, and gives it the old one's name. Signals
// wait meanwhile, so no temporary file is left. Returns 0; 1 when another program has saved the file since it was
// opened, which is then as that program left it: open it again; or -1 and *e, when the file is as it was: ERR_REJECTED
// when the owner cannot be kept, ERR_IO. `was` is the text that replace_file_open() read.
int replace_file_write(struct replace_file *f, const struct buf *was, const struct buf *text, struct err *e);

void replace_file_close(struct replace_file *f);

#endif
