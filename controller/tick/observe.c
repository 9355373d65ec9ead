// SPDX-License-Identifier: Apache-2.0
#include "controller/tick/observe.h"

#include "base/base.h"
#include "k8s/cache/pod_store.h"
#include "k8s/capacity/fit_store.h"
#include "policies/engine/number.h"
#include "promql/promql_source.h"
#include "runtime/query/query_hub.h"

struct scale_ref binding_scale_ref(const struct binding *b)
{
	const struct scale_target *t = b->target;
	return (struct scale_ref){t->api_version, t->kind, b->policy->namespace_name, t->name,
	                          workload_kind_path(t->api_version, t->kind, t->path)};
}

int32_t observation_ready(const struct observation *o)
{
	return o->ready_replicas >= 0 && o->ready_replicas < o->spec_replicas ? o->ready_replicas : o->spec_replicas;
}

bool observe_needs_pods(const struct policy *p)
{
	for (size_t i = 0; i < p->n_signals; i++)
		if (p->signals[i].target.set && p->signals[i].target.type == TARGET_PODS)
			return true;
	return p->guards.unhealthy != UNHEALTHY_IGNORE;
}

enum pod_state observe_pod_state(enum pod_kind kind)
{
	static const enum pod_state states[] = {
	        [POD_KIND_READY] = POD_READY,  [POD_KIND_UNREADY] = POD_UNREADY, [POD_KIND_PENDING] = POD_PENDING,
	        [POD_KIND_ENDED] = POD_FAILED, [POD_KIND_DELETED] = POD_DELETED,
	};
	_Static_assert(sizeof states / sizeof states[0] == POD_KIND__COUNT, "one state per kind");
	return states[kind];
}

static void build_pods(struct observation_call *c)
{
	const struct pod_list *l = &c->pod_list;
	c->observed_pods = must_alloc(calloc(l->n ? l->n : 1, sizeof *c->observed_pods));
	c->observation.n_pods = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (!c->is_wide || l->items[i].member.is_leader)
			c->observed_pods[c->observation.n_pods++] =
			        (struct obs_pod){l->items[i].name, observe_pod_state(l->items[i].kind)};
	}
	c->observation.pods = c->observed_pods;
}

// Returns how many pods of the target exist, except finished and deleted ones.
static int32_t live_pods(const struct pod_counts *p)
{
	int32_t n = p->total - p->terminating - p->failed, least = p->ready + p->pending;
	return n > least ? n : least; // a failed pod may be terminating as well
}

// Where nothing shows which pods belong together, replicas are taken to have equally many: then no more than these can
// be complete.
static void count_pods(struct observation_call *c, int32_t replicas)
{
	struct observation *o = &c->observation;
	const struct pod_counts *p = &c->pods;
	int64_t live = live_pods(p), n = replicas;
	o->ready_replicas = p->ready;
	o->pending_replicas = p->pending;
	if (live <= n)
		return;
	o->pending_replicas = (int32_t)((p->pending * n + live - 1) / live);
	if (p->ready < live || n < o->spec_replicas) // else decide() reports how many pods there are
		o->ready_replicas = (int32_t)(p->ready * n / live);
}

// Sets the ready and the pending replicas from the best source that is available.
static void count_replicas(struct observation_call *c)
{
	struct observation *o = &c->observation;
	const struct replica_groups *g = &c->groups;
	// A status that reports no replicas although some are requested may not be maintained at all.
	int32_t exist = o->status_replicas > 0 ? o->status_replicas : o->spec_replicas;
	if (c->target_ready >= 0 && !(c->is_ready_stale && c->has_groups)) {
		// A replica that is not ready is pending, also while it loads its model.
		o->ready_replicas = c->target_ready;
		o->pending_replicas = i32_max(o->status_replicas - c->target_ready, 0);
	} else if (c->has_groups) {
		o->ready_replicas = g->ready < exist ? g->ready : exist;
		o->pending_replicas = g->pending + i32_max(exist - g->total, 0);
		if (o->pending_replicas > exist - o->ready_replicas)
			o->pending_replicas = exist - o->ready_replicas;
	} else if (c->pods_known) {
		count_pods(c, exist);
	} else {
		o->ready_replicas = -1;
	}
}

// Returns how many replicas exist of a target that does not report them.
static int32_t count_existing(const struct observation_call *c)
{
	if (c->has_groups)
		return c->groups.total;
	return c->pods_known ? live_pods(&c->pods) : c->scale.spec_replicas;
}

