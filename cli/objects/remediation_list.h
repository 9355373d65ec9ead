// SPDX-License-Identifier: Apache-2.0
// gpuscale get remediations: the GPUs that are or were out of service, from the annotations of their nodes, and the
// latest Events of the agent, which a dry run writes as well.
#ifndef GPUSCALE_CLI_OBJECTS_REMEDIATION_LIST_H
#define GPUSCALE_CLI_OBJECTS_REMEDIATION_LIST_H

struct kube_options;

// Fetches and prints both tables. Prints errors, and returns the exit code.
int remediation_list_print(const struct kube_options *kube);

#endif
