// SPDX-License-Identifier: Apache-2.0
#include "controller/tick/victim_marks.h"

#include <math.h>

#include "base/base.h"
#include "controller/tick/observe.h"
#include "k8s/client/k8s_client.h"
#include "k8s/client/scale.h"
#include "promql/promql.h"

#define NAMES_MAX 3

// NOLINTNEXTLINE(misc-redundant-expression): they must be equal
_Static_assert(VICTIM_COST == POD_MARK_COST, "the plan knows the cost of a mark");

struct victims_call {
	struct victims_question question;
	victims_done_fn *done;
	void *arg;
	int pending; // query and list, then PATCHes
	struct query_answer *answer;
	struct pod_list list;
	struct err error; // of the list, or of the first PATCH that failed
	struct victim_pod *pods;
	size_t n_pods;
	size_t next; // the first pod whose action has not been carried out
	int32_t n_failed;
	struct victims_result result;
};

static void finish(struct victims_call *c)
{
	c->done(c->arg, &c->result);
	query_answer_unref(c->answer);
	pod_list_done(&c->list);
	free(c->pods);
	free(c);
}

static void unknown(struct victims_call *c, const char *why)
{
	c->result.outcome = VICTIMS_UNKNOWN;
	snprintf(c->result.text, sizeof c->result.text, "%s", why);
}

// ---- marks ----

static void write_next(struct victims_call *c);

static void on_marked(void *arg, const struct http_response *response, const struct err *error)
{
	struct victims_call *c = arg;
	c->pending--;
	if (error && error->kind != ERR_NOT_FOUND) { // a pod that is gone needs no mark
		c->error = c->n_failed++ == 0 ? *error : c->error;
		c->result.is_forbidden |= error->code == 403;
	}
	write_next(c);
}

static void report_failures(struct victims_call *c)
{
	struct victims_result *r = &c->result;
	if (c->n_failed == 0)
		return;
	r->has_marks = !r->is_forbidden;
	r->outcome = VICTIMS_UNMARKED;
	// Without the right, nothing would record the start of the wait.
	r->plan.waits &= !r->is_forbidden;
	snprintf(r->text, sizeof r->text, "%s%s", r->is_forbidden ? "manifests/victims permits it: " : "",
	         c->error.msg);
}

static void write_next(struct victims_call *c)
{
	for (; c->next < c->n_pods && c->pending < VICTIMS_WRITES_MAX && !c->result.is_forbidden; c->next++) {
		const struct victim_pod *p = &c->pods[c->next];
		struct err e;
		if (p->action == VICTIM_KEEP)
			continue;
		c->pending++;
		if (pod_mark(c->question.sources->k8s, c->question.binding->policy->namespace_name,
		             &c->list.items[p->index], p->action == VICTIM_MARK ? c->question.now_ms : 0, on_marked, c,
		             &e) < 0) {
			c->pending--;
			c->error = c->n_failed++ == 0 ? e : c->error;
		}
	}
	if (c->pending > 0)
		return;
	report_failures(c);
	finish(c);
}

// ---- plan ----

struct load {
	double value; // NaN: none
	int64_t time_ms;
};

// Sets the work of each pod, in the order of the list: the sum of its series, as old as the oldest. An unusable sample
// makes the pod busy. Returns whether any pod has a value.
static bool read_loads(const struct victims_call *c, struct load *ret_loads)
{
	bool has_loads = false;
	for (size_t i = 0; i < c->list.n; i++)
		ret_loads[i] = (struct load){NAN, INT64_MAX};
	for (size_t i = 0; c->answer && c->answer->state == OBS_OK && i < c->answer->n_series; i++) {
		const struct obs_series *s = &c->answer->series[i];
		const struct pod_info key = {.name = s->pod};
		const struct pod_info *p =
		        s->pod[0] ? bsearch(&key, c->list.items, c->list.n, sizeof key, observe_compare_pods) : NULL;
		if (!p)
			continue;
		bool is_usable = isfinite(s->value) && c->question.now_ms - s->time_ms <= VICTIMS_STALE_MS;
		struct load *load = &ret_loads[p - c->list.items];
		load->value = (isnan(load->value) ? 0 : load->value) + (is_usable ? s->value : INFINITY);
		load->time_ms = s->time_ms < load->time_ms ? s->time_ms : load->time_ms;
		has_loads |= is_usable;
	}
	return has_loads;
}

// Takes the pods whose controller reads the deletion cost, in the order in which it deletes them.
static void take_pods(struct victims_call *c, const struct load *loads)
{
	c->pods = must_alloc(calloc(c->list.n ? c->list.n : 1, sizeof *c->pods));
	for (size_t i = 0; i < c->list.n; i++) {
		const struct pod_info *p = &c->list.items[i];
		if (!p->removal->is_by_cost)
			continue;
		c->pods[c->n_pods++] = (struct victim_pod){.name = p->name,
		                                           .index = i,
		                                           .state = observe_pod_state(p->kind),
		                                           .has_cost = p->removal->has_cost,
		                                           .cost = p->removal->has_cost ? p->removal->cost : 0,
		                                           .marked_ms = p->removal->marked_ms,
		                                           .load = loads[i].value,
		                                           .load_ms = loads[i].time_ms};
		c->result.has_marks |= p->removal->marked_ms > 0 && p->kind != POD_KIND_DELETED;
	}
	qsort(c->pods, c->n_pods, sizeof *c->pods, victims_compare);
}

