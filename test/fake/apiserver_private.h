// SPDX-License-Identifier: Apache-2.0
// What the files of the fake API server share.
#ifndef GPUSCALE_TEST_FAKE_APISERVER_PRIVATE_H
#define GPUSCALE_TEST_FAKE_APISERVER_PRIVATE_H

#include "base/clock.h"
#include "test/fake/apiserver.h"
#include "test/fake/apiserver_store.h"

struct http_exchange;
struct http_server;

#define FAKE_MATCH_BYTES 128

struct fake_apiserver {
	struct fake_apiserver_options options;
	struct clock clock;
	struct http_server *server;
	struct fake_store store;
	struct event *pod_timer;
	struct fake_fault fault;
	char fault_match[FAKE_MATCH_BYTES];
	struct fake_counts counts;
	struct fake_delayed *delayed;
};

// Where a request points. Strings are parts of `text`.
struct fake_path {
	char text[1024];
	const char *group, *version, *ns, *plural, *name, *subresource; // "" when absent
	const struct fake_kind *kind;                                   // NULL when unknown
};

// apiserver_workload.c: makes and removes pods so that workload o has as many as it asks for; then its status.
void fake_workload_follow(struct fake_apiserver *f, struct fake_object *o);
// A pod that the fake made itself; its workload must follow afterwards.
void fake_workload_remove_pod(struct fake_apiserver *f, struct fake_object *pod);
void fake_workload_removed(struct fake_apiserver *f, struct fake_object *o);

// apiserver_resource.c: discovery, and one request on objects.
void fake_discovery(struct http_exchange *x, const struct fake_path *p);
void fake_resource(struct fake_apiserver *f, struct http_exchange *x, const struct fake_path *p);

// apiserver_reply.c: replies with a tree (freed).
void fake_reply_json(struct http_exchange *x, int status, cJSON *root);
// Status objects as the real one words them.
void fake_reply_status(struct http_exchange *x, int code, const char *reason, const char *message,
                       const struct fake_path *details);
void fake_reply_not_found(struct http_exchange *x, const struct fake_path *p);
void fake_reply_conflict(struct http_exchange *x, const struct fake_path *p);
void fake_reply_no_resource(struct http_exchange *x);
void fake_reply_bad_method(struct http_exchange *x);

#endif
