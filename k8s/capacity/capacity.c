// SPDX-License-Identifier: Apache-2.0
#include "k8s/capacity/capacity.h"

#include <utlist.h>

#include "base/base.h"
#include "base/hash.h"
#include "k8s/cache/pod_decode.h"
#include "k8s/capacity/capacity_private.h"
#include "k8s/capacity/pod_requests.h"
#include "k8s/client/accelerators.h"

#define LABEL_KEY_BYTES   NODE_RULE_TEXT_BYTES
#define LABEL_VALUE_BYTES 256
#define SINCE_BYTES       64

struct capacity *capacity_new(struct err *e)
{
	struct capacity *c = calloc(1, sizeof *c);
	if (c && resource_names_init(&c->names) == 0)
		return c;
	capacity_free(c);
	err_no_memory(e);
	return NULL;
}

// ---- nodes ----

static struct capacity_node *find_node(const struct capacity *c, const char *name)
{
	struct capacity_node *n;
	HASH_FIND_STR(c->nodes, name, n);
	return n;
}

struct capacity_node *capacity_get_node(struct capacity *c, const char *name)
{
	unsigned before = HASH_COUNT(c->nodes);
	struct capacity_node *n = hash_table_get(&c->nodes, name, strlen(name), offsetof(struct capacity_node, name));
	if (HASH_COUNT(c->nodes) > before)
		n->slot = capacity_take_slot(c);
	return n;
}

struct capacity_resource *capacity_node_resource(const struct capacity_node *n, int id)
{
	for (size_t i = 0; i < n->n_resources; i++) {
		if (n->resources[i].id == id)
			return &n->resources[i];
	}
	return NULL;
}

static struct capacity_resource *get_resource(struct capacity_node *n, uint8_t id)
{
	_Static_assert(RESOURCE_NAMES_MAX <= UINT8_MAX, "n_resources counts every name");
	struct capacity_resource *r = capacity_node_resource(n, id);
	if (r)
		return r;
	n->resources = must_alloc(realloc(n->resources, (n->n_resources + 1U) * sizeof *r));
	r = &n->resources[n->n_resources++];
	*r = (struct capacity_resource){.id = id};
	return r;
}

// Forgets what the Node object stated; the use by pods stays.
static void clear_node(struct capacity *c, struct capacity_node *n)
{
	capacity_forget_verdicts(c, n->slot);
	for (size_t i = 0; i < n->n_labels; i++)
		label_pool_release(&c->pool, n->labels[i]);
	for (size_t i = 0; i < n->n_taints; i++)
		label_pool_release(&c->pool, n->taints[i].label);
	for (size_t i = 0; i < n->n_resources; i++)
		n->resources[i].allocatable = 0;
	free(n->labels);
	free(n->taints);
	n->labels = NULL;
	n->taints = NULL;
	n->n_labels = n->n_taints = n->faults = 0;
	n->failing_gpus = 0;
	n->is_known = n->is_ready = n->is_unschedulable = false;
}

void capacity_free_node_if_unused(struct capacity *c, struct capacity_node *n)
{
	if (n->is_known || n->pods > 0 || n->slices > 0)
		return;
	clear_node(c, n);
	capacity_release_slot(c, n->slot);
	free(n->resources);
	HASH_DELETE(hh, c->nodes, n);
	free(n);
}

static void read_labels(struct capacity *c, struct capacity_node *n, struct json_span labels)
{
	struct json_span_iter it = {.rest = labels};
	const struct label *list[CAPACITY_NODE_LABELS_MAX];
	while (json_span_next(&it)) {
		char key[LABEL_KEY_BYTES], value[LABEL_VALUE_BYTES];
		const struct label *label = NULL;
		if (n->n_labels == CAPACITY_NODE_LABELS_MAX) {
			n->faults |= RESOURCE_FAULT_TOO_MANY;
			break;
		}
		if (json_span_text(it.key, key, sizeof key) > 0 && json_span_text(it.value, value, sizeof value) >= 0)
			label = label_pool_take(&c->pool, key, value);
		if (label)
			list[n->n_labels++] = label;
	}
	label_pool_sort(list, n->n_labels);
	n->labels = must_alloc(malloc((n->n_labels ? n->n_labels : 1) * sizeof *n->labels));
	memcpy(n->labels, list, n->n_labels * sizeof *n->labels);
}

