// SPDX-License-Identifier: Apache-2.0
// The CustomResourceDefinition gpuautoscalers.gpuscale.dev, made from the policy table and the status table.
#ifndef GPUSCALE_CLI_CRD_H
#define GPUSCALE_CLI_CRD_H

#include <stdbool.h>

struct json_writer;

#define CRD_GROUP   "gpuscale.dev"
#define CRD_VERSION "v1alpha1"
#define CRD_PLURAL  "gpuautoscalers"
// Collections: in all namespaces, and (printf) of one.
#define CRD_PATH           "/apis/" CRD_GROUP "/" CRD_VERSION "/" CRD_PLURAL
#define CRD_NAMESPACE_PATH "/apis/" CRD_GROUP "/" CRD_VERSION "/namespaces/%s/" CRD_PLURAL

// Writes the whole object (apiextensions.k8s.io/v1), the same at every call. with_rules: for Kubernetes 1.25 and later.
void crd_write(struct json_writer *w, bool with_rules);

#endif
