// SPDX-License-Identifier: Apache-2.0
// The spending of a pool: the sum of its run rate over time, by calendar month and by day, both UTC. Plain data, so
// that it can be stored and continued by another process: no time is counted twice, because the record says until when
// it was counted.
#ifndef GPUSCALE_POLICIES_POOL_POOL_LEDGER_H
#define GPUSCALE_POLICIES_POOL_POOL_LEDGER_H

#include <stdint.h>

#define POOL_LEDGER_DAYS     8       // the current day and the seven before it
#define POOL_LEDGER_GAP_MS   60000   // after a longer time without a count, the pool was not observed
#define POOL_LEDGER_AHEAD_MS 3600000 // a record that was counted until later than that after now is invalid

// Amounts are in millionths of the currency. All zero without a record.
struct pool_ledger {
	int64_t since_ms, until_ms;         // the time that was counted, in ms since the epoch
	double rate_micro;                  // per hour, at until_ms
	double spent_micro;                 // in the month of until_ms, as far as it was recorded
	double assumed_micro;               // the part of spent_micro assumed for gaps
	double day_micro[POOL_LEDGER_DAYS]; // by day, that of until_ms first
};

// Counts the time from until_ms to now_ms at the run rate that was in use, and notes the rate that is in use from
// now on. A time of more than POOL_LEDGER_GAP_MS is a gap: it counts at the larger of the two rates, and as assumed.
// Starts the record when there is none, or an invalid one. A clock that was set back counts nothing until it has caught
// up.
void pool_ledger_count(struct pool_ledger *l, int64_t now_ms, double rate_micro);
// The mean run rate per hour of the last seven days, or of the age of the record when that is shorter; in the first
// hour the present rate.
double pool_ledger_rate_micro(const struct pool_ledger *l);

#endif
