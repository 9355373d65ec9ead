// SPDX-License-Identifier: Apache-2.0
#include "controller/endpoints.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/exposition.h"
#include "base/http_server.h"
#include "base/json_write.h"
#include "controller/controller.h"
#include "controller/history.h"
#include "controller/metrics.h"
#include "controller/overview_endpoints.h"
#include "controller/policy_store.h"
#include "controller/policy_watch.h"
#include "controller/query_hub.h"
#include "controller/reconcile.h"
#include "controller/render.h"
#include "controller/shards.h"
#include "controller/status_writer.h"
#include "k8s/event_recorder.h"
#include "k8s/target_store.h"
#include "policies/policy_schema.h"
#include "promql/promql_source.h"

bool endpoint_is_read(struct http_exchange *x)
{
	const char *m = http_exchange_method(x);
	if (strcmp(m, "GET") == 0 || strcmp(m, "HEAD") == 0)
		return true;
	http_exchange_set_header(x, "Allow", "GET, HEAD");
	http_exchange_reply_text(x, 405, "method not allowed\n");
	return false;
}

void endpoint_reply(struct http_exchange *x, int status, const char *type, struct buf *body)
{
	if (body->failed)
		http_exchange_reply_text(x, 500, "the reply is larger than its ceiling\n");
	else
		http_exchange_reply(x, status, type, buf_str(body), body->len);
	buf_done(body);
}

// Alive: the loop turns, or this would not run.
static void get_livez(void *arg, struct http_exchange *x)
{
	(void)arg;
	if (endpoint_is_read(x))
		http_exchange_reply_text(x, 200, "ok\n");
}

static void write_sources(struct buf *b, const struct promql_sources *sources)
{
	for (size_t i = 0; i < promql_sources_count(sources); i++) {
		const struct promql_source *s = promql_sources_at(sources, i);
		enum promql_health_state state = promql_source_health(s)->state;
		const char *error = promql_source_error(s);
		buf_printf(b, "[%c]source %s is %s%s%s (informative)\n", state == PROMQL_DOWN ? '-' : '+',
		           promql_source_name(s), promql_health_name(state), error[0] ? ": " : "", error);
	}
}

static void write_shards(struct buf *b, const struct shards *shards)
{
	if (!shards)
		return;
	struct shards_view s;
	shards_get_view(shards, &s);
	buf_printf(b, "[%c]leases %d of %d are held by %s%s%s (informative)\n", s.error[0] ? '-' : '+', s.n_owned,
	           s.n_shards, s.identity, s.error[0] ? ": " : "", s.error);
}

static void write_targets(struct buf *b, const struct target_store *targets)
{
	struct target_store_stats s = {0};
	if (targets)
		target_store_get_stats(targets, &s);
	if (s.broken_why)
		buf_printf(b, "[-]targets %zu of %zu watches do not work, so each tick reads: %s (informative)\n",
		           s.broken, s.watches, s.broken_why);
	else if (targets)
		buf_printf(b, "[+]targets %zu known from %zu watches (informative)\n", s.targets, s.watches);
}

// Ready: the policies are known, and each had a tick (no policy yet is no fault). A source that is away is no reason to
// be taken out of service: holding is the job then.
static void get_readyz(void *arg, struct http_exchange *x)
{
	if (!endpoint_is_read(x))
		return;
	struct controller_view v;
	controller_get_view(arg, &v);
	size_t ticked;
	bool ready = controller_is_ready(arg, &ticked);
	bool listed = !v.from_cluster || v.is_synced; // else it is not known what there is to do
	struct buf b;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	if (http_exchange_query(x, "verbose")) {
		buf_printf(&b, "[+]policies %zu in force, %zu invalid, %zu wait (informative)\n", v.n_reconcilers,
		           v.n_invalid, v.n_waiting);
		write_shards(&b, v.shards);
		buf_printf(&b, "[%c]ticks %zu of %zu policies had one\n", ready ? '+' : '-', ticked, v.n_reconcilers);
		if (v.from_cluster)
			buf_printf(&b, "[%c]watch %s\n", listed && !v.watch_error[0] ? '+' : '-',
			           v.watch_error[0] ? v.watch_error
			           : listed         ? "of the policies is open"
			                            : "of the policies has not begun");
		write_targets(&b, v.targets);
		write_sources(&b, query_hub_sources(v.queries));
		buf_printf(&b, "[%c]reload %s (informative)\n", v.reload_failed ? '-' : '+',
		           v.reload_failed ? "failed; the last good policies stay in force" : "ok");
		buf_puts(&b, v.reload_report);
	}
	buf_puts(&b, ready ? "ok\n" : "not ready\n");
	endpoint_reply(x, ready ? 200 : 503, "text/plain; charset=utf-8", &b);
}

// The watches behind the targets, as one.
static struct metrics_watch targets_watch(const struct target_store *targets)
{
	struct target_store_stats s;
	target_store_get_stats(targets, &s);
	return (struct metrics_watch){"targets",
	                              {.is_synced = s.unsynced == 0,
	                               .is_streaming = s.broken == 0,
	                               .lists = s.lists,
	                               .streams = s.streams,
	                               .events = s.events,
	                               .gone = s.gone}};
}

