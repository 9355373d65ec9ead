// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_source_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "promql/confine.h"

#define COUNT_OF(array)               (sizeof(array) / sizeof(array)[0])
#define FIELD(type, member)           .offset = offsetof(type, member), .set_offset = SCHEMA_NO_OFFSET
#define FIELD_SET(type, member, flag) .offset = offsetof(type, member), .set_offset = offsetof(type, flag)
#define FILE_NAME_MAX                 4096

// As written; what the client takes is made from it in to_options.
struct source_spec {
	const char *name, *url, *tenant, *bearer_token_file;
	const char **urls;
	size_t n_urls;
	double max_disagreement;
	int type, method, identity;
	const char *region;
	const char **headers;
	size_t n_headers;
	const char **allowed_namespaces;
	size_t n_allowed_namespaces;
	bool allowed_set;
	const char *namespace_label;
	bool basic_set, tls_set, fuse;
	struct {
		const char *username, *password_file;
	} basic;
	struct {
		const char *ca_file, *cert_file, *key_file, *server_name;
		bool insecure_skip_verify;
	} tls;
	int64_t timeout_ms;
	int32_t max_concurrency;
};

struct source_list {
	int api_version, kind;
	const struct source_spec *sources;
	size_t n_sources;
};

enum { METHOD_POST, METHOD_GET };
static const char *const methods[] = {[METHOD_POST] = "POST", [METHOD_GET] = "GET", NULL};
static const char *const api_versions[] = {PROMQL_SOURCES_API_VERSION, NULL};
static const char *const kinds[] = {PROMQL_SOURCES_KIND, NULL};

static const struct schema_field basic_fields[] = {
        {.name = "username",
         .type = SCHEMA_STRING,
         .doc = "The user.",
         FIELD(struct source_spec, basic.username),
         .required = true,
         .min = 1,
         .max = 1024},
        {.name = "passwordFile",
         .type = SCHEMA_STRING,
         .doc = "File with the password, read again every minute and when the server refuses it.",
         FIELD(struct source_spec, basic.password_file),
         .required = true,
         .min = 1,
         .max = FILE_NAME_MAX},
};

// The children's offsets are those of the source itself.
static const struct schema basic = {
        .name = "Sources.sources[].basicAuth",
        .doc = "User and password.",
        .struct_size = sizeof(struct source_spec),
        .fields = basic_fields,
        .n_fields = COUNT_OF(basic_fields),
};

static const struct schema_field tls_fields[] = {
        {.name = "caFile",
         .type = SCHEMA_STRING,
         .doc = "CA certificates to trust instead of the system's.",
         FIELD(struct source_spec, tls.ca_file),
         .min = 1,
         .max = FILE_NAME_MAX},
        {.name = "certFile",
         .type = SCHEMA_STRING,
         .doc = "Client certificate; with keyFile.",
         FIELD(struct source_spec, tls.cert_file),
         .min = 1,
         .max = FILE_NAME_MAX},
        {.name = "keyFile",
         .type = SCHEMA_STRING,
         .doc = "Its private key.",
         FIELD(struct source_spec, tls.key_file),
         .min = 1,
         .max = FILE_NAME_MAX},
        {.name = "serverName",
         .type = SCHEMA_STRING,
         .doc = "Name expected in the server's certificate, if it is not the URL's.",
         FIELD(struct source_spec, tls.server_name),
         .min = 1,
         .max = 253},
        {.name = "insecureSkipVerify",
         .type = SCHEMA_BOOL,
         .doc = "Do not verify the server's certificate: any server that answers then decides how far the targets are "
                "scaled.",
         FIELD(struct source_spec, tls.insecure_skip_verify),
         .default_text = "false"},
};

static const struct schema tls = {
        .name = "Sources.sources[].tls",
        .doc = "Whom to trust, and who we are.",
        .struct_size = sizeof(struct source_spec),
        .fields = tls_fields,
        .n_fields = COUNT_OF(tls_fields),
};

