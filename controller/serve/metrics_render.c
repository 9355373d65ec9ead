// SPDX-License-Identifier: Apache-2.0
// Renders /metrics: the counters and the state of the controller as samples of the families in
// runtime/metrics/metrics.h.
#include "base/base.h"
#include "controller/serve/endpoints.h"

#include <math.h>

#include "base/http/http_server.h"
#include "base/process/process.h"
#include "controller/fleet/fleet.h"
#include "controller/policy/managed_policy.h"
#include "controller/pool/pools.h"
#include "controller/status/status_writer.h"
#include "controller/tick/reconcile.h"
#include "k8s/events/event_recorder.h"
#include "policies/engine/policy.h"
#include "policies/explain/explain.h"
#include "policies/price/price_book.h"
#include "promql/fair_queue.h"
#include "promql/promql_source.h"
#include "runtime/metrics/metrics.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards.h"

#define LABELS(...) ((const char *const[]){__VA_ARGS__})

static void put_counts(struct buf *out, enum metric_family_id id, const uint64_t *n)
{
	metric_family_begin(out, id);
	metric_family_counts(out, id, NULL, n);
}

static void render_counters(const struct metrics *m, struct buf *out)
{
	put_counts(out, FAMILY_RECONCILES, m->counts[FAMILY_RECONCILES]);
	metric_family_begin(out, FAMILY_RECONCILE_DURATION);
	metric_family_histogram(out, FAMILY_RECONCILE_DURATION, NULL, &m->duration_seconds);
	metric_family_begin(out, FAMILY_TICK_DELAY);
	metric_family_histogram(out, FAMILY_TICK_DELAY, NULL, &m->delay_seconds);
	put_counts(out, FAMILY_TICKS_SKIPPED, m->counts[FAMILY_TICKS_SKIPPED]);
	put_counts(out, FAMILY_TICKS_EARLY, m->counts[FAMILY_TICKS_EARLY]);
	metric_family_begin(out, FAMILY_DECISIONS);
	for (int a = 0; a < ACTION__COUNT; a++)
		for (int r = 0; r < REASON__COUNT; r++)
			if (m->decisions[a][r])
				metric_family_i64(out, FAMILY_DECISIONS,
				                  LABELS(action_names[a], reason_info((enum reason)r)->name),
				                  (int64_t)m->decisions[a][r]);
	put_counts(out, FAMILY_SCALES, m->counts[FAMILY_SCALES]);
	put_counts(out, FAMILY_CONFLICTS, m->counts[FAMILY_CONFLICTS]);
	metric_family_begin(out, FAMILY_API_REQUESTS);
	for (size_t i = 0; i < m->n_api; i++) {
		char code[16];
		snprintf(code, sizeof code, "%d", m->api[i].code);
		metric_family_i64(out, FAMILY_API_REQUESTS, LABELS(m->api[i].verb, m->api[i].resource, code),
		                  (int64_t)m->api[i].n);
	}
}

// Returns how many policies have series of their own. Without a limit, those of 20,000 policies would be a page of 15
// MB at every scrape, and take as long as thousands of ticks.
static size_t n_listed(const struct metrics *m, const struct metrics_view *v)
{
	return v->n_policies < m->max_policies ? v->n_policies : m->max_policies;
}

// Returns how many policies the bindings belong to. Those of a policy follow each other.
static size_t n_in_force(const struct metrics_view *v)
{
	size_t n = 0;
	const struct policy *before = NULL;
	for (size_t i = 0; i < v->n_policies; i++) {
		const struct reconciler *r = v->policies[i]->reconciler;
		const struct policy *p = r->policy;
		n += !r->subject.binding->key || !before || strcmp(before->name, p->name) != 0 ||
		     strcmp(before->namespace_name, p->namespace_name) != 0;
		before = p;
	}
	return n;
}

