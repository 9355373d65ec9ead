// SPDX-License-Identifier: Apache-2.0
#include "k8s/cache/watch.h"

#include <event2/event.h>
#include <event2/util.h>

#include "base/backoff.h"
#include "base/base.h"
#include "base/clock.h"
#include "base/http/http_client.h"
#include "base/json/json_span.h"
#include "base/timer.h"
#include "k8s/cache/target_decode.h"
#include "k8s/cache/watch_private.h"
#include "k8s/client/k8s_client.h"

#define HEADERS_TIMEOUT_MS  20000
#define LIST_IDLE_MS        30000
#define HEALTHY_AFTER_S     1 // a stream that is open this long works, even without events
#define RESUME_JITTER_MS    500
#define CHECKS_MAX          3      // a server that refuses lists may still have streams
#define EARLY_MS            5000   // a stream that ends this much before the time that was requested ended early
#define STREAM_GRACE_MS     30000  // a stream that is open this much longer than requested is broken
#define BOOKMARK_SILENCE_MS 200000 // a server that sends them sends one every minute
#define RELIST_AFTER        5      // failures in a row with an error of the server: the version may be invalid
#define QUIET_RELISTS       2      // in a row; more are reported as an error
#define PAGES_MAX           (K8S_WATCH_OBJECTS_MAX / K8S_WATCH_PAGE * 2) // a server may make them shorter

// ---- calls of the callbacks ----

static void notify(struct k8s_watch *w, void (*fn)(void *arg))
{
	w->in_callback = true;
	fn(w->arg);
	w->in_callback = false;
}

static void report_object(struct k8s_watch *w, void (*fn)(void *arg, const char *json, size_t len), const char *json,
                          size_t len)
{
	w->in_callback = true;
	fn(w->arg, json, len);
	w->in_callback = false;
}

// Reports an error, or with NULL that there is none, when it differs from the last report.
static void report_error(struct k8s_watch *w, const struct err *error)
{
	const struct err now = error ? *error : (struct err){0};
	if (w->error.kind == now.kind && strcmp(w->error.msg, now.msg) == 0)
		return;
	w->error = now;
	if (!w->callbacks.on_error)
		return;
	w->in_callback = true;
	w->callbacks.on_error(w->arg, error);
	w->in_callback = false;
}

static void report_too_large(struct k8s_watch *w)
{
	struct err e;
	err_set_code(&e, ERR_LIMIT, K8S_WATCH_LEFT_OUT, "%s: an object of %zu bytes was left out, the ceiling is %d",
	             w->path, w->too_large_bytes, K8S_WATCH_OBJECT_BYTES_MAX);
	report_error(w, &e);
}

// Reports that the complete list left out an object, if it did; also when the previous list did.
static void report_left_out(struct k8s_watch *w)
{
	if (w->too_large_bytes == 0)
		return;
	err_clear(&w->error); // reported again
	report_too_large(w);
}

// Reports that the stream works: it was open long enough, or sent an event.
static void report_health(struct k8s_watch *w)
{
	w->is_good = true;
	w->failures = w->answered_failures = w->relists = 0;
	if (w->too_large_bytes)
		report_too_large(w);
	else
		report_error(w, NULL);
}

// ---- objects ----

static bool is_map_of_texts(struct json_span map)
{
	struct json_span_iter it = {.rest = map};
	char kind = json_span_kind(map);
	while (kind == '{' && json_span_next(&it)) {
		if (json_span_kind(it.value) != '"')
			return false;
	}
	return kind == '{' || kind == 'n' || kind == '\0';
}

// The caller identifies objects by name and labels. It would consider an object without valid ones as deleted.
static bool is_object(struct json_span o)
{
	char name[WATCH_NAME_BYTES];
	struct json_span metadata = json_span_get(o, "metadata"), where = json_span_get(metadata, "namespace");
	return (!where.text || json_span_kind(where) == '"') &&
	       json_span_text(json_span_get(metadata, "name"), name, sizeof name) > 0 &&
	       is_map_of_texts(json_span_get(metadata, "labels"));
}

static int check_object(struct k8s_watch *w, struct json_span o)
{
	return is_object(o) ? 0
	                    : err_set(&w->inner, ERR_PROTOCOL, "an object of %zu bytes has no valid metadata", o.len);
}