static const struct schema_field source_fields[] = {
        {.name = "name",
         .type = SCHEMA_STRING,
         .doc = "What policies call it in signals[].source: letters, digits, '_', '-' and '.'. The one called default "
                "is asked by signals that name none.",
         FIELD(struct source_spec, name),
         .required = true,
         .min = 1,
         .max = PROMQL_SOURCE_NAME_MAX},
        {.name = "url",
         .type = SCHEMA_STRING,
         .doc = "Base URL, with a path prefix where there is one: http://prometheus:9090, "
                "https://mimir.example/prometheus. No credentials in it.",
         FIELD(struct source_spec, url),
         .min = 1,
         .max = 2048},
        {.name = "urls",
         .type = SCHEMA_STRING_LIST,
         .doc = "Instead of url: servers that hold the same data, such as the two of a highly available pair. Each "
                "query is sent to all of them, and the newest sample is used; a signal is missing only when none of "
                "them answers.",
         FIELD(struct source_spec, urls),
         .count_offset = offsetof(struct source_spec, n_urls),
         .min = 1,
         .max_items = PROMQL_URLS_MAX},
        {.name = "maxDisagreement",
         .type = SCHEMA_QUANTITY,
         .doc = "With urls: the relative difference between two current values of a query above which the servers "
                "count as disagreeing, which is logged and counted.",
         FIELD(struct source_spec, max_disagreement),
         .default_text = "0.2",
         .min = 0,
         .max = 1},
        {.name = "type",
         .type = SCHEMA_ENUM,
         .doc = "Whose query API it is. Auto asks /api/v1/status/buildinfo; behind a gateway that hides it, say it.",
         FIELD(struct source_spec, type),
         .default_text = "Auto",
         .enum_names = promql_kind_names},
        {.name = "tenant",
         .type = SCHEMA_STRING,
         .doc = "Tenant of Mimir or Thanos, sent as X-Scope-OrgID. (The tenants of a VictoriaMetrics cluster are part "
                "of the URL.)",
         FIELD(struct source_spec, tenant),
         .min = 1,
         .max = 150},
        {.name = "headers",
         .type = SCHEMA_STRING_LIST,
         .doc = "More request headers, each \"Name: value\". Not for secrets: those belong in files.",
         FIELD(struct source_spec, headers),
         .count_offset = offsetof(struct source_spec, n_headers),
         .max_items = 32},
        {.name = "bearerTokenFile",
         .type = SCHEMA_STRING,
         .doc = "File with a bearer token, read again every minute and when the server refuses it.",
         FIELD(struct source_spec, bearer_token_file),
         .min = 1,
         .max = FILE_NAME_MAX},
        {.name = "basicAuth",
         .type = SCHEMA_OBJECT,
         .doc = "User and password instead of a token.",
         .offset = 0,
         .set_offset = offsetof(struct source_spec, basic_set),
         .child = &basic},
        {.name = "workloadIdentity",
         .type = SCHEMA_ENUM,
         .doc = "The cloud of a managed Prometheus, to which the controller authenticates with the identity of its own "
                "pod instead of a secret: Google (metadata server), Amazon (requests signed with the credentials of "
                "IRSA or EKS Pod Identity) or Azure (federated token). Needs https.",
         FIELD(struct source_spec, identity),
         .default_text = "None",
         .enum_names = promql_identity_names},
        {.name = "region",
         .type = SCHEMA_STRING,
         .doc = "With Amazon: the region of the workspace. Without it $AWS_REGION.",
         FIELD(struct source_spec, region),
         .min = 1,
         .max = PROMQL_REGION_MAX - 1},
        {.name = "tls",
         .type = SCHEMA_OBJECT,
         .doc = "For https.",
         .offset = 0,
         .set_offset = offsetof(struct source_spec, tls_set),
         .child = &tls},
        {.name = "allowedNamespaces",
         .type = SCHEMA_STRING_LIST,
         .doc = "Namespaces whose policies may ask this source; \"*\" stands for all of them. Without the field all "
                "may "
                "if it is the only source and has no credentials (token, user, client certificate, headers, tenant), "
                "and otherwise none.",
         FIELD_SET(struct source_spec, allowed_namespaces, allowed_set),
         .count_offset = offsetof(struct source_spec, n_allowed_namespaces),
         .max_items = PROMQL_ACCESS_NAMESPACES_MAX},
        {.name = "namespaceLabel",
         .type = SCHEMA_STRING,
         .doc = "Label that confines queries: every selector of a query gets this label with the namespace of the "
                "policy as its value, and a query that cannot be rewritten with certainty is not asked.",
         FIELD(struct source_spec, namespace_label),
         .min = 1,
         .max = PROMQL_ACCESS_LABEL_BYTES - 1},
        {.name = "timeout",
         .type = SCHEMA_DURATION_MS,
         .doc = "Deadline of one query, waiting for its turn included.",
         FIELD(struct source_spec, timeout_ms),
         .default_text = "10s",
         .min = 1,
         .max = 300000},
        {.name = "maxConcurrency",
         .type = SCHEMA_INT32,
         .doc = "Concurrent queries.",
         FIELD(struct source_spec, max_concurrency),
         .default_text = "16",
         .min = 1,
         .max = PROMQL_CONCURRENCY_MAX},
        {.name = "fuse",
         .type = SCHEMA_BOOL,
         .doc = "Asks queries of one tick that were answered well before in one request, up to 16. false for servers "
                "that bill, limit or log by the query.",
         FIELD(struct source_spec, fuse),
         .default_text = "true"},
        {.name = "method",
         .type = SCHEMA_ENUM,
         .doc = "GET for gateways that allow nothing else; queries are then limited by the length of a URL.",
         FIELD(struct source_spec, method),
         .default_text = "POST",
         .enum_names = methods},
};