// A taint that cannot be read keeps every pod away.
static void read_taints(struct capacity *c, struct capacity_node *n, struct json_span taints)
{
	struct json_span_iter it = {.rest = taints};
	size_t room = json_span_count(taints);
	if (room > CAPACITY_NODE_TAINTS_MAX) {
		room = CAPACITY_NODE_TAINTS_MAX;
		n->faults |= RESOURCE_FAULT_TOO_MANY;
	}
	n->taints = must_alloc(malloc((room ? room : 1) * sizeof *n->taints));
	while (n->n_taints < room && json_span_next(&it)) {
		char key[LABEL_KEY_BYTES] = "", value[LABEL_VALUE_BYTES] = "";
		struct json_span has_value = json_span_get(it.value, "value");
		enum taint_effect effect = taint_effect_read(json_span_get(it.value, "effect"));
		json_span_text(json_span_get(it.value, "key"), key, sizeof key);
		if (has_value.text)
			json_span_text(has_value, value, sizeof value);
		const struct label *label = label_pool_take(&c->pool, key, value);
		assert(label); // the buffers are smaller than the limit
		n->taints[n->n_taints++] =
		        (struct node_taint){label, effect == TAINT_EFFECT__COUNT ? TAINT_NO_SCHEDULE : effect};
	}
}

// Returns how many GPUs of a node are out of service. The record of gpuscale remediate lists the node itself, then its
// GPUs, each with the time at which it was taken out, or -1. The record counts whether the agent uses taints, cordons
// or DeviceTaintRules. A taint that the record does not explain counts for the whole node.
static int32_t read_failing(struct json_span annotations, struct json_span taints)
{
	struct json_span text = json_span_get(annotations, CAPACITY_REMEDY_ANNOTATION);
	int32_t all = json_span_find(taints, "key", CAPACITY_FAILING_TAINT).text ? CAPACITY_FAILING_ALL : 0, n = 0;
	if (text.len == 0)
		return all;
	char *record = must_alloc(malloc(text.len + 1));
	int len = json_span_text(text, record, text.len + 1);
	struct json_span o = {record, len > 0 ? (size_t)len : 0};
	struct json_span_iter it = {.rest = json_span_get(json_span_is_whole(o) ? o : (struct json_span){0}, "gpus")};
	for (bool is_node = true; n < CAPACITY_FAILING_ALL && json_span_next(&it); is_node = false) {
		struct json_span out = json_span_get(it.value, "out");
		bool is_out = json_span_kind(out) == '0' && out.text[0] != '-';
		n = is_out && is_node ? CAPACITY_FAILING_ALL : n + is_out;
	}
	free(record);
	return n > 0 ? n : all;
}

static bool is_ready(struct json_span conditions)
{
	return json_span_is(json_span_get(json_span_find(conditions, "type", "Ready"), "status"), "True");
}

static void read_allocatable(struct capacity *c, struct capacity_node *n, struct json_span allocatable)
{
	struct resource_vector v = {.n = 0};
	n->faults |= (uint8_t)resource_vector_read(&c->names, RESOURCE_OFFERED, allocatable, &v);
	for (size_t i = 0; i < v.n; i++)
		get_resource(n, v.items[i].id)->allocatable = v.items[i].amount;
}

// The fields read from a Node: everything else in it, such as its heartbeats, has no effect.
static uint64_t hash_node(struct json_span labels, int32_t failing_gpus, struct json_span spec, struct json_span status)
{
	uint64_t h = hash_bytes(hash_bytes(HASH_START, labels.text, labels.len), &failing_gpus, sizeof failing_gpus);
	struct json_span allocatable = json_span_get(status, "allocatable");
	bool ready = is_ready(json_span_get(status, "conditions"));
	h = hash_bytes(hash_bytes(h, spec.text, spec.len), allocatable.text, allocatable.len);
	return hash_bytes(h, &ready, sizeof ready);
}