static void build(struct observation_call *c)
{
	const struct policy *p = c->policy;
	for (size_t i = 0; i < p->n_signals; i++) {
		const struct query_answer *a = c->answers[i];
		c->details[i] = a && a->detail[0] ? a->detail : NULL;
		c->signals[i] = (struct obs_signal){.state = OBS_EMPTY};
		if (!a) // of a formula
			continue;
		c->signals[i] = (struct obs_signal){.state = a->state,
		                                    .detail = c->details[i],
		                                    .series = a->series,
		                                    .n_series = a->n_series,
		                                    .skew_ms = a->skew_ms};
	}
	c->observation = (struct observation){
	        .spec_replicas = c->scale.spec_replicas,
	        .status_replicas = c->scale.status_replicas,
	        .signals = c->signals,
	        .n_signals = p->n_signals,
	};
	c->has_groups = c->pods_known && c->workload->group_label && replica_groups_count(&c->pod_list, &c->groups);
	if (c->scale.status_replicas < 0)
		c->observation.status_replicas = c->scale.status_replicas = count_existing(c);
	count_replicas(c);
	if (c->sources.k8s && c->pods_known && observe_needs_pods(p))
		build_pods(c);
}

struct fit_target *observe_acquire_fit(const struct observe_sources *sources, const struct binding *binding,
                                       struct err *e)
{
	const struct policy *p = binding->policy;
	struct scale_ref ref = binding_scale_ref(binding);
	err_clear(e);
	bool is_wanted = p->capacity.mode != CAPACITY_OFF || p->guards.unhealthy != UNHEALTHY_IGNORE;
	return is_wanted && sources->fits ? fit_store_acquire(sources->fits, &ref, e) : NULL;
}

// Returns whether it is unknown which pods make up a replica, although each has several; what a replica needs is then
// unknown, too.
static bool has_unknown_groups(const struct observation_call *c, int32_t replicas)
{
	return c->pods_known && !c->has_groups && !c->workload->is_pod && live_pods(&c->pods) > replicas;
}

void observe_capacity(struct observation_call *c)
{
	struct fit_view view;
	struct obs_capacity *o = &c->observation.capacity;
	const struct scale *s = &c->scale;
	int32_t replicas = s->status_replicas > s->spec_replicas ? s->status_replicas : s->spec_replicas;
	if (!c->fit)
		return;
	if (c->policy->guards.unhealthy != UNHEALTHY_IGNORE && c->observation.pods) {
		int32_t n = fit_target_failing(c->fit, &c->pod_list);
		c->observation.health = (struct obs_health){n >= 0, n < replicas ? n : replicas};
	}
	if (c->policy->capacity.mode == CAPACITY_OFF)
		return;
	fit_target_select(c->fit, s->selector);
	fit_target_read(c->fit, s->spec_replicas, s->status_replicas, c->bypass_cache, &view);
	if (view.is_known && has_unknown_groups(c, replicas)) {
		snprintf(c->shape_detail, sizeof c->shape_detail,
		         "%d pods belong to %d replicas, so what a replica needs is unknown", live_pods(&c->pods),
		         replicas);
		view = (struct fit_view){.detail = c->shape_detail};
	}
	*o = (struct obs_capacity){
	        view.is_known, view.fit,     view.unschedulable < replicas ? view.unschedulable : replicas,
	        view.since_ms, view.n_since, view.detail};
	c->details[c->policy->n_signals] = view.detail;
}

static void finish_one(struct observation_call *c)
{
	assert(c->pending > 0);
	if (--c->pending > 0)
		return;
	if (c->error.kind == ERR_NONE)
		build(c);
	c->done(c->arg, c);
}

// ---- the pods ----

static void on_pods(void *arg, const struct pod_counts *counts, const struct err *error)
{
	struct observation_call *c = arg;
	c->pods_known = counts != NULL;
	if (counts)
		c->pods = *counts;
	else
		c->pods_error = *error; // the decision does without; its trace reports that the ready count is unknown
	finish_one(c);
}

static bool needs_list(const struct observation_call *c)
{
	return observe_needs_pods(c->policy) || c->workload->group_label;
}

static void list_pods(struct observation_call *c)
{
	struct pod_list *list = NULL;
	char selector[SCALE_SELECTOR_BYTES_MAX];
	if (c->scale.selector[0] == '\0') {
		err_set(&c->pods_error, ERR_UNSUPPORTED, "the scale has no selector");
		finish_one(c);
		return;
	}
	if (needs_list(c)) {
		list = &c->pod_list;
		pod_list_init(list);
		list->workload = c->workload;
	}
	c->is_wide = workload_kind_widen(c->workload, c->scale.selector, selector);
	if (pods_list(c->sources.k8s, c->policy->namespace_name, selector, list, on_pods, c, &c->pods_error) < 0)
		finish_one(c);
}

