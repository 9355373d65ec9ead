// SPDX-License-Identifier: Apache-2.0
// Flags of `run` for its servers: TLS, the bearer token and the host names of the endpoints, and the external metrics
// API; the token and the certificates, whose files may be replaced while the process runs.
#ifndef GPUSCALE_RUNTIME_OPTIONS_SERVE_OPTIONS_H
#define GPUSCALE_RUNTIME_OPTIONS_SERVE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

struct endpoint_token;
struct err;
struct event_base;
struct flag_set;
struct http_exchange;
struct http_server;
struct http_server_options;
struct log;
struct tls_follower;

#define EXTERNAL_METRICS_LISTEN ":8443" // --external-metrics without an address

// Strings live as long as the command line.
struct serve_options {
	const char *tls_cert_file, *tls_key_file; // of the endpoints; both or neither
	const char *tls_client_ca_file;           // clients of the endpoints must present a certificate of this CA
	int tls_min_minor;                        // TLS 1.x: 2 or 3; for all servers
	const char *token_file;                   // bearer token of the endpoints; NULL: none needed
	const char *allowed_hosts;                // for the endpoints: base/http/http_site.h; NULL: no additional names
	size_t metrics_policies;                  // policies with series of their own on /metrics
	const char *external_metrics;             // address; NULL: not served
	const char *external_metrics_cert_file, *external_metrics_key_file; // NULL: those above, else one is generated
};
extern const struct flag_set serve_flags; // its options are a struct serve_options
void serve_options_init(struct serve_options *o);

// The bearer token that the controller's endpoints demand. When a changed file cannot be used, an error is logged and
// the previous token stays valid.
#define ENDPOINT_TOKEN_BYTES_MAX 4096

// path must live as long. Returns NULL and *e unless the file holds a token: one line of visible ASCII characters.
struct endpoint_token *endpoint_token_new(const char *path, struct log *log, struct err *e);
void endpoint_token_free(struct endpoint_token *t); // NULL is fine
// An http_admit_fn; arg: the token. /livez, /readyz and /healthz without ?verbose need no token, all other paths do.
// Compares in constant time.
bool endpoint_token_admit(void *arg, struct http_exchange *x);

// Follows the TLS files of a server: checks them every second and reloads them when one changes. When a changed file
// cannot be used, logs an error and keeps the previous certificate. New connections use the new certificate, open ones
// keep theirs.
#define TLS_FOLLOWER_MS 1000

// Uses the tls_* members of *tls, whose strings must live as long. name: of the server, for the log. Ends the process
// without memory.
struct tls_follower *tls_follower_new(struct event_base *loop, struct http_server *server,
                                      const struct http_server_options *tls, const char *name, struct log *log);
void tls_follower_free(struct tls_follower *f); // NULL is fine

#endif
