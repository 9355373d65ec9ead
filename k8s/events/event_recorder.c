// SPDX-License-Identifier: Apache-2.0
#include "k8s/events/event_recorder.h"

#include <event2/util.h>
#include <inttypes.h>
#include <utlist.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/hash_table.h"
#include "base/json/json_write.h"
#include "k8s/client/k8s_client.h"

#define BODY_BYTES_MAX     (16 * 1024)
#define NAME_BYTES         256 // an object's name has at most 253
#define EVENT_SUFFIX_BYTES 17  // ".", 16 hexadecimal digits
#define KEY_BYTES          512
#define OBJECTS_MAX        EVENT_SERIES_MAX

// The Events about one object with one type and reason: one Event on the server.
struct series {
	struct series *prev, *next; // by last use, oldest first
	struct series *prev_waiting, *next_waiting;
	UT_hash_handle hh;
	struct event_recorder *recorder;
	struct event_object object; // its texts and the next three are in the same allocation
	const char *key, *type, *reason;
	char *message;
	uint64_t suffix; // suffix of the Event's name
	int64_t first_ms, last_ms;
	int count;
	bool exists;  // on the server
	bool waiting; // for a place among EVENT_SENDING_MAX; the request is built when it is sent
	bool sending; // a request is in flight
	bool dirty;   // recorded again since
};

// How many more Events may be recorded about one object.
struct object {
	UT_hash_handle hh;
	int tokens;
	int64_t refilled_ms;
	char uid[];
};

struct event_recorder {
	struct event_recorder_options options;
	struct series *by_key, *by_use;
	struct series *waiting; // in order
	int n_sending;
	struct object *objects;
	struct event_recorder_stats stats;
	struct err error;
};

struct event_recorder *event_recorder_new(const struct event_recorder_options *options, struct err *e)
{
	struct event_recorder_options o = *options;
	const char **const texts[] = {&o.component, &o.instance};
	struct event_recorder *r = alloc_with_texts(sizeof *r, texts, 2, e);
	if (r)
		r->options = o;
	return r;
}

static void series_drop(struct event_recorder *r, struct series *s)
{
	assert(!s->sending);
	if (s->waiting)
		DL_DELETE2(r->waiting, s, prev_waiting, next_waiting);
	HASH_DEL(r->by_key, s);
	DL_DELETE(r->by_use, s);
	free(s->message);
	free(s);
}

void event_recorder_free(struct event_recorder *r)
{
	if (!r)
		return;
	struct object *o, *next_object;
	struct series *s, *next_series;
	DL_FOREACH_SAFE(r->by_use, s, next_series)
	{
		series_drop(r, s);
	}
	HASH_ITER(hh, r->objects, o, next_object)
	{
		HASH_DEL(r->objects, o);
		free(o);
	}
	free(r);
}

void event_recorder_get_stats(const struct event_recorder *r, struct event_recorder_stats *ret_stats)
{
	*ret_stats = r->stats;
}

const char *event_recorder_error(const struct event_recorder *r)
{
	return r->error.msg;
}

// ---- limits per object ----

static void refill(struct object *o, int64_t now_ms)
{
	if (now_ms < o->refilled_ms) // the clock went back
		o->refilled_ms = now_ms;
	int64_t more = (now_ms - o->refilled_ms) / EVENT_OBJECT_REFILL_MS;
	o->refilled_ms += more * EVENT_OBJECT_REFILL_MS;
	o->tokens = more > EVENT_OBJECT_BURST - o->tokens ? EVENT_OBJECT_BURST : o->tokens + (int)more;
}

// Returns the object's allowance and makes it the most recently used. At the limit, the least recently used one is
// evicted, so that the objects of one namespace cannot suppress the Events of another.
static struct object *find_object(struct event_recorder *r, const char *uid, int64_t now_ms)
{
	struct object *o;
	HASH_FIND_STR(r->objects, uid, o);
	if (o) {
		HASH_DEL(r->objects, o);
	} else {
		size_t len = strlen(uid);
		struct object *oldest = r->objects;
		if (HASH_COUNT(r->objects) >= OBJECTS_MAX) {
			HASH_DEL(r->objects, oldest);
			free(oldest);
		}
		o = calloc(1, sizeof *o + len + 1);
		if (!o)
			return NULL;
		memcpy(o->uid, uid, len + 1);
		o->tokens = EVENT_OBJECT_BURST;
		o->refilled_ms = now_ms;
	}
	HASH_ADD_STR(r->objects, uid, o);
	return o;
}

