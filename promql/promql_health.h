// SPDX-License-Identifier: Apache-2.0
// Is a source to be believed in? A verdict over its last outcomes, so that one bad answer condemns nobody and one good
// one acquits nobody. Pure: no clock, no I/O.
#ifndef GPUSCALE_PROMQL_PROMQL_HEALTH_H
#define GPUSCALE_PROMQL_PROMQL_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#define PROMQL_HEALTH_OUTCOMES 5 // remembered
#define PROMQL_HEALTH_FAILURES 3 // of these: down
#define PROMQL_HEALTH_PROBES   2 // answered while down: up again

enum promql_health_state {
	PROMQL_UP,
	PROMQL_DEGRADED, // some of the last queries failed
	PROMQL_DOWN,     // only probes are sent
	PROMQL_HEALTH__COUNT
};
const char *promql_health_name(enum promql_health_state s); // "up", "degraded", "down"

struct promql_health { // zeroed: up, nothing known
	enum promql_health_state state;
	uint8_t failed; // a bit per outcome, the newest lowest
	uint8_t n_answered;
	uint64_t query[PROMQL_HEALTH_OUTCOMES]; // that had the outcome, the newest first
};

// `query` tells one query from another.
// A query was answered, well or with a refusal of its own.
void promql_health_answered(struct promql_health *h, uint64_t query);
// The source failed a query. others_answered: it answered another one in the meantime, so it is not away; timed_out:
// nothing came within the deadline, which may be the query's fault. The same query failing again while others are
// answered is no news.
void promql_health_failed(struct promql_health *h, uint64_t query, bool others_answered, bool timed_out);

#endif
