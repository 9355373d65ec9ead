// SPDX-License-Identifier: Apache-2.0
// Selects the GPUAutoscalers, or the GPUPools, of a command and fetches them from the API server: as stored, valid or
// not, policies with their status.
#ifndef GPUSCALE_CLI_OBJECTS_POLICY_FETCH_H
#define GPUSCALE_CLI_OBJECTS_POLICY_FETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "cli/term/object_kind.h"
#include "controller/status/status_schema.h"
#include "policies/explain/explain.h"
#include "runtime/options/controller_options.h"
#include "runtime/options/flag_table.h"

struct buf;
struct cJSON;
struct connections;
struct doc_node;
struct err;
struct json_span;

#define POLICY_VIEWS_MAX             20000
#define POOL_VIEWS_MAX               1000
#define POLICY_ANNOTATION_REASON     "gpuscale.dev/paused-reason" // why the policy was paused; for people only
#define POLICY_VIEWS_ARENA_BYTES_MAX ((size_t)1024 * 1024 * 1024)

struct policy_view {
	const char *namespace_name, *name; // "" where the object does not say
	const struct doc_node *root;       // the object; of a pool, only this, its names and its times are set
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

#define POLICY_FETCH_NAMES_MAX 256
#define POLICY_PATH_BYTES_MAX  1024

// What the command line selects, with kubectl's meaning of -n, -A and -l. The command adds the arguments itself.
struct policy_scope {
	struct kube_options kube;
	const char *namespace_name; // -n; NULL: that of the context, once policy_fetch_open() returned
	bool all_namespaces;        // -A, which overrides -n
	const char *selector;       // -l: of labels; NULL: none
	enum object_kind kind;      // POLICY unless the arguments name a different kind
	bool has_kind;              // an argument names it
	unsigned kinds;             // those of the command, 1U << OBJECT_x; 0: only policies
	const char *names[POLICY_FETCH_NAMES_MAX];
	size_t n_names; // 0: all
};
// Their options are a struct policy_scope: -n, -A and the flags of kube_flags; the same and -l, for commands with
// names, which cannot be combined with -A (their namespace is ambiguous) or -l.
extern const struct flag_set namespace_flags, policy_scope_flags;
// A flag_take_fn: adds an argument to a struct policy_scope, KIND (the first one only), NAME or KIND/NAME. Exits with a
// usage error for an unknown kind, and for two different ones.
void policy_scope_add(void *scope, char *arg, struct argp_state *state);
// Sets namespace_name for a command that needs no cluster: NULL with -A, else that of -n or of the context of the
// kubeconfig, "default" where there is none. The name is allocated in `a`. Returns 0, or -1 and *e.
int policy_scope_resolve(struct policy_scope *s, struct arena *a, struct err *e);

// Formats the path of the collection, or of the object called `name`.
int policy_path(const struct policy_scope *s, const char *name, char out[POLICY_PATH_BYTES_MAX], struct err *e);
// Opens the session and resolves the scope for a command; otherwise prints the error and returns the exit code.
int policy_fetch_open(struct connections *session, struct policy_scope *s, const char *command);
// Fills `ret_views` with the policies or pools of the scope, or with those that it names; call policy_views_done() in
// any case. Prints errors, one per name, and returns the exit code.
int policy_fetch_named(struct connections *session, const struct policy_scope *s, const char *command,
                       struct policy_views *ret_views);
// Appends what a command prints about `v` to `out`. Returns the exit code.
typedef int policy_fetch_print_fn(void *arg, struct connections *session, struct policy_views *v, struct buf *out);
// Runs a command about the objects of the scope: fetches them, and prints them as `print` does in `format`. `print` is
// not called without objects, unless the format is a document, which is empty then. Returns the exit code.
int policy_fetch_run(struct policy_scope *s, const char *command, enum output_format format,
                     policy_fetch_print_fn *print, void *arg);
// Prints "No resources found in X namespace." on stderr, like kubectl; of pools, without a namespace.
void policy_fetch_say_none(const struct policy_scope *s);
// Adds a hint to the error of a request about objects of the kind. Returns -1.
int policy_fetch_explain(struct err *e, enum object_kind kind, const char *name);

#endif