static bool take_token(struct event_recorder *r, const char *uid, int64_t now_ms)
{
	struct object *o = find_object(r, uid, now_ms);
	if (!o)
		return false;
	refill(o, now_ms);
	if (o->tokens == 0)
		return false;
	o->tokens--;
	return true;
}

// ---- one Event on the server ----

// metav1.Time has no fraction.
static int64_t whole_seconds(int64_t wall_ms)
{
	return wall_ms - wall_ms % 1000;
}

static void write_counted(struct json_writer *w, const struct series *s)
{
	json_write_format(w, "message:%s,count:%d", s->message, s->count);
	json_write_member_time(w, "lastTimestamp", whole_seconds(s->last_ms));
}

// Where the Event lives; those of objects without a namespace live in `default`.
static const char *home_of(const struct series *s)
{
	return s->object.namespace_name[0] ? s->object.namespace_name : "default";
}

static void put_event_name(char out[NAME_BYTES], const struct series *s)
{
	snprintf(out, NAME_BYTES, "%.*s.%016" PRIx64, NAME_BYTES - EVENT_SUFFIX_BYTES - 4, s->object.name, s->suffix);
}

static void write_whole(struct json_writer *w, const struct series *s, const char *event_name)
{
	const struct event_recorder *r = s->recorder;
	json_write_format(w,
	                  "apiVersion:%s,kind:%s,metadata:{name:%s,namespace:%s},involvedObject:{apiVersion:%s,kind:%s",
	                  "v1", "Event", event_name, home_of(s), s->object.api_version, s->object.kind);
	if (s->object.namespace_name[0])
		json_write_member_str(w, "namespace", s->object.namespace_name);
	json_write_format(w, "name:%s,uid:%s},type:%s,reason:%s", s->object.name, s->object.uid, s->type, s->reason);
	json_write_member_time(w, "firstTimestamp", whole_seconds(s->first_ms));
	write_counted(w, s);
	json_write_format(w, "source:{component:%s},reportingComponent:%s,reportingInstance:%s", r->options.component,
	                  r->options.component, r->options.instance);
}

static void queue_send(struct series *s);
static void send_waiting(struct event_recorder *r);

static void on_sent(void *arg, const struct http_response *response, const struct err *error)
{
	struct series *s = arg;
	struct event_recorder *r = s->recorder;
	s->sending = false;
	r->n_sending--;
	if (response) {
		r->stats.written++;
		err_clear(&r->error);
		s->exists = true;
	} else if (error->kind == ERR_NOT_FOUND &&
	           s->exists) { // it has expired on the server: an Event lives for an hour
		s->exists = false;
		s->dirty = true;
	} else {
		r->stats.failed++;
		r->error = *error;
		if (error->kind == ERR_CANCELED) // the client is being freed
			return;
	}
	if (s->dirty)
		queue_send(s);
	send_waiting(r);
}

static void send_series(struct series *s)
{
	struct event_recorder *r = s->recorder;
	if (!s->exists)
		evutil_secure_rng_get_bytes(&s->suffix, sizeof s->suffix);
	char path[K8S_PATH_BYTES_MAX], event_name[NAME_BYTES];
	put_event_name(event_name, s);
	snprintf(path, sizeof path, "/api/v1/namespaces/%s/events%s%s", home_of(s), s->exists ? "/" : "",
	         s->exists ? event_name : "");
	struct buf body;
	struct json_writer w;
	struct err e;
	buf_init(&body, BODY_BYTES_MAX);
	json_write_init(&w, &body, 0);
	json_write_object_begin(&w);
	if (s->exists)
		write_counted(&w, s);
	else
		write_whole(&w, s, event_name);
	json_write_object_end(&w);
	const struct k8s_request_options o = {.method = s->exists ? "PATCH" : "POST",
	                                      .path = path,
	                                      .content_type =
	                                              s->exists ? "application/merge-patch+json" : "application/json",
	                                      .body = buf_str(&body),
	                                      .body_len = body.len,
	                                      .is_background = true,
	                                      .done = on_sent,
	                                      .arg = s};
	int rc = body.failed ? err_set(&e, ERR_LIMIT, "the Event exceeds %d bytes", BODY_BYTES_MAX)
	                     : k8s_request_with(r->options.client, &o, NULL, &e);
	buf_done(&body);
	if (rc == 0) {
		s->sending = true;
		r->n_sending++;
		return;
	}
	r->stats.failed++;
	r->error = e;
}

