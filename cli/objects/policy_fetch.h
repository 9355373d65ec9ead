// SPDX-License-Identifier: Apache-2.0
// Selects the GPUAutoscalers of a command and fetches them from the API server.
#ifndef GPUSCALE_CLI_OBJECTS_POLICY_FETCH_H
#define GPUSCALE_CLI_OBJECTS_POLICY_FETCH_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "runtime/options/controller_options.h"

struct err;
struct kube_session;
struct policy_views;

#define POLICY_FETCH_NAMES_MAX 256
#define POLICY_PATH_BYTES_MAX  1024

// The flags -n, -A, -l and those of kube_argp, as an argp child; its input is a struct policy_scope. The command adds
// the names itself.
struct policy_scope {
	struct kube_options kube;
	const char *namespace_name; // -n; NULL: that of the context, once policy_fetch_open() returned
	bool all_namespaces;        // -A
	const char *selector;       // -l: of labels; NULL: none
	const char *names[POLICY_FETCH_NAMES_MAX];
	size_t n_names; // 0: all
};
extern const struct argp policy_scope_argp;
// Appends a name, or exits with a usage error. "gpua/NAME" and "gpuautoscaler.gpuscale.dev/NAME" mean NAME.
void policy_scope_add(struct policy_scope *s, const char *name, struct argp_state *state);
// Exits with a usage error if names are combined with -A (their namespace is ambiguous) or -l.
void policy_scope_check(const struct policy_scope *s, struct argp_state *state);

// Formats the path of the collection, or of the object called `name`.
int policy_path(const struct policy_scope *s, const char *name, char out[POLICY_PATH_BYTES_MAX], struct err *e);
// Opens the session and resolves the scope for a command; otherwise prints the error and returns the exit code.
int policy_fetch_open(struct kube_session *session, struct policy_scope *s, const char *command);
// Fills `ret_views` with the policies of the scope, or with those that it names; call policy_views_done() in any
// case. Prints errors, one per name, and returns the exit code.
int policy_fetch_named(struct kube_session *session, const struct policy_scope *s, const char *command,
                       struct policy_views *ret_views);
// Prints "No resources found in X namespace." on stderr, like kubectl.
void policy_fetch_say_none(const struct policy_scope *s);
// Adds a hint to the error of a request about GPUAutoscalers. Returns -1.
int policy_fetch_explain(struct err *e, const char *name);

#endif
