// SPDX-License-Identifier: Apache-2.0
// gpuscale get -w: prints the list, then every change, until the process is stopped.
#ifndef GPUSCALE_CLI_GET_WATCH_H
#define GPUSCALE_CLI_GET_WATCH_H

#include "policies/explain/explain.h"

struct kube_session;
struct policy_scope;

// `scope` holds at most one name. An error before the first list ends the watch; later errors are reported on stderr
// and retried. Returns the exit code, which happens only on a failure or when stdout is closed.
int get_watch(struct kube_session *session, const struct policy_scope *scope, enum output_format output);

#endif
