// SPDX-License-Identifier: Apache-2.0
// Computes how many more replicas fit, and why no more.

#include "base/base.h"
#include "k8s/capacity/capacity_private.h"

// Returns the demand that the devices of the node serve; -1: a device plugin serves the resource, or nothing does.
static int demand_of(const struct capacity *c, const struct capacity_node *n, int id)
{
	const struct capacity_resource *r = capacity_node_resource(n, id);
	return r && r->allocatable > 0 ? -1 : capacity_devices_demand(c, id);
}

// How much of a resource is free on a node, after what the plan has given away.
static int64_t free_of(const struct capacity *c, const struct capacity_node *n, int id)
{
	const struct capacity_resource *r = capacity_node_resource(n, id);
	int demand = demand_of(c, n, id);
	if (demand >= 0)
		return n->free_devices[demand] > 0 ? n->free_devices[demand] : 0;
	int64_t left = r ? r->allocatable - r->used - r->planned : 0;
	return left > 0 ? left : 0;
}

static int64_t free_pods(const struct capacity_node *n)
{
	const struct capacity_resource *r = capacity_node_resource(n, RESOURCE_PODS);
	int64_t left = r ? r->allocatable - n->pods - n->planned_pods : 0;
	return left > 0 ? left : 0;
}

// Returns a resource of which the node has nothing and the shape needs something; -1: none.
static int missing_resource(const struct capacity *c, const struct capacity_node *n, const struct replica_shape *shape)
{
	for (size_t i = 0; i < shape->requests.n; i++) {
		const struct resource_amount *a = &shape->requests.items[i];
		const struct capacity_resource *r = capacity_node_resource(n, a->id);
		int demand = demand_of(c, n, a->id);
		bool has_any = demand >= 0 ? n->devices[demand] > 0 : r && r->allocatable > 0;
		if (a->amount > 0 && !has_any)
			return a->id;
	}
	return -1;
}

// Returns FIT_RESOURCE when only resources can keep the shape from the node, else why the node takes none.
static enum fit_reason exclusion(const struct capacity *c, const struct capacity_node *n,
                                 const struct replica_shape *shape, enum node_verdict verdict, int *ret_missing)
{
	if (verdict == NODE_EXCLUDED)
		return FIT_RULE;
	*ret_missing = missing_resource(c, n, shape);
	if (*ret_missing >= 0)
		return FIT_NO_RESOURCE;
	if (!n->is_ready)
		return FIT_NOT_READY;
	if (n->is_unschedulable)
		return FIT_CORDONED;
	return verdict == NODE_TAINTED ? FIT_TAINT : FIT_RESOURCE;
}

// Returns how many replicas the node takes, and in *ret_lacking the resource that permits no more; -1: pods.
static int64_t room(const struct capacity *c, const struct capacity_node *n, const struct replica_shape *shape,
                    int *ret_lacking)
{
	int64_t replicas = free_pods(n);
	*ret_lacking = -1;
	for (size_t i = 0; i < shape->requests.n; i++) {
		const struct resource_amount *a = &shape->requests.items[i];
		int64_t fits = a->amount > 0 ? free_of(c, n, a->id) / a->amount : INT64_MAX;
		if (fits < replicas) {
			replicas = fits;
			*ret_lacking = a->id;
		}
	}
	return replicas;
}

static void give(const struct capacity *c, struct capacity_node *n, const struct replica_shape *shape)
{
	n->planned_pods++;
	for (size_t i = 0; i < shape->requests.n; i++) {
		const struct resource_amount *a = &shape->requests.items[i];
		struct capacity_resource *r = capacity_node_resource(n, a->id);
		int demand = demand_of(c, n, a->id);
		if (demand >= 0)
			n->free_devices[demand] -= (int32_t)a->amount;
		if (r)
			r->planned += a->amount;
	}
}

// The resource of which `shape` needs a device; else cpu.
static int scarce(const struct capacity *c, const struct replica_shape *shape)
{
	for (size_t i = 0; i < shape->requests.n; i++) {
		const struct resource_amount *a = &shape->requests.items[i];
		if (a->amount > 0 && resource_is_extended(c->names.names[a->id]))
			return a->id;
	}
	return RESOURCE_CPU;
}

