// SPDX-License-Identifier: Apache-2.0
#include "runtime/shard/shards.h"

#include <event2/event.h>
#include <event2/util.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/http/http_client.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "runtime/shard/shards_private.h"

#define LEASE_CONNECTIONS 4
#define LEAVING_POLL_MS   20 // interval of the checks whether a lost shard can be released

// ---- the states of one shard ----

static void poll_in(struct shards *s, int64_t wait_ms)
{
	timer_start(&s->poll, wait_ms);
}

static int32_t count_state(const struct shards *s, enum shard_state state)
{
	int32_t n = 0;
	for (int32_t k = 0; k < s->options.n_shards; k++)
		n += s->shards[k].state == state;
	return n;
}

// The last step of shards_stop(), once no lease is left.
static void check_stopped(struct shards *s)
{
	if (s->is_stopping && s->is_member_gone && count_state(s, SHARD_AWAY) == s->options.n_shards)
		timer_start(&s->stopped, 0);
}

// Counts and logs the loss of an owned shard, and calls on_lost. why: for the log.
static void report_loss(struct shards *s, struct shard *shard, const char *why)
{
	s->lost++;
	LOG(s->options.log, LOG_INFO, "Lost shard", LOG_I("shard", shard->index), LOG_S("why", why));
	s->options.callbacks.on_lost(s->options.arg, shard->index);
}

// Releases the lease of the shard now.
static void release(struct shard *shard)
{
	shard->state = SHARD_RELEASING;
	evtimer_del(&shard->leave);
	lease_release(shard->lease);
}

// Releases a lost shard once no request for its policies is in flight. After leave_by_ms, every write has ended.
static void on_leave_timer(evutil_socket_t fd, short what, void *arg)
{
	struct shard *shard = arg;
	struct shards *s = shard->owner;
	if (shards_now_ms(s) < shard->leave_by_ms && s->options.callbacks.is_busy(s->options.arg, shard->index))
		timer_start(&shard->leave, LEAVING_POLL_MS);
	else
		release(shard);
}

// Releases the shard, if this process holds it. why: for the log.
static void leave(struct shards *s, struct shard *shard, const char *why)
{
	if (shard->state == SHARD_TAKEN) {
		release(shard);
	} else if (shard->state == SHARD_OWNED) {
		shard->state = SHARD_LEAVING;
		shard->leave_by_ms = shards_now_ms(s) + lease_write_timeout_ms(&s->options.timing);
		report_loss(s, shard, why);
		// Not at once: first the owner of the policies drops what it has queued for them.
		timer_start(&shard->leave, s->is_stopping ? 0 : LEAVING_POLL_MS);
	}
}

static void own(struct shards *s, struct shard *shard)
{
	shard->state = SHARD_OWNED;
	shard->term++;
	s->gained++;
	LOG(s->options.log, LOG_INFO, "Acquired shard", LOG_I("shard", shard->index),
	    LOG_I("shards", s->options.n_shards), LOG_S("identity", s->identity));
	s->options.callbacks.on_gained(s->options.arg, shard->index);
}

// The lease of a member that stopped this long ago, or of a shard above the present number, is deleted.
#define GARBAGE_DURATIONS 20

static int64_t period_ms(const struct shards *s)
{
	uint32_t bits = 0;
	evutil_secure_rng_get_bytes(&bits, sizeof bits);
	int64_t period = s->options.timing.retry_period_ms;
	return period + (int64_t)(bits % (uint64_t)(period / 5 + 1));
}

// ---- evaluation of the leases ----

// Lists the names of the running members; this process first.
static size_t live_members(const struct shards *s, const char *names[MEMBERS_MAX])
{
	size_t n = 0;
	int64_t now = shards_now_ms(s);
	names[n++] = s->identity;
	const struct lease_cache_entry *entry = s->board.items;
	for (; entry && n < MEMBERS_MAX; entry = entry->hh.next) {
		// A member that never renewed may exit before it acquires a shard.
		if (entry->record.is_member && entry->record.n_shards == s->options.n_shards && entry->was_renewed &&
		    strcmp(entry->record.holder, s->identity) != 0 && lease_cache_is_live(&s->board, entry, now))
			names[n++] = entry->record.holder;
	}
	return n;
}

