// SPDX-License-Identifier: Apache-2.0
// /_fake/..: how a test steers a fake API server that is another process, and what it can ask it.
#include <stdio.h>
#include <string.h>
#include <utlist.h>

#include "base/err.h"
#include "base/http/http_server.h"
#include "base/json/json_read.h"
#include "base/num.h"
#include "test/fake/apiserver_private.h"
#include "test/support/http_request.h"

#define DELAY_MS_MAX 600000

static bool number(struct http_exchange *x, const char *name, int64_t max, int64_t *ret_value)
{
	const char *text = http_exchange_query(x, name);
	*ret_value = 0;
	return !text || num_parse_i64(text, strlen(text), 0, max, ret_value, NULL) == 0;
}

static bool is_on(struct http_exchange *x, const char *name)
{
	const char *text = http_exchange_query(x, name);
	return text && strcmp(text, "0") != 0;
}

static void on_fail(void *arg, struct http_exchange *x)
{
	int64_t next, skip, status, retry_after_s, delay_ms;
	if (!number(x, "next", INT32_MAX, &next) || !number(x, "skip", INT32_MAX, &skip) ||
	    !number(x, "status", 599, &status) || (status > 0 && status < 200) ||
	    !number(x, "retryAfter", 3600, &retry_after_s) || !number(x, "delayMs", DELAY_MS_MAX, &delay_ms)) {
		http_exchange_reply_text(x, 400,
		                         "usage: /_fake/fail?next=N[&skip=N][&status=S[&retryAfter=SECONDS]"
		                         "[&inStream=1]][&delayMs=MS][&hang=1][&cut=1][&lose=1][&match=TEXT]"
		                         "[&verb=VERB][&resource=RESOURCE][&also=1]\n");
		return;
	}
	const struct fake_fault fault = {.next = (int)next,
	                                 .skip = (int)skip,
	                                 .status = (int)status,
	                                 .retry_after_s = (int)retry_after_s,
	                                 .delay_ms = delay_ms,
	                                 .hang = is_on(x, "hang"),
	                                 .cut = is_on(x, "cut"),
	                                 .lose = is_on(x, "lose"),
	                                 .in_stream = is_on(x, "inStream"),
	                                 .match = http_exchange_query(x, "match"),
	                                 .verb = http_exchange_query(x, "verb"),
	                                 .resource = http_exchange_query(x, "resource")};
	bool is_taken = true;
	if (is_on(x, "also"))
		is_taken = fake_apiserver_fail_also(arg, &fault);
	else
		fake_apiserver_fail(arg, &fault);
	http_exchange_reply_text(x, is_taken ? 200 : 507, is_taken ? "ok\n" : "too many faults\n");
}

static void reply(struct http_exchange *x, cJSON *root)
{
	struct fake_request r = {.x = x};
	fake_reply_json(&r, 200, root);
}

static void on_counts(void *arg, struct http_exchange *x)
{
	const struct fake_apiserver *f = arg;
	const struct fake_counts *c = &f->counts;
	cJSON *root = cJSON_CreateObject(), *by = cJSON_CreateObject();
	cJSON_AddNumberToObject(root, "total", (double)c->total);
	cJSON_AddNumberToObject(root, "get", (double)c->get);
	cJSON_AddNumberToObject(root, "patch", (double)c->patch);
	cJSON_AddNumberToObject(root, "put", (double)c->put);
	cJSON_AddNumberToObject(root, "post", (double)c->post);
	cJSON_AddNumberToObject(root, "delete", (double)c->delete_);
	cJSON_AddNumberToObject(root, "faults", (double)c->faults);
	cJSON_AddNumberToObject(root, "streams", (double)c->streams);
	cJSON_AddNumberToObject(root, "streamsOpen", fake_watches_open(f->watches));
	for (const struct fake_counter *counter = f->counters; counter; counter = counter->hh.next)
		cJSON_AddNumberToObject(by, counter->key, (double)counter->n);
	cJSON_AddItemToObject(root, "by", by);
	reply(x, root);
}

