// SPDX-License-Identifier: Apache-2.0
#include "exporter/page/exporter_server.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/http/http_server.h"
#include "base/http/http_site.h"
#include "base/num.h"
#include "exporter/page/page.h"
#include "exporter/page/render_page.h"
#include "exporter/page/self_metrics.h"
#include "exporter/page/web.h"
#include "exporter/sampler.h"
#include "exporter/xid.h"

#define SELF_BYTES_MAX (64 * 1024)
#define RELEASE_MS     60000 // duration without ?for=
#define BODY_BYTES_MAX 4096  // limit on a request body; no endpoint reads bodies

struct exporter_server {
	struct exporter_server_options options;
	struct http_site *site;
	struct http_server *http;
	struct web *web;
	struct self_metrics self;
	struct buf self_text; // kept, as `page` is, so that a scrape does not allocate once they have grown
	struct page page;
};

// True if the request is a permitted GET. Otherwise the function has replied and `x` is gone.
static bool admit_get(struct exporter_server *s, struct http_exchange *x)
{
	const char *method = http_exchange_method(x);
	if (!web_admit(s->web, x))
		return false;
	if (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)
		return true;
	http_exchange_set_header(x, "Allow", "GET, HEAD");
	http_exchange_reply_text(x, 405, "only GET and HEAD are allowed\n");
	return false;
}

static void render_self(struct exporter_server *s, const struct sampler_status *status)
{
	struct http_server_stats http;
	http_server_get_stats(s->http, &http);
	web_get_stats(s->web, &s->self.web);
	s->self.scrapes++;
	s->self.xid_overflows = xid_store_overflows(s->options.xids);
	memcpy(s->self.connections_closed, http.closed, sizeof http.closed);
	buf_reset(&s->self_text);
	self_metrics_render(&s->self_text, &s->self, status, s->options.pods, s->options.metadata, s->options.otlp);
}

// A page on its way to a client.
struct sent_page {
	struct exporter_server *s;
	struct buf text;
};

static void on_page_sent(const void *body, size_t len, void *arg)
{
	struct sent_page *sent = arg;
	page_take_back(&sent->s->page, &sent->text);
	free(sent);
}

// Sends the page without a copy of it. A page that is rendered while a slow client still receives this one gets memory
// of its own.
static void send_page(struct exporter_server *s, struct http_exchange *x, enum page_format format)
{
	struct sent_page *sent = malloc(sizeof *sent);
	if (!sent) {
		http_exchange_reply_text(x, 500, "out of memory\n");
		return;
	}
	sent->s = s;
	page_lend(&s->page, &sent->text);
	http_exchange_reply_lent(x, 200, page_content_type(format), buf_str(&sent->text), sent->text.len, on_page_sent,
	                         sent);
}

static void on_metrics(void *arg, struct http_exchange *x)
{
	struct exporter_server *s = arg;
	if (!admit_get(s, x))
		return;
	struct sampler_status status;
	struct err e;
	// A few families, read every second, are not worth another format or compression.
	const char *families = http_exchange_query(x, "family");
	enum page_format format = families ? PAGE_TEXT : page_format_wanted(http_exchange_header(x, "Accept"));
	bool gzip = !families && page_gzip_wanted(http_exchange_header(x, "Accept-Encoding"));
	sampler_read(s->options.sampler, page_text(&s->page, format, gzip), &status);
	render_self(s, &status);
	// Each text has its own number, also that of a release; a page without its dropped samples is a different
	// text.
	uint64_t round = (status.texts + 1) * 2 + status.dropped;
	if (page_make(&s->page, format, gzip, round, &s->self_text, &e) < 0 ||
	    (families && page_keep_families(&s->page, families, &e) < 0)) {
		http_exchange_reply_text(x, 500, e.msg);
		return;
	}
	if (gzip)
		http_exchange_set_header(x, "Content-Encoding", "gzip");
	http_exchange_set_header(x, "Vary", "Accept, Accept-Encoding");
	send_page(s, x, format);
}

static void on_healthy(void *arg, struct http_exchange *x)
{
	if (admit_get(arg, x))
		http_exchange_reply_text(x, 200, "ok\n");
}

static void on_ready(void *arg, struct http_exchange *x)
{
	struct exporter_server *s = arg;
	if (!admit_get(s, x))
		return;
	struct sampler_status status;
	char text[384];
	sampler_read(s->options.sampler, NULL, &status);
	if (status.ready)
		http_exchange_reply_text(x, 200, "ok\n");
	else if (status.up) {
		snprintf(text, sizeof text, "not ready: the last sample is %" PRId64 ".%03" PRId64 " s old\n",
		         status.age_ms / 1000, status.age_ms % 1000);
		http_exchange_reply_text(x, 503, text);
	} else {
		snprintf(text, sizeof text, "not ready: %s\n", status.message);
		http_exchange_reply_text(x, 503, text);
	}
}