// The number of shards in the lease of shard 0 is the one in use.
static bool disagrees(const struct shards *s)
{
	const struct lease_cache_entry *first = lease_cache_find_shard(&s->board, 0);
	return s->shards[0].state == SHARD_AWAY && first && first->record.n_shards != s->options.n_shards;
}

// Returns whether a process with another number of shards may still hold one of them.
static bool has_disagreeing_holder(const struct shards *s)
{
	int64_t now = shards_now_ms(s);
	for (const struct lease_cache_entry *entry = s->board.items; entry; entry = entry->hh.next) {
		if (entry->shard >= 0 && entry->record.n_shards != s->options.n_shards &&
		    strcmp(entry->record.holder, s->identity) != 0 && lease_cache_is_live(&s->board, entry, now))
			return true;
	}
	return false;
}

static void log_disagreement(struct shards *s, bool disagree)
{
	const struct lease_cache_entry *first = lease_cache_find_shard(&s->board, 0);
	if (disagree == s->disagrees)
		return;
	s->disagrees = disagree;
	if (disagree)
		LOG(s->options.log, LOG_WARNING, "Shard count differs between replicas; waiting",
		    LOG_I("ownShards", s->options.n_shards), LOG_I("theirShards", first->record.n_shards),
		    LOG_S("holder", first->record.holder));
	else
		LOG(s->options.log, LOG_INFO, "All replicas have the same shard count",
		    LOG_I("shards", s->options.n_shards));
}

// A shard whose lease was acquired is owned once a list that started afterwards shows that all processes use one number
// of shards: the list contains any process that acquired a lease under another number before, and one that comes later
// sees this lease.
static void own_taken(struct shards *s, bool disagree, bool is_list)
{
	bool has_first = s->shards[0].state != SHARD_AWAY || lease_cache_find_shard(&s->board, 0);
	bool is_clear = has_first && !has_disagreeing_holder(s);
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		struct shard *shard = &s->shards[k];
		if (shard->state != SHARD_TAKEN && shard->state != SHARD_OWNED)
			continue;
		if (disagree)
			leave(s, shard, "another number of shards is in force");
		else if (shard->state == SHARD_TAKEN && is_list && shard->taken_after < s->board.n_requested &&
		         is_clear)
			own(s, shard);
	}
}

static void seek(struct shards *s, bool disagree)
{
	const char *names[MEMBERS_MAX];
	size_t owner[SHARDS_MAX];
	s->n_members = live_members(s, names);
	shard_plan(s->options.n_shards, names, s->n_members, owner);
	bool is_barred = s->is_stopping || shards_now_ms(s) < s->barred_until_ms;
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		struct shard *shard = &s->shards[k];
		bool is_mine = owner[k] == 0;
		if (shard->state == SHARD_AWAY) {
			const struct lease_cache_entry *entry = lease_cache_find_shard(&s->board, k);
			lease_set_candidate(shard->lease, is_mine && !is_barred && (!disagree || k == 0));
			lease_observe(shard->lease, entry ? &entry->record : NULL);
		} else if (!is_mine && (shard->state == SHARD_OWNED || shard->state == SHARD_TAKEN)) {
			leave(s, shard, "another process should have it");
		}
	}
}

// ---- unused leases ----

static void on_deleted(void *arg, const struct http_response *response, const struct err *error)
{
	// deleted, renewed by its holder, or retried at the next list
}

// Deletes at most one lease per list, and only in the version that was listed.
static void sweep(struct shards *s)
{
	int64_t before = shards_now_ms(s) - GARBAGE_DURATIONS * s->options.timing.duration_ms;
	for (const struct lease_cache_entry *entry = s->board.items; entry; entry = entry->hh.next) {
		bool is_unused = entry->record.is_member || (entry->shard >= s->options.n_shards && !s->disagrees);
		if (!is_unused || entry->seen_ms > before || strcmp(entry->record.holder, s->identity) == 0)
			continue;
		struct buf path, body;
		struct err e;
		buf_init(&path, K8S_PATH_BYTES_MAX);
		buf_init(&body, K8S_PATH_BYTES_MAX);
		buf_printf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases/%s", s->namespace_name,
		           entry->record.name);
		buf_printf(&body,
		           "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"resourceVersion\":"
		           "\"%s\"}}",
		           entry->record.version);
		if (k8s_request(s->client, "DELETE", buf_str(&path), "application/json", body.data, body.len,
		                on_deleted, s, &e) == 0)
			LOG(s->options.log, LOG_INFO, "Deleting unused lease", LOG_S("lease", entry->record.name),
			    LOG_S("holder", entry->record.holder));
		buf_done(&path);
		buf_done(&body);
		return;
	}
}

