// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the seats of a pool keep its cap at every instant, whatever becomes of the writes, and hold when
// they do not know enough. The scenarios of users are in test/integration/run-pools.
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/pool/pools.h"
#include "policies/engine/decision.h"
#include "policies/engine/policy.h"
#include "policies/pool/pool_allocate.h"
#include "policies/schema/pool_schema.h"

#define MEMBERS     4
#define CAP         20
#define INTERVAL_MS 15000

struct member {
	struct pool_membership *membership;
	int32_t replicas;        // what the API server has
	bool has_no_pods;        // for none of them
	bool is_uncountable;     // its pods cannot be listed
	int32_t late;            // a write that may still be carried out; -1: none
	int32_t unacked, before; // as controller/tick/unacked_write.h has them; -1: none
	int64_t unacked_until_ms;
};

struct world {
	struct pools *pools;
	struct policy policy;
	struct member members[MEMBERS];
	struct decision d;
	char text[1024];
	int64_t now_ms;
};

// second: another namespace of the members; NULL: none
static void put_pool_of(struct pools *pools, const char *name, int32_t gpus, int32_t gpus_per_replica,
                        const char *namespace_name, const char *second)
{
	struct pool_object *o = calloc(1, sizeof *o);
	struct err e;
	assert_non_null(o);
	arena_init(&o->arena, 1 << 20);
	o->pool = (struct gpu_pool){.name = arena_strdup(&o->arena, name), .gpus = gpus, .turn_every_ms = 1800000};
	o->pool.entries = arena_calloc(&o->arena, 2, sizeof *o->pool.entries);
	for (size_t i = 0; i < 2; i++)
		o->pool.entries[i] = (struct gpu_pool_entry){.namespace_name = i ? second : namespace_name,
		                                             .name = "",
		                                             .gpus_per_replica = gpus_per_replica,
		                                             .weight = 1};
	o->pool.n_entries = second ? 2 : 1;
	o->generation = 1;
	snprintf(o->uid, sizeof o->uid, "uid-%s", name);
	assert_int_equal(pools_put_object(pools, o, &e), 0);
}

static void put_pool(struct pools *pools, const char *name, int32_t gpus, int32_t gpus_per_replica)
{
	put_pool_of(pools, name, gpus, gpus_per_replica, "default", NULL);
}

static void world_init(struct world *w, int32_t gpus_per_replica)
{
	*w = (struct world){.policy = {.interval_ms = INTERVAL_MS, .replica_multiple = 1}, .now_ms = 1000000};
	w->pools = pools_new(&(struct pools_options){0});
	put_pool(w->pools, "h100", CAP, gpus_per_replica);
	for (int i = 0; i < MEMBERS; i++) {
		char name[8];
		snprintf(name, sizeof name, "m%d", i);
		w->members[i] = (struct member){.replicas = 1, .late = -1, .unacked = -1};
		w->members[i].membership =
		        pool_membership_new(w->pools, "default", name, NULL, i == 0 ? "team=ml\n" : NULL, NULL);
	}
}

static void world_done(struct world *w)
{
	for (int i = 0; i < MEMBERS; i++)
		pool_membership_free(w->members[i].membership);
	pools_free(w->pools);
}

// What decide() would return, and then the pool. Returns the replicas to write.
static int32_t decide_for(struct world *w, int i, int32_t desired)
{
	struct member *m = &w->members[i];
	struct buf text;
	bool is_open = m->unacked >= 0 && m->replicas == m->before && w->now_ms < m->unacked_until_ms;
	if (!is_open)
		m->unacked = -1;
	const struct pool_tick tick = {.policy = &w->policy,
	                               .existing_replicas = m->is_uncountable ? -1
	                                                    : m->has_no_pods  ? 0
	                                                                      : m->replicas,
	                               .unacked = m->unacked,
	                               .now_ms = w->now_ms,
	                               .now_mono_ms = w->now_ms};
	w->d = (struct decision){.current = m->replicas,
	                         .desired = desired,
	                         .max_replicas = 1000,
	                         .action = desired > m->replicas   ? ACTION_SCALE_UP
	                                   : desired < m->replicas ? ACTION_SCALE_DOWN
	                                                           : ACTION_NONE,
	                         .write = desired != m->replicas};
	buf_init(&text, POOL_TEXT_BYTES_MAX);
	pool_membership_decide(m->membership, &tick, &w->d, &text);
	snprintf(w->text, sizeof w->text, "%s", buf_str(&text));
	buf_done(&text);
	return w->d.desired;
}

