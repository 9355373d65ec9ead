// SPDX-License-Identifier: Apache-2.0
#include "test/support/review_api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_server.h"
#include "base/json/json_write.h"
#include "test/support/http_request.h"
#include "test/support/http_stream.h"
#include "test/support/loop.h"

#define WAIT_MS 60000
#define TESS    "{\"authenticated\":true,\"user\":{\"username\":\"tess\",\"groups\":[\"t\"]}}"

static void member(struct json_writer *w, const char *key, const char *value)
{
	json_write_key(w, key);
	json_write_str(w, value);
}

// The ConfigMap of a cluster whose clients have this authority.
static void write_configmap(struct json_writer *w, const char *client_ca)
{
	json_write_object_begin(w);
	json_write_key(w, "metadata");
	json_write_object_begin(w);
	member(w, "name", "extension-apiserver-authentication");
	member(w, "namespace", "kube-system");
	member(w, "resourceVersion", "5");
	json_write_object_end(w);
	json_write_key(w, "data");
	json_write_object_begin(w);
	member(w, "client-ca-file", client_ca);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void on_watch_closed(void *arg)
{
	struct review_api *a = arg;
	a->watch = NULL;
}

static void handle_configmaps(void *arg, struct http_exchange *x)
{
	struct review_api *a = arg;
	struct buf b;
	struct json_writer j;
	assert_string_equal(http_exchange_query(x, "fieldSelector"),
	                    "metadata.name=extension-apiserver-authentication");
	if (http_exchange_query(x, "watch")) {
		a->watches++;
		a->watch = x;
		assert_true(http_exchange_reply_start(x, 200, "application/json", on_watch_closed, a));
		return;
	}
	buf_init(&b, 1 << 20);
	json_write_init(&j, &b, 0);
	json_write_object_begin(&j);
	member(&j, "kind", "ConfigMapList");
	json_write_key(&j, "metadata");
	json_write_object_begin(&j);
	member(&j, "resourceVersion", "5");
	json_write_object_end(&j);
	json_write_key(&j, "items");
	json_write_array_begin(&j);
	write_configmap(&j, a->client_ca);
	json_write_array_end(&j);
	json_write_object_end(&j);
	http_exchange_reply(x, 200, "application/json", buf_str(&b), b.len);
	buf_done(&b);
}

void review_api_push(struct review_api *a, const char *type, const char *client_ca)
{
	struct buf b;
	struct json_writer j;
	int64_t end = test_now_ms() + WAIT_MS;
	while (!a->watch && test_now_ms() < end)
		test_loop_for(a->loop, 5);
	assert_non_null(a->watch);
	buf_init(&b, 1 << 20);
	json_write_init(&j, &b, 0);
	json_write_object_begin(&j);
	member(&j, "type", type);
	json_write_key(&j, "object");
	write_configmap(&j, client_ca);
	json_write_object_end(&j);
	buf_putc(&b, '\n');
	http_exchange_write(a->watch, buf_str(&b), b.len);
	buf_done(&b);
	test_loop_for(a->loop, 100);
}

static void answer(struct review_api *a, struct http_exchange *x, const char *kind, const char *status)
{
	char text[512];
	int n = snprintf(text, sizeof text, "{\"kind\":\"%s\",\"status\":%s}", kind, status);
	if (a->garbage)
		http_exchange_reply(x, 201, "application/json", a->garbage, strlen(a->garbage));
	else if (a->status)
		http_exchange_reply_text(x, a->status, "trouble");
	else
		http_exchange_reply(x, 201, "application/json", text, (size_t)n);
}

static void keep_review(struct review_api *a, struct http_exchange *x)
{
	free(a->last_review);
	a->last_review = strdup(http_exchange_body(x, NULL));
	assert_string_equal(http_exchange_method(x), "POST");
}

static void handle_token(void *arg, struct http_exchange *x)
{
	struct review_api *a = arg;
	keep_review(a, x);
	a->token_reviews++;
	if (a->hold)
		a->held = x;
	else if (strstr(a->last_review, "\"token\":\"good\""))
		answer(a, x, "TokenReview", TESS);
	else
		answer(a, x, "TokenReview", "{\"authenticated\":false}");
}

// Everything is allowed but metric "secret".
static void handle_access(void *arg, struct http_exchange *x)
{
	struct review_api *a = arg;
	keep_review(a, x);
	a->access_reviews++;
	if (a->hold)
		a->held = x;
	else if (strstr(a->last_review, "\"resource\":\"secret\""))
		answer(a, x, "SubjectAccessReview", "{\"allowed\":false,\"reason\":\"no role\"}");
	else
		answer(a, x, "SubjectAccessReview", "{\"allowed\":true}");
}

void review_api_start(struct review_api *a, struct event_base *loop, const char *client_ca)
{
	static const struct {
		const char *path;
		http_handler_fn *fn;
	} routes[] = {
	        {"/api/v1/namespaces/kube-system/configmaps", handle_configmaps},
	        {"/apis/authentication.k8s.io/v1/tokenreviews", handle_token},
	        {"/apis/authorization.k8s.io/v1/subjectaccessreviews", handle_access},
	};
	struct err e;
	*a = (struct review_api){.loop = loop, .client_ca = client_ca};
	a->server = http_server_new(&(struct http_server_options){.loop = loop, .listen = "127.0.0.1:0"}, &e);
	assert_non_null(a->server);
	for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
		assert_int_equal(http_server_route(a->server, routes[i].path, routes[i].fn, a, &e), 0);
}

void review_api_stop(struct review_api *a)
{
	http_server_free(a->server);
	free(a->last_review);
}

const char *review_api_url(const struct review_api *a, char out[64])
{
	snprintf(out, 64, "http://127.0.0.1:%d", http_server_port(a->server));
	return out;
}

void review_api_release(struct review_api *a)
{
	a->hold = false;
	answer(a, a->held, "TokenReview", TESS);
	a->held = NULL;
}
