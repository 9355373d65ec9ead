// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a file of kind Sources becomes the options of the client, and every mistake in it is reported with
// its place, without a secret ever standing in it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "promql/promql_source_file.h"

#define HEAD "apiVersion: gpuscale.dev/v1alpha1\nkind: Sources\nsources:\n"

struct decoded {
	struct arena a;
	struct schema_errors errors;
	struct promql_source_options *list;
	size_t n;
	struct buf report;
};

static void decode(struct decoded *d, const char *text)
{
	struct doc_file doc;
	struct err e;
	arena_init(&d->a, 1 << 20);
	buf_init(&d->report, 1 << 16);
	schema_errors_init(&d->errors, "conf/sources.yaml");
	assert_int_equal(doc_parse_yaml(&d->a, "conf/sources.yaml", text, strlen(text), &doc, &e), 0);
	int rc = promql_source_decode(doc.roots[0], "conf/sources.yaml", &d->a, &d->errors, &d->list, &d->n);
	schema_errors_print(&d->errors, &d->report);
	assert_int_equal(rc, d->errors.n ? -1 : 0);
}

static void done(struct decoded *d)
{
	buf_done(&d->report);
	arena_done(&d->a);
}

static void every_field_arrives(void **state)
{
	(void)state;
	struct decoded d;
	decode(&d, HEAD "- {name: default, url: 'http://a:9090'}\n"
	                "- name: mimir\n"
	                "  url: https://mimir.example/prometheus\n"
	                "  type: Mimir\n"
	                "  tenant: team-a\n"
	                "  headers: ['X-A: 1', 'X-B: 2']\n"
	                "  basicAuth: {username: u, passwordFile: password}\n"
	                "  tls: {caFile: /etc/ca.pem, certFile: c.pem, keyFile: k.pem, serverName: m, "
	                "insecureSkipVerify: true}\n"
	                "  timeout: 3s\n"
	                "  maxConcurrency: 4\n"
	                "  method: GET\n"
	                "  allowedNamespaces: [team-a, '*']\n"
	                "  namespaceLabel: ns\n"
	                "- {name: b, url: 'http://b', bearerTokenFile: ../token, "
	                "allowedNamespaces: []}\n");
	assert_string_equal(buf_str(&d.report), "");
	assert_int_equal(d.n, 3);
	assert_string_equal(d.list[0].name, "default");
	assert_int_equal(d.list[0].query.kind, PROMQL_KIND_AUTO);
	assert_int_equal(d.list[0].query.timeout_ms, 10000);
	assert_int_equal(d.list[0].max_in_flight, 16);
	assert_false(d.list[0].query.use_get);
	const struct promql_source_options *m = &d.list[1];
	assert_int_equal(m->query.kind, PROMQL_KIND_MIMIR);
	assert_string_equal(m->tenant, "team-a");
	assert_string_equal(m->query.headers[1], "X-B: 2");
	assert_null(m->query.headers[2]);
	assert_string_equal(m->query.basic_user, "u");
	assert_string_equal(m->query.basic_password_file, "conf/password"); // beside the file
	assert_string_equal(m->query.tls.ca_file, "/etc/ca.pem");
	assert_string_equal(m->query.tls.cert_file, "conf/c.pem");
	assert_string_equal(m->query.tls.server_name, "m");
	assert_true(m->query.tls.insecure_skip_verify);
	assert_int_equal(m->query.timeout_ms, 3000);
	assert_int_equal(m->max_in_flight, 4);
	assert_true(m->query.use_get);
	assert_string_equal(m->access.namespaces[1], "*");
	assert_null(m->access.namespaces[2]);
	assert_string_equal(m->access.label, "ns");
	assert_null(d.list[0].access.namespaces);
	assert_non_null(d.list[2].access.namespaces); // configured, and empty
	assert_null(d.list[2].access.namespaces[0]);
	assert_string_equal(d.list[2].query.bearer_token_file, "conf/../token");
	done(&d);
}

