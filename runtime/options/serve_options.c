// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/serve_options.h"

#include <string.h>

#include "base/print.h"
#include "policies/load/file_set.h"
#include "runtime/metrics/metrics.h"
#include "runtime/options/controller_options.h"

enum {
	KEY_TLS_CERT = 0x500,
	KEY_TLS_KEY,
	KEY_TLS_CLIENT_CA,
	KEY_TLS_MIN_VERSION,
	KEY_TOKEN_FILE,
	KEY_ALLOWED_HOSTS,
	KEY_METRICS_POLICIES,
	KEY_EXTERNAL_METRICS,
	KEY_EXTERNAL_CERT,
	KEY_EXTERNAL_KEY,
};

static void check(const struct serve_options *o, struct argp_state *state)
{
	if (!o->tls_cert_file != !o->tls_key_file)
		print_usage(state, "--tls-cert-file and --tls-key-file go together");
	if (o->tls_client_ca_file && !o->tls_cert_file)
		print_usage(state, "--tls-client-ca-file needs --tls-cert-file and --tls-key-file");
	if (!o->external_metrics_cert_file != !o->external_metrics_key_file)
		print_usage(state, "--external-metrics-cert-file and --external-metrics-key-file go together");
	if (o->external_metrics_cert_file && !o->external_metrics)
		print_usage(state, "--external-metrics-cert-file needs --external-metrics");
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	static const char *const versions[] = {"1.2", "1.3", "VersionTLS12", "VersionTLS13", NULL};
	struct serve_options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		*o = (struct serve_options){.tls_min_minor = 2, .metrics_policies = METRICS_POLICIES_MAX};
		return 0;
	case KEY_TLS_CERT:
		o->tls_cert_file = arg;
		return 0;
	case KEY_TLS_KEY:
		o->tls_key_file = arg;
		return 0;
	case KEY_TLS_CLIENT_CA:
		o->tls_client_ca_file = arg;
		return 0;
	case KEY_TLS_MIN_VERSION:
		o->tls_min_minor = option_choice("--tls-min-version", arg, versions, state) % 2 + 2;
		return 0;
	case KEY_TOKEN_FILE:
		o->token_file = arg;
		return 0;
	case KEY_ALLOWED_HOSTS:
		o->allowed_hosts = arg;
		return 0;
	case KEY_METRICS_POLICIES:
		o->metrics_policies = (size_t)option_i64("--metrics-policies", arg, 0, POLICY_SET_MAX, state);
		return 0;
	case KEY_EXTERNAL_METRICS:
		o->external_metrics = arg ? arg : EXTERNAL_METRICS_LISTEN;
		return 0;
	case KEY_EXTERNAL_CERT:
		o->external_metrics_cert_file = arg;
		return 0;
	case KEY_EXTERNAL_KEY:
		o->external_metrics_key_file = arg;
		return 0;
	case ARGP_KEY_END:
		check(o, state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option flags[] = {
        {0, 0, 0, 0, "Serving:", 6},
        {"tls-cert-file", KEY_TLS_CERT, "FILE", 0,
         "serve the endpoints over TLS with this certificate and its chain; reloaded on change", 6},
        {"tls-key-file", KEY_TLS_KEY, "FILE", 0, "its private key", 6},
        {"tls-client-ca-file", KEY_TLS_CLIENT_CA, "FILE", 0, "require a client certificate of this CA", 6},
        {"tls-min-version", KEY_TLS_MIN_VERSION, "1.2|1.3", 0, "lowest version of TLS (default 1.2)", 6},
        {"endpoint-token-file", KEY_TOKEN_FILE, "FILE", 0,
         "require this bearer token on all endpoints except /livez, /readyz and /healthz; reloaded on change", 6},
        {"allowed-hosts", KEY_ALLOWED_HOSTS, "NAME,..", 0,
         "host names, besides IP addresses, localhost and this machine's name, under which the endpoints may be asked "
         "for; *.example.com stands for every name below example.com",
         6},
        {"metrics-policies", KEY_METRICS_POLICIES, "N", 0,
         "policies with series of their own on /metrics, the first by namespace and name (default 2000); the others "
         "are "
         "counted by gpuscale_policies_without_series",
         6},
        {"external-metrics", KEY_EXTERNAL_METRICS, "ADDR", OPTION_ARG_OPTIONAL,
         "serve external.metrics.k8s.io/v1beta1 over TLS, for HorizontalPodAutoscalers (default "
         "address " EXTERNAL_METRICS_LISTEN ")",
         6},
        {"external-metrics-cert-file", KEY_EXTERNAL_CERT, "FILE", 0,
         "its certificate (default: --tls-cert-file, else one made in memory)", 6},
        {"external-metrics-key-file", KEY_EXTERNAL_KEY, "FILE", 0, "its private key", 6},
        {0},
};
const struct argp serve_argp = {flags, parse, NULL, NULL, NULL, NULL, NULL};
