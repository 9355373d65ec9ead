// SPDX-License-Identifier: Apache-2.0
// gpuscale get -w: the list, then every change, until the process is stopped.
#ifndef GPUSCALE_CLI_GET_WATCH_H
#define GPUSCALE_CLI_GET_WATCH_H

#include "controller/render.h"

struct kube_session;
struct policy_scope;

// scope->n_names: at most one. Errors before the first list end it, later ones are told on stderr while it goes on
// trying. Returns the exit code: it ends by itself only when something failed, or nobody reads stdout any more.
int get_watch(struct kube_session *session, const struct policy_scope *scope, enum output_format output);

#endif
