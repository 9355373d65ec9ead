// SPDX-License-Identifier: Apache-2.0
#include "exporter/kubelet/pod_resources.h"

#include <inttypes.h>
#include <strings.h>

#include "base/arena.h"
#include "base/base.h"
#include "base/hash.h"

#define UUID_BYTES 40 // "GPU-" or "MIG-" and a UUID

// ---- the names of a device: those of device plugins and of DRA drivers ----

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

// Reads `prefix` and a number up to the next "-". Returns what follows; NULL: the text is different.
static const char *skip_number(const char *s, const char *prefix, int64_t *ret_number)
{
	size_t n = strlen(prefix);
	if (strncmp(s, prefix, n) != 0)
		return NULL;
	size_t len = strcspn(s + n, "-");
	return num_parse_i64(s + n, len, 0, INT32_MAX, ret_number, NULL) == 0 ? s + n + len : NULL;
}

// Reads the MIG profile, "1g10gb-me" for "1g.10gb+me". Returns what follows; NULL: the text is different.
static const char *skip_profile(const char *text, const char *profile)
{
	for (; *profile; profile++) {
		if (*profile == '.')
			continue;
		if (*text != (*profile == '+' ? '-' : *profile))
			return NULL;
		text++;
	}
	return text;
}

static bool is_node(const struct device *d, const char *prefix, int64_t number)
{
	char name[DEVICE_NODE_BYTES];
	snprintf(name, sizeof name, "%s%" PRId64, prefix, number);
	return strcmp(d->node, name) == 0;
}

// "gpu-MINOR-mig-PROFILE-PROFILEID-PLACEMENT" of NVIDIA's driver. The placement is not readable without privileges, so
// the name identifies an instance only if the GPU has one of that profile.
static bool is_claimed_instance(const char *name, const struct device *devices, size_t n, size_t at)
{
	const struct device *d = &devices[at];
	int64_t minor, profile_id, placement;
	const char *rest = skip_number(name, "gpu-", &minor);
	if (!d->mig_profile[0] || !rest || strncmp(rest, "-mig-", 5) != 0 || !is_node(d, "nvidia", minor))
		return false;
	rest = skip_profile(rest + 5, d->mig_profile);
	rest = rest ? skip_number(rest, "-", &profile_id) : NULL;
	rest = rest ? skip_number(rest, "-", &placement) : NULL;
	if (!rest || *rest)
		return false;
	for (size_t i = 0; i < n; i++)
		if (i != at && strcmp(devices[i].uuid, d->uuid) == 0 &&
		    strcmp(devices[i].mig_profile, d->mig_profile) == 0)
			return false;
	return true;
}

// "gpu-MINOR" of NVIDIA's driver, "gpu-CARD-RENDER" of AMD's, and "0000-03-00-0-0x56c0" of Intel's: a PCI address.
static bool is_claimed_device(const char *name, const struct device *d)
{
	int64_t number, render;
	const char *rest = skip_number(name, "gpu-", &number);
	if (rest && !*rest)
		return is_node(d, "nvidia", number);
	if (rest) {
		rest = skip_number(rest, "-", &render);
		return rest && !*rest && is_node(d, "card", number);
	}
	char pci[] = "0000:00:00.0";
	size_t len = sizeof pci - 1;
	if (!d->pci_bus_id[0] || strnlen(name, len) < len || (name[len] && name[len] != '-'))
		return false;
	for (size_t i = 0; pci[i]; i++)
		pci[i] = pci[i] == '0' ? name[i] : name[i] == '-' ? pci[i] : 'x';
	return same_pci(pci, d->pci_bus_id);
}

static bool is_plugin_device(const char *id, const struct device *d)
{
	if (d->mig_id[0])
		return (d->mig_uuid[0] && strcasecmp(id, d->mig_uuid) == 0) || is_instance(id, d);
	return (d->uuid[0] && strcasecmp(id, d->uuid) == 0) || (d->node[0] && strcmp(id, d->node) == 0) ||
	       (d->pci_bus_id[0] && strchr(id, ':') && same_pci(id, d->pci_bus_id));
}

