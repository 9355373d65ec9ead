// SPDX-License-Identifier: Apache-2.0
#include "controller/serve/endpoints.h"

#include "base/base.h"
#include "base/exposition.h"
#include "base/http/http_server.h"
#include "base/http/http_site.h"
#include "base/json/json_write.h"
#include "base/print.h"
#include "base/process/log.h"
#include "controller/controller.h"
#include "controller/external/external_metrics_server.h"
#include "controller/fleet/fleet.h"
#include "controller/policy/managed_policy.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/policy/policy_report.h"
#include "controller/pool/pools.h"
#include "controller/source/policy_store.h"
#include "controller/source/policy_watch.h"
#include "controller/status/status_writer.h"
#include "controller/tick/reconcile.h"
#include "k8s/cache/autoscaler_object.h"
#include "k8s/cache/target_store.h"
#include "k8s/events/event_recorder.h"
#include "policies/explain/explain.h"
#include "policies/load/policy_ref.h"
#include "policies/schema/policy_schema.h"
#include "promql/promql_source.h"
#include "runtime/connections.h"
#include "runtime/endpoint_reply.h"
#include "runtime/metrics/metrics.h"
#include "runtime/options/serve_options.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards.h"

// An answer proves that the event loop is running.
static void get_livez(void *arg, struct http_exchange *x)
{
	if (endpoint_is_read(x))
		http_exchange_reply_text(x, 200, "ok\n");
}

static void write_sources(struct buf *b, const struct query_hub *queries)
{
	const struct promql_sources *sources = queries->sources;
	for (size_t i = 0; i < sources->n; i++) {
		const struct promql_source *s = sources->items[i];
		enum promql_health_state state = s->health.state;
		const char *error = s->error;
		print_to(b, "[%c]source %s is %s%s%s (informative)\n", state == PROMQL_DOWN ? '-' : '+', s->name,
		         promql_health_names[state], error[0] ? ": " : "", error);
		const struct query_agreement *g = &queries->of[i].agreement;
		if (g->is_disagreeing)
			print_to(b, "[-]servers of source %s disagree: %s (informative)\n", s->name, g->detail);
	}
}

static void write_shards(struct buf *b, const struct shards *shards)
{
	if (!shards)
		return;
	struct shards_view s;
	shards_get_view(shards, &s);
	print_to(b, "[%c]leases %d of %d are held by %s%s%s (informative)\n", s.error[0] ? '-' : '+', s.n_owned,
	         s.n_shards, s.identity, s.error[0] ? ": " : "", s.error);
}

static void write_targets(struct buf *b, const struct target_store *targets)
{
	struct informer_state s = {0};
	if (targets)
		s = target_store_get_state(targets);
	if (s.broken_why)
		print_to(b, "[-]targets %zu of %zu watches do not work, so each tick reads: %s (informative)\n",
		         s.broken, s.watches, s.broken_why);
	else if (targets)
		print_to(b, "[+]targets %zu known from %zu watches (informative)\n", s.items, s.watches);
}