// ---- listing ----

static void on_record(void *arg, const struct lease_record *record)
{
	struct shards *s = arg;
	(void)lease_cache_observe(&s->board, record, shards_now_ms(s));
}

// Returns when to check next: after a period, or as soon as a lease expires.
static int64_t next_poll_ms(const struct shards *s)
{
	int64_t now = shards_now_ms(s), wait = period_ms(s);
	for (const struct lease_cache_entry *entry = s->board.items; entry; entry = entry->hh.next) {
		if (!lease_cache_is_live(&s->board, entry, now))
			continue;
		int64_t end = entry->seen_ms + s->options.timing.duration_ms - now + 1;
		if (end > 0 && end < wait)
			wait = end;
	}
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		if (s->shards[k].state == SHARD_TAKEN && s->shards[k].taken_after == s->board.n_requested)
			return 0;
	}
	return wait;
}

static void act_on_board(struct shards *s, bool is_list)
{
	bool disagree = disagrees(s);
	if (is_list || shards_watch_is_fresh(s)) // which replaces the list that failed
		shards_report(s, &s->list_has_error, NULL);
	log_disagreement(s, disagree);
	own_taken(s, disagree, is_list);
	seek(s, disagree);
	sweep(s);
	if (!s->is_stopping)
		poll_in(s, next_poll_ms(s));
}

static void on_list(void *arg, const struct http_response *response, const struct err *error)
{
	struct shards *s = arg;
	struct err e;
	s->is_listing = false;
	if (s->is_closing)
		return;
	if (response)
		error = lease_list_decode(response->body, response->body_len, on_record, s, &e) < 0 ? &e : NULL;
	if (error) {
		struct err wrapped = *error;
		err_wrap(&wrapped, "leases in namespace %s", s->namespace_name);
		shards_report(s, &s->list_has_error, &wrapped);
		poll_in(s, period_ms(s));
		return;
	}
	lease_cache_end(&s->board, s->board.n_requested);
	shards_watch_match(s);
	act_on_board(s, true);
}

static int start_list(struct shards *s, struct err *e)
{
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path,
	           "/apis/coordination.k8s.io/v1/namespaces/%s/leases?limit=%d&labelSelector=", s->namespace_name,
	           LEASES_MAX);
	http_append_urlencoded(&path, LEASE_LABEL_GROUP "=");
	http_append_urlencoded(&path, s->lease_name);
	(void)lease_cache_begin(&s->board);
	s->is_listing = true;
	// Without a resourceVersion, the response comes from the server's store, not from its cache.
	int rc = k8s_request(s->client, "GET", buf_str(&path), NULL, NULL, 0, on_list, s, e);
	buf_done(&path);
	if (rc < 0)
		s->is_listing = false;
	return rc;
}

static void follow_clock(struct shards *s)
{
	int64_t step = clock_step_detector_check(&s->clock_step_detector, s->options.clock);
	if (step == 0)
		step = s->clock_step_ms;
	if (step == 0)
		return;
	s->clock_step_ms = 0;
	s->barred_until_ms = shards_now_ms(s) + 3 * s->options.timing.retry_period_ms;
	LOG(s->options.log, LOG_ERROR, "Wall clock was set; releasing all leases", LOG_I("stepMs", step),
	    LOG_I("limitMs", s->clock_step_detector.limit_ms));
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		lease_set_candidate(s->shards[k].lease, s->shards[k].state != SHARD_AWAY);
		leave(s, &s->shards[k], "the wall clock was set");
	}
}

