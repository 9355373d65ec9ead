// SPDX-License-Identifier: Apache-2.0
// Goal: on a server that answers, refuses, is slow, loses replies and hangs, a process holds a lease exactly as long as
// the rules permit, and each error is reported once.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "k8s/lease/lease.h"
#include "k8s/lease/lease_private.h"
#include "test/fake/k8s_harness.h"
#include "test/fake/lease_holder.h"
#include "test/support/apart.h"
#include "test/support/loop.h"
#include "test/support/manual_clock.h"

static void free_lease_is_acquired_renewed_and_released(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	struct lease_record before, after;
	lease_world_start(&h);
	lease_put_free(&h);
	int64_t begun = test_now_ms();
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	assert_true(a.gained_ms - begun < lease_test_timing.duration_ms); // it does not wait for a duration
	lease_read(&h, &before);
	assert_string_equal(before.holder, "a");
	assert_int_equal(before.transitions, 4);
	assert_int_equal(before.duration_ms, lease_test_timing.duration_ms);
	test_loop_for(h.loop, lease_test_timing.duration_ms + 500);
	assert_int_equal(a.lost, 0);
	lease_read(&h, &after);
	assert_string_not_equal(after.renew_stamp, before.renew_stamp);
	assert_int_equal(after.transitions, 4);
	lease_release(a.lease);
	assert_int_equal(lease_valid_for_ms(a.lease), 0); // from the call on
	WAIT(a.released, 1);
	lease_read(&h, &after);
	assert_string_equal(after.holder, "");
	assert_int_equal(a.lost, 0); // its owner knows
	assert_int_equal(a.errors, 0);
	lease_free(a.lease);
	harness_stop(&h);
}

static void created_lease_is_held_a_duration_later(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	lease_world_start(&h);
	int64_t begun = test_now_ms();
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	assert_true(a.gained_ms - begun >= lease_test_timing.duration_ms);
	lease_free(a.lease);
	harness_stop(&h);
}

static void next_holder_waits_for_a_duration_without_change(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a, b;
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	lease_holder_start(&b, &h, "b");
	test_loop_for(h.loop, lease_test_timing.duration_ms + 500);
	assert_int_equal(b.gained, 0);
	assert_string_equal(b.lease->state.record.holder, "a");
	int64_t died = lease_wait_until_fresh(&h, a.lease);
	lease_free(a.lease);
	WAIT(b.gained, 1);
	assert_true(b.gained_ms - died >= lease_test_timing.duration_ms - 2 * lease_test_timing.retry_period_ms);
	struct lease_record r;
	lease_read(&h, &r);
	assert_int_equal(r.transitions, 5);
	lease_free(b.lease);
	harness_stop(&h);
}

static void changes_by_other_processes_are_noticed_at_the_next_renewal(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	lease_merge(&h, "{\"metadata\":{\"labels\":{\"seen\":\"yes\"}}}"); // nothing to us
	test_loop_for(h.loop, lease_test_timing.duration_ms + 200);
	assert_int_equal(a.lost, 0);
	lease_merge(&h, "{\"spec\":{\"holderIdentity\":\"thief\"}}");
	WAIT(a.lost, 1);
	assert_string_equal(a.why, "taken by thief");
	WAIT(a.gained, 2); // it was not renewed
	assert_int_equal(a.errors, 0);
	lease_free(a.lease);
	harness_stop(&h);
}

static void that_it_was_given_up_or_deleted_by_others_is_noticed_too(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	struct outcome o = {0};
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	lease_merge(&h, "{\"spec\":{\"holderIdentity\":\"\"}}");
	WAIT(a.lost, 1);
	assert_string_equal(a.why, "its holder was removed by another client");
	WAIT(a.gained, 2);
	harness_request(&h, "DELETE", LEASE, NULL, NULL, &o);
	WAIT(a.lost, 2);
	assert_string_equal(a.why, "deleted by another client");
	int64_t lost = a.lost_ms;
	WAIT(a.gained, 3);
	assert_true(a.gained_ms - lost >= lease_test_timing.duration_ms);
	assert_int_equal(a.errors, 0);
	lease_free(a.lease);
	harness_stop(&h);
}

