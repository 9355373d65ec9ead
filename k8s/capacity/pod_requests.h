// SPDX-License-Identifier: Apache-2.0
// The effective requests of a pod, as the scheduler counts it: containers and sidecars together, or the largest init
// container with the sidecars started before it, whichever is more; requests of the whole pod replace those of its
// containers; overhead comes on top. Kubernetes: component-helpers/resource, PodRequests; defaults as in
// pkg/apis/core/v1, SetDefaults_Pod.
#ifndef GPUSCALE_K8S_CAPACITY_POD_REQUESTS_H
#define GPUSCALE_K8S_CAPACITY_POD_REQUESTS_H

#include "base/json/json_span.h"
#include "k8s/capacity/resource_names.h"

#define POD_CONTAINERS_MAX 1000 // containers in each list; a pod with more is not read

// The members of a PodSpec that capacity depends on, found in one pass over its text.
struct pod_spec {
	struct json_span containers, init_containers, resources, overhead, node_name, claims;
};
void pod_spec_read(struct json_span spec, struct pod_spec *ret_spec);

// Reads the requests of a PodSpec, of a pod or of a template: in a template, what a container only limits, it requests.
// The caller holds the names with resource_names_hold(). Returns the enum resource_fault of all amounts that were left
// out; 0: none.
int pod_requests_read(struct resource_names *names, enum resource_use use, const struct pod_spec *spec,
                      struct resource_vector *ret_requests);

#endif
