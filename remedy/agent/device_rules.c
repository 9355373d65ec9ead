// SPDX-License-Identifier: Apache-2.0
#include "remedy/agent/device_rules.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/json/json_span.h"
#include "base/json/json_write.h"
#include "base/must.h"
#include "k8s/cache/informer.h"
#include "k8s/client/k8s_client.h"
#include "remedy/agent/node_view.h"

#define SLICE_GROUP "/apis/resource.k8s.io/v1"
#define RULE_GROUP  "/apis/resource.k8s.io/v1beta2"
#define RULE_KIND   "DeviceTaintRule"
#define OWNER_LABEL "app.kubernetes.io/managed-by"
#define OWNER       "gpuscale-remediate"
#define NODE_KEY    "gpuscale.dev/node"
#define GPU_KEY     "gpuscale.dev/gpu"
#define TEXT_BYTES  256
#define NAME_BYTES  128
#define DEVICES_MAX 128 // devices of a slice: the limit of the API

enum watched { SLICES, RULES, WATCHED__COUNT };

struct device {
	char *name, *uuid, *parent; // parent: of a part of a GPU; NULL = none
};

// A slice with devices that have a UUID, or a rule of the agent.
struct record {
	struct informer_item item;
	char *node, *gpu, *uid;    // texts of a rule; a slice has only the node
	char *driver, *pool;       // texts of a slice
	struct device *devices;    // likewise
	size_t n_devices, name_at; // name_at: in key
	char key[];                // "/NAME"
};

struct device_rules {
	struct device_rules_options options;
	struct device_watch {
		struct device_rules *of;
		struct informer *informer;
		struct informer_item all; // all objects
		bool is_broken;
	} watches[WATCHED__COUNT];
};

static struct record *record_of(const struct informer_item *item)
{
	uintptr_t at = (uintptr_t)item - offsetof(struct record, item);
	return item ? (struct record *)at : NULL;
}

static void record_clear(struct record *r)
{
	char **const texts[] = {&r->node, &r->gpu, &r->uid, &r->driver, &r->pool};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		free(*texts[i]);
		*texts[i] = NULL;
	}
	for (size_t i = 0; i < r->n_devices; i++) {
		free(r->devices[i].name);
		free(r->devices[i].uuid);
		free(r->devices[i].parent);
	}
	free(r->devices);
	r->devices = NULL;
	r->n_devices = 0;
}

static void record_free(struct record *r)
{
	informer_remove(&r->item);
	record_clear(r);
	free(r);
}

static struct record *record_new(const char *name)
{
	size_t size = strlen(name) + 2;
	struct record *r = must_alloc(calloc(1, sizeof *r + size));
	snprintf(r->key, size, "/%s", name);
	r->name_at = 1;
	return r;
}

static char *copy_of(struct json_span s)
{
	char text[TEXT_BYTES];
	return json_span_text(s, text, sizeof text) > 0 ? must_alloc(strdup(text)) : NULL;
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
	r->node = copy_of(json_span_get(spec, "nodeName"));
	r->driver = copy_of(json_span_get(spec, "driver"));
	r->pool = copy_of(json_span_get(json_span_get(spec, "pool"), "name"));
	if (!r->node || !r->driver || !r->pool)
		return;
	while (r->n_devices < DEVICES_MAX && json_span_next(&it)) {
		struct device d = {.uuid = copy_of(attribute(it.value, r->driver, "uuid"))};
		if (!d.uuid)
			continue;
		d.name = copy_of(json_span_get(it.value, "name"));
		d.parent = copy_of(attribute(it.value, r->driver, "parentUUID"));
		r->devices = must_alloc(realloc(r->devices, (r->n_devices + 1) * sizeof *r->devices));
		r->devices[r->n_devices++] = d;
	}
}

static bool is_of_slice(const struct record *r)
{
	return r->n_devices > 0;
}

// ---- rules ----

