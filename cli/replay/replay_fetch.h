// SPDX-License-Identifier: Apache-2.0
// Reads a recording from Prometheus: the signals of a policy and the replicas of its target over a past period, by
// range queries in pages. Memory: 8 bytes per cell, at most RECORDING_ROWS_MAX rows of one column per signal and three
// more, and one page at a time (PROMQL_RANGE_BYTES_MAX).
#ifndef GPUSCALE_CLI_REPLAY_REPLAY_FETCH_H
#define GPUSCALE_CLI_REPLAY_REPLAY_FETCH_H

#include <stdint.h>

#define REPLAY_PAGE_POINTS     11000 // of one range query: what Prometheus accepts
#define REPLAY_PAGE_POINTS_MIN 100   // smaller pages are not tried
#define REPLAY_DEMAND_COLUMN   "--demand"

struct buf;
struct err;
struct policy;
struct prometheus_options;
struct recording;

struct replay_fetch {
	const struct prometheus_options *prometheus;
	const struct policy *policy;
	const char *target; // of a fleet: NAME, or NAMESPACE/NAME; NULL: the policy has one target
	const char *demand; // expression of the column REPLAY_DEMAND_COLUMN; NULL: none
	int64_t since_ms;   // length of the period
	int64_t until_ms;   // its end; 0: now
	int64_t step_ms;
};

// Fills *ret with one row per step: a column per signal, called as the signal and reduced by its rule for several
// series, and the columns replicas and ready from kube-state-metrics, or from the
// metrics of the controller. Of a fleet, only the series of `target` count, those that the controller gives to that
// target. A point without a value is NaN; rows without any value at both ends are left out. Appends what is missing to
// `notes`, one line each. A page that is too large for the server or for the ceilings of promql.h is asked for
// again in smaller ones. Shows a progress bar. Returns 0, or -1 and *e: as connections_open() and promql_ask(),
// ERR_INPUT when there is no data at all or `target` is invalid, ERR_LIMIT, ERR_INTERNAL. The caller calls
// recording_done() in both cases.
int replay_fetch(const struct replay_fetch *f, struct recording *ret, struct buf *notes, struct err *e);

#endif
