// SPDX-License-Identifier: Apache-2.0
// gpuscale get pools: lists the GPUPools of a cluster, and what each of their members requested and was granted.
#ifndef GPUSCALE_CLI_OBJECTS_POOL_GET_H
#define GPUSCALE_CLI_OBJECTS_POOL_GET_H

#include "policies/explain/explain.h"

struct connections;
struct policy_scope;

// Prints the pools that the scope names, or all with its labels; its namespace has no effect, because pools have none.
// Prints errors on standard error and returns the exit code.
int pool_get(struct connections *session, const struct policy_scope *scope, enum output_format format);

#endif