static void send_waiting(struct event_recorder *r)
{
	while (r->waiting && r->n_sending < EVENT_SENDING_MAX) {
		struct series *s = r->waiting;
		DL_DELETE2(r->waiting, s, prev_waiting, next_waiting);
		s->waiting = false;
		send_series(s);
	}
}

// Queues `s`, if its object may have another Event.
static void queue_send(struct series *s)
{
	struct event_recorder *r = s->recorder;
	s->dirty = false;
	if (!take_token(r, s->object.uid, clock_wall_ms(r->options.clock))) {
		r->stats.dropped++;
		return;
	}
	s->waiting = true;
	DL_APPEND2(r->waiting, s, prev_waiting, next_waiting);
}

// ---- series ----

static bool is_unsent(const struct series *s)
{
	return s->waiting || s->sending;
}

// Evicts the oldest series that has no request outstanding when there are too many.
static bool make_room(struct event_recorder *r)
{
	if (HASH_COUNT(r->by_key) < EVENT_SERIES_MAX)
		return true;
	struct series *s;
	DL_FOREACH(r->by_use, s)
	{
		if (!is_unsent(s)) {
			series_drop(r, s);
			return true;
		}
	}
	return false;
}

static struct series *series_new(struct event_recorder *r, const struct event_object *o, const char *key,
                                 const char *type, const char *reason)
{
	struct event_object object = *o;
	const char **const texts[] = {&key,         &type,        &reason,     &object.api_version,
	                              &object.kind, &object.name, &object.uid, &object.namespace_name};
	struct series *s =
	        make_room(r) ? alloc_with_texts(sizeof *s, texts, sizeof texts / sizeof texts[0], NULL) : NULL;
	if (!s)
		return NULL;
	s->recorder = r;
	s->object = object;
	s->key = key;
	s->type = type;
	s->reason = reason;
	HASH_ADD_KEYPTR(hh, r->by_key, s->key, strlen(s->key), s);
	DL_APPEND(r->by_use, s);
	return s;
}

// Unsafe characters become visible: kubectl and dashboards print the message as it is. Truncates between characters.
static char *copy_message(const char *message)
{
	char shown[EVENT_MESSAGE_BYTES_MAX + 1];
	text_show(shown, sizeof shown, message, strlen(message));
	return strdup(shown);
}

void event_recorder_record(struct event_recorder *r, const struct event_object *object, const char *type,
                           const char *reason, const char *message)
{
	int64_t now_ms = clock_wall_ms(r->options.clock);
	char key[KEY_BYTES];
	int n = snprintf(key, sizeof key, "%s|%s|%s", object->uid, type, reason);
	char *copy = copy_message(message);
	struct series *s = NULL;
	if (n > 0 && (size_t)n < sizeof key && copy) {
		HASH_FIND_STR(r->by_key, key, s);
		if (!s)
			s = series_new(r, object, key, type, reason);
	}
	if (!s) {
		r->stats.dropped++;
		free(copy);
		return;
	}
	// Too long ago, or the clock went back and the Event would end before it starts: create a new Event.
	bool is_over = now_ms - s->last_ms > EVENT_AGGREGATE_MS || now_ms < s->first_ms;
	if (s->count > 0 && !is_unsent(s) && is_over) {
		s->exists = false;
		s->count = 0;
	}
	if (s->count == 0)
		s->first_ms = now_ms;
	s->count++;
	s->last_ms = now_ms;
	free(s->message);
	s->message = copy;
	DL_DELETE(r->by_use, s);
	DL_APPEND(r->by_use, s);
	if (s->sending)
		s->dirty = true;
	else if (!s->waiting)
		queue_send(s);
	send_waiting(r);
}
