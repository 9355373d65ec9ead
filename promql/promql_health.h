// SPDX-License-Identifier: Apache-2.0
// Judges whether a source is available, from the outcomes of its queries. Pure: no clock, no I/O.
//
// A failed query counts against the source only when the source sent no response since the query was sent. A failed
// query alone never marks the source down: the client then sends a cheap query, the probe (`vector(1)`), and the source
// is down when the probe fails as well. So bad queries, however many, cannot mark a source down that responds to its
// probe. Some gateways refuse the probe and accept everything else. A failed probe counts only after a response to a
// probe, or while no query ever was. Where it does not count, a source is down when two distinct queries failed, each
// sent alone, or when one of them failed PROMQL_HEALTH_FAILURES times.
#ifndef GPUSCALE_PROMQL_PROMQL_HEALTH_H
#define GPUSCALE_PROMQL_PROMQL_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#define PROMQL_HEALTH_OUTCOMES 5 // remembered
#define PROMQL_HEALTH_FAILURES 3

enum promql_health_state {
	PROMQL_UP,
	PROMQL_DEGRADED, // some of the last queries failed
	PROMQL_DOWN,     // only probes are sent
	PROMQL_HEALTH__COUNT
};
extern const char *const promql_health_names[PROMQL_HEALTH__COUNT]; // "up", "degraded", "down"

struct promql_health { // zeroed: up, nothing known
	enum promql_health_state state;
	uint8_t failed;   // a bit per outcome, the newest lowest
	uint64_t accuser; // the last query that counted against the source; 0: none since the last response
	uint8_t accused;  // failures of queries sent alone, while the probe does not count
	bool query_answered, probe_answered; // ever
};

// Records a response, including an error reported by the server. is_probe: to the probe.
void promql_health_answered(struct promql_health *h, bool is_probe);
// Records a failure that may be the source's. `query` identifies the query and is not 0. is_alone: the request carried
// no other query. answered_since: the source responded to a query after this one was sent.
void promql_health_failed(struct promql_health *h, uint64_t query, bool is_alone, bool answered_since);
void promql_health_probe_failed(struct promql_health *h, bool answered_since);

#endif
