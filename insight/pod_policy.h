// SPDX-License-Identifier: Apache-2.0
// Which policy scales a pod, by the names that workloads give to their pods.
#ifndef GPUSCALE_INSIGHT_POD_POLICY_H
#define GPUSCALE_INSIGHT_POD_POLICY_H

#include <stddef.h>

struct policy;

// The policy in the namespace of the pod whose target has a pod of this name: TARGET-HASH-SUFFIX for a Deployment,
// TARGET-NUMBER for a StatefulSet, TARGET-.. for other kinds. Of several, the one with the longest name of a target.
// NULL: none. Each policy is that of a policy_ref (policies/load/policy_ref.h).
const struct policy *pod_policy_find(const struct policy *const *policies, size_t n, const char *namespace_name,
                                     const char *pod);

#endif