// ---- the list ----

static void read_list_metadata(struct k8s_watch *w, const char *json, size_t len)
{
	struct json_span o = {json, len}, version = json_span_get(o, "resourceVersion"),
	                 next = json_span_get(o, "continue");
	json_span_text(version, w->page_version, sizeof w->page_version);
	if (!next.text || json_span_is(next, ""))
		return;
	if (!w->page_next)
		w->page_next = must_alloc(malloc(WATCH_CONTINUE_BYTES));
	if (json_span_text(next, w->page_next, WATCH_CONTINUE_BYTES) < 0)
		err_set(&w->inner, next.len > WATCH_CONTINUE_BYTES ? ERR_LIMIT : ERR_PROTOCOL,
		        "metadata.continue has %zu bytes, expected a string of at most %d", next.len,
		        WATCH_CONTINUE_BYTES);
}

void watch_on_list_part(void *arg, enum watch_part part, const char *type, const char *json, size_t len)
{
	struct k8s_watch *w = arg;
	if (w->inner.kind != ERR_NONE)
		return;
	switch (part) {
	case WATCH_PART_ITEM:
		if (w->phase == WATCH_CHECKING)
			break;
		if (w->objects + ++w->page_objects > K8S_WATCH_OBJECTS_MAX)
			err_set(&w->inner, ERR_LIMIT, "more than %d objects", K8S_WATCH_OBJECTS_MAX);
		else if (check_object(w, (struct json_span){json, len}) == 0)
			report_object(w, w->callbacks.on_object, json, len);
		break;
	case WATCH_PART_METADATA:
		read_list_metadata(w, json, len);
		break;
	case WATCH_PART_TOO_LARGE:
		if (w->phase == WATCH_CHECKING)
			break;
		w->too_large_bytes = len;
		w->stats.too_large++;
		break;
	default:
		w->is_complete = true;
		break;
	}
}

int watch_check_page(const struct k8s_watch *w, struct err *e)
{
	if (!w->is_complete)
		return err_set(e, ERR_PROTOCOL, "the list is incomplete");
	if (!w->page_version[0])
		return err_set(e, ERR_PROTOCOL, "the list has no valid metadata.resourceVersion");
	if (w->page_next && w->pages + 1 >= PAGES_MAX)
		return err_set(e, ERR_LIMIT, "the list has more than %d pages", PAGES_MAX);
	return 0;
}

// ---- the stream ----

// An invalid version ends the stream: resuming from the previous version would repeat the event endlessly.
static void read_version(struct k8s_watch *w, struct json_span object)
{
	static const char *const path[] = {"metadata", "resourceVersion", NULL};
	char version[WATCH_VERSION_BYTES];
	if (json_span_text(json_span_path(object, path), version, sizeof version) > 0) {
		memcpy(w->version, version, sizeof version);
		w->has_version = true;
	} else {
		err_set(&w->inner, ERR_PROTOCOL, "an event has no valid metadata.resourceVersion");
	}
}

static void on_error_event(struct k8s_watch *w, struct json_span status)
{
	int64_t code;
	if (!json_span_i64(json_span_get(status, "code"), 400, 599, &code))
		code = 500;
	w->is_gone = code == 410;
	k8s_status_to_err((int)code, status.text, status.len, &w->inner);
}

void watch_on_event_part(void *arg, enum watch_part part, const char *type, const char *json, size_t len)
{
	struct k8s_watch *w = arg;
	struct json_span object = {json, len};
	if (part == WATCH_PART_END || w->inner.kind != ERR_NONE)
		return;
	if (part == WATCH_PART_TOO_LARGE) {
		w->too_large_bytes = len;
		w->stats.too_large++;
		report_health(w);
		return;
	}
	if (strcmp(type, "ERROR") == 0) {
		on_error_event(w, object);
		return;
	}
	bool is_bookmark = strcmp(type, "BOOKMARK") == 0, is_deleted = strcmp(type, "DELETED") == 0;
	// Checked before its version is used: resuming after an invalid event would lose the event.
	if (!is_bookmark && !is_deleted && strcmp(type, "ADDED") != 0 && strcmp(type, "MODIFIED") != 0)
		err_set(&w->inner, ERR_PROTOCOL, "an event has the unknown type \"%s\"", type);
	else if (is_bookmark || check_object(w, object) == 0)
		read_version(w, object);
	if (w->inner.kind != ERR_NONE)
		return;
	report_health(w);
	if (is_bookmark) {
		w->stats.bookmarks++;
		w->sends_bookmarks = true;
		return;
	}
	w->stats.events++;
	report_object(w, is_deleted ? w->callbacks.on_deleted : w->callbacks.on_object, json, len);
}

