// SPDX-License-Identifier: Apache-2.0
// The devices of dynamic resource allocation: what slices list, classes select and claims use.
#include <utlist.h>

#include "base/base.h"
#include "k8s/capacity/capacity_private.h"

#define NAME_BYTES     256
#define KEY_BYTES      (3 * NAME_BYTES)
#define KIND_BYTES_MAX 16384
#define SELECTORS_MAX  32 // Kubernetes: DeviceSelectorsMaxSize

static bool read_text(struct json_span s, char out[NAME_BYTES])
{
	return json_span_text(s, out, NAME_BYTES) > 0;
}

// ---- kinds ----

// Attributes that differ between devices of the same kind; a selector that uses one of them is unknown.
static bool is_individual(struct json_span key)
{
	static const char *const names[] = {"uuid",
	                                    "parentUUID",
	                                    "serial",
	                                    "index",
	                                    "minor",
	                                    "parentIndex",
	                                    "pciBusID",
	                                    "pciAddress",
	                                    "pcieRoot",
	                                    "pciRoot",
	                                    "parentMinor",
	                                    "numaNode",
	                                    "cardIndex",
	                                    "renderIndex",
	                                    "resource.kubernetes.io/pcieRoot",
	                                    "resource.kubernetes.io/pciBusID"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (json_span_is(key, names[i]))
			return true;
	}
	return false;
}

static void put_map(struct buf *b, struct json_span map, bool is_filtered)
{
	struct json_span_iter it = {.rest = map};
	const char *separator = "";
	buf_putc(b, '{');
	while (json_span_next(&it)) {
		if (is_filtered && is_individual(it.key))
			continue;
		buf_puts(b, separator);
		buf_put(b, it.key.text, it.key.len);
		buf_putc(b, ':');
		buf_put(b, it.value.text, it.value.len);
		separator = ",";
	}
	buf_putc(b, '}');
}

static const struct label *model_of(struct capacity *c, struct json_span attributes)
{
	static const char *const keys[] = {"productName", "model", "deviceName", "type"};
	char text[NAME_BYTES];
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		if (read_text(json_span_get(json_span_get(attributes, keys[i]), "string"), text))
			return label_pool_take(&c->pool, "", text);
	}
	return NULL;
}

static struct device_kind *kind_new(struct capacity *c, const struct buf *text, size_t driver_len, size_t capacity_at)
{
	struct device_kind *k = hash_table_get(&c->kinds, text->data, text->len, offsetof(struct device_kind, text));
	k->driver = k->text;
	k->attributes = (struct json_span){k->text + driver_len + 1, capacity_at - driver_len - 1};
	k->capacity = (struct json_span){k->text + capacity_at, text->len - capacity_at};
	k->model = model_of(c, k->attributes);
	return k;
}

// Returns NULL above the limits.
static struct device_kind *kind_take(struct capacity *c, const char *driver, struct json_span device)
{
	struct buf text;
	struct device_kind *k = NULL;
	buf_init(&text, KIND_BYTES_MAX);
	buf_put(&text, driver, strlen(driver) + 1);
	put_map(&text, json_span_get(device, "attributes"), true);
	size_t capacity_at = text.len;
	put_map(&text, json_span_get(device, "capacity"), false);
	if (!text.failed)
		HASH_FIND(hh, c->kinds, text.data, text.len, k);
	if (!k && !text.failed && HASH_COUNT(c->kinds) < CAPACITY_DEVICE_KINDS_MAX)
		k = kind_new(c, &text, strlen(driver), capacity_at);
	buf_done(&text);
	if (k)
		k->refs++;
	return k;
}

static void kind_release(struct capacity *c, struct device_kind *k)
{
	if (!k || --k->refs > 0)
		return;
	if (k->model)
		label_pool_release(&c->pool, k->model);
	HASH_DELETE(hh, c->kinds, k);
	free(k);
}

// ---- slices ----

static struct device_pool *pool_take(struct capacity *c, const char *driver, const char *name)
{
	char key[2 * NAME_BYTES];
	size_t driver_size = strlen(driver) + 1, size = driver_size + strlen(name) + 1;
	memcpy(key, driver, driver_size);
	memcpy(key + driver_size, name, size - driver_size);
	struct device_pool *p = hash_table_get(&c->pools, key, size, offsetof(struct device_pool, text));
	p->driver = p->text;
	p->name = p->text + driver_size;
	p->refs++;
	return p;
}

