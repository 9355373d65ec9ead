// SPDX-License-Identifier: Apache-2.0
// Who may see the pages, and how: a web-config file in force. The file, and the certificates it names, are looked at
// every second and read again when they change; a change that cannot be used is logged, and what was stays in force.
#ifndef GPUSCALE_EXPORTER_WEB_H
#define GPUSCALE_EXPORTER_WEB_H

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
	uint64_t unauthorized; // answered 401
	uint64_t limited;      // answered 429
};

// path NULL: no file, everything is allowed. ret_errors gets a line for every fault of the file.
struct web *web_new(const char *path, const struct clock *clock, struct log *log, struct buf *ret_errors,
                    struct err *e);
void web_free(struct web *w);
// Sets the tls_* members; they live as long as the config in force.
void web_fill_tls(const struct web *w, struct http_server_options *options);
// Begins to watch the files; the server's TLS follows them until web_free.
int web_watch(struct web *w, struct event_base *loop, struct http_server *server, struct err *e);
// Whether the request may be answered. When not it has been, with 401 or 429, and x is gone.
bool web_admit(struct web *w, struct http_exchange *x);
void web_get_stats(const struct web *w, struct web_stats *ret_stats);

#endif
