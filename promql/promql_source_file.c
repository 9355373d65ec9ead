// SPDX-License-Identifier: Apache-2.0
#include "promql/promql_source_file.h"

#include <strings.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/schema/doc.h"
#include "base/schema/schema_rows.h"
#include "promql/confine.h"

#define FILE_NAME_MAX 4096

// The options as they are decoded, and what is converted to some of them in complete_options.
struct source_spec {
	struct promql_source_options o;
	const char **urls, **headers, **allowed_namespaces;
	size_t n_urls, n_headers, n_allowed_namespaces;
	int method;
	bool allowed_set, basic_set, tls_set, fuse;
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

// clang-format off
static const struct schema_field basic_fields[] = {
	{ROW("username", STRING),     FIELD(struct source_spec, o.query.basic_user),          REQUIRED, RANGE(1, 1024),          DOC("The user.")},
	{ROW("passwordFile", STRING), FIELD(struct source_spec, o.query.basic_password_file), REQUIRED, RANGE(1, FILE_NAME_MAX), DOC("File with the password, read again every minute and when the server refuses it.")},
};
// The children's offsets are those of the source itself.
static const struct schema basic = {SCHEMA("Sources.sources[].basicAuth", struct source_spec, basic_fields), DOC("User and password.")};

static const struct schema_field tls_fields[] = {
	{ROW("caFile", STRING),           FIELD(struct source_spec, o.query.tls.ca_file),              OPTIONAL,         RANGE(1, FILE_NAME_MAX), DOC("CA certificates to trust instead of the system's.")},
	{ROW("certFile", STRING),         FIELD(struct source_spec, o.query.tls.cert_file),            OPTIONAL,         RANGE(1, FILE_NAME_MAX), DOC("Client certificate; with keyFile.")},
	{ROW("keyFile", STRING),          FIELD(struct source_spec, o.query.tls.key_file),             OPTIONAL,         RANGE(1, FILE_NAME_MAX), DOC("Its private key.")},
	{ROW("serverName", STRING),       FIELD(struct source_spec, o.query.tls.server_name),          OPTIONAL,         RANGE(1, 253),           DOC("Name expected in the server's certificate, if it is not the URL's.")},
	{ROW("insecureSkipVerify", BOOL), FIELD(struct source_spec, o.query.tls.insecure_skip_verify), DEFAULT("false"),                          DOC("Do not verify the server's certificate: any server that answers then decides how far the targets are scaled.")},
};
static const struct schema tls = {SCHEMA("Sources.sources[].tls", struct source_spec, tls_fields), DOC("Whom to trust, and who we are.")};

static const struct schema_field source_fields[] = {
	{ROW("name", STRING),                   FIELD(struct source_spec, o.name),                                                         REQUIRED,        RANGE(1, PROMQL_SOURCE_NAME_MAX),        DOC("What policies call it in signals[].source: letters, digits, '_', '-' and '.'. The one called default is asked by signals that name none.")},
	{ROW("url", STRING),                    FIELD(struct source_spec, o.query.url),                                                    OPTIONAL,        RANGE(1, 2048),                          DOC("Base URL, with a path prefix where there is one: http://prometheus:9090, https://mimir.example/prometheus. No credentials in it.")},
	{ROW("urls", STRING_LIST),              FIELD_LIST(struct source_spec, urls, n_urls),                                              OPTIONAL,        ITEMS(1, PROMQL_URLS_MAX),               DOC("Instead of url: servers that hold the same data, such as the two of a highly available pair. Each query is sent to all of them, and the newest sample is used; a signal is missing only when none of them answers.")},
	{ROW("maxDisagreement", QUANTITY),      FIELD(struct source_spec, o.max_disagreement),                                             DEFAULT("0.2"),  RANGE(0, 1),                             DOC("With urls: the relative difference between two current values of a query above which the servers count as disagreeing, which is logged and counted.")},
	{ROW("type", ENUM),                     FIELD(struct source_spec, o.query.kind),                                                   DEFAULT("Auto"), ONE_OF(promql_kind_names),               DOC("Whose query API it is. Auto asks /api/v1/status/buildinfo; behind a gateway that hides it, say it.")},
	{ROW("tenant", STRING),                 FIELD(struct source_spec, o.tenant),                                                       OPTIONAL,        RANGE(1, 150),                           DOC("Tenant of Mimir or Thanos, sent as X-Scope-OrgID. (The tenants of a VictoriaMetrics cluster are part of the URL.)")},
	{ROW("headers", STRING_LIST),           FIELD_LIST(struct source_spec, headers, n_headers),                                        OPTIONAL,        ITEMS(0, 32),                            DOC("More request headers, each \"Name: value\". Not for secrets: those belong in files.")},
	{ROW("bearerTokenFile", STRING),        FIELD(struct source_spec, o.query.bearer_token_file),                                      OPTIONAL,        RANGE(1, FILE_NAME_MAX),                 DOC("File with a bearer token, read again every minute and when the server refuses it.")},
	{ROW("basicAuth", OBJECT),              IN_PARENT_SET(struct source_spec, basic_set),                                              OPTIONAL,        CHILD(basic),                            DOC("User and password instead of a token.")},
	{ROW("workloadIdentity", ENUM),         FIELD(struct source_spec, o.query.identity),                                               DEFAULT("None"), ONE_OF(promql_identity_names),           DOC("The cloud of a managed Prometheus, to which the controller authenticates with the identity of its own pod instead of a secret: Google (metadata server), Amazon (requests signed with the credentials of IRSA or EKS Pod Identity) or Azure (federated token). Needs https.")},
	{ROW("region", STRING),                 FIELD(struct source_spec, o.query.region),                                                 OPTIONAL,        RANGE(1, PROMQL_REGION_MAX - 1),         DOC("With Amazon: the region of the workspace. Without it $AWS_REGION.")},
	{ROW("tls", OBJECT),                    IN_PARENT_SET(struct source_spec, tls_set),                                                OPTIONAL,        CHILD(tls),                              DOC("For https.")},
	{ROW("allowedNamespaces", STRING_LIST), FIELD_LIST_SET(struct source_spec, allowed_namespaces, n_allowed_namespaces, allowed_set), OPTIONAL,        ITEMS(0, PROMQL_ACCESS_NAMESPACES_MAX),  DOC("Namespaces whose policies may ask this source; \"*\" stands for all of them. Without the field all may if it is the only source and has no credentials (token, user, client certificate, headers, tenant), and otherwise none.")},
	{ROW("namespaceLabel", STRING),         FIELD(struct source_spec, o.access.label),                                                 OPTIONAL,        RANGE(1, PROMQL_ACCESS_LABEL_BYTES - 1), DOC("Label that confines queries: every selector of a query gets this label with the namespace of the policy as its value, and a query that cannot be rewritten with certainty is not asked.")},
	{ROW("timeout", DURATION_MS),           FIELD(struct source_spec, o.query.timeout_ms),                                             DEFAULT("10s"),  RANGE(1, 300000),                        DOC("Deadline of one query, waiting for its turn included.")},
	{ROW("maxConcurrency", INT32),          FIELD(struct source_spec, o.max_in_flight),                                                DEFAULT("16"),   RANGE(1, PROMQL_CONCURRENCY_MAX),        DOC("Concurrent queries.")},
	{ROW("fuse", BOOL),                     FIELD(struct source_spec, fuse),                                                           DEFAULT("true"),                                          DOC("Asks queries of one tick that were answered well before in one request, up to 16. false for servers that bill, limit or log by the query.")},
	{ROW("method", ENUM),                   FIELD(struct source_spec, method),                                                         DEFAULT("POST"), ONE_OF(methods),                         DOC("GET for gateways that allow nothing else; queries are then limited by the length of a URL.")},
};
// clang-format on

static void check_access(const struct source_spec *s, struct fault_list *l)
{
	const char *one[] = {NULL, NULL};
	for (size_t i = 0; i < s->n_allowed_namespaces; i++) {
		one[0] = s->allowed_namespaces[i];
		struct promql_access *a =
		        promql_access_new(&(struct promql_access_options){.namespaces = one}, false, NULL);
		if (!a)
			fault_add(l, "allowedNamespaces", (int32_t)i,
			          "is not a valid namespace: write its name, or \"*\" for every namespace");
		promql_access_free(a);
	}
	if (s->o.access.label && !confine_label_is_valid(s->o.access.label))
		fault_add(l, "namespaceLabel", -1,
		          "must be a label of letters, digits and '_', such as namespace, and not __name__");
}

static bool is_header_called(const char *header, const char *name)
{
	size_t n = strlen(name);
	return strncasecmp(header, name, n) == 0 && header[n] == ':';
}

static void check_header(const struct source_spec *s, int32_t index, struct fault_list *l)
{
	const char *header = s->headers[index];
	if (is_header_called(header, "Authorization"))
		fault_add(l, "headers", index,
		          "credentials do not stand in this file: use bearerTokenFile or basicAuth");
	else if (s->o.tenant && is_header_called(header, "X-Scope-OrgID"))
		fault_add(l, "headers", index, "says what tenant says already: keep one of them");
	else if (!strchr(header, ':'))
		fault_add(l, "headers", index, "must look like \"Name: value\"");
}

// Sets *http when the URL is not one of https.
static void check_url(const char *url, const char *field, int32_t index, bool *http, struct fault_list *l)
{
	bool is_http = strncmp(url, "http://", 7) == 0;
	*http |= is_http;
	if (!is_http && strncmp(url, "https://", 8) != 0)
		fault_add(l, field, index, "must begin with http:// or https://");
	if (strchr(url, '@'))
		fault_add(l, field, index, "holds credentials: use basicAuth with a passwordFile");
}

static void check_source(const void *value, struct fault_list *l)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	const struct source_spec *s = value;
	bool http = false, is_amazon = s->o.query.identity == PROMQL_IDENTITY_AMAZON;
	const struct promql_options *q = &s->o.query;
	if (q->url)
		check_url(q->url, "url", -1, &http, l);
	for (size_t i = 0; i < s->n_urls; i++)
		check_url(s->urls[i], "urls", (int32_t)i, &http, l);
	// clang-format off
	const struct fault_rule rules[] = {
		{s->o.name[strspn(s->o.name, letters)] != '\0',            "name",             "must be letters, digits, '_', '-' and '.', as in prom-eu"},
		{!q->url && !s->n_urls,                                    "url",              "required: add url, or urls"},
		{q->url && s->n_urls,                                      "urls",             "cannot stand beside url: keep one of them"},
		{http && s->tls_set,                                       "tls",              "has no meaning with http://: use https://"},
		{q->identity && http,                                      "workloadIdentity", "sends a token: use https://"},
		{q->identity && (s->basic_set || q->bearer_token_file),    "workloadIdentity", "cannot stand beside bearerTokenFile or basicAuth: keep one of them"},
		{q->region && !is_amazon,                                  "region",           "belongs to workloadIdentity: Amazon"},
		{is_amazon && s->method == METHOD_GET,                     "method",           "must be POST with workloadIdentity: Amazon"},
		{s->basic_set && q->bearer_token_file,                     "basicAuth",        "cannot stand beside bearerTokenFile: keep one of them"},
		{!q->tls.cert_file != !q->tls.key_file,                    "tls",              "certFile and keyFile go together: add the other"},
	};
	// clang-format on
	fault_add_broken(l, rules, COUNT_OF(rules));
	for (size_t i = 0; i < s->n_headers; i++)
		check_header(s, (int32_t)i, l);
	check_access(s, l);
}

