// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/controller_options.h"

#include <event2/util.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/print.h"
#include "k8s/client/k8s_config.h"
#include "promql/confine.h"
#include "promql/promql_source_file.h"
#include "runtime/options/flag_table.h"
#include "runtime/shard/shards.h"

void path_options_add(void *options, char *path, struct argp_state *state)
{
	struct path_options *o = options;
	if (o->n == OPTIONS_PATHS_MAX)
		print_usage(state, "more than %d files named; name their folder instead", OPTIONS_PATHS_MAX);
	o->paths[o->n++] = path;
}

void prometheus_options_init(struct prometheus_options *o)
{
	*o = (struct prometheus_options){0};
	o->query.url = getenv("GPUSCALE_PROMETHEUS_URL");
	o->url_from_environment = o->query.url != NULL;
	o->query.kind = PROMQL_KIND_AUTO;
}

bool prometheus_options_given(const struct prometheus_options *o)
{
	return (o->query.url && o->query.url[0]) || o->n_named || o->n_files;
}

static bool has_default(const struct promql_source_options *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(list[i].name, PROMQL_SOURCE_DEFAULT) == 0)
			return true;
	return false;
}

int prometheus_options_list(const struct prometheus_options *o, struct arena *a,
                            struct promql_source_options **ret_list, size_t *ret_n, struct buf *report, struct err *e)
{
	if (!prometheus_options_given(o))
		return err_set(e, ERR_USAGE,
		               "no Prometheus named: pass --prometheus URL or set GPUSCALE_PROMETHEUS_URL");
	size_t room = PROMQL_SOURCES_MAX * (o->n_files + 2), n = 0;
	struct promql_source_options *list = arena_calloc(a, room, sizeof *list);
	if (!list)
		return err_no_memory(e);
	for (size_t i = 0; i < o->n_files; i++) {
		struct promql_source_options *of_file;
		size_t n_of_file;
		if (promql_source_read(o->files[i], a, &of_file, &n_of_file, report, e) < 0)
			return -1;
		memcpy(list + n, of_file, n_of_file * sizeof *list);
		n += n_of_file;
	}
	const struct promql_access_options access = {.namespaces = o->n_namespaces ? o->namespaces : NULL,
	                                             .label = o->namespace_label};
	bool add_default = o->query.url && o->query.url[0];
	if (add_default && !(o->url_from_environment && has_default(list, n)))
		list[n++] = (struct promql_source_options){
		        .name = PROMQL_SOURCE_DEFAULT, .query = o->query, .access = access};
	for (size_t i = 0; i < o->n_named; i++)
		list[n++] = (struct promql_source_options){
		        .name = o->named[i].name,
		        .access = access,
		        .query = {.url = o->named[i].url, .kind = PROMQL_KIND_AUTO, .timeout_ms = o->query.timeout_ms}};
	*ret_list = list;
	*ret_n = n;
	return 0;
}

// "NAME=URL" or "URL"; text before a '=' in front of the scheme is the name.
static void add_source(void *options, char *arg, struct argp_state *state)
{
	struct prometheus_options *o = options;
	size_t n = strcspn(arg, "=:/");
	if (arg[n] != '=') {
		o->query.url = arg;
		o->url_from_environment = false;
		return;
	}
	if (o->n_named == PROMQL_SOURCES_MAX)
		print_usage(state, "more than %d --prometheus NAME=URL", PROMQL_SOURCES_MAX);
	arg[n] = '\0';
	o->named[o->n_named].name = arg;
	o->named[o->n_named++].url = arg + n + 1;
}

static void check_prometheus(void *options, struct argp_state *state)
{
	struct prometheus_options *o = options;
	o->query.headers = o->n_headers ? o->headers : NULL;
	if (o->query.basic_user && !o->query.basic_password_file)
		print_usage(state, "--prometheus-user needs --prometheus-password-file");
	if (o->query.bearer_token_file && o->query.basic_user)
		print_usage(state, "--prometheus-token-file and --prometheus-user cannot be used together");
	if (!o->query.tls.cert_file != !o->query.tls.key_file)
		print_usage(state, "--prometheus-cert-file and --prometheus-key-file go together");
}

