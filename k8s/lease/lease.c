// SPDX-License-Identifier: Apache-2.0
#include "k8s/lease/lease.h"

#include <event2/event.h>
#include <event2/util.h>
#include <inttypes.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/timer.h"
#include "k8s/client/k8s_client.h"
#include "k8s/lease/lease_private.h"

#define RELEASE_ASKS_MAX 8 // including those that read the result of an earlier one
#define LEASES_PATH      "/apis/coordination.k8s.io/v1/namespaces/"

static void lease_act(struct lease *l);
static void on_reply(void *arg, const struct http_response *response, const struct err *error);

static int64_t lease_now_ms(const struct lease *l)
{
	return clock_boot_ms(l->options.clock);
}

static uint32_t random_below(uint32_t n)
{
	uint32_t bits = 0;
	evutil_secure_rng_get_bytes(&bits, sizeof bits);
	return n ? bits % n : 0;
}

// A retry period, plus up to a fifth of one, so that candidates do not send their requests at the same time.
static int64_t retry_ms(const struct lease *l)
{
	int64_t period = l->options.timing.retry_period_ms;
	return period + random_below((uint32_t)(period / 5 + 1));
}

// Sets the timer; INT64_MAX: no timer.
static void lease_act_at(struct lease *l, int64_t at_ms)
{
	l->act_at_ms = at_ms;
	if (at_ms == INT64_MAX)
		evtimer_del(&l->timer);
	else
		timer_start(&l->timer, at_ms - lease_now_ms(l));
}

// ---- reports ----

// Calls on_error when the error differs from the last report; NULL: requests succeed.
static void lease_report(struct lease *l, const struct err *error)
{
	if (strcmp(l->error, error ? error->msg : "") == 0)
		return;
	snprintf(l->error, sizeof l->error, "%s", error ? error->msg : "");
	if (!l->options.callbacks.on_error)
		return;
	if (!error) {
		l->options.callbacks.on_error(l->options.arg, NULL);
		return;
	}
	struct err e = *error;
	err_wrap(&e, "lease %s/%s", l->namespace_name, l->name);
	l->options.callbacks.on_error(l->options.arg, &e);
}

static void lose(struct lease *l, const char *why)
{
	bool was_leading = l->is_leading_reported;
	lease_state_drop(&l->state);
	l->is_leading_reported = false;
	l->must_read = true;
	evtimer_del(&l->expiry);
	if (was_leading && l->options.callbacks.on_lost)
		l->options.callbacks.on_lost(l->options.arg, why);
}

// Calls on_gained when the lease has become valid, and on_lost when it is no longer.
static void check_validity(struct lease *l)
{
	int64_t now = lease_now_ms(l);
	if (!l->state.is_held)
		return;
	if (now >= l->state.valid_until_ms) {
		char why[ERR_MSG_BYTES + 96];
		int64_t since_ms = now - l->state.valid_until_ms + l->options.timing.renew_deadline_ms;
		snprintf(why, sizeof why, "not renewed for %" PRId64 " ms%s%s", since_ms, l->error[0] ? ": " : "",
		         l->error);
		lose(l, why);
		return;
	}
	if (now < l->state.valid_from_ms) {
		int64_t next_ms = l->state.valid_from_ms < l->state.valid_until_ms ? l->state.valid_from_ms
		                                                                   : l->state.valid_until_ms;
		timer_start(&l->expiry, next_ms - now);
		return;
	}
	timer_start(&l->expiry, l->state.valid_until_ms - now);
	if (l->is_leading_reported || l->is_releasing || !l->is_wanted)
		return;
	l->is_leading_reported = true;
	if (l->options.callbacks.on_gained)
		l->options.callbacks.on_gained(l->options.arg);
}

static void on_expiry(evutil_socket_t fd, short what, void *arg)
{
	struct lease *l = arg;
	check_validity(l);
	if (!l->state.is_held)
		lease_act(l);
}

// ---- requests ----

// Returns the delay in ms before the next attempt after this error: a retry period, or the Retry-After up to a limit.
static int64_t lease_wait_after(const struct lease *l, const struct err *error)
{
	int64_t wait_ms = retry_ms(l), most_ms = l->options.timing.renew_deadline_ms / 2;
	if (error->retry_after_ms > wait_ms)
		wait_ms = error->retry_after_ms < most_ms ? error->retry_after_ms : most_ms;
	return wait_ms;
}

