// SPDX-License-Identifier: Apache-2.0
// A connection to an API server for commands: requests are sent one after the other, and each waits for its reply.
#ifndef GPUSCALE_CLI_OBJECTS_KUBE_SESSION_H
#define GPUSCALE_CLI_OBJECTS_KUBE_SESSION_H

#include <stddef.h>

#include "base/arena.h"
#include "base/clock.h"
#include "k8s/client/k8s_config.h"

struct buf;
struct err;
struct event_base;
struct http_client;
struct k8s_client;
struct kube_options;

struct kube_session {
	struct event_base *loop;
	struct clock clock;
	struct http_client *http;
	struct k8s_client *k8s;
	struct k8s_config config; // config.namespace_name: of the context
	struct arena arena;
};

// Opens the session. On failure nothing stays open.
int kube_session_open(struct kube_session *s, const struct kube_options *options, struct err *e);
void kube_session_close(struct kube_session *s);
// Sends one request, with the retries of the client. `ret_body` (may be NULL) receives the body of the reply. Returns
// -1 and fills `e` for any status other than 2xx; e->code is the HTTP status.
int kube_session_request(struct kube_session *s, const char *method, const char *path, const char *content_type,
                         const char *body, struct buf *ret_body, struct err *e);

#endif
