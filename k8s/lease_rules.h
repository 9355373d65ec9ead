// SPDX-License-Identifier: Apache-2.0
// Who holds a Lease, and for how long that is certain: the rules of election alone, without time, network or memory of
// their own. k8s/lease.h asks the API server by them; test/prop/ and test/unit/test_lease.c play them out.
//
// All times are milliseconds of this machine's boot clock (base/clock.h): the stamps inside a Lease are another
// machine's, and are only compared for having changed. Two rules make holders exclusive, however slow, stopped or wrong
// any process or clock is, as long as the clocks of two machines run at rates closer than duration to renew deadline:
//   1. A lease is ours until the time just before our last accepted write was sent, plus the renew deadline.
//   2. Somebody else's lease is taken by a write that names its resourceVersion, and only when that version was already
//      seen here a lease duration ago. So nobody has renewed it since, and by 1 its holder has given it up.
// client-go: tools/leaderelection/leaderelection.go (tryAcquireOrRenew, isLeaseValid); 1 is stricter there.
#ifndef GPUSCALE_K8S_LEASE_RULES_H
#define GPUSCALE_K8S_LEASE_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "k8s/lease_record.h"

struct err;

struct lease_timing {
	int64_t duration_ms;       // others wait this long without a change; 15 s
	int64_t renew_deadline_ms; // a holder that could not renew for this long stops; 10 s
	int64_t retry_period_ms;   // between two tries, and between two renewals; 2 s
};
#define LEASE_JITTER_RATIO 1.2 // the renew deadline must be longer than so many retry periods (client-go: JitterFactor)
// client-go: NewLeaderElector. ERR_USAGE naming the flags (--lease-duration, --renew-deadline, --retry-period).
int lease_timing_check(const struct lease_timing *t, struct err *e);
// How long a request about a lease may take, so that a second try fits before the deadline; what client-go's users set.
int64_t lease_request_timeout_ms(const struct lease_timing *t);
// How long one write under a lease may take: half of what lies between the end of a lease for its holder and for the
// others. The other half is for clocks that run at different rates.
int64_t lease_write_timeout_ms(const struct lease_timing *t);

struct lease_state {
	struct lease_timing timing;
	char identity[LEASE_IDENTITY_BYTES];
	// What the server said last.
	bool is_known, exists;
	struct lease_record record;
	int64_t seen_ms; // when its version was first seen here; when it does not exist: since when
	// What we have.
	bool is_held;
	char own_version[LEASE_VERSION_BYTES];                             // of our last accepted write
	char own_stamp[LEASE_STAMP_BYTES], tried_stamp[LEASE_STAMP_BYTES]; // of that one; of our last try
	int64_t tried_ms;                                                  // when that last try was sent
	int64_t valid_from_ms, valid_until_ms;
};

// identity is copied; it must fit.
void lease_state_init(struct lease_state *s, const struct lease_timing *timing, const char *identity);
// The server's word on the lease; NULL: there is none.
void lease_state_saw(struct lease_state *s, const struct lease_record *record, int64_t now_ms);
// Since when it may be taken, or from when on; INT64_MAX while nothing is known. A lease with our own name that we did
// not write is another's: of an earlier life, or of somebody with the same --identity.
int64_t lease_state_free_from_ms(const struct lease_state *s);
// A write is about to be sent: stamp is its renewTime. A lease that has to be created is ours only a lease duration
// after we know that it was, even when the reply is lost: somebody may still believe in one that was deleted. That the
// server accepted the creation (no 409) does not tell: it keeps no trace of an object that was deleted, and whoever
// held it finds out at its next renewal only, or at its renew deadline. So a first start waits; client-go's does not.
void lease_state_trying(struct lease_state *s, const char *stamp, bool creates, int64_t now_ms);
// The server accepted the write that was sent last and answered with this record.
void lease_state_wrote(struct lease_state *s, const struct lease_record *record, int64_t now_ms);
// Is the record the server showed last the outcome of our own last try, or of our last accepted write?
bool lease_state_is_own(const struct lease_state *s);
// We stop believing in it, for whatever reason.
void lease_state_drop(struct lease_state *s);
// How long it is certainly ours still; 0: it is not.
int64_t lease_state_valid_for_ms(const struct lease_state *s, int64_t now_ms);

#endif