// ---- the next request ----

static void wait_ms(struct k8s_watch *w, enum watch_phase next, int64_t ms)
{
	w->phase = next;
	if (timer_start(&w->timer, ms) < 0)
		abort(); // libevent has no memory for a timer (base/alloc.h)
}

static void forget_list(struct k8s_watch *w)
{
	free(w->next_page);
	w->next_page = NULL;
	w->pages = 0;
	w->objects = 0;
	w->in_list = false;
}

static int64_t retry_delay_ms(int failures, int64_t retry_after_ms)
{
	static const struct backoff backoff = {.first_ms = K8S_WATCH_BACKOFF_FIRST_MS,
	                                       .max_ms = K8S_WATCH_BACKOFF_MAX_MS,
	                                       .max_retry_after_ms = K8S_RETRY_AFTER_MAX_MS};
	return backoff_ms(&backoff, failures, retry_after_ms);
}

// Tries again later. A stream that only broke is reported as an error when resuming it fails, too.
static void fail(struct k8s_watch *w, const struct err *error, bool only_broke)
{
	enum watch_phase next = w->phase == WATCH_LISTING ? WATCH_LISTING : WATCH_STREAMING;
	bool is_answer = (error->code >= 400 && error->kind != ERR_THROTTLED) || error->kind == ERR_PROTOCOL;
	w->failures++;
	w->answered_failures = is_answer ? w->answered_failures + 1 : 0;
	w->is_doubtful = true; // the server may have been restored meanwhile
	if (next == WATCH_STREAMING && w->answered_failures >= RELIST_AFTER) {
		w->answered_failures = 0;
		next = WATCH_LISTING;
	}
	wait_ms(w, next, retry_delay_ms(w->failures, error->retry_after_ms));
	if (!only_broke || w->failures > 1)
		report_error(w, error);
}

// Lists again, after a delay: many watches lose their versions at the same time.
static void relist(struct k8s_watch *w, const struct err *error)
{
	w->stats.gone++;
	w->relists++;
	forget_list(w);
	wait_ms(w, WATCH_LISTING, retry_delay_ms(w->relists, 0) / 2);
	if (w->relists > QUIET_RELISTS)
		report_error(w, error);
}

static void request_page(struct k8s_watch *w);
static void resume(struct k8s_watch *w);

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct k8s_watch *w = arg;
	if (w->call)
		report_health(w);
	else if (w->phase == WATCH_LISTING)
		request_page(w);
	else
		resume(w);
}

// ---- the list ----

static void on_page_end(struct k8s_watch *w, const struct err *error)
{
	struct err e = error ? *error : (struct err){0};
	if (w->next_page && e.code == 410) { // the server forgot the snapshot that the token names
		relist(w, &e);
		return;
	}
	bool is_unusable = !error && watch_check_page(w, &e) < 0;
	if (e.kind != ERR_NONE) {
		// Requesting the same page again would not help, or would return another list: objects on a partly read
		// first page may have been deleted since.
		if (is_unusable || w->inner.kind != ERR_NONE || !w->next_page)
			forget_list(w);
		err_wrap(&e, "list of %s", w->path);
		fail(w, &e, false);
		return;
	}
	w->objects += w->page_objects;
	// Changes are followed from the version of the first page: where the server's pages are not one snapshot, a
	// later version would skip changes to the objects of earlier pages.
	if (w->pages++ == 0)
		memcpy(w->list_version, w->page_version, sizeof w->list_version);
	free(w->next_page);
	w->next_page = w->page_next;
	w->page_next = NULL;
	if (w->next_page) {
		request_page(w);
		return;
	}
	memcpy(w->version, w->list_version, sizeof w->version);
	forget_list(w);
	w->stats.is_synced = true;
	w->is_doubtful = false;
	w->phase = WATCH_STREAMING;
	report_left_out(w); // before the caller considers the object deleted
	notify(w, w->callbacks.on_synced);
	if (w->phase == WATCH_STREAMING)
		resume(w); // otherwise on_synced requested another list
}

