// SPDX-License-Identifier: Apache-2.0
#include "cli/objects/capacity_render.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "base/print.h"
#include "cli/objects/capacity_target.h"
#include "cli/objects/crd.h"
#include "cli/objects/kueue_quota.h"
#include "cli/term/table.h"
#include "k8s/capacity/capacity.h"
#include "k8s/capacity/capacity_groups.h"

static bool is_counted(const struct capacity_target *t)
{
	return t->error.kind == ERR_NONE;
}

// Why no more replicas fit: what the scheduler says of a pod that waits is worth more than a computation.
static const char *why_no_more(const struct capacity_target *t)
{
	if (!is_counted(t))
		return t->error.msg;
	return t->message[0] && !t->is_quota_limited ? t->message : t->why;
}

static size_t count_waiting(const struct capacity *c)
{
	const struct capacity_waiting *w;
	size_t n = 0;
	for (w = capacity_first_waiting(c); w; w = w->next)
		n++;
	return n;
}

// ---- table ----

static void render_groups(struct buf *out, const struct capacity_groups *g)
{
	static const char *const head[] = {"POOL", "MODEL", "RESOURCE", "NODES",   "ALLOCATABLE",
	                                   "USED", "FREE",  "TAINTED",  "UNREADY", NULL};
	struct table t;
	table_init(&t, head);
	for (size_t i = 0; i < g->n; i++) {
		const struct capacity_group *row = &g->items[i];
		table_cell(&t, "%s", row->pool);
		table_cell(&t, "%s", row->model);
		table_cell(&t, "%s", row->resource);
		table_cell(&t, "%zu", row->nodes);
		table_cell(&t, "%lld", (long long)row->allocatable);
		table_cell(&t, "%lld", (long long)row->used);
		table_cell(&t, "%lld", (long long)row->free);
		table_cell(&t, "%lld", (long long)row->tainted);
		table_cell(&t, "%lld", (long long)row->unready);
	}
	if (g->n)
		table_print(&t, out, 0, true);
	else
		buf_puts(out, "No node of the cluster has GPUs.\n");
	out->failed |= t.cells.failed;
	table_done(&t);
	if (g->left_out)
		print_to(out, "%zu nodes are left out: the table has at most %d rows.\n", g->left_out,
		         CAPACITY_GROUPS_MAX);
}

static void render_quota(struct table *t, int64_t amount)
{
	if (amount == KUEUE_UNLIMITED || amount == KUEUE_UNKNOWN)
		table_cell(t, amount == KUEUE_UNKNOWN ? "<unknown>" : "<unlimited>");
	else
		table_cell(t, "%lld", (long long)amount);
}

static void render_quotas(struct buf *out, const struct kueue_quotas *q)
{
	static const char *const head[] = {"CLUSTERQUEUE", "COHORT", "FLAVOR", "RESOURCE",
	                                   "QUOTA",        "USED",   "FREE",   NULL};
	struct table t;
	if (!q || q->n == 0)
		return;
	buf_putc(out, '\n');
	table_init(&t, head);
	for (size_t i = 0; i < q->n; i++) {
		const struct kueue_quota *row = &q->items[i];
		table_cell(&t, "%s", row->cluster_queue);
		table_text(&t, row->cohort);
		table_cell(&t, "%s", row->flavor);
		table_cell(&t, "%s", row->resource);
		render_quota(&t, row->nominal);
		render_quota(&t, row->reserved);
		render_quota(&t, kueue_quota_free(row));
	}
	table_finish(&t, out, 0, true);
}

static void put_uncounted(struct buf *out, int rules)
{
	const char *separator = "";
	for (int bit = 0; bit < UNCOUNTED_RULES; bit++) {
		if (rules & (1 << bit)) {
			print_to(out, "%s%s", separator, uncounted_rule_name(bit));
			separator = ", ";
		}
	}
}

