// SPDX-License-Identifier: Apache-2.0
// The documents behind the status page, and the routes that serve the page and them.
#include "base/base.h"
#include "controller/serve/endpoints.h"

#include <inttypes.h>
#include <math.h>

#include "base/hash.h"
#include "base/http/http_server.h"
#include "base/json/json_write.h"
#include "controller/controller.h"
#include "controller/fleet/fleet.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/policy/policy_report.h"
#include "controller/source/policy_store.h"
#include "controller/status/sparkline.h"
#include "controller/status/status_conditions.h"
#include "controller/tick/reconcile.h"
#include "k8s/cache/target_store.h"
#include "policies/engine/decision.h"
#include "policies/load/policy_ref.h"
#include "policies/price/price_book.h"
#include "policies/schema/binding.h"
#include "policies/schema/policy_schema.h"
#include "promql/promql_source.h"
#include "runtime/connections.h"
#include "runtime/endpoint_reply.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards.h"

#define KEY_BYTES      512 // namespace and name have at most 253 each
#define JSON_TYPE      "application/json"
#define ETAG_BYTES     32
#define CSP_BYTES_MAX  4096
#define PROBLEMS_BYTES 8192
#define QUERY_KEY_SHOW 128 // limit on an unknown name in the error

// ---- the head ----

static void write_controller(struct json_writer *w, const struct controller *c, const struct shards_view *shards)
{
	json_write_member_object(w, "controller");
	if (shards->identity)
		json_write_member_str(w, "identity", shards->identity);
	json_write_member_bool(w, "dryRun", c->options.dry_run);
	if (shards->identity && shards->n_shards == 1)
		json_write_member_bool(w, "leader", shards->n_owned == 1);
	if (shards->leader[0])
		json_write_member_str(w, "leaderIdentity", shards->leader);
	if (shards->identity)
		json_write_format(w, "shardsOwned:%d,shardsTotal:%d", shards->n_owned, shards->n_shards);
	json_write_format(w, "startTime:%jd}", c->start_ms);
}

static void write_source(struct json_writer *w, const struct promql_source *s)
{
	static const char *const states[PROMQL_HEALTH__COUNT] = {"Up", "Degraded", "Down"};
	json_write_format(w, "{name:%s,url:%s,state:%s,error:%s", s->name, s->url, states[s->health.state], s->error);
	if (s->stats.last_answer_wall_ms > 0)
		json_write_format(w, "lastSuccessTime:%jd,latencySeconds:%g", s->stats.last_answer_wall_ms,
		                  s->stats.last_seconds);
	json_write_object_end(w);
}

static void write_problems(struct json_writer *w, const char *lines)
{
	json_write_member_array(w, "problems");
	while (*lines) {
		size_t n = strcspn(lines, "\n");
		if (n > 0)
			json_write_strn(w, lines, n);
		lines += n + (lines[n] == '\n');
	}
	json_write_array_end(w);
}

void overview_begin(struct json_writer *w, const struct controller *c, const struct shards_view *shards,
                    const struct overview_items *items, const char *problems)
{
	const struct promql_sources *sources = c->connections->promql;
	json_write_format(w, "{apiVersion:%s,kind:%s,time:%jd,version:%s", POLICY_API_VERSION, "Overview",
	                  c->policies.changed_ms, GPUSCALE_VERSION);
	write_controller(w, c, shards);
	json_write_member_array(w, "sources");
	for (size_t i = 0; i < sources->n; i++)
		write_source(w, sources->items[i]);
	json_write_format(w, "],counts:{policies:%zu,invalid:%zu,waiting:%zu}", items->n, items->n_invalid,
	                  items->n_waiting);
	write_problems(w, problems);
	json_write_member_array(w, "policies");
}

void overview_end(struct json_writer *w)
{
	json_write_format(w, "]}");
}

// ---- one policy ----

