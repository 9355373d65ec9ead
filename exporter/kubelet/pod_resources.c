// SPDX-License-Identifier: Apache-2.0
#include "exporter/kubelet/pod_resources.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/num.h"
#include "base/utf8.h"
#include "exporter/device.h"

struct entry {
	const char *id; // without the replica
	int32_t replica;
	const char *namespace_, *pod, *container;
};

struct pod_map {
	struct arena arena;
	struct entry *entries; // sorted by namespace and pod
	size_t n, cap;
};

// ---- protobuf: fields of a message, one after the other ----

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

struct span {
	const unsigned char *p, *end;
};

static bool read_varint(struct span *s, uint64_t *ret_value)
{
	*ret_value = 0;
	for (unsigned shift = 0; shift < 64 && s->p < s->end; shift += 7) {
		unsigned char c = *s->p++;
		*ret_value |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return true;
	}
	return false;
}

// Finds the next field that holds bytes: returns 1 with its number and bytes, 0 at the end of the message, -1 if it
// is malformed. Other fields (cpu ids, memory sizes) and unknown ones are skipped.
static int next_field(struct span *s, uint32_t *ret_number, struct span *ret_bytes)
{
	while (s->p < s->end) {
		uint64_t tag, n = 0;
		if (!read_varint(s, &tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
			return -1;
		size_t left;
		switch (tag & 7) {
		case WIRE_VARINT:
			if (!read_varint(s, &n))
				return -1;
			continue;
		case WIRE_64:
			n = 8;
			break;
		case WIRE_32:
			n = 4;
			break;
		case WIRE_BYTES:
			if (!read_varint(s, &n))
				return -1;
			break;
		default: // groups are deprecated
			return -1;
		}
		left = (size_t)(s->end - s->p);
		if (n > left)
			return -1;
		*ret_bytes = (struct span){s->p, s->p + n};
		*ret_number = (uint32_t)(tag >> 3);
		s->p += n;
		if ((tag & 7) == WIRE_BYTES)
			return 1;
	}
	return 0;
}

static int malformed(struct err *e)
{
	return err_set(e, ERR_PROTOCOL, "the reply is not a valid ListPodResourcesResponse");
}

// protobuf requires UTF-8 in strings; two invalid names could also become the same label.
static bool is_text(struct span s)
{
	while (s.p < s.end) {
		size_t n = *s.p ? utf8_char_len((const char *)s.p, (size_t)(s.end - s.p)) : 0;
		if (n == 0)
			return false;
		s.p += n;
	}
	return true;
}

// Copies a name and terminates it; "" for a missing name.
static int copy_text(struct pod_map *m, struct span text, size_t max, const char **ret_text, struct err *e)
{
	size_t len = (size_t)(text.end - text.p);
	if (len > max)
		return err_set(e, ERR_LIMIT, "a name of %zu bytes in the reply, the ceiling is %zu", len, max);
	if (!is_text(text))
		return malformed(e);
	*ret_text = len ? arena_strndup(&m->arena, (const char *)text.p, len) : "";
	if (!*ret_text)
		return err_set(e, ERR_LIMIT, "the names in the reply exceed the ceiling of %d bytes",
		               POD_MAP_BYTES_MAX);
	return 0;
}

// ---- the map ----

static bool equals(struct span s, const char *text)
{
	size_t len = strlen(text);
	return (size_t)(s.end - s.p) == len && memcmp(s.p, text, len) == 0;
}

static bool begins_with(struct span s, const char *text)
{
	size_t len = strlen(text);
	return (size_t)(s.end - s.p) >= len && memcmp(s.p, text, len) == 0;
}

static bool is_gpu_resource(struct span name, const struct pod_resource_names *extra)
{
	if (equals(name, "nvidia.com/gpu") || equals(name, "nvidia.com/gpu.shared") ||
	    begins_with(name, "nvidia.com/mig-") || equals(name, "amd.com/gpu") || begins_with(name, "gpu.intel.com/"))
		return true;
	for (size_t i = 0; extra && i < extra->n; i++)
		if (equals(name, extra->names[i]))
			return true;
	return false;
}

static bool read_number(const char *s, size_t len, int32_t *ret_value)
{
	int64_t v;
	if (num_parse_i64(s, len, 0, INT32_MAX, &v, NULL) < 0)
		return false;
	*ret_value = (int32_t)v;
	return true;
}

// Removes "::3", "/vgpu3" and the "-3" of "card0-3" from an id. The last one is a copy of a whole card, as Intel's
// plugin always counts them.
static int32_t cut_replica(char *id)
{
	int32_t replica;
	char *at = strstr(id, "::");
	if (at && read_number(at + 2, strlen(at + 2), &replica)) {
		*at = '\0';
		return replica;
	}
	at = strstr(id, "/vgpu");
	if (at && read_number(at + 5, strlen(at + 5), &replica)) {
		*at = '\0';
		return replica;
	}
	at = strncmp(id, "card", 4) == 0 ? strchr(id, '-') : NULL;
	if (at && read_number(at + 1, strlen(at + 1), &replica)) {
		*at = '\0';
		return replica;
	}
	return -1;
}

static int add_entry(struct pod_map *m, const struct entry *entry, struct err *e)
{
	if (m->n == POD_MAP_ENTRIES_MAX)
		return err_set(e, ERR_LIMIT, "more than %d devices in the reply", POD_MAP_ENTRIES_MAX);
	if (m->n == m->cap) {
		size_t cap = m->cap ? m->cap * 2 : 64;
		struct entry *entries = realloc(m->entries, cap * sizeof *entries);
		if (!entries)
			return err_set(e, ERR_INTERNAL, "out of memory");
		m->entries = entries;
		m->cap = cap;
	}
	m->entries[m->n++] = *entry;
	return 0;
}

// ContainerDevices: 1 = resource name, 2 = device ids. A name may come after its ids, so two passes.
static int read_devices(struct pod_map *m, struct span devices, const struct pod_resource_names *extra,
                        const struct entry *owner, struct err *e)
{
	struct span all = devices, bytes, name = {NULL, NULL};
	uint32_t number;
	int rc;
	while ((rc = next_field(&all, &number, &bytes)) > 0)
		if (number == 1)
			name = bytes;
	if (rc < 0)
		return malformed(e);
	if (!name.p || !is_gpu_resource(name, extra))
		return 0;
	while (next_field(&devices, &number, &bytes) > 0) {
		char id[POD_DEVICE_BYTES_MAX + 1];
		size_t len = (size_t)(bytes.end - bytes.p);
		struct entry entry = *owner;
		if (number != 2 || len == 0)
			continue;
		if (len > POD_DEVICE_BYTES_MAX)
			return err_set(e, ERR_LIMIT, "a device id of %zu bytes in the reply, the ceiling is %d", len,
			               POD_DEVICE_BYTES_MAX);
		if (!is_text(bytes))
			return malformed(e);
		memcpy(id, bytes.p, len);
		id[len] = '\0';
		entry.replica = cut_replica(id);
		entry.id = arena_strdup(&m->arena, id);
		if (!entry.id)
			return err_set(e, ERR_LIMIT, "the ids in the reply exceed the ceiling of %d bytes",
			               POD_MAP_BYTES_MAX);
		if (add_entry(m, &entry, e) < 0)
			return -1;
	}
	return 0;
}

// ContainerResources: 1 = name, 2 = devices.
static int read_container(struct pod_map *m, struct span container, const struct pod_resource_names *extra,
                          struct entry owner, struct err *e)
{
	struct span all = container, bytes, name = {NULL, NULL};
	uint32_t number;
	int rc, has_devices = 0;
	while ((rc = next_field(&all, &number, &bytes)) > 0) {
		if (number == 1)
			name = bytes;
		has_devices |= number == 2;
	}
	if (rc < 0)
		return malformed(e);
	if (!has_devices)
		return 0; // most containers hold no device; their names are not copied
	if (copy_text(m, name, POD_NAME_BYTES_MAX, &owner.container, e) < 0)
		return -1;
	while (next_field(&container, &number, &bytes) > 0)
		if (number == 2 && read_devices(m, bytes, extra, &owner, e) < 0)
			return -1;
	return 0;
}

// PodResources: 1 = name, 2 = namespace, 3 = containers.
static int read_pod(struct pod_map *m, struct span pod, const struct pod_resource_names *extra, struct err *e)
{
	struct span all = pod, bytes, name = {NULL, NULL}, namespace_ = {NULL, NULL};
	struct entry owner = {.id = NULL};
	uint32_t number;
	int rc;
	while ((rc = next_field(&all, &number, &bytes)) > 0) {
		if (number == 1)
			name = bytes;
		else if (number == 2)
			namespace_ = bytes;
	}
	if (rc < 0)
		return malformed(e);
	if (copy_text(m, name, POD_NAME_BYTES_MAX, &owner.pod, e) < 0 ||
	    copy_text(m, namespace_, POD_NAME_BYTES_MAX, &owner.namespace_, e) < 0)
		return -1;
	while (next_field(&pod, &number, &bytes) > 0)
		if (number == 3 && read_container(m, bytes, extra, owner, e) < 0)
			return -1;
	return 0;
}

static int by_pod(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->namespace_, y->namespace_);
	order = order ? order : strcmp(x->pod, y->pod);
	order = order ? order : strcmp(x->container, y->container);
	return order ? order : (x->replica > y->replica) - (x->replica < y->replica);
}

struct pod_map *pod_map_parse(const void *message, size_t len, const struct pod_resource_names *extra, struct err *e)
{
	struct pod_map *m = calloc(1, sizeof *m);
	if (!m) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	arena_init(&m->arena, POD_MAP_BYTES_MAX);
	struct span all = {message, (const unsigned char *)message + len}, bytes;
	uint32_t number;
	int field, rc = 0;
	while (rc == 0 && (field = next_field(&all, &number, &bytes)) != 0) {
		if (field < 0)
			rc = malformed(e);
		else if (number == 1)
			rc = read_pod(m, bytes, extra, e);
	}
	if (rc < 0) {
		pod_map_free(m);
		return NULL;
	}
	if (m->n > 1)
		qsort(m->entries, m->n, sizeof *m->entries, by_pod);
	return m;
}

void pod_map_free(struct pod_map *m)
{
	if (!m)
		return;
	arena_done(&m->arena);
	free(m->entries);
	free(m);
}

size_t pod_map_entries(const struct pod_map *m)
{
	return m->n;
}

// ---- matching ----

// "00000000:04:00.0" and "0000:04:00.0" are equal: domains are compared as numbers, without leading zeros.
static bool same_pci(const char *a, const char *b)
{
	return strcasecmp(a + strspn(a, "0"), b + strspn(b, "0")) == 0;
}

// Names of MIG instances used by old drivers and by GKE.
static bool is_instance(const char *id, const struct device *d)
{
	char name[DEVICE_UUID_BYTES + 2 * DEVICE_NODE_BYTES];
	if (!strchr(id, '/')) // most ids contain no "/": avoid formatting a name to compare with, on a node with many
	                      // instances
		return false;
	snprintf(name, sizeof name, "%s/gi%s", d->node, d->mig_id);
	if (d->node[0] && strcasecmp(id, name) == 0)
		return true;
	int n = snprintf(name, sizeof name, "MIG-%s/%s/", d->uuid, d->mig_id);
	return strncasecmp(id, name, (size_t)n) == 0;
}

static bool is_device(const char *id, const struct device *d)
{
	if (d->mig_id[0])
		return (d->mig_uuid[0] && strcasecmp(id, d->mig_uuid) == 0) || is_instance(id, d);
	return (d->uuid[0] && strcasecmp(id, d->uuid) == 0) || (d->node[0] && strcmp(id, d->node) == 0) ||
	       (d->pci_bus_id[0] && strchr(id, ':') && same_pci(id, d->pci_bus_id));
}

size_t pod_map_find(const struct pod_map *m, const struct device *device, struct pod_share ret_shares[POD_SHARERS_MAX])
{
	const struct entry *last = NULL;
	size_t n = 0;
	for (size_t i = 0; i < m->n; i++) {
		const struct entry *x = &m->entries[i];
		if (!is_device(x->id, device))
			continue;
		bool same_pod = last && strcmp(last->namespace_, x->namespace_) == 0 && strcmp(last->pod, x->pod) == 0;
		last = x;
		if (!same_pod) {
			if (++n <= POD_SHARERS_MAX)
				ret_shares[n - 1] = (struct pod_share){.namespace_ = x->namespace_,
				                                       .pod = x->pod,
				                                       .container = x->container,
				                                       .replica = x->replica};
			continue;
		}
		if (n > POD_SHARERS_MAX)
			continue;
		struct pod_share *share = &ret_shares[n - 1];
		if (strcmp(share->container, x->container) != 0)
			share->container = "";
		if (x->replica >= 0 && (share->replica < 0 || x->replica < share->replica))
			share->replica = x->replica;
	}
	return n;
}