static int64_t gpus_in_use(const struct world *w)
{
	int64_t n = 0;
	for (int i = 0; i < MEMBERS; i++)
		n += w->members[i].replicas;
	return n;
}

static void write_done(struct world *w, int i, int32_t to)
{
	w->members[i].replicas = to;
	w->members[i].late = w->members[i].unacked = -1;
	pool_membership_written(w->members[i].membership, to, POOL_WRITE_DONE);
}

// A tick whose write succeeds.
static int32_t tick(struct world *w, int i, int32_t desired)
{
	int32_t to = decide_for(w, i, desired);
	if (w->d.write)
		write_done(w, i, to);
	pool_membership_end(w->members[i].membership);
	return to;
}

static void tick_all(struct world *w)
{
	for (int i = 0; i < MEMBERS; i++)
		tick(w, i, w->members[i].replicas);
}

static unsigned next_random(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return *seed >> 16;
}

// A lost write takes effect at once, later, or never; a write that is acknowledged voids the ones before it, because
// they name an older resourceVersion.
static void random_write(struct world *w, int i, int32_t to, unsigned *seed)
{
	struct member *m = &w->members[i];
	unsigned fate = next_random(seed) % 8;
	if (fate < 4) {
		write_done(w, i, to);
	} else if (fate == 4) {
		pool_membership_written(m->membership, to, POOL_WRITE_REFUSED);
	} else {
		m->before = m->replicas;
		m->unacked = to;
		m->unacked_until_ms = w->now_ms + 60000;
		if (fate == 5) {
			m->replicas = to;
			m->late = -1;
		}
		if (fate == 6)
			m->late = to;
		pool_membership_written(m->membership, to, POOL_WRITE_LOST);
	}
}

static void cap_holds_whatever_becomes_of_the_writes(void **state)
{
	(void)state;
	int64_t most = 0;
	for (unsigned seed = 1; seed <= 200; seed++) {
		struct world w;
		unsigned random = seed;
		world_init(&w, 1);
		for (int k = 0; k < 400; k++) {
			int i = (int)(next_random(&random) % MEMBERS);
			struct member *m = &w.members[i];
			w.now_ms += 1 + next_random(&random) % 4000;
			if (m->late >= 0 && next_random(&random) % 2) {
				m->replicas = m->late;
				m->late = -1;
			} else {
				if (w.now_ms >= m->unacked_until_ms)
					m->late = -1; // the API server has given up
				int32_t to = decide_for(&w, i, (int32_t)(next_random(&random) % 16));
				if (w.d.write)
					random_write(&w, i, to, &random);
				pool_membership_end(m->membership);
			}
			if (gpus_in_use(&w) > CAP)
				fail_msg("seed %u, step %d: %lld GPUs of %d", seed, k, (long long)gpus_in_use(&w), CAP);
			most = gpus_in_use(&w) > most ? gpus_in_use(&w) : most;
		}
		world_done(&w);
	}
	assert_int_equal(most, CAP); // the cap was reached, so it was tested
}

static void member_waits_until_all_others_are_known(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	assert_int_equal(tick(&w, 0, 9), 1);
	assert_string_equal(w.text, "pool h100 is held until the replicas of default/m1 are known");
	tick(&w, 1, 1);
	tick(&w, 2, 1);
	assert_int_equal(tick(&w, 0, 9), 1);
	const struct err absent = {.kind = ERR_NOT_FOUND};
	pool_membership_unreadable(w.members[3].membership, &absent, w.now_ms);
	assert_int_equal(tick(&w, 0, 9), 9);
	world_done(&w);
}