static void check_list(const void *value, struct fault_list *faults)
{
	const struct source_list *l = value;
	for (size_t i = 1; i < l->n_sources; i++)
		for (size_t j = 0; j < i; j++)
			if (strcmp(l->sources[i].o.name, l->sources[j].o.name) == 0) {
				fault_add(faults, "sources", (int32_t)i, "has the name of another source: rename one");
				break;
			}
}

// clang-format off
static const struct schema source = {SCHEMA("Sources.sources[]", struct source_spec, source_fields), VALIDATE(check_source), DOC("One server that speaks the Prometheus query API.")};

static const struct schema_field list_fields[] = {
	{ROW("apiVersion", ENUM), FIELD(struct source_list, api_version),             REQUIRED, ONE_OF(api_versions),                        DOC("Version of this format.")},
	{ROW("kind", ENUM),       FIELD(struct source_list, kind),                    REQUIRED, ONE_OF(kinds),                               DOC("What this document is.")},
	{ROW("sources", LIST),    FIELD_LIST(struct source_list, sources, n_sources), REQUIRED, ITEMS(1, PROMQL_SOURCES_MAX), CHILD(source), DOC("The servers.")},
};
const struct schema promql_source_schema = {SCHEMA(PROMQL_SOURCES_KIND, struct source_list, list_fields), VALIDATE(check_list), DOC("The servers that policies get their signals from.")};
// clang-format on