void capacity_set_node(struct capacity *c, const char *name, const char *json, size_t len)
{
	struct capacity_node *n = capacity_get_node(c, name);
	struct json_span o = {json, len}, spec = json_span_get(o, "spec"), status = json_span_get(o, "status");
	struct json_span metadata = json_span_get(o, "metadata"), labels = json_span_get(metadata, "labels");
	int32_t failing_gpus = read_failing(json_span_get(metadata, "annotations"), json_span_get(spec, "taints"));
	uint64_t hash = hash_node(labels, failing_gpus, spec, status);
	if (n->is_known && n->hash == hash)
		return;
	c->generation++;
	clear_node(c, n);
	n->hash = hash;
	n->is_known = true;
	read_labels(c, n, labels);
	read_taints(c, n, json_span_get(spec, "taints"));
	n->failing_gpus = failing_gpus;
	n->is_unschedulable = json_span_kind(json_span_get(spec, "unschedulable")) == 't';
	n->is_ready = is_ready(json_span_get(status, "conditions"));
	read_allocatable(c, n, json_span_get(status, "allocatable"));
}

void capacity_remove_node(struct capacity *c, const char *name)
{
	struct capacity_node *n = find_node(c, name);
	if (!n)
		return;
	c->generation++;
	clear_node(c, n);
	capacity_free_node_if_unused(c, n);
}

// ---- pods ----

static void hold(const struct capacity_pod *pod, int64_t sign)
{
	for (size_t i = 0; i < pod->n_requests; i++) {
		const struct resource_amount *a = &pod->requests[i];
		get_resource(pod->node, a->id)->used += sign * a->amount;
	}
	pod->node->pods += (int32_t)sign;
}

static void free_space_if_unused(struct capacity *c, struct waiting_space *s)
{
	if (s->pods > 0)
		return;
	HASH_DELETE(hh, c->waiting_spaces, s);
	free(s);
}

static void account_waiting(struct capacity *c, const struct capacity_waiting *w, int sign)
{
	size_t by = (size_t)sign;
	c->n_waiting += by;
	c->waiting_bytes += by * w->bytes;
	w->space->pods += by;
	w->space->bytes += by * w->bytes;
	free_space_if_unused(c, w->space);
}

static bool has_room_for_waiting(const struct capacity *c, const struct waiting_space *s, size_t bytes)
{
	return c->n_waiting < CAPACITY_WAITING_MAX && c->waiting_bytes + bytes <= CAPACITY_WAITING_BYTES_MAX &&
	       s->pods < CAPACITY_WAITING_OF_NAMESPACE && s->bytes + bytes <= CAPACITY_WAITING_BYTES_NAMESPACE;
}

static void free_waiting(struct capacity_waiting *w)
{
	replica_shape_done(&w->shape);
	free(w->labels);
	free(w);
}

static void stop_waiting(struct capacity *c, struct capacity_pod *pod)
{
	struct capacity_waiting *w = pod->waiting;
	if (!pod->is_waiting)
		return;
	pod->is_waiting = false;
	pod->waiting = NULL;
	if (!w) {
		c->n_left_out--;
		return;
	}
	c->pods_rules -= !w->has_shape;
	if (c->plan.next == w)
		c->plan.next = w->next;
	DL_DELETE(c->waiting, w);
	account_waiting(c, w, -1);
	free_waiting(w);
}

static void count_faults(struct capacity *c, int faults, size_t by)
{
	if (faults & RESOURCE_FAULT_TOO_MANY)
		c->pods_too_many += by;
	if (faults & ~RESOURCE_FAULT_TOO_MANY)
		c->pods_amount += by;
}

void capacity_remove_pod(struct capacity *c, struct capacity_pod *pod)
{
	struct capacity_node *n = pod->node;
	c->generation += n != NULL || pod->is_waiting;
	stop_waiting(c, pod);
	count_faults(c, pod->faults, (size_t)-1);
	if (n) {
		hold(pod, -1);
		pod->node = NULL;
		capacity_free_node_if_unused(c, n);
	}
	resource_names_release(&c->names, pod->requests, pod->n_requests);
	free(pod->requests);
	*pod = (struct capacity_pod){0};
}

