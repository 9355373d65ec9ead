// SPDX-License-Identifier: Apache-2.0
// Enforces a web configuration file (TLS, basic auth, rate limit). The file and its certificates are checked every
// second and reloaded when they change. A change with errors is logged, and the previous configuration stays in
// force.
#ifndef GPUSCALE_EXPORTER_PAGE_WEB_H
#define GPUSCALE_EXPORTER_PAGE_WEB_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct clock;
struct err;
struct event_base;
struct http_exchange;
struct http_server;
struct http_server_options;
struct log;
struct web;

#define WEB_WATCH_MS 1000

struct web_stats {
	uint64_t reloads, reload_errors;
	uint64_t unauthorized; // replies with 401
	uint64_t limited;      // replies with 429
};

// Reads the file at `path`; NULL permits every request. `ret_errors` receives one line for each error. Returns NULL
// and fills `e` on failure.
struct web *web_new(const char *path, const struct clock *clock, struct log *log, struct buf *ret_errors,
                    struct err *e);
void web_free(struct web *w);
// Sets the tls_* members of `options`, which are valid as long as the active configuration.
void web_fill_tls(const struct web *w, struct http_server_options *options);
// Starts to watch the files. The TLS settings of `server` follow them until web_free(). Returns -1 and fills `e` on
// failure.
int web_watch(struct web *w, struct event_base *loop, struct http_server *server, struct err *e);
// True if the request is permitted. Otherwise the function has replied with 401 or 429 and `x` is gone.
bool web_admit(struct web *w, struct http_exchange *x);
void web_get_stats(const struct web *w, struct web_stats *ret_stats);

#endif
