// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/kube_session.h"

#include <event2/event.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_client.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/k8s_config_load.h"
#include "runtime/options/controller_options.h"

#define SESSION_ARENA_MAX (8 * 1024 * 1024)
#define SESSION_IN_FLIGHT 4

static int open_client(struct kube_session *s, const struct kube_options *options, struct err *e)
{
	if (k8s_config_load(&s->arena, &options->config, &s->config, e) < 0)
		return -1;
	s->loop = event_base_new();
	if (!s->loop)
		return err_set(e, ERR_INTERNAL, "cannot create the event loop");
	struct http_client_options http = {.loop = s->loop, .max_in_flight = SESSION_IN_FLIGHT};
	s->http = http_client_new(&http, e);
	if (!s->http)
		return -1;
	struct k8s_client_options client = {.loop = s->loop, .http = s->http, .clock = &s->clock, .config = &s->config};
	s->k8s = k8s_client_new(&client, e);
	return s->k8s ? 0 : -1;
}

int kube_session_open(struct kube_session *s, const struct kube_options *options, struct err *e)
{
	memset(s, 0, sizeof *s);
	arena_init(&s->arena, SESSION_ARENA_MAX);
	clock_init_real(&s->clock);
	if (open_client(s, options, e) == 0)
		return 0;
	kube_session_close(s);
	return -1;
}

void kube_session_close(struct kube_session *s)
{
	k8s_client_free(s->k8s);
	http_client_free(s->http);
	if (s->loop)
		event_base_free(s->loop);
	k8s_config_wipe(&s->config);
	arena_done(&s->arena);
	memset(s, 0, sizeof *s);
}

struct reply {
	struct event_base *loop;
	struct buf *body; // may be NULL
	struct err *e;
	int rc;
};

static void on_reply(void *arg, const struct http_response *response, const struct err *error)
{
	struct reply *r = arg;
	r->rc = 0;
	if (error) {
		if (r->e)
			*r->e = *error;
		r->rc = -1;
	} else if (r->body && buf_put(r->body, response->body, response->body_len) < 0) {
		r->rc = err_set(r->e, ERR_LIMIT, "the reply has %zu bytes, the ceiling is %zu", response->body_len,
		                r->body->max);
	}
	event_base_loopbreak(r->loop);
}

int kube_session_request(struct kube_session *s, const char *method, const char *path, const char *content_type,
                         const char *body, struct buf *ret_body, struct err *e)
{
	struct reply reply = {.loop = s->loop, .body = ret_body, .e = e, .rc = 1};
	if (k8s_request(s->k8s, method, path, content_type, body, body ? strlen(body) : 0, on_reply, &reply, e) < 0)
		return -1;
	while (reply.rc > 0)
		if (event_base_dispatch(s->loop) != 0)
			return err_set(e, ERR_INTERNAL, "the event loop exited before the reply");
	// The login page of a proxy answers everything with 200.
	if (reply.rc == 0 && ret_body && buf_str(ret_body)[0] != '{')
		return err_set(e, ERR_PROTOCOL, "%s answered %s with no JSON object: is it a Kubernetes API server?",
		               k8s_client_server(s->k8s), path);
	return reply.rc;
}
