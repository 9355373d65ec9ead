// SPDX-License-Identifier: Apache-2.0
// Goal: however slow, stopped, cut off or skewed the processes are, at no moment two of them may believe in one lease.
// A thousand small worlds of three processes and one server are played out with random delays, lost requests and
// replies, pauses, leases deleted by hand and clocks of different rates; and the rules are looked at one by one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/lease/lease_rules.h"

static const struct lease_timing usual = {15000, 10000, 2000};

// ---- the world of the simulation ----

#define PROCESSES 3
#define WORLDS    1000
#define WORLD_MS  200000

static uint64_t seed;
static uint64_t next_random(void)
{
	seed += 0x9e3779b97f4a7c15u;
	uint64_t z = seed;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}
static int64_t below(int64_t n)
{
	return (int64_t)(next_random() % (uint64_t)n);
}
static bool chance(int percent)
{
	return below(100) < percent;
}

struct server {
	bool exists;
	struct lease_record record;
	uint64_t version;
};

enum message_kind { READ, CREATE, UPDATE };
struct message {
	bool is_under_way, is_answered, is_lost;
	enum message_kind kind;
	int64_t arrives_ms, returns_ms;
	char named_version[LEASE_VERSION_BYTES]; // of the record it replaces
	char stamp[LEASE_STAMP_BYTES];
	char holder[LEASE_IDENTITY_BYTES];
	// the answer
	bool ok, missing;
	struct lease_record answer;
};

struct process {
	struct lease_state lease;
	struct message message;
	int64_t act_at_ms, stopped_until_ms, offset_ms;
	int rate_permille; // of its clock
	bool released;
};

static int64_t local(const struct process *p, int64_t now)
{
	return p->offset_ms + now * p->rate_permille / 1000;
}

static void server_touch(struct server *s, const struct message *m)
{
	s->exists = true;
	snprintf(s->record.version, sizeof s->record.version, "%llu", (unsigned long long)++s->version);
	memcpy(s->record.holder, m->holder, sizeof m->holder);
	memcpy(s->record.renew_stamp, m->stamp, sizeof m->stamp);
	s->record.duration_ms = usual.duration_ms;
}

static void server_answer(struct server *s, struct message *m)
{
	m->is_answered = true;
	m->ok = m->missing = false;
	if (m->kind == CREATE && !s->exists)
		server_touch(s, m), m->ok = true;
	else if (m->kind == UPDATE && s->exists && strcmp(s->record.version, m->named_version) == 0)
		server_touch(s, m), m->ok = true;
	else if (m->kind == READ)
		m->ok = s->exists;
	m->missing = !s->exists;
	m->answer = s->record;
}

static void post(struct process *p, enum message_kind kind, int64_t now)
{
	struct message *m = &p->message;
	*m = (struct message){.is_under_way = true, .kind = kind};
	if (kind != READ) {
		snprintf(m->stamp, sizeof m->stamp, "%llu", (unsigned long long)next_random());
		memcpy(m->named_version, p->lease.record.version, sizeof m->named_version);
		memcpy(m->holder, p->lease.identity, sizeof m->holder);
		lease_state_trying(&p->lease, m->stamp, kind == CREATE, local(p, now));
	}
	bool is_slow = chance(10);
	m->arrives_ms = now + (is_slow ? below(20000) : below(50));
	m->returns_ms = m->arrives_ms + (chance(10) ? below(20000) : below(50));
	m->is_lost = chance(5);
	if (chance(5)) // it never gets there, though the process waits
		m->arrives_ms = INT64_MAX, m->returns_ms = now + 5000;
}

static void act(struct process *p, int64_t now)
{
	int64_t at = local(p, now);
	if (p->lease.is_held && at >= p->lease.valid_until_ms)
		lease_state_drop(&p->lease);
	if (p->lease.is_held)
		post(p, UPDATE, now);
	else
		post(p, READ, now);
}

