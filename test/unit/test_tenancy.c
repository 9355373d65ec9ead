// SPDX-License-Identifier: Apache-2.0
// Goal: every query of a policy passes the access rules of its source, in a tick and in a refill: a query of a
// namespace that is not permitted is never sent, and a confined query reads only its own namespace, also for the age of
// the data.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event2/event.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/tick/observe.h"
#include "controller/tick/refill.h"
#include "policies/engine/decide.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "promql/promql_source.h"
#include "runtime/query/query_hub.h"
#include "test/support/loop.h"
#include "test/support/promql_fixture.h"

// ---- who may ask ----

struct access_row {
	const char *what;
	struct promql_source_options options;
	bool has_second; // another source is configured
	bool a, b;       // namespaces that may query the source
};

static const char *const none[] = {NULL}, *const only_a[] = {"a", NULL}, *const both[] = {"b", "a", NULL},
                         *const all[] = {"*", NULL}, *const headers[] = {"X-Key: 1", NULL};

static const struct access_row access_rows[] = {
        {"one source without credentials", {.name = "p"}, false, true, true},
        {"no namespace is named", {.name = "p", .access.namespaces = none}, false, false, false},
        {"one namespace is named", {.name = "p", .access.namespaces = only_a}, false, true, false},
        {"two are named", {.name = "p", .access.namespaces = both}, true, true, true},
        {"all are named", {.name = "p", .access.namespaces = all}, true, true, true},
        {"one of two sources", {.name = "p"}, true, false, false},
        {"a token", {.name = "p", .query.bearer_token = "t"}, false, false, false},
        {"a header", {.name = "p", .query.headers = headers}, false, false, false},
        {"a tenant", {.name = "p", .tenant = "t"}, false, false, false},
        {"a token, and all are named",
         {.name = "p", .query.bearer_token = "t", .access.namespaces = all},
         false,
         true,
         true},
};

static void source_admits_whom_it_names(void **state)
{
	struct promql_fixture *f = *state;
	for (size_t i = 0; i < sizeof access_rows / sizeof access_rows[0]; i++) {
		const struct access_row *row = &access_rows[i];
		struct promql_source_options list[2] = {row->options, {.name = "second", .query.url = f->url}};
		struct err e = {0};
		list[0].query.url = f->url;
		struct promql_sources *s = promql_sources_new(f->loop, &f->clock, list, row->has_second ? 2 : 1, &e);
		if (!s)
			fail_msg("%s: %s", row->what, e.msg);
		const char *a = promql_sources_admit(s, "p", "a", "up", NULL, NULL, &e);
		const char *b = promql_sources_admit(s, "p", "b", "up", NULL, NULL, &e);
		if ((a != NULL) != row->a || (b != NULL) != row->b)
			fail_msg("%s: a %d, b %d: %s", row->what, a != NULL, b != NULL, e.msg);
		if (!b) {
			assert_int_equal(e.kind, ERR_AUTH);
			assert_non_null(strstr(e.msg, "policies of namespace b may not ask source p"));
		}
		bool is_stated = row->options.access.namespaces != NULL;
		assert_int_equal(s->items[0]->access->is_closed, !row->a && !is_stated);
		promql_sources_free(s);
	}
}

static void bad_rules_are_refused(void **state)
{
	struct promql_fixture *f = *state;
	static const char *const upper[] = {"Team", NULL}, *const blank[] = {"", NULL},
	                         *const glob[] = {"team-*", NULL};
	const struct promql_access_options rows[] = {{.namespaces = upper}, {.namespaces = blank}, {.namespaces = glob},
	                                             {.label = ""},         {.label = "__name__"}, {.label = "a-b"}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const struct promql_source_options o = {.name = "p", .query.url = f->url, .access = rows[i]};
		struct err e = {0};
		assert_null(promql_sources_new(f->loop, &f->clock, &o, 1, &e));
		assert_int_equal(e.kind, ERR_INPUT);
	}
}

// ---- what reaches the server ----

struct world {
	struct promql_fixture *f;
	struct promql_sources *sources;
	struct query_hub *hub;
	struct arena arena;
	struct policy_document document;
	struct binding binding;
	struct observation_call call;
	struct refill_call refill;
	int n_observed, n_refilled;
};

static void on_observed(void *arg, struct observation_call *c)
{
	struct world *w = arg;
	(void)c;
	w->n_observed++;
}

static void on_refilled(void *arg, bool ok, const struct err *error)
{
	struct world *w = arg;
	(void)ok;
	(void)error;
	w->n_refilled++;
}