static void mistakes_have_a_place_and_a_fix(void **state)
{
	(void)state;
	static const struct {
		const char *text, *says;
	} rows[] = {
	        {"apiVersion: gpuscale.dev/v1alpha1\nkind: Sources\nsources: []\n", ":3:"},
	        {HEAD "- {name: a, url: 'http://a', typ: Mimir}\n",
	         ":4:30: sources[0].typ: unknown field: did you mean type?"},
	        {HEAD "- {name: a, url: 'http://a', type: mimr}\n", "did you mean Mimir"},
	        {HEAD "- {name: a b, url: 'http://a'}\n", "sources[0].name: must be letters"},
	        {HEAD "- {url: 'http://a'}\n", "sources[0].name: required"},
	        {HEAD "- {name: a}\n", "sources[0].url: required: add url, or urls"},
	        {HEAD "- {name: a, url: 'http://a', urls: ['http://b']}\n", "sources[0].urls: cannot stand beside url"},
	        {HEAD "- {name: a, urls: ['http://a', 'b:9090']}\n", "sources[0].urls[1]: must begin with http:// or"},
	        {HEAD "- {name: a, urls: ['http://a', 'https://u:hunter2@b']}\n", "holds credentials"},
	        {HEAD "- {name: a, urls: []}\n", "sources[0].urls"},
	        {HEAD "- {name: a, urls: ['http://a', 'http://b', 'http://c', 'http://d', 'http://e']}\n",
	         "sources[0].urls"},
	        {HEAD "- {name: a, url: 'a:9090'}\n", "sources[0].url: must begin with http:// or https://"},
	        {HEAD "- {name: a, url: 'https://u:hunter2@a'}\n", "holds credentials: use basicAuth"},
	        {HEAD "- {name: a, url: 'http://a', tls: {caFile: x}}\n",
	         "sources[0].tls: has no meaning with http://"},
	        {HEAD "- {name: a, url: 'https://a', tls: {certFile: x}}\n", "certFile and keyFile go together"},
	        {HEAD "- {name: a, url: 'http://a', bearerTokenFile: t, basicAuth: {username: u, passwordFile: p}}\n",
	         "cannot stand beside bearerTokenFile"},
	        {HEAD "- {name: a, url: 'http://a', basicAuth: {username: u}}\n", "basicAuth.passwordFile: required"},
	        {HEAD "- {name: a, url: 'http://a', headers: ['authorization: Bearer hunter2']}\n",
	         "sources[0].headers[0]: credentials do not stand in this file"},
	        {HEAD "- {name: a, url: 'http://a', tenant: x, headers: ['X-Scope-OrgID: y']}\n",
	         "says what tenant says already"},
	        {HEAD "- {name: a, url: 'http://a', headers: [x]}\n", "must look like \"Name: value\""},
	        {HEAD "- {name: a, url: 'http://a', maxConcurrency: 257}\n", "256"},
	        {HEAD "- {name: a, url: 'http://a', allowedNamespaces: [x, Team]}\n",
	         "sources[0].allowedNamespaces[1]: is not a valid namespace"},
	        {HEAD "- {name: a, url: 'http://a', namespaceLabel: __name__}\n",
	         "sources[0].namespaceLabel: must be a label of letters, digits and '_'"},
	        {HEAD "- {name: a, url: 'http://a'}\n- {name: a, url: 'http://b'}\n",
	         ":5:3: sources[1]: has the name of another source"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct decoded d;
		decode(&d, rows[i].text);
		if (!strstr(buf_str(&d.report), rows[i].says))
			fail_msg("row %zu: \"%s\" does not say \"%s\"", i, buf_str(&d.report), rows[i].says);
		assert_null(strstr(buf_str(&d.report), "hunter2"));
		done(&d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_field_arrives),
	        cmocka_unit_test(mistakes_have_a_place_and_a_fix),
	};
	return cmocka_run_group_tests_name("promql_source_file", tests, NULL, NULL);
}
