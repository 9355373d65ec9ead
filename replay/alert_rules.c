// SPDX-License-Identifier: Apache-2.0
#include "replay/alert_rules.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/schema/doc.h"

static int add_alert(struct alert_rules *r, const struct doc_node *rule, struct err *e)
{
	const char *name = doc_get_text(rule, "alert", "");
	if (!name[0])
		return 0; // a recording rule
	for (size_t i = 0; i < r->n_alerts; i++)
		if (strcmp(r->alerts[i].name, name) == 0)
			return 0;
	if (r->n_alerts == ALERT_RULES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d alerts", ALERT_RULES_MAX);
	r->alerts[r->n_alerts++] = (struct alert_rule){name, doc_get_text(doc_get(rule, "labels"), "severity", "")};
	return 0;
}

static int add_group(struct alert_rules *r, const struct doc_node *group, struct err *e)
{
	const char *name = doc_get_text(group, "name", "");
	const struct doc_node *rules = doc_get(group, "rules");
	if (!name[0])
		return err_set(e, ERR_INPUT, "%d: a group without a name", group->line);
	if (r->n_groups == ALERT_GROUPS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d groups", ALERT_GROUPS_MAX);
	r->groups[r->n_groups++] = name;
	for (const struct doc_node *rule = rules ? rules->child : NULL; rule; rule = rule->next)
		if (add_alert(r, rule, e) < 0)
			return -1;
	return 0;
}

// promtool takes each name of a rule file as a pattern.
static int add_file(struct alert_rules *r, struct arena *a, const char *path, struct err *e)
{
	char real[PATH_MAX];
	if (r->n_files == ALERT_RULE_FILES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d rule files", ALERT_RULE_FILES_MAX);
	if (!realpath(path, real))
		return err_set_code(e, ERR_IO, errno, "%s", strerror(errno));
	if (strpbrk(real, "*?[\\\n"))
		return err_set(e, ERR_INPUT,
		               "promtool reads *, ?, [ and \\ in a path as a pattern: rename the file or its folder");
	r->files[r->n_files] = arena_strdup(a, real);
	return r->files[r->n_files++] ? 0 : err_set(e, ERR_INTERNAL, "out of memory");
}

static int add_groups(struct alert_rules *r, struct arena *a, const char *path, struct err *e)
{
	struct doc_file file;
	size_t n = r->n_groups;
	if (doc_read_yaml(a, path, &file, e) < 0)
		return -1; // names the file
	for (size_t i = 0; i < file.n_roots; i++) {
		const struct doc_node *groups = doc_get(file.roots[i], "groups");
		for (const struct doc_node *g = groups ? groups->child : NULL; g; g = g->next)
			if (add_group(r, g, e) < 0)
				return err_wrap(e, "%s", path);
	}
	if (r->n_groups == n)
		return err_set(e, ERR_INPUT, "%s: no groups of rules: expected a rule file of Prometheus", path);
	return 0;
}

int alert_rules_add(struct alert_rules *r, struct arena *a, const char *path, struct err *e)
{
	if (add_groups(r, a, path, e) < 0)
		return -1;
	return add_file(r, a, path, e) < 0 ? err_wrap(e, "%s", path) : 0;
}