static void read_message(struct capacity_waiting *w, struct json_span conditions)
{
	struct json_span scheduled = json_span_find(conditions, "type", "PodScheduled");
	w->is_unschedulable = json_span_is(json_span_get(scheduled, "reason"), "Unschedulable");
	char since[SINCE_BYTES];
	int len_since = json_span_text(json_span_get(scheduled, "lastTransitionTime"), since, sizeof since);
	if (len_since > 0 && num_parse_rfc3339_ms(since, (size_t)len_since, &w->since_ms, NULL) < 0)
		w->since_ms = 0;
	struct json_span message = json_span_get(scheduled, "message");
	// A text that is too long is cut after its first sentence, which has the counts.
	char *text = must_alloc(malloc(message.len + 1));
	if (json_span_text(message, text, message.len + 1) > 0) {
		size_t len = strlen(text);
		if (len >= sizeof w->message)
			len = sizeof w->message - 1;
		while (len > 0 && ((unsigned char)text[len] & 0xC0U) == 0x80U)
			len--; // not within a character
		memcpy(w->message, text, len);
		w->message[len] = '\0';
	}
	free(text);
}

// Returns whether scheduling gates keep the scheduler away from the pod. What Kubernetes reports does not name them.
static bool read_gate(struct capacity_waiting *w, struct json_span gates)
{
	struct json_span_iter it = {.rest = gates};
	char name[LABEL_KEY_BYTES];
	if (!json_span_next(&it))
		return false;
	if (json_span_text(json_span_get(it.value, "name"), name, sizeof name) < 0)
		name[0] = '\0';
	snprintf(w->message, sizeof w->message, "waiting for scheduling gate %s", name);
	return true;
}

static struct capacity_waiting *read_waiting(struct capacity *c, const char *namespace_name, const char *name,
                                             struct json_span o)
{
	size_t space_size = strlen(namespace_name) + 1, name_size = strlen(name) + 1, labels_bytes;
	struct capacity_waiting *w = must_alloc(calloc(1, sizeof *w + space_size + name_size));
	memcpy(w->text, namespace_name, space_size);
	memcpy(w->text + space_size, name, name_size);
	w->namespace_name = w->text;
	w->name = w->text + space_size;
	if (pod_decode_labels(o.text, o.len, &w->labels, &w->n_labels, &labels_bytes) < 0)
		abort(); // base/alloc.h
	w->has_shape =
	        replica_shape_read(&w->shape, &c->names, RESOURCE_REQUESTED, json_span_get(o, "spec"), NULL) == 0;
	if (!w->has_shape)
		replica_shape_done(&w->shape); // nothing of it is used
	w->bytes = sizeof *w + space_size + name_size + labels_bytes + w->shape.arena.held_bytes;
	return w;
}

static void start_waiting(struct capacity *c, struct capacity_pod *pod, const char *namespace_name, const char *name,
                          struct json_span o, int64_t now_ms)
{
	struct waiting_space *space = hash_table_get(&c->waiting_spaces, namespace_name, strlen(namespace_name),
	                                             offsetof(struct waiting_space, name));
	struct capacity_waiting *w = NULL;
	pod->is_waiting = true;
	if (has_room_for_waiting(c, space, 0))
		w = read_waiting(c, namespace_name, name, o);
	if (!w || !has_room_for_waiting(c, space, w->bytes)) {
		if (w)
			free_waiting(w);
		free_space_if_unused(c, space);
		c->n_left_out++;
		return;
	}
	w->space = space;
	c->pods_rules += !w->has_shape;
	w->is_gated = read_gate(w, json_span_get(json_span_get(o, "spec"), "schedulingGates"));
	if (!w->is_gated)
		read_message(w, json_span_get(json_span_get(o, "status"), "conditions"));
	if (pod->is_gated && !w->is_gated)
		pod->ungated_ms = now_ms;
	pod->is_gated = w->is_gated;
	if (w->since_ms < pod->ungated_ms)
		w->since_ms = pod->ungated_ms;
	DL_APPEND(c->waiting, w);
	account_waiting(c, w, 1);
	pod->waiting = w;
}

static bool has_finished(struct json_span status)
{
	struct json_span phase = json_span_get(status, "phase");
	return json_span_is(phase, "Succeeded") || json_span_is(phase, "Failed");
}