static void on_objects(void *arg, struct http_exchange *x)
{
	struct fake_apiserver *f = arg;
	struct fake_object *o;
	cJSON *root = cJSON_CreateArray();
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		DL_FOREACH(f->store.of_kind[i], o)
		{
			if (!o->kind->has_scale)
				continue;
			int64_t ready = 0, current = 0;
			json_get_i64(json_get(o->root, "status"), "readyReplicas", 0, INT32_MAX, &ready, NULL);
			json_get_i64(json_get(o->root, "status"), "replicas", 0, INT32_MAX, &current, NULL);
			cJSON *item = cJSON_CreateObject();
			cJSON_AddStringToObject(item, "namespace", fake_object_namespace(o));
			cJSON_AddStringToObject(item, "kind", o->kind->kind);
			cJSON_AddStringToObject(item, "name", fake_object_name(o));
			cJSON_AddStringToObject(item, "resourceVersion", fake_object_version(o));
			cJSON_AddNumberToObject(item, "replicas", fake_object_replicas(o));
			cJSON_AddNumberToObject(item, "currentReplicas", (double)current);
			cJSON_AddNumberToObject(item, "readyReplicas", (double)ready);
			cJSON_AddItemToArray(root, item);
		}
	}
	reply(x, root);
}

static void on_drop(void *arg, struct http_exchange *x)
{
	fake_apiserver_drop_streams(arg, is_on(x, "orderly"));
	http_exchange_reply_text(x, 200, "ok\n");
}

static void on_compact(void *arg, struct http_exchange *x)
{
	fake_apiserver_compact(arg);
	http_exchange_reply_text(x, 200, "ok\n");
}

static void on_bookmarks(void *arg, struct http_exchange *x)
{
	int64_t every_ms;
	if (!number(x, "everyMs", DELAY_MS_MAX, &every_ms)) {
		http_exchange_reply_text(x, 400, "usage: /_fake/bookmarks?everyMs=MS; 0: none\n");
		return;
	}
	fake_apiserver_set_bookmarks(arg, every_ms);
	http_exchange_reply_text(x, 200, "ok\n");
}

static void on_mute(void *arg, struct http_exchange *x)
{
	fake_apiserver_mute(arg, is_on(x, "on"));
	http_exchange_reply_text(x, 200, "ok\n");
}

static void on_serve(void *arg, struct http_exchange *x)
{
	const char *group = http_exchange_query(x, "group");
	if (!group) {
		http_exchange_reply_text(x, 400, "usage: /_fake/serve?group=GROUP&on=0|1\n");
		return;
	}
	fake_apiserver_serve_group(arg, group, is_on(x, "on"));
	http_exchange_reply_text(x, 200, "ok\n");
}

static void on_put(void *arg, struct http_exchange *x)
{
	struct err e = {0};
	if (fake_apiserver_put(arg, http_exchange_body(x, NULL), &e) < 0)
		http_exchange_reply_text(x, 400, e.msg);
	else
		http_exchange_reply_text(x, 200, "ok\n");
}

int fake_control_routes(struct fake_apiserver *f, struct err *e)
{
	static const struct {
		const char *path;
		http_handler_fn *fn;
	} routes[] = {
	        {"/_fake/fail", on_fail},           {"/_fake/requests", on_counts}, {"/_fake/objects", on_objects},
	        {"/_fake/drop", on_drop},           {"/_fake/compact", on_compact}, {"/_fake/mute", on_mute},
	        {"/_fake/bookmarks", on_bookmarks}, {"/_fake/serve", on_serve},     {"/_fake/put", on_put}};
	for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
		if (http_server_route(f->server, routes[i].path, routes[i].fn, f, e) < 0)
			return -1;
	}
	return 0;
}
