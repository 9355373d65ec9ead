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
#include "controller/source/policy_object.h"
#include "controller/source/policy_store.h"
#include "k8s/cache/informer.h"
#include "k8s/client/k8s_client.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/policy_schema.h"

// An object that the informer keeps.
struct watched_policy {
	struct informer_item item;
	char key[]; // "NAMESPACE/NAME"
};

struct policy_watch {
	struct policy_watch_options options;
	struct informer *informer;
	struct informer_namespace *space;       // the namespace, or all
	struct schema_errors *errors, *unknown; // of the current object
	uint32_t list;                          // number of the latest complete list; 0: none
	bool has_answer, is_full;
	char *error; // NULL: none
};

static struct watched_policy *watched_of(struct informer_item *item)
{
	uintptr_t at = (uintptr_t)item - offsetof(struct watched_policy, item);
	return (struct watched_policy *)at;
}

static void report_synced(struct policy_watch *w)
{
	w->has_answer = true;
	if (w->options.on_synced)
		w->options.on_synced(w->options.arg);
}

// "spec.maxReplicas: must be ..; spec.signals[0].query: .."
static void print_errors(const struct schema_errors *errors, struct buf *out)
{
	for (size_t i = 0; i < errors->n; i++)
		buf_printf(out, "%s%s%s%s", i ? "; " : "", errors->items[i].path, errors->items[i].path[0] ? ": " : "",
		           errors->items[i].message);
	if (errors->dropped)
		buf_printf(out, "; %zu more", errors->dropped);
}

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
	print_errors(w->unknown, &text);
	LOG(w->options.log, LOG_WARNING, "Policy has unknown fields, which are ignored",
	    LOG_S("namespace", o->namespace_name), LOG_S("policy", o->name), LOG_S("fields", buf_str(&text)));
	buf_done(&text);
}

static int put_bad(struct policy_watch *w, const struct policy_object *o, const struct policy_identity *id,
                   struct err *e)
{
	struct buf text;
	buf_init(&text, POLICY_ERROR_BYTES_MAX);
	print_errors(w->errors, &text);
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
	print_errors(w->errors, &text);
	LOG(w->options.log, LOG_ERROR, "The API server sent a policy without a name", LOG_I("bytes", (int64_t)len),
	    LOG_S("err", buf_str(&text)));
	buf_done(&text);
}

static bool is_stored(const struct policy_watch *w, const char *namespace_name, const char *name)
{
	const struct policy_entry *entry = policy_store_find(w->options.store, namespace_name, name);
	return entry && entry->versions[POLICY_FROM_OBJECT].is_there;
}

// Without an item the informer would not report that the object is gone, so the policy would be kept permanently.
static void keep(struct policy_watch *w, const char *namespace_name, const char *name)
{
	size_t size = strlen(namespace_name) + 1 + strlen(name) + 1;
	struct watched_policy *p = must_alloc(calloc(1, sizeof *p + size));
	snprintf(p->key, size, "%s/%s", namespace_name, name);
	if (informer_keep(w->informer, &p->item, namespace_name, p->key) < 0)
		abort(); // base/must.h
}

static void forget(struct informer_item *item)
{
	informer_remove(item);
	free(watched_of(item));
}

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
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
	if (o.name[0] == '\0' || o.namespace_name[0] == '\0' || namespace_name[0] == '\0') {
		report_nameless(w, len);
	} else if (o.deleted_ms) {
		policy_store_remove(w->options.store, POLICY_FROM_OBJECT, o.namespace_name, o.name);
		if (item)
			forget(item);
	} else {
		rc = good < 0 ? put_bad(w, &o, &id, &e) : put_good(w, body, &o, &id, &e);
		if (!item && is_stored(w, namespace_name, name))
			keep(w, namespace_name, name);
	}
	if (rc < 0)
		report_full(w, &o, &e);
	else
		w->is_full = false;
	policy_ref_release(body);
}

static void on_absent(void *arg, struct informer_item *item)
{
	struct policy_watch *w = arg;
	const struct watched_policy *p = watched_of(item);
	char namespace_name[POLICY_OBJECT_NAMESPACE_MAX + 1];
	const char *slash = strchr(p->key, '/');
	snprintf(namespace_name, sizeof namespace_name, "%.*s", (int)(slash - p->key), p->key);
	policy_store_remove(w->options.store, POLICY_FROM_OBJECT, namespace_name, slash + 1);
	forget(item);
}

// ---- the watch ----

static void on_change(void *arg)
{
	struct policy_watch *w = arg;
	uint32_t list = informer_synced_list(w->space);
	if (list == w->list)
		return;
	w->list = list;
	report_synced(w);
}

static void on_error(void *arg, const char *namespace_name, const struct err *error)
{
	struct policy_watch *w = arg;
	free(w->error);
	w->error = NULL;
	if (!error) {
		LOG(w->options.log, LOG_INFO, "Watching policies again", LOG_S("resource", POLICY_WATCH_PLURAL));
		return;
	}
	struct err e = *error;
	if (error->kind == ERR_NOT_FOUND)
		err_set(&e, ERR_NOT_FOUND,
		        "the cluster has no resource %s.%s; install it: gpuscale crd | kubectl apply -f -",
		        POLICY_WATCH_PLURAL, POLICY_API_VERSION);
	w->error = must_alloc(strdup(e.msg));
	LOG(w->options.log, LOG_ERROR, "Cannot watch policies; trying again",
	    LOG_S("kind", err_kind_info(e.kind)->name), LOG_S("err", e.msg));
	if (!w->has_answer)
		report_synced(w);
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
	const char *namespace_name = options->namespace_name;
	if (!w->errors || !w->unknown)
		err_set(e, ERR_INTERNAL, "out of memory");
	else
		w->informer = informer_new(&(struct informer_options){.client = options->client,
		                                                      .group_path = "/apis/" POLICY_API_VERSION,
		                                                      .plural = POLICY_WATCH_PLURAL,
		                                                      .callbacks = {.on_object = on_object,
		                                                                    .on_absent = on_absent,
		                                                                    .on_change = on_change,
		                                                                    .on_error = on_error},
		                                                      .arg = w},
		                           e);
	if (w->informer)
		w->space = namespace_name ? informer_want_namespace(w->informer, namespace_name, e)
		                          : informer_want_all(w->informer, e);
	if (w->space)
		return w;
	policy_watch_free(w);
	return NULL;
}

void policy_watch_free(struct policy_watch *w)
{
	if (!w)
		return;
	// Removed first, so that the informer does not report them absent.
	while (w->informer && informer_first(w->informer))
		forget(informer_first(w->informer));
	if (w->space)
		informer_unwant(w->space);
	informer_free(w->informer);
	free(w->errors);
	free(w->unknown);
	free(w->error);
	free(w);
}

void policy_watch_verify(struct policy_watch *w, const char *namespace_name, const char *name)
{
	informer_verify(w->informer, namespace_name, name);
}

void policy_watch_get_state(const struct policy_watch *w, struct policy_watch_state *ret_state)
{
	*ret_state = (struct policy_watch_state){w->has_answer, w->list > 0, w->error ? w->error : ""};
}

void policy_watch_get_stats(const struct policy_watch *w, struct informer_stats *ret_stats)
{
	*ret_stats = (struct informer_stats){0};
	informer_add_stats(w->informer, ret_stats);
}
