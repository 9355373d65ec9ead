// SPDX-License-Identifier: Apache-2.0
// gpuscale get remediations: the GPUs that are or were out of service, from the annotations of their nodes, and the
// latest Events of the agent, which a dry run writes as well.
#ifndef GPUSCALE_CLI_OBJECTS_REMEDIATION_LIST_H
#define GPUSCALE_CLI_OBJECTS_REMEDIATION_LIST_H

#include "policies/explain/explain.h"

struct kube_options;

// Fetches and prints both lists in `format`; OUTPUT_NAME: the nodes. Prints errors, and returns the exit code.
int remediation_list_print(const struct kube_options *kube, enum output_format format);

#endif