// The time that counts is the boot clock's: no event needs to run for a lease to be over.
static void machine_that_slept_holds_nothing(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	lease_world_start(&h);
	lease_put_free(&h);
	clock_init_manual(&h.clock, 1767603600000);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	assert_int_equal(lease_valid_for_ms(a.lease), lease_test_timing.renew_deadline_ms);
	clock_advance_ms(&h.clock, lease_test_timing.renew_deadline_ms - 1);
	assert_int_equal(lease_valid_for_ms(a.lease), 1);
	clock_advance_ms(&h.clock, 1);
	assert_int_equal(lease_valid_for_ms(a.lease), 0);
	h.clock.manual_wall_ms -= 86400000; // the wall clock has no say
	assert_int_equal(lease_valid_for_ms(a.lease), 0);
	WAIT(a.lost, 1);
	assert_string_equal(a.why, "not renewed for 18000 ms");
	lease_free(a.lease);
	harness_stop(&h);
}

static void server_that_hangs_costs_the_lease_in_time(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	int64_t hung = lease_wait_until_fresh(&h, a.lease);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1000, .hang = true});
	WAIT(a.lost, 1);
	// on_lost may run later; lease_valid_for_ms decides.
	assert_true(a.lost_ms - hung >= FRESH_MS);
	assert_non_null(strstr(a.why, "not renewed for "));
	assert_non_null(strstr(a.why, NO_REPLY));
	fake_apiserver_fail(h.server, &(struct fake_fault){0});
	WAIT(a.gained, 2); // no process took it, so it is renewed
	assert_true(a.gained_ms - a.lost_ms < lease_test_timing.duration_ms);
	lease_free(a.lease);
	harness_stop(&h);
}

// Every answer that can come, at every place where one is waited for.
struct failure {
	const char *name;
	struct fake_fault fault;
	const char *error; // NULL: none
};
static const struct failure failures[] = {
        {"403", {.status = 403}, "HTTP 403"}, {"404", {.status = 404}, NULL},
        {"409", {.status = 409}, NULL},       {"410", {.status = 410}, "HTTP 410"},
        {"422", {.status = 422}, "HTTP 422"}, {"429", {.status = 429, .retry_after_s = 1}, "HTTP 429"},
        {"500", {.status = 500}, "HTTP 500"}, {"503", {.status = 503}, "HTTP 503"},
        {"hang", {.hang = true}, NO_REPLY},   {"cut", {.cut = true}, NULL}, // curl may have sent it again by itself
        {"lost reply", {.lose = true}, NULL},
};
#define N_FAILURES (sizeof failures / sizeof failures[0])
static const char *const requests[] = {"get", "create", "update"};
#define N_REQUESTS (sizeof requests / sizeof requests[0])
struct failing {
	const struct failure *failure;
	size_t request;
	char name[60];
};

