// SPDX-License-Identifier: Apache-2.0
// GPUAutoscalers and GPUPools for commands: as stored, valid or not, policies with their status.
#ifndef GPUSCALE_CLI_OBJECTS_POLICY_VIEW_H
#define GPUSCALE_CLI_OBJECTS_POLICY_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "cli/term/object_kind.h"
#include "controller/status/status_schema.h"

struct cJSON;
struct doc_node;
struct err;
struct json_span;

#define POLICY_VIEWS_MAX             20000
#define POOL_VIEWS_MAX               1000
#define POLICY_ANNOTATION_REASON     "gpuscale.dev/paused-reason" // why the policy was paused; for people only
#define POLICY_VIEWS_ARENA_BYTES_MAX ((size_t)1024 * 1024 * 1024)

struct policy_view {
	const char *namespace_name, *name, *uid; // "" where the object does not say
	const struct doc_node *root;             // the object; of a pool, only this, its names and its times are set
	const char *target_kind, *target_name;
	bool is_fleet;            // with spec.scaleTargets
	const char *min, *max;    // as written, or the default
	int64_t gpus_per_replica; // 0: spec.gpus is absent or invalid
	const char *gpu_model;    // "": not given
	int64_t created_ms, deleted_ms, generation;
	bool paused_spec, paused_annotation, dry_run_spec, dry_run_annotation;
	const char *paused_reason;                   // NULL: no reason
	const struct doc_node *labels, *annotations; // NULL: none
	struct status_view status;
	const char *status_fault; // the first invalid field of the status; NULL: none
	const char *json;         // the object without managedFields
	// A policy with several targets: a view of each, with its status, by kind and name. Else n_targets is 0.
	struct policy_view *targets;
	size_t n_targets;
	const char *key; // of such a view: "KIND/NAME"; else NULL
};

struct policy_views {
	enum object_kind kind; // POLICY or POOL
	struct arena arena;    // holds all of it
	struct policy_view *items;
	size_t n, room;
	const char **faults; // objects of a list that cannot be read: "NAMESPACE/NAME: reason"
	size_t n_faults, faults_room;
};

void policy_views_init(struct policy_views *v, enum object_kind kind);
void policy_views_done(struct policy_views *v);
// Adds one object and removes its metadata.managedFields from the tree. Returns -1 and fills `e`: ERR_LIMIT, or
// ERR_PROTOCOL if the object is of another kind.
int policy_views_add(struct policy_views *v, struct cJSON *object, struct err *e);
// A kube_item_fn: adds an object of a list to a struct policy_views. One that cannot be read is added to `faults` and
// does not hide the others. Returns 0, or -1 and *e: ERR_LIMIT, ERR_INTERNAL.
int policy_views_add_item(void *views, struct json_span object, struct err *e);
// Sorts by namespace, then name.
void policy_views_sort(struct policy_views *v);
// Returns the views of the targets of a policy, *ret_n of them: the policy's own when it has one target.
const struct policy_view *policy_view_targets(const struct policy_view *p, size_t *ret_n);
// The mode of the policy: "Active", "Paused" or "DryRun".
const char *policy_view_mode(const struct policy_view *p);

#endif