static void clear_slice(struct capacity *c, struct device_object *o)
{
	struct device_slice *s = (struct device_slice *)o;
	for (size_t i = 0; i < s->n_devices; i++) {
		kind_release(c, s->devices[i].kind);
		label_pool_release(&c->pool, s->devices[i].name);
	}
	free(s->devices);
	if (s->node) {
		s->node->slices--;
		capacity_free_node_if_unused(c, s->node);
	}
	if (s->pool && --s->pool->refs == 0) {
		HASH_DELETE(hh, c->pools, s->pool);
		free(s->pool);
	}
	*s = (struct device_slice){.object = s->object};
}

static bool is_tainted(struct json_span taints)
{
	struct json_span_iter it = {.rest = taints};
	while (json_span_next(&it)) {
		if (!json_span_is(json_span_get(it.value, "effect"), "None"))
			return true;
	}
	return false;
}

static void read_devices(struct capacity *c, struct device_slice *s, const char *driver, struct json_span devices)
{
	struct json_span_iter it = {.rest = devices};
	char name[NAME_BYTES];
	s->devices = must_alloc(calloc(CAPACITY_SLICE_DEVICES_MAX, sizeof *s->devices));
	while (s->n_devices < CAPACITY_SLICE_DEVICES_MAX && json_span_next(&it)) {
		struct slice_device *d = &s->devices[s->n_devices];
		if (!read_text(json_span_get(it.value, "name"), name))
			continue;
		d->name = label_pool_take(&c->pool, "", name);
		d->kind = kind_take(c, driver, it.value);
		d->is_tainted = is_tainted(json_span_get(it.value, "taints"));
		struct json_span counters = json_span_get(it.value, "consumesCounters");
		d->is_shared = json_span_kind(counters) == '[' ||
		               json_span_kind(json_span_get(it.value, "allowMultipleAllocations")) == 't';
		s->n_devices++;
	}
	struct slice_device *fitting = realloc(s->devices, (s->n_devices ? s->n_devices : 1) * sizeof *fitting);
	s->devices = fitting ? fitting : s->devices;
}

static bool read_slice(struct capacity *c, struct device_object *o, struct json_span spec)
{
	struct device_slice *s = (struct device_slice *)o;
	struct json_span pool = json_span_get(spec, "pool");
	char driver[NAME_BYTES], pool_name[NAME_BYTES], node[NAME_BYTES];
	if (!read_text(json_span_get(spec, "driver"), driver) || !read_text(json_span_get(pool, "name"), pool_name))
		return false;
	s->pool = pool_take(c, driver, pool_name);
	s->pool_slices = 1;
	json_span_i64(json_span_get(pool, "generation"), 0, INT64_MAX, &s->generation);
	json_span_i64(json_span_get(pool, "resourceSliceCount"), 1, INT32_MAX, &s->pool_slices);
	if (read_text(json_span_get(spec, "nodeName"), node)) {
		s->node = capacity_get_node(c, node);
		s->node->slices++;
	}
	read_devices(c, s, driver, json_span_get(spec, "devices"));
	return true;
}

struct device_slice *capacity_first_slice(const struct capacity *c)
{
	return (struct device_slice *)c->objects[CAPACITY_SLICE];
}

void capacity_devices_update(struct capacity *c)
{
	struct device_pool *p;
	const struct device_slice *s;
	for (p = c->pools; p; p = p->hh.next) {
		p->generation = -1;
		p->wanted = p->found = 0;
	}
	for (s = capacity_first_slice(c); s; s = s->object.hh.next) {
		if (s->generation > s->pool->generation) {
			s->pool->generation = s->generation;
			s->pool->wanted = s->pool_slices;
			s->pool->found = 0;
		}
		s->pool->found += s->generation == s->pool->generation;
	}
}

bool device_slice_is_current(const struct device_slice *s)
{
	return s->generation == s->pool->generation && s->pool->found == s->pool->wanted;
}

// ---- claims ----

