// SPDX-License-Identifier: Apache-2.0
// The controller process: takes policies from files and the API server, ticks each at its interval, serves, and ends
// cleanly.
#ifndef GPUSCALE_CONTROLLER_CONTROLLER_H
#define GPUSCALE_CONTROLLER_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/connections.h"
#include "controller/status_conditions.h"

struct controller;
struct err;
struct ha_options;
struct history;
struct log;
struct metrics;
struct event_recorder;
struct policy_watch;
struct query_hub;
struct status_writer;
struct target_store;
struct policy_entry;
struct reconciler;
struct serve_options;
struct shards;

struct controller_options {
	const char *const *policy_paths; // files and folders of policies
	size_t n_policy_paths;
	bool policies_from_cluster;        // GPUAutoscaler objects, too
	const char *policy_namespace;      // only those of this one; NULL: all
	const char *listen;                // NULL or "": no HTTP server
	const struct serve_options *serve; // how to serve, and what else; not owned; NULL: plain HTTP, nothing else
	bool dry_run, once;
	struct ha_options *election; // NULL: every policy is this process's. Not owned
	struct log *log;             // not owned
};

// connections and metrics: made by the command, not owned. With policies from files alone at least one must be valid,
// unless the paths hold none at all yet.
struct controller *controller_new(struct connections *connections, const struct controller_options *options,
                                  struct metrics *metrics, struct err *e);
// Runs until SIGTERM/SIGINT, or until every policy had one tick (once). False when one of those failed.
bool controller_run(struct controller *c);
// Ends what watches the API server. Before connections_cancel(); NULL is fine.
void controller_disconnect(struct controller *c);
// Gives up what this process owns and tells the server, which takes a request timeout at most. After
// connections_cancel(); NULL is fine.
void controller_resign(struct controller *c);
// Call after connections_cancel(), so that nothing is under way.
void controller_free(struct controller *c);

// ---- what the HTTP endpoints show ----
struct controller_view {
	struct reconciler *const *reconcilers; // in order of namespace, then name
	size_t n_reconcilers;
	size_t n_invalid; // policies whose newest version has faults
	size_t n_waiting; // valid, and not at work: somebody else drives their target
	size_t n_bad_files;
	const struct history *history;
	const struct metrics *metrics;
	struct query_hub *queries;
	bool dry_run, reload_failed;
	const char *reload_report;                   // the errors of the last reload, "" when it was good
	bool from_cluster, is_synced;                // policies are watched; they have been listed
	const char *watch_error;                     // why they cannot be watched now, "" when they can
	const struct policy_watch *watch;            // NULL: none
	const struct status_writer *status_writer;   // NULL: none
	const struct event_recorder *event_recorder; // NULL: none
	const struct shards *shards;                 // NULL: no election
	const struct target_store *targets;          // NULL: targets are asked for, not watched
	int64_t start_ms;                            // of this process
	int64_t changed_ms;                          // when something of all this became new last
	uint64_t revision;                           // another one then; begins anywhere
};
void controller_get_view(struct controller *c, struct controller_view *ret_view);
// Once it knows its policies and each had a tick, or failed to, it is ready; those that come later do not change that.
bool controller_is_ready(struct controller *c, size_t *ret_n_ticked);
// The policies of this process that are not at work, one after the other (NULL: the first), and why. NULL at the end.
const struct policy_entry *controller_next_idle(struct controller *c, const struct policy_entry *after, char *ret_why,
                                                size_t size);
// Why this one, which the above has named, is not: STATUS_CONFLICT, STATUS_INVALID, or STATUS_PHASE__COUNT while that
// is not known yet.
enum status_phase controller_why_idle(const struct policy_entry *e, char *ret_why, size_t size);

#endif