static void hear(struct process *p, int64_t now)
{
	struct message *m = &p->message;
	int64_t at = local(p, now);
	m->is_under_way = false;
	p->act_at_ms = now + 1000 + below(2000);
	if (!m->is_answered || m->is_lost)
		return; // a timeout: it may or may not have been done
	if (m->kind != READ && m->ok) {
		lease_state_wrote(&p->lease, &m->answer, at);
		return;
	}
	lease_state_observe(&p->lease, m->missing ? NULL : &m->answer, at);
	if (!lease_state_is_own(&p->lease)) // our renewal was refused because another process wrote
		lease_state_drop(&p->lease);
	if (!p->lease.is_held && lease_state_acquirable_at_ms(&p->lease) <= at)
		post(p, m->missing ? CREATE : UPDATE, now);
}

struct tally {
	int takeovers, pauses;
};

static void play(uint64_t world, struct tally *tally)
{
	struct server server = {0};
	struct process processes[PROCESSES];
	const char *last = NULL;
	seed = world * 7919;
	for (int i = 0; i < PROCESSES; i++) {
		char name[16];
		// In every fifth world, all processes have one identity.
		snprintf(name, sizeof name, "p%d", world % 5 == 0 ? 0 : i);
		processes[i] = (struct process){
		        .act_at_ms = below(3000), .offset_ms = below(1000000), .rate_permille = 900 + (int)below(200)};
		lease_state_init(&processes[i].lease, &usual, name);
	}
	for (int64_t now = 0; now < WORLD_MS; now += 5) {
		if (below(20000) == 0)
			server.exists = false;        // by hand
		for (int i = 0; i < PROCESSES; i++) { // requests arrive even when their sender is stopped
			struct message *m = &processes[i].message;
			if (m->is_under_way && !m->is_answered && now >= m->arrives_ms)
				server_answer(&server, m);
		}
		int holders = 0;
		for (int i = 0; i < PROCESSES; i++) {
			struct process *p = &processes[i];
			if (below(8000) == 0) {
				p->stopped_until_ms = now + below(60000);
				tally->pauses++;
			}
			if (now >= p->stopped_until_ms && p->message.is_under_way && now >= p->message.returns_ms)
				hear(p, now);
			if (now >= p->stopped_until_ms && !p->message.is_under_way && now >= p->act_at_ms)
				act(p, now);
			// A stopped process believes in it when it wakes up: it counts at all times.
			if (lease_state_valid_for_ms(&p->lease, local(p, now)) > 0) {
				holders++;
				tally->takeovers += last != (const char *)p;
				last = (const char *)p;
			}
		}
		if (holders > 1)
			fail_msg("world %llu: %d processes hold the lease at %lld ms", (unsigned long long)world,
			         holders, (long long)now);
	}
}

static void two_processes_never_hold_one_lease(void **state)
{
	(void)state;
	struct tally tally = {0};
	for (uint64_t world = 1; world <= WORLDS; world++)
		play(world, &tally);
	// The worlds were lively: without takeovers and pauses nothing would have been shown.
	assert_true(tally.takeovers > 2 * WORLDS);
	assert_true(tally.pauses > 2 * WORLDS);
}

// ---- the rules one by one ----

static struct lease_record record_of(const char *holder, const char *version, const char *stamp)
{
	struct lease_record r = {.duration_ms = 15000};
	snprintf(r.name, sizeof r.name, "x");
	snprintf(r.holder, sizeof r.holder, "%s", holder);
	snprintf(r.version, sizeof r.version, "%s", version);
	snprintf(r.renew_stamp, sizeof r.renew_stamp, "%s", stamp);
	return r;
}

static void lease_is_free_a_duration_after_its_last_change_was_seen(void **state)
{
	(void)state;
	struct lease_state s;
	struct lease_record r = record_of("other", "1", "long ago");
	lease_state_init(&s, &usual, "me");
	assert_true(lease_state_acquirable_at_ms(&s) == INT64_MAX);
	lease_state_observe(&s, &r, 1000); // whatever its own stamp says
	assert_int_equal(lease_state_acquirable_at_ms(&s), 16000);
	lease_state_observe(&s, &r, 5000); // unchanged
	assert_int_equal(lease_state_acquirable_at_ms(&s), 16000);
	r = record_of("other", "2", "long ago");
	lease_state_observe(&s, &r, 6000);
	assert_int_equal(lease_state_acquirable_at_ms(&s), 21000);
	r.duration_ms = 60000; // its holder is more patient
	snprintf(r.version, sizeof r.version, "3");
	lease_state_observe(&s, &r, 7000);
	assert_int_equal(lease_state_acquirable_at_ms(&s), 67000);
	r = record_of("", "4", "");
	lease_state_observe(&s, &r, 8000); // given up
	assert_int_equal(lease_state_acquirable_at_ms(&s), 8000);
}

