// SPDX-License-Identifier: Apache-2.0
// Policies from files and folders as a source of the store: read at the start, when they change and on demand. What did
// not change is neither read nor put again, and what is still being written is left until it rests.
#ifndef GPUSCALE_CONTROLLER_POLICY_FOLDER_H
#define GPUSCALE_CONTROLLER_POLICY_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

struct clock;
struct err;
struct event_base;
struct log;
struct metrics;
struct policy_folder;
struct policy_store;

#define POLICY_FOLDER_WATCH_MS   2000 // how often the files are looked at
#define POLICY_FOLDER_REST_MS    500  // for so long they must not have changed to be read
#define POLICY_FOLDER_REPORT_MAX (1024 * 1024)

struct policy_folder_options { // nothing of it owned
	struct event_base *loop;
	const struct clock *clock;
	struct policy_store *store;
	struct metrics *metrics;
	struct log *log;
	const char *const *paths;
	size_t n_paths;
};

// Reads once, and looks again every POLICY_FOLDER_WATCH_MS; what has changed is read when it has been the same for
// POLICY_FOLDER_REST_MS. NULL and *e when a path cannot be read at all.
struct policy_folder *policy_folder_new(const struct policy_folder_options *options, struct err *e);
// The policies stay in the store. NULL is fine.
void policy_folder_free(struct policy_folder *f);
// Reads every file again, at once; why: for the log.
void policy_folder_reload(struct policy_folder *f, const char *why);

struct policy_folder_state {
	size_t n_policies, n_bad_files, n_errors;
	bool failed;        // the last reading had errors
	const char *report; // them, a line each; "" when there are none
};
void policy_folder_get_state(const struct policy_folder *f, struct policy_folder_state *ret_state);

#endif