// Ready: the policies are known, and each had a tick. A controller without policies is ready. A source that is down
// does not make the controller unready, because holding the scale is its job then.
static void get_readyz(void *arg, struct http_exchange *x)
{
	if (!endpoint_is_read(x))
		return;
	struct controller *c = arg;
	const struct managed_policies *all = &c->policies;
	size_t ticked;
	bool ready = controller_is_ready(c, &ticked), from_cluster = c->options.policies_from_cluster;
	struct buf b;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	if (http_exchange_query(x, "verbose")) {
		const char *error = controller_watch_error(c);
		bool listed = c->watch && c->watch->objects->list > 0, failed = c->folder && c->folder->failed;
		size_t n_waiting = policy_sync_count_waiting(&c->sync);
		print_to(&b, "[+]policies %zu in force, %zu invalid, %zu wait (informative)\n", all->n,
		         policy_store_counts(all->store)->invalid, n_waiting);
		write_shards(&b, c->connections->shards);
		print_to(&b, "[%c]ticks %zu of %zu policies had one\n", ready ? '+' : '-', ticked, all->n);
		if (all->n_conflicts_awaited)
			print_to(&b, "[-]conflicts of %zu of %zu policies are not known yet\n",
			         all->n_conflicts_awaited, all->n + n_waiting);
		if (from_cluster)
			print_to(&b, "[%c]watch %s\n", listed && !error[0] ? '+' : '-',
			         error[0] ? error
			         : listed ? "of the policies is open"
			                  : "of the policies has not begun");
		write_targets(&b, c->connections->targets);
		write_sources(&b, c->connections->queries);
		print_to(&b, "[%c]reload %s (informative)\n", failed ? '-' : '+',
		         failed ? "failed; the last good policies stay in force" : "ok");
		buf_puts(&b, controller_file_report(c));
	}
	buf_puts(&b, ready ? "ok\n" : "not ready\n");
	endpoint_reply(x, ready ? 200 : 503, "text/plain; charset=utf-8", &b);
}

static struct metrics_watch objects_watch(const char *resource, const struct object_watch *objects)
{
	return (struct metrics_watch){resource, informer_get_state(objects->informer, NULL)};
}

// Returns an array of *ret_n, which the caller frees; NULL: no fleet runs.
static struct fleet_numbers *fleets_of(const struct controller *c, size_t *ret_n)
{
	const struct managed_policy *m = NULL;
	size_t n = 0;
	while ((m = policy_sync_next_fleet(&c->sync, m)))
		n++;
	struct fleet_numbers *list = n ? must_alloc(calloc(n, sizeof *list)) : NULL;
	*ret_n = 0;
	while ((m = policy_sync_next_fleet(&c->sync, m)))
		list[(*ret_n)++] = fleet_get_numbers(m->fleet);
	return list;
}

static void get_metrics(void *arg, struct http_exchange *x)
{
	if (!endpoint_is_read(x))
		return;
	struct controller *c = arg;
	const struct connections *to = c->connections;
	const struct price_book *prices = controller_prices(c);
	struct metrics_view mv = {.policies = managed_policies_sort(&c->policies),
	                          .n_policies = c->policies.n,
	                          .n_bad_files = c->folder ? c->folder->set.n_bad_files : 0,
	                          .n_invalid = policy_store_counts(c->policies.store)->invalid,
	                          .n_waiting = policy_sync_count_waiting(&c->sync),
	                          .queries = to->queries,
	                          .prices = prices,
	                          .dry_run = c->options.dry_run};
	struct pool_summary pools[POOLS_MAX];
	mv.pools = pools;
	mv.n_pools = policy_pools_summarize(c->pools, pools);
	struct metrics_watch watches[4];
	mv.watches = watches;
	const struct object_watch *pool_objects = c->pools->watch ? c->pools->watch->objects : NULL;
	if (c->watch)
		watches[mv.n_watches++] = objects_watch(POLICY_WATCH_PLURAL, c->watch->objects);
	if (c->scaled_objects)
		watches[mv.n_watches++] =
		        objects_watch(autoscaler_kinds[AUTOSCALER_SCALED_OBJECT].plural, c->scaled_objects->objects);
	if (pool_objects)
		watches[mv.n_watches++] = objects_watch(POOL_WATCH_PLURAL, pool_objects);
	if (to->targets) {
		struct metrics_watch *targets = &watches[mv.n_watches++];
		*targets = (struct metrics_watch){"targets", target_store_get_state(to->targets)};
		targets->state.streaming = targets->state.broken == 0; // all of them
	}
	struct status_writer_stats status;
	struct event_recorder_stats events;
	if (c->sync.status_env.writer) {
		status_writer_get_stats(c->sync.status_env.writer, &status);
		mv.status = &status;
	}
	if (c->sync.status_env.events) {
		event_recorder_get_stats(c->sync.status_env.events, &events);
		mv.events = &events;
	}
	struct shards_view shards;
	if (c->connections->shards) {
		shards_get_view(c->connections->shards, &shards);
		mv.shards = &shards;
	}
	struct fleet_numbers *fleets = fleets_of(c, &mv.n_fleets);
	mv.fleets = fleets;
	struct buf b;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	metrics_render(c->policies.metrics, &mv, &b);
	free(fleets);
	endpoint_reply(x, 200, EXPOSITION_CONTENT_TYPE, &b);
}