static void unreadable_member_holds_no_other(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	tick(&w, 0, 9);
	tick(&w, 1, 1);
	tick(&w, 2, 1);
	const struct err forbidden = {.kind = ERR_AUTH};
	pool_membership_unreadable(w.members[3].membership, &forbidden, w.now_ms);
	assert_int_equal(tick(&w, 0, 20), 18);
	world_done(&w);
}

static void member_that_never_ticks_is_waited_for_after_a_start_only(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	for (int i = 0; i < MEMBERS - 1; i++)
		tick(&w, i, 1);
	assert_int_equal(tick(&w, 0, 9), 1);
	w.now_ms += POOL_START_MS;
	tick(&w, 1, 1);
	tick(&w, 2, 1);
	assert_int_equal(tick(&w, 0, 9), 9);
	// A tenant creates policies, and changes their targets.
	struct pool_membership *late = pool_membership_new(w.pools, "default", "late", NULL, NULL, NULL);
	assert_int_equal(tick(&w, 0, 10), 10);
	pool_membership_forget(late, w.now_ms);
	pool_membership_forget(w.members[3].membership, w.now_ms);
	assert_int_equal(tick(&w, 0, 11), 11);
	pool_membership_free(late);
	world_done(&w);
}

// A dry run on a Deployment with a million replicas, of which none exists: at a start it may be what the process before
// ordered, and is waited for. It takes nothing, and does not count in the end.
static void typed_replicas_do_not_count(void **state)
{
	static const bool at_start[] = {true, false};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct world w;
		world_init(&w, 1);
		tick_all(&w);
		assert_int_equal(tick(&w, 0, 15), 15);
		w.now_ms += at_start[i] ? 1 : POOL_START_MS;
		struct pool_membership *others = w.members[3].membership;
		w.members[3].membership = pool_membership_new(w.pools, "default", "typed", NULL, NULL, NULL);
		w.members[3].has_no_pods = true;
		w.members[3].replicas = 1000000;
		w.policy.dry_run = true;
		tick(&w, 3, 1000000);
		w.policy.dry_run = false;
		assert_int_equal(tick(&w, 0, 17), at_start[i] ? 15 : 17);
		w.now_ms += POOL_GRANTED_MS;
		tick(&w, 1, 1);
		tick(&w, 2, 1);
		assert_int_equal(tick(&w, 0, 17), 17);
		pool_membership_free(others);
		world_done(&w);
	}
}

// What an active member has in excess of its grant is scaled down, and holds no GPUs without pods meanwhile.
static void typed_replicas_of_an_active_member_are_scaled_down(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	tick_all(&w);
	w.members[3].has_no_pods = true;
	w.members[3].replicas = 1000000;
	decide_for(&w, 3, 1000000);
	assert_int_equal(w.d.desired, 17); // what the others leave
	pool_membership_written(w.members[3].membership, 17, POOL_WRITE_REFUSED);
	pool_membership_end(w.members[3].membership);
	assert_true(tick(&w, 0, 9) > 1);
	world_done(&w);
}

// What the pool granted counts for a while without pods, also when the member becomes fixed.
static void granted_replicas_count_until_they_exist(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	tick_all(&w);
	w.now_ms += POOL_GRANTED_MS;
	tick_all(&w);
	w.members[3].has_no_pods = true;
	assert_int_equal(tick(&w, 3, 17), 17);
	assert_int_equal(tick(&w, 0, 9), 1);
	w.policy.paused = true;
	tick(&w, 3, 17);
	w.policy.paused = false;
	assert_int_equal(tick(&w, 0, 9), 1);
	w.now_ms += POOL_GRANTED_MS;
	w.policy.paused = true;
	tick(&w, 3, 17);
	w.policy.paused = false;
	tick(&w, 1, 1);
	tick(&w, 2, 1);
	assert_int_equal(tick(&w, 0, 9), 9);
	world_done(&w);
}

// Lets time pass in which the members 0 to 2, and 3 if it is paused, tick as ever.
static void pass(struct world *w, int64_t ms, bool is_paused)
{
	for (int64_t to = w->now_ms + ms; w->now_ms < to;) {
		w->now_ms += INTERVAL_MS;
		for (int i = 0; i < MEMBERS - 1; i++)
			tick(w, i, w->members[i].replicas);
		w->policy.paused = true;
		if (is_paused)
			tick(w, 3, w->members[3].replicas);
		w->policy.paused = false;
	}
}

