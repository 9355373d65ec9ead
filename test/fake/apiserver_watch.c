// SPDX-License-Identifier: Apache-2.0
// Streams of the fake API server: every change to every watcher whose selectors want it, bookmarks, and a window of the
// past per kind, from which a watch can resume; from before it, it gets 410.
// Kubernetes: staging/src/k8s.io/apiserver/pkg/storage/cacher.
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/http/http_server.h"
#include "base/num.h"
#include "test/fake/apiserver_private.h"
#include "test/support/http_stream.h"

#define WINDOW           1024 // changes of one kind
#define DEFAULT_LIFE_MS  1800000
#define BOOKMARK_MS      60000
#define LAST_BOOKMARK_MS 2000 // before the stream's end
#define LINE_BYTES_MAX   (4 * 1024 * 1024)

struct past {
	enum fake_change_type type;
	uint64_t version;
	char *ns;
	struct fake_text *old_text, *text;
};

struct window {
	struct past ring[WINDOW];
	size_t n, first;
	uint64_t oldest; // a watch can start from here
	uint64_t newest; // the last change
};

struct watcher {
	struct watcher *prev, *next;
	struct fake_watches *owner;
	struct http_exchange *x;
	const struct fake_kind *kind;
	char *ns, *labels, *fields; // "" and NULL: all
	uint64_t began;             // the version then
	bool has_bookmarks, is_last_bookmark_due;
	int64_t end_mono_ms, bookmark_mono_ms; // the latter 0: none
	struct event *timer;
};

struct fake_watches {
	struct fake_apiserver *f;
	struct watcher *of_kind[FAKE_N_KINDS];
	struct window windows[FAKE_N_KINDS];
	struct buf line;
	int n_open;
	int64_t bookmark_ms;
	bool is_mute;
};

// ---- the past ----

static void past_done(struct past *p)
{
	free(p->ns);
	fake_text_drop(p->old_text);
	fake_text_drop(p->text);
}

static void remember(struct window *w, const struct fake_change *c)
{
	if (w->n == WINDOW) {
		w->oldest = w->ring[w->first].version;
		past_done(&w->ring[w->first]);
		w->first = (w->first + 1) % WINDOW;
		w->n--;
	}
	w->newest = c->version;
	w->ring[(w->first + w->n++) % WINDOW] = (struct past){.type = c->type,
	                                                      .version = c->version,
	                                                      .ns = strdup(c->ns),
	                                                      .old_text = fake_text_keep(c->old_text),
	                                                      .text = fake_text_keep(c->text)};
}

static void forget(struct window *w, uint64_t version)
{
	for (; w->n > 0; w->n--, w->first = (w->first + 1) % WINDOW)
		past_done(&w->ring[w->first]);
	w->oldest = version;
}

uint64_t fake_watches_oldest(const struct fake_watches *w, const struct fake_kind *kind)
{
	return w->windows[fake_kind_index(kind)].oldest;
}

// ---- one watcher ----

static void watcher_free(struct watcher *w)
{
	DL_DELETE(w->owner->of_kind[fake_kind_index(w->kind)], w);
	w->owner->n_open--;
	event_free(w->timer);
	free(w->ns);
	free(w->labels);
	free(w->fields);
	free(w);
}

static void on_closed(void *arg)
{
	watcher_free(arg);
}

static void end(struct watcher *w, bool is_orderly)
{
	struct http_exchange *x = w->x;
	watcher_free(w);
	if (is_orderly)
		http_exchange_end(x);
	else
		http_exchange_abort(x);
}

static void send_line(struct watcher *w)
{
	if (!w->owner->is_mute)
		http_exchange_write(w->x, buf_str(&w->owner->line), w->owner->line.len);
}

static void send_object(struct watcher *w, enum fake_change_type type, const struct fake_text *text)
{
	static const char *const names[] = {"ADDED", "MODIFIED", "DELETED"};
	struct buf *line = &w->owner->line;
	buf_reset(line);
	buf_printf(line, "{\"type\":\"%s\",\"object\":", names[type]);
	fake_put_object(line, w->kind, text);
	buf_puts(line, "}\n");
	send_line(w);
}

// As the real one: only when there was a change of the kind, wanted or not, since the watch began.
static void send_bookmark(struct watcher *w)
{
	struct buf *line = &w->owner->line;
	uint64_t version = w->owner->windows[fake_kind_index(w->kind)].newest;
	if (version <= w->began)
		return;
	buf_reset(line);
	buf_printf(line, "{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"%s\",\"apiVersion\":\"", w->kind->kind);
	fake_put_group_version(line, w->kind);
	buf_printf(line, "\",\"metadata\":{\"resourceVersion\":\"%llu\",\"creationTimestamp\":null}}}\n",
	           (unsigned long long)version);
	send_line(w);
}

