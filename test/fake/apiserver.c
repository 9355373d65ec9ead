// SPDX-License-Identifier: Apache-2.0
#include "test/fake/apiserver.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http_server.h"
#include "base/json_read.h"
#include "base/num.h"
#include "test/fake/apiserver_private.h"

#define TOKEN_FILE_BYTES_MAX 65536
#define DELAY_MS_MAX         600000

// A request that waits for its delay.
struct fake_delayed {
	struct fake_delayed *prev, *next;
	struct fake_apiserver *server;
	struct http_exchange *exchange;
	struct event *timer;
	int status, retry_after_s;
};

// ---- paths ----

// /api/VERSION/.. or /apis/GROUP/VERSION/.., then [namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]].
static bool parse_path(const char *path, struct fake_path *p)
{
	const char *part[9];
	size_t n = 0;
	*p = (struct fake_path){.group = "", .version = "", .ns = "", .plural = "", .name = "", .subresource = ""};
	if (path[0] != '/' || strlen(path) >= sizeof p->text)
		return false;
	memcpy(p->text, path, strlen(path) + 1);
	for (char *at = p->text; at && n < 9; n++) {
		*at++ = '\0';
		part[n] = at;
		at = strchr(at, '/');
	}
	bool has_group = strcmp(part[0], "apis") == 0;
	size_t i = 1;
	if (n > 8 || (!has_group && strcmp(part[0], "api") != 0) || n < (has_group ? 3U : 2U))
		return false;
	if (has_group)
		p->group = part[i++];
	p->version = part[i++];
	if (i + 2 < n && strcmp(part[i], "namespaces") == 0) {
		p->ns = part[i + 1];
		i += 2;
	}
	p->plural = i < n ? part[i++] : "";
	p->name = i < n ? part[i++] : "";
	p->subresource = i < n ? part[i++] : "";
	if (p->plural[0])
		p->kind = fake_kind_find(p->group, p->version, p->plural);
	return i >= n;
}

// ---- who asks ----

enum role { ROLE_NOBODY, ROLE_VIEWER, ROLE_ADMIN };

static bool token_is(const char *sent, const char *expected)
{
	return sent && expected && expected[0] && strcmp(sent, expected) == 0;
}

static enum role role_of(const struct fake_apiserver *f, const struct http_exchange *x)
{
	const struct fake_apiserver_options *o = &f->options;
	const char *header = http_exchange_header(x, "Authorization");
	const char *sent = header && strncmp(header, "Bearer ", 7) == 0 ? header + 7 : NULL;
	if (token_is(sent, o->viewer_token))
		return ROLE_VIEWER;
	if (!o->token && !o->token_file)
		return ROLE_ADMIN;
	struct buf text;
	buf_init(&text, TOKEN_FILE_BYTES_MAX);
	if (o->token_file && buf_read_file(&text, o->token_file, NULL) == 0 && text.len)
		text.data[strcspn(text.data, " \t\r\n")] = '\0';
	bool is_admin = token_is(sent, o->token) || token_is(sent, buf_str(&text));
	buf_done(&text);
	return is_admin ? ROLE_ADMIN : ROLE_NOBODY;
}

static void reply_forbidden(struct http_exchange *x, const struct fake_path *p)
{
	static const char *const verbs[][2] = {
	        {"PATCH", "patch"}, {"PUT", "update"}, {"POST", "create"}, {"DELETE", "delete"}};
	const char *verb = "get";
	for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
		if (strcmp(http_exchange_method(x), verbs[i][0]) == 0)
			verb = verbs[i][1];
	char message[1500];
	snprintf(message, sizeof message,
	         "%.300s%s%.300s \"%.300s\" is forbidden: User \"viewer\" cannot %s resource \"%.100s%s%.100s\" in API "
	         "group "
	         "\"%.100s\" in the namespace \"%.100s\"",
	         p->plural, p->group[0] ? "." : "", p->group, p->name, verb, p->plural, p->subresource[0] ? "/" : "",
	         p->subresource, p->group, p->ns);
	fake_reply_status(x, 403, "Forbidden", message, p);
}

// ---- requests ----