static void add_pod(void *arg, const struct pod_view *pod)
{
	struct observation_call *c = arg;
	if (c->pods_error.kind == ERR_NONE && pod_list_add(&c->pod_list, pod->name, pod->kind, &c->pods_error) == 0)
		c->pod_list.items[c->pod_list.n - 1].member = pod->member;
}

int observe_compare_pods(const void *a, const void *b)
{
	return strcmp(((const struct pod_info *)a)->name, ((const struct pod_info *)b)->name);
}

// Copies the pods, because they may change until the sources have answered.
static void take_pods(struct observation_call *c, const struct pod_set *pods)
{
	struct pod_set_counts counts;
	pod_list_init(&c->pod_list);
	c->is_wide = true; // each pod states whether the selector of the scale matches it
	if (needs_list(c))
		pod_set_each(pods, add_pod, c);
	pod_set_get_counts(pods, &counts);
	if (c->pod_list.n)
		qsort(c->pod_list.items, c->pod_list.n, sizeof c->pod_list.items[0], observe_compare_pods);
	c->pods = counts.counts;
	c->pods_known = c->pods_error.kind == ERR_NONE;
	finish_one(c);
}

static void on_capacity(void *arg)
{
	finish_one(arg);
}

static void prepare_capacity(struct observation_call *c, const struct target_view *view)
{
	if (!c->fit)
		return;
	c->pending++;
	fit_target_prepare(c->fit, view->state == TARGET_FOUND ? view->generation : -1, on_capacity, c);
}

// Takes the pods from the watch if possible, else lists them.
static void know_pods(struct observation_call *c, const struct target_view *view)
{
	prepare_capacity(c, view);
	if (view->state == TARGET_FOUND) {
		c->target_ready = view->ready_replicas;
		c->is_ready_stale = view->is_ready_stale;
	}
	// The status of a custom kind may be written by a tenant: its pods show how many replicas exist.
	if (c->target_ready < 0 || observe_needs_pods(c->policy) || !c->workload->is_pod) {
		if (view->state == TARGET_FOUND && view->pods)
			take_pods(c, view->pods);
		else
			list_pods(c);
		return;
	}
	c->pods = (struct pod_counts){.total = c->scale.status_replicas, .ready = c->target_ready};
	c->pods_known = true;
	finish_one(c);
}

// ---- the target ----

static void on_ready(void *arg, int32_t ready, bool is_stale)
{
	struct observation_call *c = arg;
	c->target_ready = ready;
	c->is_ready_stale = is_stale;
	know_pods(c, &(struct target_view){.state = TARGET_UNWATCHED});
}

static void on_scale(void *arg, const struct scale *scale, const struct err *error)
{
	struct observation_call *c = arg;
	struct scale_ref ref = binding_scale_ref(c->binding);
	struct target_view view = {.state = TARGET_UNWATCHED};
	if (!scale) {
		c->error = *error;
		err_wrap(&c->error, "%s %s/%s", ref.kind, ref.namespace_name, ref.name);
		finish_one(c);
		return;
	}
	c->scale = *scale;
	if (c->sources.targets)
		target_store_get(c->sources.targets, &ref, &view);
	if (view.state == TARGET_FOUND || target_ready_fetch(c->sources.k8s, &ref, on_ready, c) < 0)
		know_pods(c, &view);
}

static void ask(struct observation_call *c)
{
	struct scale_ref ref = binding_scale_ref(c->binding);
	if (scale_get(c->sources.k8s, &ref, on_scale, c, &c->error) < 0)
		finish_one(c);
}

static void take(struct observation_call *c, const struct target_view *view)
{
	struct scale *s = &c->scale;
	s->spec_replicas = view->spec_replicas;
	s->status_replicas = view->status_replicas;
	snprintf(s->resource_version, sizeof s->resource_version, "%s", view->resource_version);
	snprintf(s->selector, sizeof s->selector, "%s", view->selector);
	know_pods(c, view);
}

static void on_target(void *arg);

static void read_target(struct observation_call *c, bool may_wait)
{
	struct scale_ref ref = binding_scale_ref(c->binding);
	struct target_view view;
	target_store_get(c->sources.targets, &ref, &view);
	switch (view.state) {
	case TARGET_FOUND:
		take(c, &view);
		return;
	case TARGET_ABSENT:
		err_set_code(&c->error, ERR_NOT_FOUND, 404, "%s %s/%s: not found", ref.kind, ref.namespace_name,
		             ref.name);
		finish_one(c);
		return;
	case TARGET_UNSYNCED:
		if (may_wait) {
			target_store_wait(c->sources.targets, &ref, &c->waiter, on_target, c);
			return;
		}
		break;
	default:
		break;
	}
	ask(c);
}

static void on_target(void *arg)
{
	read_target(arg, false);
}

