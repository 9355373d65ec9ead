// SPDX-License-Identifier: Apache-2.0
// Generates the CustomResourceDefinitions gpuautoscalers.gpuscale.dev and gpupools.gpuscale.dev from the tables of
// their fields and of their status.
#ifndef GPUSCALE_CLI_OBJECTS_CRD_H
#define GPUSCALE_CLI_OBJECTS_CRD_H

#include <stdbool.h>
#include <stddef.h>

struct json_writer;

#define CRD_GROUP   "gpuscale.dev"
#define CRD_VERSION "v1alpha1"
#define CRD_PLURAL  "gpuautoscalers"
// Paths of the collection in all namespaces, and (a printf format) in one namespace.
#define CRD_PATH           "/apis/" CRD_GROUP "/" CRD_VERSION "/" CRD_PLURAL
#define CRD_NAMESPACE_PATH "/apis/" CRD_GROUP "/" CRD_VERSION "/namespaces/%s/" CRD_PLURAL

// The number of definitions, and the kind that the `i`th defines.
size_t crd_count(void);
const char *crd_kind(size_t i);
// Writes the `i`th object (apiextensions.k8s.io/v1) to `w`, identical in each call. `with_rules` adds rules for
// Kubernetes 1.25 and later.
void crd_write(struct json_writer *w, size_t i, bool with_rules);

#endif
