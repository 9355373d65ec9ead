// SPDX-License-Identifier: Apache-2.0
#include "runtime/options/controller_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/print.h"
#include "promql/confine.h"
#include "promql/promql_source_file.h"

int64_t option_duration_ms(const char *flag, const char *text, int64_t min_ms, struct argp_state *state)
{
	int64_t ms = 0;
	struct err e;
	if (num_parse_flag_duration_ms(text, strlen(text), &ms, &e) < 0)
		print_usage(state, "%s: %s", flag, e.msg);
	else if (ms < min_ms) {
		char least[NUM_TEXT_BYTES];
		num_format_duration_ms(least, min_ms);
		print_usage(state, "%s: %s is less than %s", flag, text, least);
	}
	return ms;
}

int option_choice(const char *flag, const char *text, const char *const *names, struct argp_state *state)
{
	char all[256] = "";
	size_t used = 0, n_names = 0;
	for (int i = 0; names[i]; i++, n_names++) {
		if (strcasecmp(names[i], text) == 0)
			return i;
		int n = snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", names[i]);
		if (n > 0 && (size_t)n < sizeof all - used)
			used += (size_t)n;
	}
	const char *close = num_closest_name(text, names, n_names);
	print_usage(state, "%s: \"%s\" is not one of %s%s%s%s", flag, text, all, close ? "; did you mean " : "",
	            close ? close : "", close ? "?" : "");
	return 0;
}

int64_t option_i64(const char *flag, const char *text, int64_t min, int64_t max, struct argp_state *state)
{
	int64_t v = min;
	struct err e;
	if (num_parse_i64(text, strlen(text), min, max, &v, &e) < 0)
		print_usage(state, "%s: %s", flag, e.msg);
	return v;
}

double option_f64(const char *flag, const char *text, double min, double max, struct argp_state *state)
{
	double v = 0;
	if (num_parse_f64(text, strlen(text), &v, NULL) < 0 || !(v >= min && v <= max))
		print_usage(state, "%s: expected a number from %g to %g, got \"%s\"", flag, min, max, text);
	return v;
}

const char *option_next_item(const char *flag, const char **list, char item[OPTION_ITEM_BYTES],
                             struct argp_state *state)
{
	if (!*list)
		return NULL;
	size_t len = strcspn(*list, ",");
	if (len == 0 || len >= OPTION_ITEM_BYTES)
		print_usage(state, "%s: expected values with commas between them, got \"%s\"", flag, *list);
	memcpy(item, *list, len);
	item[len] = '\0';
	*list = (*list)[len] == ',' ? *list + len + 1 : NULL;
	return item;
}

void path_options_add(struct path_options *o, const char *path, struct argp_state *state)
{
	if (o->n == OPTIONS_PATHS_MAX)
		print_usage(state, "more than %d files named; name their folder instead", OPTIONS_PATHS_MAX);
	o->paths[o->n++] = path;
}

// ---- Prometheus ----

