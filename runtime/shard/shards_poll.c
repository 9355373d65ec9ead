// SPDX-License-Identifier: Apache-2.0
// Acts on the leases of all processes: when the watch reports a change, and by lists, after a lease was acquired and
// every retry period while the watch does not work.
#include <event2/event.h>
#include <event2/util.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/process/log.h"
#include "runtime/shard/shards_private.h"

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
	for (size_t i = 0; i < s->board.n && n < MEMBERS_MAX; i++) {
		const struct lease_cache_entry *entry = &s->board.items[i];
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
	for (size_t i = 0; i < s->board.n; i++) {
		const struct lease_cache_entry *entry = &s->board.items[i];
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
			shards_leave(s, shard, "another number of shards is in force");
		else if (shard->state == SHARD_TAKEN && is_list && shard->taken_after < s->list_number && is_clear)
			shards_own(s, shard);
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
			shards_leave(s, shard, "another process should have it");
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
	for (size_t i = 0; i < s->board.n; i++) {
		const struct lease_cache_entry *entry = &s->board.items[i];
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

struct reading {
	struct shards *shards;
	bool no_memory;
};

static void on_record(void *arg, const struct lease_record *record)
{
	struct reading *r = arg;
	if (lease_cache_observe(&r->shards->board, record, shards_now_ms(r->shards)) < 0)
		r->no_memory = true;
}

// Returns when to check next: after a period, or as soon as a lease expires.
static int64_t next_poll_ms(const struct shards *s)
{
	int64_t now = shards_now_ms(s), wait = period_ms(s);
	for (size_t i = 0; i < s->board.n; i++) {
		const struct lease_cache_entry *entry = &s->board.items[i];
		if (!lease_cache_is_live(&s->board, entry, now))
			continue;
		int64_t end = entry->seen_ms + s->options.timing.duration_ms - now + 1;
		if (end > 0 && end < wait)
			wait = end;
	}
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		if (s->shards[k].state == SHARD_TAKEN && s->shards[k].taken_after == s->list_number)
			return 0;
	}
	return wait;
}

static bool is_any_taken(const struct shards *s)
{
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		if (s->shards[k].state == SHARD_TAKEN)
			return true;
	}
	return false;
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
		shards_poll_in(s, next_poll_ms(s));
}

static void on_list(void *arg, const struct http_response *response, const struct err *error)
{
	struct shards *s = arg;
	struct err e;
	s->is_listing = false;
	if (s->is_closing)
		return;
	if (response) {
		struct reading reading = {.shards = s};
		int rc = lease_list_decode(response->body, response->body_len, on_record, &reading, &e);
		if (rc == 0 && reading.no_memory)
			rc = err_set(&e, ERR_INTERNAL, "out of memory");
		error = rc < 0 ? &e : NULL;
	}
	if (error) {
		struct err wrapped = *error;
		err_wrap(&wrapped, "leases in namespace %s", s->namespace_name);
		shards_report(s, &s->list_has_error, &wrapped);
		shards_poll_in(s, period_ms(s));
		return;
	}
	lease_cache_end(&s->board, s->polled_list);
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
	s->list_number++;
	s->polled_list = lease_cache_begin(&s->board);
	s->is_listing = true;
	// Without a resourceVersion, the response comes from the server's store, not from its cache.
	int rc = k8s_request(s->client, "GET", buf_str(&path), NULL, NULL, 0, on_list, s, e);
	buf_done(&path);
	if (rc < 0)
		s->is_listing = false;
	return rc;
}

static void check_clock(struct shards *s)
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
		shards_leave(s, &s->shards[k], "the wall clock was set");
	}
}

void shards_on_poll(struct shards *s)
{
	struct err e;
	if (s->is_stopping)
		return;
	check_clock(s);
	shards_poll_in(s, period_ms(s));
	// The owner of a single shard only renews its lease.
	bool is_alone = s->options.n_shards == 1 && s->shards[0].state == SHARD_OWNED;
	shards_watch_keep(s, !is_alone);
	if (s->is_listing || is_alone)
		return;
	if (!is_any_taken(s) && shards_watch_is_fresh(s))
		act_on_board(s, false); // a lease may have expired
	else if (start_list(s, &e) < 0)
		shards_report(s, &s->list_has_error, &e);
}

void shards_on_changed(struct shards *s)
{
	if (s->is_stopping)
		return;
	check_clock(s);
	if (!s->is_listing && !is_any_taken(s)) // else a list follows
		act_on_board(s, false);
}