// ---- the stream ----

// A server whose etcd was restored from a backup counts its versions from there. It keeps a watch that resumes from a
// later version open and sends nothing until it has caught up, so objects that the backup does not contain would be
// kept. A list is the only request whose reply names the current version; one object of it suffices.
static void on_check_end(struct k8s_watch *w, const struct err *error)
{
	struct err e = error ? *error : (struct err){0};
	uint64_t now = k8s_version_number(w->page_version), before = k8s_version_number(w->version);
	free(w->page_next);
	w->page_next = NULL;
	w->refused_checks = e.code == 429 || e.code >= 500 ? w->refused_checks + 1 : 0;
	if (e.kind != ERR_NONE || watch_check_page(w, &e) < 0) {
		err_wrap(&e, "list of %s", w->path);
		fail(w, &e, false);
	} else if (now && now < before) {
		err_set(&e, ERR_PROTOCOL, "watch of %s: the server went back from version %s to %s", w->path,
		        w->version, w->page_version);
		relist(w, &e);
	} else {
		w->is_doubtful = false;
		resume(w);
	}
}

// Kubernetes: apimachinery, NewTooLargeResourceVersionError
static bool is_version_too_large(const struct err *e)
{
	return e->code == 504 && strstr(e->msg, "Too large resource version: ");
}

static void on_stream_end(struct k8s_watch *w, const struct err *error)
{
	struct err e = error ? *error : (struct err){0};
	if (w->is_gone || e.code == 410 || is_version_too_large(&e)) {
		relist(w, &e);
		return;
	}
	w->refused_checks = 0;
	int64_t open_ms = clock_mono_ms(w->client->options.clock) - w->opened_ms;
	// The stream ended before its time, as when a server stops, or nothing came for long.
	w->is_doubtful |= w->is_open && (open_ms < w->timeout_ms - EARLY_MS || !w->has_version);
	bool only_broke = w->is_open && w->inner.kind == ERR_NONE;
	if (e.kind == ERR_NONE && !json_scan_is_between(&w->scan.json))
		err_set(&e, ERR_UNREACHABLE, "the stream ended in the middle of an event");
	else if (e.kind == ERR_NONE && !w->is_good)
		err_set(&e, ERR_UNREACHABLE, "the server closes the stream immediately after opening it");
	if (e.kind == ERR_NONE) { // the requested time has passed
		wait_ms(w, WATCH_STREAMING, backoff_random_ms(RESUME_JITTER_MS));
		return;
	}
	err_wrap(&e, "watch of %s", w->path);
	fail(w, &e, only_broke);
}

// ---- requests ----

static void on_data(void *arg, const char *data, size_t len)
{
	struct k8s_watch *w = arg;
	w->stats.last_heard_mono_ms = clock_mono_ms(w->client->options.clock);
	if (len == 0) {
		w->is_open = true;
		w->stats.is_streaming = w->phase == WATCH_STREAMING;
		if (w->phase == WATCH_STREAMING) {
			w->opened_ms = w->stats.last_heard_mono_ms;
			event_add(&w->timer, &(struct timeval){.tv_sec = HEALTHY_AFTER_S});
		}
		return;
	}
	struct err e = {0};
	if (watch_scan_feed(&w->scan, data, len, &e) < 0 && w->inner.kind == ERR_NONE)
		w->inner = e;
	if (w->inner.kind != ERR_NONE)
		k8s_call_cancel(w->call); // on_done continues
}