static void failure_at_a_request_is_survived(void **state)
{
	const struct failing *c = *state;
	struct harness h;
	struct lease_holder a;
	struct fake_fault fault = c->failure->fault;
	struct fake_counts counts;
	fault.next = 1;
	fault.verb = requests[c->request];
	fault.resource = "leases";
	lease_world_start(&h);
	if (strcmp(fault.verb, "create") != 0)
		lease_put_free(&h);
	fake_apiserver_fail(h.server, &fault);
	lease_holder_start(&a, &h, "a");
	a.expected = c->failure->error;
	if (!test_loop_until(h.loop, &a.gained, 1, TEST_PATIENCE_MS))
		fail_msg("never gained; %s", a.error);
	fake_apiserver_get_counts(h.server, &counts);
	assert_int_equal(counts.faults, 1);
	if (c->failure->error && a.as_expected != 1) // once; what a machine too busy to answer adds is another error
		fail_msg("%d errors, %d as expected, the last \"%s\"", a.errors, a.as_expected, a.error);
	if (c->failure->error && !strstr(a.error, "lease default/x-0: "))
		fail_msg("which lease? \"%s\"", a.error);
	assert_int_equal(a.fine, a.errors);
	// The same at a renewal: it costs nothing, as there is time for another try. But a 404 says that the lease is
	// gone.
	if (strcmp(fault.verb, "update") == 0) {
		fake_apiserver_fail(h.server, &fault);
		test_loop_for(h.loop, lease_test_timing.renew_deadline_ms + 2 * lease_test_timing.retry_period_ms);
		if (a.lost != (fault.status == 404))
			fail_msg("at a renewal: lost %d times, %s", a.lost, a.why);
	}
	// And at the end: it is given up all the same, unless the server refuses for good.
	struct lease_record r;
	bool is_final = fault.status == 403 || fault.status == 404 || fault.status == 410 || fault.status == 422;
	lease_wait_until_fresh(&h, a.lease);
	fault.verb = "update";
	fake_apiserver_fail(h.server, &fault);
	lease_release(a.lease);
	if (!test_loop_until(h.loop, &a.released, 1, TEST_PATIENCE_MS))
		fail_msg("never released");
	fake_apiserver_fail(h.server, &(struct fake_fault){0});
	lease_read(&h, &r);
	assert_string_equal(r.holder, is_final ? "a" : "");
	lease_free(a.lease);
	harness_stop(&h);
}

// A write that succeeded although its reply was lost, also when curl repeats the request.
static void renewal_whose_answer_is_lost_twice_costs_nothing(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	lease_world_start(&h);
	lease_put_free(&h);
	lease_holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 2, .verb = "update", .lose = true});
	test_loop_for(h.loop, lease_test_timing.renew_deadline_ms + 2 * lease_test_timing.retry_period_ms);
	if (a.lost)
		fail_msg("lost: %s", a.why);
	lease_free(a.lease);
	harness_stop(&h);
}

static void lease_can_be_freed_while_a_request_is_in_flight(void **state)
{
	(void)state;
	struct harness h;
	struct lease_holder a;
	lease_world_start(&h);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .delay_ms = 200});
	lease_holder_start(&a, &h, "a");
	test_loop_for(h.loop, 50);
	lease_free(a.lease);
	test_loop_for(h.loop, 300);
	assert_int_equal(a.gained + a.errors, 0);
	lease_holder_start(&a, &h, "b"); // and when the client goes first
	test_loop_for(h.loop, 1);
	lease_free(a.lease);
	harness_stop(&h);
}

int main(void)
{
	static const struct CMUnitTest plain[] = {
	        cmocka_unit_test(free_lease_is_acquired_renewed_and_released),
	        cmocka_unit_test(created_lease_is_held_a_duration_later),
	        cmocka_unit_test(next_holder_waits_for_a_duration_without_change),
	        cmocka_unit_test(changes_by_other_processes_are_noticed_at_the_next_renewal),
	        cmocka_unit_test(that_it_was_given_up_or_deleted_by_others_is_noticed_too),
	        cmocka_unit_test(machine_that_slept_holds_nothing),
	        cmocka_unit_test(server_that_hangs_costs_the_lease_in_time),
	        cmocka_unit_test(renewal_whose_answer_is_lost_twice_costs_nothing),
	        cmocka_unit_test(lease_can_be_freed_while_a_request_is_in_flight),
	};
	enum { N_PLAIN = sizeof plain / sizeof plain[0] };
	struct failing failing[N_FAILURES * N_REQUESTS];
	struct CMUnitTest tests[N_PLAIN + N_FAILURES * N_REQUESTS];
	memcpy(tests, plain, sizeof plain);
	for (size_t i = 0; i < N_FAILURES * N_REQUESTS; i++) {
		struct failing *c = &failing[i];
		*c = (struct failing){.failure = &failures[i / N_REQUESTS], .request = i % N_REQUESTS};
		snprintf(c->name, sizeof c->name, "%s_at_%s_is_survived", c->failure->name, requests[c->request]);
		tests[N_PLAIN + i] = (struct CMUnitTest){
		        .name = c->name, .test_func = failure_at_a_request_is_survived, .initial_state = c};
	}
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