static void render_policies(const struct metrics *m, const struct metrics_view *v, struct buf *out)
{
	metric_family_single(out, FAMILY_POLICIES, (double)n_in_force(v));
	metric_family_single(out, FAMILY_POLICIES_INVALID, (double)v->n_invalid);
	metric_family_single(out, FAMILY_POLICIES_WAITING, (double)v->n_waiting);
	metric_family_single(out, FAMILY_POLICIES_WITHOUT_SERIES, (double)(v->n_policies - n_listed(m, v)));
	metric_family_single(out, FAMILY_POLICY_FILES_INVALID, (double)v->n_bad_files);
	put_counts(out, FAMILY_POLICY_RELOADS, m->counts[FAMILY_POLICY_RELOADS]);
	metric_family_single(out, FAMILY_POLICY_RELOAD_TIMESTAMP, (double)m->reloaded_ms / 1000);
}

// ---- per source ----

static void render_source(enum metric_family_id id, const struct promql_source *s, const struct query_hub_stats *hub,
                          struct buf *out)
{
	static const char *const classes[] = {[FAIR_FAST] = "fast", [FAIR_SLOW] = "slow"};
	_Static_assert(sizeof classes / sizeof classes[0] == FAIR_CLASS__COUNT, "one name per class");
	const struct fair_queue *queue = s->queue;
	const char *name = s->name;
	const struct promql_source_stats *stats = &s->stats;
	enum promql_health_state state = s->health.state;
	const char *version;
	enum promql_kind kind;
	// NaN: there is no sample.
	const double values[] = {
	        [FAMILY_SOURCE_UP] = state != PROMQL_DOWN,
	        [FAMILY_SOURCE_QUERIES] = (double)stats->queries,
	        [FAMILY_SOURCE_PARTIAL] = (double)stats->partial,
	        [FAMILY_SOURCE_REFUSED] = (double)stats->refused,
	        [FAMILY_SOURCE_UNSENT] = (double)stats->unsent,
	        [FAMILY_SOURCE_POSTPONED] = (double)hub->postponed,
	        [FAMILY_SOURCE_APART] = (double)hub->apart,
	        [FAMILY_SOURCE_ISOLATED] = (double)hub->isolated,
	        [FAMILY_SOURCE_DISAGREED] = s->next ? (double)hub->disagreed : (double)NAN,
	        [FAMILY_SOURCE_SLOTS] = queue->slots,
	        [FAMILY_SOURCE_QUEUED] = (double)queue->n_waiting,
	        [FAMILY_SOURCE_ANSWER_TIMESTAMP] =
	                stats->last_answer_wall_ms ? (double)stats->last_answer_wall_ms / 1000 : (double)NAN,
	        [FAMILY_SOURCE_SKEW] = (double)promql_source_skew_ms(s) / 1000,
	};
	switch (id) {
	case FAMILY_SOURCE_INFO:
		kind = promql_source_kind(s, &version);
		if (kind != PROMQL_KIND_AUTO)
			metric_family_i64(out, id, LABELS(name, promql_kind_names[kind], version), 1);
		break;
	case FAMILY_SOURCE_STATE:
		for (int i = 0; i < PROMQL_HEALTH__COUNT; i++)
			metric_family_i64(out, id, LABELS(name, promql_health_names[i]), (int)state == i);
		break;
	case FAMILY_SOURCE_FAILURES:
		for (int k = 0; k < ERR__COUNT; k++)
			if (stats->failed[k])
				metric_family_i64(out, id, LABELS(name, err_kind_info((enum err_kind)k)->name),
				                  (int64_t)stats->failed[k]);
		break;
	case FAMILY_SOURCE_SLOTS_USED:
		for (int i = 0; i < FAIR_CLASS__COUNT; i++)
			metric_family_i64(out, id, LABELS(name, classes[i]), queue->used[(enum fair_class)i]);
		break;
	case FAMILY_SOURCE_QUEUE_SECONDS:
		metric_family_histogram(out, id, LABELS(name), &stats->queue_seconds);
		break;
	case FAMILY_SOURCE_SECONDS:
		metric_family_histogram(out, id, LABELS(name), &stats->seconds);
		break;
	default:
		if (!isnan(values[id]))
			metric_family_f64(out, id, LABELS(name), values[id]);
	}
}