static void write_decision(struct json_writer *w, const struct decided *d)
{
	const struct decision *dec = d->decision;
	char message[RENDER_SENTENCE_BYTES];
	json_write_format(w, "time:%jd,currentReplicas:%d", dec->time_ms, dec->current);
	if (dec->ready >= 0)
		json_write_member_i64(w, "readyReplicas", dec->ready);
	json_write_format(w, "desiredReplicas:%d,action:%s,reason:%s", dec->desired, action_names[dec->action],
	                  reason_info(dec->reason)->name);
	explain_message(d, message);
	json_write_format(w, "message:%s,held:%i", message, dec->action == ACTION_HOLD);
}

// What the signal is compared with; while its data is missing, what it would be compared with.
static double target_of(const struct policy_signal *p, const struct decision_signal *s)
{
	if (s->state != SIGNAL_MISSING)
		return s->target;
	if (p->watermarks.set)
		return p->watermarks.high;
	return p->target.type == TARGET_REPLICAS ? NAN : p->target.value;
}

static bool is_per_replica(const struct policy_signal *p)
{
	return p->watermarks.set ? p->watermarks.algorithm == WATERMARK_AVERAGE
	                         : p->target.type == TARGET_AVERAGE_VALUE;
}

// Returns the value that was compared with the target; NaN: none was. Notes of the same stage have other reasons.
static double compared_of(const struct decision *d, size_t i)
{
	for (size_t k = 0; k < d->n_trace; k++) {
		const struct trace_entry *t = decision_entry(d, k);
		if (t->stage == STAGE_SIGNALS && t->signal == (int32_t)i && t->reason == d->signals[i].reason)
			return t->value;
	}
	return NAN;
}

static void write_signal(struct json_writer *w, const struct decided *d, size_t i)
{
	const struct decision_signal *s = &d->decision->signals[i];
	char error[RENDER_SENTENCE_BYTES] = "";
	if (s->state == SIGNAL_MISSING && !explain_signal(d, i, error))
		snprintf(error, sizeof error, "%s", reason_info(s->reason)->name);
	json_write_format(w, "{name:%s,value:%g,target:%g", d->policy->signals[i].name, s->value,
	                  target_of(&d->policy->signals[i], s));
	if (is_per_replica(&d->policy->signals[i])) // the target is one replica's; the value is that of all
		json_write_format(w, "perReplica:%i,compared:%g", true,
		                  s->state == SIGNAL_MISSING ? (double)NAN : compared_of(d->decision, i));
	json_write_member_str(w, "state", signal_state_names[s->state]);
	if (s->age_ms >= 0)
		json_write_member_f64(w, "ageSeconds", (double)s->age_ms / 1000);
	json_write_format(w, "error:%s}", error);
}

static void write_signals(struct json_writer *w, const struct decided *d)
{
	json_write_member_array(w, "signals");
	for (size_t i = 0; d->decision && i < d->decision->n_signals; i++)
		write_signal(w, d, i);
	json_write_array_end(w);
}

static void write_conditions(struct json_writer *w, const struct status_facts *facts)
{
	struct condition conditions[CONDITION_TYPE__COUNT];
	json_write_member_array(w, "conditions");
	if (facts)
		status_conditions(facts, conditions);
	for (int i = 0; facts && i < CONDITION_TYPE__COUNT; i++) {
		if (!conditions[i].reason[0])
			continue;
		json_write_format(w, "{type:%s,status:%s,reason:%s}", condition_type_names[i],
		                  condition_status_names[conditions[i].status], conditions[i].reason);
	}
	json_write_array_end(w);
}

// ---- sparklines ----