// Only pods that compete for what the shape needs.
static bool competes(const struct capacity_waiting *w, int id)
{
	return w->has_shape && resource_vector_get(&w->shape.requests, id) > 0;
}

// ---- the plan ----

static bool place(struct capacity *c, const struct replica_shape *shape, int64_t *work)
{
	struct fit_plan *p = &c->plan;
	struct capacity_node *n, *best = NULL;
	struct rule_verdicts *rule = capacity_rule_of(c, shape);
	int64_t best_free = resource_vector_get(&shape->requests, p->id) - 1, seen = 0, left = INT64_MAX;
	int lacking;
	if (best_free >= p->most)
		return false;
	for (n = c->nodes; n && best_free < p->most; n = n->hh.next) {
		int64_t free = free_of(c, n, p->id);
		(*work)--;
		seen = free > seen ? free : seen;
		if (free <= best_free || !n->is_known || !n->is_ready || n->is_unschedulable)
			continue;
		int64_t before = left;
		if (capacity_verdict(rule, &shape->rule, n, &left) != NODE_ACCEPTED) {
			*work -= before - left;
			continue;
		}
		*work -= before - left + (int64_t)shape->requests.n;
		if (room(c, n, shape, &lacking) <= 0)
			continue;
		best = n;
		best_free = free;
	}
	if (!n)
		p->most = seen;
	if (best)
		give(c, best, shape);
	return best != NULL;
}

static void reset_plan(struct capacity *c)
{
	struct capacity_node *n;
	for (n = c->nodes; n; n = n->hh.next) {
		n->planned_pods = 0;
		for (size_t i = 0; i < n->n_resources; i++)
			n->resources[i].planned = 0;
	}
}

bool capacity_plan_serves(const struct capacity *c, const struct replica_shape *shape)
{
	const struct fit_plan *p = &c->plan;
	struct device_demand demands[CAPACITY_DEMANDS_MAX];
	if (!p->is_begun || p->id != scarce(c, shape) || p->own != (shape->n_selectors ? shape : NULL))
		return false;
	int n = capacity_devices_find(c, shape, demands, NULL);
	bool is_same = n >= 0 && (size_t)n == c->n_demands;
	for (int i = 0; is_same && i < n; i++)
		is_same = demands[i].id == c->demands[i].id;
	return is_same;
}

void capacity_drop_plan(struct capacity *c)
{
	c->plan.is_begun = false;
}

static int begin(struct capacity *c, const struct replica_shape *shape, int64_t *work, struct err *e)
{
	uint64_t number = c->plan.number + 1;
	c->plan = (struct fit_plan){.number = number};
	capacity_forget_unused_rules(c);
	reset_plan(c);
	*work -= 2 * (int64_t)HASH_COUNT(c->nodes);
	if (capacity_devices_count(c, shape, e) < 0)
		return -1;
	if (c->n_demands > 0)
		*work -= (int64_t)HASH_COUNT(c->objects[CAPACITY_SLICE]) * CAPACITY_SLICE_DEVICES_MAX / 8;
	c->plan = (struct fit_plan){.number = number,
	                            .is_begun = true,
	                            .generation = c->generation,
	                            .id = scarce(c, shape),
	                            .own = shape->n_selectors ? shape : NULL,
	                            .next = c->waiting,
	                            .most = INT64_MAX};
	struct resource_vector held = {.items = {{.id = (uint8_t)c->plan.id}}, .n = 1};
	for (size_t i = 0; i < c->n_demands; i++)
		held.items[held.n++].id = (uint8_t)c->demands[i].id;
	resource_names_hold(&c->names, held.items, held.n);
	resource_names_release(&c->names, c->plan_names.items, c->plan_names.n);
	c->plan_names = held;
	return 0;
}

int capacity_plan(struct capacity *c, const struct replica_shape *shape, int64_t *work, struct err *e)
{
	struct fit_plan *p = &c->plan;
	bool is_old = p->is_complete && p->generation != c->generation;
	if ((is_old || !capacity_plan_serves(c, shape)) && begin(c, shape, work, e) < 0)
		return -1;
	while (p->next) {
		if (*work <= 0)
			return 0;
		const struct capacity_waiting *w = p->next;
		p->next = w->next;
		p->waiting += competes(w, p->id) && place(c, &w->shape, work);
	}
	p->is_complete = true;
	return 1;
}