static void render_sources(const struct query_hub *queries, struct buf *out)
{
	const struct promql_sources *sources = queries->sources;
	struct query_hub_stats stats[PROMQL_SOURCES_MAX]; // counted once, not for each family
	for (size_t i = 0; i < sources->n; i++)
		stats[i] = query_hub_source_stats(queries, i);
	for (int id = FAMILY_SOURCE_INFO; id <= FAMILY_SOURCE_SKEW; id++) {
		metric_family_begin(out, (enum metric_family_id)id);
		for (size_t i = 0; i < sources->n; i++)
			render_source((enum metric_family_id)id, sources->items[i], &stats[i], out);
	}
	metric_family_single(out, FAMILY_QUERIES_SHARED, (double)queries->shared);
	metric_family_single(out, FAMILY_QUERIES_FUSED, (double)queries->fused);
}

// ---- per policy: there may be thousands, so their labels are made once, not for each family ----

struct label_texts {
	struct buf text;
	size_t *end; // where the labels of each policy end
};

// Appends a sample of a policy. rest: the values of the labels behind namespace and policy; NULL: there are none.
static void put_sample(struct buf *out, enum metric_family_id id, const struct label_texts *labels, size_t policy,
                       const char *const *rest, double value)
{
	const struct metric_family *family = metric_family_of(id);
	size_t from = policy ? labels->end[policy - 1] : 0;
	char number[NUM_TEXT_BYTES];
	buf_puts(out, family->name);
	buf_putc(out, '{');
	buf_put(out, labels->text.data + from, labels->end[policy] - from);
	for (size_t i = 2; rest && i < FAMILY_LABELS_MAX && family->labels[i]; i++) {
		buf_putc(out, ',');
		buf_puts(out, family->labels[i]);
		buf_puts(out, "=\"");
		exposition_label_value(out, rest[i - 2]);
		buf_putc(out, '"');
	}
	buf_puts(out, "} ");
	buf_put(out, number, num_format_f64(number, value));
	buf_putc(out, '\n');
}

static double learnt_capacity(const struct reconciler *r, size_t signal)
{
	const struct policy_objective *o = &r->policy->objective;
	if (!o->set || signal != o->demand_index)
		return NAN;
	const struct trace_entry *learnt = decision_find(r->decision, REASON_CAPACITY_LEARNT);
	const struct trace_entry *doubtful = decision_find(r->decision, REASON_CAPACITY_DOUBTFUL);
	return learnt ? learnt->value : doubtful ? doubtful->value : NAN;
}

// NaN: not known, so there is no sample.
static double signal_value(enum metric_family_id id, const struct reconciler *r, size_t i)
{
	const struct decision_signal *s = &r->decision->signals[i];
	if (id == FAMILY_SIGNAL_CAPACITY)
		return learnt_capacity(r, i);
	if (id == FAMILY_SIGNAL_AGE)
		return s->age_ms < 0 ? NAN : (double)s->age_ms / 1000;
	if (s->state == SIGNAL_MISSING)
		return NAN;
	return id == FAMILY_SIGNAL_VALUE ? s->value : id == FAMILY_SIGNAL_TARGET ? s->target : s->proposal;
}

static void render_signals(enum metric_family_id id, const struct metrics_view *v, const struct label_texts *labels,
                           size_t index, struct buf *out)
{
	const struct reconciler *r = v->policies[index]->reconciler;
	for (size_t i = 0; i < r->decision->n_signals; i++) {
		double value = signal_value(id, r, i);
		if (isfinite(value))
			put_sample(out, id, labels, index, LABELS(r->policy->signals[i].name), value);
	}
}

