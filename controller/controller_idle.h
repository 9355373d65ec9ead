// SPDX-License-Identifier: Apache-2.0
// Connects the rules about idle GPUs (controller/idle) with policies, queries and prices.
#ifndef GPUSCALE_CONTROLLER_CONTROLLER_IDLE_H
#define GPUSCALE_CONTROLLER_CONTROLLER_IDLE_H

#include <stdbool.h>
#include <stddef.h>

struct clock_watch;
struct err;
struct event_recorder;
struct idle_rules;
struct managed_policies;
struct price_follower;
struct status_writer;

struct controller_idle_options {      // nothing of it owned
	struct managed_policies *all; // with its conflicts and its ownership
	struct clock_watch *clock;
	struct price_follower *prices;
	struct status_writer *writer;  // NULL: a dry run
	struct event_recorder *events; // likewise
	bool reads_objects;            // also GPUIdleRule objects
	const char *series_matchers;   // of the series that are believed (promql/confine.h); NULL: nothing is scaled
};

struct controller_idle { // zero it before use
	struct controller_idle_options options;
	struct idle_rules *rules; // NULL: not opened
};

int controller_idle_open(struct controller_idle *i, const struct controller_idle_options *options, struct err *e);
// Reads the rules of the policy files again. If one is invalid, all stay as they were, and *e says so.
int controller_idle_read_files(struct controller_idle *i, const char *const *paths, size_t n_paths, struct err *e);

#endif
