// SPDX-License-Identifier: Apache-2.0
#include "controller/policy_watch.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/schema.h"
#include "controller/policy_body.h"
#include "controller/policy_object.h"
#include "controller/policy_store.h"
#include "k8s/k8s_client.h"
#include "k8s/watch.h"
#include "policies/policy_schema.h"

#define PATH_BYTES 512

struct policy_watch {
	struct policy_watch_options options;
	struct k8s_watch *watch;
	struct schema_errors *errors, *unknown; // of one object at a time
	bool is_settled, is_synced, is_full;
	bool is_blind; // the list that is under way has an object that does not say which one it is
	char *error;   // NULL: none
};

static void settled(struct policy_watch *w)
{
	w->is_settled = true;
	if (w->options.on_settled)
		w->options.on_settled(w->options.arg);
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
	snprintf(id.resource_version, sizeof id.resource_version, "%s", o->resource_version);
	return id;
}

// Said once, and again after it was possible in between: there may be thousands of objects too many.
static void report_full(struct policy_watch *w, const struct policy_object *o, const struct err *e)
{
	if (!w->is_full)
		LOG(w->options.log, LOG_ERROR, "Cannot take policy; others may be left out too",
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
	LOG(w->options.log, LOG_WARNING, "Policy has fields that this version does not know; they change nothing",
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

static int put_good(struct policy_watch *w, struct policy_body *fresh, const struct policy_object *o,
                    const struct policy_identity *id, struct err *e)
{
	const struct policy_entry *known = policy_store_find(w->options.store, o->namespace_name, o->name);
	const struct policy_version *v = known ? &known->versions[POLICY_FROM_OBJECT] : NULL;
	struct policy_body *body = fresh;
	if (v && v->body && v->body->fingerprint == o->fingerprint)
		body = v->body; // a status was written, mostly by ourselves: the policy is the same
	else
		warn_unknown(w, o);
	body->fingerprint = o->fingerprint;
	body->generation = o->generation;
	return policy_store_put(w->options.store, POLICY_FROM_OBJECT, policy_body_ref(body), id, e);
}

// ---- the stream ----

static void on_list(void *arg)
{
	struct policy_watch *w = arg;
	w->is_blind = false;
	policy_store_begin(w->options.store, POLICY_FROM_OBJECT);
}

static void report_nameless(struct policy_watch *w, size_t len)
{
	struct buf text;
	buf_init(&text, POLICY_ERROR_BYTES_MAX);
	print_errors(w->errors, &text);
	LOG(w->options.log, LOG_ERROR, "The API server sent a policy without a name", LOG_I("bytes", (int64_t)len),
	    LOG_S("err", buf_str(&text)));
	buf_done(&text);
	w->is_blind = true;
}

static void on_object(void *arg, const char *json, size_t len)
{
	struct policy_watch *w = arg;
	struct policy_object o;
	struct err e;
	struct policy_body *body = policy_body_new();
	if (!body)
		abort(); // no memory for one policy: the supervisor restarts us
	schema_errors_init(w->errors, "");
	schema_errors_init(w->unknown, "");
	int good = policy_object_decode(json, len, &body->arena, &o, &body->policy, w->errors, w->unknown);
	struct policy_identity id = identity_of(&o);
	int rc = 0;
	if (o.name[0] == '\0' || o.namespace_name[0] == '\0')
		report_nameless(w, len);
	else if (o.deleted_ms)
		policy_store_remove(w->options.store, POLICY_FROM_OBJECT, o.namespace_name, o.name);
	else if (good < 0)
		rc = put_bad(w, &o, &id, &e);
	else
		rc = put_good(w, body, &o, &id, &e);
	if (rc < 0)
		report_full(w, &o, &e);
	else
		w->is_full = false;
	policy_body_unref(body);
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	struct policy_watch *w = arg;
	struct policy_object o;
	struct policy_body *body = policy_body_new();
	if (!body)
		abort();
	schema_errors_init(w->errors, "");
	schema_errors_init(w->unknown, "");
	(void)policy_object_decode(json, len, &body->arena, &o, &body->policy, w->errors, w->unknown);
	if (o.name[0] == '\0' || o.namespace_name[0] == '\0')
		report_nameless(w, len);
	else
		policy_store_remove(w->options.store, POLICY_FROM_OBJECT, o.namespace_name, o.name);
	policy_body_unref(body);
}

static void on_synced(void *arg)
{
	struct policy_watch *w = arg;
	if (!w->is_blind) // else it may be any of those that seem to be gone
		policy_store_end(w->options.store, POLICY_FROM_OBJECT);
	w->is_synced = true;
	settled(w);
}

static void on_error(void *arg, const struct err *error)
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
	w->error = strdup(e.msg);
	if (!w->error)
		abort();
	LOG(w->options.log, LOG_ERROR, "Cannot watch policies; trying again",
	    LOG_S("kind", err_kind_info(e.kind)->name), LOG_S("err", e.msg));
	if (!w->is_settled)
		settled(w);
}

// ---- life ----

struct policy_watch *policy_watch_new(const struct policy_watch_options *options, struct err *e)
{
	char path[PATH_BYTES];
	const char *ns = options->namespace_name;
	snprintf(path, sizeof path, "/apis/" POLICY_API_VERSION "%s%s/" POLICY_WATCH_PLURAL, ns ? "/namespaces/" : "",
	         ns ? ns : "");
	struct policy_watch *w = calloc(1, sizeof *w);
	if (!w) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	w->options = *options;
	w->errors = malloc(sizeof *w->errors);
	w->unknown = malloc(sizeof *w->unknown);
	struct k8s_watch_options watch = {.client = options->client,
	                                  .path = path,
	                                  .callbacks = {.on_list = on_list,
	                                                .on_object = on_object,
	                                                .on_deleted = on_deleted,
	                                                .on_synced = on_synced,
	                                                .on_error = on_error},
	                                  .arg = w};
	if (!w->errors || !w->unknown)
		err_set(e, ERR_INTERNAL, "out of memory");
	else
		w->watch = k8s_watch_new(&watch, e);
	if (w->watch)
		return w;
	policy_watch_free(w);
	return NULL;
}

void policy_watch_free(struct policy_watch *w)
{
	if (!w)
		return;
	k8s_watch_free(w->watch);
	free(w->errors);
	free(w->unknown);
	free(w->error);
	free(w);
}

void policy_watch_get_state(const struct policy_watch *w, struct policy_watch_state *ret_state)
{
	*ret_state = (struct policy_watch_state){w->is_settled, w->is_synced, w->error ? w->error : ""};
}

struct k8s_watch_stats policy_watch_stats(const struct policy_watch *w)
{
	struct k8s_watch_stats stats;
	k8s_watch_get_stats(w->watch, &stats);
	return stats;
}
