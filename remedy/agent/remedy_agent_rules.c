// SPDX-License-Identifier: Apache-2.0
// DeviceTaintRules of the remediation agent. The annotation of a node records first that the taint of a GPU changes;
// then the agent creates or deletes the rule until the watch shows the change. Both requests have the same effect
// however often they are sent, so a process that exits between them leaves nothing that the next one does not complete.
//
// The agent knows which device of a ResourceSlice a GPU is, and which of its rules exist. Two watches keep both up to
// date.
#include <inttypes.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/json/json_span.h"
#include "base/json/json_write.h"
#include "k8s/client/k8s_client.h"
#include "remedy/agent/remedy_agent_private.h"
#include "remedy/plan/remedy_state.h"
#include "remedy/remedy_record.h"

#define SLICE_GROUP      "/apis/resource.k8s.io/v1"
#define RULE_GROUP       "/apis/resource.k8s.io/v1beta2"
#define RULE_KIND        "DeviceTaintRule"
#define OWNER_LABEL      "app.kubernetes.io/managed-by"
#define OWNER            "gpuscale-remediate"
#define NODE_KEY         "gpuscale.dev/node"
#define GPU_KEY          "gpuscale.dev/gpu"
#define TEXT_BYTES       256
#define NAME_BYTES       128
#define RULES_PATH       RULE_GROUP "/devicetaintrules"
#define RULE_BYTES_MAX   4096
#define DEVICES_MAX      128 // devices of a slice: the limit of the API
#define RECORD_BYTES_MAX ((DEVICES_MAX + 2) * 4 * TEXT_BYTES)

enum watched { SLICES, RULES, WATCHED__COUNT };

struct device {
	struct device *next;
	const char *name, *uuid, *parent; // parent: of a part of a GPU; NULL = none
};

// A slice with devices that have a UUID, or a rule of the agent.
struct record {
	struct informer_item item;
	struct arena text;            // memory of the rest
	const char *node, *gpu, *uid; // texts of a rule; a slice has only the node
	const char *driver, *pool;    // texts of a slice
	struct device *devices;       // likewise
};
_Static_assert(offsetof(struct record, item) == 0, "an item is its record");

struct device_rules {
	struct remedy_agent *agent;
	struct device_watch {
		struct device_rules *of;
		struct informer *informer;
		struct informer_item all; // all objects
		bool is_broken;
	} watches[WATCHED__COUNT];
};

static void record_free(struct record *r)
{
	informer_remove(&r->item);
	arena_done(&r->text);
	free(r);
}

static struct record *record_new(struct device_watch *w, const char *name)
{
	struct record *r = informer_keep(w->informer, sizeof *r, "", name);
	arena_init(&r->text, RECORD_BYTES_MAX);
	return r;
}

static const char *copy_of(struct record *r, struct json_span s)
{
	char text[TEXT_BYTES];
	return json_span_text(s, text, sizeof text) > 0 ? must_alloc(arena_strdup(&r->text, text)) : NULL;
}

// ---- slices ----

// An attribute of the driver, with or without its domain.
static struct json_span attribute(struct json_span device, const char *driver, const char *name)
{
	char full[TEXT_BYTES + 32];
	struct json_span all = json_span_get(device, "attributes"), found = json_span_get(all, name);
	snprintf(full, sizeof full, "%s/%s", driver, name);
	return json_span_get(found.text ? found : json_span_get(all, full), "string");
}

static void read_slice(struct record *r, struct json_span root)
{
	struct json_span spec = json_span_get(root, "spec");
	struct json_span_iter it = {.rest = json_span_get(spec, "devices")};
	r->node = copy_of(r, json_span_get(spec, "nodeName"));
	r->driver = copy_of(r, json_span_get(spec, "driver"));
	r->pool = copy_of(r, json_span_get(json_span_get(spec, "pool"), "name"));
	r->devices = NULL;
	if (!r->node || !r->driver || !r->pool)
		return;
	for (int n = 0; n < DEVICES_MAX && json_span_next(&it);) {
		const char *uuid = copy_of(r, attribute(it.value, r->driver, "uuid"));
		if (!uuid)
			continue;
		struct device *d = must_alloc(arena_alloc(&r->text, sizeof *d));
		*d = (struct device){.next = r->devices,
		                     .name = copy_of(r, json_span_get(it.value, "name")),
		                     .uuid = uuid,
		                     .parent = copy_of(r, attribute(it.value, r->driver, "parentUUID"))};
		r->devices = d;
		n++;
	}
}

