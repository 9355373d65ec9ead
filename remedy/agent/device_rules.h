// SPDX-License-Identifier: Apache-2.0
// DeviceTaintRules of the remediation agent, for GPUs that dynamic resource allocation serves: which device of which
// ResourceSlice a GPU is, and which rules of the agent exist. Two watches keep both up to date.
#ifndef GPUSCALE_REMEDY_AGENT_DEVICE_RULES_H
#define GPUSCALE_REMEDY_AGENT_DEVICE_RULES_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct device_rules;
struct err;
struct k8s_client;

#define DEVICE_RULES_PATH "/apis/resource.k8s.io/v1beta2/devicetaintrules"

// A rule of the agent. Valid until the loop runs.
struct device_rule {
	const char *name, *uid;
	const char *node, *gpu; // texts of its annotations
};

struct device_rules_options {
	struct k8s_client *client;                            // not owned
	void (*on_error)(void *arg, const struct err *error); // error of a watch; NULL: both work
	void *arg;
};

// Starts the watches. Returns NULL and *e on failure.
struct device_rules *device_rules_new(const struct device_rules_options *options, struct err *e);
// Call before the client is freed. NULL is fine.
void device_rules_free(struct device_rules *d);

// Whether the slices and the rules are known.
bool device_rules_are_synced(const struct device_rules *d);
// Whether the first list of both has completed, with or without success.
bool device_rules_are_answered(const struct device_rules *d);
// Whether the GPU is exactly one device of the node's ResourceSlices: the attribute uuid names it, and no other device
// is a part of it.
bool device_rules_serve(const struct device_rules *d, const char *node, const char *gpu);
// Iterates over the nodes whose ResourceSlices have devices with a UUID, some more than once: *at == NULL starts.
// Returns NULL at the end.
const char *device_rules_next_node(const struct device_rules *d, const void **at);
// Iterates over the rules of the agent: *at == NULL starts. Returns false at the end.
bool device_rules_next(const struct device_rules *d, const void **at, struct device_rule *ret_rule);
bool device_rules_has(const struct device_rules *d, const char *node, const char *gpu);

// Appends the rule that taints the GPU, with the fault as value, to `body`. The name is the same each time, so a rule
// exists at most once. Returns -1 when the GPU is not one device.
int device_rules_write(const struct device_rules *d, const char *node, const char *gpu, const char *fault,
                       struct buf *body);
// Takes over the rule that the API server returned, or forgets the one called `name` that it deleted.
void device_rules_take(struct device_rules *d, const char *json, size_t len);
void device_rules_forget(struct device_rules *d, const char *name);

#endif
