// SPDX-License-Identifier: Apache-2.0
#include "k8s/watch.h"

#include <assert.h>
#include <event2/event.h>
#include <event2/util.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/http_client.h"
#include "k8s/k8s_client.h"
#include "k8s/watch_private.h"

#define HEADERS_TIMEOUT_MS  20000
#define LIST_IDLE_MS        30000
#define HEALTHY_AFTER_S     1 // a stream open this long is a good one, even if nothing happens
#define RESUME_JITTER_MS    500
#define STREAM_GRACE_MS     30000  // the server ends a stream at the time asked for; later it must be gone
#define BOOKMARK_SILENCE_MS 200000 // a server that sends them sends one every minute
#define RELIST_AFTER        5      // failures in a row that the server answered itself: the version may be at fault
#define QUIET_RELISTS       2      // in a row; more is told as an error

static int64_t random_ms(int64_t below)
{
	uint32_t bits = 0;
	evutil_secure_rng_get_bytes(&bits, sizeof bits);
	return (int64_t)(bits % (uint64_t)below);
}

// ---- what comes next ----

static void wait_ms(struct k8s_watch *w, enum watch_phase next, int64_t ms)
{
	struct timeval tv = {.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
	w->phase = next;
	if (event_add(&w->timer, &tv) < 0)
		abort(); // out of memory
}

static void forget_list(struct k8s_watch *w)
{
	free(w->next_page);
	w->next_page = NULL;
	w->pages = 0;
	w->objects = 0;
	w->in_list = false;
}

// Doubling backoff, the last half of it at random; a Retry-After is waited for at least, up to the client's ceiling.
static int64_t backoff_ms(int failures, int64_t retry_after_ms)
{
	int64_t step = K8S_WATCH_BACKOFF_FIRST_MS;
	for (int i = 1; i < failures && step < K8S_WATCH_BACKOFF_MAX_MS; i++)
		step *= 2;
	if (step > K8S_WATCH_BACKOFF_MAX_MS)
		step = K8S_WATCH_BACKOFF_MAX_MS;
	int64_t wait = step / 2 + random_ms(step / 2 + 1);
	int64_t asked = retry_after_ms < K8S_RETRY_AFTER_MAX_MS ? retry_after_ms : K8S_RETRY_AFTER_MAX_MS;
	return wait > asked ? wait : asked + random_ms(asked / 10 + 1);
}

// Tries again later. A stream that merely broke is no error yet: only when going on fails too.
static void fail(struct k8s_watch *w, const struct err *error, bool merely_broke)
{
	enum watch_phase next = w->phase;
	bool is_answer = (error->code >= 400 && error->kind != ERR_THROTTLED) || error->kind == ERR_PROTOCOL;
	w->failures++;
	w->answered_failures = is_answer ? w->answered_failures + 1 : 0;
	if (next == WATCH_STREAMING && w->answered_failures >= RELIST_AFTER) {
		w->answered_failures = 0;
		next = WATCH_LISTING;
	}
	wait_ms(w, next, backoff_ms(w->failures, error->retry_after_ms));
	if (!merely_broke || w->failures > 1)
		watch_tell_error(w, error);
}

// Not at once: many watches lose their versions at the same time.
static void relist(struct k8s_watch *w, const struct err *error)
{
	w->stats.gone++;
	w->relists++;
	forget_list(w);
	wait_ms(w, WATCH_LISTING, backoff_ms(w->relists, 0) / 2);
	if (w->relists > QUIET_RELISTS)
		watch_tell_error(w, error);
}

static void begin_page(struct k8s_watch *w);
static void begin_stream(struct k8s_watch *w);

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct k8s_watch *w = arg;
	if (w->call)
		watch_tell_health(w);
	else if (w->phase == WATCH_LISTING)
		begin_page(w);
	else
		begin_stream(w);
}

// ---- the list ----