static bool is_asked_for(const char *only, const struct managed_policy *m)
{
	return !only || managed_policy_has_id(m, only);
}

// Writes an object with one text about a policy, or about one of its bindings.
static void write_text(struct json_writer *w, const struct managed_policy *m, const char *key, const char *text)
{
	json_write_format(w, "{namespace:%s,name:%s", m->namespace_name, m->name);
	if (m->key)
		json_write_member_str(w, "target", m->key);
	json_write_member_str(w, key, text);
	json_write_object_end(w);
}

static void write_decisions(struct json_writer *w, struct controller *c, const char *only)
{
	struct managed_policy *const *policies = managed_policies_sort(&c->policies);
	for (size_t i = 0; i < c->policies.n; i++) {
		const struct decided d = reconciler_decided(policies[i]->reconciler);
		if (d.decision && is_asked_for(only, policies[i]))
			explain_decision_json(w, &d);
	}
}

// Writes the decision about one target of a fleet; of the selected one, if one is. only: "NAMESPACE/NAME", or with
// "/KIND/TARGET" behind it.
static void write_target(struct json_writer *w, const struct managed_policy *m, const char *only,
                         const struct fleet_target *t)
{
	const struct scale_target target = {m->body->fleet.api_version, m->body->fleet.kind, t->name, NULL};
	const struct decided d = {.policy = m->fleet->policy, .target = &target, .decision = t->decision};
	const char *key = only + strlen(m->namespace_name) + 1 + strlen(m->name);
	const size_t n = strlen(target.kind);
	if (key[0] && (strncmp(key + 1, target.kind, n) != 0 || key[1 + n] != '/' || strcmp(key + 2 + n, t->name) != 0))
		return;
	if (t->role == FLEET_SCALES && t->decision)
		explain_decision_json(w, &d);
}

static bool is_fleet_asked_for(const char *only, const struct managed_policy *m)
{
	size_t space = strlen(m->namespace_name), name = strlen(m->name);
	return only && strncmp(only, m->namespace_name, space) == 0 && only[space] == '/' &&
	       strncmp(only + space + 1, m->name, name) == 0 &&
	       (!only[space + 1 + name] || only[space + 1 + name] == '/');
}

// The targets of a fleet are written only when it is selected: there may be thousands.
static void write_fleets(struct json_writer *w, const struct controller *c, const char *only)
{
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_fleet(&c->sync, m));) {
		const struct fleet_target *t = NULL;
		while (is_fleet_asked_for(only, m) && (t = fleet_targets_next(&m->fleet->targets, t)))
			write_target(w, m, only, t);
	}
}

static void write_errors(struct json_writer *w, struct controller *c, const char *only)
{
	struct managed_policy *const *policies = managed_policies_sort(&c->policies);
	for (size_t i = 0; i < c->policies.n; i++) {
		const struct managed_policy *m = policies[i];
		const char *error = managed_policy_error(m);
		if (error[0] && is_asked_for(only, m))
			write_text(w, m, "error", error);
	}
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_fleet(&c->sync, m));)
		if (m->fleet->error[0] && (!only || is_fleet_asked_for(only, m)))
			write_text(w, m, "error", m->fleet->error);
	char why[POLICY_ERROR_BYTES_MAX];
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_idle(&c->sync, m));)
		if (is_asked_for(only, m)) {
			policy_awaits_explain(m, why, sizeof why);
			write_text(w, m, "error", why);
		}
}