// ---- rules ----

static void read_rule(struct record *r, struct json_span root)
{
	struct json_span metadata = json_span_get(root, "metadata"), notes = json_span_get(metadata, "annotations");
	r->uid = copy_of(r, json_span_get(metadata, "uid"));
	r->node = copy_of(r, json_span_get(notes, NODE_KEY));
	r->gpu = copy_of(r, json_span_get(notes, GPU_KEY));
}

// ---- watches ----

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	struct device_watch *w = arg;
	bool is_slice = w == &w->of->watches[SLICES];
	struct record *r = item ? (struct record *)item : record_new(w, name);
	arena_reset(&r->text);
	(is_slice ? read_slice : read_rule)(r, (struct json_span){json, len});
	if (is_slice && !r->devices)
		record_free(r); // slice with another kind of device
}

static void on_absent(void *arg, struct informer_item *item)
{
	record_free((struct record *)item);
}

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct device_watch *w = arg;
	struct device_rules *d = w->of;
	w->is_broken = error != NULL;
	if (error || !(d->watches[SLICES].is_broken || d->watches[RULES].is_broken))
		agent_report_edge(d->agent, &d->agent->is_device_watch_broken,
		                  "Cannot watch devices; not tainting single GPUs", "Watch of devices recovered",
		                  error);
}

static int open_watch(struct device_rules *d, enum watched which, struct err *e)
{
	struct device_watch *w = &d->watches[which];
	*w = (struct device_watch){.of = d};
	w->informer = informer_new(
	        &(struct informer_options){.client = d->agent->k8s,
	                                   .group_path = which == SLICES ? SLICE_GROUP : RULE_GROUP,
	                                   .plural = which == SLICES ? "resourceslices" : "devicetaintrules",
	                                   .label_selector = which == SLICES ? NULL : OWNER_LABEL "=" OWNER,
	                                   .is_cluster_scoped = true,
	                                   .callbacks = {on_object, on_absent, NULL, NULL, on_error},
	                                   .arg = w},
	        e);
	return w->informer ? informer_put(w->informer, &w->all, "/", NULL, e) : -1;
}

int agent_rules_open(struct remedy_agent *a, struct err *e)
{
	struct device_rules *d = a->devices = must_alloc(calloc(1, sizeof *d));
	d->agent = a;
	return open_watch(d, SLICES, e) < 0 ? -1 : open_watch(d, RULES, e);
}

void agent_rules_close(struct remedy_agent *a)
{
	struct device_rules *d = a->devices;
	a->devices = NULL;
	for (int k = 0; d && k < WATCHED__COUNT; k++) {
		struct device_watch *w = &d->watches[k];
		for (struct informer_item *i; w->informer && (i = informer_list(w->informer));)
			record_free((struct record *)i);
		informer_remove(&w->all);
		informer_free(w->informer);
	}
	free(d);
}

static bool is_synced(const struct device_watch *w)
{
	return informer_get_state(w->informer, &w->all).unsynced == 0;
}

// Whether the slices and the rules are known.
static bool are_known(const struct remedy_agent *a)
{
	return a->devices && is_synced(&a->devices->watches[SLICES]) && is_synced(&a->devices->watches[RULES]);
}

bool agent_rules_are_ready(const struct remedy_agent *a)
{
	for (int k = 0; a->devices && k < WATCHED__COUNT; k++)
		if (!a->devices->watches[k].is_broken && !is_synced(&a->devices->watches[k]))
			return false;
	return true;
}

// ---- questions ----

static const struct record *next_of(const struct device_rules *d, enum watched which, const struct record *r)
{
	return r ? r->item.hh.next : (struct record *)informer_list(d->watches[which].informer);
}

// The slice with the GPU, when the GPU is exactly one device.
static const struct record *slice_of(const struct device_rules *d, const char *node, const char *gpu,
                                     const char **ret_device)
{
	const struct record *found = NULL;
	int n = 0;
	for (const struct record *r = NULL; (r = next_of(d, SLICES, r));) {
		const struct device *one = strcmp(r->node, node) == 0 ? r->devices : NULL;
		for (; one; one = one->next) {
			if (one->parent && strcmp(one->parent, gpu) == 0)
				return NULL;
			if (strcmp(one->uuid, gpu) != 0 || !one->name)
				continue;
			found = r;
			*ret_device = one->name;
			n++;
		}
	}
	return n == 1 ? found : NULL;
}

