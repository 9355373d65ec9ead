// SPDX-License-Identifier: Apache-2.0
#include "controller/source/policy_watch.h"

#include "base/base.h"
#include "base/hash.h"
#include "base/json/json_span.h"
#include "base/process/log.h"
#include "base/schema/schema.h"
#include "controller/source/object_watch.h"
#include "controller/source/policy_object.h"
#include "controller/source/trigger_auth.h"
#include "k8s/cache/autoscaler_object.h"
#include "policies/convert/convert.h"
#include "policies/load/policy_ref.h"
#include "promql/promql_source.h"

// ---- the store ----

// Returns the version of the object in the store; NULL: none.
static const struct policy_version *version_of(const struct policy_watch *w, const struct policy_object *o)
{
	const struct policy_entry *entry = policy_store_find(w->options.store, o->namespace_name, o->name);
	const struct policy_version *v = entry ? &entry->versions[w->options.source] : NULL;
	return v && v->is_there ? v : NULL;
}

static int put_good(struct policy_watch *w, const struct policy_object *o, struct policy_ref *body, struct err *e)
{
	body->generation = o->identity.generation;
	return policy_store_put(w->options.store, w->options.source, policy_ref_acquire(body), &o->identity, e);
}

static int put_bad(struct policy_watch *w, const struct policy_object *o, const char *faults, struct err *e)
{
	bool is_scaled_object = w->options.source == POLICY_FROM_SCALED_OBJECT;
	const struct policy_version *known = version_of(w, o);
	if (!known || !known->error || strcmp(known->error, faults) != 0)
		LOG(w->options.log, LOG_ERROR, is_scaled_object ? "ScaledObject is left alone" : "Invalid policy",
		    LOG_S("namespace", o->namespace_name), LOG_S("policy", o->name), LOG_S("err", faults));
	// A version of before is not used any more: KEDA's meaning of the object has changed.
	if (is_scaled_object && known && known->body)
		policy_store_remove(w->options.store, w->options.source, o->namespace_name, o->name);
	return policy_store_put_bad(w->options.store, w->options.source, o->namespace_name, o->name, &o->identity,
	                            faults, e);
}

// ---- GPUAutoscalers ----

static void warn_unknown(struct policy_watch *w, const struct policy_object *o)
{
	if (w->unknown.n == 0)
		return;
	struct buf text;
	buf_init(&text, POLICY_ERROR_BYTES_MAX);
	policy_object_print_errors(&w->unknown, &text);
	LOG(w->options.log, LOG_WARNING, "Policy has unknown fields, which are ignored",
	    LOG_S("namespace", o->namespace_name), LOG_S("policy", o->name), LOG_S("fields", buf_str(&text)));
	buf_done(&text);
}

// Sets *o, also after an error.
static int put_policy(struct policy_watch *w, const struct watched_object *object, const char *json, size_t len,
                      struct policy_ref *fresh, struct policy_object *o, struct err *e)
{
	struct policy_document document;
	schema_errors_init(&w->errors, "");
	schema_errors_init(&w->unknown, "");
	bool is_good = policy_object_decode(json, len, &fresh->arena, o, &document, &w->errors, &w->unknown) == 0;
	policy_ref_set(fresh, &document);
	bool is_nameless = !o->name[0] || !o->namespace_name[0] || object->key[0] == '/';
	int rc = 0;
	if (is_good && !is_nameless) {
		const struct policy_version *known = version_of(w, o);
		struct policy_ref *body = fresh;
		if (known && known->body && known->body->fingerprint == o->fingerprint)
			body = known->body; // only the status was written, usually by this controller
		else
			warn_unknown(w, o);
		body->fingerprint = o->fingerprint;
		return put_good(w, o, body, e);
	}
	struct buf text;
	buf_init(&text, POLICY_ERROR_BYTES_MAX);
	policy_object_print_errors(&w->errors, &text);
	if (is_nameless)
		LOG(w->options.log, LOG_ERROR, "The API server sent a policy without a name",
		    LOG_I("bytes", (int64_t)len), LOG_S("err", buf_str(&text)));
	else
		rc = put_bad(w, o, buf_str(&text), e);
	buf_done(&text);
	return rc;
}