// A tenant revokes the right to read its target, or to list its pods, and keeps the GPUs for a while only.
static void pods_that_can_no_longer_be_counted_expire(void **state)
{
	(void)state;
	for (int is_paused = 0; is_paused < 2; is_paused++) {
		const struct err forbidden = {.kind = ERR_AUTH, .code = 403};
		struct world w;
		world_init(&w, 1);
		tick_all(&w);
		assert_int_equal(tick(&w, 3, 15), 15);
		pass(&w, POOL_GRANTED_MS, true);
		w.members[3].is_uncountable = true;
		if (!is_paused)
			pool_membership_unreadable(w.members[3].membership, &forbidden, w.now_ms);
		pass(&w, POOL_STALE_MS, is_paused);
		assert_int_equal(tick(&w, 0, 9), 3);
		pass(&w, POOL_GRANTED_MS, is_paused);
		assert_int_equal(tick(&w, 0, 9), 9);
		world_done(&w);
	}
}

// While the API server answers no request, nothing is known to have changed, and afterwards every member gets time to
// tick.
static void outage_lets_no_pods_expire(void **state)
{
	static const enum err_kind kinds[] = {ERR_UNREACHABLE, ERR_AUTH};
	(void)state;
	for (size_t i = 0; i < 2; i++) {
		const struct err down = {.kind = kinds[i]};
		struct world w;
		world_init(&w, 1);
		tick_all(&w);
		assert_int_equal(tick(&w, 3, 15), 15);
		tick_all(&w); // counts its pods
		for (int k = 0; k < MEMBERS; k++)
			pool_membership_unreadable(w.members[k].membership, &down, w.now_ms);
		w.now_ms += 4 * POOL_GRANTED_MS;
		assert_int_equal(tick(&w, 0, 9), 3);
		world_done(&w);
	}
}

// A custom resource without labelSelectorPath: its pods are never known, and what it was granted may run all the time.
static void grants_of_a_target_whose_pods_are_never_counted_stay(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	w.members[3].is_uncountable = true;
	tick_all(&w);
	assert_int_equal(tick(&w, 3, 15), 15);
	pass(&w, 3 * POOL_GRANTED_MS, true);
	assert_int_equal(tick(&w, 0, 9), 3);
	w.members[3].replicas = 1000000; // what is typed adds nothing
	pass(&w, POOL_GRANTED_MS, true);
	assert_int_equal(tick(&w, 0, 9), 3);
	w.members[3].replicas = 10; // the others use what is left
	pass(&w, INTERVAL_MS, true);
	assert_int_equal(tick(&w, 0, 9), 8);
	pass(&w, 3 * POOL_GRANTED_MS, false); // it cannot be read any more
	assert_int_equal(tick(&w, 0, 18), 18);
	world_done(&w);
}

// What the process before has left at a start may be what the tenant typed.
static void typed_replicas_whose_pods_are_never_counted_expire(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	w.members[3].is_uncountable = true;
	w.members[3].replicas = 15;
	w.policy.paused = true;
	tick(&w, 3, 15);
	w.policy.paused = false;
	pass(&w, POOL_START_MS, true);
	assert_int_equal(tick(&w, 0, 9), 3);
	pass(&w, POOL_GRANTED_MS, true);
	assert_int_equal(tick(&w, 0, 9), 9);
	world_done(&w);
}

// Another process may have scaled the target, or it is a different one: its pods count on for a while.
static void pods_of_a_forgotten_member_count_for_a_while(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	tick_all(&w);
	assert_int_equal(tick(&w, 3, 15), 15);
	pass(&w, 2 * POOL_GRANTED_MS, true);
	pool_membership_forget(w.members[3].membership, w.now_ms);
	pass(&w, POOL_GRANTED_MS - INTERVAL_MS, false);
	pool_membership_forget(w.members[3].membership, w.now_ms); // again: the time does not start anew
	assert_int_equal(tick(&w, 0, 9), 3);
	pass(&w, INTERVAL_MS, false);
	assert_int_equal(tick(&w, 0, 9), 9);
	world_done(&w);
}