// phases: what the tick of each policy in force does now. A tick that hangs shows the step that it waits for.
static void write_phases(struct json_writer *w, struct controller *c, const char *only)
{
	struct managed_policy *const *policies = managed_policies_sort(&c->policies);
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_fleet(&c->sync, m));)
		if (!only || is_fleet_asked_for(only, m))
			write_text(w, m, "phase", tick_phase_names[m->fleet->phase]);
	for (size_t i = 0; i < c->policies.n; i++)
		if (is_asked_for(only, policies[i]))
			write_text(w, policies[i], "phase",
			           tick_phase_names[reconciler_phase(policies[i]->reconciler)]);
}

// items: the last decision of each policy. errors: policies whose last tick made no decision, and those not in force.
// phases: above. history: decisions that differ from the one before, oldest first.
static void get_decisions(void *arg, struct http_exchange *x)
{
	if (!endpoint_is_read(x))
		return;
	struct controller *c = arg;
	const char *only = http_exchange_query(x, "policy");
	if (http_exchange_query_is_broken(x)) { // an unreadable policy name must not select all policies
		http_exchange_reply_text(x, 400, "the query of the request cannot be read\n");
		return;
	}
	struct buf b;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	struct json_writer w;
	json_write_init(&w, &b, 0);
	json_write_format(&w, "{apiVersion:%s,kind:%s,items:[", POLICY_API_VERSION, "DecisionList");
	write_decisions(&w, c, only);
	write_fleets(&w, c, only);
	json_write_format(&w, "],errors:[");
	write_errors(&w, c, only);
	json_write_format(&w, "],phases:[");
	write_phases(&w, c, only);
	json_write_format(&w, "],history:[");
	decision_history_write(c->history, &w, only);
	json_write_format(&w, "]}");
	buf_putc(&b, '\n');
	endpoint_reply(x, 200, "application/json", &b);
}

static void get_version(void *arg, struct http_exchange *x)
{
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
		int (*add)(struct http_server *s, const char *path, http_handler_fn *fn, void *arg, struct err *e);
	} routes[] = {
	        {"/livez", get_livez, http_server_route},
	        {"/healthz", get_livez, http_server_route},
	        {"/readyz", get_readyz, http_server_route},
	        {"/metrics", get_metrics, http_server_route_long},
	        {"/debug/decisions", get_decisions, http_server_route_long},
	        {"/version", get_version, http_server_route},
	};
	for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++)
		if (routes[i].add(server, routes[i].path, routes[i].fn, controller, e) < 0)
			return -1;
	return overview_endpoints_add(server, controller, e);
}

// ---- the servers ----

struct http_servers {
	struct controller *controller;
	const struct serve_options *flags;
	struct endpoint_token *token;             // NULL: none is demanded
	struct http_site *site;                   // host names of the endpoints
	struct http_server *server;               // of the endpoints; NULL: none
	struct tls_follower *follower;            // NULL: plain HTTP
	struct external_metrics_server *external; // NULL: not served
	bool has_synced;                          // see has_synced()
};

static int serve_endpoints(struct http_servers *s, const char *listen, struct err *e)
{
	const struct serve_options *flags = s->flags;
	struct controller *c = s->controller;
	struct event_base *loop = c->connections->loop;
	s->site = http_site_new(flags->allowed_hosts, e);
	if (!s->site)
		return err_wrap(e, "--allowed-hosts");
	http_site_add_own_name(s->site);
	struct http_server_options o = {
	        .loop = loop,
	        .listen = listen,
	        .max_body_bytes = ENDPOINT_BODY_BYTES_MAX,
	        .site = s->site,
	        .tls_cert_file = flags->tls_cert_file,
	        .tls_key_file = flags->tls_key_file,
	        .tls_client_ca_file = flags->tls_client_ca_file,
	        .tls_min_minor = flags->tls_min_minor,
	};
	s->server = http_server_new(&o, e);
	if (!s->server || endpoints_add(s->server, c, e) < 0)
		return -1;
	metrics_add_server(c->policies.metrics, "endpoints", s->server);
	if (flags->token_file) {
		s->token = endpoint_token_new(flags->token_file, c->options.log, e);
		if (!s->token)
			return -1;
		http_server_set_admission(s->server, endpoint_token_admit, s->token);
	}
	if (flags->tls_cert_file)
		s->follower = tls_follower_new(loop, s->server, &o, "endpoints", c->options.log);
	LOG(c->options.log, LOG_INFO, "Serving", LOG_S("listen", listen), LOG_I("port", http_server_port(s->server)),
	    LOG_B("tls", flags->tls_cert_file != NULL), LOG_B("token", flags->token_file != NULL));
	return 0;
}