static size_t format_key(char key[KEY_BYTES], const char *driver, const char *pool, const char *device)
{
	int n = snprintf(key, KEY_BYTES, "%s/%s/%s", driver, pool, device);
	return n > 0 && n < KEY_BYTES ? (size_t)n : 0;
}

bool device_is_allocated(const struct capacity *c, const struct device_slice *s, const struct slice_device *d)
{
	char key[KEY_BYTES];
	struct allocated_device *a = NULL;
	size_t len = format_key(key, s->pool->driver, s->pool->name, d->name->value);
	if (len)
		HASH_FIND(hh, c->allocated, key, len, a);
	return a != NULL;
}

void capacity_remove_claim(struct capacity *c, struct capacity_claim *claim)
{
	c->generation++;
	for (size_t i = 0; i < claim->n_devices; i++) {
		struct allocated_device *a = claim->devices[i];
		if (--a->refs > 0)
			continue;
		HASH_DELETE(hh, c->allocated, a);
		free(a);
	}
	if (claim->is_waiting)
		DL_DELETE(c->waiting_claims, claim);
	free(claim->devices);
	free(claim->demands);
	*claim = (struct capacity_claim){0};
}

static void hold_device(struct capacity *c, struct capacity_claim *claim, struct json_span result)
{
	char driver[NAME_BYTES], pool[NAME_BYTES], device[NAME_BYTES], key[KEY_BYTES];
	// Administrative access occupies no device.
	if (json_span_kind(json_span_get(result, "adminAccess")) == 't' ||
	    !read_text(json_span_get(result, "driver"), driver) || !read_text(json_span_get(result, "pool"), pool) ||
	    !read_text(json_span_get(result, "device"), device))
		return;
	size_t len = format_key(key, driver, pool, device);
	if (!len)
		return;
	struct allocated_device *a = hash_table_get(&c->allocated, key, len, offsetof(struct allocated_device, text));
	a->refs++;
	claim->devices[claim->n_devices++] = a;
}

// Records the devices that a claim without devices waits for. A request that cannot be read is left out.
static void wait_for_devices(struct capacity *c, struct capacity_claim *claim, struct json_span requests)
{
	struct json_span_iter it = {.rest = requests};
	char names[CAPACITY_CLAIM_RESULTS_MAX][NAME_BYTES];
	int64_t counts[CAPACITY_CLAIM_RESULTS_MAX];
	size_t n = 0, bytes = 0;
	while (n < CAPACITY_CLAIM_RESULTS_MAX && json_span_next(&it)) {
		struct json_span exactly = json_span_get(it.value, "exactly");
		counts[n] = 1;
		json_span_i64(json_span_get(exactly, "count"), 1, RESOURCE_DEVICES_MAX, &counts[n]);
		if (read_text(json_span_get(exactly, "deviceClassName"), names[n]))
			bytes += strlen(names[n++]) + 1;
	}
	claim->demands = must_alloc(calloc(1, n * sizeof *claim->demands + bytes + 1));
	char *text = (char *)(claim->demands + n);
	for (size_t i = 0; i < n; i++) {
		size_t size = strlen(names[i]) + 1;
		memcpy(text, names[i], size);
		claim->demands[i] = (struct claim_demand){text, counts[i]};
		text += size;
	}
	claim->n_demands = n;
	claim->is_waiting = true;
	DL_APPEND(c->waiting_claims, claim);
}

void capacity_set_claim(struct capacity *c, struct capacity_claim *claim, const char *json, size_t len)
{
	c->generation++;
	static const char *const results_path[] = {"devices", "results", NULL}, *const requests_path[] = {
	                                                                                "spec", "devices", "requests",
	                                                                                NULL};
	struct json_span o = {json, len}, allocation = json_span_get(json_span_get(o, "status"), "allocation");
	capacity_remove_claim(c, claim);
	if (json_span_kind(allocation) != '{') {
		wait_for_devices(c, claim, json_span_path(o, requests_path));
		return;
	}
	struct json_span_iter it = {.rest = json_span_path(allocation, results_path)};
	size_t n = 0;
	claim->devices = must_alloc(calloc(CAPACITY_CLAIM_RESULTS_MAX, sizeof(struct allocated_device *)));
	while (n++ < CAPACITY_CLAIM_RESULTS_MAX && json_span_next(&it))
		hold_device(c, claim, it.value);
	void *fitting = realloc(claim->devices, (claim->n_devices ? claim->n_devices : 1) * sizeof claim->devices[0]);
	claim->devices = fitting ? fitting : claim->devices;
}