static void render_policy(enum metric_family_id id, const struct metrics_view *v, const struct label_texts *labels,
                          size_t index, struct buf *out)
{
	const struct managed_policy *m = v->policies[index];
	const struct reconciler *r = m->reconciler;
	const struct decision *d = r->decision;
	const int64_t values[] = {
	        [FAMILY_CURRENT_REPLICAS] = d->current,
	        [FAMILY_READY_REPLICAS] = d->ready,
	        [FAMILY_PENDING_REPLICAS] = d->pending,
	        [FAMILY_DESIRED_REPLICAS] = d->desired,
	        [FAMILY_MIN_REPLICAS] = r->policy->min_replicas,
	        [FAMILY_MAX_REPLICAS] = r->policy->max_replicas,
	        [FAMILY_VALUES_LIMITED] = m->report.values_limited,
	        [FAMILY_HELD] = d->action == ACTION_HOLD,
	};
	if (id == FAMILY_TARGET_INFO)
		put_sample(out, id, labels, index, LABELS(r->subject.binding->target->name), 1);
	else if (id != FAMILY_READY_REPLICAS || d->ready >= 0) // else they are not known
		put_sample(out, id, labels, index, NULL, (double)values[id]);
}

// GPU time and cost: only where it is known what a replica uses.
static void render_gpus(enum metric_family_id id, const struct metrics_view *v, const struct label_texts *labels,
                        size_t index, struct buf *out)
{
	const struct managed_policy *m = v->policies[index];
	const struct gpu_time *used = &m->report.gpu_time;
	const struct policy_gpus gpus = reconciler_gpus(m->reconciler);
	enum price_basis basis;
	double n = (double)m->reconciler->decision->current * gpus.per_replica;
	int64_t micro = policy_gpu_micro(v->prices, gpus.model, &basis);
	if (!gpus.set)
		return;
	if (id == FAMILY_GPU_SECONDS)
		put_sample(out, id, labels, index, NULL, (double)used->used_ms / 1000);
	else if (id == FAMILY_SAVED_GPU_SECONDS)
		put_sample(out, id, labels, index, LABELS("max"), (double)used->saved_ms / 1000);
	else if (id == FAMILY_GPUS)
		put_sample(out, id, labels, index, LABELS(gpus.model), n);
	else if (basis != PRICE_NONE) // FAMILY_COST_PER_HOUR
		put_sample(out, id, labels, index, LABELS(v->prices->currency, price_basis_names[basis]),
		           n * (double)micro / 1e6);
}

static void render_variants(enum metric_family_id id, const struct metrics_view *v, const struct label_texts *labels,
                            size_t index, struct buf *out)
{
	const struct decided decided = reconciler_decided(v->policies[index]->reconciler);
	for (size_t i = 0; i < decided.n_variants; i++) {
		const struct decided_variant *x = &decided.variants[i];
		double value = id == FAMILY_VARIANT_REPLICAS  ? x->current
		               : id == FAMILY_VARIANT_DESIRED ? x->desired
		                                              : x->current * x->price_per_hour;
		put_sample(out, id, labels, index, LABELS(x->name), value);
	}
}

static void render_per_policy(const struct metrics_view *v, size_t n_policies, struct buf *out)
{
	struct label_texts labels = {.end = calloc(n_policies ? n_policies : 1, sizeof *labels.end)};
	buf_init(&labels.text, out->max);
	for (size_t i = 0; labels.end && i < n_policies; i++) {
		const struct binding *b = v->policies[i]->reconciler->subject.binding;
		metric_family_label_text(&labels.text, FAMILY_CURRENT_REPLICAS,
		                         LABELS(b->policy->namespace_name, b->policy->name), 2);
		if (b->key) {
			buf_puts(&labels.text, ",target=\"");
			exposition_label_value(&labels.text, b->key);
			buf_putc(&labels.text, '"');
		}
		labels.end[i] = labels.text.len;
	}
	if (!labels.end || labels.text.failed)
		out->failed = true; // a truncated page would look like removed policies
	for (int id = FAMILY_CURRENT_REPLICAS; !out->failed && id <= FAMILY_SIGNAL_AGE; id++) {
		void (*render)(enum metric_family_id, const struct metrics_view *, const struct label_texts *, size_t,
		               struct buf *) = id >= FAMILY_SIGNAL_VALUE       ? render_signals
		                               : id >= FAMILY_VARIANT_REPLICAS ? render_variants
		                               : id >= FAMILY_GPU_SECONDS      ? render_gpus
		                                                               : render_policy;
		metric_family_begin(out, (enum metric_family_id)id);
		for (size_t i = 0; i < n_policies; i++)
			if (v->policies[i]->reconciler->decision)
				render((enum metric_family_id)id, v, &labels, i, out);
	}
	buf_done(&labels.text);
	free(labels.end);
}