// Fills *o with the options of a source in the file `file`.
static int complete_options(const struct source_spec *s, const char *file, struct arena *a,
                            struct promql_source_options *o)
{
	*o = s->o;
	o->never_fuse = !s->fuse;
	o->more_urls = s->n_urls ? s->urls + 1 : NULL; // lists end with NULL
	o->access.namespaces = s->allowed_set ? s->allowed_namespaces : NULL;
	o->query.url = s->n_urls ? s->urls[0] : o->query.url;
	o->query.headers = s->headers;
	o->query.use_get = s->method == METHOD_GET;
	const char **const files[] = {&o->query.bearer_token_file, &o->query.basic_password_file, &o->query.tls.ca_file,
	                              &o->query.tls.cert_file, &o->query.tls.key_file};
	for (size_t i = 0; i < COUNT_OF(files); i++)
		if (file && *files[i] && !(*files[i] = arena_path_beside(a, file, *files[i])))
			return -1;
	return 0;
}

int promql_source_decode(const struct doc_node *root, const char *file, struct arena *a, struct schema_errors *errors,
                         struct promql_source_options **ret_list, size_t *ret_n)
{
	struct source_list l = {0};
	*ret_list = NULL;
	*ret_n = 0;
	if (schema_decode(&promql_source_schema, root, &l, a, errors, "") < 0)
		return -1;
	struct promql_source_options *list = arena_calloc(a, l.n_sources, sizeof *list);
	int rc = list ? 0 : -1;
	for (size_t i = 0; rc == 0 && i < l.n_sources; i++)
		rc = complete_options(&l.sources[i], file, a, &list[i]);
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
	if (doc_read_yaml(a, path, false, &doc, e) < 0)
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