static void set_requests(struct capacity_pod *pod, const struct resource_vector *v)
{
	if (pod->n_requests != v->n || !pod->requests)
		pod->requests = must_alloc(realloc(pod->requests, (v->n ? v->n : 1) * sizeof *v->items));
	pod->n_requests = (uint8_t)v->n;
	memcpy(pod->requests, v->items, v->n * sizeof *v->items);
}

static bool has_requests(const struct capacity_pod *pod, const struct resource_vector *v)
{
	bool is_same = pod->n_requests == v->n;
	for (size_t i = 0; is_same && i < v->n; i++)
		is_same = pod->requests[i].id == v->items[i].id && pod->requests[i].amount == v->items[i].amount;
	return is_same;
}

bool capacity_set_pod(struct capacity *c, struct capacity_pod *pod, const char *namespace_name, const char *name,
                      const char *json, size_t len, int64_t now_ms)
{
	static const char *const names[] = {"spec", "status"};
	struct json_span o = {json, len}, members[2];
	struct pod_spec spec;
	struct resource_vector requests;
	char node_name[TARGET_NAME_BYTES] = "";
	json_span_members(o, names, members, 2);
	if (json_span_kind(members[0]) != '{' || has_finished(members[1])) {
		capacity_remove_pod(c, pod);
		return false;
	}
	pod_spec_read(members[0], &spec);
	json_span_text(spec.node_name, node_name, sizeof node_name);
	int faults = pod_requests_read(&c->names, RESOURCE_REQUESTED, &spec, &requests);
	resource_names_hold(&c->names, requests.items, requests.n);

	struct capacity_node *before = pod->node, *node = node_name[0] ? capacity_get_node(c, node_name) : NULL;
	c->generation += !node || node != before || !has_requests(pod, &requests);
	stop_waiting(c, pod);
	count_faults(c, pod->faults, (size_t)-1);
	if (before)
		hold(pod, -1);
	resource_names_release(&c->names, pod->requests, pod->n_requests);
	set_requests(pod, &requests);
	pod->faults = (uint8_t)faults;
	pod->node = node;
	count_faults(c, faults, 1);
	if (node)
		hold(pod, 1);
	else
		start_waiting(c, pod, namespace_name, name, o, now_ms);
	if (before && before != node)
		capacity_free_node_if_unused(c, before);
	return true;
}

void capacity_free(struct capacity *c)
{
	struct capacity_node *n, *next;
	if (!c)
		return;
	assert(c->n_waiting == 0 && c->n_left_out == 0);
	capacity_devices_done(c);
	HASH_ITER(hh, c->nodes, n, next)
	{
		n->is_known = false;
		assert(n->pods == 0);
		capacity_free_node_if_unused(c, n);
	}
	capacity_rules_done(c);
	resource_names_done(&c->names);
	free(c);
}

// ---- faults ----

const struct capacity_fault_info capacity_fault_table[] = {
        // clang-format off
	[CAPACITY_FAULT_NODE_NEGATIVE]      = {"nodeAmountNegative", "Nodes with a negative amount of a resource, which counts as 0"},
	[CAPACITY_FAULT_NODE_HUGE]          = {"nodeAmountHuge", "Nodes with an impossibly large amount of a resource, which counts as 0"},
	[CAPACITY_FAULT_NODE_UNREADABLE]    = {"nodeAmountUnreadable", "Nodes with an amount that is not a quantity, which counts as 0"},
	[CAPACITY_FAULT_NODE_TOO_MANY]      = {"nodeTooMany", "Nodes with more resources, labels or taints than are read; the rest is left out"},
	[CAPACITY_FAULT_NODE_WITHOUT_MODEL] = {"nodeWithoutModel", "Nodes with GPUs and no label that names their model, counted as <unknown>"},
	[CAPACITY_FAULT_NODE_OVERCOMMITTED] = {"nodeOvercommitted", "Nodes with fewer GPUs than their pods request, as when a device failed; none of them counts as free"},
	[CAPACITY_FAULT_POD_AMOUNT]         = {"podAmount", "Pods that request an amount that is negative, too large or not a quantity, which counts as 0"},
	[CAPACITY_FAULT_POD_TOO_MANY]       = {"podTooMany", "Pods with more containers or resources than are read; the rest is left out"},
	[CAPACITY_FAULT_POD_RULES]          = {"podRules", "Pods without a node whose rules cannot be read; no room is reserved for them"},
	[CAPACITY_FAULT_POD_LEFT_OUT]       = {"podLeftOut", "Pods without a node beyond those that are read; no room is reserved for them"},
	[CAPACITY_FAULT_NODE_MISSING]       = {"nodeMissing", "Nodes that have pods but no Node object, as after a node was deleted"},
	[CAPACITY_FAULT_POOL_INCOMPLETE]    = {"poolIncomplete", "Pools of devices of which not all ResourceSlices exist yet; none of them counts"},
	[CAPACITY_FAULT_DEVICE_SHARED]      = {"deviceShared", "Devices that are partitions of others or can be allocated more than once, which are not counted"},
        // clang-format on
};
_Static_assert(sizeof capacity_fault_table / sizeof capacity_fault_table[0] == CAPACITY_FAULT__COUNT, "all faults");

