// SPDX-License-Identifier: Apache-2.0
// Policies from files and folders as a source of the store: read at the start, when they change, and on demand.
// Unchanged files are not read again, and a file that is still being written is read when it no longer changes.
#ifndef GPUSCALE_CONTROLLER_SOURCE_FILE_SOURCE_H
#define GPUSCALE_CONTROLLER_SOURCE_FILE_SOURCE_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "policies/load/file_set.h"

struct clock;
struct event_base;
struct log;
struct metrics;
struct policy_store;

#define FILE_SOURCE_WATCH_MS   2000 // interval of the checks of the files
#define FILE_SOURCE_REST_MS    500  // a changed file is read when it has been the same for this long
#define FILE_SOURCE_REPORT_MAX (1024 * 1024)

struct file_source_options { // owns nothing
	struct event_base *loop;
	const struct clock *clock;
	struct policy_store *store;
	struct metrics *metrics;
	struct log *log;
	const char *const *paths;
	size_t n_paths;
	// Reads and logs what else is in the files, before the policies are read. When it returns -1 and *e, the
	// reading counts as failed; the first one is not done. May be NULL.
	int (*before)(void *arg, struct err *e);
	void *arg;
};

// Other files read it; file_source.c alone changes it.
struct file_source {
	struct file_source_options options;
	struct event timer;
	struct file_set set;
	struct buf report;         // one error of the last reading per line
	bool is_started;           // the first reading has ended
	bool failed;               // the last reading had errors
	uint64_t seen_fingerprint; // of the last reading, valid or not: an invalid file is not read again until it
	                           // changes
	uint64_t new_fingerprint;  // of the last check, when that differed
	bool is_lost;              // a path could not be read; logged
};

// Reads all files, and checks them every FILE_SOURCE_WATCH_MS; reads a changed file when it has been the same for
// FILE_SOURCE_REST_MS. Returns NULL and *e when a path cannot be read at all.
struct file_source *file_source_new(const struct file_source_options *options, struct err *e);
// The policies stay in the store. NULL is fine.
void file_source_free(struct file_source *f);
// Reads every file again at once. why: for the log.
void file_source_reload(struct file_source *f, const char *why);

// Logs each line of a report as an error.
void file_source_log(struct log *log, const char *message, const char *report);

#endif
