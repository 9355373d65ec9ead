// SPDX-License-Identifier: Apache-2.0
#include "controller/source/policy_watch.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/must.h"
#include "base/process/log.h"
#include "base/schema/schema.h"
#include "controller/source/object_watch.h"
#include "controller/source/policy_object.h"
#include "controller/source/policy_store.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/policy_schema.h"

struct policy_watch {
	struct policy_watch_options options;
	struct object_watch *objects;
	struct schema_errors *errors, *unknown; // of the current object
	bool is_full;
};

static struct policy_identity identity_of(const struct policy_object *o)
{
	struct policy_identity id = {
	        .generation = o->generation, .created_ms = o->created_ms, .has_status = o->has_status};
	snprintf(id.uid, sizeof id.uid, "%s", o->uid);
	return id;
}

// Logged once, and again after a policy was stored in between: there may be thousands of objects above the ceiling.
static void report_full(struct policy_watch *w, const struct policy_object *o, const struct err *e)
{
	if (!w->is_full)
		LOG(w->options.log, LOG_ERROR, "Cannot store policy; others may be left out, too",
		    LOG_S("namespace", o->namespace_name), LOG_S("policy", o->name), LOG_S("err", e->msg));
	w->is_full = true;
}

static void warn_unknown(struct policy_watch *w, const struct policy_object *o)
{
	if (w->unknown->n == 0)
		return;
	struct buf text;
	buf_init(&text, POLICY_ERROR_BYTES_MAX);
	policy_object_print_errors(w->unknown, &text);
	LOG(w->options.log, LOG_WARNING, "Policy has unknown fields, which are ignored",
	    LOG_S("namespace", o->namespace_name), LOG_S("policy", o->name), LOG_S("fields", buf_str(&text)));
	buf_done(&text);
}

static int put_bad(struct policy_watch *w, const struct policy_object *o, const struct policy_identity *id,
                   struct err *e)
{
	struct buf text;
	buf_init(&text, POLICY_ERROR_BYTES_MAX);
	policy_object_print_errors(w->errors, &text);
	const struct policy_entry *known = policy_store_find(w->options.store, o->namespace_name, o->name);
	const char *before = known ? known->versions[POLICY_FROM_OBJECT].error : NULL;
	if (!before || strcmp(before, buf_str(&text)) != 0)
		LOG(w->options.log, LOG_ERROR, "Invalid policy", LOG_S("namespace", o->namespace_name),
		    LOG_S("policy", o->name), LOG_S("err", buf_str(&text)));
	int rc = policy_store_put_bad(w->options.store, POLICY_FROM_OBJECT, o->namespace_name, o->name, id,
	                              buf_str(&text), e);
	buf_done(&text);
	return rc;
}

static int put_good(struct policy_watch *w, struct policy_ref *fresh, const struct policy_object *o,
                    const struct policy_identity *id, struct err *e)
{
	const struct policy_entry *known = policy_store_find(w->options.store, o->namespace_name, o->name);
	const struct policy_version *v = known ? &known->versions[POLICY_FROM_OBJECT] : NULL;
	struct policy_ref *body = fresh;
	if (v && v->body && v->body->fingerprint == o->fingerprint)
		body = v->body; // only the status was written, usually by this controller
	else
		warn_unknown(w, o);
	body->fingerprint = o->fingerprint;
	body->generation = o->generation;
	return policy_store_put(w->options.store, POLICY_FROM_OBJECT, policy_ref_acquire(body), id, e);
}

// ---- objects ----

static void report_nameless(struct policy_watch *w, size_t len)
{
	struct buf text;
	buf_init(&text, POLICY_ERROR_BYTES_MAX);
	policy_object_print_errors(w->errors, &text);
	LOG(w->options.log, LOG_ERROR, "The API server sent a policy without a name", LOG_I("bytes", (int64_t)len),
	    LOG_S("err", buf_str(&text)));
	buf_done(&text);
}

static bool is_stored(const struct policy_watch *w, const char *namespace_name, const char *name)
{
	const struct policy_entry *entry = policy_store_find(w->options.store, namespace_name, name);
	return entry && entry->versions[POLICY_FROM_OBJECT].is_there;
}

static bool on_object(void *arg, struct watched_object *object, enum object_change change, const char *json, size_t len)
{
	struct policy_watch *w = arg;
	struct policy_object o;
	struct err e;
	struct policy_document document;
	struct policy_ref *body = must_alloc(policy_ref_new());
	schema_errors_init(w->errors, "");
	schema_errors_init(w->unknown, "");
	int good = policy_object_decode(json, len, &body->arena, &o, &document, w->errors, w->unknown);
	policy_ref_set(body, &document);
	struct policy_identity id = identity_of(&o);
	int rc = 0;
	if (o.name[0] == '\0' || o.namespace_name[0] == '\0' || object->key[0] == '/')
		report_nameless(w, len);
	else
		rc = good < 0 ? put_bad(w, &o, &id, &e) : put_good(w, body, &o, &id, &e);
	if (rc < 0)
		report_full(w, &o, &e);
	else
		w->is_full = false;
	bool is_kept = is_stored(w, o.namespace_name, o.name); // otherwise it is not reported when it is gone
	policy_ref_release(body);
	return is_kept;
}

static void on_gone(void *arg, struct watched_object *object)
{
	struct policy_watch *w = arg;
	char namespace_name[POLICY_OBJECT_NAMESPACE_MAX + 1];
	snprintf(namespace_name, sizeof namespace_name, "%.*s", (int)strcspn(object->key, "/"), object->key);
	policy_store_remove(w->options.store, POLICY_FROM_OBJECT, namespace_name, object->name);
}

static void on_error(void *arg, const struct err *error)
{
	struct policy_watch *w = arg;
	if (error)
		LOG(w->options.log, LOG_ERROR, "Cannot watch policies; trying again",
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else
		LOG(w->options.log, LOG_INFO, "Watching policies again", LOG_S("resource", POLICY_WATCH_PLURAL));
}

static void on_answer(void *arg)
{
	const struct policy_watch *w = arg;
	if (w->options.on_synced)
		w->options.on_synced(w->options.arg);
}

// ---- life ----

struct policy_watch *policy_watch_new(const struct policy_watch_options *options, struct err *e)
{
	struct policy_watch *w = calloc(1, sizeof *w);
	if (!w) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	w->options = *options;
	w->errors = malloc(sizeof *w->errors);
	w->unknown = malloc(sizeof *w->unknown);
	const struct object_watch_options objects = {.client = options->client,
	                                             .plural = POLICY_WATCH_PLURAL,
	                                             .namespace_name = options->namespace_name,
	                                             .on_object = on_object,
	                                             .on_gone = on_gone,
	                                             .on_answer = on_answer,
	                                             .on_error = on_error,
	                                             .arg = w};
	if (!w->errors || !w->unknown)
		err_set(e, ERR_INTERNAL, "out of memory");
	else
		w->objects = object_watch_new(&objects, e);
	if (w->objects)
		return w;
	policy_watch_free(w);
	return NULL;
}

void policy_watch_free(struct policy_watch *w)
{
	if (!w)
		return;
	object_watch_free(w->objects);
	free(w->errors);
	free(w->unknown);
	free(w);
}

struct object_watch *policy_watch_objects(const struct policy_watch *w)
{
	return w->objects;
}