// ---- classes ----

static void clear_class(struct capacity *c, struct device_object *o)
{
	struct device_class *d = (struct device_class *)o;
	for (size_t i = 0; i < d->n_selectors; i++)
		free(d->selectors[i]);
	free(d->selectors);
	free(d->extended_resource);
	*d = (struct device_class){.object = d->object};
}

// Returns a copy of the CEL expression of a selector; NULL: it has none, or it is too long.
static char *copy_expression(struct json_span selector)
{
	struct json_span expression = json_span_get(json_span_get(selector, "cel"), "expression");
	if (!expression.text || expression.len > 2 * DEVICE_SELECTOR_BYTES_MAX)
		return NULL;
	char *text = must_alloc(malloc(expression.len + 1));
	if (json_span_text(expression, text, expression.len + 1) > 0)
		return text;
	free(text);
	return NULL;
}

static bool read_class(struct capacity *c, struct device_object *o, struct json_span spec)
{
	struct device_class *d = (struct device_class *)o;
	struct json_span resource = json_span_get(spec, "extendedResourceName");
	struct json_span_iter it = {.rest = json_span_get(spec, "selectors")};
	char text[RESOURCE_NAME_BYTES];
	if (snprintf(text, sizeof text, RESOURCE_DEVICE_CLASS_PREFIX "%s", o->name) < (int)sizeof text)
		// Where no place is left, a template that needs it reports that.
		resource_names_add(&c->names, text, RESOURCE_OFFERED);
	d->selectors = must_alloc(calloc(SELECTORS_MAX, sizeof *d->selectors));
	while (json_span_next(&it)) {
		char *expression = d->n_selectors < SELECTORS_MAX ? copy_expression(it.value) : NULL;
		if (expression)
			d->selectors[d->n_selectors++] = expression;
		else
			d->is_unreadable = true;
	}
	if (json_span_text(resource, text, sizeof text) > 0) {
		d->extended_resource = must_alloc(strdup(text));
		resource_names_add(&c->names, text, RESOURCE_OFFERED);
	}
	return true;
}

const struct device_class *capacity_class_of(const struct capacity *c, const char *resource)
{
	const char *name = resource_device_class(resource);
	struct device_object *found;
	const struct device_class *d = (const struct device_class *)c->objects[CAPACITY_CLASS];
	if (name) {
		HASH_FIND(hh, c->objects[CAPACITY_CLASS], name, strlen(name), found);
		return (const struct device_class *)found;
	}
	while (d && !(d->extended_resource && strcmp(d->extended_resource, resource) == 0))
		d = d->object.hh.next;
	return d;
}

// ---- taint rules ----

static void clear_taint_rule(struct capacity *c, struct device_object *o)
{
	struct taint_rule *r = (struct taint_rule *)o;
	free(r->driver);
	free(r->pool);
	free(r->device);
	*r = (struct taint_rule){.object = r->object};
}

static char *copy_text(struct json_span s)
{
	char text[NAME_BYTES];
	return read_text(s, text) ? must_alloc(strdup(text)) : NULL;
}

static bool read_taint_rule(struct capacity *c, struct device_object *o, struct json_span spec)
{
	struct taint_rule *r = (struct taint_rule *)o;
	struct json_span selector = json_span_get(spec, "deviceSelector");
	// A rule without a selector selects nothing, and one with an empty selector everything.
	r->is_active = json_span_kind(selector) == '{' &&
	               !json_span_is(json_span_get(json_span_get(spec, "taint"), "effect"), "None");
	r->driver = copy_text(json_span_get(selector, "driver"));
	r->pool = copy_text(json_span_get(selector, "pool"));
	r->device = copy_text(json_span_get(selector, "device"));
	return true;
}

static bool is_any_or(const char *wanted, const char *text)
{
	return !wanted || strcmp(wanted, text) == 0;
}