#define SHOWN  2
#define HIDDEN (2 | FLAG_HIDDEN)
// clang-format off
#define FLAGS_OF struct prometheus_options
const struct flag_set prometheus_flags = {.check = check_prometheus, .flags = (const struct flag[]){
	FLAG_HEADING(SHOWN, "Prometheus (more flags: gpuscale help prometheus):"),
	FLAG_TAKE(SHOWN,   0, "prometheus", "[NAME=]URL", add_source, "base URL of a Prometheus-compatible API (default: $GPUSCALE_PROMETHEUS_URL); with NAME, a further source for signals that name it (repeatable)"),
	FLAG_LIST(HIDDEN,  0, "sources", "FILE", files, n_files, OPTIONS_SOURCE_FILES_MAX, "", "YAML file of kind Sources: named servers with their credentials (repeatable). The other flags of this group are for the unnamed --prometheus"),
	FLAG_CHOICE(HIDDEN, 0, "prometheus-type", "TYPE", query.kind, promql_kind_names, 0, "Prometheus, Thanos, Mimir, VictoriaMetrics or Auto (default Auto: detected)"),
	FLAG_TEXT(HIDDEN,  0, "prometheus-token-file", "FILE", query.bearer_token_file, "bearer token, re-read when it changes"),
	FLAG_TEXT(HIDDEN,  0, "prometheus-user", "NAME", query.basic_user, "basic authentication"),
	FLAG_TEXT(HIDDEN,  0, "prometheus-password-file", "FILE", query.basic_password_file, "password of --prometheus-user"),
	FLAG_TEXT(HIDDEN,  0, "prometheus-ca-file", "FILE", query.tls.ca_file, "CA certificates to trust instead of the system's"),
	FLAG_TEXT(HIDDEN,  0, "prometheus-cert-file", "FILE", query.tls.cert_file, "client certificate for mutual TLS"),
	FLAG_TEXT(HIDDEN,  0, "prometheus-key-file", "FILE", query.tls.key_file, "private key of the client certificate"),
	FLAG_TEXT(HIDDEN,  0, "prometheus-server-name", "NAME", query.tls.server_name, "name expected in the server's certificate"),
	FLAG_SWITCH(HIDDEN, 0, "prometheus-insecure-skip-tls-verify", query.tls.insecure_skip_verify, "do not verify the server's certificate"),
	FLAG_LIST(HIDDEN,  0, "prometheus-header", "'NAME: VALUE'", headers, n_headers, OPTIONS_HEADERS_MAX, "", "extra header, such as a tenant (repeatable; visible in the process list: not for secrets)"),
	FLAG_LIST(HIDDEN,  0, "prometheus-namespace", "NAME", namespaces, n_namespaces, OPTIONS_NAMESPACES_MAX, ": name them in a file, --sources FILE", "namespace whose policies may query the sources given as flags, * for all (repeatable; default: all if there is one source and it has no credentials, else none)"),
	FLAG_TEXT(HIDDEN,  0, "prometheus-namespace-label", "LABEL", namespace_label, "confine each query to the series whose LABEL is the namespace of the policy"),
	FLAG_DURATION(HIDDEN, 0, "prometheus-timeout", query.timeout_ms, 1, 0, "deadline of one query (default 10s)"),
	FLAG_END}};
#undef FLAGS_OF

#define FLAGS_OF struct kube_options
const struct flag_set kube_flags = {.flags = (const struct flag[]){
	FLAG_HEADING(3, "Kubernetes:"),
	FLAG_TEXT(3, 0, "kubeconfig", "FILE", config.kubeconfig, "default: $KUBECONFIG, ~/.kube/config, then the pod's service account"),
	FLAG_TEXT(3, 0, "context", "NAME", config.context, "context of the kubeconfig (default: its current-context)"),
	FLAG_END}};
#undef FLAGS_OF
// clang-format on

static void add_matcher(void *options, char *arg, struct argp_state *state)
{
	struct series_options *o = options;
	struct buf text;
	struct err e;
	buf_init(&text, sizeof o->matchers - 1);
	buf_printf(&text, "%s%s", o->matchers, o->matchers[0] ? "," : "");
	if (confine_check_matchers(&text, arg, &e) < 0)
		print_usage(state, "--series-matcher: %s", e.msg);
	snprintf(o->matchers, sizeof o->matchers, "%s", buf_str(&text));
	buf_done(&text);
}

// clang-format off
#define FLAGS_OF struct series_options
const struct flag_set series_flags = {.flags = (const struct flag[]){
	FLAG_HEADING(8, "Trusted series:"),
	FLAG_TAKE(8, 0, "series-matcher", "MATCHER", add_matcher, "believe only series of the exporter with these labels, such as 'job=\"gpuscale-exporter/gpuscale-exporter\"' (repeatable; every matcher must match). Choose labels that no other scraped pod can set; without it, nothing outside a policy's own target is changed"),
	FLAG_END}};
#undef FLAGS_OF

static const char *const log_formats[] = {"text", "json", NULL};
#define FLAGS_OF struct log_options
const struct flag_set log_flags = {.flags = (const struct flag[]){
	FLAG_HEADING(4, "Logging:"),
	FLAG_CHOICE(4, 0, "logging-format", "text|json", format, log_formats, 0, "format of the log (default text: klog's)"),
	FLAG_SWITCH(4, 'v', "verbose", is_verbose, "log every decision, not only changes"),
	FLAG_END}};
