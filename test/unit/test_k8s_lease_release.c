// SPDX-License-Identifier: Apache-2.0
// Goal: a released lease is free for other processes at once, even when the first attempt fails, and a release never
// takes a lease away from another process.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "k8s/lease/lease.h"
#include "test/fake/k8s_harness.h"
#include "test/fake/lease_holder.h"
#include "test/support/apart.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"

// How long the answer to a write is kept back: less than a request may take, and more than this process is held up
// between the arrival of the write and what the test does then.
#define HELD_UP_MS 5000

static void released_lease_is_acquired_at_once(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a, b;
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	lease_holder_start(&b, &h, "b");
	test_loop_for(h.loop, 300);
	int64_t given_up = test_now_ms();
	lease_release(a.lease);
	WAIT(b.gained, 1);
	assert_true(b.gained_ms - given_up < lease_test_timing.duration_ms);
	lease_free(a.lease);
	lease_free(b.lease);
	harness_stop(&h);
}

static void lease_changed_meanwhile_is_released(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	struct lease_record r;
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	lease_merge(&h, "{\"metadata\":{\"labels\":{\"seen\":\"yes\"}}}");
	lease_release(a.lease);
	WAIT(a.released, 1);
	lease_read(&h, &r);
	assert_string_equal(r.holder, "");
	lease_free(a.lease);
	harness_stop(&h);
}

static void lease_acquired_meanwhile_stays_with_its_holder(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	struct lease_record r;
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	lease_merge(&h, "{\"spec\":{\"holderIdentity\":\"thief\"}}");
	lease_release(a.lease);
	WAIT(a.released, 1);
	lease_read(&h, &r);
	assert_string_equal(r.holder, "thief");
	lease_free(a.lease);
	harness_stop(&h);
}

// A renewal is done but not answered, and before it can be looked at the lease is given up.
static void lease_with_an_unanswered_renewal_is_released(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	struct lease_record r;
	struct fake_counts counts;
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 2, .verb = "update", .lose = true});
	TEST_BECOMES(h.loop, (fake_apiserver_get_counts(h.server, &counts), counts.faults > 0));
	lease_release(a.lease);
	WAIT(a.released, 1);
	lease_read(&h, &r);
	assert_string_equal(r.holder, "");
	lease_free(a.lease);
	harness_stop(&h);
}

static uint64_t asked(const struct harness *h)
{
	return fake_apiserver_count(h->server, "update", "leases") + fake_apiserver_count(h->server, "get", "leases");
}

static void release_is_tried_a_few_times(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	lease_wait_until_fresh(&h, a.lease);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1000, .status = 503});
	uint64_t before = asked(&h);
	lease_release(a.lease);
	WAIT(a.released, 1);
	assert_in_range(asked(&h) - before, 2, 9); // the last of them may be a renewal
	before = asked(&h);
	test_loop_for(h.loop, 3 * lease_test_timing.retry_period_ms);
	assert_int_equal(asked(&h), before);
	lease_free(a.lease);
	harness_stop(&h);
}

// It may be another's from then on.
static void nothing_is_sent_once_the_lease_is_over(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	lease_world_start(&h);
	lease_put_free(&h);
	clock_init_manual(&h.clock, 1767603600000);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1000, .status = 503});
	uint64_t before = asked(&h);
	lease_release(a.lease);
	TEST_BECOMES(h.loop, a.errors == 1);
	clock_advance_ms(&h.clock, lease_test_timing.renew_deadline_ms);
	WAIT(a.released, 1);
	assert_int_equal(asked(&h), before + 1);
	lease_free(a.lease);
	harness_stop(&h);
}

// Other processes would take it at once, and the holder of a deleted lease may not have noticed the deletion.
static void lease_just_created_is_not_released_to_others(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	struct lease_record r;
	lease_world_start(&h);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .verb = "create", .delay_ms = HELD_UP_MS});
	lease_holder_start(&a, &h, "a");
	struct fake_counts counts;
	TEST_BECOMES(h.loop, (fake_apiserver_get_counts(h.server, &counts), counts.faults == 1));
	lease_set_candidate(a.lease, false);
	WAIT(a.released, 1);
	lease_read(&h, &r);
	assert_string_equal(r.holder, "a");
	lease_free(a.lease);
	harness_stop(&h);
}

static void unwanted_lease_is_released(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	struct lease_record r;
	lease_world_start(&h);
	lease_put_free(&h);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .verb = "update", .delay_ms = HELD_UP_MS});
	lease_holder_start(&a, &h, "a");
	struct fake_counts counts;
	TEST_BECOMES(h.loop, (fake_apiserver_get_counts(h.server, &counts), counts.faults == 1));
	lease_set_candidate(a.lease, false); // while it is being taken
	WAIT(a.released, 1);
	assert_int_equal(a.gained, 0);
	lease_read(&h, &r);
	assert_string_equal(r.holder, "");
	lease_free(a.lease);
	harness_stop(&h);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
	        cmocka_unit_test(released_lease_is_acquired_at_once),
	        cmocka_unit_test(lease_changed_meanwhile_is_released),
	        cmocka_unit_test(lease_acquired_meanwhile_stays_with_its_holder),
	        cmocka_unit_test(lease_with_an_unanswered_renewal_is_released),
	        cmocka_unit_test(release_is_tried_a_few_times),
	        cmocka_unit_test(nothing_is_sent_once_the_lease_is_over),
	        cmocka_unit_test(lease_just_created_is_not_released_to_others),
	        cmocka_unit_test(unwanted_lease_is_released),
	};
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
