// SPDX-License-Identifier: Apache-2.0
#include "policies/load/pool_set.h"

#include <inttypes.h>

#include "base/base.h"
#include "base/print.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/engine/policy.h"
#include "policies/load/file_list.h"
#include "policies/pool/gpu_pool.h"
#include "policies/pool/pool_allocate.h"
#include "policies/schema/pool_schema.h"

#define SET_ARENA_MAX       (64 * 1024 * 1024)
#define LIST_ARENA_MAX      (64 * 1024 * 1024)
#define FILE_TREE_MAX       (64 * 1024 * 1024)
#define LONGEST_MONTH_HOURS (31 * 24)

// ---- reading ----

// Returns the place of the node; that of `outer` when the file does not have it.
static struct pool_place place_of(const struct doc_node *node, const struct doc_node *outer)
{
	return node ? (struct pool_place){node->line, node->col} : (struct pool_place){outer->line, outer->col};
}

static void note_places(const struct doc_node *root, struct gpu_pool *pool)
{
	const struct doc_node *spec = doc_get(root, "spec"), *members = doc_get(spec, "members");
	const struct doc_node *budget = doc_get(spec, "budget"), *item = members ? members->child : NULL;
	pool->at = place_of(root, root);
	pool->gpus_at = place_of(doc_get(spec, "gpus"), root);
	pool->per_hour_at = place_of(doc_get(budget, "perHour"), root);
	pool->per_month_at = place_of(doc_get(budget, "perMonth"), root);
	for (size_t i = 0; item && i < pool->n_entries; item = item->next, i++)
		pool->entries[i].at = place_of(item, root);
}