static void read_rule(struct record *r, struct json_span root)
{
	struct json_span metadata = json_span_get(root, "metadata"), notes = json_span_get(metadata, "annotations");
	r->uid = copy_of(json_span_get(metadata, "uid"));
	r->node = copy_of(json_span_get(notes, NODE_KEY));
	r->gpu = copy_of(json_span_get(notes, GPU_KEY));
}

// ---- watches ----

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	struct device_watch *w = arg;
	bool is_slice = w == &w->of->watches[SLICES];
	struct record *r = item ? record_of(item) : record_new(name);
	record_clear(r);
	(is_slice ? read_slice : read_rule)(r, (struct json_span){json, len});
	if (is_slice && !is_of_slice(r)) { // slice with another kind of device
		if (item)
			record_free(r);
		else {
			record_clear(r);
			free(r);
		}
	} else if (!item) {
		(void)informer_put(w->informer, &r->item, r->key, "", NULL);
	}
}

static void on_absent(void *arg, struct informer_item *item)
{
	record_free(record_of(item));
}

static void on_error(void *arg, const char *namespace_name, const struct err *error)
{
	struct device_watch *w = arg;
	struct device_rules *d = w->of;
	w->is_broken = error != NULL;
	if (error || !(d->watches[SLICES].is_broken || d->watches[RULES].is_broken))
		d->options.on_error(d->options.arg, error);
}

static int open_watch(struct device_rules *d, enum watched which, struct err *e)
{
	struct device_watch *w = &d->watches[which];
	*w = (struct device_watch){.of = d};
	w->informer = informer_new(
	        &(struct informer_options){.client = d->options.client,
	                                   .group_path = which == SLICES ? SLICE_GROUP : RULE_GROUP,
	                                   .plural = which == SLICES ? "resourceslices" : "devicetaintrules",
	                                   .label_selector = which == SLICES ? NULL : OWNER_LABEL "=" OWNER,
	                                   .is_cluster_scoped = true,
	                                   .callbacks = {on_object, on_absent, NULL, NULL, on_error},
	                                   .arg = w},
	        e);
	return w->informer ? informer_put(w->informer, &w->all, "/", NULL, e) : -1;
}

struct device_rules *device_rules_new(const struct device_rules_options *options, struct err *e)
{
	struct device_rules *d = alloc_zeroed(sizeof *d, e);
	if (!d)
		return NULL;
	d->options = *options;
	if (open_watch(d, SLICES, e) == 0 && open_watch(d, RULES, e) == 0)
		return d;
	device_rules_free(d);
	return NULL;
}

void device_rules_free(struct device_rules *d)
{
	for (int k = 0; d && k < WATCHED__COUNT; k++) {
		struct device_watch *w = &d->watches[k];
		for (struct record *r; w->informer && (r = record_of(informer_list(w->informer)));)
			record_free(r);
		informer_remove(&w->all);
		informer_free(w->informer);
	}
	free(d);
}

static bool is_synced(const struct device_watch *w)
{
	return informer_get_state(w->informer, &w->all).unsynced == 0;
}

bool device_rules_are_synced(const struct device_rules *d)
{
	return is_synced(&d->watches[SLICES]) && is_synced(&d->watches[RULES]);
}

bool device_rules_are_answered(const struct device_rules *d)
{
	for (int k = 0; k < WATCHED__COUNT; k++)
		if (!d->watches[k].is_broken && !is_synced(&d->watches[k]))
			return false;
	return true;
}

// ---- questions ----

static const struct record *next_of(const struct device_rules *d, enum watched which, const struct record *r)
{
	return record_of(r ? r->item.hh.next : informer_list(d->watches[which].informer));
}

