// SPDX-License-Identifier: Apache-2.0
#include "base/json/watch_scan.h"

#include <string.h>

#include "base/err.h"

#define NO_METADATA "the reply is not a PartialObjectMetadataList with items"

// The members of the outermost object, by mode. A stream has no MEMBER_METADATA.
enum member { MEMBER_OTHER, MEMBER_WANTED, MEMBER_METADATA, MEMBER_TYPE };

static const struct mode {
	const char *what, *wanted, *metadata, *type; // what: as errors name the text, or NULL; others: names of members
	const char *none, *twice, *not_wanted;       // errors about the wanted member
	const char *not_an_item;                     // error about an item
	const char *kind;                            // the type that precedes the wanted member; NULL: any
} modes[] = {
        [WATCH_SCAN_LIST] = {"list", "items", "metadata", "", "it has no items", "items comes twice",
                             "items is not a list", "an item is not an object"},
        [WATCH_SCAN_EVENTS] = {"watch event", "object", "", "type", "it has no object", "object comes twice",
                               "object is not an object"},
        [WATCH_SCAN_METADATA] = {NULL, "items", "", "kind", NO_METADATA, NO_METADATA, NO_METADATA,
                                 "a pod of the reply is not an object", "PartialObjectMetadataList"},
};

// ---- the captured part ----

static void capture_begin(struct watch_scan *s)
{
	s->is_capturing = true;
	s->is_too_large = false;
	s->capture_depth = s->json.depth - 1;
	s->run = s->json.error_at; // the bracket
	s->part_bytes = 0;
}

// Keeps run[0..len), the end of a piece that ends inside an object.
static int capture_keep(struct watch_scan *s, const char *run, size_t len, struct err *e)
{
	s->part_bytes += len;
	if (s->part_bytes > s->object_bytes_max) {
		s->is_too_large = true;
		buf_done(&s->part);
	}
	if (s->is_too_large || buf_put(&s->part, run, len) == 0)
		return 0;
	return err_set(e, ERR_INTERNAL, "out of memory for an object of %zu bytes", s->part_bytes);
}

static void emit(struct watch_scan *s, enum watch_part part, const char *json, size_t len)
{
	if (s->is_too_large)
		s->fn(s->arg, WATCH_PART_TOO_LARGE, s->type, NULL, s->part_bytes);
	else
		s->fn(s->arg, part, s->type, json, len);
}

// The object ends at the bracket of the current token.
static int capture_end(struct watch_scan *s, struct err *e)
{
	enum watch_part part = s->mode == WATCH_SCAN_EVENTS   ? WATCH_PART_EVENT
	                       : s->member == MEMBER_METADATA ? WATCH_PART_METADATA
	                                                      : WATCH_PART_ITEM;
	const char *run = s->piece + (s->run - s->json.offset);
	size_t len = s->json.error_at + 1 - s->run;
	s->is_capturing = false;
	bool is_whole = s->part_bytes == 0 && len <= s->object_bytes_max; // it arrived in one piece: no copy
	bool waits = part == WATCH_PART_EVENT && !s->has_type;
	if (is_whole && !waits) {
		emit(s, part, run, len);
		return 0;
	}
	if (capture_keep(s, run, len, e) < 0)
		return -1;
	s->is_held = waits;
	if (waits)
		return 0;
	emit(s, part, buf_str(&s->part), s->part.len);
	buf_done(&s->part);
	return 0;
}

// ---- tokens ----

static bool token_is(const struct json_token *t, const char *text)
{
	size_t len = strlen(text);
	return t->bytes == len && len > 0 && memcmp(t->text, text, len) == 0;
}

static enum member member_of(const struct watch_scan *s, const struct json_token *key)
{
	const struct mode *m = &modes[s->mode];
	return token_is(key, m->wanted)     ? MEMBER_WANTED
	       : token_is(key, m->metadata) ? MEMBER_METADATA
	       : token_is(key, m->type)     ? MEMBER_TYPE
	                                    : MEMBER_OTHER;
}

static int document_ended(struct watch_scan *s, struct err *e)
{
	// Without "items" it is not a list: an empty list would mean that every object was deleted.
	if (!s->has_wanted)
		return err_set(e, ERR_PROTOCOL, "%s", modes[s->mode].none);
	if (s->is_held)
		emit(s, WATCH_PART_EVENT, buf_str(&s->part), s->part.len);
	buf_done(&s->part);
	s->fn(s->arg, WATCH_PART_END, s->type, NULL, 0);
	s->is_held = s->has_type = s->is_too_large = s->has_wanted = false;
	s->type[0] = '\0';
	return 0;
}

