// SPDX-License-Identifier: Apache-2.0
#include "policies/load/idle_rule_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "policies/load/file_list.h"
#include "policies/schema/idle_rule_schema.h"

#define SET_ARENA_MAX  (16 * 1024 * 1024)
#define FILE_TREE_MAX  (64 * 1024 * 1024)
#define LIST_ARENA_MAX (64 * 1024 * 1024)

static int add_rule(struct idle_rule_set *set, const char *file, const struct doc_node *root,
                    struct schema_errors *errors, struct err *e)
{
	if (set->n == IDLE_RULES_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than the ceiling of %d rules", file, IDLE_RULES_MAX);
	struct idle_rule *rule = &set->rules[set->n];
	*rule = (struct idle_rule){0};
	if (idle_rule_decode(root, rule, &set->arena, errors) < 0)
		return 0;
	for (size_t i = 0; i < set->n; i++)
		if (strcmp(set->rules[i].name, rule->name) == 0) {
			schema_report(errors, root, "metadata.name", "rule %s is already defined: remove one of them",
			              rule->name);
			return 0;
		}
	set->n++;
	return 0;
}

static int read_file(struct idle_rule_set *set, const char *path, struct schema_errors *errors, struct buf *report,
                     struct err *e)
{
	struct arena tree;
	struct doc_file doc;
	struct err why;
	int rc = 0;
	arena_init(&tree, FILE_TREE_MAX);
	if (doc_read_yaml(&tree, path, &doc, &why) == 0) {
		schema_errors_init(errors, doc.name);
		for (size_t i = 0; rc == 0 && i < doc.n_roots; i++)
			if (strcmp(doc_get_text(doc.roots[i], "kind", ""), IDLE_RULE_KIND) == 0)
				rc = add_rule(set, doc.name, doc.roots[i], errors, e);
		set->n_errors += errors->n + errors->dropped;
		schema_errors_print(errors, report);
	}
	arena_done(&tree);
	return rc;
}

int idle_rule_set_load(struct idle_rule_set *ret_set, const char *const *paths, size_t n_paths, struct buf *report,
                       struct err *e)
{
	struct arena a;
	struct path_list list;
	*ret_set = (struct idle_rule_set){.rules = calloc(IDLE_RULES_MAX, sizeof *ret_set->rules)};
	arena_init(&ret_set->arena, SET_ARENA_MAX);
	struct schema_errors *errors = malloc(sizeof *errors);
	if (!ret_set->rules || !errors) {
		free(errors);
		return err_set(e, ERR_INTERNAL, "out of memory for %d rules", IDLE_RULES_MAX);
	}
	arena_init(&a, LIST_ARENA_MAX);
	int rc = file_list_read(&a, paths, n_paths, &list, e);
	for (size_t i = 0; rc == 0 && i < list.n; i++)
		rc = read_file(ret_set, list.paths[i], errors, report, e);
	arena_done(&a);
	free(errors);
	return rc;
}

void idle_rule_set_done(struct idle_rule_set *set)
{
	free(set->rules);
	arena_done(&set->arena);
	*set = (struct idle_rule_set){0};
}