// Checks the clock, lists the leases when necessary, and decides which leases to seek and which to release.
static void on_poll_timer(evutil_socket_t fd, short what, void *arg)
{
	struct shards *s = arg;
	struct err e;
	if (s->is_stopping)
		return;
	follow_clock(s);
	poll_in(s, period_ms(s));
	// The owner of a single shard only renews its lease.
	bool is_alone = s->options.n_shards == 1 && s->shards[0].state == SHARD_OWNED;
	shards_watch_keep(s, !is_alone);
	if (s->is_listing || is_alone)
		return;
	if (count_state(s, SHARD_TAKEN) == 0 && shards_watch_is_fresh(s))
		act_on_board(s, false); // a lease may have expired
	else if (start_list(s, &e) < 0)
		shards_report(s, &s->list_has_error, &e);
}

// The same, for a change that the watch reported.
static void on_changed(evutil_socket_t fd, short what, void *arg)
{
	struct shards *s = arg;
	if (s->is_stopping)
		return;
	follow_clock(s);
	if (!s->is_listing && count_state(s, SHARD_TAKEN) == 0) // else a list follows
		act_on_board(s, false);
}

// ---- callbacks of the leases ----

static void on_lease_gained(void *arg)
{
	struct shard *shard = arg;
	shard->state = SHARD_TAKEN;
	shard->taken_after = shard->owner->board.n_requested;
	if (!shard->owner->is_listing)
		poll_in(shard->owner, 0);
}

static void on_lease_lost(void *arg, const char *why)
{
	struct shard *shard = arg;
	struct shards *s = shard->owner;
	bool was_owned = shard->state == SHARD_OWNED;
	shard->state = SHARD_AWAY;
	evtimer_del(&shard->leave);
	if (was_owned)
		report_loss(s, shard, why);
	poll_in(s, 0);
	check_stopped(s);
}

static void on_lease_released(void *arg)
{
	struct shard *shard = arg;
	struct shards *s = shard->owner;
	shard->state = SHARD_AWAY;
	s->is_member_gone |= shard == &s->member;
	check_stopped(s);
}

static void on_lease_error(void *arg, const struct err *error)
{
	struct shard *shard = arg;
	shards_report(shard->owner, &shard->has_error, error);
}

static void on_stopped(evutil_socket_t fd, short what, void *arg)
{
	const struct shards *s = arg;
	event_base_loopbreak(s->options.loop);
}

// ---- making and ending ----

static struct lease *new_lease(struct shard *shard, const char *name, const char *role,
                               const struct lease_callbacks *calls, struct err *e)
{
	const struct shards *s = shard->owner;
	bool is_member = shard == &s->member;
	struct lease_options o = {.client = s->client,
	                          .loop = s->options.loop,
	                          .clock = s->options.clock,
	                          .namespace_name = s->namespace_name,
	                          .name = name,
	                          .identity = s->identity,
	                          .timing = s->options.timing,
	                          .group = s->lease_name,
	                          .role = role,
	                          .n_shards = s->options.n_shards,
	                          .fed_by_watch = !is_member,
	                          .is_deleted_at_end = is_member,
	                          .callbacks = *calls,
	                          .arg = shard};
	return lease_new(&o, e);
}

static int make_leases(struct shards *s, struct err *e)
{
	static const struct lease_callbacks of_shard = {.on_gained = on_lease_gained,
	                                                .on_lost = on_lease_lost,
	                                                .on_released = on_lease_released,
	                                                .on_error = on_lease_error};
	static const struct lease_callbacks of_member = {.on_released = on_lease_released, .on_error = on_lease_error};
	char name[LEASE_NAME_BYTES];
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		struct shard *shard = &s->shards[k];
		snprintf(name, sizeof name, "%s-%d", s->lease_name, k);
		shard->lease = new_lease(shard, name, "shard", &of_shard, e);
		if (!shard->lease)
			return -1;
	}
	s->is_member_gone = s->options.n_shards == 1;
	if (s->options.n_shards == 1)
		return 0;
	snprintf(name, sizeof name, "%s-member-%016llx", s->lease_name,
	         (unsigned long long)hash_mix(hash_text(HASH_START, s->identity)));
	s->member.owner = s;
	s->member.lease = new_lease(&s->member, name, "member", &of_member, e);
	if (!s->member.lease)
		return -1;
	lease_set_candidate(s->member.lease, true);
	return 0;
}