// ---- ScaledObjects: the servers of their triggers ----

static size_t url_len(const char *url)
{
	size_t n = strlen(url);
	while (n > 0 && url[n - 1] == '/')
		n--;
	return n;
}

// The object that is being converted.
struct converted {
	const struct policy_watch *watch;
	const char *namespace_name, *name;
	char text[TRIGGER_AUTH_WHY_BYTES];
};

static const struct promql_source *find_server(const struct policy_watch *w, const char *url)
{
	size_t n = url_len(url);
	for (size_t i = 0; i < w->options.sources->n; i++) {
		const struct promql_source *first = w->options.sources->items[i];
		for (const struct promql_source *s = first; s; s = s->next)
			if (url_len(s->url) == n && strncmp(s->url, url, n) == 0)
				return first;
	}
	return NULL;
}

// Credentials of a namespace open no server to it that the operator has closed to it.
static bool is_open_to(const struct promql_source *s, const char *namespace_name, struct err *e)
{
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	bool is_open = s->access->is_closed ||
	               promql_access_admit(s->access, s->name, namespace_name, PROMQL_PROBE, &query, NULL, e);
	buf_done(&query);
	return is_open;
}

// Tenants write the URLs of triggers, so only the servers that the operator of the controller has named are queried.
static const char *source_of(void *arg, const struct convert_server *server, const char **ret_why)
{
	struct converted *c = arg;
	struct err e;
	const struct promql_source *s = find_server(c->watch, server->url);
	if (!s || !server->authentication)
		return s ? s->name : NULL;
	if (!c->watch->auths) {
		*ret_why = "not supported: authentication by authenticationRef, without --scaled-object-authentication";
		return NULL;
	}
	if (!is_open_to(s, c->namespace_name, &e)) {
		snprintf(c->text, sizeof c->text, "%s", e.msg);
		*ret_why = c->text;
		return NULL;
	}
	const struct trigger_auth_use use = {.namespace_name = c->namespace_name,
	                                     .object = c->name,
	                                     .name = server->authentication,
	                                     .modes = server->modes,
	                                     .like = s->name};
	return trigger_auths_find(c->watch->auths, &use, ret_why);
}

static void on_authentication_changed(void *arg, const char *namespace_name, const char *object)
{
	const struct policy_watch *w = arg;
	object_watch_verify(w->objects, namespace_name, object);
}

// ---- ScaledObjects ----

// What the conversion reads; a status does not change it.
static uint64_t fingerprint_of(struct json_span object)
{
	const struct json_span parts[] = {
	        json_span_path(object, (const char *const[]){"metadata", "annotations", NULL}),
	        json_span_get(object, "spec")};
	uint64_t h = HASH_START;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		h = hash_bytes(hash_bytes(h, &parts[i].len, sizeof parts[i].len), parts[i].text ? parts[i].text : "",
		               parts[i].text ? parts[i].len : 0);
	return h;
}

static int put_scaled_object(struct policy_watch *w, const char *json, size_t len, struct policy_ref *fresh,
                             const struct policy_object *o, struct err *e)
{
	struct converted converted = {.watch = w, .namespace_name = o->namespace_name, .name = o->name};
	const struct convert_live live = {.source_of = source_of, .arg = &converted};
	const struct policy_version *known = version_of(w, o);
	uint64_t fingerprint = fingerprint_of((struct json_span){json, len});
	if (known && known->body && known->body->fingerprint == fingerprint)
		return put_good(w, o, known->body, e);
	struct buf faults;
	buf_init(&faults, POLICY_ERROR_BYTES_MAX);
	fresh->fingerprint = fingerprint;
	int rc = scaled_object_decode(json, len, &live, fresh, &faults) < 0 ? put_bad(w, o, buf_str(&faults), e)
	                                                                    : put_good(w, o, fresh, e);
	buf_done(&faults);
	return rc;
}