static void our_own_name_is_not_enough(void **state)
{
	(void)state;
	struct lease_state s;
	struct lease_record r = record_of("me", "1", "a");
	lease_state_init(&s, &usual, "me");
	lease_state_observe(&s, &r, 1000);
	assert_false(lease_state_is_own(&s));
	assert_int_equal(lease_state_acquirable_at_ms(&s), 16000);
	// The reply to our write was lost, but its stamp is there.
	lease_state_trying(&s, "b", false, 20000);
	r = record_of("me", "2", "b");
	lease_state_observe(&s, &r, 21000);
	assert_true(lease_state_is_own(&s));
	assert_int_equal(lease_state_acquirable_at_ms(&s), 21000);
}

static void lease_is_held_until_the_renew_deadline_after_sending(void **state)
{
	(void)state;
	struct lease_state s;
	struct lease_record r = record_of("me", "2", "a");
	lease_state_init(&s, &usual, "me");
	lease_state_trying(&s, "a", false, 1000);
	lease_state_wrote(&s, &r, 2500); // whenever the reply came
	assert_int_equal(lease_state_valid_for_ms(&s, 3000), 8000);
	assert_int_equal(lease_state_valid_for_ms(&s, 10999), 1);
	assert_int_equal(lease_state_valid_for_ms(&s, 11000), 0);
	lease_state_drop(&s);
	assert_int_equal(lease_state_valid_for_ms(&s, 3000), 0);
}

static void created_lease_is_held_a_duration_later(void **state)
{
	(void)state;
	struct lease_state s;
	struct lease_record r = record_of("me", "1", "a");
	lease_state_init(&s, &usual, "me");
	lease_state_observe(&s, NULL, 500);
	assert_int_equal(lease_state_acquirable_at_ms(&s), 500);
	lease_state_trying(&s, "a", true, 500);
	lease_state_wrote(&s, &r, 1000);
	assert_int_equal(lease_state_valid_for_ms(&s, 2000), 0);
	for (int64_t at = 3000; at <= 16000; at += 2000) { // it is renewed meanwhile
		char version[32];
		snprintf(version, sizeof version, "%lld", (long long)at);
		r = record_of("me", version, "b");
		lease_state_trying(&s, "b", false, at);
		lease_state_wrote(&s, &r, at);
	}
	assert_int_equal(lease_state_valid_for_ms(&s, 15999), 0);
	assert_int_equal(lease_state_valid_for_ms(&s, 16000), 9000);
}