// The slice with the GPU, when the GPU is exactly one device.
static const struct record *slice_of(const struct device_rules *d, const char *node, const char *gpu,
                                     const char **ret_device)
{
	const struct record *found = NULL;
	int n = 0;
	for (const struct record *r = NULL; (r = next_of(d, SLICES, r));) {
		for (size_t i = 0; strcmp(r->node, node) == 0 && i < r->n_devices; i++) {
			const struct device *one = &r->devices[i];
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

bool device_rules_serve(const struct device_rules *d, const char *node, const char *gpu)
{
	const char *device;
	return slice_of(d, node, gpu, &device) != NULL;
}

const char *device_rules_next_node(const struct device_rules *d, const void **at)
{
	const struct record *r = next_of(d, SLICES, *at);
	*at = r;
	return r ? r->node : NULL;
}

bool device_rules_next(const struct device_rules *d, const void **at, struct device_rule *ret_rule)
{
	const struct record *r = *at;
	do
		r = next_of(d, RULES, r);
	while (r && (!r->node || !r->gpu || !r->uid));
	*at = r;
	if (r)
		*ret_rule = (struct device_rule){
		        .name = r->key + r->name_at, .uid = r->uid, .node = r->node, .gpu = r->gpu};
	return r != NULL;
}

bool device_rules_has(const struct device_rules *d, const char *node, const char *gpu)
{
	struct device_rule rule;
	for (const void *at = NULL; device_rules_next(d, &at, &rule);)
		if (strcmp(rule.node, node) == 0 && strcmp(rule.gpu, gpu) == 0)
			return true;
	return false;
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

static void write_spec(struct json_writer *w, const struct record *slice, const char *device, const char *fault)
{
	json_write_member_object(w, "spec");
	json_write_member_object(w, "deviceSelector");
	json_write_member_str(w, "driver", slice->driver);
	json_write_member_str(w, "pool", slice->pool);
	json_write_member_str(w, "device", device);
	json_write_object_end(w);
	json_write_member_object(w, "taint");
	json_write_member_str(w, "key", NODE_TAINT);
	json_write_member_str(w, "value", fault);
	json_write_member_str(w, "effect", "NoSchedule"); // evictions respect PodDisruptionBudgets, NoExecute does not
	json_write_object_end(w);
	json_write_object_end(w);
}

int device_rules_write(const struct device_rules *d, const char *node, const char *gpu, const char *fault,
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
	json_write_object_begin(&w);
	json_write_member_str(&w, "apiVersion", &RULE_GROUP[strlen("/apis/")]);
	json_write_member_str(&w, "kind", RULE_KIND);
	json_write_member_object(&w, "metadata");
	json_write_member_str(&w, "name", name);
	json_write_member_object(&w, "labels");
	json_write_member_str(&w, OWNER_LABEL, OWNER);
	json_write_object_end(&w);
	json_write_member_object(&w, "annotations");
	json_write_member_str(&w, NODE_KEY, node);
	json_write_member_str(&w, GPU_KEY, gpu);
	json_write_object_end(&w);
	json_write_object_end(&w);
	write_spec(&w, slice, device, fault);
	json_write_object_end(&w);
	return body->failed ? -1 : 0;
}

void device_rules_take(struct device_rules *d, const char *json, size_t len)
{
	char name[TEXT_BYTES], version[TEXT_BYTES];
	struct device_watch *w = &d->watches[RULES];
	struct json_span root = {json, len}, metadata = json_span_get(root, "metadata");
	if (json_span_text(json_span_get(metadata, "name"), name, sizeof name) <= 0 ||
	    json_span_text(json_span_get(metadata, "resourceVersion"), version, sizeof version) <= 0 ||
	    informer_get(w->informer, "", name))
		return; // the watch reports it
	struct record *r = record_new(name);
	read_rule(r, root);
	(void)informer_put(w->informer, &r->item, r->key, version, NULL);
}

void device_rules_forget(struct device_rules *d, const char *name)
{
	struct informer_item *item = informer_get(d->watches[RULES].informer, "", name);
	if (item)
		record_free(record_of(item));
}
