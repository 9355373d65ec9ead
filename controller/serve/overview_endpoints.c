// SPDX-License-Identifier: Apache-2.0
// The status page, and its data.
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/http/http_server.h"
#include "base/http/http_turns.h"
#include "base/json/json_write.h"
#include "controller/controller.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/serve/endpoints.h"
#include "controller/source/policy_store.h"
#include "controller/tick/reconcile.h"
#include "k8s/cache/target_store.h"
#include "policies/load/policy_ref.h"
#include "promql/promql_source.h"
#include "runtime/connections.h"
#include "runtime/endpoint_reply.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards.h"

#define JSON_TYPE      "application/json"
#define ETAG_BYTES     32
#define CSP_BYTES_MAX  4096
#define PROBLEMS_BYTES 8192
#define QUERY_KEY_SHOW 128 // limit on an unknown name in the error

// ---- what all replies share ----

static void set_headers(struct http_exchange *x, const char *etag)
{
	// Only the browser may store it, and must revalidate it each time, by its tag.
	http_exchange_set_header(x, "Cache-Control", "private, no-cache");
	http_exchange_set_header(x, "X-Content-Type-Options", "nosniff");
	http_exchange_set_header(x, "Referrer-Policy", "no-referrer");
	if (etag)
		http_exchange_set_header(x, "ETag", etag);
}

// tag includes its quotes. No tag contains a quote, so the search in a list of tags, weak or strong, finds whole tags
// only.
static bool has_it(struct http_exchange *x, const char *tag)
{
	const char *has = http_exchange_header(x, "If-None-Match");
	return has && (strstr(has, tag) || strcmp(has, "*") == 0);
}

static void reply_error(struct http_exchange *x, int status, const char *text)
{
	struct buf b;
	struct json_writer w;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	json_write_init(&w, &b, 0);
	json_write_object_begin(&w);
	json_write_member_str(&w, "error", text);
	json_write_object_end(&w);
	buf_putc(&b, '\n');
	set_headers(x, NULL);
	endpoint_reply(x, status, JSON_TYPE, &b);
}

// ---- problems that concern no single policy ----

// Writes one problem per line; cuts what does not fit.
static void find_problems(const struct controller *c, const struct controller_view *v, char out[PROBLEMS_BYTES])
{
	size_t used = (size_t)snprintf(out, PROBLEMS_BYTES, "%s", v->files.report);
	struct shards_view shards = {.error = ""};
	if (c->ownership.shards)
		shards_get_view(c->ownership.shards, &shards);
	struct target_store_stats targets = {0};
	if (c->connections->targets)
		target_store_get_stats(c->connections->targets, &targets);
	const struct {
		const char *what, *error;
	} rows[] = {
	        {"policies cannot be watched", v->objects.error},
	        {"leases", shards.error},
	        {"targets cannot be watched, so each tick reads them", targets.broken_why ? targets.broken_why : ""}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].error[0] && used < PROBLEMS_BYTES)
			used += (size_t)snprintf(out + used, PROBLEMS_BYTES - used, "%s: %s\n", rows[i].what,
			                         rows[i].error);
}

// Replies 304 and returns true when the client has this revision. The tag is weak, because the decision of a tick in
// progress can be visible before the revision changes.
static bool is_known(struct http_exchange *x, const struct controller *c, const char *problems)
{
	char tag[ETAG_BYTES], etag[ETAG_BYTES + 2];
	struct shards_view shards = {.leader = ""};
	if (c->ownership.shards)
		shards_get_view(c->ownership.shards, &shards);
	uint64_t hash = hash_text(hash_text(HASH_START, problems), shards.leader);
	snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", c->policies.revision ^ hash);
	snprintf(etag, sizeof etag, "W/%s", tag);
	set_headers(x, etag);
	if (!has_it(x, tag))
		return false;
	http_exchange_reply(x, 304, NULL, "", 0);
	return true;
}

// ---- from the controller to plain values ----

struct items {
	const struct managed_policy **list; // in order of namespace, name and key
	size_t n;
	size_t n_invalid, n_waiting;
};

