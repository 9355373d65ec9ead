// SPDX-License-Identifier: Apache-2.0
// The resources of a cluster and their use by pods: an account of nodes, pods and the devices of dynamic resource
// allocation (DRA), kept from the JSON of their objects, without a clock, a network or a loop. k8s/cache/inventory.h
// watches the objects. capacity_fit() reports how many more replicas fit. Callbacks of watches call these functions, so
// they abort when memory is exhausted (base/alloc.h).
#ifndef GPUSCALE_K8S_CAPACITY_CAPACITY_H
#define GPUSCALE_K8S_CAPACITY_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash_table.h"
#include "k8s/capacity/label_pool.h"
#include "k8s/capacity/node_rule.h"
#include "k8s/capacity/replica_shape.h"
#include "k8s/capacity/resource_names.h"

struct allocated_device;
struct capacity;
struct capacity_node;
struct device_class;
struct device_kind;
struct device_object;
struct device_pool;
struct rule_verdicts;
struct waiting_space;

// As gpuscale remediate sets them (remedy/agent/node_view.h; test_capacity compares the names).
#define CAPACITY_FAILING_TAINT     "gpuscale.dev/failing-gpu"
#define CAPACITY_REMEDY_ANNOTATION "gpuscale.dev/remediation"

#define CAPACITY_NODE_LABELS_MAX 512
#define CAPACITY_NODE_TAINTS_MAX 64
// Pods without a node that are kept with their rules and labels; further ones are counted only. Of one namespace, fewer
// are kept, so that one tenant cannot hide the pods of the others.
#define CAPACITY_WAITING_MAX             2000
#define CAPACITY_WAITING_OF_NAMESPACE    500
#define CAPACITY_WAITING_BYTES_MAX       ((size_t)16 * 1024 * 1024)
#define CAPACITY_WAITING_BYTES_NAMESPACE ((size_t)4 * 1024 * 1024)

#define CAPACITY_SLICE_DEVICES_MAX 128  // Kubernetes: ResourceSliceMaxDevices
#define CAPACITY_CLAIM_RESULTS_MAX 64   // twice Kubernetes' AllocationResultsMaxSize
#define CAPACITY_DEVICE_KINDS_MAX  1024 // different sets of attributes
#define CAPACITY_DEMANDS_MAX       4    // device classes that one replica needs
#define CAPACITY_FAILING_ALL       INT32_MAX
#define CAPACITY_MESSAGE_BYTES     600 // length of the scheduler's message; a longer one is cut

struct capacity_resource {
	int64_t allocatable, used;
	int64_t planned; // amount planned by capacity_fit
	uint8_t id;
};

struct capacity_node {
	UT_hash_handle hh;
	bool is_known; // false: only its pods are known
	bool is_ready, is_unschedulable;
	uint8_t faults; // enum resource_fault of its allocatable
	uint64_t hash;  // hash of what the Node object states
	uint8_t n_resources, n_taints;
	uint16_t n_labels;
	int32_t pods, planned_pods;
	int32_t failing_pods; // count of fit_target_failing: 0 between two calls
	int32_t failing_gpus; // by the annotation and the taint of gpuscale remediate; CAPACITY_FAILING_ALL: all of it
	int32_t slices;       // that name the node
	int32_t devices[CAPACITY_DEMANDS_MAX], free_devices[CAPACITY_DEMANDS_MAX]; // devices in capacity_fit
	uint32_t slot; // its place in what is known about rules
	struct capacity_resource *resources;
	const struct label **labels;
	struct node_taint *taints;
	char name[];
};
// NULL: the node does not list the resource, and no pod on it uses any.
struct capacity_resource *capacity_node_resource(const struct capacity_node *n, int id);

