// SPDX-License-Identifier: Apache-2.0
#include "controller/source/scaled_object_watch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/json/json_span.h"
#include "base/must.h"
#include "base/num.h"
#include "base/process/log.h"
#include "controller/source/object_watch.h"
#include "controller/source/policy_object.h"
#include "controller/source/policy_store.h"
#include "controller/source/scaled_object.h"
#include "controller/source/trigger_auth.h"
#include "k8s/cache/autoscaler_object.h"
#include "k8s/client/k8s_client.h"
#include "policies/convert/convert.h"
#include "policies/load/policy_ref.h"
#include "promql/promql_source.h"

struct scaled_object_watch {
	struct scaled_object_watch_options options;
	struct object_watch *objects;
	struct trigger_auths *auths; // NULL: not read
	bool is_full;                // logged
};

// ---- servers of triggers ----

static size_t url_len(const char *url)
{
	size_t n = strlen(url);
	while (n > 0 && url[n - 1] == '/')
		n--;
	return n;
}

// The object that is being converted.
struct converted {
	const struct scaled_object_watch *watch;
	const char *namespace_name, *name;
	char text[TRIGGER_AUTH_WHY_BYTES];
};

static const struct promql_source *find_server(const struct scaled_object_watch *w, const char *url)
{
	size_t n = url_len(url);
	for (size_t i = 0; i < promql_sources_count(w->options.sources); i++) {
		const struct promql_source *first = promql_sources_at(w->options.sources, i);
		for (const struct promql_source *s = first; s; s = promql_source_next(s))
			if (url_len(promql_source_url(s)) == n && strncmp(promql_source_url(s), url, n) == 0)
				return first;
	}
	return NULL;
}

// Credentials of a namespace open no server to it that the operator has closed to it.
static bool is_open_to(const struct promql_source *s, const char *namespace_name, struct err *e)
{
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	bool is_open = promql_access_is_closed(promql_source_access(s)) ||
	               promql_access_admit(promql_source_access(s), promql_source_name(s), namespace_name, PROMQL_PROBE,
	                                   &query, NULL, e);
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
		return s ? promql_source_name(s) : NULL;
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
	                                     .like = promql_source_name(s)};
	return trigger_auths_find(c->watch->auths, &use, ret_why);
}

static void on_authentication_changed(void *arg, const char *namespace_name, const char *object)
{
	const struct scaled_object_watch *w = arg;
	object_watch_verify(w->objects, namespace_name, object);
}

// ---- objects ----

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

static struct policy_identity identity_of(const struct watched_object *o, struct json_span object)
{
	struct policy_identity id = {.generation = o->generation};
	char created[NUM_INPUT_BYTES_MAX + 1];
	const struct json_span status = json_span_get(object, "status");
	int n = json_span_text(json_span_path(object, (const char *const[]){"metadata", "creationTimestamp", NULL}),
	                       created, sizeof created);
	if (n > 0)
		(void)num_parse_rfc3339_ms(created, (size_t)n, &id.created_ms, NULL); // else unknown: the oldest
	id.has_status = status.text && status.len > strlen("{}");
	snprintf(id.uid, sizeof id.uid, "%s", o->uid);
	return id;
}

static void namespace_of(const struct watched_object *o, char out[POLICY_OBJECT_NAMESPACE_MAX + 1])
{
	snprintf(out, POLICY_OBJECT_NAMESPACE_MAX + 1, "%.*s", (int)strcspn(o->key, "/"), o->key);
}

static int put_bad(struct scaled_object_watch *w, const char *namespace_name, const char *name,
                   const struct policy_identity *id, const char *faults, const struct policy_version *known,
                   struct err *e)
{
	if (!known || !known->error || strcmp(known->error, faults) != 0)
		LOG(w->options.log, LOG_ERROR, "ScaledObject is left alone", LOG_S("namespace", namespace_name),
		    LOG_S("policy", name), LOG_S("err", faults));
	// A version of before is not used any more: KEDA's meaning of the object has changed.
	if (known && known->body)
		policy_store_remove(w->options.store, POLICY_FROM_SCALED_OBJECT, namespace_name, name);
	return policy_store_put_bad(w->options.store, POLICY_FROM_SCALED_OBJECT, namespace_name, name, id, faults, e);
}

