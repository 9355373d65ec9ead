// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/serve_options.h"

#include "base/print.h"
#include "policies/load/file_set.h"
#include "runtime/metrics/metrics.h"
#include "runtime/options/flag_table.h"

void serve_options_init(struct serve_options *o)
{
	*o = (struct serve_options){.tls_min_minor = 2, .metrics_policies = METRICS_POLICIES_MAX};
}

static void set_min_version(void *to, char *arg, struct argp_state *state)
{
	static const char *const versions[] = {"1.2", "1.3", "VersionTLS12", "VersionTLS13", NULL};
	*(int *)to = option_choice("--tls-min-version", arg, versions, state) % 2 + 2;
}

static void set_external_metrics(void *to, char *arg, struct argp_state *state)
{
	*(const char **)to = arg ? arg : EXTERNAL_METRICS_LISTEN;
}

static void check(void *options, struct argp_state *state)
{
	const struct serve_options *o = options;
	if (!o->tls_cert_file != !o->tls_key_file)
		print_usage(state, "--tls-cert-file and --tls-key-file go together");
	if (o->tls_client_ca_file && !o->tls_cert_file)
		print_usage(state, "--tls-client-ca-file needs --tls-cert-file and --tls-key-file");
	if (!o->external_metrics_cert_file != !o->external_metrics_key_file)
		print_usage(state, "--external-metrics-cert-file and --external-metrics-key-file go together");
	if (o->external_metrics_cert_file && !o->external_metrics)
		print_usage(state, "--external-metrics-cert-file needs --external-metrics");
}

// clang-format off
#define FLAGS_OF struct serve_options
const struct flag_set serve_flags = {.check = check, .flags = (const struct flag[]){
	FLAG_HEADING(6, "Serving:"),
	FLAG_TEXT(6, 0, "tls-cert-file", "FILE", tls_cert_file, "serve the endpoints over TLS with this certificate and its chain; reloaded on change"),
	FLAG_TEXT(6, 0, "tls-key-file", "FILE", tls_key_file, "its private key"),
	FLAG_TEXT(6, 0, "tls-client-ca-file", "FILE", tls_client_ca_file, "require a client certificate of this CA"),
	FLAG_CALL(6, 0, "tls-min-version", "1.2|1.3", tls_min_minor, set_min_version, "lowest version of TLS (default 1.2)"),
	FLAG_TEXT(6, 0, "endpoint-token-file", "FILE", token_file, "require this bearer token on all endpoints except /livez, /readyz and /healthz; reloaded on change"),
	FLAG_TEXT(6, 0, "allowed-hosts", "NAME,..", allowed_hosts, "host names, besides IP addresses, localhost and this machine's name, under which the endpoints may be asked for; *.example.com stands for every name below example.com"),
	FLAG_I64(6, 0, "metrics-policies", "N", metrics_policies, 0, POLICY_SET_MAX, "policies with series of their own on /metrics, the first by namespace and name (default 2000); the others are counted by gpuscale_policies_without_series"),
	FLAG_CALL(6 | FLAG_OPTIONAL, 0, "external-metrics", "ADDR", external_metrics, set_external_metrics, "serve external.metrics.k8s.io/v1beta1 over TLS, for HorizontalPodAutoscalers (default address " EXTERNAL_METRICS_LISTEN ")"),
	FLAG_TEXT(6, 0, "external-metrics-cert-file", "FILE", external_metrics_cert_file, "its certificate (default: --tls-cert-file, else one made in memory)"),
	FLAG_TEXT(6, 0, "external-metrics-key-file", "FILE", external_metrics_key_file, "its private key"),
	FLAG_END}};
// clang-format on
