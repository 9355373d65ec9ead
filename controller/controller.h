// SPDX-License-Identifier: Apache-2.0
// The controller process: takes policies from files and the API server, evaluates each at its interval, and exits
// cleanly. Its HTTP servers are controller/serve/endpoints.h.
#ifndef GPUSCALE_CONTROLLER_CONTROLLER_H
#define GPUSCALE_CONTROLLER_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/policy/managed_policy.h"
#include "controller/policy/policy_sync.h"
#include "controller/source/file_source.h"
#include "controller/source/object_watch.h"
#include "promql/promql_source.h"
#include "runtime/shard/clock_step_detector.h"

struct connections;
struct policy_pools;
struct err;
struct ha_options;
struct decision_history;
struct log;
struct metrics;
struct policy_watch;
struct price_book;
struct price_follower;

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
	struct managed_policies policies; // first, so that they are their controller
	struct connections *connections;
	struct controller_options options;
	struct file_source *folder;          // NULL: no policies from files
	struct policy_watch *watch;          // NULL: none from the API server
	struct policy_watch *scaled_objects; // NULL: ScaledObjects are not read
	struct policy_sync sync;
	struct early_checks early_checks;
	struct clock_step_detector clock_detector;
	struct event *clock_timer; // NULL: the clock is not checked in the background
	int64_t start_ms;          // wall clock at the start of the process
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
// Call before reading a time that is stored as a stamp. If the wall clock was set, moves all stamps that this process
// remembers by the step: an event a minute ago stays a minute ago, and no stamp hours in the future blocks scaling.
void controller_check_clock(struct controller *c);
// Stops the watches of the API server. Call before connections_cancel(); NULL is fine.
void controller_disconnect(struct controller *c);
// Releases the leases of this process, which takes one request timeout at most. Call after connections_cancel(); NULL
// is fine.
void controller_resign(struct controller *c);
// Call after connections_cancel(), so that no request is in flight.
void controller_free(struct controller *c);

// ---- what the HTTP endpoints show in addition to the parts ----
// Returns the prices; NULL: no policy needs them, or out of memory. Call before the revision of the policies is read.
const struct price_book *controller_prices(struct controller *c);
// Returns the errors of the policy files, one per line; "": none.
const char *controller_file_report(const struct controller *c);
// Returns why the policies of the API server cannot be listed or watched; "": they can, or are not watched.
const char *controller_watch_error(const struct controller *c);
// Returns whether the controller is ready: the policies that can be in force are, and each of them had a tick or failed
// to. Policies that come later do not change that.
bool controller_is_ready(struct controller *c, size_t *ret_n_ticked);

// ---- price_follower.c ----

// path: of a PriceBook, must live as long; NULL: the shipped prices, which are decoded when they are first needed.
// Returns NULL and *e unless the file holds a valid price book.
struct price_follower *price_follower_new(const char *path, struct log *log, struct err *e);
void price_follower_free(struct price_follower *f); // NULL is fine
// Looks at the file, at most once a second. The book is valid until the next call; NULL: out of memory.
const struct price_book *price_follower_book(struct price_follower *f, int64_t now_ms);

#endif