static int open_client(struct shards *s, struct err *e)
{
	struct http_client_options http = {
	        .loop = s->options.loop, .max_in_flight = LEASE_CONNECTIONS, .no_http2 = true};
	s->http = http_client_new(&http, e);
	if (!s->http)
		return -1;
	struct k8s_client_options options = {.loop = s->options.loop,
	                                     .http = s->http,
	                                     .clock = s->options.clock,
	                                     .config = s->options.config,
	                                     .timeout_ms = lease_request_timeout_ms(&s->options.timing),
	                                     .max_attempts = 1,
	                                     .observe = s->options.observe,
	                                     .observe_arg = s->options.observe_arg};
	s->client = k8s_client_new(&options, e);
	return s->client ? 0 : -1;
}

static int check(const struct shards_options *o, struct err *e)
{
	size_t len = strlen(o->lease_name);
	if (lease_timing_check(&o->timing, e) < 0)
		return -1;
	if (o->n_shards < 1 || o->n_shards > SHARDS_MAX)
		return err_set(e, ERR_USAGE, "--shards must be 1 to %d, not %d", SHARDS_MAX, o->n_shards);
	if (len == 0 || len >= SHARDS_LEASE_NAME_BYTES ||
	    strspn(o->lease_name, "abcdefghijklmnopqrstuvwxyz0123456789-") != len || o->lease_name[0] == '-')
		return err_set(e, ERR_USAGE,
		               "--lease-name \"%.80s\" must be 1 to %d lower-case letters, digits and '-', not first",
		               o->lease_name, SHARDS_LEASE_NAME_BYTES - 1);
	if (!k8s_name_is_valid(o->namespace_name))
		return err_set(e, ERR_USAGE, "--lease-namespace: invalid namespace \"%.80s\"", o->namespace_name);
	if (!o->identity[0] || strlen(o->identity) >= LEASE_IDENTITY_BYTES)
		return err_set(e, ERR_USAGE, "--identity must have 1 to %d bytes", LEASE_IDENTITY_BYTES - 1);
	return 0;
}

struct shards *shards_new(const struct shards_options *o, struct err *e)
{
	if (check(o, e) < 0)
		return NULL;
	struct shards *s = must_alloc(calloc(1, sizeof *s));
	struct shard *shards = must_alloc(calloc((size_t)o->n_shards, sizeof *shards));
	s->options = *o;
	s->shards = shards;
	snprintf(s->namespace_name, sizeof s->namespace_name, "%s", o->namespace_name);
	snprintf(s->lease_name, sizeof s->lease_name, "%s", o->lease_name);
	snprintf(s->identity, sizeof s->identity, "%s", o->identity);
	s->n_members = 1;
	lease_cache_init(&s->board, s->lease_name, o->timing.duration_ms);
	clock_step_detector_init(&s->clock_step_detector, o->clock,
	                         (o->timing.duration_ms - o->timing.renew_deadline_ms) / 2);
	evtimer_assign(&s->poll, o->loop, on_poll_timer, s);
	evtimer_assign(&s->stopped, o->loop, on_stopped, s);
	evtimer_assign(&s->changed, o->loop, on_changed, s);
	for (int32_t k = 0; k < o->n_shards; k++) {
		shards[k] = (struct shard){.owner = s, .index = k};
		evtimer_assign(&shards[k].leave, o->loop, on_leave_timer, &shards[k]);
	}
	if (open_client(s, e) < 0 || make_leases(s, e) < 0) {
		shards_free(s);
		return NULL;
	}
	poll_in(s, 0);
	return s;
}

