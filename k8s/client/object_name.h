// SPDX-License-Identifier: Apache-2.0
// The names of Kubernetes namespaces and objects.
#ifndef GPUSCALE_K8S_CLIENT_OBJECT_NAME_H
#define GPUSCALE_K8S_CLIENT_OBJECT_NAME_H

#include <stdbool.h>

// Returns whether text can be used as the name of a namespace or object in a URL: letters, digits, '-', '.' and '_', at
// most 253 characters, not only dots.
bool k8s_name_is_valid(const char *text);

#endif