int64_t capacity_plan_order(struct capacity *c, const struct replica_shape *shape, int64_t n, int64_t *work)
{
	if (resource_vector_get(&shape->requests, c->plan.id) <= 0)
		return n;
	for (int64_t i = 0; i < n; i++) {
		if (*work <= 0)
			return i;
		if (!place(c, shape, work))
			return n;
	}
	return n;
}

// ---- the fit ----

bool capacity_fit_planned(struct capacity *c, const struct replica_shape *shape, int64_t *work,
                          struct fit_result *ret_fit)
{
	struct rule_verdicts *rule = capacity_rule_of(c, shape);
	const struct capacity_node *n;
	*ret_fit = (struct fit_result){.waiting = c->plan.waiting};
	for (n = c->nodes; n; n = n->hh.next) {
		int lacking = -1;
		if (!n->is_known)
			continue;
		enum node_verdict verdict = capacity_verdict(rule, &shape->rule, n, work);
		if (verdict == NODE_UNCHECKED)
			return false;
		enum fit_reason why = exclusion(c, n, shape, verdict, &lacking);
		if (why == FIT_RESOURCE) {
			ret_fit->replicas += room(c, n, shape, &lacking);
			why = lacking < 0 ? FIT_PODS : FIT_RESOURCE;
		}
		ret_fit->nodes++;
		ret_fit->nodes_of[why]++;
		if (lacking >= 0)
			ret_fit->lacking[lacking]++;
		if (why == FIT_TAINT && !ret_fit->taint)
			ret_fit->taint = capacity_untolerated(n, &shape->rule)->label;
	}
	*work -= (int64_t)ret_fit->nodes;
	if (ret_fit->replicas > FIT_REPLICAS_MAX)
		ret_fit->replicas = FIT_REPLICAS_MAX;
	return true;
}

int capacity_fit(struct capacity *c, const struct replica_shape *shape, struct fit_result *ret_fit, struct err *e)
{
	int64_t work = INT64_MAX;
	*ret_fit = (struct fit_result){0};
	if (shape->n_selectors)
		capacity_drop_plan(c); // a plan knows such a shape by its address only
	if (capacity_plan(c, shape, &work, e) < 0)
		return -1;
	capacity_fit_planned(c, shape, &work, ret_fit);
	return 0;
}

// ---- the explanation ----

static void put_clause(struct buf *out, size_t n, const char *text)
{
	if (n)
		buf_printf(out, "%s%zu %s", out->len ? ", " : "", n, text);
}

void fit_explain(const struct capacity *c, const struct fit_result *fit, char out[FIT_WHY_BYTES])
{
	struct buf b;
	buf_init(&b, FIT_WHY_BYTES * 4);
	for (size_t i = 0; i < c->names.n; i++) {
		char text[RESOURCE_NAME_BYTES + 32], name[RESOURCE_SHOWN_BYTES];
		resource_show_name(c->names.names[i], name);
		snprintf(text, sizeof text, "without free %s", name);
		put_clause(&b, fit->lacking[i], text);
	}
	put_clause(&b, fit->nodes_of[FIT_PODS], "with the most pods they take");
	put_clause(&b, fit->nodes_of[FIT_NOT_READY], "not ready");
	put_clause(&b, fit->nodes_of[FIT_CORDONED], "cordoned");
	put_clause(&b, fit->nodes_of[FIT_RULE], "excluded by node selector or affinity");
	if (fit->taint) {
		buf_printf(&b, "%s%zu with a taint that is not tolerated (%s%s%s)", b.len ? ", " : "",
		           fit->nodes_of[FIT_TAINT], fit->taint->key, fit->taint->value[0] ? "=" : "",
		           fit->taint->value);
	}
	if (fit->nodes == 0)
		snprintf(out, FIT_WHY_BYTES, "the cluster has no nodes");
	else
		snprintf(out, FIT_WHY_BYTES, "of %zu nodes, %s", fit->nodes, buf_str(&b));
	buf_done(&b);
}