void shards_stop(struct shards *s)
{
	s->is_stopping = true;
	evtimer_del(&s->poll);
	shards_watch_keep(s, false);
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		struct shard *shard = &s->shards[k];
		if (shard->state == SHARD_AWAY)
			lease_set_candidate(shard->lease, false);
		leave(s, shard, "this process is stopping");
	}
	if (s->member.lease)
		lease_release(s->member.lease);
	// By then, leases that the server did not release have expired.
	timer_start(&s->stopped, lease_write_timeout_ms(&s->options.timing) + s->options.timing.renew_deadline_ms);
	check_stopped(s);
	event_base_dispatch(s->options.loop);
}

void shards_free(struct shards *s)
{
	if (!s)
		return;
	s->is_closing = true;
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		lease_free(s->shards[k].lease);
		evtimer_del(&s->shards[k].leave);
	}
	lease_free(s->member.lease);
	shards_watch_free(s);
	k8s_client_free(s->client);
	http_client_free(s->http);
	evtimer_del(&s->poll);
	evtimer_del(&s->stopped);
	evtimer_del(&s->changed);
	lease_cache_done(&s->board);
	free(s->shards);
	free(s);
}

// ---- checked before anything is done ----

int32_t shards_of(const struct shards *s, const char *namespace_name, const char *name)
{
	return s ? shard_of(namespace_name, name, s->options.n_shards) : 0;
}

uint32_t shards_owned_term(const struct shards *s, int32_t shard)
{
	if (!s)
		return 1;
	return s->shards[shard].state == SHARD_OWNED ? s->shards[shard].term : 0;
}

int64_t shards_clock_limit_ms(const struct shards *s)
{
	return s->clock_step_detector.limit_ms;
}

// A write must not carry a time of a clock that was set, nor be sent while the leases are about to be released for
// that.
static int check_clock(struct shards *s, struct err *e)
{
	if (s->clock_step_ms == 0) {
		s->clock_step_ms = clock_step_detector_check(&s->clock_step_detector, s->options.clock);
		if (s->clock_step_ms != 0)
			poll_in(s, 0); // releases the leases from the loop, not within the caller
	}
	return s->clock_step_ms != 0 ? err_set(e, ERR_CANCELED, "not written: the wall clock was set") : 0;
}

static int check_shard(const struct shards *s, const struct shard *shard, struct err *e)
{
	if (shard->state != SHARD_OWNED)
		return err_set(e, ERR_CANCELED, "not written: shard %d of %d is not this process's", shard->index,
		               s->options.n_shards);
	int64_t left = lease_valid_for_ms(shard->lease), need = lease_write_timeout_ms(&s->options.timing);
	if (left < need)
		return err_set(e, ERR_CANCELED,
		               "not written: the lease of shard %d is certain for another %lld ms only, a write may "
		               "take %lld ms",
		               shard->index, (long long)left, (long long)need);
	return 0;
}

bool shards_may_write(struct shards *s, const char *namespace_name, const char *name, struct err *e)
{
	return !s || (check_clock(s, e) == 0 && check_shard(s, &s->shards[shards_of(s, namespace_name, name)], e) == 0);
}

int shards_guard(void *arg, struct err *e)
{
	struct shards *s = arg;
	if (check_clock(s, e) < 0)
		return -1;
	int32_t n_owned = 0;
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		if (s->shards[k].state != SHARD_OWNED)
			continue;
		n_owned++;
		if (check_shard(s, &s->shards[k], e) < 0)
			return -1;
	}
	return n_owned > 0 ? 0 : err_set(e, ERR_CANCELED, "not written: this process owns no shard");
}

uint64_t shards_term(void *arg)
{
	return ((const struct shards *)arg)->lost;
}

// ---- for metrics and endpoints ----

void shards_get_view(const struct shards *s, struct shards_view *ret_view)
{
	*ret_view = (struct shards_view){.identity = s->identity,
	                                 .namespace_name = s->namespace_name,
	                                 .lease_name = s->lease_name,
	                                 .n_shards = s->options.n_shards,
	                                 .n_members = s->n_members,
	                                 .gained = s->gained,
	                                 .lost = s->lost,
	                                 .error = s->error};
	const struct lease_cache_entry *only = s->options.n_shards == 1 ? lease_cache_find_shard(&s->board, 0) : NULL;
	ret_view->leader = only ? only->record.holder : "";
	ret_view->n_owned = count_state(s, SHARD_OWNED);
}
