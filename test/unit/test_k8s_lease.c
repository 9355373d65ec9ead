// SPDX-License-Identifier: Apache-2.0
// Goal: on a server that answers, refuses, is slow, loses what it says and hangs, a lease is held when it is ours and
// not a moment longer, and what is wrong is said once.
#include <event2/event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "k8s/lease.h"
#include "test/fake/k8s_harness.h"
#include "test/support/apart.h"
#include "test/support/loop.h"

#define LEASE "/apis/coordination.k8s.io/v1/namespaces/default/leases/x-0"

// Long enough for a machine that is far too busy to renew in time, and to be answered: the tests wait side by side.
static const struct lease_timing timing = {.duration_ms = 24000, .renew_deadline_ms = 18000, .retry_period_ms = 1000};
#define NO_REPLY "no complete reply within 9000 ms" // half of the renew deadline

struct holder {
	struct harness *h;
	struct lease *lease;
	const char *expected; // of errors: those that say so are counted apart
	int gained, lost, released, errors, as_expected, fine;
	int64_t gained_ms, lost_ms;
	char why[600], error[ERR_MSG_BYTES];
};

static void on_gained(void *arg)
{
	struct holder *o = arg;
	o->gained++;
	o->gained_ms = test_now_ms();
	assert_true(lease_valid_for_ms(o->lease) > 0);
}
static void on_lost(void *arg, const char *why)
{
	struct holder *o = arg;
	o->lost++;
	o->lost_ms = test_now_ms();
	snprintf(o->why, sizeof o->why, "%s", why);
	assert_int_equal(lease_valid_for_ms(o->lease), 0);
}
static void on_released(void *arg)
{
	((struct holder *)arg)->released++;
}
static void on_error(void *arg, const struct err *error)
{
	struct holder *o = arg;
	o->errors += error != NULL;
	o->as_expected += error && o->expected && strstr(error->msg, o->expected);
	o->fine += error == NULL;
	if (error)
		snprintf(o->error, sizeof o->error, "%s", error->msg);
}

static void holder_start(struct holder *o, struct harness *h, const char *identity)
{
	struct err e = {0};
	*o = (struct holder){.h = h};
	struct lease_options options = {.client = h->client,
	                                .loop = h->loop,
	                                .clock = &h->clock,
	                                .namespace_name = "default",
	                                .name = "x-0",
	                                .identity = identity,
	                                .timing = timing,
	                                .callbacks = {on_gained, on_lost, on_released, on_error},
	                                .arg = o};
	o->lease = lease_new(&options, &e);
	if (!o->lease)
		fail_msg("%s", e.msg);
	lease_want(o->lease, true);
}

static void start(struct harness *h)
{
	struct err e = {0};
	harness_start(h, NULL);
	struct http_client_options http = {.loop = h->loop, .no_http2 = true};
	h->http = http_client_new(&http, &e);
	struct k8s_client_options client = {.loop = h->loop,
	                                    .http = h->http,
	                                    .clock = &h->clock,
	                                    .config = &h->config,
	                                    .timeout_ms = lease_request_timeout_ms(&timing),
	                                    .max_attempts = 1};
	h->client = k8s_client_new(&client, &e);
	if (!h->client)
		fail_msg("%s", e.msg);
}

// A lease that nobody holds: what an orderly end leaves.
static void put_free_lease(struct harness *h)
{
	struct err e = {0};
	if (fake_apiserver_put(h->server,
	                       "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":"
	                       "\"x-0\",\"namespace\":\"default\"},\"spec\":{\"holderIdentity\":\"\","
	                       "\"leaseTransitions\":3}}",
	                       &e) < 0)
		fail_msg("%s", e.msg);
}

static void read_lease(struct harness *h, struct lease_record *r)
{
	struct outcome o = {0};
	struct err e = {0};
	harness_request(h, "GET", LEASE, NULL, NULL, &o);
	if (o.is_error || lease_record_decode(o.body, strlen(o.body), r, &e) < 0)
		fail_msg("%s%s", o.error.msg, e.msg);
}

static void merge_lease(struct harness *h, const char *patch)
{
	struct outcome o = {0};
	harness_request(h, "PATCH", LEASE, "application/merge-patch+json", patch, &o);
	if (o.is_error)
		fail_msg("%s", o.error.msg);
}