// The next rule of the agent after `r`, which NULL starts; NULL at the end.
static const struct record *next_rule(const struct device_rules *d, const struct record *r)
{
	do
		r = next_of(d, RULES, r);
	while (r && (!r->node || !r->gpu || !r->uid));
	return r;
}

static bool has_rule(const struct device_rules *d, const char *node, const char *gpu)
{
	for (const struct record *r = NULL; (r = next_rule(d, r));)
		if (strcmp(r->node, node) == 0 && strcmp(r->gpu, gpu) == 0)
			return true;
	return false;
}

void agent_rules_note_devices(struct remedy_agent *a)
{
	for (struct node_record *n = NULL; a->devices && (n = node_store_next(a, n));)
		n->has_devices = false;
	for (const struct record *r = NULL; a->devices && (r = next_of(a->devices, SLICES, r));) {
		struct node_record *n = node_store_find(a, r->node);
		if (n)
			n->has_devices = true;
	}
}

size_t agent_rules_of(const struct remedy_agent *a, const char *node, const char **uuids, size_t n, size_t max)
{
	const struct remedy_node *planned = are_known(a) ? NULL : remedy_fleet_find(&a->fleet, node);
	for (const struct record *r = NULL; are_known(a) && n < max && (r = next_rule(a->devices, r));)
		if (strcmp(r->node, node) == 0)
			uuids[n++] = r->gpu;
	// Unknown rules are treated as unchanged: a change in flight is not known yet, so the rules before it apply.
	for (int i = 1; planned && n < max && i < planned->n_gpus; i++)
		if (planned->gpus[i].has_gpu_taint != planned->gpus[i].is_in_flight)
			uuids[n++] = planned->gpus[i].uuid;
	return n;
}

void agent_rules_note_served(struct remedy_agent *a)
{
	for (int32_t k = 0; a->devices && k < a->fleet.n_nodes; k++) {
		struct remedy_node *n = &a->fleet.nodes[k];
		if (n->is_gone || n->n_faults == 0)
			continue;
		n->has_dra = are_known(a);
		const char *device;
		for (int i = 1; n->has_dra && i < n->n_gpus; i++)
			n->has_dra = !n->gpus[i].is_listed ||
			             slice_of(a->devices, n->name, n->gpus[i].uuid, &device) != NULL;
	}
}

// ---- writing ----

