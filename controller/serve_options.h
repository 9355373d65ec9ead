// SPDX-License-Identifier: Apache-2.0
// Flags of `run` about what it serves: TLS and the bearer token of its endpoints, and the external metrics API.
#ifndef GPUSCALE_CONTROLLER_SERVE_OPTIONS_H
#define GPUSCALE_CONTROLLER_SERVE_OPTIONS_H

#include <argp.h>

#define EXTERNAL_METRICS_LISTEN ":8443" // --external-metrics without an address

// Strings live as long as the command line.
struct serve_options {
	const char *tls_cert_file, *tls_key_file; // of the endpoints; both or neither
	const char *tls_client_ca_file;           // clients of the endpoints must show a certificate of this CA
	int tls_min_minor;                        // TLS 1.x: 2 or 3; of everything that is served
	const char *token_file;                   // bearer token of the endpoints; NULL: everybody
	const char *external_metrics;             // address; NULL: not served
	const char *external_metrics_cert_file, *external_metrics_key_file; // NULL: those above, else one is made
};
// An argp child; its input is a struct serve_options.
extern const struct argp serve_argp;

#endif
