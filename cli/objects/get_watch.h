// SPDX-License-Identifier: Apache-2.0
// gpuscale get -w: prints the list, then every change, until the process is stopped.
#ifndef GPUSCALE_CLI_OBJECTS_GET_WATCH_H
#define GPUSCALE_CLI_OBJECTS_GET_WATCH_H

#include "policies/explain/explain.h"

struct kube_session;
struct policy_scope;
struct price_book;

// `scope` holds at most one name; `prices` is for OUTPUT_WIDE. An error before the first list ends the watch; later
// errors are reported on stderr and retried. Returns the exit code, which happens only on a failure or when stdout is
// closed.
int get_watch(struct kube_session *session, const struct policy_scope *scope, const struct price_book *prices,
              enum output_format output);

#endif
