// SPDX-License-Identifier: Apache-2.0
#include "test/support/watch_fixture.h"

#include <event2/event.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/http/http_client.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/k8s_config.h"
#include "test/support/loop.h"

static void note(struct watch_world *w, const char *text)
{
	w->calls++;
	buf_printf(&w->log, "%s ", text);
}

static void on_list(void *arg)
{
	note(arg, "list");
}

static void on_change(struct watch_world *w, char sign, const char *json, size_t len)
{
	char name[64] = {sign};
	const char *at = memmem(json, len, "\"name\":\"", 8);
	assert_true(at != NULL && json[0] == '{' && json[len - 1] == '}');
	at += 8;
	for (size_t i = 1; i < sizeof name - 1 && *at != '"'; i++)
		name[i] = *at++;
	note(w, name);
}

static void on_object(void *arg, const char *json, size_t len)
{
	struct watch_world *w = arg;
	on_change(w, '+', json, len);
	if (w->free_on_object) {
		k8s_watch_free(*w->free_on_object);
		*w->free_on_object = NULL;
	}
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	on_change(arg, '-', json, len);
}

static void on_synced(void *arg)
{
	struct watch_world *w = arg;
	w->synced++;
	note(w, "synced");
}

static void on_error(void *arg, const struct err *error)
{
	struct watch_world *w = arg;
	if (error) {
		w->last_error = *error;
		w->errors++;
	} else {
		w->oks++;
	}
	note(w, error ? "error" : "ok");
}

int watch_fixture_setup(void **state)
{
	struct watch_world *w = calloc(1, sizeof *w);
	struct err e = {0};
	static char url[64];
	signal(SIGPIPE, SIG_IGN);
	*state = w;
	w->loop = event_base_new();
	clock_init_real(&w->clock);
	buf_init(&w->log, 65536);
	watch_server_start(&w->server, w->loop);
	snprintf(url, sizeof url, "http://127.0.0.1:%u", (unsigned)w->server.port);
	static const struct k8s_config config = {.server = url, .namespace_name = "ns", .source = "the test"};
	w->http = http_client_new(
	        &(struct http_client_options){.loop = w->loop, .connect_timeout_ms = TEST_PATIENCE_MS}, &e);
	assert_non_null(w->http);
	w->client = k8s_client_new(
	        &(struct k8s_client_options){.loop = w->loop, .http = w->http, .clock = &w->clock, .config = &config},
	        &e);
	assert_non_null(w->client);
	return 0;
}

int watch_fixture_teardown(void **state)
{
	struct watch_world *w = *state;
	k8s_watch_free(w->watch);
	k8s_client_free(w->client);
	http_client_free(w->http);
	watch_server_stop(&w->server);
	event_base_free(w->loop);
	buf_done(&w->log);
	free(w);
	return 0;
}

struct k8s_watch *watch_fixture_new(struct watch_world *w, const char *labels)
{
	struct err e = {0};
	struct k8s_watch *watch = k8s_watch_new(
	        &(struct k8s_watch_options){
	                .client = w->client,
	                .path = WATCH_PATH,
	                .label_selector = labels,
	                .callbacks = {on_list, on_object, on_deleted, on_synced, on_error},
	                .arg = w,
	        },
	        &e);
	if (!watch)
		fail_msg("%s", e.msg);
	return watch;
}

struct watch_server_request *watch_fixture_expect(struct watch_world *w, int i, const char *part)
{
	struct watch_server_request *r = watch_server_wait(&w->server, i, WATCH_WAIT_MS);
	if (!r) {
		fail_msg("request %d did not come; so far: %s", i, buf_str(&w->log));
		return NULL;
	}
	if (!strstr(r->uri, part))
		fail_msg("request %d is %s, expected \"%s\" in it", i, r->uri, part);
	return r;
}

struct watch_server_request *watch_fixture_sync(struct watch_world *w)
{
	w->watch = watch_fixture_new(w, NULL);
	watch_server_reply(watch_fixture_expect(w, 0, "limit=100"), 200, EMPTY, NULL);
	struct watch_server_request *stream = watch_fixture_expect(w, 1, "resourceVersion=10");
	watch_server_begin(stream);
	return stream;
}

void watch_fixture_wait_calls(struct watch_world *w, int n)
{
	if (!test_loop_until(w->loop, &w->calls, n, WATCH_WAIT_MS))
		fail_msg("%d callbacks, expected %d: %s", w->calls, n, buf_str(&w->log));
}

void watch_fixture_assert_log(struct watch_world *w, const char *log)
{
	assert_string_equal(buf_str(&w->log), log);
}

void watch_fixture_check(struct watch_world *w, int i, const char *version)
{
	char reply[128];
	struct watch_server_request *r = watch_fixture_expect(w, i, "?limit=1");
	if (strstr(r->uri, "limit=100"))
		fail_msg("request %d is %s, expected a list of one object", i, r->uri);
	snprintf(reply, sizeof reply, "{\"metadata\":{\"resourceVersion\":\"%s\"},\"items\":[]}", version);
	watch_server_reply(r, 200, reply, NULL);
}
