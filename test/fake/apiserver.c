// SPDX-License-Identifier: Apache-2.0
#include "test/fake/apiserver.h"

#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_server.h"
#include "base/json/json_read.h"
#include "base/num.h"
#include "test/fake/apiserver_private.h"
#include "test/support/http_request.h"

#define TOKEN_FILE_BYTES_MAX 65536
// ---- paths ----

// /apis, /apis/GROUP, /api/VERSION/.. or /apis/GROUP/VERSION/.., then [namespaces/NS/]PLURAL[/NAME[/SUBRESOURCE]].
bool fake_path_parse(const char *text, struct fake_path *p)
{
	const char *part[9];
	size_t n = 0;
	*p = (struct fake_path){.group = "", .version = "", .ns = "", .plural = "", .name = "", .subresource = ""};
	p->text[0] = '\0';
	if (text[0] != '/' || strlen(text) >= sizeof p->text)
		return false;
	memcpy(p->text, text, strlen(text) + 1);
	for (char *at = p->text; at && n < 9; n++) {
		*at++ = '\0';
		part[n] = at;
		at = strchr(at, '/');
	}
	bool has_group = strcmp(part[0], "apis") == 0;
	size_t i = 1;
	if (n > 8 || (!has_group && strcmp(part[0], "api") != 0) || n < (has_group ? 1U : 2U))
		return false;
	if (has_group && i < n)
		p->group = part[i++];
	if (i < n)
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

// ---- requests ----

static void serve_version(struct fake_request *r)
{
	cJSON *root = cJSON_CreateObject();
	cJSON_AddStringToObject(root, "major", "1");
	cJSON_AddStringToObject(root, "minor", "20");
	cJSON_AddStringToObject(root, "gitVersion", "v1.36.3-fake");
	fake_reply_json(r, 200, root);
}

static bool is_group_served(const struct fake_apiserver *f, const struct fake_path *p)
{
	for (size_t i = 0; i < FAKE_N_KINDS; i++) {
		if (f->is_served[i] && strcmp(fake_kinds[i].group, p->group) == 0 &&
		    strcmp(fake_kinds[i].version, p->version) == 0)
			return true;
	}
	return false;
}

// As the viewer of test/integration/contract/run-real, whose role has one rule.
static bool viewer_may(const struct fake_request *r)
{
	return strcmp(r->verb, "get") == 0 && (!r->path.plural[0] || (strcmp(r->path.plural, "deployments") == 0 &&
	                                                              strcmp(r->path.subresource, "scale") == 0));
}

void fake_serve(struct fake_request *r)
{
	const char *path = http_exchange_path(r->x);
	struct fake_path *p = &r->path;
	enum role role = role_of(r->f, r->x);
	if (strcmp(path, "/readyz") == 0 || strcmp(path, "/livez") == 0 || strcmp(path, "/healthz") == 0) {
		fake_reply_text(r, 200, "text/plain; charset=utf-8", "ok", 2); // the real one adds no line end
		return;
	}
	if (role == ROLE_NOBODY) {
		fake_reply_status(r, 401, "Unauthorized", "Unauthorized", NULL);
		return;
	}
	if (strcmp(path, "/version") == 0)
		serve_version(r);
	else if (!r->has_path)
		fake_reply_no_page(r);
	else if (role == ROLE_VIEWER && !viewer_may(r))
		fake_reply_forbidden(r);
	else if (!p->plural[0] && strcmp(r->verb, "get") == 0)
		fake_discovery(r);
	else if (!is_group_served(r->f, p))
		fake_reply_no_page(r);
	else if (!p->kind)
		fake_reply_no_resource(r);
	else
		fake_resource(r);
}

static void on_request(void *arg, struct http_exchange *x)
{
	fake_take(arg, x);
}

// ---- the public face ----

static struct http_server_options server_options(const struct fake_apiserver_options *o)
{
	return (struct http_server_options){.loop = o->loop,
	                                    .listen = o->listen,
	                                    .tls_cert_file = o->tls_cert_file,
	                                    .tls_key_file = o->tls_key_file,
	                                    .max_body_bytes = FAKE_REQUEST_BYTES_MAX,
	                                    .max_connections = FAKE_CONNECTIONS_MAX,
	                                    .max_peer_connections = FAKE_CONNECTIONS_MAX};
}

struct fake_apiserver *fake_apiserver_new(const struct fake_apiserver_options *options, struct err *e)
{
	struct fake_apiserver *f = calloc(1, sizeof *f);
	if (!f) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	f->options = *options;
	clock_init_real(&f->clock);
	f->watches = fake_watches_new(f);
	if (!f->watches) {
		err_set(e, ERR_INTERNAL, "out of memory");
		free(f);
		return NULL;
	}
	fake_store_init(&f->store, fake_watches_tell, f->watches);
	for (size_t i = 0; i < FAKE_N_KINDS; i++)
		f->is_served[i] =
		        !fake_kinds[i].is_optional || (options->keda && strcmp(fake_kinds[i].group, "keda.sh") == 0);
	const struct http_server_options so = server_options(options);
	f->server = http_server_new(&so, e);
	if (!f->server || http_server_route(f->server, "/", on_request, f, e) < 0 || fake_control_routes(f, e) < 0) {
		fake_apiserver_free(f);
		return NULL;
	}
	return f;
}

void fake_apiserver_free(struct fake_apiserver *f)
{
	if (!f)
		return;
	fake_faults_done(f);
	fake_watches_free(f->watches);
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

int fake_apiserver_put(struct fake_apiserver *f, const char *json, struct err *e)
{
	cJSON *root = json_read(json, strlen(json), e);
	if (!root)
		return -1;
	const cJSON *metadata = json_get(root, "metadata");
	const char *version = json_get_str(root, "apiVersion", ""), *slash = strrchr(version, '/');
	const char *ns = json_get_str(metadata, "namespace", "default"), *name = json_get_str(metadata, "name", "");
	char group[300], ns_copy[300];
	snprintf(group, sizeof group, "%.*s", slash ? (int)(slash - version) : 0, version);
	const struct fake_kind *k = fake_kind_find(group, slash ? slash + 1 : version, json_get_str(root, "kind", ""));
	if (!k || !name[0]) {
		err_set(e, ERR_USAGE, "a known kind, apiVersion and metadata.name are needed, not %.100s %.100s",
		        version, json_get_str(root, "kind", ""));
		cJSON_Delete(root);
		return -1;
	}
	snprintf(ns_copy, sizeof ns_copy, "%s", k->is_cluster_wide ? "" : ns);
	struct fake_object *o = fake_store_find(&f->store, k, ns_copy, name);
	if (o) {
		// A test may let an object look as if it was created anew.
		static const char *const kept[] = {"namespace", "uid", "resourceVersion", "generation",
		                                   "creationTimestamp"};
		size_t n = sizeof kept / sizeof kept[0] - (json_get(metadata, "creationTimestamp") != NULL);
		for (size_t i = 0; i < n; i++) {
			const cJSON *old = json_get(json_get(o->root, "metadata"), kept[i]);
			if (old)
				fake_set(fake_sub(root, "metadata"), kept[i], cJSON_Duplicate(old, true));
		}
		fake_store_update(&f->store, o, root);
	} else if (!(o = fake_store_add(&f->store, k, ns_copy, root))) {
		return err_set(e, ERR_LIMIT, "more than %d objects", FAKE_OBJECTS_MAX);
	}
	if (k->has_scale)
		fake_workload_follow(f, o);
	return 0;
}

int fake_apiserver_reload_tls(struct fake_apiserver *f, struct err *e)
{
	const struct http_server_options so = server_options(&f->options);
	if (http_server_set_tls(f->server, &so, e) < 0)
		return -1;
	fake_apiserver_drop_streams(f, false);
	http_server_drop_idle(f->server);
	return 0;
}
