// SPDX-License-Identifier: Apache-2.0
#include "runtime/shard/shards.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "k8s/client/object_name.h"
#include "k8s/client/scale.h"
#include "runtime/shard/shards_private.h"

#define LEASE_CONNECTIONS 4

// ---- one shard ----

// Every write that was in flight when the shard was lost has ended by now.
static void on_leave_timer(evutil_socket_t fd, short what, void *arg)
{
	struct shard *shard = arg;
	if (shard->state == SHARD_LEAVING)
		shard_release(shard);
}

static void on_lease_gained(void *arg)
{
	struct shard *shard = arg;
	shard->state = SHARD_TAKEN;
	shard->taken_after = shard->owner->list_number;
	if (!shard->owner->is_listing)
		shards_poll_in(shard->owner, 0);
}

static void on_lease_lost(void *arg, const char *why)
{
	struct shard *shard = arg;
	struct shards *s = shard->owner;
	bool was_owned = shard->state == SHARD_OWNED;
	shard->state = SHARD_AWAY;
	evtimer_del(shard->leave);
	if (was_owned)
		shards_report_loss(s, shard, why);
	shards_poll_in(s, 0);
	shards_check_stopped(s);
}

static void on_lease_released(void *arg)
{
	struct shard *shard = arg;
	struct shards *s = shard->owner;
	shard->state = SHARD_AWAY;
	shards_check_stopped(s);
}

static void on_lease_error(void *arg, const struct err *error)
{
	struct shard *shard = arg;
	shards_report(shard->owner, &shard->has_error, error);
}

// ---- the member lease ----

static void on_member_error(void *arg, const struct err *error)
{
	struct shards *s = arg;
	shards_report(s, &s->member_has_error, error);
}

static void on_member_released(void *arg)
{
	struct shards *s = arg;
	s->is_member_gone = true;
	shards_check_stopped(s);
}

static void on_poll_timer(evutil_socket_t fd, short what, void *arg)
{
	shards_on_poll(arg);
}

static void on_changed(evutil_socket_t fd, short what, void *arg)
{
	shards_on_changed(arg);
}

static void on_stopped(evutil_socket_t fd, short what, void *arg)
{
	struct shards *s = arg;
	void (*done)(void *) = s->done;
	s->done = NULL;
	if (done)
		done(s->done_arg);
}

// ---- making and ending ----

static struct lease *new_lease(struct shards *s, const char *name, const char *role,
                               const struct lease_callbacks *calls, void *arg, struct err *e)
{
	bool is_member = role[0] == 'm';
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
	                          .arg = arg};
	return lease_new(&o, e);
}

static int make_leases(struct shards *s, struct err *e)
{
	static const struct lease_callbacks of_shard = {.on_gained = on_lease_gained,
	                                                .on_lost = on_lease_lost,
	                                                .on_released = on_lease_released,
	                                                .on_error = on_lease_error};
	static const struct lease_callbacks of_member = {.on_released = on_member_released,
	                                                 .on_error = on_member_error};
	char name[LEASE_NAME_BYTES];
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		struct shard *shard = &s->shards[k];
		*shard = (struct shard){.owner = s, .index = k};
		shard->leave = evtimer_new(s->options.loop, on_leave_timer, shard);
		snprintf(name, sizeof name, "%s-%d", s->lease_name, k);
		shard->lease = new_lease(s, name, "shard", &of_shard, shard, e);
		if (!shard->leave || !shard->lease)
			return shard->lease ? err_set(e, ERR_INTERNAL, "cannot create a timer") : -1;
	}
	s->is_member_gone = s->options.n_shards == 1;
	if (s->options.n_shards == 1)
		return 0;
	snprintf(name, sizeof name, "%s-member-%016llx", s->lease_name,
	         (unsigned long long)shard_member_hash(s->identity));
	s->member = new_lease(s, name, "member", &of_member, s, e);
	if (!s->member)
		return -1;
	lease_set_candidate(s->member, true);
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
	struct shards *s = calloc(1, sizeof *s);
	struct shard *shards = calloc((size_t)o->n_shards, sizeof *shards);
	if (!s || !shards) {
		free(s);
		free(shards);
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	s->options = *o;
	s->shards = shards;
	snprintf(s->namespace_name, sizeof s->namespace_name, "%s", o->namespace_name);
	snprintf(s->lease_name, sizeof s->lease_name, "%s", o->lease_name);
	snprintf(s->identity, sizeof s->identity, "%s", o->identity);
	s->n_members = 1;
	lease_cache_init(&s->board, s->lease_name, o->timing.duration_ms);
	clock_step_detector_init(&s->clock_step_detector, o->clock,
	                         (o->timing.duration_ms - o->timing.renew_deadline_ms) / 2);
	s->poll = evtimer_new(o->loop, on_poll_timer, s);
	s->stopped = evtimer_new(o->loop, on_stopped, s);
	s->changed = evtimer_new(o->loop, on_changed, s);
	if (!s->poll || !s->stopped || !s->changed) {
		err_set(e, ERR_INTERNAL, "cannot create a timer");
		shards_free(s);
		return NULL;
	}
	if (open_client(s, e) < 0 || make_leases(s, e) < 0) {
		shards_free(s);
		return NULL;
	}
	s->options.config = NULL; // the client has a copy
	shards_poll_in(s, 0);
	return s;
}

void shards_stop(struct shards *s, void (*done)(void *arg), void *arg)
{
	s->is_stopping = true;
	s->done = done;
	s->done_arg = arg;
	evtimer_del(s->poll);
	shards_watch_keep(s, false);
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		struct shard *shard = &s->shards[k];
		if (shard->state == SHARD_AWAY)
			lease_set_candidate(shard->lease, false);
		shards_leave(s, shard, "this process is stopping");
	}
	if (s->member)
		lease_release(s->member);
	// By then, leases that the server did not release have expired.
	timer_start(s->stopped, lease_write_timeout_ms(&s->options.timing) + s->options.timing.renew_deadline_ms);
	shards_check_stopped(s);
}

void shards_free(struct shards *s)
{
	if (!s)
		return;
	s->is_closing = true;
	for (int32_t k = 0; k < s->options.n_shards; k++) {
		lease_free(s->shards[k].lease);
		if (s->shards[k].leave)
			event_free(s->shards[k].leave);
	}
	lease_free(s->member);
	shards_watch_free(s);
	k8s_client_free(s->client);
	http_client_free(s->http);
	if (s->poll)
		event_free(s->poll);
	if (s->stopped)
		event_free(s->stopped);
	if (s->changed)
		event_free(s->changed);
	lease_cache_done(&s->board);
	free(s->shards);
	free(s);
}

// ---- checked before anything is done ----

int32_t shards_of(const struct shards *s, const char *namespace_name, const char *name)
{
	return s ? shard_of(namespace_name, name, s->options.n_shards) : 0;
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
			shards_poll_in(s, 0); // releases the leases from the loop, not within the caller
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
	return ((const struct shards *)arg)->term;
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
	for (int32_t k = 0; k < s->options.n_shards; k++)
		ret_view->n_owned += s->shards[k].state == SHARD_OWNED;
}
