// SPDX-License-Identifier: Apache-2.0
// Which nodes and pods have GPUs, or other accelerators, according to the API server.
#ifndef GPUSCALE_K8S_CLIENT_ACCELERATORS_H
#define GPUSCALE_K8S_CLIENT_ACCELERATORS_H

#include <stdbool.h>

struct cJSON;

// Returns whether the resource is a GPU, a part of a GPU, or another accelerator, by a table of known names.
bool resource_is_accelerator(const char *name);
// Returns whether the map of resources to quantities, as in the capacity of a node, has accelerators; or_none_left:
// also when it has 0 of them.
bool accelerators_in(const struct cJSON *resources, bool or_none_left);
// Returns whether a pod with this spec requests accelerators or devices (resource claims).
bool accelerators_of_pod(const struct cJSON *spec);

#endif
