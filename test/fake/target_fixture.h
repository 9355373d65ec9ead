// SPDX-License-Identifier: Apache-2.0
// A store of targets on a fake API server that has ns/Deployment/web=2 and ns/StatefulSet/db=3: the ground of the
// store's tests.
#ifndef GPUSCALE_TEST_FAKE_TARGET_FIXTURE_H
#define GPUSCALE_TEST_FAKE_TARGET_FIXTURE_H

#include <stdint.h>

#include "k8s/cache/target_store.h"
#include "test/fake/k8s_harness.h"

#define TARGET_FIXTURE_WAIT_MS 60000

struct target_world {
	struct harness h;
	struct target_store *store;
	int errors, oks; // what the store reported: a watch that fails, and its recovery
	char what[300];  // of the last of those
	int woken;       // free for a test's waiters
};

int target_fixture_setup(void **state); // cmocka
int target_fixture_teardown(void **state);
// An object of the API server: "NAMESPACE/KIND/NAME=REPLICAS".
void target_fixture_add(struct target_world *w, const char *object);
void target_fixture_acquire(struct target_world *w, const struct scale_ref *ref);
struct target_view target_fixture_get(struct target_world *w, const struct scale_ref *ref);
// Turns the loop until the target is in that state with that many replicas (-1: any).
struct target_view target_fixture_wait_for(struct target_world *w, const struct scale_ref *ref, enum target_state state,
                                           int replicas);
// That the API server has got so far, of all kinds.
uint64_t target_fixture_requests(const struct target_world *w);

#endif
