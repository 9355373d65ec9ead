// SPDX-License-Identifier: Apache-2.0
// GPUPool objects as a source of pools. A cluster without the custom resource has none, which is not an error: whether
// it was installed is looked up every POOL_WATCH_ASK_MS.
#include "base/base.h"
#include "controller/pool/pools.h"

#include <event2/event.h>

#include "base/backoff.h"
#include "base/http/http_client.h"
#include "base/json/json_span.h"
#include "base/process/log.h"
#include "base/schema/doc.h"
#include "base/timer.h"
#include "controller/source/object_watch.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "policies/schema/policy_schema.h"
#include "policies/schema/pool_schema.h"

#define GROUP_PATH     "/apis/" POLICY_API_VERSION
#define ASK_TIMEOUT_MS 5000 // policies wait for the first answer
#define ASK_ATTEMPTS   2
#define TREE_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define POOL_BYTES_MAX ((size_t)4 * 1024 * 1024)

static void report_answer(void *arg)
{
	struct pool_watch *w = arg;
	if (w->has_answer)
		return;
	w->has_answer = true;
	w->options.on_answer(w->options.arg);
}

// Logs each error once, and its end.
static void set_error(struct pool_watch *w, const struct err *error)
{
	if (error ? w->error && strcmp(w->error, error->msg) == 0 : !w->error)
		return;
	free(w->error);
	w->error = error ? must_alloc(strdup(error->msg)) : NULL;
	if (error)
		LOG(w->options.log, LOG_WARNING, "Cannot watch pools; new pools and changes are not enforced",
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else
		LOG(w->options.log, LOG_INFO, "Watching pools again", LOG_S("resource", POOL_WATCH_PLURAL));
}

// ---- objects ----

void pool_object_put_errors(const struct schema_errors *errors, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < errors->n && used < size; i++) {
		const struct schema_error *s = &errors->items[i];
		int n = snprintf(out + used, size - used, "%s%s%s%s", i ? "; " : "", s->path, s->path[0] ? ": " : "",
		                 s->message);
		used += n > 0 ? (size_t)n : 0;
	}
}

// Decodes what defines the pool.
static void decode(const char *name, const char *json, size_t len, struct pool_object *o, struct schema_errors *errors,
                   struct schema_errors *unknown)
{
	struct arena tree;
	struct doc_node *root;
	struct err e;
	arena_init(&o->arena, POOL_BYTES_MAX);
	arena_init(&tree, TREE_BYTES_MAX);
	o->pool.name = must_alloc(arena_strdup(&o->arena, name));
	o->pool.turn_every_ms = 1; // also of a pool that cannot be decoded
	if (doc_from_json(&tree, json, len, &root, &e) < 0)
		schema_report(errors, NULL, "", "%s", e.msg);
	else if (!doc_get(root, "spec"))
		schema_report(errors, NULL, "spec", "is required");
	else
		pool_decode_spec(doc_get(root, "spec"), &o->pool, &o->arena, errors, unknown);
	if (o->pool.turn_every_ms <= 0)
		o->pool.turn_every_ms = 1;
	arena_done(&tree);
}

struct pool_object *pool_object_read(const char *name, const char *json, size_t len, struct schema_errors *errors,
                                     struct schema_errors *unknown)
{
	struct pool_object *o = must_alloc(calloc(1, sizeof *o));
	const struct json_span metadata = json_span_get((struct json_span){json, len}, "metadata");
	schema_errors_init(errors, "");
	schema_errors_init(unknown, "");
	decode(name, json, len, o, errors, unknown);
	json_span_text(json_span_get(metadata, "uid"), o->uid, sizeof o->uid);
	json_span_i64(json_span_get(metadata, "generation"), 0, INT64_MAX, &o->generation);
	if (errors->n + errors->dropped > 0)
		pool_object_put_errors(errors, o->fault, sizeof o->fault);
	return o;
}

static void put(struct pool_watch *w, const char *name, const char *json, size_t len)
{
	struct pool_object *o = pool_object_read(name, json, len, &w->errors, &w->unknown);
	struct err e;
	if (o->fault[0]) {
		LOG(w->options.log, LOG_ERROR, "Invalid pool", LOG_S("pool", name), LOG_S("err", o->fault));
	} else if (w->unknown.n > 0) {
		char fields[POOL_FAULT_BYTES];
		pool_object_put_errors(&w->unknown, fields, sizeof fields);
		LOG(w->options.log, LOG_WARNING, "Pool has unknown fields, which are ignored", LOG_S("pool", name),
		    LOG_S("fields", fields));
	}
	if (pools_put_object(w->options.pools, o, &e) < 0)
		LOG(w->options.log, LOG_ERROR, "Cannot store pool", LOG_S("pool", name), LOG_S("err", e.msg));
}