// Writes a value of a sparkline, which has three digits. One document may contain 200,000 values, so the common range
// avoids printf's exact arithmetic of doubles.
static void write_short(struct json_writer *w, double v)
{
	static const int units[] = {1, 10, 100, 1000, 10000}; // of the decimals
	char text[32], *at = text + sizeof text;              // written from its end
	double size = fabs(v);
	int decimals = size < 1000 ? 4 : 0;
	if (v == 0 || size >= 1e6 || size < 0.01) {
		snprintf(text, sizeof text, "%.15g", v);
		json_write_raw(w, text);
		return;
	}
	int n = (int)(size * units[decimals] + 0.5);
	for (; decimals > 0 && n % 10 == 0; decimals--)
		n /= 10;
	*--at = '\0';
	for (int i = 0; n > 0 || i <= decimals; i++, n /= 10) {
		if (i > 0 && i == decimals)
			*--at = '.';
		*--at = (char)('0' + n % 10);
	}
	if (v < 0)
		*--at = '-';
	json_write_raw(w, at);
}

static void write_column(struct json_writer *w, const struct sparkline *t, size_t column)
{
	json_write_array_begin(w);
	for (size_t i = 0; i < t->n; i++) {
		double value = sparkline_at(t, i, column);
		if (isnan(value))
			json_write_null(w);
		else
			write_short(w, value);
	}
	json_write_array_end(w);
}

static void write_history(struct json_writer *w, const struct overview_policy *p)
{
	json_write_format(w, "history:{stepSeconds:%g,endTime:%jd,current:", (double)sparkline_step_ms(p->trend) / 1000,
	                  p->trend->end_ms);
	write_column(w, p->trend, SPARKLINE_CURRENT);
	json_write_key(w, "desired");
	write_column(w, p->trend, SPARKLINE_DESIRED);
	json_write_member_array(w, "signals");
	for (size_t i = 0; i < p->decided.policy->n_signals; i++) {
		json_write_format(w, "{name:%s,values:", p->decided.policy->signals[i].name);
		write_column(w, p->trend, SPARKLINE_SIGNALS + i);
		json_write_object_end(w);
	}
	json_write_format(w, "]}");
}

// What a replica uses, and with it what these replicas cost per hour; -1: their number is unknown.
static void write_gpus(struct json_writer *w, const struct overview_policy *p, int64_t replicas)
{
	const struct policy_gpus *gpus = &p->gpus;
	enum price_basis basis;
	int64_t micro = policy_gpu_micro(p->prices, gpus->model, &basis);
	json_write_format(w, "gpus:{perReplica:%d,model:%s,price:%s", gpus->per_replica, gpus->model,
	                  price_basis_names[basis]);
	if (replicas >= 0)
		json_write_member_i64(w, "count", replicas * gpus->per_replica);
	if (replicas >= 0 && basis != PRICE_NONE)
		json_write_format(w, "costPerHour:%g,currency:%s",
		                  (double)(replicas * gpus->per_replica) * (double)micro / 1e6, p->prices->currency);
	json_write_object_end(w);
}

// Each target has its own bounds, decision and signals, so a row of a fleet has none.
static void write_fleet(struct json_writer *w, const struct overview_policy *p)
{
	json_write_format(w, "target:{kind:%s},paused:%i,dryRun:%i", p->decided.target->kind, p->decided.policy->paused,
	                  p->decided.policy->dry_run || p->dry_run);
	int64_t replicas = fleet_write_overview(p->fleet, w);
	if (p->gpus.set)
		write_gpus(w, p, replicas);
	write_signals(w, &p->decided);
}

void overview_add(struct json_writer *w, const struct overview_policy *p, bool with_history)
{
	const struct policy *policy = p->decided.policy;
	const struct decision *d = p->decided.decision;
	json_write_format(w, "{namespace:%s,name:%s", p->namespace_name, p->name);
	if (p->fleet) {
		write_fleet(w, p);
		json_write_object_end(w);
		return;
	}
	if (p->key)
		json_write_member_str(w, "key", p->key);
	if (policy)
		json_write_format(
		        w, "target:{kind:%s,name:%s},minReplicas:%d,maxReplicas:%d,paused:%i,dryRun:%i",
		        p->decided.target->kind, p->decided.target->name, d ? d->min_replicas : policy->min_replicas,
		        d ? d->max_replicas : policy->max_replicas, policy->paused, policy->dry_run || p->dry_run);
	if (d)
		write_decision(w, &p->decided);
	if (p->gpus.set)
		write_gpus(w, p, d ? d->current : -1);
	if (p->last_scale_ms >= 0)
		json_write_member_time(w, "lastScaleTime", p->last_scale_ms);
	json_write_member_str(w, "error", p->error);
	write_conditions(w, p->has_facts ? &p->facts : NULL);
	write_signals(w, &p->decided);
	if (with_history && p->trend)
		write_history(w, p);
	json_write_object_end(w);
}