static void render_pool_members(const struct pool_summary *p, struct buf *out)
{
	for (size_t i = 0; i < p->n_members; i++) {
		struct pool_member_summary m;
		pools_get_member(p->pool, i, &m);
		metric_family_counts(out, FAMILY_POOL_MEMBER_GPUS, LABELS(p->name, m.namespace_name, m.name),
		                     (const uint64_t[]){(uint64_t)m.used_gpus, (uint64_t)m.requested_gpus,
		                                        (uint64_t)m.granted_gpus});
	}
}

static void render_pool(enum metric_family_id id, const struct pool_summary *p, struct buf *out)
{
	if (id == FAMILY_POOL_GPUS) {
		const uint64_t gpus[] = {(uint64_t)p->cap_gpus, (uint64_t)p->used_gpus, (uint64_t)p->requested_gpus,
		                         (uint64_t)p->granted_gpus};
		metric_family_counts(out, id, LABELS(p->name), gpus);
	} else if (id == FAMILY_POOL_MEMBER_GPUS) {
		render_pool_members(p, out);
	} else if (id == FAMILY_POOL_HOUR && p->has_budget) {
		if (p->budget_micro > 0)
			metric_family_f64(out, id, LABELS(p->name, "cap"), (double)p->budget_micro / 1e6);
		metric_family_f64(out, id, LABELS(p->name, "used"), (double)p->cost_micro / 1e6);
	} else if (id == FAMILY_POOL_MONTH && p->has_budget) {
		if (p->month_micro > 0)
			metric_family_f64(out, id, LABELS(p->name, "cap"), (double)p->month_micro / 1e6);
		if (p->projected_micro == POOL_SPENT_UNKNOWN)
			return;
		metric_family_f64(out, id, LABELS(p->name, "spent"), p->spending.spent_micro / 1e6);
		metric_family_f64(out, id, LABELS(p->name, "assumed"), p->spending.assumed_micro / 1e6);
		metric_family_f64(out, id, LABELS(p->name, "projected"), (double)p->projected_micro / 1e6);
	}
}

static void render_pools(const struct metrics_view *v, struct buf *out)
{
	for (int id = FAMILY_POOL_GPUS; v->n_pools && id <= FAMILY_POOL_MONTH; id++) {
		metric_family_begin(out, (enum metric_family_id)id);
		for (size_t i = 0; i < v->n_pools; i++)
			render_pool((enum metric_family_id)id, &v->pools[i], out);
	}
}

static void render_fleets(const struct metrics_view *v, struct buf *out)
{
	for (int id = FAMILY_FLEET_TARGETS; v->n_fleets && id <= FAMILY_FLEET_REPLICAS; id++) {
		metric_family_begin(out, (enum metric_family_id)id);
		for (size_t i = 0; i < v->n_fleets; i++) {
			const struct fleet_numbers *f = &v->fleets[i];
			const uint64_t targets[] = {f->targets, f->ready,     f->idle,  f->at_max,
			                            f->holding, f->conflicts, f->failed};
			const uint64_t replicas[] = {(uint64_t)f->replicas, (uint64_t)f->desired,
			                             (uint64_t)f->ready_replicas};
			metric_family_counts(out, (enum metric_family_id)id,
			                     LABELS(f->policy->namespace_name, f->policy->name),
			                     id == FAMILY_FLEET_TARGETS ? targets : replicas);
		}
	}
}