// A valid name of an object: the UUID in lower case, and a hash, because another node may have had the GPU.
static void name_of(const char *node, const char *gpu, char out[NAME_BYTES])
{
	uint64_t hash = hash_mix(hash_text(hash_text(HASH_START, node), gpu));
	int n = snprintf(out, NAME_BYTES, "gpuscale-%.63s-%08" PRIx32, gpu, (uint32_t)hash);
	for (int i = 0; i < n; i++) {
		char c = out[i];
		out[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
		if (!((out[i] >= 'a' && out[i] <= 'z') || (c >= '0' && c <= '9')))
			out[i] = '-';
	}
}

// Appends the rule that taints the GPU, with the fault as value, to `body`. The name is the same each time, so a rule
// exists at most once. Its effect is NoSchedule: evictions respect PodDisruptionBudgets, NoExecute does not. Returns -1
// when the GPU is not one device.
static int write_rule(const struct device_rules *d, const char *node, const char *gpu, const char *fault,
                      struct buf *body)
{
	const char *device;
	char name[NAME_BYTES];
	struct json_writer w;
	const struct record *slice = slice_of(d, node, gpu, &device);
	if (!slice)
		return -1;
	name_of(node, gpu, name);
	json_write_init(&w, body, 0);
	json_write_format(&w,
	                  "{apiVersion:%s,kind:%s,metadata:{name:%s,labels:{" OWNER_LABEL ":%s},annotations:{" NODE_KEY
	                  ":%s," GPU_KEY ":%s}},spec:{deviceSelector:{driver:%s,pool:%s,device:%s},taint:{key:%s,"
	                  "value:%s,effect:%s}}}",
	                  &RULE_GROUP[strlen("/apis/")], RULE_KIND, name, OWNER, node, gpu, slice->driver, slice->pool,
	                  device, NODE_TAINT, fault, "NoSchedule");
	return body->failed ? -1 : 0;
}

static void take_rule(struct device_rules *d, const char *json, size_t len)
{
	char name[TEXT_BYTES], version[TEXT_BYTES];
	struct device_watch *w = &d->watches[RULES];
	struct json_span root = {json, len}, metadata = json_span_get(root, "metadata");
	if (json_span_text(json_span_get(metadata, "name"), name, sizeof name) <= 0 ||
	    json_span_text(json_span_get(metadata, "resourceVersion"), version, sizeof version) <= 0 ||
	    informer_get(w->informer, "", name))
		return; // the watch reports it
	struct record *r = record_new(w, name);
	read_rule(r, root);
	(void)informer_put(w->informer, &r->item, r->item.hh.key, version, NULL);
}

static void forget_rule(struct device_rules *d, const char *name)
{
	struct informer_item *item = informer_get(d->watches[RULES].informer, "", name);
	if (item)
		record_free((struct record *)item);
}

struct rule_request {
	struct remedy_agent *agent;
	const char *name; // to delete; NULL: to create
};

static void on_rule(void *arg, const struct http_response *response, const struct err *error)
{
	const struct rule_request *request = arg;
	struct remedy_agent *a = request->agent;
	bool is_same = error && error->kind == (request->name ? ERR_NOT_FOUND : ERR_CONFLICT);
	if (a->devices && request->name && (response || is_same))
		forget_rule(a->devices, request->name);
	else if (a->devices && response)
		take_rule(a->devices, response->body, response->body_len);
	if (!error || (!is_same && error->kind != ERR_CANCELED))
		agent_report_edge(a, &a->is_rule_broken, "Cannot write DeviceTaintRules; trying again in each tick",
		                  "DeviceTaintRules are written again", error);
	a->step(a);
}

static void send_rule(struct remedy_agent *a, const char *method, struct buf *path, struct buf *body, const char *name)
{
	struct rule_request *request = arena_alloc(&a->arena, sizeof *request);
	const char *copy = name ? arena_strdup(&a->arena, name) : NULL;
	path->failed |= !request || (name && !copy);
	if (request)
		*request = (struct rule_request){a, copy};
	agent_send(a, method, "application/json", path, body, on_rule, request);
}

static void create_rule(struct remedy_agent *a, const struct remedy_node *n, int gpu)
{
	char fault[REMEDY_FAULT_NAME_BYTES] = "Unknown";
	const struct remedy_fault *f = remedy_evidence_of(n, gpu, a->fleet.now_ms);
	struct buf body, path;
	if (f)
		remedy_fault_name(f->id, fault);
	buf_init(&body, RULE_BYTES_MAX);
	buf_init(&path, RULE_BYTES_MAX);
	buf_puts(&path, RULES_PATH);
	path.failed |= write_rule(a->devices, n->name, n->gpus[gpu].uuid, fault, &body) < 0;
	send_rule(a, "POST", &path, &body, NULL);
}

static void delete_rule(struct remedy_agent *a, const struct record *rule)
{
	struct buf body, path;
	struct json_writer w;
	buf_init(&body, RULE_BYTES_MAX);
	buf_init(&path, RULE_BYTES_MAX);
	buf_printf(&path, RULES_PATH "%s", (const char *)rule->item.hh.key);
	json_write_init(&w, &body, 0);
	json_write_format(&w, "{apiVersion:%s,kind:%s,preconditions:{uid:%s}}", "v1", "DeleteOptions", rule->uid);
	send_rule(a, "DELETE", &path, &body, (const char *)rule->item.hh.key + 1);
}

// Deletes the rules of GPUs that the annotation of the node records as returned, and of nodes that do not exist.
static void delete_rules(struct remedy_agent *a)
{
	for (const struct record *rule = NULL; (rule = next_rule(a->devices, rule));) {
		const struct remedy_node *planned = remedy_fleet_find(&a->fleet, rule->node);
		const struct node_record *n = node_store_find(a, rule->node);
		int gpu = planned ? remedy_fleet_gpu(planned, rule->gpu) : -1;
		if (!n ||
		    (n->is_known && gpu > 0 && planned->gpus[gpu].is_in_flight && !planned->gpus[gpu].has_gpu_taint))
			delete_rule(a, rule);
	}
}

void agent_write_rules(struct remedy_agent *a)
{
	if (!are_known(a))
		return;
	delete_rules(a);
	for (int32_t k = 0; k < a->fleet.n_nodes; k++) {
		const struct remedy_node *planned = &a->fleet.nodes[k];
		const struct node_record *n = planned->is_gone ? NULL : node_store_find(a, planned->name);
		for (int i = 1; n && n->is_known && !n->is_bad && i < planned->n_gpus; i++)
			if (planned->gpus[i].is_in_flight && planned->gpus[i].has_gpu_taint &&
			    !has_rule(a->devices, planned->name, planned->gpus[i].uuid))
				create_rule(a, planned, i);
	}
}