void overview_write_detail(struct json_writer *w, const struct overview_policy *p,
                           const struct decision_history *decisions)
{
	char key[KEY_BYTES];
	int name_at = snprintf(key, sizeof key, "%s/", p->namespace_name);
	binding_format(key + name_at, sizeof key - (size_t)name_at, p->name, p->key);
	json_write_format(w, "{apiVersion:%s,kind:%s,policy:", POLICY_API_VERSION, "PolicyDetail");
	overview_add(w, p, true);
	json_write_key(w, "decision");
	if (p->decided.decision)
		explain_decision_json(w, &p->decided);
	else
		json_write_null(w);
	json_write_member_array(w, "decisions");
	decision_history_write(decisions, w, key);
	json_write_format(w, "]}");
}

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
	json_write_format(&w, "{error:%s}", text);
	buf_putc(&b, '\n');
	set_headers(x, NULL);
	endpoint_reply(x, status, JSON_TYPE, &b);
}

// ---- problems that concern no single policy ----

static struct shards_view shards_view_of(const struct controller *c)
{
	struct shards_view view = {.error = "", .leader = ""};
	if (c->connections->shards)
		shards_get_view(c->connections->shards, &view);
	return view;
}

// Writes one problem per line; cuts what does not fit.
static void find_problems(const struct controller *c, char out[PROBLEMS_BYTES])
{
	size_t used = (size_t)snprintf(out, PROBLEMS_BYTES, "%s", controller_file_report(c));
	const struct shards_view shards = shards_view_of(c);
	struct informer_state targets = {0};
	if (c->connections->targets)
		targets = target_store_get_state(c->connections->targets);
	const struct {
		const char *what, *error;
	} rows[] = {
	        {"policies cannot be watched", controller_watch_error(c)},
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
	const struct shards_view shards = shards_view_of(c);
	uint64_t hash = hash_text(hash_text(HASH_START, problems), shards.leader);
	snprintf(tag, sizeof tag, "\"%016" PRIx64 "\"", c->policies.revision ^ hash);
	snprintf(etag, sizeof etag, "W/%s", tag);
	set_headers(x, etag);
	if (!has_it(x, tag))
		return false;
	http_exchange_reply(x, 304, NULL, "", 0);
	return true;
}

// ---- from the controller to its policies ----

static struct overview_items items_find(struct controller *c)
{
	struct managed_policy *const *in_force = managed_policies_sort(&c->policies);
	size_t room = c->policies.n + 1;
	struct decided decided;
	struct status_facts facts;
	for (const struct stored_binding *b = NULL; (b = policy_store_next(c->policies.store, b));)
		room++;
	struct overview_items items = {.list = must_alloc(calloc(room, sizeof(struct managed_policy *)))};
	for (size_t i = 0; i < c->policies.n; i++) {
		items.list[items.n++] = in_force[i];
		items.n_invalid += managed_policy_facts(in_force[i], &decided, &facts) && facts.fault;
	}
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_idle(&c->sync, m));) {
		items.list[items.n++] = m;
		items.n_invalid += policy_entry_error(m->stored->entry)[0] != '\0';
		items.n_waiting += m->stored->binding != NULL;
	}
	for (const struct managed_policy *m = NULL; (m = policy_sync_next_fleet(&c->sync, m));) {
		items.list[items.n++] = m;
		items.n_invalid += policy_entry_error(m->stored->entry)[0] != '\0';
	}
	qsort(items.list, items.n, sizeof(struct managed_policy *), managed_policy_compare);
	return items;
}