static bool is_loopback(const char *peer)
{
	return strncmp(peer, "127.", 4) == 0 || strcmp(peer, "::1") == 0;
}

// Closes every handle on the devices for a while. Only clients on the node may do this, because it stops the metrics.
static void on_release(void *arg, struct http_exchange *x)
{
	struct exporter_server *s = arg;
	struct err e;
	char text[128], shown[NUM_TEXT_BYTES];
	const char *for_ = http_exchange_query(x, "for");
	int64_t for_ms = RELEASE_MS;
	if (!web_admit(s->web, x))
		return;
	if (strcmp(http_exchange_method(x), "POST") != 0) {
		http_exchange_set_header(x, "Allow", "POST");
		http_exchange_reply_text(x, 405, "only POST is allowed\n");
	} else if (!is_loopback(http_exchange_peer(x))) {
		http_exchange_reply_text(x, 403, "only clients on this node are allowed\n");
	} else if (for_ && num_parse_duration_ms(for_, strlen(for_), &for_ms, &e) < 0) {
		http_exchange_reply_text(x, 400, e.msg);
	} else if (for_ms > SAMPLER_RELEASE_MAX_MS) {
		http_exchange_reply_text(x, 400, "for: at most 10m\n");
	} else {
		sampler_release(s->options.sampler, for_ms);
		num_format_duration_ms(shown, for_ms);
		snprintf(text, sizeof text, "closing the devices, reopening them in %s\n", shown);
		http_exchange_reply_text(x, 202, text);
	}
}

static void on_root(void *arg, struct http_exchange *x)
{
	static const char page[] = "<!DOCTYPE html>\n<html lang=\"en\"><head><title>gpuscale-exporter</title></head>\n"
	                           "<body><h1>gpuscale-exporter " GPUSCALE_VERSION "</h1>\n"
	                           "<ul><li><a href=\"/metrics\">/metrics</a></li>\n"
	                           "<li><a href=\"/-/healthy\">/-/healthy</a></li>\n"
	                           "<li><a href=\"/-/ready\">/-/ready</a></li></ul></body></html>\n";
	if (!admit_get(arg, x))
		return;
	// The route "/" matches every path without a route of its own.
	if (strcmp(http_exchange_path(x), "/") == 0)
		http_exchange_reply(x, 200, "text/html; charset=utf-8", page, sizeof page - 1);
	else
		http_exchange_reply_text(x, 404, "not found\n");
}

struct exporter_server *exporter_server_new(const struct exporter_server_options *options, struct err *e)
{
	struct exporter_server *s = alloc_zeroed(sizeof *s, e);
	if (!s)
		return NULL;
	s->options = *options;
	s->self.counter_rows_skipped = options->counter_rows_skipped;
	buf_init(&s->self_text, SELF_BYTES_MAX);
	page_init(&s->page, RENDER_PAGE_BYTES_MAX + SELF_BYTES_MAX);
	s->site = http_site_new(options->allowed_hosts, e);
	if (!s->site) {
		err_wrap(e, "--allowed-hosts");
		exporter_server_free(s);
		return NULL;
	}
	http_site_add_own_name(s->site);
	struct http_server_options http = {
	        .loop = options->loop, .listen = options->listen, .max_body_bytes = BODY_BYTES_MAX, .site = s->site};
	s->web = web_new(options->web_config, options->clock, options->log, options->ret_errors, e);
	if (s->web)
		web_fill_tls(s->web, &http);
	if (!s->web || !(s->http = http_server_new(&http, e)) || web_watch(s->web, options->loop, s->http, e) < 0 ||
	    http_server_route(s->http, "/metrics", on_metrics, s, e) < 0 ||
	    http_server_route(s->http, "/-/healthy", on_healthy, s, e) < 0 ||
	    http_server_route(s->http, "/-/ready", on_ready, s, e) < 0 ||
	    http_server_route(s->http, "/-/release", on_release, s, e) < 0 ||
	    http_server_route(s->http, "/", on_root, s, e) < 0) {
		exporter_server_free(s);
		return NULL;
	}
	return s;
}

void exporter_server_free(struct exporter_server *s)
{
	if (!s)
		return;
	web_free(s->web);
	http_server_free(s->http);
	http_site_free(s->site);
	buf_done(&s->self_text);
	page_done(&s->page);
	free(s);
}

uint16_t exporter_server_port(const struct exporter_server *s)
{
	return http_server_port(s->http);
}