static void render_target(struct table *t, const struct capacity_report *r, const struct capacity_target *target)
{
	char needs[CAPACITY_NEEDS_BYTES] = "<unknown>";
	struct buf rules;
	if (target->target.has_shape)
		capacity_target_needs(target, capacity_names(r->capacity), needs);
	table_cell(t, "%s", target->namespace_name);
	table_cell(t, "%s", target->name);
	table_cell(t, "%s/%s", target->kind, target->target_name);
	table_cell(t, "%s", needs);
	if (target->target.has_shape) {
		table_cell(t, "%d", target->target.replicas);
		table_cell(t, "%zu", target->pending);
	} else {
		table_cell(t, "<unknown>");
		table_cell(t, "<unknown>");
	}
	if (is_counted(target))
		table_cell(t, "%lld", (long long)target->fit.replicas);
	else
		table_cell(t, "<unknown>");
	buf_init(&rules, TABLE_CELL_BYTES);
	put_uncounted(&rules, target->target.shape.uncounted);
	table_text(t, buf_str(&rules));
	buf_done(&rules);
	table_cell(t, "%s", why_no_more(target));
}

static void render_targets(struct buf *out, const struct capacity_report *r, bool wide)
{
	static const char *const head[] = {"NAMESPACE", "NAME", "+TARGET",      "NEEDS",       "REPLICAS",
	                                   "PENDING",   "FIT",  "+NOT COUNTED", "WHY NO MORE", NULL};
	struct table t;
	if (r->n_targets == 0)
		return;
	buf_putc(out, '\n');
	table_init_wide(&t, head, wide);
	for (size_t i = 0; i < r->n_targets; i++)
		render_target(&t, r, &r->targets[i]);
	table_finish(&t, out, 0, true);
}

static void render_faults(struct buf *out, struct capacity *c)
{
	struct capacity_faults f;
	bool is_first = true;
	capacity_get_faults(c, &f);
	for (int i = 0; i < CAPACITY_FAULT__COUNT; i++) {
		if (!f.of[i])
			continue;
		buf_puts(out, is_first ? "\n" : "");
		print_to(out, "%s: %zu", capacity_fault_sentence((enum capacity_fault)i), f.of[i]);
		if (f.example[i])
			print_to(out, " (%s%s)", f.of[i] > 1 ? "such as " : "", f.example[i]);
		buf_putc(out, '\n');
		is_first = false;
	}
}

void capacity_render_table(struct buf *out, const struct capacity_report *r, bool wide)
{
	render_groups(out, r->groups);
	render_quotas(out, r->quotas);
	render_targets(out, r, wide);
	render_faults(out, r->capacity);
}

// ---- JSON ----

