// SPDX-License-Identifier: Apache-2.0
// One loop with a client, a real server and, on demand, a scripted one: the ground of the HTTP tests.
#ifndef GPUSCALE_TEST_SUPPORT_HTTP_FIXTURE_H
#define GPUSCALE_TEST_SUPPORT_HTTP_FIXTURE_H

#include "base/err.h"
#include "base/http/http_client.h"
#include "base/http/http_server.h"
#include "test/support/http_result.h"
#include "test/support/loop.h"
#include "test/support/raw_client.h"
#include "test/support/raw_server.h"

#define FIXTURE_LIMIT_MS 60000
#define COUNT(a)         (sizeof(a) / sizeof(a)[0])

struct http_fixture {
	struct event_base *loop;
	struct http_client *client;
	struct http_server *server;
	struct raw_server *raw; // once http_fixture_play was called: the target of http_fixture_url
	struct http_result result;
	struct http_result *results; // of http_fixture_results
	size_t n_results;
	char url[256];
	char *reply;                     // of http_fixture_exchange
	struct http_exchange *held[256]; // by /hold
	int n_held;
	int handled; // requests that reached /echo or /hold
};

// Routes: /echo (body back; ?status=NNN), /headers (credentials and types as text), /hold (until released),
// /big?bytes=N.
int http_fixture_setup(void **state); // cmocka
int http_fixture_teardown(void **state);
// Replaces the server by one with these options. Sets loop, and listen and head_ms where they are not given: the server
// shares its loop with the client, which on a busy machine may need longer for a handshake than a server would wait.
void http_fixture_serve(struct http_fixture *f, struct http_server_options options);
void http_fixture_play(struct http_fixture *f, const struct raw_step *steps, size_t n);
const char *http_fixture_url(struct http_fixture *f, const char *path);
// One request to its end, which must be one callback; the outcome is in f->result.
void http_fixture_fetch(struct http_fixture *f, const struct http_request *r);
void http_fixture_get(struct http_fixture *f, const char *path);
// n zeroed results for calls that run side by side. They belong to the fixture, because a test that fails leaves its
// frame before the calls end. Call at most once per test.
struct http_result *http_fixture_results(struct http_fixture *f, size_t n);
void http_fixture_release(struct http_fixture *f); // answers what is held
// A raw connection to the server.
struct raw_client *http_fixture_dial(struct http_fixture *f);
// Sends bytes, half-closes, and gives back all that came until the server closed. Valid until the next one.
const char *http_fixture_exchange(struct http_fixture *f, const char *request);
// Fails the test unless text begins so.
void http_fixture_assert_starts(const char *text, const char *start);
// Fails the test unless f->result is an error of that kind with `part` in its text.
void http_fixture_assert_error(const struct http_fixture *f, enum err_kind kind, const char *part);

#endif