#define WAIT(counter, n)                                                                                               \
	do {                                                                                                           \
		if (!test_loop_until(h.loop, &(counter), (n), TEST_PATIENCE_MS))                                       \
			fail_msg("%s is %d, not %d", #counter, (counter), (n));                                        \
	} while (0)

// Turns the loop until the lease has just been renewed; returns a moment from which on it is valid so long (and a
// little more): a process that was held up may see it with less left.
#define FRESH_MS (timing.renew_deadline_ms - 2 * timing.retry_period_ms)
static int64_t wait_until_fresh(struct harness *h, const struct lease *lease)
{
	int64_t now, end = test_now_ms() + TEST_PATIENCE_MS;
	while (now = test_now_ms(), lease_valid_for_ms(lease) < FRESH_MS && now < end)
		test_loop_for(h->loop, 2);
	assert_true(now < end);
	return now;
}

static void a_free_lease_is_taken_renewed_and_given_up(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	struct lease_record before, after;
	start(&h);
	put_free_lease(&h);
	int64_t begun = test_now_ms();
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	assert_true(a.gained_ms - begun < timing.duration_ms); // which nobody waits for
	read_lease(&h, &before);
	assert_string_equal(before.holder, "a");
	assert_int_equal(before.transitions, 4);
	assert_int_equal(before.duration_ms, timing.duration_ms);
	test_loop_for(h.loop, timing.duration_ms + 500);
	assert_int_equal(a.lost, 0);
	read_lease(&h, &after);
	assert_string_not_equal(after.renew_stamp, before.renew_stamp);
	assert_int_equal(after.transitions, 4);
	lease_release(a.lease);
	assert_int_equal(lease_valid_for_ms(a.lease), 0); // from the call on
	WAIT(a.released, 1);
	read_lease(&h, &after);
	assert_string_equal(after.holder, "");
	assert_int_equal(a.lost, 0); // its owner knows
	assert_int_equal(a.errors, 0);
	lease_free(a.lease);
	harness_stop(&h);
}

static void one_that_had_to_be_made_is_ours_a_duration_later(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	start(&h);
	int64_t begun = test_now_ms();
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	assert_true(a.gained_ms - begun >= timing.duration_ms);
	lease_free(a.lease);
	harness_stop(&h);
}

static void the_next_one_waits_for_a_duration_without_change(void **state)
{
	(void)state;
	struct harness h;
	struct holder a, b;
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	holder_start(&b, &h, "b");
	test_loop_for(h.loop, timing.duration_ms + 500);
	assert_int_equal(b.gained, 0);
	assert_string_equal(lease_holder(b.lease), "a");
	int64_t died = wait_until_fresh(&h, a.lease);
	lease_free(a.lease);
	WAIT(b.gained, 1);
	assert_true(b.gained_ms - died >= timing.duration_ms - 2 * timing.retry_period_ms);
	struct lease_record r;
	read_lease(&h, &r);
	assert_int_equal(r.transitions, 5);
	lease_free(b.lease);
	harness_stop(&h);
}

static void one_that_is_given_up_is_taken_at_once(void **state)
{
	(void)state;
	struct harness h;
	struct holder a, b;
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	holder_start(&b, &h, "b");
	test_loop_for(h.loop, 300);
	int64_t given_up = test_now_ms();
	lease_release(a.lease);
	WAIT(b.gained, 1);
	assert_true(b.gained_ms - given_up < timing.duration_ms);
	lease_free(a.lease);
	lease_free(b.lease);
	harness_stop(&h);
}

static void what_others_do_to_it_is_noticed_at_the_next_renewal(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	merge_lease(&h, "{\"metadata\":{\"labels\":{\"seen\":\"yes\"}}}"); // nothing to us
	test_loop_for(h.loop, timing.duration_ms + 200);
	assert_int_equal(a.lost, 0);
	merge_lease(&h, "{\"spec\":{\"holderIdentity\":\"thief\"}}");
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
	struct holder a;
	struct outcome o = {0};
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	merge_lease(&h, "{\"spec\":{\"holderIdentity\":\"\"}}");
	WAIT(a.lost, 1);
	assert_string_equal(a.why, "its holder was removed by somebody else");
	WAIT(a.gained, 2);
	harness_request(&h, "DELETE", LEASE, NULL, NULL, &o);
	WAIT(a.lost, 2);
	assert_string_equal(a.why, "deleted by somebody else");
	int64_t lost = a.lost_ms;
	WAIT(a.gained, 3);
	assert_true(a.gained_ms - lost >= timing.duration_ms);
	assert_int_equal(a.errors, 0);
	lease_free(a.lease);
	harness_stop(&h);
}

// The time that counts is the boot clock's: no event needs to run for a lease to be over.
static void a_machine_that_slept_holds_nothing(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	start(&h);
	put_free_lease(&h);
	clock_init_manual(&h.clock, 1767603600000);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	assert_int_equal(lease_valid_for_ms(a.lease), timing.renew_deadline_ms);
	clock_advance_ms(&h.clock, timing.renew_deadline_ms - 1);
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

static void a_server_that_hangs_costs_the_lease_in_time(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	int64_t hung = wait_until_fresh(&h, a.lease);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1000, .hang = true});
	WAIT(a.lost, 1);
	// When it is told; what counts is what lease_valid_for_ms says.
	assert_true(a.lost_ms - hung >= FRESH_MS);
	assert_non_null(strstr(a.why, "not renewed for "));
	assert_non_null(strstr(a.why, NO_REPLY));
	fake_apiserver_fail(h.server, &(struct fake_fault){0});
	WAIT(a.gained, 2); // nobody took it: it is still ours to renew
	assert_true(a.gained_ms - a.lost_ms < timing.duration_ms);
	lease_free(a.lease);
	harness_stop(&h);
}