static size_t check_access(const struct source_spec *s, struct schema_fault *ret_faults, size_t max)
{
	struct err e;
	const char *one[] = {NULL, NULL};
	size_t n = 0;
	for (size_t i = 0; i < s->n_allowed_namespaces && n < max; i++) {
		one[0] = s->allowed_namespaces[i];
		struct promql_access *a =
		        promql_access_new(&(struct promql_access_options){.namespaces = one}, false, &e);
		if (!a)
			ret_faults[n++] = (struct schema_fault){
			        "allowedNamespaces", (int32_t)i,
			        "is not a valid namespace: write its name, or \"*\" for every namespace"};
		promql_access_free(a);
	}
	if (s->namespace_label && !confine_label_is_valid(s->namespace_label) && n < max)
		ret_faults[n++] = (struct schema_fault){
		        "namespaceLabel", -1,
		        "must be a label of letters, digits and '_', such as namespace, and not __name__"};
	return n;
}

static bool is_header_called(const char *header, const char *name)
{
	size_t n = strlen(name);
	return strncasecmp(header, name, n) == 0 && header[n] == ':';
}

// Sets *http when the URL is not one of https.
static size_t check_url(const char *url, const char *field, int32_t index, bool *http, struct schema_fault *ret_faults,
                        size_t max)
{
	size_t n = 0;
	bool is_http = strncmp(url, "http://", 7) == 0;
	*http |= is_http;
	if (!is_http && strncmp(url, "https://", 8) != 0 && n < max)
		ret_faults[n++] = (struct schema_fault){field, index, "must begin with http:// or https://"};
	if (strchr(url, '@') && n < max)
		ret_faults[n++] =
		        (struct schema_fault){field, index, "holds credentials: use basicAuth with a passwordFile"};
	return n;
}

