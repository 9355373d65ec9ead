// SPDX-License-Identifier: Apache-2.0
// Prometheus's web configuration file: TLS, basic auth with bcrypt, a rate limit. It is checked strictly, and every
// error is reported at once (Prometheus: exporter-toolkit, docs/web-configuration.md). The file and its certificates
// are checked every second and reloaded when they change. A change with errors is logged, and the previous
// configuration stays in force.
#ifndef GPUSCALE_EXPORTER_PAGE_WEB_H
#define GPUSCALE_EXPORTER_PAGE_WEB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/http/http_server.h"
#include "exporter/page/web_auth.h"

struct buf;
struct clock;
struct err;
struct event_base;
struct log;
struct web;

// ---- the file ----

#define WEB_CONFIG_MEMORY_MAX (4 * 1024 * 1024) // while the file is decoded; a fraction of it is kept
#define WEB_CONFIG_COST_MAX   12                // 2^12 rounds take about 0.2 s, which block all other replies

struct web_config {
	struct http_server_options tls; // the tls_* members; relative paths in the file are relative to its folder
	struct web_user users[WEB_CONFIG_USERS_MAX];
	size_t n_users;           // 0: no basic auth
	int64_t rate_interval_ms; // one request per address in this time; 0: no limit
	int32_t rate_burst;
	bool no_document;   // the file is empty or contains only comments
	struct arena arena; // memory of the paths
};

// Decodes text[0..len), which messages call `name`. Returns -1 and fills `e` with ERR_INPUT (with one line for each
// error in `ret_errors`, see schema_errors_print) or ERR_LIMIT; there is nothing to free then.
int web_config_parse(struct web_config *c, const char *name, const char *text, size_t len, struct buf *ret_errors,
                     struct err *e);
// Reads the same from the file at `path`; also fails with ERR_NOT_FOUND and ERR_IO.
int web_config_read(struct web_config *c, const char *path, struct buf *ret_errors, struct err *e);
void web_config_done(struct web_config *c);

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
// Returns the tls_* members of the options of a server, valid as long as the active configuration.
const struct http_server_options *web_tls(const struct web *w);
// Starts to watch the files. The TLS settings of `server` follow them until web_free(). Returns -1 and fills `e` on
// failure.
int web_watch(struct web *w, struct event_base *loop, struct http_server *server, struct err *e);
// True if the request is permitted. Otherwise the function has replied with 401 or 429 and `x` is gone.
bool web_admit(struct web *w, struct http_exchange *x);
void web_get_stats(const struct web *w, struct web_stats *ret_stats);

#endif
