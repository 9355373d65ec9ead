// SPDX-License-Identifier: Apache-2.0
// Amounts of Kubernetes resources. Names of resources become small numbers, so that a pod needs few bytes and a
// comparison no text.
#ifndef GPUSCALE_K8S_CAPACITY_RESOURCE_NAMES_H
#define GPUSCALE_K8S_CAPACITY_RESOURCE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json/json_span.h"

#define RESOURCE_NAMES_MAX 160 // different names in a cluster
// Pods add a name while fewer than this many are known that neither a node nor a DeviceClass offers; a tenant who
// creates pods cannot take the places of others.
#define RESOURCE_NAMES_REQUESTED_MAX 64
// The same for the pod templates of policies: pods cannot take these places, and both leave 64 for what is offered.
#define RESOURCE_NAMES_NEEDED_MAX 96
#define RESOURCE_MAP_MAX          256 // entries of one map of amounts that are read
#define RESOURCE_NAME_BYTES       318 // Kubernetes: a qualified name, 253 + 1 + 63 bytes, and the NUL
#define RESOURCES_MAX             48  // resources of one pod or node
// Above it, an amount is a mistake rather than a resource: it is not counted. For devices, which come in whole pieces,
// the limit is lower; fractions of a GPU as HAMi offers them (in MiB, in percent) stay below it.
#define RESOURCE_AMOUNT_MAX  (INT64_C(1) << 53)
#define RESOURCE_DEVICES_MAX 10000000

// A device class as a resource: KEP-5004.
#define RESOURCE_DEVICE_CLASS_PREFIX "deviceclass.resource.kubernetes.io/"

// The resources that every cluster has.
enum resource_id { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_EPHEMERAL_STORAGE, RESOURCE_PODS, RESOURCE__COUNT };

struct resource_names {
	char *names[RESOURCE_NAMES_MAX];
	struct {
		uint32_t holders;
		bool is_offered; // by a node or a DeviceClass: stays
		bool is_new;     // name from a read whose amounts are not held yet
	} of[RESOURCE_NAMES_MAX];
	size_t n;
};
// Adds the names of enum resource_id. Returns -1 when memory is exhausted.
int resource_names_init(struct resource_names *r);
void resource_names_done(struct resource_names *r);
// Who adds a name.
enum resource_use {
	RESOURCE_OFFERED,   // a node or a DeviceClass; the name stays
	RESOURCE_REQUESTED, // a pod: fails also above RESOURCE_NAMES_REQUESTED_MAX
	RESOURCE_NEEDED,    // the pod template of a policy: fails also above RESOURCE_NAMES_NEEDED_MAX
};
// Returns the number of a name; adds it when it is new. The number of a name that is not offered is valid until the
// next call of resource_names_hold(), and while it is held. -1: there are RESOURCE_NAMES_MAX others, the name is longer
// than RESOURCE_NAME_BYTES, or memory is exhausted.
int resource_names_add(struct resource_names *r, const char *name, enum resource_use use);
struct resource_amount;
// Holds the names of n amounts. The place of a name that is neither offered nor held is used again.
void resource_names_hold(struct resource_names *r, const struct resource_amount *items, size_t n);
void resource_names_release(struct resource_names *r, const struct resource_amount *items, size_t n);
// Returns the number of a name, or -1.
int resource_names_find(const struct resource_names *r, const char *name);

// Returns the name of the device class that a resource stands for; NULL: it is another resource.
const char *resource_device_class(const char *name);
// Returns whether the resource is a device or another extended resource, counted in whole pieces: its name has a
// domain other than kubernetes.io. Kubernetes: core/v1/helper, IsExtendedResourceName.
bool resource_is_extended(const char *name);
// Writes the name for people: "DeviceClass NAME" for a device class.
#define RESOURCE_SHOWN_BYTES (RESOURCE_NAME_BYTES + 16)
void resource_show_name(const char *name, char out[RESOURCE_SHOWN_BYTES]);
// Returns whether one piece of the resource is a whole GPU, rather than a part of one, by a table of known names.
bool resource_is_whole_gpu(const char *name);

struct resource_amount {
	int64_t amount; // thousandths of a CPU; bytes; pieces
	uint8_t id;
};
// The amounts of one pod or node, each id at most once.
struct resource_vector {
	struct resource_amount items[RESOURCES_MAX];
	size_t n;
};
// Returns the amount of a resource; 0 when the vector lacks it.
int64_t resource_vector_get(const struct resource_vector *v, int id);
bool resource_vector_has(const struct resource_vector *v, int id);
// Sets an amount. Returns -1 when the vector is full.
int resource_vector_set(struct resource_vector *v, int id, int64_t amount);

// Faults of amounts. A faulty amount is not counted as available.
enum resource_fault {
	RESOURCE_FAULT_NEGATIVE = 1 << 0,
	RESOURCE_FAULT_HUGE = 1 << 1,
	RESOURCE_FAULT_UNREADABLE = 1 << 2, // not a quantity
	RESOURCE_FAULT_TOO_MANY = 1 << 3,   // RESOURCES_MAX, RESOURCE_NAMES_MAX
};
// Reads a map of names to quantities into *ret_vector, which may be filled already: new amounts replace old ones.
// Returns the faults of the amounts that were left out.
int resource_vector_read(struct resource_names *names, enum resource_use use, struct json_span map,
                         struct resource_vector *ret_vector);

#endif