// A pool so large that it is not shared for each member that changes its mind.
static void scale_down_does_not_wait_for_a_large_pool(void **state)
{
	(void)state;
	struct world w;
	struct pool_membership *others[POOL_SHARED_AT_ONCE + POOL_MEMBERS_PER_MS];
	size_t n = sizeof others / sizeof others[0];
	world_init(&w, 1);
	for (size_t i = 0; i < n; i++) {
		char name[16];
		snprintf(name, sizeof name, "p%05zu", i);
		others[i] = pool_membership_new(w.pools, "default", name, NULL, NULL, NULL);
	}
	tick_all(&w);
	w.now_ms += POOL_START_MS;
	tick_all(&w);
	w.now_ms += 100;
	assert_int_equal(tick(&w, 0, 4), 4);
	assert_int_equal(tick(&w, 1, 3), 1);
	assert_int_equal(w.d.reason, REASON_WAITING_FOR_GPUS);
	assert_int_equal(tick(&w, 0, 2), 2);
	assert_int_not_equal(w.d.reason, REASON_POOL_LIMITED);
	// Nor for labels, policies and targets that change nothing about who is in it.
	pool_membership_set_labels(w.members[2].membership, "team=other\n");
	assert_int_equal(tick(&w, 1, 3), 1);
	pool_membership_free(pool_membership_new(w.pools, "elsewhere", "a", NULL, NULL, NULL));
	assert_int_equal(tick(&w, 1, 3), 1);
	pool_membership_forget(others[0], w.now_ms);
	assert_int_equal(tick(&w, 1, 3), 1);
	w.now_ms += 100;
	assert_int_equal(tick(&w, 1, 3), 3);
	for (size_t i = 0; i < n; i++)
		pool_membership_free(others[i]);
	world_done(&w);
}

static void on_ask(void *user)
{
	++*(int *)user;
}

// Each change of a member that flips changes the share of another, which ticks for that at most once per interval.
static void member_that_flips_lets_others_tick_once_per_interval(void **state)
{
	(void)state;
	struct world w;
	int n_asked = 0;
	w = (struct world){.policy = {.interval_ms = INTERVAL_MS, .replica_multiple = 1}, .now_ms = 1000000};
	w.pools = pools_new(&(struct pools_options){.ask = on_ask});
	put_pool(w.pools, "h100", CAP, 1);
	for (int i = 0; i < MEMBERS; i++) {
		char name[8];
		snprintf(name, sizeof name, "m%d", i);
		w.members[i] = (struct member){.replicas = 1, .late = -1, .unacked = -1};
		w.members[i].membership = pool_membership_new(w.pools, "default", name, NULL, NULL, &n_asked);
	}
	tick_all(&w);
	tick(&w, 1, 18);
	n_asked = 0;
	for (int i = 0; i < 60; i++) { // a minute
		w.now_ms += 1000;
		decide_for(&w, 0, i % 2 ? 20 : 1);
		pool_membership_end(w.members[0].membership);
	}
	assert_in_range(n_asked, 1, 3 * 60000 / INTERVAL_MS + 3);
	world_done(&w);
}

