// SPDX-License-Identifier: Apache-2.0
// The controller process: takes policies from files and the API server, evaluates each at its interval, and exits
// cleanly. Its HTTP servers are controller/serve/http_servers.h.
#ifndef GPUSCALE_CONTROLLER_CONTROLLER_H
#define GPUSCALE_CONTROLLER_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/clock_watch.h"
#include "controller/policy/early_check.h"
#include "controller/policy/managed_policy.h"
#include "controller/policy/policy_ownership.h"
#include "controller/policy/policy_sync.h"
#include "promql/promql_source.h"

struct connections;
struct file_source;
struct policy_pools;
struct err;
struct ha_options;
struct decision_history;
struct log;
struct metrics;
struct event_recorder;
struct policy_watch;
struct pool_summary;
struct pool_watch;
struct price_book;
struct query_hub;
struct status_writer;
struct target_store;
struct shards;

struct controller_options {
	const char *const *policy_paths; // files and folders of policies
	size_t n_policy_paths;
	bool policies_from_cluster;   // also GPUAutoscaler objects
	const char *policy_namespace; // only the objects of this namespace; NULL: all
	bool keep_sparklines;         // record the last hours of each policy for the status page
	const char *prices;           // file with a PriceBook; NULL: the shipped prices
	const char *state_dir;        // where the state of policies from files is saved; NULL: not saved
	bool dry_run, once;
	bool cluster_fleets;         // fleets of every namespace may select targets of other namespaces
	bool scaled_objects;         // also ScaledObjects of KEDA, unless its operator runs
	bool authenticates_triggers; // with the credentials of their TriggerAuthentications
	const char *keda_namespace;  // of KEDA's operator
	struct ha_options *election; // NULL: this process owns every policy. Not owned
	struct log *log;             // not owned
};

// The parts of the controller. Other files read them; controller.c alone changes them.
struct controller {
	struct connections *connections;
	struct controller_options options;
	struct file_source *folder;          // NULL: no policies from files
	struct policy_watch *watch;          // NULL: none from the API server
	struct policy_watch *scaled_objects; // NULL: ScaledObjects are not read
	struct managed_policies policies;
	struct policy_sync sync;
	struct early_checks early_checks;
	struct ownership ownership;
	struct clock_watch clock_watch;
	struct policy_pools *pools;
	struct decision_history *history;
	struct price_follower *prices;
	const struct price_book *shown_prices; // at the last view
	struct event *on_term, *on_int, *on_hup;
	size_t n_trimmed; // policies when memory was last returned to the system
	bool was_crowded; // memory is to be returned when the controller is quiet
	bool was_ready;
	bool events_failed;                        // logged
	bool sources_disagree[PROMQL_SOURCES_MAX]; // logged
};

// The caller owns connections and metrics. With policies from files alone, at least one must be valid, unless the paths
// hold none yet.
struct controller *controller_new(struct connections *connections, const struct controller_options *options,
                                  struct metrics *metrics, struct err *e);
// Runs until SIGTERM or SIGINT, or (once) until every policy had one tick. Returns false when one of those failed.
bool controller_run(struct controller *c);
// Stops the watches of the API server. Call before connections_cancel(); NULL is fine.
void controller_disconnect(struct controller *c);
// Releases the leases of this process, which takes one request timeout at most. Call after connections_cancel(); NULL
// is fine.
void controller_resign(struct controller *c);
// Call after connections_cancel(), so that no request is in flight.
void controller_free(struct controller *c);

// ---- what the HTTP endpoints show ----
struct controller_view {
	struct managed_policy *const *policies; // in force; sorted by namespace, then name
	size_t n_policies;
	size_t n_invalid; // policies whose newest version has faults
	size_t n_waiting; // valid policies that are not in force, because another autoscaler controls their target
	size_t n_conflicts_awaited; // of those, policies of which it is not known yet whether one does
	size_t n_bad_files;
	const struct decision_history *history;
	const struct metrics *metrics;
	struct query_hub *queries;
	bool dry_run, reload_failed;
	const char *reload_report;                   // the errors of the last reload; "": none
	bool from_cluster, is_synced;                // policies are watched; they have been listed
	const char *watch_error;                     // why the watch fails now; "": it does not
	const struct policy_watch *watch;            // NULL: none
	const struct policy_watch *scaled_objects;   // NULL: none
	const struct pool_watch *pool_watch;         // NULL: none
	const struct status_writer *status_writer;   // NULL: none
	const struct event_recorder *event_recorder; // NULL: none
	const struct shards *shards;                 // NULL: no election
	const struct target_store *targets;          // NULL: targets are read at each tick, not watched
	const struct price_book *prices;             // NULL: out of memory
	int64_t start_ms;                            // of this process
	int64_t changed_ms;                          // when something of all this changed last
	uint64_t revision;                           // changes with it; starts at a random number
};
void controller_get_view(struct controller *c, struct controller_view *ret_view);
// Fills ret with the pools, by name, and returns how many there are: at most POOLS_MAX (controller/pool/pools.h). The
// names are valid until the loop runs.
size_t controller_get_pools(struct controller *c, struct pool_summary *ret);
// Returns whether the controller is ready: the policies that can be in force are, and each of them had a tick or failed
// to. Policies that come later do not change that.
bool controller_is_ready(struct controller *c, size_t *ret_n_ticked);
#endif