// What left the selection is sent as it was before, under the version of the change.
static void send_gone(struct watcher *w, const cJSON *old_root, uint64_t version)
{
	char text[32];
	snprintf(text, sizeof text, "%llu", (unsigned long long)version);
	cJSON *root = cJSON_Duplicate(old_root, true);
	fake_set(fake_sub(root, "metadata"), "resourceVersion", cJSON_CreateString(text));
	struct fake_text *gone = fake_text_of(root);
	send_object(w, FAKE_DELETED, gone);
	fake_text_drop(gone);
	cJSON_Delete(root);
}

static void offer(struct watcher *w, const struct fake_change *c)
{
	if (w->ns[0] && strcmp(w->ns, c->ns) != 0)
		return;
	if (!w->labels && !w->fields) {
		send_object(w, c->type, c->text);
		return;
	}
	bool was_in = c->type != FAKE_ADDED && fake_selected(c->old_root, w->labels, w->fields);
	bool is_in = c->type != FAKE_DELETED && fake_selected(c->root, w->labels, w->fields);
	if (is_in)
		send_object(w, was_in ? FAKE_MODIFIED : FAKE_ADDED, c->text);
	else if (was_in && c->type == FAKE_DELETED)
		send_object(w, FAKE_DELETED, c->text);
	else if (was_in)
		send_gone(w, c->old_root, c->version);
}

void fake_watches_tell(void *watches, const struct fake_change *c)
{
	struct fake_watches *all = watches;
	struct watcher *w;
	size_t i = fake_kind_index(c->kind);
	remember(&all->windows[i], c);
	DL_FOREACH(all->of_kind[i], w)
	{
		offer(w, c);
	}
}

static void replay(struct watcher *w, uint64_t from)
{
	const struct window *past = &w->owner->windows[fake_kind_index(w->kind)];
	for (size_t i = 0; i < past->n; i++) {
		const struct past *p = &past->ring[(past->first + i) % WINDOW];
		if (p->version <= from)
			continue;
		bool is_chosen = w->labels || w->fields;
		cJSON *old_root = is_chosen && p->old_text ? cJSON_Parse(p->old_text->data) : NULL;
		cJSON *root = is_chosen ? cJSON_Parse(p->text->data) : NULL;
		offer(w, &(struct fake_change){.type = p->type,
		                               .kind = w->kind,
		                               .ns = p->ns,
		                               .version = p->version,
		                               .old_root = old_root,
		                               .root = root,
		                               .text = p->text});
		cJSON_Delete(old_root);
		cJSON_Delete(root);
	}
}

static void send_all(struct watcher *w)
{
	struct fake_object *o;
	DL_FOREACH(w->owner->f->store.of_kind[fake_kind_index(w->kind)], o)
	{
		offer(w, &(struct fake_change){.type = FAKE_ADDED,
		                               .kind = w->kind,
		                               .ns = fake_object_namespace(o),
		                               .version = o->version,
		                               .root = o->root,
		                               .text = o->text});
	}
}

// ---- time ----

static void arm(struct watcher *w)
{
	int64_t now = clock_mono_ms(&w->owner->f->clock), at = w->end_mono_ms;
	if (w->is_last_bookmark_due && w->end_mono_ms - LAST_BOOKMARK_MS < at)
		at = w->end_mono_ms - LAST_BOOKMARK_MS;
	if (w->bookmark_mono_ms && w->bookmark_mono_ms < at)
		at = w->bookmark_mono_ms;
	int64_t wait_ms = at > now ? at - now : 0;
	struct timeval tv = {.tv_sec = wait_ms / 1000, .tv_usec = wait_ms % 1000 * 1000};
	evtimer_add(w->timer, &tv);
}

static void on_time(evutil_socket_t fd, short events, void *arg)
{
	struct watcher *w = arg;
	int64_t now = clock_mono_ms(&w->owner->f->clock), every_ms = w->owner->bookmark_ms;
	bool is_last = w->is_last_bookmark_due && now >= w->end_mono_ms - LAST_BOOKMARK_MS;
	if (is_last)
		w->is_last_bookmark_due = false;
	if (is_last || (w->bookmark_mono_ms && now >= w->bookmark_mono_ms)) {
		w->bookmark_mono_ms = every_ms ? now + every_ms : 0;
		send_bookmark(w);
	}
	if (now >= w->end_mono_ms)
		end(w, true);
	else
		arm(w);
}

static void plan_bookmarks(struct watcher *w)
{
	int64_t every_ms = w->owner->bookmark_ms;
	bool wanted = w->has_bookmarks && every_ms > 0;
	w->bookmark_mono_ms = wanted ? clock_mono_ms(&w->owner->f->clock) + every_ms : 0;
	w->is_last_bookmark_due = wanted;
}

// ---- requests ----

