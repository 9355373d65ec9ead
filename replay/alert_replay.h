// SPDX-License-Identifier: Apache-2.0
// A recording replayed through alert rules. gpuscale has no PromQL: the recording is written as a unit test of
// promtool, whose engine evaluates every rule at every step with the state of the alerts carried along, and the
// transitions of ALERTS that promtool prints become intervals.
#ifndef GPUSCALE_REPLAY_ALERT_REPLAY_H
#define GPUSCALE_REPLAY_ALERT_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

struct alert_rules;
struct buf;
struct err;
struct recording;

#define ALERT_STEPS_MAX        200000
#define ALERT_INTERVALS_MAX    100000
#define ALERT_BREACHES_MAX     100000
#define ALERT_TEST_BYTES_MAX   ((size_t)512 * 1024 * 1024)
#define ALERT_OUTPUT_BYTES_MAX ((size_t)256 * 1024 * 1024)
#define ALERT_MARK             "genuine_alert" // series that mark what an alert should report
#define ALERT_STALE_MS         60000           // a series that is absent for longer is marked stale
#define ALERT_NEVER            INT64_MIN

// One instance of an alert, from its first evaluation to its last.
struct alert_interval {
	const char *alert, *severity;
	const char *labels;  // "{UUID="a", gpu="0"}", without the name, the state and the severity; "" without labels
	int64_t pending_ms;  // since the epoch; ALERT_NEVER: it fired at once
	int64_t firing_ms;   // ALERT_NEVER: it did not fire
	int64_t resolved_ms; // ALERT_NEVER: it lasts until the recording ends
	bool is_judged;      // the recording marks what is genuine for this alert
	bool is_genuine;     // it began to fire during a breach, or one evaluation after its end
};

// A time during which an alert should fire: a mark of the recording.
struct alert_breach {
	const char *alert, *mark; // the mark: its series, with its labels
	int64_t onset_ms, end_ms;
	int64_t detected_ms; // the first time at which a matching alert fires; ALERT_NEVER: it is missed
};

struct alert_replay {
	struct arena arena;
	int64_t start_ms, end_ms, interval_ms;
	struct alert_interval *intervals; // in the order of their beginning; heap
	size_t n_intervals, cap_intervals;
	struct alert_breach *breaches; // heap
	size_t n_breaches, cap_breaches;
};

void alert_replay_init(struct alert_replay *r);
void alert_replay_done(struct alert_replay *r);

// Writes the test file of promtool to `out`: the series of `recording`, the files of `rules`, and one expectation per
// evaluation, every `interval_ms`. Sets the times of `r`. Returns 0, or -1 and *e (ERR_LIMIT, ERR_INPUT).
int alert_replay_write(struct alert_replay *r, const struct recording *recording, const struct alert_rules *rules,
                       int64_t interval_ms, struct buf *out, struct err *e);
// Reads what promtool printed for that file. Returns 0, or -1 and *e: ERR_INPUT with promtool's own words when the
// evaluation failed, ERR_LIMIT.
int alert_replay_read(struct alert_replay *r, const char *text, size_t len, struct err *e);
// Returns whether a column of a recording marks an alert; the rules do not read it.
bool alert_replay_is_mark(const char *name);
// Finds the breaches that `recording` marks: ALERT_MARK{alertname="A", ..} is above 0 while the alert A with these
// labels should fire. Judges the intervals by them. Returns 0, or -1 and *e (ERR_INPUT for a mark without alertname,
// ERR_LIMIT, ERR_INTERNAL).
int alert_replay_judge(struct alert_replay *r, const struct recording *recording, struct err *e);

// The figures of one alert, or of all (`alert` is NULL).
struct alert_summary {
	size_t n_pending; // times it was pending and did not fire
	size_t n_firing;  // times it fired
	size_t n_false;   // of these, judged and not genuine
	size_t n_breaches, n_missed;
	int64_t firing_ms;                  // the time it fired, all instances added
	double mean_detect_s, max_detect_s; // from the onset; NaN when nothing was found
};
void alert_replay_summarize(const struct alert_replay *r, const char *alert, struct alert_summary *ret);

#endif
