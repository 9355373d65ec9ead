// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/resource_names.h"

#include <math.h>

#include "base/base.h"

#define QUANTITY_BYTES 64
// A decimal fraction such as 0.7 is not exact in a double; what is this close to a whole number is that number.
#define EXACT_RATIO 1e-9

int resource_names_init(struct resource_names *r)
{
	static const char *const names[] = {[RESOURCE_CPU] = "cpu",
	                                    [RESOURCE_MEMORY] = "memory",
	                                    [RESOURCE_EPHEMERAL_STORAGE] = "ephemeral-storage",
	                                    [RESOURCE_PODS] = "pods"};
	_Static_assert(sizeof names / sizeof names[0] == RESOURCE__COUNT, "a name for each");
	*r = (struct resource_names){0};
	for (int i = 0; i < RESOURCE__COUNT; i++) {
		if (resource_names_add(r, names[i], RESOURCE_OFFERED) != i)
			return -1;
	}
	return 0;
}

void resource_names_done(struct resource_names *r)
{
	for (size_t i = 0; i < r->n; i++)
		free(r->names[i]);
	r->n = 0;
}

int resource_names_find(const struct resource_names *r, const char *name)
{
	for (size_t i = 0; i < r->n; i++) {
		if (strcmp(r->names[i], name) == 0)
			return (int)i;
	}
	return -1;
}

// Returns a place whose name no pod, template or plan needs any more; -1: none.
static int find_unused(const struct resource_names *r)
{
	for (size_t i = 0; i < r->n; i++) {
		if (r->of[i].holders == 0 && !r->of[i].is_offered && !r->of[i].is_new)
			return (int)i;
	}
	return -1;
}

// most: how many names may be known that are not offered.
static int add_new(struct resource_names *r, const char *name, size_t most)
{
	size_t n = 0;
	if (!name[0] || strlen(name) >= RESOURCE_NAME_BYTES)
		return -1;
	for (size_t i = 0; i < r->n; i++)
		n += !r->of[i].is_offered;
	int id = n >= most || r->n == RESOURCE_NAMES_MAX ? find_unused(r) : (int)r->n;
	char *copy = id >= 0 ? strdup(name) : NULL;
	if (!copy)
		return -1;
	if ((size_t)id == r->n)
		r->n++;
	else
		free(r->names[id]);
	r->names[id] = copy;
	return id;
}

int resource_names_add(struct resource_names *r, const char *name, enum resource_use use)
{
	static const size_t most[] = {[RESOURCE_OFFERED] = SIZE_MAX,
	                              [RESOURCE_REQUESTED] = RESOURCE_NAMES_REQUESTED_MAX,
	                              [RESOURCE_NEEDED] = RESOURCE_NAMES_NEEDED_MAX};
	int id = resource_names_find(r, name);
	if (id < 0)
		id = add_new(r, name, most[use]);
	if (id >= 0 && use == RESOURCE_OFFERED)
		r->of[id].is_offered = true;
	else if (id >= 0)
		r->of[id].is_new = true;
	return id;
}

void resource_names_hold(struct resource_names *r, const struct resource_amount *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		r->of[items[i].id].holders++;
	for (size_t i = 0; i < r->n; i++)
		r->of[i].is_new = false;
}

void resource_names_release(struct resource_names *r, const struct resource_amount *items, size_t n)
{
	for (size_t i = 0; i < n; i++)
		r->of[items[i].id].holders--;
}

const char *resource_device_class(const char *name)
{
	size_t len = strlen(RESOURCE_DEVICE_CLASS_PREFIX);
	return strncmp(name, RESOURCE_DEVICE_CLASS_PREFIX, len) == 0 ? name + len : NULL;
}

bool resource_is_extended(const char *name)
{
	return resource_device_class(name) ||
	       (strchr(name, '/') && !strstr(name, "kubernetes.io/") && strncmp(name, "requests.", 9) != 0);
}

void resource_show_name(const char *name, char out[RESOURCE_SHOWN_BYTES])
{
	const char *class_name = resource_device_class(name);
	snprintf(out, RESOURCE_SHOWN_BYTES, "%s%s", class_name ? "DeviceClass " : "", class_name ? class_name : name);
}

bool resource_is_whole_gpu(const char *name)
{
	static const char *const known[] = {
	        "nvidia.com/gpu",   "amd.com/gpu",     "gpu.intel.com/i915",
	        "gpu.intel.com/xe", "habana.ai/gaudi", (RESOURCE_DEVICE_CLASS_PREFIX "gpu.nvidia.com"),
	};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		if (strcmp(name, known[i]) == 0)
			return true;
	}
	return false;
}

static size_t find_amount(const struct resource_vector *v, int id)
{
	size_t i = 0;
	while (i < v->n && v->items[i].id != id)
		i++;
	return i;
}

bool resource_vector_has(const struct resource_vector *v, int id)
{
	return find_amount(v, id) < v->n;
}

int64_t resource_vector_get(const struct resource_vector *v, int id)
{
	size_t i = find_amount(v, id);
	return i < v->n ? v->items[i].amount : 0;
}

int resource_vector_set(struct resource_vector *v, int id, int64_t amount)
{
	size_t i = find_amount(v, id);
	if (i == RESOURCES_MAX)
		return -1;
	if (i == v->n)
		v->n++;
	v->items[i] = (struct resource_amount){amount, (uint8_t)id};
	return 0;
}

// Reads the quantity of a resource, rounded up as the scheduler does. Returns 0 and *ret_amount, or an enum
// resource_fault.
static int read_amount(struct json_span quantity, const char *name, int64_t *ret_amount)
{
	char text[QUANTITY_BYTES];
	double value;
	int len = -1;
	if (json_span_kind(quantity) == '"') {
		len = json_span_text(quantity, text, sizeof text);
	} else if (json_span_kind(quantity) == '0' && quantity.len < sizeof text) {
		len = (int)quantity.len;
		memcpy(text, quantity.text, quantity.len);
	}
	if (len <= 0 || num_parse_quantity(text, (size_t)len, &value, NULL) < 0)
		return RESOURCE_FAULT_UNREADABLE;
	if (strcmp(name, "cpu") == 0)
		value *= 1000;
	if (value < 0)
		return RESOURCE_FAULT_NEGATIVE;
	if (value > (double)(resource_is_extended(name) ? RESOURCE_DEVICES_MAX : RESOURCE_AMOUNT_MAX))
		return RESOURCE_FAULT_HUGE;
	double nearest = nearbyint(value);
	*ret_amount = (int64_t)(fabs(value - nearest) <= EXACT_RATIO * fmax(1, value) ? nearest : ceil(value));
	return 0;
}

int resource_vector_read(struct resource_names *names, enum resource_use use, struct json_span map,
                         struct resource_vector *ret_vector)
{
	struct json_span_iter it = {.rest = map};
	int faults = 0, n = 0;
	while (json_span_next(&it)) {
		char name[RESOURCE_NAME_BYTES];
		int64_t amount;
		if (n++ == RESOURCE_MAP_MAX)
			return faults | RESOURCE_FAULT_TOO_MANY;
		if (json_span_text(it.key, name, sizeof name) <= 0) {
			faults |= RESOURCE_FAULT_UNREADABLE;
			continue;
		}
		int fault = read_amount(it.value, name, &amount);
		int id = fault ? -1 : resource_names_add(names, name, use);
		if (!fault && (id < 0 || resource_vector_set(ret_vector, id, amount) < 0))
			fault = RESOURCE_FAULT_TOO_MANY;
		faults |= fault;
	}
	return faults;
}
