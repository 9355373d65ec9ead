// SPDX-License-Identifier: Apache-2.0
// GPUAutoscalers as commands look at them: as they are stored, valid or not, with their status.
#ifndef GPUSCALE_CLI_POLICY_VIEW_H
#define GPUSCALE_CLI_POLICY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "controller/status_schema.h"

struct cJSON;
struct doc_node;
struct err;

#define POLICY_VIEWS_MAX             20000
#define POLICY_VIEWS_CONTINUE_BYTES  4096
#define POLICY_ANNOTATION_REASON     "gpuscale.dev/paused-reason" // why somebody paused it; for people only
#define POLICY_VIEWS_ARENA_BYTES_MAX ((size_t)1024 * 1024 * 1024)

struct policy_view {
	const char *namespace_name, *name, *uid; // "" where the object does not say
	const char *target_kind, *target_name;
	const char *min, *max; // as written; the default where it is not
	int64_t created_ms, deleted_ms, generation;
	bool paused_spec, paused_annotation, dry_run_spec, dry_run_annotation;
	const char *paused_reason;                   // NULL: none given
	const struct doc_node *labels, *annotations; // NULL: none
	struct status_view status;
	const char *status_fault; // the first thing in the status that could not be read; NULL: all could
	const char *json;         // the object without managedFields
};

struct policy_views {
	struct arena arena; // holds all of it
	struct policy_view *items;
	size_t n, room;
};

void policy_views_init(struct policy_views *v);
void policy_views_done(struct policy_views *v);
// Adds one object; its metadata.managedFields are removed from the tree. -1 and *e: ERR_LIMIT, ERR_PROTOCOL for what is
// no GPUAutoscaler.
int policy_views_add(struct policy_views *v, struct cJSON *object, struct err *e);
// Adds one page of a list as the API server sends it; ret_continue is "" on the last one. -1 and *e: ERR_LIMIT,
// ERR_PROTOCOL; what was added before stays.
int policy_views_add_list(struct policy_views *v, const char *json, size_t len,
                          char ret_continue[static POLICY_VIEWS_CONTINUE_BYTES], struct err *e);
// In order of namespace, then name.
void policy_views_sort(struct policy_views *v);
// What the policy does: "Active", "Paused", "DryRun".
const char *policy_view_mode(const struct policy_view *p);

#endif
