// SPDX-License-Identifier: Apache-2.0
// Computes how many more replicas fit, and why no more.
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
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

static const struct node_taint *untolerated(const struct capacity_node *n, const struct node_rule *rule)
{
	for (size_t i = 0; i < n->n_taints; i++) {
		if (!node_rule_tolerates(rule, &n->taints[i]))
			return &n->taints[i];
	}
	return NULL;
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
                                 const struct replica_shape *shape, int *ret_missing,
                                 const struct node_taint **ret_taint)
{
	if (!node_rule_matches(&shape->rule, n->name, n->labels, n->n_labels))
		return FIT_RULE;
	*ret_missing = missing_resource(c, n, shape);
	if (*ret_missing >= 0)
		return FIT_NO_RESOURCE;
	if (!n->is_ready)
		return FIT_NOT_READY;
	if (n->is_unschedulable)
		return FIT_CORDONED;
	*ret_taint = untolerated(n, &shape->rule);
	return *ret_taint ? FIT_TAINT : FIT_RESOURCE;
}

// Returns a fingerprint of everything that exclusion() depends on.
static uint64_t print_of(const struct replica_shape *shape)
{
	uint64_t h = hash_bytes(HASH_START, &shape->rule_print, sizeof shape->rule_print);
	for (size_t i = 0; i < shape->requests.n; i++) {
		const struct resource_amount *a = &shape->requests.items[i];
		if (a->amount > 0)
			h = hash_bytes(h, &a->id, sizeof a->id);
	}
	return h ? h : 1;
}

// Pods of one workload wait in a row, so the last answer of a node is usually that of the next one, too.
static bool is_excluded(const struct capacity *c, struct capacity_node *n, const struct replica_shape *shape,
                        uint64_t print)
{
	int missing;
	const struct node_taint *taint;
	if (n->checked_print != print) {
		n->checked_print = print;
		n->is_excluded = !n->is_known || exclusion(c, n, shape, &missing, &taint) != FIT_RESOURCE;
	}
	return n->is_excluded;
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

static void plan(const struct capacity *c, struct capacity_node *n, const struct replica_shape *shape)
{
	n->planned_pods++;
	for (size_t i = 0; i < shape->requests.n; i++) {
		int demand = demand_of(c, n, shape->requests.items[i].id);
		if (demand >= 0)
			n->free_devices[demand] -= (int32_t)shape->requests.items[i].amount;
		for (size_t k = 0; k < n->n_resources; k++) {
			if (n->resources[k].id == shape->requests.items[i].id)
				n->resources[k].planned += shape->requests.items[i].amount;
		}
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

// most: no node has more of `id` free; lowered to what was found.
static bool place(struct capacity *c, const struct replica_shape *shape, int id, int64_t *most)
{
	struct capacity_node *n, *best = NULL;
	int64_t best_free = resource_vector_get(&shape->requests, id) - 1, seen = 0;
	uint64_t print = print_of(shape);
	int lacking;
	if (best_free >= *most)
		return false;
	for (n = c->nodes; n && best_free < *most; n = n->hh.next) {
		int64_t free = free_of(c, n, id);
		seen = free > seen ? free : seen;
		if (free <= best_free || is_excluded(c, n, shape, print) || room(c, n, shape, &lacking) <= 0)
			continue;
		best = n;
		best_free = free;
	}
	if (!n)
		*most = seen;
	if (best)
		plan(c, best, shape);
	return best != NULL;
}

static void reset_plan(struct capacity *c)
{
	struct capacity_node *n;
	for (n = c->nodes; n; n = n->hh.next) {
		n->planned_pods = 0;
		n->checked_print = 0;
		for (size_t i = 0; i < n->n_resources; i++)
			n->resources[i].planned = 0;
	}
}

int capacity_fit(struct capacity *c, const struct replica_shape *shape, struct fit_result *ret_fit, struct err *e)
{
	return capacity_fit_beside(c, shape, NULL, 0, ret_fit, e);
}

static void place_order(struct capacity *c, const struct capacity_order *order, int id, int64_t *most)
{
	bool competes = resource_vector_get(&order->shape->requests, id) > 0;
	for (int64_t i = 0; competes && i < order->replicas && i < FIT_ORDER_MAX; i++)
		competes = place(c, order->shape, id, most);
}

int capacity_fit_beside(struct capacity *c, const struct replica_shape *shape, const struct capacity_order *orders,
                        size_t n_orders, struct fit_result *ret_fit, struct err *e)
{
	const struct capacity_waiting *w;
	const struct capacity_node *n;
	int id = scarce(c, shape);
	int64_t most = INT64_MAX;
	*ret_fit = (struct fit_result){0};
	reset_plan(c);
	if (capacity_devices_count(c, shape, e) < 0)
		return -1;
	for (w = c->waiting; w; w = w->next)
		ret_fit->waiting += competes(w, id) && place(c, &w->shape, id, &most);
	for (size_t i = 0; i < n_orders; i++)
		place_order(c, &orders[i], id, &most);
	for (n = c->nodes; n; n = n->hh.next) {
		int lacking = -1;
		const struct node_taint *taint = NULL;
		if (!n->is_known)
			continue;
		enum fit_reason why = exclusion(c, n, shape, &lacking, &taint);
		if (why == FIT_RESOURCE) {
			ret_fit->replicas += room(c, n, shape, &lacking);
			why = lacking < 0 ? FIT_PODS : FIT_RESOURCE;
		}
		ret_fit->nodes++;
		ret_fit->nodes_of[why]++;
		if (lacking >= 0)
			ret_fit->lacking[lacking]++;
		if (taint && !ret_fit->taint)
			ret_fit->taint = taint->label;
	}
	if (ret_fit->replicas > FIT_REPLICAS_MAX)
		ret_fit->replicas = FIT_REPLICAS_MAX;
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