// ---- the cluster ----

static void render_watches(const struct metrics_view *v, struct buf *out)
{
	for (int id = FAMILY_WATCH_SYNCED; v->n_watches && id <= FAMILY_WATCH_GONE; id++) {
		metric_family_begin(out, (enum metric_family_id)id);
		for (size_t i = 0; i < v->n_watches; i++) {
			const struct informer_state *s = &v->watches[i].state;
			const uint64_t values[] = {s->unsynced == 0, s->streaming > 0, s->lists,
			                           s->streams,       s->events,        s->gone};
			metric_family_i64(out, (enum metric_family_id)id, LABELS(v->watches[i].resource),
			                  (int64_t)values[id - FAMILY_WATCH_SYNCED]);
		}
	}
}

static void render_writes(const struct metrics_view *v, struct buf *out)
{
	if (v->status) {
		put_counts(out, FAMILY_STATUS_WRITES, (const uint64_t[]){v->status->sent, v->status->failed});
		metric_family_single(out, FAMILY_STATUS_WAITING, (double)v->status->waiting);
	}
	if (v->events)
		put_counts(out, FAMILY_EVENTS,
		           (const uint64_t[]){v->events->written, v->events->failed, v->events->dropped});
}

static void render_shards(const struct shards_view *s, struct buf *out)
{
	metric_family_single(out, FAMILY_LEADER, !s || s->n_owned > 0);
	if (!s)
		return;
	metric_family_single(out, FAMILY_SHARDS, s->n_shards);
	metric_family_single(out, FAMILY_SHARDS_HELD, s->n_owned);
	metric_family_single(out, FAMILY_SHARD_MEMBERS, (double)s->n_members);
	put_counts(out, FAMILY_SHARD_CHANGES, (const uint64_t[]){s->gained, s->lost});
}

static void render_servers(const struct metrics *m, struct buf *out)
{
	struct http_server_stats stats[METRICS_SERVERS_MAX];
	if (m->n_servers == 0)
		return;
	metric_family_begin(out, FAMILY_HTTP_OPEN);
	for (size_t i = 0; i < m->n_servers; i++) {
		http_server_get_stats(m->servers[i].server, &stats[i]);
		metric_family_i64(out, FAMILY_HTTP_OPEN, LABELS(m->servers[i].name), stats[i].open);
	}
	metric_family_begin(out, FAMILY_HTTP_CLOSED);
	for (size_t i = 0; i < m->n_servers; i++)
		for (int cause = 0; cause < HTTP_CLOSE__COUNT; cause++)
			metric_family_i64(out, FAMILY_HTTP_CLOSED,
			                  LABELS(m->servers[i].name, http_close_cause_names[cause]),
			                  (int64_t)stats[i].closed[cause]);
}

void metrics_render(const struct metrics *m, const struct metrics_view *view, struct buf *out)
{
	metric_family_begin(out, FAMILY_BUILD_INFO);
	metric_family_i64(out, FAMILY_BUILD_INFO, LABELS(GPUSCALE_VERSION), 1);
	metric_family_single(out, FAMILY_DRY_RUN, view->dry_run);
	render_policies(m, view, out);
	render_counters(m, out);
	if (view->queries)
		render_sources(view->queries, out);
	render_per_policy(view, n_listed(m, view), out);
	render_pools(view, out);
	render_fleets(view, out);
	render_watches(view, out);
	render_writes(view, out);
	render_shards(view->shards, out);
	put_counts(out, FAMILY_CLOCK_STEPS, m->counts[FAMILY_CLOCK_STEPS]);
	if (m->serves_external)
		put_counts(out, FAMILY_EXTERNAL_REQUESTS, m->counts[FAMILY_EXTERNAL_REQUESTS]);
	render_servers(m, out);
	process_stat_render(out);
}