static void timings_are_judged_as_client_go_does(void **state)
{
	(void)state;
	static const struct {
		struct lease_timing t;
		const char *message; // NULL: good
	} rows[] = {
	        {{15000, 10000, 2000}, NULL},
	        {{2000, 1500, 300}, NULL},
	        {{10000, 10000, 2000}, "--lease-duration (10s) must be greater than --renew-deadline (10s)"},
	        {{15000, 10000, 9000}, "--renew-deadline (10s) must be greater than 1.2 times --retry-period (9s)"},
	        {{15000, 2400, 2000}, "--renew-deadline (2s400ms) must be greater than 1.2 times --retry-period (2s)"},
	        {{500, 300, 100}, "--lease-duration must be at least 1s: Kubernetes counts it in seconds"},
	        {{2500, 1500, 100}, "--lease-duration must be a whole number of seconds: Kubernetes counts it so"},
	        {{15000, 10000, 0}, "--renew-deadline and --retry-period must be greater than 0"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct err e = {0};
		int rc = lease_timing_check(&rows[i].t, &e);
		assert_int_equal(rc, rows[i].message ? -1 : 0);
		if (rows[i].message)
			assert_string_equal(e.msg, rows[i].message);
	}
	assert_int_equal(lease_request_timeout_ms(&usual), 5000);
	assert_int_equal(lease_write_timeout_ms(&usual), 2500);
}

// ---- objects ----

static void write_changes_only_what_it_must(void **state)
{
	(void)state;
	static const char object[] =
	        "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":\"gpuscale-0\","
	        "\"namespace\":\"ns\",\"resourceVersion\":\"77\",\"uid\":\"u\",\"labels\":{\"team\":\"a\"},"
	        "\"managedFields\":[{\"manager\":\"x\"}]},\"spec\":{\"holderIdentity\":\"old\","
	        "\"leaseDurationSeconds\":30,\"acquireTime\":\"2020-01-01T00:00:00.000000Z\",\"leaseTransitions\":4,"
	        "\"strategy\":\"OldestEmulationVersion\"}}";
	struct lease_write w = {.namespace_name = "ns",
	                        .name = "gpuscale-0",
	                        .holder = "new",
	                        .duration_ms = 15000,
	                        .is_takeover = true};
	lease_stamp(w.stamp, 1767603600123, 45);
	struct buf out;
	struct err e = {0};
	buf_init(&out, LEASE_OBJECT_BYTES_MAX);
	assert_int_equal(lease_write_encode(&out, &w, object, sizeof object - 1, &e), 0);
	assert_string_equal(
	        buf_str(&out),
	        "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\",\"metadata\":{\"name\":\"gpuscale-0\","
	        "\"namespace\":\"ns\",\"resourceVersion\":\"77\",\"uid\":\"u\",\"labels\":{\"team\":\"a\"}},"
	        "\"spec\":{\"strategy\":\"OldestEmulationVersion\",\"holderIdentity\":\"new\","
	        "\"leaseDurationSeconds\":15,\"renewTime\":\"2026-01-05T09:00:00.123045Z\","
	        "\"acquireTime\":\"2026-01-05T09:00:00.123045Z\",\"leaseTransitions\":5}}");
	struct lease_record r;
	assert_int_equal(lease_record_decode(buf_str(&out), out.len, &r, &e), 0);
	assert_string_equal(r.holder, "new");
	assert_string_equal(r.version, "77");
	assert_string_equal(r.renew_stamp, w.stamp);
	assert_int_equal(r.duration_ms, 15000);
	assert_int_equal(r.transitions, 5);

	buf_reset(&out); // a renewal leaves acquireTime and the count alone
	w.is_takeover = false;
	w.group = "gpuscale";
	w.role = "member";
	w.n_shards = 8;
	assert_int_equal(lease_write_encode(&out, &w, object, sizeof object - 1, &e), 0);
	assert_non_null(
	        strstr(buf_str(&out), "\"acquireTime\":\"2020-01-01T00:00:00.000000Z\",\"leaseTransitions\":4"));
	assert_non_null(strstr(buf_str(&out), "\"labels\":{\"team\":\"a\",\"gpuscale.dev/lease-group\":\"gpuscale\","
	                                      "\"gpuscale.dev/lease-role\":\"member\"}"));
	assert_int_equal(lease_record_decode(buf_str(&out), out.len, &r, &e), 0);
	assert_int_equal(r.n_shards, 8);
	assert_true(r.is_member);

	buf_reset(&out); // a new one
	w.is_takeover = true;
	assert_int_equal(lease_write_encode(&out, &w, NULL, 0, &e), 0);
	assert_non_null(strstr(buf_str(&out), "\"leaseTransitions\":0"));
	buf_done(&out);
}

#define LEASE_X(spec) "{\"kind\":\"Lease\",\"metadata\":{\"name\":\"x\",\"resourceVersion\":\"7\"},\"spec\":" spec "}"

static void no_number_of_transitions_keeps_a_lease_from_being_taken(void **state)
{
	(void)state;
	static const char *const numbers[] = {"2147483646", "2147483647", "1e300", "-1e300"};
	static const char *const want[] = {"2147483647", "2147483647", "2147483647", "0"};
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
		char text[256], shown[64];
		struct lease_write w = {.name = "x", .holder = "a", .duration_ms = 15000, .is_takeover = true};
		struct buf out;
		struct err e = {0};
		buf_init(&out, LEASE_OBJECT_BYTES_MAX);
		snprintf(text, sizeof text, LEASE_X("{\"leaseTransitions\":%s}"), numbers[i]);
		assert_int_equal(lease_write_encode(&out, &w, text, strlen(text), &e), 0);
		snprintf(shown, sizeof shown, "\"leaseTransitions\":%s}", want[i]);
		if (!strstr(buf_str(&out), shown))
			fail_msg("%s: %s", numbers[i], buf_str(&out));
		buf_done(&out);
	}
}