static void page_ended(struct k8s_watch *w, const struct err *error)
{
	struct err e = error ? *error : (struct err){0};
	if (w->next_page && e.code == 410) { // the server forgot the snapshot that the token names
		relist(w, &e);
		return;
	}
	bool is_unusable = !error && watch_check_page(w, &e) < 0;
	if (e.kind != ERR_NONE) {
		if (is_unusable || w->inner.kind != ERR_NONE)
			forget_list(w); // asking for the same page again would not help
		err_wrap(&e, "list of %s", w->path);
		fail(w, &e, false);
		return;
	}
	w->objects += w->page_objects;
	w->pages++;
	free(w->next_page);
	w->next_page = w->page_next;
	w->page_next = NULL;
	if (w->next_page) {
		begin_page(w);
		return;
	}
	memcpy(w->version, w->page_version, sizeof w->version);
	forget_list(w);
	w->stats.is_synced = true;
	w->phase = WATCH_STREAMING;
	watch_tell_too_large(w); // before the owner takes what is left out for gone
	watch_tell(w, w->callbacks.on_synced);
	begin_stream(w);
}

// ---- the stream ----

static void stream_ended(struct k8s_watch *w, const struct err *error)
{
	struct err e = error ? *error : (struct err){0};
	if (w->is_gone || e.code == 410) {
		relist(w, &e);
		return;
	}
	bool merely_broke = w->is_open && w->inner.kind == ERR_NONE;
	if (e.kind == ERR_NONE && !watch_scan_is_between(&w->scan))
		err_set(&e, ERR_UNREACHABLE, "the stream ended in the middle of an event");
	else if (e.kind == ERR_NONE && !w->is_good)
		err_set(&e, ERR_UNREACHABLE, "the server ends the stream as soon as it is open");
	if (e.kind == ERR_NONE) { // its time was over
		wait_ms(w, WATCH_STREAMING, random_ms(RESUME_JITTER_MS));
		return;
	}
	err_wrap(&e, "watch of %s", w->path);
	fail(w, &e, merely_broke);
}

// ---- requests ----

static void on_data(void *arg, const char *data, size_t len)
{
	struct k8s_watch *w = arg;
	w->stats.last_heard_mono_ms = clock_mono_ms(k8s_client_clock(w->client));
	if (len == 0) {
		w->is_open = true;
		w->stats.is_streaming = w->phase == WATCH_STREAMING;
		if (w->phase == WATCH_STREAMING) {
			event_add(&w->timer, &(struct timeval){.tv_sec = HEALTHY_AFTER_S});
		} else if (!w->in_list) {
			w->in_list = true;
			w->too_large_bytes = 0;
			watch_tell(w, w->callbacks.on_list);
		}
		return;
	}
	struct err e = {0};
	if (watch_scan_feed(&w->scan, data, len, &e) < 0 && w->inner.kind == ERR_NONE)
		w->inner = e;
	if (w->inner.kind != ERR_NONE)
		k8s_call_cancel(w->call); // on_done goes on
}

static void on_done(void *arg, const struct http_response *response, const struct err *error)
{
	struct k8s_watch *w = arg;
	w->call = NULL;
	w->stats.is_streaming = false;
	event_del(&w->timer);
	if (w->is_let_go)
		return;
	if (w->inner.kind != ERR_NONE)
		error = &w->inner;
	if (error && error->kind == ERR_CANCELED)
		w->phase = WATCH_STOPPED; // by the client, which is closing
	else if (w->phase == WATCH_LISTING)
		page_ended(w, error);
	else
		stream_ended(w, error);
}

static void ask(struct k8s_watch *w, const struct buf *path, const char *verb, int64_t idle_ms)
{
	struct err e = {0};
	struct k8s_request_options o = {.method = "GET",
	                                .path = buf_str(path),
	                                .verb = verb,
	                                .timeout_ms = HEADERS_TIMEOUT_MS,
	                                .idle_timeout_ms = idle_ms,
	                                .on_data = on_data,
	                                .done = on_done,
	                                .arg = w};
	bool is_list = w->phase == WATCH_LISTING;
	watch_scan_done(&w->scan);
	watch_scan_init(&w->scan, is_list ? WATCH_SCAN_LIST : WATCH_SCAN_EVENTS, K8S_WATCH_OBJECT_BYTES_MAX,
	                is_list ? watch_on_list_part : watch_on_event_part, w);
	err_clear(&w->inner);
	w->is_open = false;
	if (path->failed)
		err_set(&e, ERR_LIMIT, "the path of a request would pass %d bytes", K8S_PATH_BYTES_MAX);
	else if (k8s_request_with(w->client, &o, &w->call, &e) == 0)
		return;
	w->call = NULL;
	if (e.kind == ERR_CANCELED)
		w->phase = WATCH_STOPPED;
	else
		fail(w, &e, false);
}