static void read_policy(struct world *w, const char *namespace_name, const char *query)
{
	struct doc_file doc;
	struct err e = {0};
	static struct schema_errors errors;
	char text[1024];
	snprintf(
	        text, sizeof text,
	        "apiVersion: gpuscale.dev/v1alpha1\nkind: GPUAutoscaler\nmetadata: {name: p, namespace: %s}\n"
	        "spec:\n  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n"
	        "  minReplicas: 1\n  maxReplicas: 9\n  interval: 15s\n  signals:\n"
	        "  - {name: s, query: '%s', target: {type: Value, value: 1}, window: {duration: 1m, aggregate: Avg}}\n",
	        namespace_name, query);
	schema_errors_init(&errors, "p");
	w->document = (struct policy_document){0};
	if (doc_parse_yaml(&w->arena, "p", text, strlen(text), &doc, &e) < 0 ||
	    policy_decode(doc.roots[0], &w->document, &w->arena, &errors) < 0)
		fail_msg("%s %s", e.msg, errors.n ? errors.items[0].message : "");
}

// Observes and refills one policy of the namespace; w->f->requests has the queries that were sent.
static void run(struct world *w, void **state, const struct promql_access_options *access, const char *namespace_name,
                const char *query)
{
	struct promql_fixture *f = *state;
	struct err e = {0};
	*w = (struct world){.f = f};
	f->n_requests = 0;
	arena_init(&w->arena, 1 << 20);
	const struct promql_source_options o = {
	        .name = "p", .query = {.url = f->url, .kind = PROMQL_KIND_PROMETHEUS}, .access = *access};
	w->sources = promql_sources_new(f->loop, &f->clock, &o, 1, &e);
	assert_non_null(w->sources);
	w->hub = query_hub_new(w->sources);
	read_policy(w, namespace_name, query);
	const struct observe_sources from = {.queries = w->hub, .given_replicas = 2};
	w->binding = (struct binding){.policy = &w->document.policy, .target = &w->document.target};
	observe_start(&w->call, &from, &w->binding, 60000, on_observed, w);
	assert_true(test_loop_until(f->loop, &w->n_observed, 1, 5000));
	void *past = calloc(1, decide_state_bytes(&w->document.policy));
	decide_state_init(&w->document.policy, past);
	refill_start(&w->refill, w->sources, &w->document.policy, past, 2, 600000, on_refilled, w);
	assert_true(test_loop_until(f->loop, &w->n_refilled, 1, 5000));
	free(past);
}

static void end(struct world *w)
{
	observe_release(&w->call);
	promql_sources_cancel(w->sources);
	query_hub_flush(w->hub);
	query_hub_free(w->hub);
	promql_sources_free(w->sources);
	arena_done(&w->arena);
}

static size_t count(const char *text, const char *part)
{
	size_t n = 0;
	for (; (text = strstr(text, part)); text += strlen(part))
		n++;
	return n;
}

static void policy_outside_the_allowed_namespaces_sends_nothing(void **state)
{
	const struct promql_access_options access = {.namespaces = only_a};
	struct world w;
	run(&w, state, &access, "b", "gpu");
	assert_int_equal(w.f->n_requests, 0);
	assert_int_equal(w.call.signals[0].state, OBS_FORBIDDEN);
	assert_non_null(strstr(w.call.details[0], "policies of namespace b may not ask source p"));
	end(&w);
	run(&w, state, &access, "a", "gpu");
	assert_int_equal(w.f->n_requests, 2);
	assert_int_equal(w.call.signals[0].state, OBS_OK);
	end(&w);
}

static void confined_query_reads_its_namespace_and_so_does_its_age(void **state)
{
	const struct promql_access_options access = {.namespaces = all, .label = "ns"};
	struct world w;
	run(&w, state, &access, "b", "load + used{x=\"y\"}");
	assert_int_equal(w.f->n_requests, 2);
	for (size_t i = 0; i < w.f->n_requests; i++) {
		const char *body = w.f->requests[i].body;
		size_t selectors = count(body, "load") + count(body, "used");
		assert_int_equal(selectors, i == 0 ? 4 : 2); // once more for the age of the data
		assert_int_equal(count(body, "ns%3D%22b%22%7D"), selectors);
	}
	end(&w);
}

static void query_that_cannot_be_confined_is_not_sent(void **state)
{
	static const char *const queries[] = {"gpu{ns=\"a\"}", "info(gpu)", "gpu default 0",
	                                      "gpu{a=\"b\" or ns=\"a\"}"};
	const struct promql_access_options access = {.namespaces = all, .label = "ns"};
	struct world w;
	for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++) {
		run(&w, state, &access, "b", queries[i]);
		assert_int_equal(w.f->n_requests, 0);
		assert_int_equal(w.call.signals[0].state, OBS_FORBIDDEN);
		assert_true(w.call.details[0][0] == '1' && w.call.details[0][1] == ':'); // the position
		end(&w);
	}
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, promql_fixture_setup, promql_fixture_teardown)
	const struct CMUnitTest tests[] = {
	        TEST(source_admits_whom_it_names),
	        TEST(bad_rules_are_refused),
	        TEST(policy_outside_the_allowed_namespaces_sends_nothing),
	        TEST(confined_query_reads_its_namespace_and_so_does_its_age),
	        TEST(query_that_cannot_be_confined_is_not_sent),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