static void count_item(void *arg, const struct lease_record *record)
{
	(void)record;
	++*(int *)arg;
}

static void incomplete_list_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *members;
		int items; // -1: refused
	} rows[] = {
	        {"\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[]", 0},
	        {"\"metadata\":{\"continue\":\"\"},\"items\":null", 0},
	        {"\"metadata\":{\"continue\":null},\"items\":[]", 0},
	        {"\"metadata\":{\"continue\":\"x\"},\"items\":[]", -1},
	        {"\"metadata\":{\"continue\":7},\"items\":[]", -1},
	        {"\"metadata\":{\"continue\":[]},\"items\":[]", -1},
	        {"\"metadata\":\"x\",\"items\":[]", -1},
	        {"\"items\":[]", -1},
	        {"\"metadata\":{}", -1},
	        {"\"metadata\":{},\"items\":{}", -1},
	        {"\"metadata\":{},\"items\":\"\"", -1},
	        {"\"metadata\":{},\"items\":[null]", -1},
	        {"\"metadata\":{},\"items\":[[]]", -1},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char text[256];
		struct err e = {0};
		int n_items = 0;
		snprintf(text, sizeof text, "{\"kind\":\"LeaseList\",%s}", rows[i].members);
		int rc = lease_list_decode(text, strlen(text), count_item, &n_items, &e);
		if (rc != (rows[i].items < 0 ? -1 : 0) || (rc == 0 && n_items != rows[i].items) ||
		    (rc < 0 && e.kind == ERR_NONE))
			fail_msg("%s: %d, %d items, %s", rows[i].members, rc, n_items, e.msg);
	}
}

static void reply_that_is_not_a_lease_is_refused(void **state)
{
	(void)state;
	static const char *const rows[][2] = {
	        {"{\"kind\":\"Pod\"}", "reply to a request for a lease: expected a Lease, got kind \"Pod\""},
	        {"{\"kind\":\"Lease\",\"metadata\":{\"name\":\"x\"}}",
	         "reply to a request for a lease: metadata.name or metadata.resourceVersion is missing"},
	        {"{\"kind\":\"Lease\",\"metadata\":{\"name\":\"x\",\"resourceVersion\":7}}",
	         "reply to a request for a lease: metadata: resourceVersion is not a string"},
	        // A lease without a spec is free, but one with an invalid spec is not.
	        {LEASE_X("\"none\""), "reply to a request for a lease: spec is not a map"},
	        {LEASE_X("[]"), "reply to a request for a lease: spec is not a map"},
	        {LEASE_X("{\"holderIdentity\":[\"a\"]}"),
	         "reply to a request for a lease: lease x: spec: holderIdentity is not a string"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct lease_record r;
		struct err e = {0};
		assert_int_equal(lease_record_decode(rows[i][0], strlen(rows[i][0]), &r, &e), -1);
		assert_string_equal(e.msg, rows[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(two_processes_never_hold_one_lease),
	        cmocka_unit_test(lease_is_free_a_duration_after_its_last_change_was_seen),
	        cmocka_unit_test(our_own_name_is_not_enough),
	        cmocka_unit_test(lease_is_held_until_the_renew_deadline_after_sending),
	        cmocka_unit_test(created_lease_is_held_a_duration_later),
	        cmocka_unit_test(timings_are_judged_as_client_go_does),
	        cmocka_unit_test(write_changes_only_what_it_must),
	        cmocka_unit_test(no_number_of_transitions_keeps_a_lease_from_being_taken),
	        cmocka_unit_test(incomplete_list_is_refused),
	        cmocka_unit_test(reply_that_is_not_a_lease_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
