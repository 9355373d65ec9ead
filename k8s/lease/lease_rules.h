// SPDX-License-Identifier: Apache-2.0
// The rules of leader election on a Lease, as functions without clock, network or allocation: which process holds the
// lease, and for how long that is certain. k8s/lease/lease.h sends the requests; test/laws/ and
// test/unit/test_lease_rules.c check the rules.
//
// All times are in ms of this machine's boot clock (base/clock.h). The stamps inside a Lease come from other machines
// and are only compared for equality. Two rules guarantee a single holder, however slow, stopped or wrong a process or
// clock is, as long as the clock rates of two machines differ by less than the ratio of duration to renew deadline:
//   1. A process holds the lease until the time just before its last accepted write was sent, plus the renew deadline.
//   2. A process takes over a lease by a write with its resourceVersion, and only when it received that version at
//      least a lease duration ago. The lease was not renewed since then, so according to rule 1 its holder has stopped.
// client-go: tools/leaderelection/leaderelection.go (tryAcquireOrRenew, isLeaseValid); rule 1 is stricter there.
#ifndef GPUSCALE_K8S_LEASE_LEASE_RULES_H
#define GPUSCALE_K8S_LEASE_LEASE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "k8s/lease/lease_record.h"

struct err;

struct lease_timing {
	int64_t duration_ms;       // other processes take over a lease that is unchanged for this long; 15 s
	int64_t renew_deadline_ms; // a holder that cannot renew for this long stops; 10 s
	int64_t retry_period_ms;   // between two attempts, and between two renewals; 2 s
};
#define LEASE_JITTER_RATIO 1.2 // the renew deadline must be longer than so many retry periods (client-go: JitterFactor)
// Checks the timing like NewLeaderElector of client-go. Returns 0, or -1 and *e: ERR_USAGE, which names the flags
// (--lease-duration, --renew-deadline, --retry-period).
int lease_timing_check(const struct lease_timing *t, struct err *e);
// Returns the timeout in ms of a request for a lease: a second attempt fits before the deadline, as with client-go.
int64_t lease_request_timeout_ms(const struct lease_timing *t);
// Returns how many ms a write under a lease may take: half of the time between the expiry of a lease for its holder and
// for other processes. The other half allows for clocks that run at different rates.
int64_t lease_write_timeout_ms(const struct lease_timing *t);

struct lease_state {
	struct lease_timing timing;
	char identity[LEASE_IDENTITY_BYTES];
	// The last report of the server:
	bool is_known, exists;
	struct lease_record record;
	int64_t seen_ms; // when its version was first received; when it does not exist: since when
	// This process:
	bool is_held;
	char own_version[LEASE_VERSION_BYTES];                             // version of our last accepted write
	char own_stamp[LEASE_STAMP_BYTES], tried_stamp[LEASE_STAMP_BYTES]; // stamp of that write; of our last attempt
	int64_t tried_ms;                                                  // when that attempt was sent
	int64_t valid_from_ms, valid_until_ms;
};

// Initializes the state of a lease that is not held. identity is copied and must have less than LEASE_IDENTITY_BYTES
// bytes.
void lease_state_init(struct lease_state *s, const struct lease_timing *timing, const char *identity);
// Records the lease as the server returned it; NULL: it does not exist.
void lease_state_observe(struct lease_state *s, const struct lease_record *record, int64_t now_ms);
// Returns the time from which on the lease may be acquired; INT64_MAX before the first report. A lease with our
// identity that we did not write belongs to another process: an earlier one, or one with the same --identity.
int64_t lease_state_acquirable_at_ms(const struct lease_state *s);
// Records that a write with the renewTime `stamp` is about to be sent. A lease that this write creates is valid only a
// lease duration after the creation is known, even when the reply is lost: the holder of a deleted lease may not have
// noticed the deletion. That the server accepted the creation (no 409) proves nothing, because the server keeps no
// record of deleted objects, and their holder notices at its next renewal or at its renew deadline. So a first start
// waits; client-go does not.
void lease_state_trying(struct lease_state *s, const char *stamp, bool creates, int64_t now_ms);
// Records that the server accepted the last write and returned this record.
void lease_state_wrote(struct lease_state *s, const struct lease_record *record, int64_t now_ms);
// Returns whether the last reported record is the result of our last attempt or of our last accepted write.
bool lease_state_is_own(const struct lease_state *s);
// Stops holding the lease, for whatever reason.
void lease_state_drop(struct lease_state *s);
// Returns for how many ms this process certainly still holds the lease; 0: it does not.
int64_t lease_state_valid_for_ms(const struct lease_state *s, int64_t now_ms);

#endif