// Returns whether `name` is devices[at]. `devices` are all `n` devices of the node, because the name of a claimed MIG
// instance may fit several of them, and is then none of them. `is_claimed`: the name comes from a claim, so that it may
// also be one that a DRA driver publishes (pod_resources.h lists both kinds).
static bool device_name_is(const char *name, bool is_claimed, const struct device *devices, size_t n, size_t at)
{
	const struct device *d = &devices[at];
	if (is_plugin_device(name, d))
		return true;
	if (!is_claimed)
		return false;
	return d->mig_id[0] ? is_claimed_instance(name, devices, n, at) : is_claimed_device(name, d);
}

// ---- the map ----

struct entry {
	const char *id; // without the replica
	int32_t replica;
	uint64_t resource; // hash of its name; 0: through a claim, where the id is the UUID, or the DRA driver's name
	uint64_t since;    // number of the map in which the pod appeared with this device
	bool is_finished;  // another pod got the device later
	const char *namespace_, *pod, *container;
};

struct pod_map {
	struct arena arena;
	struct pod_map_options options;
	struct entry *entries; // sorted by namespace and pod
	size_t n, cap;
	uint64_t number;
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

// Finds the next field that contains bytes: returns 1 with its number and bytes, 0 at the end of the message, -1 if it
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

#define FIELDS_MAX 6 // numbers that are read

// Writes the last bytes of each field with a number below FIELDS_MAX to `ret_fields`, empty spans for the others.
// Returns -1 if the message is malformed.
static int collect(struct span message, struct span ret_fields[FIELDS_MAX])
{
	struct span bytes;
	uint32_t number;
	int rc;
	memset(ret_fields, 0, FIELDS_MAX * sizeof *ret_fields);
	while ((rc = next_field(&message, &number, &bytes)) > 0)
		if (number < FIELDS_MAX)
			ret_fields[number] = bytes;
	return rc;
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

static bool is_listed(struct span name, const struct pod_resource_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		if (equals(name, names->names[i]))
			return true;
	return false;
}

static bool is_gpu_resource(const struct pod_map *m, struct span name)
{
	return equals(name, "nvidia.com/gpu") || equals(name, "nvidia.com/gpu.shared") ||
	       begins_with(name, "nvidia.com/mig-") || equals(name, "amd.com/gpu") ||
	       begins_with(name, "gpu.intel.com/") || is_listed(name, &m->options.extra);
}

static bool is_gpu_driver(const struct pod_map *m, struct span name)
{
	return equals(name, "gpu.nvidia.com") || equals(name, "gpu.amd.com") || equals(name, "gpu.intel.com") ||
	       is_listed(name, &m->options.extra);
}

static bool read_number(const char *s, size_t len, int32_t *ret_value)
{
	int64_t v;
	if (num_parse_i64(s, len, 0, INT32_MAX, &v, NULL) < 0)
		return false;
	*ret_value = (int32_t)v;
	return true;
}

// Removes "::3", "/vgpu3", the "-3" behind a UUID (HAMi), and the "-3" of "card0-3" from an id. The last one
// is a copy of a whole card, as Intel's plugin always counts them.
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
	if ((strncmp(id, "GPU-", 4) == 0 || strncmp(id, "MIG-", 4) == 0) && strlen(id) > UUID_BYTES &&
	    id[UUID_BYTES] == '-')
		at = &id[UUID_BYTES];
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
	if (alloc_reserve(&m->entries, m->n, &m->cap, sizeof *m->entries, 64) < 0)
		return err_no_memory(e);
	m->entries[m->n++] = *entry;
	return 0;
}

// Adds a device of `owner` by its id, without the replica where a device plugin gave it.
static int add_device(struct pod_map *m, const struct entry *owner, struct span id, struct err *e)
{
	char text[POD_DEVICE_BYTES_MAX + 1];
	size_t len = (size_t)(id.end - id.p);
	struct entry entry = *owner;
	if (len > POD_DEVICE_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "a device id of %zu bytes in the reply, the ceiling is %d", len,
		               POD_DEVICE_BYTES_MAX);
	if (!is_text(id))
		return malformed(e);
	memcpy(text, id.p, len);
	text[len] = '\0';
	entry.replica = owner->resource ? cut_replica(text) : -1;
	entry.id = arena_strdup(&m->arena, text);
	if (!entry.id)
		return err_set(e, ERR_LIMIT, "the ids in the reply exceed the ceiling of %d bytes", POD_MAP_BYTES_MAX);
	return add_entry(m, &entry, e);
}

// ContainerDevices: 1 = resource name, 2 = device ids. A name may come after its ids, so two passes.
static int read_devices(struct pod_map *m, struct span devices, const struct entry *owner, struct err *e)
{
	struct span fields[FIELDS_MAX], bytes;
	uint32_t number;
	if (collect(devices, fields) < 0)
		return malformed(e);
	struct span name = fields[1];
	if (!name.p || !is_gpu_resource(m, name))
		return 0;
	struct entry of_resource = *owner;
	of_resource.resource = hash_bytes(HASH_START, name.p, (size_t)(name.end - name.p));
	while (next_field(&devices, &number, &bytes) > 0)
		if (number == 2 && bytes.p < bytes.end && add_device(m, &of_resource, bytes, e) < 0)
			return -1;
	return 0;
}

// CDIDevice: 1 = name, "VENDOR/CLASS=DEVICE". Finds the device when it is a UUID, which identifies it whatever the
// driver; else the span is empty. Returns 0, or -1 for a malformed message.
static int read_cdi_uuid(struct span cdi, struct span *ret_uuid)
{
	struct span fields[FIELDS_MAX];
	*ret_uuid = (struct span){NULL, NULL};
	int rc = collect(cdi, fields);
	struct span name = fields[1];
	const unsigned char *at = name.p ? memchr(name.p, '=', (size_t)(name.end - name.p)) : NULL;
	struct span device = {at ? at + 1 : NULL, at ? name.end : NULL};
	if (at && (begins_with(device, "GPU-") || begins_with(device, "MIG-")))
		*ret_uuid = device;
	return rc;
}

// ClaimResource: 1 = CDI devices, 2 = driver, 4 = device. The CDI names of a device follow those of the devices before
// it in the claim, so the last UUID is its own. Before Kubernetes 1.31 there is only 1, with all devices of a driver.
static int read_claim_resource(struct pod_map *m, struct span resource, const struct entry *owner, struct err *e)
{
	struct span all = resource, fields[FIELDS_MAX], bytes, uuid, last = {NULL, NULL};
	uint32_t number;
	if (collect(resource, fields) < 0)
		return malformed(e);
	struct span driver = fields[2], device = fields[4];
	while (next_field(&all, &number, &bytes) > 0) {
		if (number == 1 && read_cdi_uuid(bytes, &uuid) < 0)
			return malformed(e);
		if (number == 1 && uuid.p)
			last = uuid;
	}
	if (driver.p && device.p && device.p < device.end) {
		if (!last.p && !is_gpu_driver(m, driver))
			return 0;
		return add_device(m, owner, last.p ? last : device, e);
	}
	while (next_field(&resource, &number, &bytes) > 0)
		if (number == 1 && read_cdi_uuid(bytes, &uuid) == 0 && uuid.p && add_device(m, owner, uuid, e) < 0)
			return -1;
	return 0;
}

// DynamicResource: 2 = claim, 3 = its namespace, 4 = resources.
static int read_claim(struct pod_map *m, struct span claim, const struct entry *owner, struct err *e)
{
	struct span fields[FIELDS_MAX], bytes;
	uint32_t number;
	if (collect(claim, fields) < 0)
		return malformed(e);
	if (is_listed(fields[3], &m->options.admin_namespaces))
		return 0;
	while (next_field(&claim, &number, &bytes) > 0)
		if (number == 4 && read_claim_resource(m, bytes, owner, e) < 0)
			return -1;
	return 0;
}

// ContainerResources: 1 = name, 2 = devices, 5 = claims.
static int read_container(struct pod_map *m, struct span container, struct entry owner, struct err *e)
{
	struct span fields[FIELDS_MAX], bytes;
	uint32_t number;
	if (collect(container, fields) < 0)
		return malformed(e);
	if (!fields[2].p && !fields[5].p)
		return 0; // most containers use no device; their names are not copied
	if (copy_text(m, fields[1], POD_NAME_BYTES_MAX, &owner.container, e) < 0)
		return -1;
	while (next_field(&container, &number, &bytes) > 0) {
		if (number == 2 && read_devices(m, bytes, &owner, e) < 0)
			return -1;
		if (number == 5 && read_claim(m, bytes, &owner, e) < 0)
			return -1;
	}
	return 0;
}

// PodResources: 1 = name, 2 = namespace, 3 = containers.
static int read_pod(struct pod_map *m, struct span pod, struct err *e)
{
	struct span fields[FIELDS_MAX], bytes;
	struct entry owner = {.id = NULL};
	uint32_t number;
	if (collect(pod, fields) < 0)
		return malformed(e);
	if (copy_text(m, fields[1], POD_NAME_BYTES_MAX, &owner.pod, e) < 0 ||
	    copy_text(m, fields[2], POD_NAME_BYTES_MAX, &owner.namespace_, e) < 0)
		return -1;
	while (next_field(&pod, &number, &bytes) > 0)
		if (number == 3 && read_container(m, bytes, owner, e) < 0)
			return -1;
	return 0;
}

static int by_pod(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->namespace_, y->namespace_);
	order = order ? order : strcmp(x->pod, y->pod);
	order = order ? order : strcmp(x->container, y->container);
	order = order ? order : (x->replica > y->replica) - (x->replica < y->replica);
	return order ? order : strcmp(x->id, y->id);
}