static void begin_page(struct k8s_watch *w)
{
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "%s?limit=%d%s", w->path, K8S_WATCH_PAGE, w->selectors);
	if (w->next_page) {
		buf_puts(&path, "&continue=");
		http_append_urlencoded(&path, w->next_page);
	} else {
		w->stats.lists++;
	}
	free(w->page_next);
	w->page_next = NULL;
	w->page_version[0] = '\0';
	w->page_objects = 0;
	w->is_complete = false;
	w->phase = WATCH_LISTING;
	ask(w, &path, "LIST", LIST_IDLE_MS);
	buf_done(&path);
}

static void begin_stream(struct k8s_watch *w)
{
	// Spread, so that streams that began together do not end together.
	int64_t timeout_ms = K8S_WATCH_TIMEOUT_MS + random_ms(K8S_WATCH_TIMEOUT_MS);
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%lld%s&resourceVersion=", w->path,
	           (long long)(timeout_ms / 1000), w->selectors);
	http_append_urlencoded(&path, w->version);
	w->stats.streams++;
	w->is_good = w->is_gone = false;
	w->phase = WATCH_STREAMING;
	ask(w, &path, "WATCH", w->sends_bookmarks ? BOOKMARK_SILENCE_MS : timeout_ms + STREAM_GRACE_MS);
	buf_done(&path);
}

// ---- life ----

static char *format_selectors(const struct k8s_watch_options *o)
{
	struct buf text;
	buf_init(&text, K8S_PATH_BYTES_MAX);
	buf_puts(&text, "");
	if (o->label_selector) {
		buf_puts(&text, "&labelSelector=");
		http_append_urlencoded(&text, o->label_selector);
	}
	if (o->field_selector) {
		buf_puts(&text, "&fieldSelector=");
		http_append_urlencoded(&text, o->field_selector);
	}
	char *copy = text.failed ? NULL : strdup(buf_str(&text));
	buf_done(&text);
	return copy;
}

struct k8s_watch *k8s_watch_new(const struct k8s_watch_options *options, struct err *e)
{
	const struct k8s_watch_callbacks *fns = &options->callbacks;
	assert(fns->on_list && fns->on_object && fns->on_deleted && fns->on_synced);
	if (options->path[0] != '/' || strpbrk(options->path, "?# \t\r\n")) {
		err_set(e, ERR_INPUT, "\"%.100s\" is no path of a collection", options->path);
		return NULL;
	}
	struct k8s_watch *w = calloc(1, sizeof *w);
	char *path = strdup(options->path), *selectors = format_selectors(options);
	if (!w || !path || !selectors) {
		free(w);
		free(path);
		free(selectors);
		err_set(e, ERR_LIMIT, "watch of %.200s: out of memory, or selectors of more than %d bytes",
		        options->path, K8S_PATH_BYTES_MAX);
		return NULL;
	}
	w->client = options->client;
	w->callbacks = *fns;
	w->arg = options->arg;
	w->path = path;
	w->selectors = selectors;
	w->phase = WATCH_LISTING;
	evtimer_assign(&w->timer, k8s_client_loop(w->client), on_timer, w);
	wait_ms(w, WATCH_LISTING, 0); // callbacks run from the loop only
	return w;
}

static void let_go(struct k8s_watch *w)
{
	assert(!w->in_callback);
	w->is_let_go = true;
	if (w->call)
		k8s_call_cancel(w->call);
	w->is_let_go = false;
	event_del(&w->timer);
}

void k8s_watch_relist(struct k8s_watch *w)
{
	if (w->phase == WATCH_STOPPED)
		return;
	let_go(w);
	forget_list(w);
	// A short while, so that several wishes in a row cost one list; after failures as long as they take.
	wait_ms(w, WATCH_LISTING, w->failures ? backoff_ms(w->failures, 0) : RESUME_JITTER_MS / 5);
}

void k8s_watch_free(struct k8s_watch *w)
{
	if (!w)
		return;
	let_go(w);
	watch_scan_done(&w->scan);
	free(w->next_page);
	free(w->page_next);
	free(w->error);
	free(w->path);
	free(w->selectors);
	free(w);
}

void k8s_watch_get_stats(const struct k8s_watch *w, struct k8s_watch_stats *ret_stats)
{
	*ret_stats = w->stats;
}
