// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the account. Include it only from those files.
//   capacity.c        nodes and pods
//   capacity_devices.c   devices of dynamic resource allocation
//   capacity_rules.c  which nodes accept which pods
//   capacity_fit.c    how many more replicas fit
#ifndef GPUSCALE_K8S_CAPACITY_CAPACITY_PRIVATE_H
#define GPUSCALE_K8S_CAPACITY_CAPACITY_PRIVATE_H

#include "base/hash_table.h"
#include "k8s/capacity/capacity.h"
#include "k8s/capacity/device_selector.h"

// Devices with the same driver and attributes.
struct device_kind {
	UT_hash_handle hh;
	size_t refs;
	const char *driver;
	struct json_span attributes, capacity;     // in the text
	const struct label *model;                 // its value names the model; NULL: unknown
	unsigned char match[CAPACITY_DEMANDS_MAX]; // enum device_match, of capacity_fit
	char text[];
};

// All slices of a driver and a pool.
struct device_pool {
	UT_hash_handle hh;
	size_t refs;
	int64_t generation, wanted; // for capacity_devices_update: the newest generation and how many slices it has
	int64_t found;
	const char *driver, *name;
	char text[]; // both, each with its NUL
};

struct slice_device {
	const struct label *name; // its value
	struct device_kind *kind; // NULL: above the limit
	bool is_tainted, is_shared;
};

// An object that the account keeps by its name: the first member of those below.
struct device_object {
	UT_hash_handle hh;
	const char *name; // behind the object
};

struct device_slice {
	struct device_object object;
	struct device_pool *pool;
	struct capacity_node *node; // NULL: its devices are not local to one node
	int64_t generation, pool_slices;
	struct slice_device *devices;
	size_t n_devices;
};

// A device that claims use, whether a slice lists it or not.
struct allocated_device {
	UT_hash_handle hh;
	size_t refs;
	char text[]; // "DRIVER/POOL/DEVICE"
};

struct device_class {
	struct device_object object;
	char **selectors;
	size_t n_selectors;
	bool is_unreadable;
	char *extended_resource; // NULL: none
};

// A DeviceTaintRule: taints the devices that match all of its criteria.
struct taint_rule {
	struct device_object object;
	bool is_active;               // it selects devices, and its taint has an effect
	char *driver, *pool, *device; // NULL: any
};

// The pods of a namespace that wait for a node and are kept.
struct waiting_space {
	UT_hash_handle hh;
	size_t pods, bytes;
	char name[];
};

struct claim_demand {
	const char *class_name;
	int64_t count;
};

// capacity.c
void capacity_set_node(struct capacity *c, const char *name, const char *json, size_t len);
void capacity_remove_node(struct capacity *c, const char *name);
struct capacity_node *capacity_get_node(struct capacity *c, const char *name);
void capacity_free_node_if_unused(struct capacity *c, struct capacity_node *n);

// capacity_rules.c
// Each node has a slot, a small number that is used again when the node is gone.
uint32_t capacity_take_slot(struct capacity *c);
void capacity_release_slot(struct capacity *c, uint32_t slot);
enum node_verdict {
	NODE_UNCHECKED,
	NODE_EXCLUDED, // by node selector or affinity
	NODE_TAINTED,  // it has a taint that the rule does not tolerate
	NODE_ACCEPTED
};
// Returns what is known about the rule of a shape; valid until the next plan begins.
struct rule_verdicts *capacity_rule_of(struct capacity *c, const struct replica_shape *shape);
// Compares a rule with a node, unless that was done since the node changed, or no *work is left: NODE_UNCHECKED.
enum node_verdict capacity_verdict(struct rule_verdicts *v, const struct node_rule *rule, const struct capacity_node *n,
                                   int64_t *work);
// Returns a taint of the node that the rule does not tolerate; NULL: none.
const struct node_taint *capacity_untolerated(const struct capacity_node *n, const struct node_rule *rule);
// Forgets what is known about a node; rules that no plan has used for long.
void capacity_forget_verdicts(struct capacity *c, uint32_t slot);
void capacity_forget_unused_rules(struct capacity *c);
void capacity_rules_done(struct capacity *c);

// capacity_devices.c
// Finds the newest generation of each pool.
void capacity_devices_update(struct capacity *c);
// Returns whether the slice is of the newest generation of a complete pool; after capacity_devices_update().
bool device_slice_is_current(const struct device_slice *s);
bool device_is_allocated(const struct capacity *c, const struct device_slice *s, const struct slice_device *d);
// Finds the device classes behind the resources of a shape. Returns their number, or -1 and *e.
int capacity_devices_find(const struct capacity *c, const struct replica_shape *shape,
                          struct device_demand ret_demands[CAPACITY_DEMANDS_MAX], struct err *e);
// Makes them those of the plan, and counts their devices by node. Returns 0, or -1 and *e.
int capacity_devices_count(struct capacity *c, const struct replica_shape *shape, struct err *e);
// Returns the index of the demand for a resource; -1: none.
int capacity_devices_demand(const struct capacity *c, int id);
// Returns the class whose devices back an extended resource; NULL: none.
const struct device_class *capacity_class_of(const struct capacity *c, const char *resource);
// Returns the first of the slices; the others follow as slice->object.hh.next.
struct device_slice *capacity_first_slice(const struct capacity *c);
// Returns whether the device has a taint, by its slice or by a DeviceTaintRule.
bool device_is_tainted(const struct capacity *c, const struct device_slice *s, const struct slice_device *d);
void capacity_devices_done(struct capacity *c);

#endif