#undef FLAGS_OF
// clang-format on

const char *series_options_matchers(const struct series_options *o)
{
	return o->matchers[0] ? o->matchers : NULL;
}
// ---- high availability ----

#define HA_LEASE_NAME "gpuscale"
#define HOSTNAME_MAX  200

void ha_options_init(struct ha_options *o)
{
	*o = (struct ha_options){.timing = {.duration_ms = 15000, .renew_deadline_ms = 10000, .retry_period_ms = 2000},
	                         .n_shards = 1};
}

static void set_leader_elect(void *options, char *arg, struct argp_state *state)
{
	static const char *const truths[] = {"true", "false", NULL};
	struct ha_options *o = options;
	o->leader_elect = !arg || option_choice("--leader-elect", arg, truths, state) == 0 ? HA_ON : HA_OFF;
}

static void check_ha(void *options, struct argp_state *state)
{
	const struct ha_options *o = options;
	struct err e;
	if (lease_timing_check(&o->timing, &e) < 0)
		print_usage(state, "%s", e.msg);
	if (o->n_shards > 1 && o->leader_elect == HA_OFF)
		print_usage(state, "--shards needs the election that --leader-elect=false switches off");
}

#undef HIDDEN
#define HIDDEN (5 | FLAG_HIDDEN)
// clang-format off
#define FLAGS_OF struct ha_options
const struct flag_set ha_flags = {.check = check_ha, .flags = (const struct flag[]){
	FLAG_HEADING(5, "High availability (more flags: gpuscale help high-availability):"),
	FLAG_TAKE(5 | FLAG_OPTIONAL, 0, "leader-elect", "true|false", set_leader_elect, "only the process that holds the Lease acts (default: true in a cluster with policies from the API server, and with --shards; else false)"),
	FLAG_DURATION(HIDDEN, 0, "lease-duration", timing.duration_ms, 1, 0, "how long a lease is valid without renewal (default 15s)"),
	FLAG_DURATION(HIDDEN, 0, "renew-deadline", timing.renew_deadline_ms, 1, 0, "stop acting when renewal has failed for this long (default 10s)"),
	FLAG_DURATION(HIDDEN, 0, "retry-period", timing.retry_period_ms, 1, 0, "time between two renewals, and two tries (default 2s)"),
	FLAG_TEXT(HIDDEN, 0, "lease-name", "NAME", lease_name, "the leases are NAME-0, NAME-1 .. (default " HA_LEASE_NAME ")"),
	FLAG_TEXT(HIDDEN, 0, "lease-namespace", "NAMESPACE", lease_namespace, "namespace of the leases (default: the pod's, else the context's)"),
	FLAG_TEXT(HIDDEN, 0, "identity", "NAME", identity, "identity of this process in the lease; must be unique (default: HOSTNAME_UUID)"),
	FLAG_I32(5, 0, "shards", "N", n_shards, 1, SHARDS_MAX, "spread the policies over N leases, so that N processes share them (default 1)"),
	FLAG_END}};
// clang-format on

bool ha_options_is_on(const struct ha_options *o, bool is_default)
{
	if (o->leader_elect == HA_DEFAULT)
		return is_default || o->n_shards > 1;
	return o->leader_elect == HA_ON;
}

// As in client-go: the host's name and a random number, so that a restarted process has a new identity.
static void make_identity(char out[LEASE_IDENTITY_BYTES])
{
	char host[HOSTNAME_MAX + 1] = "";
	unsigned char r[16];
	if (gethostname(host, HOSTNAME_MAX) < 0 || !host[0])
		snprintf(host, sizeof host, "unknown");
	evutil_secure_rng_get_bytes(r, sizeof r);
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40); // RFC 9562, section 5.4
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	snprintf(out, LEASE_IDENTITY_BYTES, "%s_%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
	         host, r[0], r[1], r[2], r[3], r[4], r[5], r[6], r[7], r[8], r[9], r[10], r[11], r[12], r[13], r[14],
	         r[15]);
}

void ha_options_apply(struct ha_options *o, const struct k8s_config *config, struct shards_options *ret_shards)
{
	if (!o->identity) {
		make_identity(o->own_identity);
		o->identity = o->own_identity;
	}
	ret_shards->config = config;
	ret_shards->namespace_name = o->lease_namespace ? o->lease_namespace : config->namespace_name;
	ret_shards->lease_name = o->lease_name ? o->lease_name : HA_LEASE_NAME;
	ret_shards->identity = o->identity;
	ret_shards->timing = o->timing;
	ret_shards->n_shards = o->n_shards;
}
