// SPDX-License-Identifier: Apache-2.0
// Processes the parts of a list and the events of a stream, and calls the callbacks.
#include <stdlib.h>
#include <string.h>

#include "base/json/json_span.h"
#include "base/must.h"
#include "k8s/cache/watch_private.h"
#include "k8s/client/k8s_client.h"

#define PAGES_MAX (K8S_WATCH_OBJECTS_MAX / K8S_WATCH_PAGE * 2) // a server may make them shorter

// ---- calls of the callbacks ----

void watch_notify(struct k8s_watch *w, void (*fn)(void *arg))
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

void watch_report_error(struct k8s_watch *w, const struct err *error)
{
	if (error ? w->error && w->error->kind == error->kind && strcmp(w->error->msg, error->msg) == 0 : !w->error)
		return;
	if (!error) {
		free(w->error);
		w->error = NULL;
	} else {
		if (!w->error)
			w->error = must_alloc(malloc(sizeof *w->error));
		*w->error = *error;
	}
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
	watch_report_error(w, &e);
}

void watch_report_left_out(struct k8s_watch *w)
{
	if (w->too_large_bytes == 0)
		return;
	free(w->error);
	w->error = NULL; // reported again
	report_too_large(w);
}

void watch_report_health(struct k8s_watch *w)
{
	w->is_good = true;
	w->failures = w->answered_failures = w->relists = 0;
	if (w->too_large_bytes)
		report_too_large(w);
	else
		watch_report_error(w, NULL);
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

// ---- versions ----

uint64_t k8s_version_number(const char *text)
{
	uint64_t n = 0;
	for (; *text >= '0' && *text <= '9' && n < UINT64_MAX / 10 - 1; text++)
		n = 10 * n + (uint64_t)(*text - '0');
	return *text ? 0 : n;
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
		watch_report_health(w);
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
	watch_report_health(w);
	if (is_bookmark) {
		w->stats.bookmarks++;
		w->sends_bookmarks = true;
		return;
	}
	w->stats.events++;
	report_object(w, is_deleted ? w->callbacks.on_deleted : w->callbacks.on_object, json, len);
}