// Of two namespaces, the one with too many policies loses places.
static void namespace_with_too_many_policies_loses_places(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	pools_remove_object(w.pools, "h100");
	put_pool_of(w.pools, "both", 100, 1, "flood", "small");
	size_t n = POOL_MEMBERS_MAX + 50;
	struct pool_membership **flood = calloc(n, sizeof(struct pool_membership *)), *small[2];
	assert_non_null(flood);
	small[0] = pool_membership_new(w.pools, "small", "a", NULL, NULL, NULL);
	small[1] = pool_membership_new(w.pools, "small", "b", NULL, NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		char name[16];
		snprintf(name, sizeof name, "p%05zu", i);
		flood[i] = pool_membership_new(w.pools, "flood", name, NULL, NULL, NULL);
	}
	w.now_ms += 1;
	struct pool_summary sum;
	assert_non_null(pools_next(w.pools, NULL, w.now_ms, w.now_ms, &sum));
	assert_int_equal(sum.n_members, POOL_MEMBERS_MAX);
	assert_int_equal(sum.n_excess, 52);
	struct pool_membership *own[2] = {w.members[0].membership, w.members[1].membership};
	w.now_ms += POOL_START_MS;
	w.members[0].membership = small[1];
	assert_int_equal(tick(&w, 0, 9), 9);
	w.members[1].membership = flood[n - 1];
	assert_int_equal(tick(&w, 1, 9), 1);
	assert_int_equal(w.d.reason, REASON_POOL_HELD);
	assert_non_null(strstr(w.text, "pool both has places for 10000 policies, and for 9998 of namespace flood"));
	// A pool of this size is not shared for each member that changes its mind.
	w.members[1].membership = small[0];
	assert_int_equal(tick(&w, 1, 9), 1);
	assert_int_equal(w.d.reason, REASON_WAITING_FOR_GPUS);
	assert_non_null(strstr(w.text, "pool both has 10000 members and is shared again in a moment"));
	w.now_ms += (POOL_MEMBERS_MAX - POOL_SHARED_AT_ONCE) / POOL_MEMBERS_PER_MS;
	assert_int_equal(tick(&w, 1, 9), 9);
	w.members[0].membership = own[0];
	w.members[1].membership = own[1];
	for (size_t i = 0; i < n; i++)
		pool_membership_free(flood[i]);
	pool_membership_free(small[0]);
	pool_membership_free(small[1]);
	free(flood);
	world_done(&w);
}

// A tenant cannot push its own policy out of the pool together with the GPUs that it holds.
static void member_that_holds_gpus_keeps_its_place(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	struct pool_membership **others = calloc(POOL_MEMBERS_MAX, sizeof(struct pool_membership *)),
	                       *own = w.members[3].membership;
	assert_non_null(others);
	w.members[3].membership = pool_membership_new(w.pools, "default", "z", NULL, NULL, NULL);
	tick_all(&w);
	w.now_ms += POOL_START_MS;
	tick_all(&w);
	assert_int_equal(tick(&w, 3, 15), 15);
	for (size_t i = 0; i < POOL_MEMBERS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof name, "p%05zu", i);
		others[i] = pool_membership_new(w.pools, "default", name, NULL, NULL, NULL);
	}
	assert_int_equal(tick(&w, 0, 9), 3);
	struct pool_summary sum;
	assert_non_null(pools_next(w.pools, NULL, w.now_ms, w.now_ms, &sum));
	assert_int_equal(sum.n_members, POOL_MEMBERS_MAX);
	assert_int_equal(sum.used_gpus, 20);
	for (size_t i = 0; i < POOL_MEMBERS_MAX; i++)
		pool_membership_free(others[i]);
	free(others);
	pool_membership_free(own);
	world_done(&w);
}

static void members_share_and_the_decision_says_so(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 4);
	tick_all(&w);
	assert_int_equal(tick(&w, 0, 12), 2);
	assert_int_equal(w.d.reason, REASON_POOL_LIMITED);
	assert_int_equal(w.d.entries[w.d.driver].stage, STAGE_POOL);
	assert_int_equal(w.d.entries[w.d.driver].before, 12);
	assert_int_equal(w.d.entries[w.d.driver].after, 2);
	assert_string_equal(w.text, "pool h100 uses 20 of 20 GPUs");
	world_done(&w);
}

static void member_that_does_not_tick_keeps_what_it_holds(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	tick_all(&w);
	tick(&w, 1, 16);                      // asks for all there is
	assert_int_equal(tick(&w, 0, 10), 2); // 1 + 16 + 1 + 1 in use
	w.now_ms += POOL_STALE_MS;            // its last wish is old: the others share what it does not hold
	tick(&w, 2, 1);
	tick(&w, 3, 1);
	assert_int_equal(tick(&w, 0, 10), 2);
	assert_int_equal(w.d.reason, REASON_POOL_LIMITED); // not WaitingForGPUs: it is not expected to yield
	world_done(&w);
}