static void on_answer(void *arg, struct query_answer *a)
{
	struct observe_slot *slot = arg;
	slot->call->answers[slot->signal] = query_answer_ref(a);
	finish_one(slot->call);
}

bool observe_takes_one_series(const struct policy_signal *s)
{
	return s->series == SERIES_SINGLE && !(s->target.set && s->target.type == TARGET_PODS);
}

void observe_ask_query(struct query_hub *hub, const struct policy *p, const struct observe_query *q, int64_t now_ms,
                       struct buf *scratch, query_answer_fn *fn, void *arg)
{
	struct err e;
	const char *query =
	        promql_sources_admit(hub->sources, q->source, p->namespace_name, q->query, scratch, NULL, &e);
	if (!query) {
		struct query_answer *a =
		        query_answer_failed(e.kind == ERR_NOT_FOUND ? OBS_FAILED : OBS_FORBIDDEN, "%s", e.msg);
		fn(arg, a);
		query_answer_unref(a);
		return;
	}
	struct query_question question = {.source = q->source,
	                                  .query = query,
	                                  .stale_after_ms = q->stale_after_ms,
	                                  .max_series = q->max_series,
	                                  .namespace_name = p->namespace_name,
	                                  .wait_ms = p->interval_ms};
	query_failover_ask(hub, &question, now_ms, fn, arg);
}

void observe_ask(struct query_hub *hub, const struct policy *p, size_t i, int64_t now_ms, struct buf *scratch,
                 query_answer_fn *fn, void *arg)
{
	const struct policy_signal *s = &p->signals[i];
	const struct observe_query query = {s->source, s->query, s->stale_after_ms,
	                                    observe_takes_one_series(s) ? QUERY_SERIES_SINGLE : 0};
	observe_ask_query(hub, p, &query, now_ms, scratch, fn, arg);
}

bool observe_check_early(struct query_hub *hub, const struct policy *p, size_t i, int64_t now_ms, struct buf *scratch,
                         early_query_fn *fn, void *arg)
{
	const struct policy_signal *s = &p->signals[i];
	struct err e;
	struct query_question question = {.source = s->source};
	question.query = promql_sources_admit(hub->sources, s->source, p->namespace_name, s->query, scratch, NULL, &e);
	return question.query && query_hub_check_early(hub, &question, now_ms, fn, arg);
}

void observe_start(struct observation_call *c, const struct observe_sources *sources, const struct binding *binding,
                   int64_t now_ms, observe_done_fn *done, void *arg)
{
	const struct policy *policy = binding->policy;
	assert(c->pending == 0);
	observe_release(c);
	c->sources = *sources;
	c->binding = binding;
	c->policy = policy;
	c->now_ms = now_ms;
	c->done = done;
	c->arg = arg;
	c->pods_known = c->is_wide = c->is_ready_stale = false;
	struct scale_ref ref = binding_scale_ref(binding);
	c->workload = workload_kind_find(ref.api_version, ref.kind, ref.path);
	c->target_ready = -1;
	c->details[policy->n_signals] = NULL;
	err_clear(&c->error);
	err_clear(&c->pods_error);
	c->pending = 2; // the target, and this function itself
	struct buf query;
	buf_init(&query, PROMQL_QUERY_BYTES_MAX);
	for (size_t i = 0; i < policy->n_signals; i++) {
		if (!policy->signals[i].query)
			continue;
		c->slots[i] = (struct observe_slot){c, i};
		c->pending++;
		observe_ask(sources->queries, policy, i, now_ms, &query, on_answer, &c->slots[i]);
	}
	buf_done(&query);
	if (!sources->k8s) {
		c->scale = (struct scale){.spec_replicas = sources->given_replicas,
		                          .status_replicas = sources->given_replicas};
		c->pods = (struct pod_counts){.total = sources->given_replicas, .ready = sources->given_replicas};
		c->pods_known = true;
		finish_one(c);
	} else if (sources->targets && !c->bypass_cache) {
		read_target(c, true);
	} else {
		ask(c);
	}
	finish_one(c);
}

void observe_written(const struct observe_sources *sources, const struct binding *binding, const struct scale *scale)
{
	struct scale_ref ref = binding_scale_ref(binding);
	if (sources->targets && scale)
		target_store_note_scaled(sources->targets, &ref, scale);
	else if (sources->targets)
		target_store_note_missing(sources->targets, &ref);
}

void observe_release(struct observation_call *c)
{
	for (size_t i = 0; i < POLICY_SIGNALS_MAX; i++) {
		query_answer_unref(c->answers[i]);
		c->answers[i] = NULL;
	}
	pod_list_done(&c->pod_list);
	free(c->observed_pods);
	c->observed_pods = NULL;
}
