// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/pod_requests.h"

#include <string.h>

#include "k8s/capacity/resource_names.h"

// Limits, replaced by the requests: a container that limits a resource and does not request it requests its limit.
static int read_container(struct resource_names *names, enum resource_use use, struct json_span container,
                          struct resource_vector *ret)
{
	struct json_span resources = json_span_get(container, "resources");
	ret->n = 0;
	int faults = resource_vector_read(names, use, json_span_get(resources, "limits"), ret);
	return faults | resource_vector_read(names, use, json_span_get(resources, "requests"), ret);
}

// Adds the amounts, or raises those of `to` to them.
static int merge(struct resource_vector *to, const struct resource_vector *from, bool adds)
{
	int faults = 0;
	for (size_t i = 0; i < from->n; i++) {
		const struct resource_amount *a = &from->items[i];
		int64_t before = resource_vector_get(to, a->id), larger = before > a->amount ? before : a->amount;
		int64_t amount = adds ? before + a->amount : larger;
		if (amount > RESOURCE_AMOUNT_MAX)
			faults |= RESOURCE_FAULT_HUGE;
		else if (resource_vector_set(to, a->id, amount) < 0)
			faults |= RESOURCE_FAULT_TOO_MANY;
	}
	return faults;
}

static int read_containers(struct resource_names *names, enum resource_use use, struct json_span list,
                           struct resource_vector *sum)
{
	struct json_span_iter it = {.rest = list};
	struct resource_vector one;
	int faults = 0, n = 0;
	while (json_span_next(&it)) {
		if (n++ == POD_CONTAINERS_MAX)
			return faults | RESOURCE_FAULT_TOO_MANY;
		faults |= read_container(names, use, it.value, &one);
		faults |= merge(sum, &one, true);
	}
	return faults;
}

// An init container runs alone, next to the sidecars that were started before it; a sidecar stays.
static int read_init_containers(struct resource_names *names, enum resource_use use, struct json_span list,
                                struct resource_vector *sum)
{
	struct json_span_iter it = {.rest = list};
	struct resource_vector one, sidecars = {.n = 0}, peak = {.n = 0};
	int faults = 0, n = 0;
	while (json_span_next(&it)) {
		if (n++ == POD_CONTAINERS_MAX)
			return faults | RESOURCE_FAULT_TOO_MANY;
		faults |= read_container(names, use, it.value, &one);
		if (json_span_is(json_span_get(it.value, "restartPolicy"), "Always")) {
			faults |= merge(sum, &one, true);
			faults |= merge(&sidecars, &one, true);
			faults |= merge(&peak, &sidecars, false);
		} else {
			faults |= merge(&one, &sidecars, true);
			faults |= merge(&peak, &one, false);
		}
	}
	return faults | merge(sum, &peak, false);
}

// Requests of the whole pod exist for cpu, memory and huge pages. What the pod limits and neither it nor a container
// requests, it requests.
static int read_pod_level(struct resource_names *names, enum resource_use use, struct json_span resources,
                          struct resource_vector *sum)
{
	struct resource_vector limits = {.n = 0}, requests = {.n = 0};
	int faults = resource_vector_read(names, use, json_span_get(resources, "limits"), &limits);
	faults |= resource_vector_read(names, use, json_span_get(resources, "requests"), &requests);
	for (size_t i = 0; i < limits.n; i++) {
		if (!resource_vector_has(&requests, limits.items[i].id) &&
		    !resource_vector_has(sum, limits.items[i].id))
			faults |=
			        merge(&requests, &(struct resource_vector){.items = {limits.items[i]}, .n = 1}, false);
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
	static const char *const names[] = {"containers", "initContainers", "resources",
	                                    "overhead",   "nodeName",       "resourceClaims"};
	struct json_span found[sizeof names / sizeof names[0]];
	json_span_members(spec, names, found, sizeof names / sizeof names[0]);
	*ret_spec = (struct pod_spec){found[0], found[1], found[2], found[3], found[4], found[5]};
}

int pod_requests_read(struct resource_names *names, enum resource_use use, const struct pod_spec *spec,
                      struct resource_vector *ret_requests)
{
	struct resource_vector overhead = {.n = 0};
	ret_requests->n = 0;
	int faults = read_containers(names, use, spec->containers, ret_requests);
	faults |= read_init_containers(names, use, spec->init_containers, ret_requests);
	faults |= read_pod_level(names, use, spec->resources, ret_requests);
	faults |= resource_vector_read(names, use, spec->overhead, &overhead);
	return faults | merge(ret_requests, &overhead, true);
}