static void on_done(void *arg, const struct http_response *response, const struct err *error)
{
	struct k8s_watch *w = arg;
	w->call = NULL;
	w->stats.is_streaming = false;
	event_del(&w->timer);
	if (w->is_canceled)
		return;
	if (w->inner.kind != ERR_NONE)
		error = &w->inner;
	if (error && error->kind == ERR_CANCELED)
		w->phase = WATCH_STOPPED; // the client is being freed
	else if (w->phase == WATCH_LISTING)
		on_page_end(w, error);
	else if (w->phase == WATCH_CHECKING)
		on_check_end(w, error);
	else
		on_stream_end(w, error);
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
	bool is_list = w->phase != WATCH_STREAMING;
	watch_scan_done(&w->scan);
	watch_scan_init(&w->scan, is_list ? WATCH_SCAN_LIST : WATCH_SCAN_EVENTS, K8S_WATCH_OBJECT_BYTES_MAX,
	                is_list ? watch_on_list_part : watch_on_event_part, w);
	err_clear(&w->inner);
	w->is_open = false;
	if (path->failed)
		err_set(&e, ERR_LIMIT, "the path of the request exceeds %d bytes", K8S_PATH_BYTES_MAX);
	else if (k8s_request_with(w->client, &o, &w->call, &e) == 0)
		return;
	w->call = NULL;
	if (e.kind == ERR_CANCELED)
		w->phase = WATCH_STOPPED;
	else
		fail(w, &e, false);
}

static void start_page(struct k8s_watch *w)
{
	free(w->page_next);
	w->page_next = NULL;
	w->page_version[0] = '\0';
	w->page_objects = 0;
	w->is_complete = false;
}

static void request_page(struct k8s_watch *w)
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
	start_page(w);
	w->phase = WATCH_LISTING;
	if (!w->in_list) {
		w->in_list = true;
		w->too_large_bytes = 0;
		notify(w, w->callbacks.on_list);
	}
	ask(w, &path, "LIST", LIST_IDLE_MS);
	buf_done(&path);
}

static void request_stream(struct k8s_watch *w)
{
	// At random, so that streams that were opened together are not renewed together.
	w->timeout_ms = K8S_WATCH_TIMEOUT_MS + backoff_random_ms(K8S_WATCH_TIMEOUT_MS);
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "%s?watch=true&allowWatchBookmarks=true&timeoutSeconds=%lld%s&resourceVersion=", w->path,
	           (long long)(w->timeout_ms / 1000), w->selectors);
	http_append_urlencoded(&path, w->version);
	w->stats.streams++;
	w->is_good = w->is_gone = w->has_version = false;
	w->phase = WATCH_STREAMING;
	ask(w, &path, "WATCH", w->sends_bookmarks ? BOOKMARK_SILENCE_MS : w->timeout_ms + STREAM_GRACE_MS);
	buf_done(&path);
}

static void request_check(struct k8s_watch *w)
{
	struct buf path;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "%s?limit=1%s", w->path, w->selectors);
	start_page(w);
	w->phase = WATCH_CHECKING;
	ask(w, &path, "LIST", LIST_IDLE_MS);
	buf_done(&path);
}

static void resume(struct k8s_watch *w)
{
	if (w->is_doubtful && w->refused_checks < CHECKS_MAX)
		request_check(w);
	else
		request_stream(w);
}

// ---- start and stop ----

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
		err_set(e, ERR_INPUT, "invalid path of a collection: \"%.100s\"", options->path);
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
	evtimer_assign(&w->timer, w->client->options.loop, on_timer, w);
	wait_ms(w, WATCH_LISTING, 0); // callbacks run from the loop only
	return w;
}

static void cancel(struct k8s_watch *w)
{
	w->is_canceled = true;
	if (w->call)
		k8s_call_cancel(w->call);
	w->is_canceled = false;
	event_del(&w->timer);
}

void k8s_watch_relist(struct k8s_watch *w)
{
	if (w->phase == WATCH_STOPPED)
		return;
	assert(!w->in_callback || !w->call);
	cancel(w);
	forget_list(w);
	// After a short time, so that several calls in a row cost one list; after failures, when the next attempt is
	// due.
	wait_ms(w, WATCH_LISTING, w->failures ? retry_delay_ms(w->failures, 0) : RESUME_JITTER_MS / 5);
}

void k8s_watch_free(struct k8s_watch *w)
{
	if (!w)
		return;
	assert(!w->in_callback);
	cancel(w);
	watch_scan_done(&w->scan);
	free(w->next_page);
	free(w->page_next);
	free(w->path);
	free(w->selectors);
	free(w);
}

void k8s_watch_get_stats(const struct k8s_watch *w, struct k8s_watch_stats *ret_stats)
{
	*ret_stats = w->stats;
}