static bool items_find(const struct controller *c, const struct controller_view *v, struct items *ret_items)
{
	struct decided decided;
	struct status_facts facts;
	size_t room = c->policies.n;
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_idle(&c->sync, m));)
		room++;
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_fleet(&c->sync, m));)
		room++;
	*ret_items = (struct items){.list = calloc(room ? room : 1, sizeof(struct managed_policy *))};
	if (!ret_items->list)
		return false;
	for (size_t i = 0; i < c->policies.n; i++) {
		ret_items->list[ret_items->n++] = v->policies[i];
		ret_items->n_invalid += managed_policy_facts(v->policies[i], &decided, &facts) && facts.fault;
	}
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_idle(&c->sync, m));) {
		ret_items->list[ret_items->n++] = m;
		ret_items->n_invalid += policy_entry_error(m->stored->entry)[0] != '\0';
		ret_items->n_waiting += m->stored->binding != NULL;
	}
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_fleet(&c->sync, m));) {
		ret_items->list[ret_items->n++] = m;
		ret_items->n_invalid += policy_entry_error(m->stored->entry)[0] != '\0';
	}
	qsort(ret_items->list, ret_items->n, sizeof(struct managed_policy *), managed_policy_compare);
	return true;
}

// One policy as the overview shows it, with the data that it refers to.
struct shown {
	struct overview_policy policy;
	struct status_facts facts;
	char why[POLICY_ERROR_BYTES_MAX];
};

static void show(const struct controller *c, const struct controller_view *v, const struct managed_policy *m,
                 struct shown *ret_shown)
{
	struct overview_policy *p = &ret_shown->policy;
	*p = (struct overview_policy){.namespace_name = m->namespace_name,
	                              .name = m->name,
	                              .key = m->key,
	                              .dry_run = c->options.dry_run,
	                              .last_scale_ms = -1,
	                              .prices = v->prices};
	if (m->fleet) {
		p->fleet = m->fleet;
		p->policy = &m->body->policy;
		p->target = &m->body->target;
		p->gpus = p->policy->gpus;
		return;
	}
	if (!m->reconciler) {
		enum status_phase phase = policy_awaits_explain(m, ret_shown->why, sizeof ret_shown->why);
		p->error = ret_shown->why;
		p->policy = m->stored->binding ? m->stored->binding->policy : NULL;
		p->target = m->stored->binding ? m->stored->binding->target : NULL;
		if (p->policy)
			p->gpus = p->policy->gpus;
		ret_shown->facts =
		        (struct status_facts){.phase = phase,
		                              .text = ret_shown->why,
		                              .dry_run = c->options.dry_run || (p->policy && p->policy->dry_run),
		                              .paused = p->policy && p->policy->paused};
		if (phase != STATUS_PHASE__COUNT)
			p->facts = &ret_shown->facts;
		return;
	}
	p->policy = m->reconciler->policy;
	p->target = m->reconciler->subject.binding->target;
	p->gpus = reconciler_gpus(m->reconciler);
	p->error = managed_policy_error(m);
	p->trend = m->report.sparkline;
	p->last_scale_ms = m->reconciler->last_scale_ms;
	if (managed_policy_facts(m, &p->decided, &ret_shown->facts)) {
		p->facts = &ret_shown->facts;
		if (!p->error[0] && ret_shown->facts.fault)
			p->error = ret_shown->facts.fault;
	}
}

static size_t find_sources(const struct promql_sources *sources, struct overview_source out[PROMQL_SOURCES_MAX])
{
	size_t n = promql_sources_count(sources);
	for (size_t i = 0; i < n; i++) {
		const struct promql_source *s = promql_sources_at(sources, i);
		const struct promql_source_stats *stats = promql_source_stats(s);
		out[i] = (struct overview_source){
		        .name = promql_source_name(s),
		        .url = promql_source_url(s),
		        .error = promql_source_error(s),
		        .state = promql_source_health(s)->state,
		        .last_answer_ms = stats->last_answer_wall_ms,
		        .last_seconds = stats->last_seconds,
		};
	}
	return n;
}

static void write_head(struct json_writer *w, const struct controller *c, const struct items *items,
                       const char *problems)
{
	struct overview_source sources[PROMQL_SOURCES_MAX];
	struct overview_head h = {.time_ms = c->policies.changed_ms,
	                          .start_ms = c->start_ms,
	                          .dry_run = c->options.dry_run,
	                          .sources = sources,
	                          .n_sources = find_sources(query_hub_sources(c->connections->queries), sources),
	                          .n_policies = items->n,
	                          .n_invalid = items->n_invalid,
	                          .n_waiting = items->n_waiting,
	                          .problems = problems};
	if (c->ownership.shards) {
		struct shards_view shards;
		shards_get_view(c->ownership.shards, &shards);
		h.identity = shards.identity;
		h.leader = shards.leader;
		h.shards_owned = shards.n_owned;
		h.shards_total = shards.n_shards;
	}
	overview_begin(w, &h);
}

// ---- the endpoints ----