static size_t check_source(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct source_spec *s = value;
	size_t n = 0;
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	if (s->name[strspn(s->name, letters)] != '\0' && n < max)
		ret_faults[n++] =
		        (struct schema_fault){"name", -1, "must be letters, digits, '_', '-' and '.', as in prom-eu"};
	bool http = false;
	if (!s->url && !s->n_urls && n < max)
		ret_faults[n++] = (struct schema_fault){"url", -1, "required: add url, or urls"};
	if (s->url && s->n_urls && n < max)
		ret_faults[n++] = (struct schema_fault){"urls", -1, "cannot stand beside url: keep one of them"};
	if (s->url)
		n += check_url(s->url, "url", -1, &http, ret_faults + n, max - n);
	for (size_t i = 0; i < s->n_urls; i++)
		n += check_url(s->urls[i], "urls", (int32_t)i, &http, ret_faults + n, max - n);
	if (http && s->tls_set && n < max)
		ret_faults[n++] = (struct schema_fault){"tls", -1, "has no meaning with http://: use https://"};
	if (s->identity && http && n < max)
		ret_faults[n++] = (struct schema_fault){"workloadIdentity", -1, "sends a token: use https://"};
	if (s->identity && (s->basic_set || s->bearer_token_file) && n < max)
		ret_faults[n++] = (struct schema_fault){
		        "workloadIdentity", -1, "cannot stand beside bearerTokenFile or basicAuth: keep one of them"};
	if (s->region && s->identity != PROMQL_IDENTITY_AMAZON && n < max)
		ret_faults[n++] = (struct schema_fault){"region", -1, "belongs to workloadIdentity: Amazon"};
	if (s->identity == PROMQL_IDENTITY_AMAZON && s->method == METHOD_GET && n < max)
		ret_faults[n++] = (struct schema_fault){"method", -1, "must be POST with workloadIdentity: Amazon"};
	if (s->basic_set && s->bearer_token_file && n < max)
		ret_faults[n++] =
		        (struct schema_fault){"basicAuth", -1, "cannot stand beside bearerTokenFile: keep one of them"};
	if (!s->tls.cert_file != !s->tls.key_file && n < max)
		ret_faults[n++] = (struct schema_fault){"tls", -1, "certFile and keyFile go together: add the other"};
	for (size_t i = 0; i < s->n_headers && n < max; i++)
		if (is_header_called(s->headers[i], "Authorization"))
			ret_faults[n++] = (struct schema_fault){
			        "headers", (int32_t)i,
			        "credentials do not stand in this file: use bearerTokenFile or basicAuth"};
		else if (s->tenant && is_header_called(s->headers[i], "X-Scope-OrgID"))
			ret_faults[n++] = (struct schema_fault){"headers", (int32_t)i,
			                                        "says what tenant says already: keep one of them"};
		else if (!strchr(s->headers[i], ':'))
			ret_faults[n++] =
			        (struct schema_fault){"headers", (int32_t)i, "must look like \"Name: value\""};
	return n + check_access(s, ret_faults + n, max - n);
}

static const struct schema source = {
        .name = "Sources.sources[]",
        .doc = "One server that speaks the Prometheus query API.",
        .struct_size = sizeof(struct source_spec),
        .fields = source_fields,
        .n_fields = COUNT_OF(source_fields),
        .validate = check_source,
};

static const struct schema_field list_fields[] = {
        {.name = "apiVersion",
         .type = SCHEMA_ENUM,
         .doc = "Version of this format.",
         FIELD(struct source_list, api_version),
         .required = true,
         .enum_names = api_versions},
        {.name = "kind",
         .type = SCHEMA_ENUM,
         .doc = "What this document is.",
         FIELD(struct source_list, kind),
         .required = true,
         .enum_names = kinds},
        {.name = "sources",
         .type = SCHEMA_LIST,
         .doc = "The servers.",
         FIELD(struct source_list, sources),
         .count_offset = offsetof(struct source_list, n_sources),
         .required = true,
         .min = 1,
         .max_items = PROMQL_SOURCES_MAX,
         .child = &source},
};

static size_t check_list(const void *value, struct schema_fault *ret_faults, size_t max)
{
	const struct source_list *l = value;
	size_t n = 0;
	for (size_t i = 1; i < l->n_sources && n < max; i++)
		for (size_t j = 0; j < i && n < max; j++)
			if (strcmp(l->sources[i].name, l->sources[j].name) == 0) {
				ret_faults[n++] = (struct schema_fault){"sources", (int32_t)i,
				                                        "has the name of another source: rename one"};
				break;
			}
	return n;
}

static const struct schema list_schema = {
        .name = PROMQL_SOURCES_KIND,
        .doc = "The servers that policies get their signals from.",
        .struct_size = sizeof(struct source_list),
        .fields = list_fields,
        .n_fields = COUNT_OF(list_fields),
        .validate = check_list,
};

const struct schema *promql_source_schema(void)
{
	return &list_schema;
}

// A name in a file means a place next to that file, wherever the program was started.
static int beside(struct arena *a, const char *file, const char *name, const char **ret)
{
	const char *slash = file ? strrchr(file, '/') : NULL;
	*ret = name;
	if (name && name[0] != '/' && slash)
		*ret = arena_printf(a, "%.*s/%s", (int)(slash - file), file, name);
	return name && !*ret ? -1 : 0;
}

