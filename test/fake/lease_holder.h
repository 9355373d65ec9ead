// SPDX-License-Identifier: Apache-2.0
// One who seeks and holds a lease on the fake API server, and what happens to it: for the tests of k8s/lease/lease.h.
// cmocka.h is to be included before.
#ifndef GPUSCALE_TEST_FAKE_LEASE_HOLDER_H
#define GPUSCALE_TEST_FAKE_LEASE_HOLDER_H

#include <stdint.h>

#include "base/err.h"
#include "k8s/lease/lease.h"
#include "test/fake/k8s_harness.h"
#include "test/support/loop.h"

#define LEASE "/apis/coordination.k8s.io/v1/namespaces/default/leases/x-0"

// Long enough for a machine that is far too busy to renew in time, and to be answered: the tests wait side by side.
extern const struct lease_timing lease_test_timing;
#define NO_REPLY "no complete reply within 9000 ms" // half of the renew deadline

struct lease_holder {
	struct harness *h;
	struct lease *lease;
	const char *expected; // of errors: those that say so are counted apart
	int gained, lost, released, errors, as_expected, fine;
	int64_t gained_ms, lost_ms;
	char why[600], error[ERR_MSG_BYTES];
};

// The fake server, and a client as shards make it.
void lease_world_start(struct harness *h);
// Begins to seek it.
void lease_holder_start(struct lease_holder *o, struct harness *h, const char *identity);
// Creates a lease without a holder, as a clean exit leaves it.
void lease_put_free(struct harness *h);
void lease_read(struct harness *h, struct lease_record *ret_record);
// Patches it, as another client would.
void lease_merge(struct harness *h, const char *patch);

// Turns the loop until the lease has just been renewed; returns a moment from which on it is valid so long (and a
// little more): a process that was held up may see it with less left.
#define FRESH_MS (lease_test_timing.renew_deadline_ms - 2 * lease_test_timing.retry_period_ms)
int64_t lease_wait_until_fresh(struct harness *h, const struct lease *lease);

#define WAIT(counter, n)                                                                                               \
	do {                                                                                                           \
		if (!test_loop_until(h.loop, &(counter), (n), TEST_PATIENCE_MS))                                       \
			fail_msg("%s is %d, not %d", #counter, (counter), (n));                                        \
	} while (0)

#endif