static void add_fault(struct capacity_faults *f, enum capacity_fault fault, const struct capacity_node *n, bool is_it)
{
	if (!is_it)
		return;
	f->of[fault]++;
	if (!f->example[fault])
		f->example[fault] = n->name;
}

static void add_faults_of_gpus(const struct capacity *c, const struct capacity_node *n, struct capacity_faults *f)
{
	bool has_gpus = false, is_overcommitted = false;
	for (size_t i = 0; i < n->n_resources; i++) {
		const struct capacity_resource *r = &n->resources[i];
		if (!resource_is_accelerator(c->names.names[r->id]))
			continue;
		bool is_backed = r->allocatable == 0 && capacity_class_of(c, c->names.names[r->id]);
		has_gpus |= r->allocatable > 0;
		is_overcommitted |= r->used > r->allocatable && !is_backed;
	}
	add_fault(f, CAPACITY_FAULT_NODE_WITHOUT_MODEL, n, has_gpus && !gpu_label_model(n->labels, n->n_labels));
	add_fault(f, CAPACITY_FAULT_NODE_OVERCOMMITTED, n, is_overcommitted);
}

static void add_faults_of_devices(const struct capacity *c, struct capacity_faults *f)
{
	const struct device_slice *s;
	const struct device_pool *p;
	for (p = c->pools; p; p = p->hh.next)
		f->of[CAPACITY_FAULT_POOL_INCOMPLETE] += p->found != p->wanted;
	for (s = capacity_first_slice(c); s; s = s->object.hh.next) {
		for (size_t i = 0; i < s->n_devices; i++)
			f->of[CAPACITY_FAULT_DEVICE_SHARED] += s->devices[i].is_shared;
	}
}

void capacity_get_faults(struct capacity *c, struct capacity_faults *ret_faults)
{
	struct capacity_faults *f = ret_faults;
	const struct capacity_node *n;
	*f = (struct capacity_faults){0};
	capacity_devices_update(c);
	for (n = c->nodes; n; n = n->hh.next) {
		add_fault(f, CAPACITY_FAULT_NODE_MISSING, n, !n->is_known && n->pods > 0);
		if (!n->is_known)
			continue;
		add_fault(f, CAPACITY_FAULT_NODE_NEGATIVE, n, n->faults & RESOURCE_FAULT_NEGATIVE);
		add_fault(f, CAPACITY_FAULT_NODE_HUGE, n, n->faults & RESOURCE_FAULT_HUGE);
		add_fault(f, CAPACITY_FAULT_NODE_UNREADABLE, n, n->faults & RESOURCE_FAULT_UNREADABLE);
		add_fault(f, CAPACITY_FAULT_NODE_TOO_MANY, n, n->faults & RESOURCE_FAULT_TOO_MANY);
		add_faults_of_gpus(c, n, f);
	}
	add_faults_of_devices(c, f);
	f->of[CAPACITY_FAULT_POD_AMOUNT] = c->pods_amount;
	f->of[CAPACITY_FAULT_POD_TOO_MANY] = c->pods_too_many;
	f->of[CAPACITY_FAULT_POD_RULES] = c->pods_rules;
	f->of[CAPACITY_FAULT_POD_LEFT_OUT] = c->n_left_out;
}
