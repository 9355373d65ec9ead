// SPDX-License-Identifier: Apache-2.0
// One watch, a server that answers on command, and a log of what the callbacks got: the ground of the watch's tests.
#ifndef GPUSCALE_TEST_SUPPORT_WATCH_FIXTURE_H
#define GPUSCALE_TEST_SUPPORT_WATCH_FIXTURE_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "k8s/cache/watch.h"
#include "test/support/watch_server.h"

#define WATCH_PATH    "/apis/apps/v1/namespaces/ns/deployments"
#define WATCH_WAIT_MS 60000
#define A1            "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"}}"
#define B2            "{\"metadata\":{\"name\":\"b\",\"resourceVersion\":\"2\"}}"
#define EMPTY         "{\"kind\":\"DeploymentList\",\"metadata\":{\"resourceVersion\":\"10\"},\"items\":[]}"
#define GONE                                                                                                           \
	"{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"too old resource version: 10 (99)\"}"

struct watch_world {
	struct event_base *loop;
	struct watch_server server;
	struct http_client *http;
	struct clock clock;
	struct k8s_client *client;
	struct k8s_watch *watch;
	struct buf log; // what the callbacks got: "list", "+NAME", "-NAME", "synced", "error: ..", "ok", a blank each
	int calls, synced, errors, oks;
	struct err last_error;
	struct k8s_watch **free_on_object; // freed when an object comes
};

int watch_fixture_setup(void **state); // cmocka
int watch_fixture_teardown(void **state);
// A watch of WATCH_PATH; label selector or NULL.
struct k8s_watch *watch_fixture_new(struct watch_world *w, const char *labels);
// Request i, which must have `part` in its URI.
struct watch_server_request *watch_fixture_expect(struct watch_world *w, int i, const char *part);
// Replies to request i, the list of one object before a stream is resumed: the server is at this version.
void watch_fixture_check(struct watch_world *w, int i, const char *version);
// Starts the watch and brings it to an open stream from version 10: requests 0 and 1. Returns the stream.
struct watch_server_request *watch_fixture_sync(struct watch_world *w);
// Until the callbacks ran n times in all.
void watch_fixture_wait_calls(struct watch_world *w, int n);
void watch_fixture_assert_log(struct watch_world *w, const char *log);

#endif