static void serve(struct fake_apiserver *f, struct http_exchange *x)
{
	const char *path = http_exchange_path(x), *method = http_exchange_method(x);
	struct fake_path p;
	enum role role = role_of(f, x);
	if (strcmp(path, "/readyz") == 0 || strcmp(path, "/livez") == 0 || strcmp(path, "/healthz") == 0) {
		http_exchange_reply(x, 200, "text/plain; charset=utf-8", "ok", 2); // the real one adds no line end
		return;
	}
	if (role == ROLE_NOBODY) {
		fake_reply_status(x, 401, "Unauthorized", "Unauthorized", NULL);
		return;
	}
	if (strcmp(path, "/version") == 0) {
		cJSON *root = cJSON_CreateObject();
		cJSON_AddStringToObject(root, "major", "1");
		cJSON_AddStringToObject(root, "minor", "20");
		cJSON_AddStringToObject(root, "gitVersion", "v1.20.2-fake");
		fake_reply_json(x, 200, root);
		return;
	}
	if (!parse_path(path, &p)) {
		http_exchange_reply_text(x, 404, "404 page not found\n");
		return;
	}
	if (!p.plural[0] && strcmp(method, "GET") == 0)
		fake_discovery(x, &p);
	else if (!p.kind)
		fake_reply_no_resource(x);
	else if (role == ROLE_VIEWER && strcmp(method, "GET") != 0)
		reply_forbidden(x, &p);
	else
		fake_resource(f, x, &p);
}

static void reply_fault(struct http_exchange *x, int status, int retry_after_s)
{
	char text[32];
	if (retry_after_s > 0) {
		snprintf(text, sizeof text, "%d", retry_after_s);
		http_exchange_set_header(x, "Retry-After", text);
	}
	fake_reply_status(x, status, status == 429 ? "TooManyRequests" : "ServiceUnavailable",
	                  "made to fail by the test", NULL);
}

static void delayed_free(struct fake_delayed *d)
{
	DL_DELETE(d->server->delayed, d);
	event_free(d->timer);
	free(d);
}

static void on_delay_over(evutil_socket_t fd, short events, void *arg)
{
	struct fake_delayed *d = arg;
	struct fake_apiserver *f = d->server;
	struct http_exchange *x = d->exchange;
	int status = d->status, retry_after_s = d->retry_after_s;
	delayed_free(d);
	if (status)
		reply_fault(x, status, retry_after_s);
	else
		serve(f, x);
}

static bool delay(struct fake_apiserver *f, struct http_exchange *x)
{
	struct fake_delayed *d = calloc(1, sizeof *d);
	if (!d)
		return false;
	d->server = f;
	d->exchange = x;
	d->status = f->fault.status;
	d->retry_after_s = f->fault.retry_after_s;
	d->timer = evtimer_new(f->options.loop, on_delay_over, d);
	struct timeval tv = {.tv_sec = f->fault.delay_ms / 1000, .tv_usec = f->fault.delay_ms % 1000 * 1000};
	DL_APPEND(f->delayed, d);
	evtimer_add(d->timer, &tv);
	return true;
}

static void on_request(void *arg, struct http_exchange *x)
{
	struct fake_apiserver *f = arg;
	const char *method = http_exchange_method(x);
	char line[1200];
	snprintf(line, sizeof line, "%s %s", method, http_exchange_path(x));
	f->counts.total++;
	f->counts.get += strcmp(method, "GET") == 0;
	f->counts.patch += strcmp(method, "PATCH") == 0;
	f->counts.put += strcmp(method, "PUT") == 0;
	f->counts.post += strcmp(method, "POST") == 0;
	f->counts.delete_ += strcmp(method, "DELETE") == 0;
	if (f->fault.next > 0 && strstr(line, f->fault_match)) {
		f->fault.next--;
		f->counts.faults++;
		if (f->fault.delay_ms > 0 && delay(f, x))
			return;
		if (f->fault.status) {
			reply_fault(x, f->fault.status, f->fault.retry_after_s);
			return;
		}
	}
	serve(f, x);
}

// ---- the admin path: /_fake/fail, /_fake/requests, /_fake/objects ----

static bool number(struct http_exchange *x, const char *name, int64_t max, int64_t *ret_value)
{
	const char *text = http_exchange_query(x, name);
	*ret_value = 0;
	return !text || num_parse_i64(text, strlen(text), 0, max, ret_value, NULL) == 0;
}

static void on_fail(void *arg, struct http_exchange *x)
{
	int64_t next, status, retry_after_s, delay_ms;
	if (!number(x, "next", INT32_MAX, &next) || !number(x, "status", 599, &status) ||
	    !number(x, "retryAfter", 3600, &retry_after_s) || !number(x, "delayMs", DELAY_MS_MAX, &delay_ms)) {
		http_exchange_reply_text(
		        x, 400, "usage: /_fake/fail?next=N&status=S&retryAfter=SECONDS&delayMs=MS&match=TEXT\n");
		return;
	}
	fake_apiserver_fail(arg, &(struct fake_fault){.next = (int)next,
	                                              .status = (int)status,
	                                              .retry_after_s = (int)retry_after_s,
	                                              .delay_ms = delay_ms,
	                                              .match = http_exchange_query(x, "match")});
	http_exchange_reply_text(x, 200, "ok\n");
}