struct pod_map *pod_map_parse(const void *message, size_t len, const struct pod_map_options *options, struct err *e)
{
	struct pod_map *m = err_calloc(sizeof *m, e);
	if (!m)
		return NULL;
	arena_init(&m->arena, POD_MAP_BYTES_MAX);
	if (options)
		m->options = *options;
	struct span all = {message, (const unsigned char *)message + len}, bytes;
	uint32_t number;
	int field, rc = 0;
	while (rc == 0 && (field = next_field(&all, &number, &bytes)) != 0) {
		if (field < 0)
			rc = malformed(e);
		else if (number == 1)
			rc = read_pod(m, bytes, e);
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

// Orders the entries of one device of one resource by their age, the youngest first.
static int by_device(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;
	int order = (x->resource > y->resource) - (x->resource < y->resource);
	order = order ? order : strcmp(x->id, y->id);
	return order ? order : (x->since < y->since) - (x->since > y->since);
}

void pod_map_follow(struct pod_map *m, const struct pod_map *old)
{
	struct entry **sorted = malloc((m->n ? m->n : 1) * sizeof(struct entry *));
	size_t n = 0; // number of devices that only one pod can use
	m->number = old ? old->number + 1 : 1;
	for (size_t i = 0; i < m->n; i++) {
		struct entry *x = &m->entries[i];
		const struct entry *before = old && old->n ? bsearch(x, old->entries, old->n, sizeof *x, by_pod) : NULL;
		x->since = before ? before->since : m->number;
		if (sorted && x->resource && x->replica < 0)
			sorted[n++] = x;
	}
	if (n > 1)
		qsort(sorted, n, sizeof *sorted, by_device);
	for (size_t i = 1; i < n; i++) {
		struct entry *x = sorted[i], *younger = sorted[i - 1];
		x->is_finished = x->resource == younger->resource && strcmp(x->id, younger->id) == 0 &&
		                 (younger->is_finished || x->since < younger->since);
	}
	free(sorted);
}

static bool is_same_pod(const struct entry *a, const struct entry *b)
{
	return strcmp(a->namespace_, b->namespace_) == 0 && strcmp(a->pod, b->pod) == 0;
}

bool pod_map_next(const struct pod_map *m, size_t *at, struct pod_holder *ret_holder)
{
	if (*at == m->n)
		return false;
	const struct entry *first = &m->entries[*at];
	*ret_holder = (struct pod_holder){.namespace_ = first->namespace_, .pod = first->pod};
	for (; *at < m->n && is_same_pod(first, &m->entries[*at]); (*at)++) {
		const struct entry *x = &m->entries[*at];
		// A sum, because the order of the devices of a container means nothing.
		ret_holder->held += hash_mix(hash_bytes(hash_text(hash_text(HASH_START, x->container), x->id),
		                                        &x->replica, sizeof x->replica));
	}
	return true;
}

size_t pod_map_find(const struct pod_map *m, const struct device *devices, size_t n_devices, size_t at,
                    struct pod_share ret_shares[POD_SHARERS_MAX])
{
	const struct entry *last = NULL;
	size_t n = 0;
	for (size_t i = 0; i < m->n; i++) {
		const struct entry *x = &m->entries[i];
		if (x->is_finished || !device_name_is(x->id, !x->resource, devices, n_devices, at))
			continue;
		bool same_pod = last && is_same_pod(last, x);
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