static int add_pool(struct pool_set *set, const struct doc_node *root, struct schema_errors *errors, struct err *e)
{
	const char *path = errors->file;
	size_t before = errors->n + errors->dropped;
	if (set->n == POOL_SET_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than the ceiling of %d pools", path, POOL_SET_MAX);
	struct gpu_pool *pool = &set->pools[set->n];
	*pool = (struct gpu_pool){0};
	if (pool_decode(root, pool, &set->arena, errors) < 0 || errors->n + errors->dropped > before)
		return 0;
	pool->file = arena_strdup(&set->arena, path);
	if (!pool->file)
		return err_set(e, ERR_INTERNAL, "%s: out of memory", path);
	note_places(root, pool);
	set->n++;
	return 0;
}

int pool_set_load(struct pool_set *ret_set, const char *const *paths, size_t n_paths, bool report_unreadable,
                  struct buf *report, struct err *e)
{
	struct arena a, tree;
	struct path_list list;
	struct doc_file doc;
	struct err why;
	struct schema_errors *errors = malloc(sizeof *errors);
	*ret_set = (struct pool_set){.pools = calloc(POOL_SET_MAX, sizeof *ret_set->pools)};
	arena_init(&ret_set->arena, SET_ARENA_MAX);
	arena_init(&a, LIST_ARENA_MAX);
	int rc = errors && ret_set->pools ? file_list_read(&a, paths, n_paths, &list, e) : err_no_memory(e);
	for (size_t i = 0; rc == 0 && i < list.n; i++) {
		arena_init(&tree, FILE_TREE_MAX);
		if (doc_read_yaml(&tree, list.files[i].path, false, &doc, &why) == 0) {
			schema_errors_init(errors, doc.name);
			for (size_t k = 0; rc == 0 && k < doc.n_roots; k++)
				if (strcmp(doc_get_text(doc.roots[k], "kind", ""), POOL_KIND) == 0)
					rc = add_pool(ret_set, doc.roots[k], errors, e);
			ret_set->n_errors += errors->n + errors->dropped;
			schema_errors_print(errors, report);
		} else if (report_unreadable) {
			print_to(report, "%s\n", why.msg);
			ret_set->n_errors++;
		}
		arena_done(&tree);
	}
	arena_done(&a);
	free(errors);
	return rc;
}

void pool_set_done(struct pool_set *set)
{
	free(set->pools);
	arena_done(&set->arena);
	*set = (struct pool_set){0};
}

// ---- rules between pools and policies ----

static size_t check_name(const struct pool_set *set, size_t i, struct buf *report)
{
	const struct gpu_pool *p = &set->pools[i];
	for (size_t k = 0; k < i; k++) {
		const struct gpu_pool *first = &set->pools[k];
		if (strcmp(first->name, p->name) != 0)
			continue;
		print_to(report, "%s:%d:%d: pool %s is already defined at %s:%d: remove one of them\n", p->file,
		         p->at.line, p->at.col, p->name, first->file, first->at.line);
		return 1;
	}
	return 0;
}

static size_t check_claims(const struct pool_set *set, size_t i, const struct policy *const *policies,
                           size_t n_policies, struct buf *report)
{
	const struct gpu_pool *p = &set->pools[i];
	size_t n = 0;
	for (size_t k = 0; k < n_policies; k++) {
		const char *namespace_name = policies[k]->namespace_name, *name = policies[k]->name;
		const struct gpu_pool_entry *entry = gpu_pool_claims(p, namespace_name, name, policies[k]->label_lines);
		for (size_t other = 0; entry && other < i; other++)
			if (gpu_pool_claims(&set->pools[other], namespace_name, name, policies[k]->label_lines)) {
				print_to(report,
				         "%s:%d:%d: spec.members[%zu]: policy %s/%s already belongs to pool %s at "
				         "%s:%d: a policy belongs to one pool, remove it from one of them\n",
				         p->file, entry->at.line, entry->at.col, (size_t)(entry - p->entries),
				         namespace_name, name, set->pools[other].name, set->pools[other].file,
				         set->pools[other].at.line);
				n++;
				break;
			}
	}
	return n;
}

static size_t check_entries(const struct gpu_pool *p, const struct policy *const *policies, size_t n_policies,
                            struct buf *report)
{
	size_t n = 0;
	for (size_t i = 0; i < p->n_entries && n_policies > 0; i++) {
		const struct gpu_pool_entry *entry = &p->entries[i];
		bool is_found = !entry->name[0];
		for (size_t k = 0; k < n_policies && !is_found; k++)
			is_found = gpu_pool_entry_matches(entry, policies[k]->namespace_name, policies[k]->name,
			                                  policies[k]->label_lines);
		if (is_found)
			continue;
		bool is_one = entry->namespace_name && entry->namespace_name[0];
		print_to(report, "%s:%d:%d: spec.members[%zu]: unknown member: no policy is called %s%s%s%s\n", p->file,
		         entry->at.line, entry->at.col, i, is_one ? entry->namespace_name : "", is_one ? "/" : "",
		         entry->name, entry->n_labels > 0 ? " and has the labels" : "");
		n++;
	}
	return n;
}

static size_t check_minimums(const struct gpu_pool *p, const struct policy *const *policies, size_t n_policies,
                             struct buf *report)
{
	int64_t gpus = 0;
	double micro = 0;
	for (size_t k = 0; k < n_policies; k++) {
		const struct gpu_pool_entry *entry =
		        gpu_pool_claims(p, policies[k]->namespace_name, policies[k]->name, policies[k]->label_lines);
		struct pool_member m = {0};
		if (!entry)
			continue;
		gpu_pool_apply(p, entry, &m);
		m.min = policies[k]->min_replicas;
		int64_t n = (int64_t)pool_guaranteed(&m) * m.gpus_per_replica;
		gpus += n;
		micro += (double)n * (double)m.price_micro;
	}
	size_t n = 0;
	if (gpus > p->gpus) {
		print_to(report,
		         "%s:%d:%d: spec.gpus: is %" PRId32
		         ", but the guaranteed minReplicas of the members need %" PRId64
		         " GPUs: raise it or lower maxMinReplicas\n",
		         p->file, p->gpus_at.line, p->gpus_at.col, p->gpus, gpus);
		n++;
	}
	const struct {
		const char *field;
		bool is_set;
		struct pool_place at;
		double budget, hours;
	} budgets[] = {
	        {"perHour", p->has_per_hour, p->per_hour_at, p->per_hour, 1},
	        {"perMonth", p->has_per_month, p->per_month_at, p->per_month, LONGEST_MONTH_HOURS},
	};
	for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
		double cost = micro * budgets[i].hours;
		if (!budgets[i].is_set || cost <= (double)gpu_pool_micro(budgets[i].budget))
			continue;
		print_to(report,
		         "%s:%d:%d: spec.budget.%s: is %g, but the guaranteed minReplicas of the members cost %g: "
		         "raise it or lower maxMinReplicas\n",
		         p->file, budgets[i].at.line, budgets[i].at.col, budgets[i].field, budgets[i].budget,
		         cost / 1e6);
		n++;
	}
	return n;
}

size_t pool_set_check(const struct pool_set *set, const struct policy *const *policies, size_t n_policies,
                      struct buf *report)
{
	size_t n = 0;
	for (size_t i = 0; i < set->n; i++) {
		n += check_name(set, i, report);
		n += check_claims(set, i, policies, n_policies, report);
		n += check_entries(&set->pools[i], policies, n_policies, report);
		n += check_minimums(&set->pools[i], policies, n_policies, report);
	}
	return n;
}