// ---- releasing: retried while the lease is valid, because the next holder would have to wait until it expires ----

// The release has completed, successfully or not.
static void lease_released(struct lease *l)
{
	l->is_releasing = false;
	l->must_read = true;
	lease_state_drop(&l->state);
	buf_done(&l->object);
	lease_act_at(l, INT64_MAX);
	if (l->options.callbacks.on_released)
		l->options.callbacks.on_released(l->options.arg);
}

static void lease_release_start(struct lease *l)
{
	l->is_releasing = true;
	l->release_asks = 0;
	l->act_at_ms = lease_now_ms(l);
	l->release_until_ms =
	        l->state.is_held ? l->state.valid_until_ms : l->act_at_ms + l->options.timing.renew_deadline_ms;
}

static void lease_release_failed(struct lease *l, const struct err *error)
{
	bool is_gone = error->code == 404 && error->kind == ERR_NOT_FOUND;
	bool is_outdated =
	        error->kind == ERR_CONFLICT; // its labels were changed, it was taken over, or our own request wrote it
	l->must_read = true;
	lease_report(l, is_gone || is_outdated ? NULL : error);
	if (is_gone)
		lease_state_observe(&l->state, NULL, lease_now_ms(l));
	if (is_gone || !err_kind_info(error->kind)->retryable) {
		lease_released(l);
		return;
	}
	l->act_at_ms = is_outdated ? lease_now_ms(l) : l->asked_ms + lease_wait_after(l, error);
	lease_act(l);
}

// A request could not be sent, or the response was an error: retries. A holder retries until its lease expires.
static void failed(struct lease *l, const struct err *error)
{
	lease_report(l, error);
	lease_act_at(l, lease_now_ms(l) + lease_wait_after(l, error));
}

// Sends a request. A failure to send it is handled like an error reply.
static void lease_ask(struct lease *l, enum lease_request request, const char *method, const struct buf *body)
{
	struct buf path;
	struct err e = {0};
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, LEASES_PATH "%s/leases", l->namespace_name);
	if (request != REQUEST_CREATE)
		buf_printf(&path, "/%s", l->name);
	l->request = request;
	l->asked_ms = lease_now_ms(l);
	int rc = k8s_request(l->options.client, method, buf_str(&path), body ? "application/json" : NULL,
	                     body ? body->data : NULL, body ? body->len : 0, on_reply, l, &e);
	buf_done(&path);
	if (rc == 0)
		return;
	l->request = REQUEST_NONE;
	if (l->is_releasing)
		lease_release_failed(l, &e);
	else
		failed(l, &e);
}

static void lease_send_write(struct lease *l, enum lease_request request)
{
	bool is_release = request == REQUEST_RELEASE;
	struct lease_write w = {
	        .namespace_name = l->namespace_name,
	        .name = l->name,
	        .group = l->options.group,
	        .role = l->options.role,
	        .n_shards = l->options.n_shards,
	        .holder = is_release ? "" : l->state.identity,
	        .duration_ms = is_release ? 1000 : l->options.timing.duration_ms,
	        .is_takeover = request == REQUEST_CREATE ||
	                       (request == REQUEST_UPDATE && !l->state.is_held && !lease_state_is_own(&l->state)),
	};
	lease_stamp(w.stamp, clock_wall_ms(l->options.clock), random_below(1000));
	struct buf body;
	struct err e = {0};
	buf_init(&body, LEASE_OBJECT_BYTES_MAX);
	int rc = lease_write_encode(&body, &w, request == REQUEST_CREATE ? NULL : buf_str(&l->object), l->object.len,
	                            &e);
	if (rc == 0) {
		// Just before it is sent, because it may take effect from here on. A write that releases the lease does
		// not acquire it, and must not hide which write did.
		if (!is_release)
			lease_state_trying(&l->state, w.stamp, request == REQUEST_CREATE, lease_now_ms(l));
		lease_ask(l, request, request == REQUEST_CREATE ? "POST" : "PUT", &body);
	} else if (is_release) {
		lease_released(l);
	} else {
		l->must_read = true;
		failed(l, &e);
	}
	buf_done(&body);
}

