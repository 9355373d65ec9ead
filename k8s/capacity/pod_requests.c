// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/pod_requests.h"

#include <string.h>

#include "k8s/capacity/resource_names.h"

// Limits, replaced by the requests: a container that limits a resource and does not request it requests its limit.
static int read_container(struct resource_names *names, resource_add_fn *add_name, struct json_span container,
                          struct resource_vector *ret)
{
	struct json_span resources = json_span_get(container, "resources");
	ret->n = 0;
	int faults = resource_vector_read(names, add_name, json_span_get(resources, "limits"), ret);
	return faults | resource_vector_read(names, add_name, json_span_get(resources, "requests"), ret);
}

static int add(struct resource_vector *to, const struct resource_vector *from)
{
	int faults = 0;
	for (size_t i = 0; i < from->n; i++) {
		const struct resource_amount *a = &from->items[i];
		int64_t sum = resource_vector_get(to, a->id) + a->amount;
		if (sum > RESOURCE_AMOUNT_MAX)
			faults |= RESOURCE_FAULT_HUGE;
		else if (resource_vector_set(to, a->id, sum) < 0)
			faults |= RESOURCE_FAULT_TOO_MANY;
	}
	return faults;
}

static int take_larger(struct resource_vector *to, const struct resource_vector *from)
{
	int faults = 0;
	for (size_t i = 0; i < from->n; i++) {
		const struct resource_amount *a = &from->items[i];
		bool is_new = !resource_vector_has(to, a->id);
		if ((is_new || resource_vector_get(to, a->id) < a->amount) &&
		    resource_vector_set(to, a->id, a->amount) < 0)
			faults |= RESOURCE_FAULT_TOO_MANY;
	}
	return faults;
}

static int read_containers(struct resource_names *names, resource_add_fn *add_name, struct json_span list,
                           struct resource_vector *sum)
{
	struct json_span_iter it = {.rest = list};
	struct resource_vector one;
	int faults = 0, n = 0;
	while (json_span_next(&it)) {
		if (n++ == POD_CONTAINERS_MAX)
			return faults | RESOURCE_FAULT_TOO_MANY;
		faults |= read_container(names, add_name, it.value, &one);
		faults |= add(sum, &one);
	}
	return faults;
}

// An init container runs alone, next to the sidecars that were started before it; a sidecar stays.
static int read_init_containers(struct resource_names *names, resource_add_fn *add_name, struct json_span list,
                                struct resource_vector *sum)
{
	struct json_span_iter it = {.rest = list};
	struct resource_vector one, sidecars = {.n = 0}, peak = {.n = 0};
	int faults = 0, n = 0;
	while (json_span_next(&it)) {
		if (n++ == POD_CONTAINERS_MAX)
			return faults | RESOURCE_FAULT_TOO_MANY;
		faults |= read_container(names, add_name, it.value, &one);
		if (json_span_is(json_span_get(it.value, "restartPolicy"), "Always")) {
			faults |= add(sum, &one);
			faults |= add(&sidecars, &one);
			faults |= take_larger(&peak, &sidecars);
		} else {
			faults |= add(&one, &sidecars);
			faults |= take_larger(&peak, &one);
		}
	}
	return faults | take_larger(sum, &peak);
}

// Requests of the whole pod exist for cpu, memory and huge pages. What the pod limits and neither it nor a container
// requests, it requests.
static int read_pod_level(struct resource_names *names, resource_add_fn *add_name, struct json_span resources,
                          struct resource_vector *sum)
{
	struct resource_vector limits = {.n = 0}, requests = {.n = 0};
	int faults = resource_vector_read(names, add_name, json_span_get(resources, "limits"), &limits);
	faults |= resource_vector_read(names, add_name, json_span_get(resources, "requests"), &requests);
	for (size_t i = 0; i < limits.n; i++) {
		if (!resource_vector_has(&requests, limits.items[i].id) &&
		    !resource_vector_has(sum, limits.items[i].id))
			faults |= take_larger(&requests, &(struct resource_vector){.items = {limits.items[i]}, .n = 1});
	}
	for (size_t i = 0; i < requests.n; i++) {
		const struct resource_amount *a = &requests.items[i];
		bool is_of_pods = a->id == RESOURCE_CPU || a->id == RESOURCE_MEMORY ||
		                  strncmp(names->names[a->id], "hugepages-", 10) == 0;
		if (is_of_pods && resource_vector_set(sum, a->id, a->amount) < 0)
			faults |= RESOURCE_FAULT_TOO_MANY;
	}
	return faults;
}

void pod_spec_read(struct json_span spec, struct pod_spec *ret_spec)
{
	struct json_span_iter it = {.rest = spec};
	*ret_spec = (struct pod_spec){0};
	while (json_span_next(&it)) {
		if (json_span_is(it.key, "containers"))
			ret_spec->containers = it.value;
		else if (json_span_is(it.key, "initContainers"))
			ret_spec->init_containers = it.value;
		else if (json_span_is(it.key, "resources"))
			ret_spec->resources = it.value;
		else if (json_span_is(it.key, "overhead"))
			ret_spec->overhead = it.value;
		else if (json_span_is(it.key, "nodeName"))
			ret_spec->node_name = it.value;
		else if (json_span_is(it.key, "resourceClaims"))
			ret_spec->claims = it.value;
	}
}

int pod_requests_read(struct resource_names *names, resource_add_fn *add_name, const struct pod_spec *spec,
                      struct resource_vector *ret_requests)
{
	struct resource_vector overhead = {.n = 0};
	ret_requests->n = 0;
	int faults = read_containers(names, add_name, spec->containers, ret_requests);
	faults |= read_init_containers(names, add_name, spec->init_containers, ret_requests);
	faults |= read_pod_level(names, add_name, spec->resources, ret_requests);
	faults |= resource_vector_read(names, add_name, spec->overhead, &overhead);
	return faults | add(ret_requests, &overhead);
}