static int to_options(const struct source_spec *s, const char *file, struct arena *a, struct promql_source_options *o)
{
	const char **headers = arena_calloc(a, s->n_headers + 1, sizeof *headers);
	const char **namespaces = arena_calloc(a, s->n_allowed_namespaces + 1, sizeof *namespaces);
	const char **more_urls = arena_calloc(a, s->n_urls + 1, sizeof *more_urls);
	if (!headers || !namespaces || !more_urls)
		return -1;
	for (size_t i = 1; i < s->n_urls; i++)
		more_urls[i - 1] = s->urls[i];
	if (s->n_allowed_namespaces)
		memcpy(namespaces, s->allowed_namespaces, s->n_allowed_namespaces * sizeof *namespaces);
	if (s->n_headers)
		memcpy(headers, s->headers, s->n_headers * sizeof *headers);
	*o = (struct promql_source_options){
	        .name = s->name,
	        .tenant = s->tenant,
	        .max_in_flight = s->max_concurrency,
	        .never_fuse = !s->fuse,
	        .more_urls = more_urls,
	        .max_disagreement = s->max_disagreement,
	        .access = {.namespaces = s->allowed_set ? namespaces : NULL, .label = s->namespace_label},
	        .query = {.url = s->url ? s->url : s->urls[0],
	                  .headers = headers,
	                  .basic_user = s->basic.username,
	                  .identity = (enum promql_identity)s->identity,
	                  .region = s->region,
	                  .kind = (enum promql_kind)s->type,
	                  .use_get = s->method == METHOD_GET,
	                  .timeout_ms = s->timeout_ms,
	                  .tls = {.server_name = s->tls.server_name,
	                          .insecure_skip_verify = s->tls.insecure_skip_verify}},
	};
	const struct {
		const char *name, **to;
	} files[] = {
	        {s->bearer_token_file, &o->query.bearer_token_file},
	        {s->basic.password_file, &o->query.basic_password_file},
	        {s->tls.ca_file, &o->query.tls.ca_file},
	        {s->tls.cert_file, &o->query.tls.cert_file},
	        {s->tls.key_file, &o->query.tls.key_file},
	};
	for (size_t i = 0; i < COUNT_OF(files); i++)
		if (beside(a, file, files[i].name, files[i].to) < 0)
			return -1;
	return 0;
}

int promql_source_decode(const struct doc_node *root, const char *file, struct arena *a, struct schema_errors *errors,
                         struct promql_source_options **ret_list, size_t *ret_n)
{
	struct source_list l = {0};
	*ret_list = NULL;
	*ret_n = 0;
	if (schema_decode(&list_schema, root, &l, a, errors, "") < 0)
		return -1;
	struct promql_source_options *list = arena_calloc(a, l.n_sources, sizeof *list);
	int rc = list ? 0 : -1;
	for (size_t i = 0; rc == 0 && i < l.n_sources; i++)
		rc = to_options(&l.sources[i], file, a, &list[i]);
	if (rc < 0) {
		schema_report(errors, root, "", "out of memory");
		return -1;
	}
	*ret_list = list;
	*ret_n = l.n_sources;
	return 0;
}

int promql_source_read(const char *path, struct arena *a, struct promql_source_options **ret_list, size_t *ret_n,
                       struct buf *report, struct err *e)
{
	struct doc_file doc;
	*ret_list = NULL;
	*ret_n = 0;
	if (doc_read_yaml(a, path, &doc, e) < 0)
		return -1;
	if (doc.n_roots != 1)
		return err_set(e, ERR_INPUT, "%s: has %zu documents; it must have one, of kind " PROMQL_SOURCES_KIND,
		               path, doc.n_roots);
	struct schema_errors *errors = malloc(sizeof *errors);
	if (!errors)
		return err_no_memory(e);
	schema_errors_init(errors, path);
	int rc = promql_source_decode(doc.roots[0], path, a, errors, ret_list, ret_n);
	if (rc < 0) {
		err_set(e, ERR_INPUT, "%s: %zu %s", path, errors->n + errors->dropped,
		        errors->n + errors->dropped == 1 ? "error" : "errors");
		schema_errors_print(errors, report);
	}
	free(errors);
	return rc;
}
