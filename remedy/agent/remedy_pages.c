// SPDX-License-Identifier: Apache-2.0
#include "remedy/agent/remedy_pages.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/exposition.h"
#include "base/http/http_server.h"
#include "base/http/http_site.h"
#include "remedy/agent/remedy_agent.h"
#include "runtime/endpoint_reply.h"

#define PAGE_BYTES_MAX (64 * 1024)
#define BODY_BYTES_MAX 4096
#define SERVICE_HOSTS  "*.svc,*.svc.cluster.local"

struct remedy_pages {
	struct http_site *site;
	struct http_server *server;
};

// A response proves that the event loop is running.
static void get_livez(void *arg, struct http_exchange *x)
{
	if (endpoint_is_read(x))
		http_exchange_reply_text(x, 200, "ok\n");
}

static void get_readyz(void *arg, struct http_exchange *x)
{
	bool is_ready = remedy_agent_is_ready(arg);
	if (endpoint_is_read(x))
		http_exchange_reply_text(x, is_ready ? 200 : 503, is_ready ? "ok\n" : "not ready\n");
}

static void get_metrics(void *arg, struct http_exchange *x)
{
	struct buf b;
	if (!endpoint_is_read(x))
		return;
	buf_init(&b, PAGE_BYTES_MAX);
	remedy_agent_put_metrics(arg, &b);
	endpoint_reply(x, 200, EXPOSITION_CONTENT_TYPE, &b);
}

static int serve(struct remedy_pages *p, struct event_base *loop, const char *listen, struct remedy_agent *agent,
                 struct err *e)
{
	p->site = http_site_new(SERVICE_HOSTS, e);
	if (!p->site)
		return -1;
	http_site_add_own_name(p->site);
	const struct http_server_options o = {
	        .loop = loop, .listen = listen, .max_body_bytes = BODY_BYTES_MAX, .site = p->site};
	p->server = http_server_new(&o, e);
	return p->server && http_server_route(p->server, "/livez", get_livez, agent, e) == 0 &&
	                       http_server_route(p->server, "/readyz", get_readyz, agent, e) == 0 &&
	                       http_server_route(p->server, "/healthz", get_livez, agent, e) == 0 &&
	                       http_server_route(p->server, "/metrics", get_metrics, agent, e) == 0
	               ? 0
	               : -1;
}

struct remedy_pages *remedy_pages_new(struct event_base *loop, const char *listen, struct remedy_agent *agent,
                                      struct err *e)
{
	struct remedy_pages *p = alloc_zeroed(sizeof *p, e);
	if (!p)
		return NULL;
	if (serve(p, loop, listen, agent, e) == 0)
		return p;
	remedy_pages_free(p);
	return NULL;
}

void remedy_pages_free(struct remedy_pages *p)
{
	if (!p)
		return;
	http_server_free(p->server);
	http_site_free(p->site);
	free(p);
}

uint16_t remedy_pages_port(const struct remedy_pages *p)
{
	return http_server_port(p->server);
}