// Every answer that can come, at every place where one is waited for.
struct failure {
	const char *name;
	struct fake_fault fault;
	const char *said; // NULL: nothing to be said
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

static void a_failure_at_a_request_is_survived(void **state)
{
	const struct failing *c = *state;
	struct harness h;
	struct holder a;
	struct fake_fault fault = c->failure->fault;
	struct fake_counts counts;
	fault.next = 1;
	fault.verb = requests[c->request];
	fault.resource = "leases";
	start(&h);
	if (strcmp(fault.verb, "create") != 0)
		put_free_lease(&h);
	fake_apiserver_fail(h.server, &fault);
	holder_start(&a, &h, "a");
	a.expected = c->failure->said;
	if (!test_loop_until(h.loop, &a.gained, 1, TEST_PATIENCE_MS))
		fail_msg("never gained; %s", a.error);
	fake_apiserver_get_counts(h.server, &counts);
	assert_int_equal(counts.faults, 1);
	if (c->failure->said && a.as_expected != 1) // once; what a machine too busy to answer adds is another error
		fail_msg("%d errors, %d as expected, the last \"%s\"", a.errors, a.as_expected, a.error);
	if (c->failure->said && !strstr(a.error, "lease default/x-0: "))
		fail_msg("which lease? \"%s\"", a.error);
	assert_int_equal(a.fine, a.errors);
	// The same at a renewal: it costs nothing, as there is time for another try. But a 404 says that the lease is
	// gone.
	if (strcmp(fault.verb, "update") == 0) {
		fake_apiserver_fail(h.server, &fault);
		test_loop_for(h.loop, timing.renew_deadline_ms + 2 * timing.retry_period_ms);
		if (a.lost != (fault.status == 404))
			fail_msg("at a renewal: lost %d times, %s", a.lost, a.why);
	}
	// And at the end: it is given up all the same, unless the server refuses for good.
	struct lease_record r;
	bool is_final = fault.status == 403 || fault.status == 404 || fault.status == 410 || fault.status == 422;
	wait_until_fresh(&h, a.lease);
	fault.verb = "update";
	fake_apiserver_fail(h.server, &fault);
	lease_release(a.lease);
	if (!test_loop_until(h.loop, &a.released, 1, TEST_PATIENCE_MS))
		fail_msg("never released");
	fake_apiserver_fail(h.server, &(struct fake_fault){0});
	read_lease(&h, &r);
	assert_string_equal(r.holder, is_final ? "a" : "");
	lease_free(a.lease);
	harness_stop(&h);
}

// A write that was done though nobody heard of it, and a request of curl's own for it, too.
static void a_renewal_whose_answer_is_lost_twice_costs_nothing(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 2, .verb = "update", .lose = true});
	test_loop_for(h.loop, timing.renew_deadline_ms + 2 * timing.retry_period_ms);
	if (a.lost)
		fail_msg("lost: %s", a.why);
	lease_free(a.lease);
	harness_stop(&h);
}

static void one_that_was_changed_meanwhile_is_given_up(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	struct lease_record r;
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	merge_lease(&h, "{\"metadata\":{\"labels\":{\"seen\":\"yes\"}}}");
	lease_release(a.lease);
	WAIT(a.released, 1);
	read_lease(&h, &r);
	assert_string_equal(r.holder, "");
	lease_free(a.lease);
	harness_stop(&h);
}

static void one_that_was_taken_meanwhile_stays_with_its_holder(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	struct lease_record r;
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	merge_lease(&h, "{\"spec\":{\"holderIdentity\":\"thief\"}}");
	lease_release(a.lease);
	WAIT(a.released, 1);
	read_lease(&h, &r);
	assert_string_equal(r.holder, "thief");
	lease_free(a.lease);
	harness_stop(&h);
}