enum {
	KEY_PROMETHEUS = 0x100,
	KEY_SOURCES,
	KEY_PROM_TYPE,
	KEY_PROM_TOKEN_FILE,
	KEY_PROM_USER,
	KEY_PROM_PASSWORD_FILE,
	KEY_PROM_CA,
	KEY_PROM_CERT,
	KEY_PROM_KEY,
	KEY_PROM_SERVER_NAME,
	KEY_PROM_INSECURE,
	KEY_PROM_HEADER,
	KEY_PROM_TIMEOUT,
	KEY_PROM_NAMESPACE,
	KEY_PROM_NAMESPACE_LABEL,
	KEY_KUBECONFIG,
	KEY_CONTEXT,
	KEY_LOG_FORMAT,
	KEY_SERIES_MATCHER,
};

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
		return err_set(e, ERR_INTERNAL, "out of memory");
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
	bool want_default = o->query.url && o->query.url[0];
	if (want_default && !(o->url_from_environment && has_default(list, n)))
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
static void add_source(struct prometheus_options *o, char *arg, struct argp_state *state)
{
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

static error_t parse_prometheus(int key, char *arg, struct argp_state *state)
{
	struct prometheus_options *o = state->input;
	switch (key) {
	case KEY_PROMETHEUS:
		add_source(o, arg, state);
		return 0;
	case KEY_SOURCES:
		if (o->n_files == OPTIONS_SOURCE_FILES_MAX)
			print_usage(state, "more than %d --sources", OPTIONS_SOURCE_FILES_MAX);
		o->files[o->n_files++] = arg;
		return 0;
	case KEY_PROM_TYPE:
		o->query.kind = (enum promql_kind)option_choice("--prometheus-type", arg, promql_kind_names, state);
		return 0;
	case KEY_PROM_TOKEN_FILE:
		o->query.bearer_token_file = arg;
		return 0;
	case KEY_PROM_USER:
		o->query.basic_user = arg;
		return 0;
	case KEY_PROM_PASSWORD_FILE:
		o->query.basic_password_file = arg;
		return 0;
	case KEY_PROM_CA:
		o->query.tls.ca_file = arg;
		return 0;
	case KEY_PROM_CERT:
		o->query.tls.cert_file = arg;
		return 0;
	case KEY_PROM_KEY:
		o->query.tls.key_file = arg;
		return 0;
	case KEY_PROM_SERVER_NAME:
		o->query.tls.server_name = arg;
		return 0;
	case KEY_PROM_INSECURE:
		o->query.tls.insecure_skip_verify = true;
		return 0;
	case KEY_PROM_HEADER:
		if (o->n_headers == OPTIONS_HEADERS_MAX)
			print_usage(state, "more than %d --prometheus-header", OPTIONS_HEADERS_MAX);
		o->headers[o->n_headers++] = arg;
		o->query.headers = o->headers;
		return 0;
	case KEY_PROM_TIMEOUT:
		o->query.timeout_ms = option_duration_ms("--prometheus-timeout", arg, 1, state);
		return 0;
	case KEY_PROM_NAMESPACE:
		if (o->n_namespaces == OPTIONS_NAMESPACES_MAX)
			print_usage(state, "more than %d --prometheus-namespace: name them in a file, --sources FILE",
			            OPTIONS_NAMESPACES_MAX);
		o->namespaces[o->n_namespaces++] = arg;
		return 0;
	case KEY_PROM_NAMESPACE_LABEL:
		o->namespace_label = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->query.basic_user && !o->query.basic_password_file)
			print_usage(state, "--prometheus-user needs --prometheus-password-file");
		if (o->query.bearer_token_file && o->query.basic_user)
			print_usage(state, "--prometheus-token-file and --prometheus-user cannot be used together");
		if (!o->query.tls.cert_file != !o->query.tls.key_file)
			print_usage(state, "--prometheus-cert-file and --prometheus-key-file go together");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option prometheus_flags[] = {
        {0, 0, 0, 0, "Prometheus (more flags: gpuscale help prometheus):", 2},
        {"prometheus", KEY_PROMETHEUS, "[NAME=]URL", 0,
         "base URL of a Prometheus-compatible API (default: $GPUSCALE_PROMETHEUS_URL); with NAME, a further "
         "source for signals that name it (repeatable)",
         2},
        {"sources", KEY_SOURCES, "FILE", OPTION_HIDDEN,
         "YAML file of kind Sources: named servers with their credentials (repeatable). "
         "The other flags of this group are for the unnamed --prometheus",
         2},
        {"prometheus-type", KEY_PROM_TYPE, "TYPE", OPTION_HIDDEN,
         "Prometheus, Thanos, Mimir, VictoriaMetrics or Auto (default Auto: detected)", 2},
        {"prometheus-token-file", KEY_PROM_TOKEN_FILE, "FILE", OPTION_HIDDEN, "bearer token, re-read when it changes",
         2},
        {"prometheus-user", KEY_PROM_USER, "NAME", OPTION_HIDDEN, "basic authentication", 2},
        {"prometheus-password-file", KEY_PROM_PASSWORD_FILE, "FILE", OPTION_HIDDEN, "password of --prometheus-user", 2},
        {"prometheus-ca-file", KEY_PROM_CA, "FILE", OPTION_HIDDEN, "CA certificates to trust instead of the system's",
         2},
        {"prometheus-cert-file", KEY_PROM_CERT, "FILE", OPTION_HIDDEN, "client certificate for mutual TLS", 2},
        {"prometheus-key-file", KEY_PROM_KEY, "FILE", OPTION_HIDDEN, "private key of the client certificate", 2},
        {"prometheus-server-name", KEY_PROM_SERVER_NAME, "NAME", OPTION_HIDDEN,
         "name expected in the server's certificate", 2},
        {"prometheus-insecure-skip-tls-verify", KEY_PROM_INSECURE, 0, OPTION_HIDDEN,
         "do not verify the server's certificate", 2},
        {"prometheus-header", KEY_PROM_HEADER, "'NAME: VALUE'", OPTION_HIDDEN,
         "extra header, such as a tenant (repeatable; visible in the process list: not for secrets)", 2},
        {"prometheus-namespace", KEY_PROM_NAMESPACE, "NAME", OPTION_HIDDEN,
         "namespace whose policies may query the sources given as flags, * for all (repeatable; default: all if "
         "there is one source and it has no credentials, else none)",
         2},
        {"prometheus-namespace-label", KEY_PROM_NAMESPACE_LABEL, "LABEL", OPTION_HIDDEN,
         "confine each query to the series whose LABEL is the namespace of the policy", 2},
        {"prometheus-timeout", KEY_PROM_TIMEOUT, "DURATION", OPTION_HIDDEN, "deadline of one query (default 10s)", 2},
        {0},
};
const struct argp prometheus_argp = {prometheus_flags, parse_prometheus, NULL, NULL, NULL, NULL, NULL};

// ---- Kubernetes ----

static error_t parse_kube(int key, char *arg, struct argp_state *state)
{
	struct kube_options *o = state->input;
	switch (key) {
	case KEY_KUBECONFIG:
		o->config.kubeconfig = arg;
		return 0;
	case KEY_CONTEXT:
		o->config.context = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option kube_flags[] = {
        {0, 0, 0, 0, "Kubernetes:", 3},
        {"kubeconfig", KEY_KUBECONFIG, "FILE", 0,
         "default: $KUBECONFIG, ~/.kube/config, then the pod's service account", 3},
        {"context", KEY_CONTEXT, "NAME", 0, "context of the kubeconfig (default: its current-context)", 3},
        {0},
};
const struct argp kube_argp = {kube_flags, parse_kube, NULL, NULL, NULL, NULL, NULL};

// ---- trusted series ----

static error_t parse_series(int key, char *arg, struct argp_state *state)
{
	struct series_options *o = state->input;
	struct buf text;
	struct err e;
	if (key != KEY_SERIES_MATCHER)
		return ARGP_ERR_UNKNOWN;
	buf_init(&text, sizeof o->matchers - 1);
	buf_printf(&text, "%s%s", o->matchers, o->matchers[0] ? "," : "");
	if (confine_check_matchers(&text, arg, &e) < 0)
		print_usage(state, "--series-matcher: %s", e.msg);
	snprintf(o->matchers, sizeof o->matchers, "%s", buf_str(&text));
	buf_done(&text);
	return 0;
}

static const struct argp_option series_flags[] = {
        {0, 0, 0, 0, "Trusted series:", 8},
        {"series-matcher", KEY_SERIES_MATCHER, "MATCHER", 0,
         "believe only series of the exporter with these labels, such as "
         "'job=\"gpuscale-exporter/gpuscale-exporter\"' (repeatable; every matcher must match). Choose labels that "
         "no other scraped pod can set; without it, nothing outside a policy's own target is changed",
         8},
        {0},
};
const struct argp series_argp = {series_flags, parse_series, NULL, NULL, NULL, NULL, NULL};

const char *series_options_matchers(const struct series_options *o)
{
	return o->matchers[0] ? o->matchers : NULL;
}

// ---- logging ----

static error_t parse_log(int key, char *arg, struct argp_state *state)
{
	static const char *const formats[] = {"text", "json", NULL};
	struct log_options *o = state->input;
	switch (key) {
	case ARGP_KEY_INIT:
		*o = (struct log_options){.format = LOG_FORMAT_TEXT, .level = LOG_INFO};
		return 0;
	case KEY_LOG_FORMAT:
		o->format = (enum log_format)option_choice("--logging-format", arg, formats, state);
		return 0;
	case 'v':
		o->level = LOG_DEBUG;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const struct argp_option log_flags[] = {
        {0, 0, 0, 0, "Logging:", 4},
        {"logging-format", KEY_LOG_FORMAT, "text|json", 0, "format of the log (default text: klog's)", 4},
        {"verbose", 'v', 0, 0, "log every decision, not only changes", 4},
        {0},
};
const struct argp log_argp = {log_flags, parse_log, NULL, NULL, NULL, NULL, NULL};
