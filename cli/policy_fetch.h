// SPDX-License-Identifier: Apache-2.0
// Which GPUAutoscalers a command is about, and getting them from the API server.
#ifndef GPUSCALE_CLI_POLICY_FETCH_H
#define GPUSCALE_CLI_POLICY_FETCH_H

#include <argp.h>
#include <stdbool.h>
#include <stddef.h>

#include "controller/options.h"

struct err;
struct kube_session;
struct policy_views;

#define POLICY_FETCH_NAMES_MAX 256
#define POLICY_PATH_BYTES_MAX  1024

// Flags -n, -A, -l and those of kube_argp, as an argp child; its input is this. The names are the command's to add.
struct policy_scope {
	struct kube_options kube;
	const char *namespace_name; // -n; NULL: the context's. Settled by policy_scope_settle
	bool all_namespaces;        // -A
	const char *selector;       // -l: of labels; NULL: none
	const char *names[POLICY_FETCH_NAMES_MAX];
	size_t n_names; // 0: all of them
};
extern const struct argp policy_scope_argp;
// Appends, or ends the process with a usage error. "gpua/NAME" and "gpuautoscaler.gpuscale.dev/NAME" are NAME.
void policy_scope_add(struct policy_scope *s, const char *name, struct argp_state *state);
// -A or -l with names is a usage error: which namespace would they be in?
void policy_scope_check(const struct policy_scope *s, struct argp_state *state);
// namespace_name from the session's context where no -n was given.
void policy_scope_settle(struct policy_scope *s, const struct kube_session *session);

// The path of the collection, or (name) of one object.
int policy_path(const struct policy_scope *s, const char *name, char out[POLICY_PATH_BYTES_MAX], struct err *e);
// Lists all of the scope, or adds the object called name. -1 and *e, which names the fix: a cluster that has no such
// kind, and what may not be read.
int policy_fetch_all(struct kube_session *session, const struct policy_scope *s, struct policy_views *v, struct err *e);
int policy_fetch_one(struct kube_session *session, const struct policy_scope *s, const char *name,
                     struct policy_views *v, struct err *e);
// For a command: opens the session and settles the scope; else prints the error and returns the exit code.
int policy_fetch_open(struct kube_session *session, struct policy_scope *s, const char *command);
// Fills *ret_views (policy_views_done it in any case) with all of the scope, or those that it names. Errors are
// printed, one per name; the exit code.
int policy_fetch_named(struct kube_session *session, const struct policy_scope *s, const char *command,
                       struct policy_views *ret_views);
// "No resources found in X namespace." on stderr, as kubectl.
void policy_fetch_say_none(const struct policy_scope *s);
// Adds what helps to the error of any request about GPUAutoscalers; returns -1.
int policy_fetch_explain(struct err *e, const char *name);

#endif