static int32_t count_live(const struct victims_call *c)
{
	int32_t n = 0;
	for (size_t i = 0; i < c->n_pods; i++)
		n += c->pods[i].state != POD_FAILED && c->pods[i].state != POD_DELETED;
	return n;
}

// Returns why no pod can be chosen; NULL: pods can.
static const char *obstacle(const struct victims_call *c, bool has_loads)
{
	const struct victims_question *q = &c->question;
	const struct query_answer *a = c->answer;
	const struct scale_target *t = q->binding->target;
	const struct workload_kind *k = workload_kind_find(t->api_version, t->kind, t->path);
	if (c->n_pods == 0 && c->list.n > 0)
		return "the controller of these pods does not read their deletion cost";
	if (!k->is_pod && count_live(c) > q->replicas)
		return "there are more pods than replicas, so which pods belong to a replica is unknown";
	if (a && a->state != OBS_OK && a->state != OBS_EMPTY)
		return a->detail[0] ? a->detail : "the query of behavior.scaleDown.victims failed";
	if (!has_loads)
		return "the query of behavior.scaleDown.victims returned no value for a pod of the target";
	return NULL;
}

static void name_victims(struct victims_call *c)
{
	struct victims_result *r = &c->result;
	size_t n = (size_t)r->plan.n_victims, at = 0;
	for (size_t i = 0; i < n && i < NAMES_MAX && at < sizeof r->text; i++)
		at += (size_t)snprintf(r->text + at, sizeof r->text - at, "%s%s", i > 0 ? ", " : "", c->pods[i].name);
	if (n > NAMES_MAX && at < sizeof r->text)
		snprintf(r->text + at, sizeof r->text - at, " and %zu more", n - NAMES_MAX);
}

static void make_plan(struct victims_call *c)
{
	const struct victims_question *q = &c->question;
	struct load *loads = must_alloc(calloc(c->list.n ? c->list.n : 1, sizeof *loads));
	if (c->list.n)
		qsort(c->list.items, c->list.n, sizeof c->list.items[0], observe_compare_pods);
	bool has_loads = read_loads(c, loads);
	take_pods(c, loads);
	free(loads);
	const char *why = q->is_down ? obstacle(c, has_loads) : NULL;
	const struct victim_rules rules = {.desired = q->desired,
	                                   .is_down = q->is_down,
	                                   .has_loads = !why,
	                                   .drain_ms = q->binding->policy->scale_down.drain_ms,
	                                   .since_ms = q->since_ms,
	                                   .marks_fail = q->marks_fail,
	                                   .now_ms = q->now_ms};
	victims_plan(&rules, c->pods, c->n_pods, &c->result.plan);
	if (why) {
		unknown(c, why);
		c->result.plan.n_victims = q->replicas - q->desired;
	} else if (q->is_down) {
		name_victims(c);
	}
	c->result.has_marks =
	        (c->result.has_marks && (q->is_down || c->result.plan.n_victims > 0)) || c->result.plan.n_marks > 0;
}

// Without the list, every pod is treated as busy.
static void report_unlisted(struct victims_call *c)
{
	const struct victims_question *q = &c->question;
	struct victims_plan *plan = &c->result.plan;
	int64_t drain_ms = q->binding->policy->scale_down.drain_ms;
	plan->n_victims = plan->n_busy = q->replicas - q->desired;
	plan->left_ms = drain_ms - (q->since_ms > 0 && q->now_ms > q->since_ms ? q->now_ms - q->since_ms : 0);
	plan->waits = q->is_down && plan->left_ms > 0;
	c->result.has_marks = true;
	unknown(c, c->error.msg);
}

static void finish_one(struct victims_call *c)
{
	if (--c->pending > 0)
		return;
	if (c->error.kind != ERR_NONE) {
		report_unlisted(c);
		finish(c);
		return;
	}
	make_plan(c);
	if (!c->question.writes)
		c->next = c->n_pods;
	write_next(c);
}

static void on_pods(void *arg, const struct pod_counts *counts, const struct err *error)
{
	struct victims_call *c = arg;
	if (error)
		c->error = *error;
	finish_one(c);
}

static void on_answer(void *arg, struct query_answer *a)
{
	struct victims_call *c = arg;
	c->answer = query_answer_ref(a);
	finish_one(c);
}

void victim_marks_start(const struct victims_question *question, victims_done_fn *done, void *arg)
{
	const struct policy *p = question->binding->policy;
	const struct observe_query query = {p->scale_down.victims.source, p->scale_down.victims.query, VICTIMS_STALE_MS,
	                                    0};
	struct victims_call *c = must_alloc(calloc(1, sizeof *c));
	c->question = *question;
	c->done = done;
	c->arg = arg;
	c->pending = 2; // the list, and this function itself
	pod_list_init(&c->list);
	c->list.reads_removal = true;
	if (question->is_down) {
		struct buf scratch;
		c->pending++;
		buf_init(&scratch, PROMQL_QUERY_BYTES_MAX);
		observe_ask_query(question->sources->queries, p, &query, question->now_ms, &scratch, on_answer, c);
		buf_done(&scratch);
	}
	if (pods_list(question->sources->k8s, p->namespace_name, question->selector, &c->list, on_pods, c, &c->error) <
	    0)
		finish_one(c);
	finish_one(c);
}