static void get_overview(void *arg, struct http_exchange *x)
{
	struct controller *c = arg;
	struct controller_view v;
	struct items items;
	struct shown shown;
	struct json_writer w;
	struct buf b;
	char problems[PROBLEMS_BYTES];
	if (!endpoint_is_read(x))
		return;
	controller_get_view(c, &v);
	find_problems(c, &v, problems);
	if (is_known(x, c, problems))
		return;
	const char *history = http_exchange_query(x, "history");
	if (!items_find(c, &v, &items)) {
		http_exchange_reply_text(x, 500, "out of memory\n");
		return;
	}
	bool with_history = history && strcmp(history, "true") == 0 && items.n <= OVERVIEW_HISTORIES_MAX;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	json_write_init(&w, &b, 0);
	write_head(&w, c, &items, problems);
	for (size_t i = 0; i < items.n && !b.failed; i++) {
		show(c, &v, items.list[i], &shown);
		overview_add(&w, &shown.policy, with_history);
	}
	overview_end(&w);
	buf_putc(&b, '\n');
	free(items.list);
	endpoint_reply(x, 200, JSON_TYPE, &b);
}

// Returns the first one with that id; NULL: there is none.
static const struct managed_policy *find_policy(const struct controller *c, const struct controller_view *v,
                                                const char *id)
{
	for (size_t i = 0; i < c->policies.n; i++)
		if (managed_policy_has_id(v->policies[i], id))
			return v->policies[i];
	const struct managed_policy *m = NULL;
	while ((m = policy_sync_next_idle(&c->sync, m)))
		if (managed_policy_has_id(m, id))
			return m;
	while ((m = policy_sync_next_fleet(&c->sync, m)) && !managed_policy_has_id(m, id))
		;
	return m;
}

static void get_policy(void *arg, struct http_exchange *x)
{
	struct controller *c = arg;
	struct controller_view v;
	struct shown shown;
	struct json_writer w;
	struct buf b;
	if (!endpoint_is_read(x))
		return;
	const char *key = http_exchange_query(x, "policy");
	if (http_exchange_query_is_broken(x)) {
		reply_error(x, 400, "the query of the request cannot be read");
		return;
	}
	if (!key) {
		reply_error(x, 400, "policy=NAMESPACE/NAME is missing");
		return;
	}
	controller_get_view(c, &v);
	const struct managed_policy *found = find_policy(c, &v, key);
	if (!found) {
		char text[QUERY_KEY_SHOW + 64];
		snprintf(text, sizeof text, "there is no policy %.*s here", QUERY_KEY_SHOW, key);
		reply_error(x, 404, text);
		return;
	}
	if (is_known(x, c, ""))
		return;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	json_write_init(&w, &b, 0);
	show(c, &v, found, &shown);
	overview_write_detail(&w, &shown.policy, c->history);
	buf_putc(&b, '\n');
	endpoint_reply(x, 200, JSON_TYPE, &b);
}

static void reply_page(struct http_exchange *x, struct buf *html)
{
	char etag[STATUS_PAGE_ETAG_BYTES];
	struct buf csp;
	status_page_etag(buf_str(html), html->len, etag);
	set_headers(x, etag);
	if (has_it(x, etag)) {
		http_exchange_reply(x, 304, NULL, "", 0);
		return;
	}
	buf_init(&csp, CSP_BYTES_MAX);
	status_page_csp(buf_str(html), html->len, &csp);
	if (csp.failed) {
		http_exchange_reply_text(x, 500, "the page has more scripts than there is room for\n");
	} else {
		http_exchange_set_header(x, "Content-Security-Policy", buf_str(&csp));
		http_exchange_reply(x, 200, "text/html; charset=utf-8", buf_str(html), html->len);
	}
	buf_done(&csp);
}

static void get_page(void *arg, struct http_exchange *x)
{
	struct buf html;
	struct err e;
	if (strcmp(http_exchange_path(x), "/") != 0) { // a route that ends in "/" matches every path below it
		http_exchange_reply_text(x, 404, "not found");
		return;
	}
	if (!endpoint_is_read(x))
		return;
	buf_init(&html, STATUS_PAGE_BYTES_MAX);
	if (status_page(&html, &e) < 0)
		http_exchange_reply_text(x, 503, e.msg);
	else
		reply_page(x, &html);
	buf_done(&html);
}

int overview_endpoints_add(struct http_server *server, struct http_turns *turns, struct controller *controller,
                           struct err *e)
{
	if (http_server_route(server, "/", get_page, controller, e) < 0 ||
	    http_turns_route(turns, server, "/api/v1/overview", get_overview, controller, e) < 0)
		return -1;
	return http_turns_route(turns, server, "/api/v1/policy", get_policy, controller, e);
}
