// SPDX-License-Identifier: Apache-2.0
// The pods whose memory, of the GPU or of the container, grows until it reaches its limit, from its history in a
// Prometheus, as `gpuscale detect` finds them (insight/leak.h). A round counts as a whole: when a query fails or its
// answer is incomplete, nothing is found.
#ifndef GPUSCALE_CONTROLLER_REMEDY_LEAK_FEED_H
#define GPUSCALE_CONTROLLER_REMEDY_LEAK_FEED_H

#include <stddef.h>
#include <stdint.h>

struct err;
struct leak_feed;
struct promql_source;

#define LEAK_FEED_SINCE_MS (18LL * 60 * 60 * 1000) // the history that is read: LEAK_WINDOWS of 60 minutes, and two more
#define LEAK_FEED_STEP_MS  (2LL * 60 * 1000)
#define LEAK_FEED_FRESH_MS (10LL * 60 * 1000) // a pod without a later value is not reported
#define LEAK_FEED_MAX      256                // pods of a round; further ones come in later rounds
#define LEAK_POD_BYTES     318                // namespace/name

struct leak_finding {
	char pod[LEAK_POD_BYTES]; // namespace/name
	const char *memory;       // whose memory grows: "GPU", "container"
	double bytes_per_hour, hours_to_limit;
};

struct leak_feed_options {
	struct promql_source *source; // not owned
	double within_hours;          // leaks with a longer time to their limit are left out
	// A round is complete; error: why nothing is known.
	void (*done)(void *arg, const struct err *error);
	void *arg;
};

// Returns NULL and *e when memory is exhausted.
struct leak_feed *leak_feed_new(const struct leak_feed_options *options, struct err *e);
// Call after the source was canceled. NULL is fine.
void leak_feed_free(struct leak_feed *f);
// Starts a round as of now_ms (wall clock). Then `done` runs exactly once, from the loop or from this call.
void leak_feed_start(struct leak_feed *f, int64_t now_ms);
// Returns the findings of the last round, one per pod, the nearest limit first; none after an error. Valid until the
// next round.
const struct leak_finding *leak_feed_findings(const struct leak_feed *f, size_t *ret_n);

#endif