static bool is_yes(const char *value)
{
	return value && (strcmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

static char *copy_or_null(const char *text)
{
	return text && text[0] ? strdup(text) : NULL;
}

static struct watcher *begin(struct fake_request *r, const char *labels, const char *fields, int64_t life_ms)
{
	struct fake_watches *all = r->f->watches;
	struct watcher *w = calloc(1, sizeof *w);
	if (!w)
		abort();
	*w = (struct watcher){.owner = all,
	                      .x = r->x,
	                      .kind = r->path.kind,
	                      .ns = strdup(r->path.ns),
	                      .labels = copy_or_null(labels),
	                      .fields = copy_or_null(fields),
	                      .has_bookmarks = is_yes(http_exchange_query(r->x, "allowWatchBookmarks")),
	                      .end_mono_ms = clock_mono_ms(&r->f->clock) + life_ms,
	                      .timer = evtimer_new(r->f->options.loop, on_time, w)};
	DL_APPEND(all->of_kind[fake_kind_index(w->kind)], w);
	all->n_open++;
	if (!http_exchange_reply_start(r->x, 200, "application/json", on_closed, w)) {
		watcher_free(w);
		return NULL;
	}
	plan_bookmarks(w);
	arm(w);
	return w;
}

static void send_error(struct watcher *w, cJSON *status)
{
	char *text = cJSON_PrintUnformatted(status);
	struct buf *line = &w->owner->line;
	buf_reset(line);
	buf_printf(line, "{\"type\":\"ERROR\",\"object\":");
	buf_puts(line, text);
	buf_puts(line, "}\n");
	send_line(w);
	cJSON_free(text);
}

void fake_watch_error(struct fake_request *r, cJSON *status)
{
	struct watcher *w = begin(r, NULL, NULL, DEFAULT_LIFE_MS);
	if (w) {
		send_error(w, status);
		end(w, true);
	}
	cJSON_Delete(status);
}

void fake_watch(struct fake_request *r)
{
	const char *labels, *fields, *from_text = http_exchange_query(r->x, "resourceVersion");
	const char *life_text = http_exchange_query(r->x, "timeoutSeconds");
	int64_t from = 0, life_s = 0;
	char message[200];
	if (!fake_selectors_of(r, &labels, &fields))
		return;
	if ((from_text && from_text[0] && num_parse_i64(from_text, strlen(from_text), 0, INT64_MAX, &from, NULL) < 0) ||
	    (life_text && num_parse_i64(life_text, strlen(life_text), 0, 86400, &life_s, NULL) < 0)) {
		fake_reply_status(r, 400, "BadRequest", "invalid resourceVersion or timeoutSeconds", NULL);
		return;
	}
	r->f->counts.streams++;
	uint64_t oldest = fake_watches_oldest(r->f->watches, r->path.kind);
	if (from > 0 && (uint64_t)from < oldest) {
		snprintf(message, sizeof message, "too old resource version: %lld (%llu)", (long long)from,
		         (unsigned long long)oldest);
		fake_watch_error(r, fake_status(410, "Expired", message, NULL));
		return;
	}
	struct watcher *w = begin(r, labels, fields, life_s ? life_s * 1000 : DEFAULT_LIFE_MS);
	if (w)
		w->began = r->f->store.version;
	if (w && from > 0)
		replay(w, (uint64_t)from);
	else if (w)
		send_all(w);
}

// ---- all of them ----

struct fake_watches *fake_watches_new(struct fake_apiserver *f)
{
	struct fake_watches *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->f = f;
	w->bookmark_ms = BOOKMARK_MS;
	buf_init(&w->line, LINE_BYTES_MAX);
	for (size_t i = 0; i < FAKE_N_KINDS; i++)
		w->windows[i].oldest = FAKE_FIRST_VERSION;
	return w;
}

void fake_watches_free(struct fake_watches *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		while (w->of_kind[i])
			end(w->of_kind[i], false);
		forget(&w->windows[i], 0);
	}
	buf_done(&w->line);
	free(w);
}

int fake_watches_open(const struct fake_watches *w)
{
	return w->n_open;
}

static void drop(struct fake_watches *all, const char *group, bool is_orderly)
{
	struct watcher *w, *next;
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		DL_FOREACH_SAFE(all->of_kind[i], w, next)
		{
			if (!group || strcmp(w->kind->group, group) == 0)
				end(w, is_orderly);
		}
	}
}

void fake_apiserver_drop_streams(struct fake_apiserver *f, bool is_orderly)
{
	drop(f->watches, NULL, is_orderly);
}

void fake_apiserver_compact(struct fake_apiserver *f)
{
	for (size_t i = 0; i < FAKE_N_KINDS; i++)
		forget(&f->watches->windows[i], ++f->store.version);
}

void fake_apiserver_set_bookmarks(struct fake_apiserver *f, int64_t every_ms)
{
	struct watcher *w;
	f->watches->bookmark_ms = every_ms;
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		DL_FOREACH(f->watches->of_kind[i], w)
		{
			plan_bookmarks(w);
			arm(w);
		}
	}
}

void fake_apiserver_mute(struct fake_apiserver *f, bool is_mute)
{
	if (f->watches->is_mute && !is_mute) // what they have missed is not sent again
		drop(f->watches, NULL, false);
	f->watches->is_mute = is_mute;
}

void fake_apiserver_serve_group(struct fake_apiserver *f, const char *group, bool is_served)
{
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		if (strcmp(fake_kinds[i].group, group) == 0)
			f->is_served[i] = is_served;
	}
	if (!is_served)
		drop(f->watches, group, true);
}