static void on_counts(void *arg, struct http_exchange *x)
{
	const struct fake_counts *c = &((struct fake_apiserver *)arg)->counts;
	cJSON *root = cJSON_CreateObject();
	cJSON_AddNumberToObject(root, "total", (double)c->total);
	cJSON_AddNumberToObject(root, "get", (double)c->get);
	cJSON_AddNumberToObject(root, "patch", (double)c->patch);
	cJSON_AddNumberToObject(root, "put", (double)c->put);
	cJSON_AddNumberToObject(root, "post", (double)c->post);
	cJSON_AddNumberToObject(root, "delete", (double)c->delete_);
	cJSON_AddNumberToObject(root, "faults", (double)c->faults);
	fake_reply_json(x, 200, root);
}

static void on_objects(void *arg, struct http_exchange *x)
{
	struct fake_apiserver *f = arg;
	struct fake_object *o;
	cJSON *root = cJSON_CreateArray();
	DL_FOREACH(f->store.objects, o)
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
	fake_reply_json(x, 200, root);
}

// ---- the public face ----

struct fake_apiserver *fake_apiserver_new(const struct fake_apiserver_options *options, struct err *e)
{
	struct fake_apiserver *f = calloc(1, sizeof *f);
	if (!f) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	f->options = *options;
	clock_init_real(&f->clock);
	fake_store_init(&f->store);
	struct http_server_options so = {.loop = options->loop,
	                                 .listen = options->listen,
	                                 .tls_cert_file = options->tls_cert_file,
	                                 .tls_key_file = options->tls_key_file};
	f->server = http_server_new(&so, e);
	if (!f->server || http_server_route(f->server, "/", on_request, f, e) < 0 ||
	    http_server_route(f->server, "/_fake/fail", on_fail, f, e) < 0 ||
	    http_server_route(f->server, "/_fake/requests", on_counts, f, e) < 0 ||
	    http_server_route(f->server, "/_fake/objects", on_objects, f, e) < 0) {
		fake_apiserver_free(f);
		return NULL;
	}
	return f;
}

void fake_apiserver_free(struct fake_apiserver *f)
{
	if (!f)
		return;
	while (f->delayed) {
		struct http_exchange *x = f->delayed->exchange;
		delayed_free(f->delayed);
		reply_fault(x, 503, 0);
	}
	http_server_free(f->server);
	if (f->pod_timer)
		event_free(f->pod_timer);
	fake_store_done(&f->store);
	free(f);
}

uint16_t fake_apiserver_port(const struct fake_apiserver *f)
{
	return http_server_port(f->server);
}

int fake_apiserver_add(struct fake_apiserver *f, const char *object, struct err *e)
{
	char text[512];
	int64_t replicas;
	snprintf(text, sizeof text, "%s", object);
	char *kind = strchr(text, '/'), *name = kind ? strchr(kind + 1, '/') : NULL,
	     *count = name ? strchr(name, '=') : NULL;
	if (!count || strlen(object) >= sizeof text)
		return err_set(e, ERR_USAGE, "\"%s\" is not NAMESPACE/KIND/NAME=REPLICAS", object);
	*kind++ = *name++ = *count++ = '\0';
	const struct fake_kind *k = fake_kind_find(NULL, NULL, kind);
	if (!k || !k->has_scale)
		return err_set(e, ERR_USAGE, "\"%s\": kind \"%s\" is not Deployment, StatefulSet, ReplicaSet or Widget",
		               object, kind);
	if (num_parse_i64(count, strlen(count), 0, FAKE_OBJECTS_MAX / 2, &replicas, e) < 0)
		return err_wrap(e, "\"%s\"", object);
	if (fake_store_find(&f->store, k, text, name))
		return err_set(e, ERR_USAGE, "\"%s\": exists already", object);
	cJSON *root = cJSON_CreateObject(), *spec = fake_sub(root, "spec");
	cJSON_AddStringToObject(fake_sub(root, "metadata"), "name", name);
	cJSON_AddNumberToObject(spec, "replicas", (double)replicas);
	cJSON_AddStringToObject(fake_sub(fake_sub(spec, "selector"), "matchLabels"), "app", name);
	cJSON_AddStringToObject(fake_sub(fake_sub(fake_sub(spec, "template"), "metadata"), "labels"), "app", name);
	struct fake_object *o = fake_store_add(&f->store, k, text, root);
	if (!o)
		return err_set(e, ERR_LIMIT, "more than %d objects", FAKE_OBJECTS_MAX);
	fake_workload_follow(f, o);
	return 0;
}

void fake_apiserver_fail(struct fake_apiserver *f, const struct fake_fault *fault)
{
	f->fault = *fault;
	f->fault.match = NULL;
	snprintf(f->fault_match, sizeof f->fault_match, "%s", fault->match ? fault->match : "");
}

void fake_apiserver_get_counts(const struct fake_apiserver *f, struct fake_counts *ret_counts)
{
	*ret_counts = f->counts;
}
