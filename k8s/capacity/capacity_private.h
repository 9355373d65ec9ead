// SPDX-License-Identifier: Apache-2.0
// Declarations shared by the files of the account. Include it only from those files.
//   capacity.c        nodes and pods
//   capacity_devices.c   devices of dynamic resource allocation
//   device_taint_rules.c  taints of devices by rule
//   capacity_rules.c  which nodes accept which pods
//   capacity_fit.c    how many more replicas fit
#ifndef GPUSCALE_K8S_CAPACITY_CAPACITY_PRIVATE_H
#define GPUSCALE_K8S_CAPACITY_CAPACITY_PRIVATE_H

#include "base/hash_table.h"
#include "k8s/capacity/capacity.h"
#include "k8s/capacity/device_selector.h"
#include "k8s/capacity/label_pool.h"

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

struct device_slice {
	UT_hash_handle hh;
	struct device_pool *pool;
	struct capacity_node *node; // NULL: its devices are not local to one node
	int64_t generation, pool_slices;
	struct slice_device *devices;
	size_t n_devices;
	char name[];
};

// A device that claims use, whether a slice lists it or not.
struct allocated_device {
	UT_hash_handle hh;
	size_t refs;
	char text[]; // "DRIVER/POOL/DEVICE"
};

struct device_class {
	UT_hash_handle hh;
	char **selectors;
	size_t n_selectors;
	bool is_unreadable;
	char *extended_resource; // NULL: none
	char name[];
};

// A DeviceTaintRule: taints the devices that match all of its criteria.
struct taint_rule {
	UT_hash_handle hh;
	bool is_active;               // it selects devices, and its taint has an effect
	char *driver, *pool, *device; // NULL: any
	char name[];
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

// A resource of which a replica needs devices of a class.
struct device_demand {
	int id;
	const struct device_class *class;
	const struct replica_shape *shape; // whose selectors apply, too
};

// Room reserved for pods without a node, and for orders, on the nodes.
struct fit_plan {
	uint64_t number; // counts the plans
	bool is_begun, is_complete;
	uint64_t generation;             // generation of the account when the plan began
	int id;                          // the scarcest resource of the shapes that it serves
	const struct replica_shape *own; // it serves only this shape, which has selectors of its own; NULL: any
	struct capacity_waiting *next;   // the next to get room; NULL: all have it
	int64_t most;                    // no node has more of `id` free
	size_t waiting;                  // pods that got room
};

struct capacity {
	uint64_t generation; // generation of everything that capacity_fit() depends on
	struct resource_names names;
	struct label_pool pool;
	struct capacity_node *nodes; // hash, by name
	struct capacity_waiting *waiting;
	size_t n_waiting, n_left_out;
	struct device_slice *slices;        // hash, by name
	struct device_pool *pools;          // hash
	struct device_kind *kinds;          // hash
	struct device_class *classes;       // hash, by name
	struct taint_rule *taint_rules;     // hash, by name
	struct allocated_device *allocated; // hash
	struct capacity_claim *waiting_claims;
	struct fit_plan plan;
	struct resource_vector plan_names;                  // held, so that no other name gets their numbers
	struct device_demand demands[CAPACITY_DEMANDS_MAX]; // demands of the plan
	size_t n_demands;
	struct rule_verdicts *rules; // hash
	uint32_t *free_slots;        // slots of nodes that are gone
	uint32_t n_slots, n_free_slots;
	struct waiting_space *waiting_spaces; // hash: namespaces with waiting pods
	size_t waiting_bytes;
	size_t pods_amount, pods_too_many, pods_rules; // pods with a fault
};

// capacity.c
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
void capacity_devices_done(struct capacity *c);

// device_taint_rules.c
// Returns whether the device has a taint, by its slice or by a DeviceTaintRule.
bool device_is_tainted(const struct capacity *c, const struct device_slice *s, const struct slice_device *d);
void device_taint_rules_done(struct capacity *c);

#endif
