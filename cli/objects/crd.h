// SPDX-License-Identifier: Apache-2.0
// Generates the CustomResourceDefinitions gpuautoscalers.gpuscale.dev and gpupools.gpuscale.dev from the tables of
// their fields and of their status.
#ifndef GPUSCALE_CLI_OBJECTS_CRD_H
#define GPUSCALE_CLI_OBJECTS_CRD_H

#include <stdbool.h>

#include "cli/term/object_kind.h"

struct json_writer;

// The resources that the API server stores come first.
#define CRD_COUNT OBJECT_REMEDIATION
// The start of the paths of their collections.
#define CRD_API_PATH "/apis/" CRD_GROUP "/" CRD_VERSION

// Writes the definition of a stored resource (apiextensions.k8s.io/v1) to `w`, identical in each call. `with_rules`
// adds rules for Kubernetes 1.25 and later.
void crd_write(struct json_writer *w, enum object_kind kind, bool with_rules);

#endif