static void write_groups(struct json_writer *w, const struct capacity_groups *g)
{
	json_write_member_array(w, "gpus");
	for (size_t i = 0; i < g->n; i++) {
		const struct capacity_group *row = &g->items[i];
		json_write_object_begin(w);
		json_write_member_str(w, "pool", row->pool);
		json_write_member_str(w, "model", row->model);
		json_write_member_str(w, "resource", row->resource);
		json_write_member_i64(w, "nodes", (int64_t)row->nodes);
		json_write_member_i64(w, "allocatable", row->allocatable);
		json_write_member_i64(w, "used", row->used);
		json_write_member_i64(w, "free", row->free);
		json_write_member_i64(w, "tainted", row->tainted);
		json_write_member_i64(w, "unready", row->unready);
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

// null: no limit, or unknown
static void write_quota(struct json_writer *w, const char *key, int64_t amount)
{
	if (amount == KUEUE_UNLIMITED || amount == KUEUE_UNKNOWN)
		json_write_member_null(w, key);
	else
		json_write_member_i64(w, key, amount);
}

static void write_quotas(struct json_writer *w, const struct kueue_quotas *q)
{
	json_write_member_array(w, "quotas");
	for (size_t i = 0; i < q->n; i++) {
		const struct kueue_quota *row = &q->items[i];
		json_write_object_begin(w);
		json_write_member_str(w, "clusterQueue", row->cluster_queue);
		json_write_member_str(w, "cohort", row->cohort[0] ? row->cohort : NULL);
		json_write_member_str(w, "flavor", row->flavor);
		json_write_member_str(w, "resource", row->resource);
		write_quota(w, "quota", row->nominal);
		write_quota(w, "used", row->reserved);
		write_quota(w, "free", kueue_quota_free(row));
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

static void write_shape(struct json_writer *w, const struct capacity_target *t, const struct resource_names *names)
{
	json_write_member_object(w, "needs");
	for (size_t i = 0; i < t->target.shape.requests.n; i++) {
		const struct resource_amount *a = &t->target.shape.requests.items[i];
		if (a->id == RESOURCE_CPU)
			json_write_member_i64(w, "cpuMillis", a->amount);
		else
			json_write_member_i64(w, names->names[a->id], a->amount);
	}
	json_write_object_end(w);
	json_write_member_i64(w, "replicas", t->target.replicas);
	json_write_member_i64(w, "pending", (int64_t)t->pending);
	json_write_member_array(w, "notCounted");
	for (int bit = 0; bit < UNCOUNTED_RULES; bit++) {
		if (t->target.shape.uncounted & (1 << bit))
			json_write_str(w, uncounted_rule_name(bit));
	}
	json_write_array_end(w);
}

static void write_target(struct json_writer *w, const struct capacity_target *t, const struct resource_names *names)
{
	json_write_object_begin(w);
	json_write_member_str(w, "namespace", t->namespace_name);
	json_write_member_str(w, "name", t->name);
	json_write_member_object(w, "target");
	json_write_member_str(w, "kind", t->kind);
	json_write_member_str(w, "name", t->target_name);
	json_write_object_end(w);
	if (t->target.has_shape)
		write_shape(w, t, names);
	if (t->target.queue[0])
		json_write_member_str(w, "localQueue", t->target.queue);
	if (t->cluster_queue[0])
		json_write_member_str(w, "clusterQueue", t->cluster_queue);
	if (is_counted(t)) {
		json_write_member_i64(w, "fit", t->fit.replicas);
		json_write_member_i64(w, "reservedForWaiting", (int64_t)t->fit.waiting);
	} else {
		json_write_member_null(w, "fit");
	}
	json_write_member_str(w, "why", is_counted(t) ? t->why : t->error.msg);
	json_write_member_str(w, "schedulerMessage", t->message[0] ? t->message : NULL);
	json_write_object_end(w);
}

static void write_faults(struct json_writer *w, struct capacity *c)
{
	struct capacity_faults f;
	capacity_get_faults(c, &f);
	json_write_member_array(w, "faults");
	for (int i = 0; i < CAPACITY_FAULT__COUNT; i++) {
		if (!f.of[i])
			continue;
		json_write_object_begin(w);
		json_write_member_str(w, "name", capacity_fault_name((enum capacity_fault)i));
		json_write_member_i64(w, "count", (int64_t)f.of[i]);
		json_write_member_str(w, "example", f.example[i]);
		json_write_member_str(w, "message", capacity_fault_sentence((enum capacity_fault)i));
		json_write_object_end(w);
	}
	json_write_array_end(w);
}

void capacity_render_json(struct buf *out, const struct capacity_report *r)
{
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_member_str(&w, "apiVersion", CRD_GROUP "/v1alpha1");
	json_write_member_str(&w, "kind", "Capacity");
	write_groups(&w, r->groups);
	if (r->quotas)
		write_quotas(&w, r->quotas);
	json_write_member_i64(&w, "nodes", (int64_t)r->n_nodes);
	json_write_member_i64(&w, "pods", (int64_t)r->n_pods);
	json_write_member_i64(&w, "waitingPods", (int64_t)count_waiting(r->capacity));
	json_write_member_array(&w, "policies");
	for (size_t i = 0; i < r->n_targets; i++)
		write_target(&w, &r->targets[i], capacity_names(r->capacity));
	json_write_array_end(&w);
	write_faults(&w, r->capacity);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}
