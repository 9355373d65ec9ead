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

#define SET_ARENA_MAX (16 * 1024 * 1024)

static int add_rule(void *idle_rule_set, const struct doc_node *root, struct schema_errors *errors, struct err *e)
{
	struct idle_rule_set *set = idle_rule_set;
	if (set->n == IDLE_RULES_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than the ceiling of %d rules", errors->file, IDLE_RULES_MAX);
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

int idle_rule_set_load(struct idle_rule_set *ret_set, const char *const *paths, size_t n_paths, struct buf *report,
                       struct err *e)
{
	*ret_set = (struct idle_rule_set){.rules = calloc(IDLE_RULES_MAX, sizeof *ret_set->rules)};
	arena_init(&ret_set->arena, SET_ARENA_MAX);
	if (!ret_set->rules)
		return err_set(e, ERR_INTERNAL, "out of memory for %d rules", IDLE_RULES_MAX);
	return file_list_each_document(paths, n_paths, IDLE_RULE_KIND, false, add_rule, ret_set, report,
	                               &ret_set->n_errors, e);
}

void idle_rule_set_done(struct idle_rule_set *set)
{
	free(set->rules);
	arena_done(&set->arena);
	*set = (struct idle_rule_set){0};
}