bool device_is_tainted(const struct capacity *c, const struct device_slice *s, const struct slice_device *d)
{
	const struct taint_rule *r = (const struct taint_rule *)c->objects[CAPACITY_TAINT_RULE];
	for (; r && !d->is_tainted; r = r->object.hh.next) {
		if (r->is_active && is_any_or(r->driver, s->pool->driver) && is_any_or(r->pool, s->pool->name) &&
		    is_any_or(r->device, d->name->value))
			return true;
	}
	return d->is_tainted;
}

// ---- objects by name ----

static const struct {
	size_t bytes; // 0: another kind
	// Reads the object, which is cleared. Returns false when it is invalid: it is then removed.
	bool (*read)(struct capacity *c, struct device_object *o, struct json_span spec);
	void (*clear)(struct capacity *c, struct device_object *o);
} object_kinds[CAPACITY_KIND__COUNT] = {
        [CAPACITY_SLICE] = {sizeof(struct device_slice), read_slice, clear_slice},
        [CAPACITY_CLASS] = {sizeof(struct device_class), read_class, clear_class},
        [CAPACITY_TAINT_RULE] = {sizeof(struct taint_rule), read_taint_rule, clear_taint_rule},
};

static void object_free(struct capacity *c, enum capacity_kind kind, struct device_object *o)
{
	object_kinds[kind].clear(c, o);
	HASH_DELETE(hh, c->objects[kind], o);
	free(o);
}

void capacity_remove_object(struct capacity *c, enum capacity_kind kind, const char *name)
{
	struct device_object *o;
	if (kind == CAPACITY_NODE) {
		capacity_remove_node(c, name);
		return;
	}
	c->generation++;
	HASH_FIND(hh, c->objects[kind], name, strlen(name), o);
	if (o)
		object_free(c, kind, o);
}

void capacity_set_object(struct capacity *c, enum capacity_kind kind, const char *name, const char *json, size_t len)
{
	if (kind == CAPACITY_NODE) {
		capacity_set_node(c, name, json, len);
		return;
	}
	c->generation++;
	struct device_object *o = hash_table_get(&c->objects[kind], name, strlen(name), object_kinds[kind].bytes);
	o->name = o->hh.key;
	object_kinds[kind].clear(c, o);
	if (!object_kinds[kind].read(c, o, json_span_get((struct json_span){json, len}, "spec")))
		object_free(c, kind, o);
}

// ---- counting ----

int capacity_devices_demand(const struct capacity *c, int id)
{
	for (size_t i = 0; i < c->n_demands; i++) {
		if (c->demands[i].id == id)
			return (int)i;
	}
	return -1;
}

int capacity_devices_find(const struct capacity *c, const struct replica_shape *shape,
                          struct device_demand ret_demands[CAPACITY_DEMANDS_MAX], struct err *e)
{
	int n = 0;
	for (size_t i = 0; i < shape->requests.n; i++) {
		const char *name = c->names.names[shape->requests.items[i].id];
		const struct device_class *class = capacity_class_of(c, name);
		const char *class_name = resource_device_class(name);
		if (shape->requests.items[i].amount == 0 || (!class && !class_name))
			continue;
		if (!class)
			return err_set(e, ERR_UNSUPPORTED, "the cluster has no DeviceClass %s", class_name);
		if (n == CAPACITY_DEMANDS_MAX)
			return err_set(e, ERR_UNSUPPORTED, "a replica needs devices of more than %d classes",
			               CAPACITY_DEMANDS_MAX);
		ret_demands[n++] = (struct device_demand){shape->requests.items[i].id, class, shape};
	}
	return n;
}

static enum device_match match_all(const struct device_demand *d, const struct device_kind *k)
{
	const struct device_facts facts = {k->driver, k->attributes, k->capacity};
	enum device_match all = d->class->is_unreadable ? DEVICE_MATCH_UNKNOWN : DEVICE_MATCH_YES;
	for (size_t i = 0; i < d->class->n_selectors; i++) {
		enum device_match one = device_selector_match(d->class->selectors[i], &facts);
		if (one == DEVICE_MATCH_NO)
			return one;
		all = one == DEVICE_MATCH_UNKNOWN ? one : all;
	}
	for (size_t i = 0; i < d->shape->n_selectors; i++) {
		if (d->shape->selectors[i].id != d->id)
			continue;
		enum device_match one = device_selector_match(d->shape->selectors[i].expression, &facts);
		if (one == DEVICE_MATCH_NO)
			return one;
		all = one == DEVICE_MATCH_UNKNOWN ? one : all;
	}
	return all;
}