// ---- callbacks of the watch ----

static bool on_object(void *arg, struct watched_object *object, enum object_change change, const char *json, size_t len)
{
	struct policy_watch *w = arg;
	struct policy_object o;
	struct err e;
	int rc;
	bool is_scaled_object = w->options.source == POLICY_FROM_SCALED_OBJECT;
	if (is_scaled_object && object->key[0] == '/')
		return false;
	if (is_scaled_object) {
		schema_errors_init(&w->errors, "");
		policy_object_identify(json, len, &o, &w->errors); // a time that is invalid is unknown: the oldest
		if (!o.name[0] || !o.namespace_name[0])
			return false;
	}
	struct policy_ref *body = must_alloc(policy_ref_new());
	rc = is_scaled_object ? put_scaled_object(w, json, len, body, &o, &e)
	                      : put_policy(w, object, json, len, body, &o, &e);
	// Logged once, and again after a policy was stored in between: there may be thousands of objects above the
	// ceiling.
	if (rc < 0 && !w->is_full)
		LOG(w->options.log, LOG_ERROR, "Cannot store policy; others may be left out, too",
		    LOG_S("namespace", o.namespace_name), LOG_S("policy", o.name), LOG_S("err", e.msg));
	w->is_full = rc < 0;
	bool is_kept = version_of(w, &o) != NULL; // otherwise it is not reported when it is gone
	policy_ref_release(body);
	return is_kept;
}

static void on_gone(void *arg, struct watched_object *object)
{
	struct policy_watch *w = arg;
	char namespace_name[POLICY_OBJECT_NAMESPACE_MAX + 1];
	snprintf(namespace_name, sizeof namespace_name, "%.*s", (int)strcspn(object->key, "/"), object->key);
	policy_store_remove(w->options.store, w->options.source, namespace_name, object->name);
}

static const char *plural_of(enum policy_source source)
{
	return source == POLICY_FROM_OBJECT ? POLICY_WATCH_PLURAL : autoscaler_kinds[AUTOSCALER_SCALED_OBJECT].plural;
}

static void on_error(void *arg, const struct err *error)
{
	struct policy_watch *w = arg;
	if (error)
		LOG(w->options.log, LOG_ERROR, "Cannot watch policies; trying again",
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else
		LOG(w->options.log, LOG_INFO, "Watching policies again",
		    LOG_S("resource", plural_of(w->options.source)));
}

static void on_answer(void *arg)
{
	const struct policy_watch *w = arg;
	w->options.on_synced(w->options.arg);
}

// ---- life ----

struct policy_watch *policy_watch_new(const struct policy_watch_options *o, struct err *e)
{
	struct policy_watch *w = must_alloc(calloc(1, sizeof *w));
	const struct trigger_auths_options auths = {.client = o->client,
	                                            .sources = o->sources,
	                                            .log = o->log,
	                                            .on_changed = on_authentication_changed,
	                                            .arg = w};
	const struct object_watch_options objects = {
	        .client = o->client,
	        .group_version = o->source == POLICY_FROM_OBJECT
	                                 ? NULL
	                                 : autoscaler_kinds[AUTOSCALER_SCALED_OBJECT].group_version,
	        .plural = plural_of(o->source),
	        .namespace_name = o->namespace_name,
	        .on_object = on_object,
	        .on_gone = on_gone,
	        .on_answer = on_answer,
	        .on_error = on_error,
	        .arg = w};
	w->options = *o;
	w->auths = o->authenticates ? trigger_auths_new(&auths) : NULL;
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
	trigger_auths_free(w->auths);
	object_watch_free(w->objects);
	free(w);
}
