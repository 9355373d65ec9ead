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

struct buf;
struct clock;
struct err;
struct event_base;
struct log;
struct web;
struct web_auth;

// ---- basic auth ----

#define WEB_CONFIG_USERS_MAX      64
#define WEB_CONFIG_USER_BYTES     128
#define WEB_CONFIG_HASH_BYTES     60 // length of a bcrypt hash: "$2y$10$", 22 characters of salt, 31 of digest
#define WEB_AUTH_HEADER_BYTES_MAX 1024
#define WEB_AUTH_TRIES_BURST      5 // checks that a class of addresses may run at once,
#define WEB_AUTH_TRY_MS                                                                                                \
	500                            // and one more in this time, at most a tenth of the CPU (web_auth_try_ms);
	                               // twice that time for each further level of peer_tries
#define WEB_AUTH_PEER_TRIES_BURST 4    // the same for one address that has sent a wrong password,
#define WEB_AUTH_PEER_TRY_MS      4000 // and one more in this time
#define WEB_AUTH_WRONG_MAX        64   // cached wrong passwords

struct web_user {
	char name[WEB_CONFIG_USER_BYTES];
	char hash[WEB_CONFIG_HASH_BYTES + 1];
};

enum web_auth_result { WEB_AUTH_GOOD, WEB_AUTH_BAD, WEB_AUTH_LATER };

// Copies `users` (n <= WEB_CONFIG_USERS_MAX). Returns NULL and fills `e` if libcrypt or randomness is missing.
struct web_auth *web_auth_new(const struct web_user *users, size_t n, struct err *e);
void web_auth_free(struct web_auth *a);
// Copies from `from` which addresses have sent right and wrong passwords. Call when the users change.
void web_auth_inherit(struct web_auth *a, const struct web_auth *from);
// Checks the value of the Authorization header; NULL if it is missing. `peer` is the client's address as text,
// `mono_ms` the monotonic clock. Returns WEB_AUTH_LATER if the rate limit is reached and the password was not
// checked.
enum web_auth_result web_auth_check(struct web_auth *a, const char *authorization, const char *peer, int64_t mono_ms);
// Returns the time, in ms, in which one more check of a hash like this one is permitted: longer for a hash with a cost
// above 10, which takes longer to check.
int64_t web_auth_try_ms(const char *hash);

// ---- a token bucket for each client address, in a table of fixed size ----

#define PEER_RATE_PEERS_MAX   256
#define PEER_RATE_TRUSTED_MAX 64 // trusted entries in PEER_RATE_PEERS_MAX; the others are for untrusted peers
#define PEER_RATE_NAME_BYTES  64

struct peer_rate_entry {
	char peer[PEER_RATE_NAME_BYTES]; // its address, as text
	bool trusted;
	int64_t used_ms; // when the entry was last used
	int64_t full_ms; // when its bucket will be full
};

struct peer_rate { // zero it before use
	struct peer_rate_entry entries[PEER_RATE_PEERS_MAX];
	size_t n;
};

// Takes one token at now_ms from a bucket that has room for `burst` tokens and gains one each interval_ms. Returns
// false when the bucket is empty. *full_ms is the state of the bucket; 0 is a full bucket.
bool peer_rate_take(int64_t *full_ms, int64_t interval_ms, int64_t burst, int64_t now_ms);

// Returns the entry of the peer, or NULL. Valid until the next peer_rate_add.
struct peer_rate_entry *peer_rate_find(struct peer_rate *r, const char *peer);
// Returns the entry of the peer. In a full table, the new entry replaces the least recently used one. Only a trusted
// peer can replace a trusted one, and at most PEER_RATE_TRUSTED_MAX peers are trusted, so a flood of addresses cannot
// evict them. Sets used_ms.
struct peer_rate_entry *peer_rate_add(struct peer_rate *r, const char *peer, bool trusted, int64_t now_ms);

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

// ---- its enforcement ----

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