// An external_source_fn.
static bool next_policy(void *arg, size_t i, struct external_source *ret_source)
{
	const struct http_servers *s = arg;
	struct managed_policies *all = &s->controller->policies;
	if (i >= all->n)
		return false;
	const struct managed_policy *m = managed_policies_sort(all)[i];
	*ret_source = (struct external_source){
	        .policy = m->reconciler->policy,
	        .target = m->reconciler->subject.binding->target,
	        .decision = m->reconciler->decision,
	        .error = managed_policy_error(m),
	};
	return true;
}

// Returns whether every policy that existed at the start had a tick. Policies that come later do not make it false
// again, so that the values of the others stay available.
static bool has_synced(void *arg)
{
	struct http_servers *s = arg;
	const struct controller *c = s->controller;
	if (s->has_synced)
		return true;
	if (c->options.policies_from_cluster && (!c->watch || c->watch->objects->list == 0))
		return false;
	for (size_t i = 0; i < c->policies.n; i++) {
		const struct managed_policy *m = c->policies.list[i];
		if (!m->reconciler->decision && !managed_policy_error(m)[0])
			return false;
	}
	s->has_synced = true;
	return true;
}

static int serve_external(struct http_servers *s, struct err *e)
{
	const struct serve_options *flags = s->flags;
	const struct controller *c = s->controller;
	struct connections *connections = c->connections;
	const struct external_metrics_server_options o = {
	        .loop = connections->loop,
	        .client = connections->k8s,
	        .clock = &connections->clock,
	        .log = c->options.log,
	        .metrics = c->policies.metrics,
	        .listen = flags->external_metrics,
	        .cert_file =
	                flags->external_metrics_cert_file ? flags->external_metrics_cert_file : flags->tls_cert_file,
	        .key_file = flags->external_metrics_cert_file ? flags->external_metrics_key_file : flags->tls_key_file,
	        .tls_min_minor = flags->tls_min_minor,
	        .next = next_policy,
	        .has_synced = has_synced,
	        .arg = s,
	};
	if (!connections->k8s)
		return err_set(e, ERR_USAGE, "--external-metrics needs a cluster to ask who may read them");
	s->external = external_metrics_server_new(&o, e);
	return s->external ? 0 : -1;
}

struct http_servers *http_servers_new(struct controller *c, const struct serve_options *flags, const char *listen,
                                      struct err *e)
{
	struct http_servers *s = must_alloc(calloc(1, sizeof *s));
	s->controller = c;
	s->flags = flags;
	if ((listen && listen[0] && serve_endpoints(s, listen, e) < 0) ||
	    (flags->external_metrics && serve_external(s, e) < 0)) {
		http_servers_disconnect(s);
		http_servers_free(s);
		return NULL;
	}
	return s;
}

void http_servers_disconnect(struct http_servers *s)
{
	if (s)
		external_metrics_server_stop(s->external);
}

void http_servers_free(struct http_servers *s)
{
	if (!s)
		return;
	external_metrics_server_free(s->external);
	tls_follower_free(s->follower);
	http_server_free(s->server);
	free(s->site);
	endpoint_token_free(s->token);
	free(s);
}