static void show_idle(const struct managed_policy *m, struct overview_policy *p)
{
	const struct binding *b = m->stored->binding;
	enum status_phase phase = policy_awaits_explain(m, p->why, sizeof p->why);
	p->error = p->why;
	if (b) {
		p->decided = (struct decided){.policy = b->policy, .target = b->target};
		p->gpus = b->policy->gpus;
	}
	p->facts = (struct status_facts){.phase = phase,
	                                 .text = p->why,
	                                 .dry_run = p->dry_run || (b && b->policy->dry_run),
	                                 .paused = b && b->policy->paused};
	p->has_facts = phase != STATUS_PHASE__COUNT;
}

static void show(const struct controller *c, const struct price_book *prices, const struct managed_policy *m,
                 struct overview_policy *p)
{
	*p = (struct overview_policy){.namespace_name = m->namespace_name,
	                              .name = m->name,
	                              .key = m->key,
	                              .dry_run = c->options.dry_run,
	                              .last_scale_ms = -1,
	                              .prices = prices};
	if (m->fleet) {
		p->fleet = m->fleet;
		p->decided = (struct decided){.policy = &m->body->policy, .target = &m->body->target};
		p->gpus = m->body->policy.gpus;
		return;
	}
	if (!m->reconciler) {
		show_idle(m, p);
		return;
	}
	p->decided =
	        (struct decided){.policy = m->reconciler->policy, .target = m->reconciler->subject.binding->target};
	p->gpus = reconciler_gpus(m->reconciler);
	p->error = managed_policy_error(m);
	p->trend = m->report.sparkline;
	p->last_scale_ms = m->reconciler->last_scale_ms;
	p->has_facts = managed_policy_facts(m, &p->decided, &p->facts);
	if (p->has_facts && !p->error[0] && p->facts.fault)
		p->error = p->facts.fault;
}

// ---- the endpoints ----

static void get_overview(void *arg, struct http_exchange *x)
{
	struct controller *c = arg;
	struct overview_policy shown;
	struct json_writer w;
	struct buf b;
	char problems[PROBLEMS_BYTES];
	if (!endpoint_is_read(x))
		return;
	const struct price_book *prices = controller_prices(c);
	find_problems(c, problems);
	if (is_known(x, c, problems))
		return;
	const char *history = http_exchange_query(x, "history");
	const struct overview_items items = items_find(c);
	const struct shards_view shards = shards_view_of(c);
	bool with_history = history && strcmp(history, "true") == 0 && items.n <= OVERVIEW_HISTORIES_MAX;
	buf_init(&b, ENDPOINT_BYTES_MAX);
	json_write_init(&w, &b, 0);
	overview_begin(&w, c, &shards, &items, problems);
	for (size_t i = 0; i < items.n && !b.failed; i++) {
		show(c, prices, items.list[i], &shown);
		overview_add(&w, &shown, with_history);
	}
	overview_end(&w);
	buf_putc(&b, '\n');
	free(items.list);
	endpoint_reply(x, 200, JSON_TYPE, &b);
}

// Returns the first one with that id; NULL: there is none.
static const struct managed_policy *find_policy(struct controller *c, const char *id)
{
	struct managed_policy *const *in_force = managed_policies_sort(&c->policies);
	for (size_t i = 0; i < c->policies.n; i++)
		if (managed_policy_has_id(in_force[i], id))
			return in_force[i];
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
	struct overview_policy shown;
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
	const struct price_book *prices = controller_prices(c);
	const struct managed_policy *found = find_policy(c, key);
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
	show(c, prices, found, &shown);
	overview_write_detail(&w, &shown, c->history);
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

int overview_endpoints_add(struct http_server *server, struct controller *controller, struct err *e)
{
	if (http_server_route(server, "/", get_page, controller, e) < 0 ||
	    http_server_route_long(server, "/api/v1/overview", get_overview, controller, e) < 0)
		return -1;
	return http_server_route_long(server, "/api/v1/policy", get_policy, controller, e);
}