// A renewal is done but not answered, and before it can be looked at the lease is given up.
static void one_whose_renewal_was_not_answered_is_given_up(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	struct lease_record r;
	struct fake_counts counts;
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 2, .verb = "update", .lose = true});
	TEST_BECOMES(h.loop, (fake_apiserver_get_counts(h.server, &counts), counts.faults > 0));
	lease_release(a.lease);
	WAIT(a.released, 1);
	read_lease(&h, &r);
	assert_string_equal(r.holder, "");
	lease_free(a.lease);
	harness_stop(&h);
}

// Not while it is not answered at all, and not once it could be another's.
static void giving_up_ends_when_the_lease_would(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	start(&h);
	put_free_lease(&h);
	holder_start(&a, &h, "a");
	WAIT(a.gained, 1);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1000, .status = 503});
	uint64_t before =
	        fake_apiserver_count(h.server, "update", "leases") + fake_apiserver_count(h.server, "get", "leases");
	int64_t begun = test_now_ms();
	lease_release(a.lease);
	WAIT(a.released, 1);
	int64_t asked = (int64_t)(fake_apiserver_count(h.server, "update", "leases") +
	                          fake_apiserver_count(h.server, "get", "leases") - before);
	assert_in_range(asked, 2, 8);
	assert_true(test_now_ms() - begun >= timing.retry_period_ms);
	lease_free(a.lease);
	harness_stop(&h);
}

// Others would take it at once, and whoever held one that was deleted may still believe in that.
static void one_that_was_just_made_is_not_given_to_others(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	struct lease_record r;
	start(&h);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .verb = "create", .delay_ms = 200});
	holder_start(&a, &h, "a");
	struct fake_counts counts;
	TEST_BECOMES(h.loop, (fake_apiserver_get_counts(h.server, &counts), counts.faults == 1));
	lease_want(a.lease, false);
	WAIT(a.released, 1);
	read_lease(&h, &r);
	assert_string_equal(r.holder, "a");
	lease_free(a.lease);
	harness_stop(&h);
}

static void it_may_be_freed_while_a_request_is_under_way(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	start(&h);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .delay_ms = 200});
	holder_start(&a, &h, "a");
	test_loop_for(h.loop, 50);
	lease_free(a.lease);
	test_loop_for(h.loop, 300);
	assert_int_equal(a.gained + a.errors, 0);
	holder_start(&a, &h, "b"); // and when the client goes first
	test_loop_for(h.loop, 1);
	lease_free(a.lease);
	harness_stop(&h);
}

static void what_is_not_wanted_any_more_is_given_back(void **state)
{
	(void)state;
	struct harness h;
	struct holder a;
	struct lease_record r;
	start(&h);
	put_free_lease(&h);
	fake_apiserver_fail(h.server, &(struct fake_fault){.next = 1, .verb = "update", .delay_ms = 200});
	holder_start(&a, &h, "a");
	struct fake_counts counts;
	TEST_BECOMES(h.loop, (fake_apiserver_get_counts(h.server, &counts), counts.faults == 1));
	lease_want(a.lease, false); // while it is being taken
	WAIT(a.released, 1);
	assert_int_equal(a.gained, 0);
	read_lease(&h, &r);
	assert_string_equal(r.holder, "");
	lease_free(a.lease);
	harness_stop(&h);
}

int main(void)
{
	static const struct CMUnitTest plain[] = {
	        cmocka_unit_test(a_free_lease_is_taken_renewed_and_given_up),
	        cmocka_unit_test(one_that_had_to_be_made_is_ours_a_duration_later),
	        cmocka_unit_test(the_next_one_waits_for_a_duration_without_change),
	        cmocka_unit_test(one_that_is_given_up_is_taken_at_once),
	        cmocka_unit_test(what_others_do_to_it_is_noticed_at_the_next_renewal),
	        cmocka_unit_test(that_it_was_given_up_or_deleted_by_others_is_noticed_too),
	        cmocka_unit_test(a_machine_that_slept_holds_nothing),
	        cmocka_unit_test(a_server_that_hangs_costs_the_lease_in_time),
	        cmocka_unit_test(a_renewal_whose_answer_is_lost_twice_costs_nothing),
	        cmocka_unit_test(one_that_was_changed_meanwhile_is_given_up),
	        cmocka_unit_test(one_that_was_taken_meanwhile_stays_with_its_holder),
	        cmocka_unit_test(one_whose_renewal_was_not_answered_is_given_up),
	        cmocka_unit_test(giving_up_ends_when_the_lease_would),
	        cmocka_unit_test(one_that_was_just_made_is_not_given_to_others),
	        cmocka_unit_test(it_may_be_freed_while_a_request_is_under_way),
	        cmocka_unit_test(what_is_not_wanted_any_more_is_given_back),
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
		        .name = c->name, .test_func = a_failure_at_a_request_is_survived, .initial_state = c};
	}
	return test_run_apart(tests, sizeof tests / sizeof tests[0]);
}
