// SPDX-License-Identifier: Apache-2.0
// The needs of one replica: resources, and the nodes on which it may run.
#ifndef GPUSCALE_K8S_CAPACITY_REPLICA_SHAPE_H
#define GPUSCALE_K8S_CAPACITY_REPLICA_SHAPE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/json/json_span.h"
#include "k8s/capacity/node_rule.h"
#include "k8s/capacity/resource_names.h"

struct err;

#define REPLICA_SHAPE_BYTES_MAX ((size_t)256 * 1024)
#define REPLICA_SPEC_BYTES_MAX  ((size_t)512 * 1024) // JSON of a PodSpec of which the rules are read
#define REPLICA_PRINT_BYTES     32                   // SHA-256

// Rules of the scheduler that capacity_fit() does not count: with one of them, fewer replicas may fit than it reports.
enum uncounted_rule {
	UNCOUNTED_POD_AFFINITY = 1 << 0, // or anti-affinity, if required
	UNCOUNTED_TOPOLOGY = 1 << 1,     // topologySpreadConstraints with DoNotSchedule
	UNCOUNTED_VOLUMES = 1 << 2,      // persistentVolumeClaim, which may be bound to a zone or a node
	UNCOUNTED_HOST_PORTS = 1 << 3,
	UNCOUNTED_CONSTRAINTS = 1 << 4, // constraints of a resource claim: devices that must share an attribute
};
#define UNCOUNTED_RULES 5

#define REPLICA_CLAIMS_MAX    16 // claims of one pod
#define REPLICA_SELECTORS_MAX 16 // selectors in all requests of its claims

// A claim of a PodSpec: exactly one is set.
struct replica_claim {
	const char *template_name; // ResourceClaimTemplate: each replica gets a claim of its own
	const char *claim_name;    // ResourceClaim that all replicas share
};
// Returns the name of the rule with this bit, as in a PodSpec.
const char *uncounted_rule_name(int bit);

struct replica_shape {
	struct arena arena;
	struct resource_names *names; // names of the requests; NULL: none
	struct resource_vector requests;
	struct node_rule rule;
	// SHA-256 of what `rule` was read from: a tenant cannot give a rule the print of another.
	unsigned char rule_print[REPLICA_PRINT_BYTES];
	int uncounted;                                   // enum uncounted_rule
	struct replica_claim claims[REPLICA_CLAIMS_MAX]; // claims of dynamic resources; see replica_shape_add_claim
	size_t n_claims;
	struct {
		int id;                 // the device class as a resource, among `requests`
		const char *expression; // CEL
	} selectors[REPLICA_SELECTORS_MAX];
	size_t n_selectors;
};

// Reads the PodSpec of a policy's pod template (use: RESOURCE_NEEDED), or of a pod (RESOURCE_REQUESTED). `names` must
// stay valid until replica_shape_done. Returns 0, or -1 and *e: ERR_INPUT or ERR_LIMIT names the field from which no
// shape can be read. Call replica_shape_done in any case.
int replica_shape_read(struct replica_shape *shape, struct resource_names *names, enum resource_use use,
                       struct json_span pod_spec, struct err *e);
void replica_shape_done(struct replica_shape *shape);
// Adds the devices that a ResourceClaimTemplate of resource.k8s.io/v1 requests to the shape, as amounts of their device
// classes. Returns 0, or -1 and *e: ERR_INPUT, ERR_LIMIT, ERR_UNSUPPORTED for a request that cannot be counted.
int replica_shape_add_claim(struct replica_shape *shape, struct resource_names *names, struct json_span claim_template,
                            struct err *e);

// Returns how many whole GPUs a replica requests; 0 where that is unknown: it requests none, parts of GPUs, or a device
// class that may be something else.
int32_t replica_shape_gpus(const struct replica_shape *shape, const struct resource_names *names);

#endif