static int put(struct scaled_object_watch *w, const char *namespace_name, const struct watched_object *o,
               const char *json, size_t len, struct err *e)
{
	const struct json_span object = {json, len};
	struct converted converted = {.watch = w, .namespace_name = namespace_name, .name = o->name};
	const struct convert_live live = {.source_of = source_of, .arg = &converted};
	const struct policy_identity id = identity_of(o, object);
	const struct policy_entry *entry = policy_store_find(w->options.store, namespace_name, o->name);
	const struct policy_version *known = entry ? &entry->versions[POLICY_FROM_SCALED_OBJECT] : NULL;
	uint64_t fingerprint = fingerprint_of(object);
	if (known && known->body && !known->error && known->body->fingerprint == fingerprint) {
		known->body->generation = o->generation;
		return policy_store_put(w->options.store, POLICY_FROM_SCALED_OBJECT, policy_ref_acquire(known->body),
		                        &id, e);
	}
	struct policy_ref *body = must_alloc(policy_ref_new());
	struct buf faults;
	buf_init(&faults, POLICY_ERROR_BYTES_MAX);
	body->fingerprint = fingerprint;
	body->generation = o->generation;
	int rc;
	if (scaled_object_decode(json, len, &live, body, &faults) < 0)
		rc = put_bad(w, namespace_name, o->name, &id, buf_str(&faults), known, e);
	else
		rc = policy_store_put(w->options.store, POLICY_FROM_SCALED_OBJECT, policy_ref_acquire(body), &id, e);
	buf_done(&faults);
	policy_ref_release(body);
	return rc;
}

static bool on_object(void *arg, struct watched_object *o, enum object_change change, const char *json, size_t len)
{
	struct scaled_object_watch *w = arg;
	char namespace_name[POLICY_OBJECT_NAMESPACE_MAX + 1];
	struct err e;
	if (o->key[0] == '/')
		return false;
	namespace_of(o, namespace_name);
	bool is_stored = put(w, namespace_name, o, json, len, &e) == 0;
	if (!is_stored && !w->is_full)
		LOG(w->options.log, LOG_ERROR, "Cannot store policy; others may be left out, too",
		    LOG_S("namespace", namespace_name), LOG_S("policy", o->name), LOG_S("err", e.msg));
	w->is_full = !is_stored;
	const struct policy_entry *entry = policy_store_find(w->options.store, namespace_name, o->name);
	return entry && entry->versions[POLICY_FROM_SCALED_OBJECT].is_there;
}

static void on_gone(void *arg, struct watched_object *o)
{
	struct scaled_object_watch *w = arg;
	char namespace_name[POLICY_OBJECT_NAMESPACE_MAX + 1];
	namespace_of(o, namespace_name);
	policy_store_remove(w->options.store, POLICY_FROM_SCALED_OBJECT, namespace_name, o->name);
}

static void on_answer(void *arg)
{
	const struct scaled_object_watch *w = arg;
	w->options.on_synced(w->options.arg);
}

static void on_error(void *arg, const struct err *error)
{
	struct scaled_object_watch *w = arg;
	if (error)
		LOG(w->options.log, LOG_ERROR, "Cannot watch policies; trying again",
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else
		LOG(w->options.log, LOG_INFO, "Watching policies again",
		    LOG_S("resource", autoscaler_kinds[AUTOSCALER_SCALED_OBJECT].plural));
}

// ---- life ----

struct scaled_object_watch *scaled_object_watch_new(const struct scaled_object_watch_options *options, struct err *e)
{
	struct scaled_object_watch *w = calloc(1, sizeof *w);
	if (!w) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	w->options = *options;
	const struct trigger_auths_options auths = {.loop = k8s_client_loop(options->client),
	                                            .client = options->client,
	                                            .sources = options->sources,
	                                            .log = options->log,
	                                            .on_changed = on_authentication_changed,
	                                            .arg = w};
	if (options->authenticates && !(w->auths = trigger_auths_new(&auths, e))) {
		free(w);
		return NULL;
	}
	w->objects = object_watch_new(
	        &(struct object_watch_options){.client = options->client,
	                                       .group_version =
	                                               autoscaler_kinds[AUTOSCALER_SCALED_OBJECT].group_version,
	                                       .plural = autoscaler_kinds[AUTOSCALER_SCALED_OBJECT].plural,
	                                       .namespace_name = options->namespace_name,
	                                       .on_object = on_object,
	                                       .on_gone = on_gone,
	                                       .on_answer = on_answer,
	                                       .on_error = on_error,
	                                       .arg = w},
	        e);
	if (w->objects)
		return w;
	trigger_auths_free(w->auths);
	free(w);
	return NULL;
}

void scaled_object_watch_free(struct scaled_object_watch *w)
{
	if (!w)
		return;
	trigger_auths_free(w->auths);
	object_watch_free(w->objects);
	free(w);
}

struct object_watch *scaled_object_watch_objects(const struct scaled_object_watch *w)
{
	return w->objects;
}
