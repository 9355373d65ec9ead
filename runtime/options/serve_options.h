// SPDX-License-Identifier: Apache-2.0
// Flags of `run` for its servers: TLS, the bearer token and the host names of the endpoints, and the external metrics
// API.
#ifndef GPUSCALE_RUNTIME_OPTIONS_SERVE_OPTIONS_H
#define GPUSCALE_RUNTIME_OPTIONS_SERVE_OPTIONS_H

#include <stddef.h>

struct flag_set;

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

#endif
