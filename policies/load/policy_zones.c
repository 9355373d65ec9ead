// SPDX-License-Identifier: Apache-2.0
#include "policies/load/policy_zones.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "base/tz/tzfile.h"
#include "policies/engine/policy.h"

// Returns the table of an earlier schedule with the same zone, or a new one; NULL when the zone cannot be read.
static const struct tz_table *table_of(const struct policy *policy, size_t i, struct arena *a, struct err *e)
{
	const char *name = policy->schedules[i].time_zone;
	for (size_t k = 0; k < i; k++)
		if (policy->schedules[k].zone && strcmp(policy->schedules[k].time_zone, name) == 0)
			return policy->schedules[k].zone;
	struct tz_table *table = arena_alloc(a, sizeof *table);
	if (!table) {
		err_set(e, ERR_INTERNAL, "out of memory for time zone %s", name);
		return NULL;
	}
	return tzfile_load(NULL, name, a, table, e) < 0 ? NULL : table;
}

int policy_zones_load(struct policy *policy, const struct doc_node *root, struct arena *a, struct schema_errors *errors)
{
	int rc = 0;
	const struct doc_node *list = doc_get(doc_get(root, "spec"), "schedules");
	const struct doc_node *item = list && list->kind == DOC_SEQ ? list->child : NULL;
	for (size_t i = 0; item && i < POLICY_SCHEDULES_MAX && i < policy->n_schedules; item = item->next, i++) {
		const struct doc_node *node = doc_get(item, "timeZone");
		char path[SCHEMA_PATH_BYTES];
		struct err e;
		err_clear(&e);
		if (!policy->schedules[i].time_zone)
			continue; // without a text: already reported
		policy->schedules[i].zone = table_of(policy, i, a, &e);
		if (e.kind == ERR_NONE)
			continue;
		snprintf(path, sizeof path, "spec.schedules[%zu].timeZone", i);
		schema_report(errors, node ? node : item, path, "%s", e.msg);
		rc = -1;
	}
	return rc;
}