// A pod that has no node yet.
struct capacity_waiting {
	struct capacity_waiting *prev, *next;
	bool has_shape;        // false: its rules are invalid or exceed a limit
	bool is_unschedulable; // the scheduler reported so
	bool is_gated;         // spec.schedulingGates keep the scheduler away from it
	int64_t since_ms;      // when it began to wait for a node, since the epoch: capacity_set_pod(); 0: unknown
	struct replica_shape shape;
	struct label *labels;
	size_t n_labels;
	struct waiting_space *space; // its namespace
	size_t bytes;                // that it takes
	const char *namespace_name, *name;
	char message[CAPACITY_MESSAGE_BYTES]; // message of the scheduler, or the first gate; "": none
	char text[];
};

// Embedded in the record of a pod; zeroed at first. The members are private to the account.
struct capacity_pod {
	struct capacity_node *node; // NULL: none
	struct resource_amount *requests;
	struct capacity_waiting *waiting; // NULL: has a node, or was left out (CAPACITY_WAITING_MAX)
	int64_t ungated_ms; // when it was first seen without the scheduling gates that it had; 0: it had none
	uint8_t n_requests, faults;
	bool is_waiting, is_gated;
};

// Embedded in the record of a ResourceClaim; zeroed at first. The members are private to the account.
struct capacity_claim {
	struct capacity_claim *prev, *next; // while it waits for devices
	struct allocated_device **devices;
	size_t n_devices;
	struct claim_demand *demands; // while it waits
	size_t n_demands;
	bool is_waiting;
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

// The kinds of objects in the account. From CAPACITY_SLICE on, they are those of resource.k8s.io.
enum capacity_kind {
	CAPACITY_NODE,
	CAPACITY_POD,
	CAPACITY_SLICE,
	CAPACITY_CLASS,
	CAPACITY_CLAIM,
	CAPACITY_TAINT_RULE,
	CAPACITY_KIND__COUNT
};

// The account. Callers read the first members; only the functions below change them.
struct capacity {
	// Changes whenever the result of capacity_fit() or a waiting pod may have changed. The heartbeat of a node and
	// the progress of a pod that has a node do not change it.
	uint64_t generation;
	struct resource_names names;
	struct capacity_node *nodes;      // hash, by name; the next: node->hh.next
	struct capacity_waiting *waiting; // list
	struct fit_plan plan;             // the one that was begun last
	// Private to the account:
	struct label_pool pool;
	size_t n_waiting, n_left_out;
	struct device_object *objects[CAPACITY_KIND__COUNT]; // hashes of slices, classes and taint rules, by name
	struct device_pool *pools;                           // hash
	struct device_kind *kinds;                           // hash
	struct allocated_device *allocated;                  // hash
	struct capacity_claim *waiting_claims;
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

struct capacity *capacity_new(struct err *e);
// Frees the account; every pod and claim must have been removed.
void capacity_free(struct capacity *c);

// Enters an object of any kind but the two below, or its new state.
void capacity_set_object(struct capacity *c, enum capacity_kind kind, const char *name, const char *json, size_t len);
void capacity_remove_object(struct capacity *c, enum capacity_kind kind, const char *name);
// Enters a Pod, or its new state. now_ms: since the epoch. A pod waits for a node since the scheduler first reported
// about it, or since its scheduling gates were removed: the condition keeps the time from before. Returns false when it
// has finished or is not a pod: it is then not in the account.
bool capacity_set_pod(struct capacity *c, struct capacity_pod *pod, const char *namespace_name, const char *name,
                      const char *json, size_t len, int64_t now_ms);
void capacity_remove_pod(struct capacity *c, struct capacity_pod *pod);

// Enters a ResourceClaim, or its new state.
void capacity_set_claim(struct capacity *c, struct capacity_claim *claim, const char *json, size_t len);
void capacity_remove_claim(struct capacity *c, struct capacity_claim *claim);

// Faults in the objects, which cannot be counted.
enum capacity_fault {
	CAPACITY_FAULT_NODE_NEGATIVE,
	CAPACITY_FAULT_NODE_HUGE,
	CAPACITY_FAULT_NODE_UNREADABLE,
	CAPACITY_FAULT_NODE_TOO_MANY,
	CAPACITY_FAULT_NODE_WITHOUT_MODEL,
	CAPACITY_FAULT_NODE_OVERCOMMITTED,
	CAPACITY_FAULT_POD_AMOUNT,
	CAPACITY_FAULT_POD_TOO_MANY,
	CAPACITY_FAULT_POD_RULES,
	CAPACITY_FAULT_POD_LEFT_OUT,
	CAPACITY_FAULT_NODE_MISSING,
	CAPACITY_FAULT_POOL_INCOMPLETE,
	CAPACITY_FAULT_DEVICE_SHARED,
	CAPACITY_FAULT__COUNT
};
struct capacity_faults {
	size_t of[CAPACITY_FAULT__COUNT];
	const char *example[CAPACITY_FAULT__COUNT]; // name of a node; NULL: none. Valid until the account changes
};
void capacity_get_faults(struct capacity *c, struct capacity_faults *ret_faults);
// The names of the faults for JSON, and what is counted, for people.
extern const struct capacity_fault_info {
	const char *name, *sentence;
} capacity_fault_table[CAPACITY_FAULT__COUNT];

// ---- fit ----

#define FIT_REPLICAS_MAX 1000000
#define FIT_WHY_BYTES    512

// Why a node takes no more replicas; the first that applies.
enum fit_reason {
	FIT_RULE,        // the node selector or the node affinity excludes it
	FIT_NO_RESOURCE, // it has nothing of a resource that the replica needs
	FIT_NOT_READY,
	FIT_CORDONED,
	FIT_TAINT,
	FIT_PODS,     // the number of pods
	FIT_RESOURCE, // too little of a resource is free
	FIT_REASON__COUNT
};

struct fit_result {
	int64_t replicas; // how many more fit, at most FIT_REPLICAS_MAX
	size_t nodes;     // in the cluster
	size_t nodes_of[FIT_REASON__COUNT];
	size_t lacking[RESOURCE_NAMES_MAX]; // nodes with FIT_NO_RESOURCE or FIT_RESOURCE, by resource
	const struct label *taint;          // one that is not tolerated; NULL: none
	size_t waiting;                     // pods without a node for which room was reserved first
};
// Computes how many replicas fit in addition to all pods that exist. Pods without a node get their room first, each on
// the node with the most free of the scarcest resource of `shape`, so that the result is rather too small than too
// large. Returns 0, or -1 and *e (ERR_UNSUPPORTED) when the devices that the shape needs cannot be counted.
int capacity_fit(struct capacity *c, const struct replica_shape *shape, struct fit_result *ret_fit, struct err *e);

// The same in steps, for an event loop: a plan reserves room for the pods without a node, then for orders; the fit of
// every shape that the plan serves is read from it. *work: comparisons that may be made, a few nanoseconds each, less
// those that were made. When none is left, a step ends with the pass over the nodes that it is in.
// Begins a plan for the shape if none serves it, or if the account has changed since the plan was complete; else
// continues. Returns 1: the plan is complete; 0: *work is used up; -1 and *e as capacity_fit().
int capacity_plan(struct capacity *c, const struct replica_shape *shape, int64_t *work, struct err *e);
// Returns whether the plan that was begun last serves the shape, whatever has changed since.
bool capacity_plan_serves(const struct capacity *c, const struct replica_shape *shape);
// Lets the next capacity_plan() begin anew: an order is void, or a shape is about to change.
void capacity_drop_plan(struct capacity *c);
// Reserves room for n more replicas, which were ordered and do not exist as pods yet, in a complete plan. Returns for
// how many this was done, or found to be impossible; fewer than n: *work is used up.
int64_t capacity_plan_order(struct capacity *c, const struct replica_shape *shape, int64_t n, int64_t *work);
// Returns whether *ret_fit has the result of capacity_fit() in addition to the orders; false: *work is used up.
bool capacity_fit_planned(struct capacity *c, const struct replica_shape *shape, int64_t *work,
                          struct fit_result *ret_fit);
// Writes why no more replicas fit, as one clause: "3 of 5 nodes have too little nvidia.com/gpu free, ..".
void fit_explain(const struct capacity *c, const struct fit_result *fit, char out[FIT_WHY_BYTES]);

#endif
