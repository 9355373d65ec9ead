// SPDX-License-Identifier: Apache-2.0
// Evaluates the CEL expressions that device classes and claims select devices with, as far as they compare the driver,
// attributes and capacities with constants: && || ! == != < <= > >= in ( ), and .compareTo(quantity("..")). Anything
// else is unknown, never true or false by accident. Kubernetes: dynamic-resource-allocation/cel.
#ifndef GPUSCALE_K8S_CAPACITY_DEVICE_SELECTOR_H
#define GPUSCALE_K8S_CAPACITY_DEVICE_SELECTOR_H

#include "base/json/json_span.h"

#define DEVICE_SELECTOR_BYTES_MAX 10240 // Kubernetes: CELSelectorExpressionMaxLength
#define DEVICE_SELECTOR_DEPTH_MAX 32    // nesting of parentheses and negations

enum device_match { DEVICE_MATCH_NO, DEVICE_MATCH_YES, DEVICE_MATCH_UNKNOWN };

struct device_facts {
	const char *driver;
	struct json_span attributes, capacity; // as in a ResourceSlice
};

// expression is NUL-terminated.
enum device_match device_selector_match(const char *expression, const struct device_facts *device);

#endif