static void lease_release_continue(struct lease *l)
{
	int64_t now = lease_now_ms(l);
	if (now < l->act_at_ms && l->act_at_ms < l->release_until_ms) {
		lease_act_at(l, l->act_at_ms);
		return;
	}
	// A lease that was created and is not valid yet must not become free earlier: see lease_state_trying.
	bool is_own = l->object.len > 0 && lease_state_is_own(&l->state) && now >= l->state.valid_from_ms;
	if (now >= l->release_until_ms || l->act_at_ms >= l->release_until_ms || l->release_asks++ == RELEASE_ASKS_MAX)
		lease_released(l); // the lease expires by itself
	else if (l->options.is_deleted_at_end)
		lease_ask(l, REQUEST_RELEASE, "DELETE", NULL);
	else if (l->must_read && l->state.tried_stamp[0])
		lease_ask(l, REQUEST_GET, "GET", NULL);
	else if (is_own)
		lease_send_write(l, REQUEST_RELEASE);
	else
		lease_released(l); // the lease is not ours
}

// Performs the next action, or sets the timer for it.
static void lease_act(struct lease *l)
{
	if (l->request != REQUEST_NONE)
		return; // its reply calls this function again
	if (l->is_releasing) {
		lease_release_continue(l);
		return;
	}
	check_validity(l);
	if (l->is_releasing)
		return; // on_gained or on_lost released the lease and set the timer
	if (!l->state.is_held && !l->is_wanted) {
		lease_act_at(l, INT64_MAX);
		return;
	}
	if (lease_now_ms(l) < l->act_at_ms)
		lease_act_at(l, l->act_at_ms);
	else if (l->state.is_held && !l->must_read)
		lease_send_write(l, REQUEST_UPDATE);
	else
		lease_ask(l, REQUEST_GET, "GET", NULL);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	lease_act(arg);
}

// ---- responses ----

// Acquires the lease when it is free, or waits until then.
static void take_or_wait(struct lease *l)
{
	int64_t now = lease_now_ms(l), free_ms = lease_state_acquirable_at_ms(&l->state);
	if (l->is_releasing) {
		lease_act(l);
	} else if (!l->is_wanted) {
		lease_act_at(l, INT64_MAX);
	} else if (free_ms <= now) {
		lease_send_write(l, l->state.exists ? REQUEST_UPDATE : REQUEST_CREATE);
	} else {
		int64_t poll_ms = l->options.fed_by_watch ? INT64_MAX : now + retry_ms(l);
		lease_act_at(l, free_ms < poll_ms ? free_ms : poll_ms);
	}
}

static void on_read(struct lease *l)
{
	if (!l->state.is_held) {
		take_or_wait(l);
		return;
	}
	if (lease_state_is_own(&l->state)) {
		lease_send_write(l, REQUEST_UPDATE); // its labels were changed, or the reply to our last write was lost
		return;
	}
	char why[LEASE_IDENTITY_BYTES + 64];
	snprintf(why, sizeof why, "%s%s",
	         l->state.record.holder[0] ? "taken by " : "its holder was removed by another client",
	         l->state.record.holder);
	lose(l, why);
	take_or_wait(l);
}

static void on_written(struct lease *l, const struct lease_record *record)
{
	lease_state_wrote(&l->state, record, lease_now_ms(l));
	l->must_read = false;
	l->act_at_ms = l->state.tried_ms + l->options.timing.retry_period_ms;
	if (!l->is_wanted)
		lease_release_start(l); // the reply arrived too late
	lease_act(l);
}

static void on_missing(struct lease *l, enum lease_request request, const struct err *error)
{
	lease_state_observe(&l->state, NULL, lease_now_ms(l));
	if (l->state.is_held)
		lose(l, "deleted by another client");
	if (request == REQUEST_CREATE)
		failed(l, error); // the namespace does not exist
	else
		take_or_wait(l);
}

static void on_failure(struct lease *l, enum lease_request request, const struct err *error)
{
	if (l->is_releasing) {
		lease_release_failed(l, error);
	} else if (error->code == 404 && error->kind == ERR_NOT_FOUND) {
		on_missing(l, request, error);
	} else if (error->kind == ERR_CONFLICT) {
		l->must_read = true;
		lease_report(l, NULL);
		// A holder reads at once which write was faster; other processes were too late, or a new lease exists.
		lease_act_at(l, l->state.is_held || request == REQUEST_CREATE ? lease_now_ms(l)
		                                                              : lease_now_ms(l) + retry_ms(l));
	} else {
		l->must_read = true; // the write may have succeeded nevertheless
		failed(l, error);
	}
}