static void get_metrics(void *arg, struct http_exchange *x)
{
	if (!endpoint_is_read(x))
		return;
	struct controller_view v;
	controller_get_view(arg, &v);
	struct metrics_policy *policies = calloc(v.n_reconcilers ? v.n_reconcilers : 1, sizeof *policies);
	if (!policies) {
		http_exchange_reply_text(x, 500, "out of memory\n");
		return;
	}
	for (size_t i = 0; i < v.n_reconcilers; i++) {
		const char *const *details;
		policies[i] = (struct metrics_policy){reconciler_policy(v.reconcilers[i]),
		                                      reconciler_decision(v.reconcilers[i], &details)};
	}
	struct metrics_view mv = {.policies = policies,
	                          .n_policies = v.n_reconcilers,
	                          .n_bad_files = v.n_bad_files,
	                          .n_invalid = v.n_invalid,
	                          .n_waiting = v.n_waiting,
	                          .queries = v.queries,
	                          .dry_run = v.dry_run};
	struct metrics_watch watches[2];
	mv.watches = watches;
	if (v.watch)
		watches[mv.n_watches++] = (struct metrics_watch){POLICY_WATCH_PLURAL, policy_watch_stats(v.watch)};
	if (v.targets)
		watches[mv.n_watches++] = targets_watch(v.targets);
	struct status_writer_stats status;
	struct event_recorder_stats events;
	if (v.status_writer) {
		status_writer_get_stats(v.status_writer, &status);
		mv.status = &status;
	}
	if (v.event_recorder) {
		event_recorder_get_stats(v.event_recorder, &events);
		mv.events = &events;
	}
	struct shards_view shards;
	if (v.shards) {
		shards_get_view(v.shards, &shards);
		mv.shards = &shards;
	}
	struct buf b;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	metrics_render(v.metrics, &mv, &b);
	free(policies);
	endpoint_reply(x, 200, EXPOSITION_CONTENT_TYPE, &b);
}

static bool is_asked_for(const char *only, const char *namespace_name, const char *name)
{
	char key[512];
	snprintf(key, sizeof key, "%s/%s", namespace_name, name);
	return !only || strcmp(only, key) == 0;
}

static void write_error(struct json_writer *w, const char *namespace_name, const char *name, const char *error)
{
	json_write_object_begin(w);
	json_write_key(w, "namespace");
	json_write_str(w, namespace_name);
	json_write_key(w, "name");
	json_write_str(w, name);
	json_write_key(w, "error");
	json_write_str(w, error);
	json_write_object_end(w);
}

static void write_decisions(struct json_writer *w, const struct controller_view *v, const char *only)
{
	for (size_t i = 0; i < v->n_reconcilers; i++) {
		struct decided d = {.policy = reconciler_policy(v->reconcilers[i])};
		d.decision = reconciler_decision(v->reconcilers[i], &d.details);
		if (d.decision && is_asked_for(only, d.policy->namespace_name, d.policy->name))
			render_decision_json(w, &d);
	}
}

static void write_errors(struct json_writer *w, struct controller *controller, const struct controller_view *v,
                         const char *only)
{
	for (size_t i = 0; i < v->n_reconcilers; i++) {
		const struct policy *p = reconciler_policy(v->reconcilers[i]);
		const char *error = reconciler_error(v->reconcilers[i]);
		if (error[0] && is_asked_for(only, p->namespace_name, p->name))
			write_error(w, p->namespace_name, p->name, error);
	}
	char why[POLICY_ERROR_BYTES_MAX];
	for (const struct policy_entry *e = NULL; (e = controller_next_idle(controller, e, why, sizeof why));)
		if (is_asked_for(only, e->namespace_name, e->name))
			write_error(w, e->namespace_name, e->name, why);
}

// items: the last decision of each policy. history: what was new, oldest first. errors: policies whose last tick
// brought no decision, and those that have none.
static void get_decisions(void *arg, struct http_exchange *x)
{
	if (!endpoint_is_read(x))
		return;
	struct controller_view v;
	const char *only = http_exchange_query(x, "policy");
	if (http_exchange_query_is_broken(x)) { // else a policy that cannot be read would be all of them
		http_exchange_reply_text(x, 400, "the query of the request cannot be read\n");
		return;
	}
	controller_get_view(arg, &v);
	struct buf b;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	struct json_writer w;
	json_write_init(&w, &b, 0);
	json_write_object_begin(&w);
	json_write_key(&w, "apiVersion");
	json_write_str(&w, POLICY_API_VERSION);
	json_write_key(&w, "kind");
	json_write_str(&w, "DecisionList");
	json_write_key(&w, "items");
	json_write_array_begin(&w);
	write_decisions(&w, &v, only);
	json_write_array_end(&w);
	json_write_key(&w, "errors");
	json_write_array_begin(&w);
	write_errors(&w, arg, &v, only);
	json_write_array_end(&w);
	json_write_key(&w, "history");
	json_write_array_begin(&w);
	history_write(v.history, &w, only);
	json_write_array_end(&w);
	json_write_object_end(&w);
	buf_putc(&b, '\n');
	endpoint_reply(x, 200, "application/json", &b);
}

static void get_version(void *arg, struct http_exchange *x)
{
	(void)arg;
	if (endpoint_is_read(x)) {
		static const char body[] = "{\"version\":\"" GPUSCALE_VERSION "\"}\n";
		http_exchange_reply(x, 200, "application/json", body, sizeof body - 1);
	}
}

int endpoints_add(struct http_server *server, struct controller *controller, struct err *e)
{
	static const struct {
		const char *path;
		http_handler_fn *fn;
	} routes[] = {
	        {"/livez", get_livez},
	        {"/healthz", get_livez},
	        {"/readyz", get_readyz},
	        {"/metrics", get_metrics},
	        {"/debug/decisions", get_decisions},
	        {"/version", get_version},
	};
	for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
		if (http_server_route(server, routes[i].path, routes[i].fn, controller, e) < 0)
			return -1;
	return overview_endpoints_add(server, controller, e);
}