static bool on_object(void *arg, struct watched_object *o, enum object_change change, const char *json, size_t len)
{
	struct pool_watch *w = arg;
	struct pool_ledger spending;
	if (change != OBJECT_STATUS)
		put(w, o->name, json, len);
	if (pool_spending_read(json, len, &spending))
		pools_put_spending(w->options.pools, o->name, o->uid, &spending);
	return true;
}

static void on_gone(void *arg, struct watched_object *o)
{
	const struct pool_watch *w = arg;
	pools_remove_object(w->options.pools, o->name);
}

// ---- the watch ----

static void on_error(void *arg, const struct err *error)
{
	struct pool_watch *w = arg;
	if (error && error->kind == ERR_NOT_FOUND && error->code == 404) {
		w->is_gone = true; // the watch must not be freed in its own callback
		event_active(&w->timer, EV_TIMEOUT, 0);
		return;
	}
	set_error(w, error);
	if (error)
		report_answer(w);
}

static void open_watch(struct pool_watch *w)
{
	w->objects = object_watch_new(&(struct object_watch_options){.client = w->options.client,
	                                                             .plural = POOL_WATCH_PLURAL,
	                                                             .is_cluster_scoped = true,
	                                                             .on_object = on_object,
	                                                             .on_gone = on_gone,
	                                                             .on_answer = report_answer,
	                                                             .on_error = on_error,
	                                                             .arg = w},
	                              NULL);
	must_alloc(w->objects);
}

static void close_watch(struct pool_watch *w)
{
	object_watch_stop(w->objects);
	object_watch_free(w->objects);
	w->objects = NULL;
	w->is_gone = false;
}

// ---- is the resource installed? ----

static void ask_again_in(struct pool_watch *w, int64_t ms)
{
	timer_start(&w->timer, ms + backoff_random_ms(ms / 10 + 1));
}

// Returns 1 when the group serves pools, 0 when it does not, -1 and *e when the reply is invalid.
static int has_pools(const struct http_response *response, struct err *e)
{
	struct k8s_resource_list list;
	int is_served = 0;
	if (discovery_decode(response->body, response->body_len, &list, e) < 0)
		return -1;
	for (size_t i = 0; i < list.n; i++)
		is_served |= strcmp(list.items[i].plural, POOL_WATCH_PLURAL) == 0;
	free(list.items);
	return is_served;
}

static void on_asked(void *arg, const struct http_response *response, const struct err *error)
{
	struct pool_watch *w = arg;
	struct err e;
	w->asking = NULL;
	if (error && error->kind == ERR_CANCELED)
		return;
	bool is_absent = error && error->kind == ERR_NOT_FOUND;
	int is_served = response ? has_pools(response, &e) : is_absent ? 0 : -1;
	if (is_served > 0) {
		open_watch(w); // which reports the answer
		return;
	}
	set_error(w, is_served == 0 ? NULL : response ? &e : error);
	report_answer(w);
	ask_again_in(w, is_served == 0 ? POOL_WATCH_ASK_MS : POOL_WATCH_RETRY_MS);
}

static void ask(struct pool_watch *w)
{
	struct err e;
	const struct k8s_request_options request = {.method = "GET",
	                                            .path = GROUP_PATH,
	                                            .timeout_ms = ASK_TIMEOUT_MS,
	                                            .max_attempts = ASK_ATTEMPTS,
	                                            .is_background = w->has_answer,
	                                            .done = on_asked,
	                                            .arg = w};
	if (k8s_request_with(w->options.client, &request, &w->asking, &e) < 0)
		on_asked(w, NULL, &e);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	struct pool_watch *w = arg;
	if (w->is_gone) {
		close_watch(w);
		set_error(w, NULL);
		report_answer(w);
		ask_again_in(w, POOL_WATCH_RETRY_MS); // soon: a server that is starting does not serve it yet
	} else if (!w->objects && !w->asking) {
		ask(w);
	}
}

// ---- life ----

struct pool_watch *pool_watch_new(const struct pool_watch_options *options)
{
	struct pool_watch *w = must_alloc(calloc(1, sizeof *w));
	w->options = *options;
	evtimer_assign(&w->timer, options->client->options.loop, on_timer, w);
	ask(w);
	return w;
}

void pool_watch_free(struct pool_watch *w)
{
	if (!w)
		return;
	if (w->asking)
		k8s_call_cancel(w->asking);
	event_del(&w->timer);
	object_watch_free(w->objects); // the pools stay
	free(w->error);
	free(w);
}