static void member_whose_writes_are_refused_counts_as_fixed(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	tick_all(&w);
	tick(&w, 1, 17);
	tick(&w, 0, 10); // m1 is to yield
	assert_int_equal(w.d.reason, REASON_WAITING_FOR_GPUS);
	for (int i = 0; i < POOL_REFUSALS_MAX; i++) {
		int32_t to = decide_for(&w, 1, 17);
		assert_true(to < 17);
		pool_membership_written(w.members[1].membership, to, POOL_WRITE_REFUSED);
		pool_membership_end(w.members[1].membership);
	}
	tick(&w, 0, 10);
	assert_int_equal(w.d.reason, REASON_POOL_LIMITED);
	assert_true(tick(&w, 1, 17) < 17); // it still tries
	tick(&w, 1, 17);                   // its pods are gone
	tick(&w, 0, 10);
	assert_true(w.members[0].replicas > 1);
	world_done(&w);
}

static void policy_of_two_pools_is_held(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	put_pool(w.pools, "other", 100, 1);
	tick_all(&w);
	assert_int_equal(tick(&w, 0, 5), 1);
	assert_int_equal(w.d.reason, REASON_POOL_HELD);
	assert_string_equal(w.text, "pools h100 and other both claim this policy: remove it from one of them");
	pools_remove_object(w.pools, "other");
	assert_int_equal(tick(&w, 0, 5), 5);
	world_done(&w);
}

static void members_by_label_follow_the_labels(void **state)
{
	(void)state;
	static const char *label = "team=ml";
	struct world w;
	world_init(&w, 1);
	pools_remove_object(w.pools, "h100");
	struct pool_object *o = calloc(1, sizeof *o);
	struct err e;
	assert_non_null(o);
	arena_init(&o->arena, 1 << 20);
	o->pool = (struct gpu_pool){.name = "ml", .gpus = 3, .turn_every_ms = 1800000};
	o->pool.entries = arena_calloc(&o->arena, 1, sizeof *o->pool.entries);
	o->pool.entries[0] = (struct gpu_pool_entry){.namespace_name = "default",
	                                             .name = "",
	                                             .gpus_per_replica = 1,
	                                             .weight = 1,
	                                             .labels = &label,
	                                             .n_labels = 1};
	o->pool.n_entries = 1;
	assert_int_equal(pools_put_object(w.pools, o, &e), 0);
	tick_all(&w);
	assert_int_equal(tick(&w, 0, 9), 3); // has the label
	assert_int_equal(tick(&w, 1, 9), 9);
	pool_membership_set_labels(w.members[1].membership, "team=ml\n");
	assert_true(tick(&w, 1, 9) < 3); // three are shared by two
	pool_membership_set_labels(w.members[0].membership, NULL);
	assert_int_equal(tick(&w, 0, 9), 9);
	world_done(&w);
}