// A value of the outermost object starts. "items" may be null: some servers send that for an empty list.
static int on_value(struct watch_scan *s, const struct json_token *t, struct err *e)
{
	const struct mode *m = &modes[s->mode];
	bool is_list = s->mode != WATCH_SCAN_EVENTS, is_object = t->kind == JSON_OBJECT_BEGIN;
	if (s->member == MEMBER_WANTED) {
		if (s->has_wanted)
			return err_set(e, ERR_PROTOCOL, "%s", m->twice);
		if (is_list ? t->kind != JSON_ARRAY_BEGIN && t->kind != JSON_NULL : !is_object)
			return err_set(e, ERR_PROTOCOL, "%s", m->not_wanted);
		if (m->kind && strcmp(s->type, m->kind) != 0)
			return err_set(e, ERR_PROTOCOL, "the reply is not a %s", m->kind);
		s->has_wanted = true;
	}
	if (is_object && (s->member == MEMBER_METADATA || s->member == MEMBER_WANTED))
		capture_begin(s);
	if (t->kind != JSON_STRING || s->member != MEMBER_TYPE)
		return 0;
	size_t n = t->bytes < WATCH_SCAN_TYPE_BYTES ? t->len : 0; // a longer type is unknown
	memcpy(s->type, t->text, n);
	s->type[n] = '\0';
	s->has_type = true;
	return 0;
}

static int on_token(void *arg, const struct json_token *t, struct err *e)
{
	struct watch_scan *s = arg;
	size_t depth = s->json.depth;
	bool is_end = t->kind == JSON_OBJECT_END || t->kind == JSON_ARRAY_END;
	if (s->is_capturing)
		return is_end && depth == s->capture_depth ? capture_end(s, e) : 0;
	if (is_end)
		return depth == 0 ? document_ended(s, e) : 0;
	if (t->kind == JSON_KEY) {
		if (depth == 1)
			s->member = (int)member_of(s, t);
		return 0;
	}
	depth -= t->kind == JSON_OBJECT_BEGIN || t->kind == JSON_ARRAY_BEGIN; // that of the value
	if (depth == 0)
		return t->kind == JSON_OBJECT_BEGIN ? 0 : err_set(e, ERR_PROTOCOL, "expected a JSON object");
	if (depth == 1)
		return on_value(s, t, e);
	if (depth > 2 || s->mode == WATCH_SCAN_EVENTS || s->member != MEMBER_WANTED)
		return 0;
	if (t->kind != JSON_OBJECT_BEGIN)
		return err_set(e, ERR_PROTOCOL, "%s", modes[s->mode].not_an_item);
	capture_begin(s);
	return 0;
}

// ---- public functions ----

void watch_scan_init(struct watch_scan *s, enum watch_scan_mode mode, size_t object_bytes_max, watch_part_fn *fn,
                     void *arg)
{
	*s = (struct watch_scan){.mode = mode, .object_bytes_max = object_bytes_max, .fn = fn, .arg = arg};
	buf_init(&s->part, object_bytes_max);
	json_scan_init(&s->json, WATCH_SCAN_TYPE_BYTES, on_token, s);
	s->json.is_sequence = mode == WATCH_SCAN_EVENTS;
	s->json.is_lenient = mode != WATCH_SCAN_METADATA;
	s->json.levels = s->json.is_lenient ? s->levels : NULL;
	s->json.n_levels = sizeof s->levels / sizeof s->levels[0];
}

void watch_scan_done(struct watch_scan *s)
{
	buf_done(&s->part);
	json_scan_done(&s->json);
}

int watch_scan_feed(struct watch_scan *s, const char *data, size_t len, struct err *e)
{
	size_t start = s->json.offset;
	s->piece = data;
	s->run = start;
	if (json_scan_feed(&s->json, data, len, e) < 0)
		return modes[s->mode].what ? err_wrap(e, "%s", modes[s->mode].what) : -1;
	if (s->is_capturing && capture_keep(s, data + (s->run - start), start + len - s->run, e) < 0) {
		s->json.has_failed = true;
		return -1;
	}
	return 0;
}