static void on_reply(void *arg, const struct http_response *response, const struct err *error)
{
	struct lease *l = arg;
	enum lease_request request = l->request;
	l->request = REQUEST_NONE;
	if (l->is_freed) {
		lease_free(l);
		return;
	}
	struct lease_record record;
	struct err e;
	if (response && request == REQUEST_RELEASE) {
		lease_released(l);
		return;
	}
	if (response && lease_record_decode(response->body, response->body_len, &record, &e) < 0)
		error = &e;
	if (response && !error) {
		buf_reset(&l->object);
		if (buf_put(&l->object, response->body, response->body_len) < 0) {
			err_set(&e, ERR_LIMIT, "the object has %zu bytes, the ceiling is %d", response->body_len,
			        LEASE_OBJECT_BYTES_MAX);
			error = &e;
		}
	}
	if (error) {
		on_failure(l, request, error);
		return;
	}
	lease_report(l, NULL);
	if (request != REQUEST_GET) {
		on_written(l, &record);
		return;
	}
	lease_state_observe(&l->state, &record, lease_now_ms(l));
	l->must_read = false;
	if (l->is_releasing)
		lease_act(l);
	else
		on_read(l);
}

// ---- the public face ----

struct lease *lease_new(const struct lease_options *o, struct err *e)
{
	if (!k8s_name_is_valid(o->namespace_name) || !k8s_name_is_valid(o->name)) {
		err_set(e, ERR_USAGE, "invalid namespace and name of a lease: \"%.80s/%.80s\"", o->namespace_name,
		        o->name);
		return NULL;
	}
	if (!o->identity[0] || strlen(o->identity) >= LEASE_IDENTITY_BYTES) {
		err_set(e, ERR_USAGE, "the identity of a lease holder must have 1 to %d bytes",
		        LEASE_IDENTITY_BYTES - 1);
		return NULL;
	}
	struct lease *l = err_calloc(sizeof *l, e);
	if (!l)
		return NULL;
	l->options = *o;
	lease_state_init(&l->state, &o->timing, o->identity);
	snprintf(l->namespace_name, sizeof l->namespace_name, "%s", o->namespace_name);
	snprintf(l->name, sizeof l->name, "%s", o->name);
	buf_init(&l->object, LEASE_OBJECT_BYTES_MAX);
	l->act_at_ms = INT64_MAX;
	l->must_read = true;
	evtimer_assign(&l->timer, o->loop, on_timer, l);
	evtimer_assign(&l->expiry, o->loop, on_expiry, l);
	return l;
}

void lease_free(struct lease *l)
{
	if (!l)
		return;
	evtimer_del(&l->timer);
	evtimer_del(&l->expiry);
	buf_done(&l->object);
	if (l->request != REQUEST_NONE) {
		l->is_freed = true; // the reply frees it
		return;
	}
	free(l);
}

void lease_set_candidate(struct lease *l, bool is_wanted)
{
	if (l->is_wanted == is_wanted)
		return;
	l->is_wanted = is_wanted;
	// A lease that the caller watches is acquired when it is known to be free.
	if (is_wanted && l->options.fed_by_watch)
		lease_act_at(l, lease_state_acquirable_at_ms(&l->state));
	else
		lease_act_at(l, is_wanted ? lease_now_ms(l) : INT64_MAX);
}

void lease_observe(struct lease *l, const struct lease_record *record)
{
	if (l->state.is_held || l->request != REQUEST_NONE)
		return; // our own requests are more recent
	lease_state_observe(&l->state, record, lease_now_ms(l));
	if (l->is_wanted)
		lease_act_at(l, lease_state_acquirable_at_ms(&l->state));
}

void lease_release(struct lease *l)
{
	l->is_wanted = l->is_leading_reported = false;
	lease_release_start(l);
	lease_state_drop(&l->state);
	evtimer_del(&l->expiry);
	lease_act_at(l, l->act_at_ms);
}

int64_t lease_valid_for_ms(const struct lease *l)
{
	return l->is_releasing || !l->is_leading_reported ? 0 : lease_state_valid_for_ms(&l->state, lease_now_ms(l));
}