// The API server may serve another version of the schema, so any part of an object may be missing.
static void members_of_an_invalid_pool_are_held_whatever_is_wrong(void **state)
{
	static const char *const specs[] = {
	        "{}",
	        "{\"gpus\":20}",
	        "{\"gpus\":0,\"members\":[{\"namespace\":\"default\"}]}",
	        "{\"gpus\":20,\"members\":[{\"namespace\":5,\"name\":{}}]}",
	        "{\"gpus\":20,\"members\":[7,{\"name\":null}]}",
	        "{\"gpus\":20,\"members\":7}",
	        "{\"gpus\":20,\"members\":[{\"namespace\":\"default\",\"weight\":0,\"gpusPerReplica\":-1}]}",
	        "{\"gpus\":20,\"members\":[{\"namespace\":\"default\",\"priority\":\"x\"}]}",
	        "{\"gpus\":20,\"turnEvery\":\"0s\",\"members\":[{\"namespace\":\"default\"}]}",
	        "{\"gpus\":20,\"budget\":{},\"members\":[{\"namespace\":\"default\"}]}",
	        "{\"gpus\":20,\"members\":[{\"namespace\":\"default\"}],\"ratios\":[{}]}",
	        "{\"gpus\":20,\"members\":[{\"namespace\":\"default\"}],\"ratios\":[{\"of\":3,\"to\":\"default/m0\"}]}",
	        "{\"gpus\":20,\"members\":[{\"namespace\":\"default\"}],\"ratios\":[7,{\"of\":\"default/m0\"}]}",
	        "{\"gpus\":20,\"members\":[{\"namespace\":\"default\"}],\"ratios\":{}}",
	        "[]",
	        "7",
	};
	static struct schema_errors errors, unknown;
	(void)state;
	for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
		struct pool_object *o = calloc(1, sizeof *o);
		struct world w;
		struct arena tree;
		struct doc_node *root;
		struct err e;
		world_init(&w, 1);
		pools_remove_object(w.pools, "h100");
		assert_non_null(o);
		arena_init(&o->arena, 1 << 20);
		arena_init(&tree, 1 << 20);
		o->pool.name = "bad";
		o->pool.turn_every_ms = 1;
		schema_errors_init(&errors, "");
		schema_errors_init(&unknown, "");
		assert_int_equal(doc_from_json(&tree, specs[i], strlen(specs[i]), &root, &e), 0);
		pool_decode_spec(root, &o->pool, &o->arena, &errors, &unknown);
		arena_done(&tree);
		if (errors.n == 0)
			fail_msg("%s is valid", specs[i]);
		o->pool.turn_every_ms = o->pool.turn_every_ms > 0 ? o->pool.turn_every_ms : 1;
		snprintf(o->fault, sizeof o->fault, "%s", errors.items[0].message);
		assert_int_equal(pools_put_object(w.pools, o, &e), 0);
		tick_all(&w);
		struct pool_summary sum;
		assert_non_null(pools_next(w.pools, NULL, w.now_ms, w.now_ms, &sum));
		int32_t to = tick(&w, 0, 3);
		if (sum.n_members > 0 ? to != 1 || w.d.reason != REASON_POOL_HELD : to != 3)
			fail_msg("%s: %d, %zu members", specs[i], to, sum.n_members);
		world_done(&w);
	}
}

static void paused_policy_is_not_changed(void **state)
{
	(void)state;
	struct world w;
	world_init(&w, 1);
	w.policy.paused = true;
	tick_all(&w);
	w.members[1].replicas = 17; // by hand
	assert_int_equal(tick(&w, 1, 17), 17);
	w.policy.paused = false;
	assert_int_equal(tick(&w, 0, 9), 1);
	world_done(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(cap_holds_whatever_becomes_of_the_writes),
	        cmocka_unit_test(member_waits_until_all_others_are_known),
	        cmocka_unit_test(unreadable_member_holds_no_other),
	        cmocka_unit_test(member_that_never_ticks_is_waited_for_after_a_start_only),
	        cmocka_unit_test(typed_replicas_do_not_count),
	        cmocka_unit_test(typed_replicas_of_an_active_member_are_scaled_down),
	        cmocka_unit_test(granted_replicas_count_until_they_exist),
	        cmocka_unit_test(pods_that_can_no_longer_be_counted_expire),
	        cmocka_unit_test(outage_lets_no_pods_expire),
	        cmocka_unit_test(grants_of_a_target_whose_pods_are_never_counted_stay),
	        cmocka_unit_test(typed_replicas_whose_pods_are_never_counted_expire),
	        cmocka_unit_test(pods_of_a_forgotten_member_count_for_a_while),
	        cmocka_unit_test(scale_down_does_not_wait_for_a_large_pool),
	        cmocka_unit_test(member_that_flips_lets_others_tick_once_per_interval),
	        cmocka_unit_test(namespace_with_too_many_policies_loses_places),
	        cmocka_unit_test(member_that_holds_gpus_keeps_its_place),
	        cmocka_unit_test(members_share_and_the_decision_says_so),
	        cmocka_unit_test(member_that_does_not_tick_keeps_what_it_holds),
	        cmocka_unit_test(member_whose_writes_are_refused_counts_as_fixed),
	        cmocka_unit_test(policy_of_two_pools_is_held),
	        cmocka_unit_test(members_by_label_follow_the_labels),
	        cmocka_unit_test(members_of_an_invalid_pool_are_held_whatever_is_wrong),
	        cmocka_unit_test(paused_policy_is_not_changed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