static void match_kinds(struct capacity *c)
{
	struct device_kind *k;
	for (k = c->kinds; k; k = k->hh.next) {
		for (size_t i = 0; i < c->n_demands; i++)
			k->match[i] = (unsigned char)match_all(&c->demands[i], k);
	}
}

static int count_device(struct capacity *c, const struct device_slice *s, const struct slice_device *d, struct err *e)
{
	size_t matches = 0;
	for (size_t i = 0; i < c->n_demands; i++) {
		const char *class = c->demands[i].class->object.name;
		enum device_match match = d->kind ? (enum device_match)d->kind->match[i] : DEVICE_MATCH_UNKNOWN;
		if (match == DEVICE_MATCH_NO)
			continue;
		if (match == DEVICE_MATCH_UNKNOWN)
			return err_set(
			        e, ERR_UNSUPPORTED,
			        "whether DeviceClass %s selects the devices of driver %s is unknown: its selectors "
			        "do more than compare the driver, attributes and capacities with constants",
			        class, s->pool->driver);
		if (d->is_shared)
			return err_set(
			        e, ERR_UNSUPPORTED,
			        "DeviceClass %s selects devices of driver %s that are partitions of others or can "
			        "be allocated more than once, which are not counted",
			        class, s->pool->driver);
		if (!s->node)
			return err_set(
			        e, ERR_UNSUPPORTED,
			        "DeviceClass %s selects devices of driver %s that belong to no single node, which "
			        "are not counted",
			        class, s->pool->driver);
		if (++matches > 1)
			return err_set(e, ERR_UNSUPPORTED,
			               "two requests of a replica select the same devices of driver %s",
			               s->pool->driver);
		s->node->devices[i]++;
		s->node->free_devices[i] += !device_is_tainted(c, s, d) && !device_is_allocated(c, s, d);
	}
	return 0;
}

// Claims that wait for devices of the same class get them first, each on the node with the most.
static void reserve(struct capacity *c, const struct claim_demand *demand)
{
	for (size_t i = 0; i < c->n_demands; i++) {
		struct capacity_node *n, *best = NULL;
		if (strcmp(c->demands[i].class->object.name, demand->class_name) != 0)
			continue;
		for (n = c->nodes; n; n = n->hh.next) {
			if (!best || n->free_devices[i] > best->free_devices[i])
				best = n;
		}
		if (best && best->free_devices[i] >= demand->count)
			best->free_devices[i] -= (int32_t)demand->count;
	}
}

int capacity_devices_count(struct capacity *c, const struct replica_shape *shape, struct err *e)
{
	struct capacity_node *n;
	const struct device_slice *s;
	const struct capacity_claim *claim;
	int n_demands = capacity_devices_find(c, shape, c->demands, e);
	c->n_demands = n_demands > 0 ? (size_t)n_demands : 0;
	if (n_demands < 0)
		return -1;
	for (n = c->nodes; n; n = n->hh.next) {
		memset(n->devices, 0, sizeof n->devices);
		memset(n->free_devices, 0, sizeof n->free_devices);
	}
	if (c->n_demands == 0)
		return 0;
	match_kinds(c);
	capacity_devices_update(c);
	for (s = capacity_first_slice(c); s; s = s->object.hh.next) {
		for (size_t i = 0; i < s->n_devices && device_slice_is_current(s); i++) {
			if (count_device(c, s, &s->devices[i], e) < 0)
				return -1;
		}
	}
	for (claim = c->waiting_claims; claim; claim = claim->next) {
		for (size_t i = 0; i < claim->n_demands; i++)
			reserve(c, &claim->demands[i]);
	}
	return 0;
}

void capacity_devices_done(struct capacity *c)
{
	assert(!c->waiting_claims && !c->allocated);
	for (int kind = 0; kind < CAPACITY_KIND__COUNT; kind++) {
		while (c->objects[kind])
			object_free(c, (enum capacity_kind)kind, c->objects[kind]);
	}
}
