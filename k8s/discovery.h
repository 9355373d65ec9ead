// SPDX-License-Identifier: Apache-2.0
// What a kind's URL looks like: plural, namespaced or not, has a scale subresource. Learnt once per group and version.
#ifndef GPUSCALE_K8S_DISCOVERY_H
#define GPUSCALE_K8S_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>

struct clock;
struct discovery;
struct err;
struct k8s_client;

#define DISCOVERY_NAME_BYTES         64
#define DISCOVERY_GROUP_BYTES        320   // "group/version"
#define DISCOVERY_GROUPS_MAX         256   // group/versions remembered by one client
#define DISCOVERY_RESOURCES_MAX      1024  // kinds of one group/version
#define DISCOVERY_UNKNOWN_AGE_MAX_MS 30000 // an unknown kind is asked for again when the list is older

struct k8s_resource {
	char kind[DISCOVERY_NAME_BYTES], plural[DISCOVERY_NAME_BYTES];
	bool is_namespaced, has_scale;
};
struct k8s_resource_list {
	struct k8s_resource *items; // malloc'ed
	size_t n;
};

// Reads an APIResourceList. Entries whose names are too long to be real are left out. Caller frees ret_list->items.
int discovery_decode(const char *text, size_t len, struct k8s_resource_list *ret_list, struct err *e);

struct discovery *discovery_new(struct k8s_client *c, const struct clock *clock, struct err *e);
void discovery_free(struct discovery *d);
// The client's own.
struct discovery *k8s_client_discovery(struct k8s_client *c);

// From memory; NULL when not learnt yet, or not there. Valid until the loop runs.
const struct k8s_resource *discovery_find(const struct discovery *d, const char *api_version, const char *kind);
typedef void discovery_done_fn(void *arg, const struct k8s_resource *resource, const struct err *error);
// Asks the server (lookups of one group/version share a request). done is called once, from the loop. ERR_NOT_FOUND
// when the server has no such kind, or the kind has no scale subresource, naming the kinds of that group that do.
int discovery_fetch(struct discovery *d, const char *api_version, const char *kind, discovery_done_fn *done, void *arg,
                    struct err *e);

#endif
