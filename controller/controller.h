// SPDX-License-Identifier: Apache-2.0
// The controller process: loads policies, ticks each at its interval, reloads, serves, and ends cleanly.
#ifndef GPUSCALE_CONTROLLER_CONTROLLER_H
#define GPUSCALE_CONTROLLER_CONTROLLER_H

#include <stdbool.h>
#include <stddef.h>

#include "controller/connections.h"
#include "controller/policy_set.h"

struct controller;
struct err;
struct history;
struct log;
struct metrics;
struct query_hub;
struct reconciler;

struct controller_options {
	const char *const *policy_paths;
	size_t n_policy_paths;
	const char *listen; // NULL or "": no HTTP server
	bool dry_run, once;
	struct log *log; // not owned
};

// connections and metrics: made by the command, not owned. At least one policy must be valid, unless the paths hold
// none at all yet.
struct controller *controller_new(struct connections *connections, const struct controller_options *options,
                                  struct metrics *metrics, struct err *e);
// Runs until SIGTERM/SIGINT, or until every policy had one tick (once). Returns the exit code.
int controller_run(struct controller *c);
// Call after connections_cancel(), so that nothing is under way.
void controller_free(struct controller *c);

// ---- what the HTTP endpoints show ----
struct controller_view {
	struct reconciler *const *reconcilers;
	size_t n_reconcilers;
	const struct policy_set *policies;
	const struct history *history;
	const struct metrics *metrics;
	struct query_hub *queries;
	bool dry_run, reload_failed;
	const char *reload_report; // the errors of the last reload, "" when it was good
};
void controller_get_view(const struct controller *c, struct controller_view *ret_view);

#endif
