// SPDX-License-Identifier: Apache-2.0
// Finds how to address a kind: its plural, whether it is namespaced, whether it has a scale subresource. Each group and
// version is fetched once. Policy authors choose groups freely, so limits keep one namespace from filling the memory
// for the others.
#ifndef GPUSCALE_K8S_CLIENT_DISCOVERY_H
#define GPUSCALE_K8S_CLIENT_DISCOVERY_H

#include <stdbool.h>
#include <stddef.h>

struct clock;
struct discovery;
struct err;
struct k8s_client;

#define DISCOVERY_NAME_BYTES         64
#define DISCOVERY_NAMESPACE_BYTES    256
#define DISCOVERY_GROUP_BYTES        320     // "group/version"
#define DISCOVERY_GROUPS_MAX         1024    // group/versions remembered by one client; the least used is evicted
#define DISCOVERY_RESOURCES_MAX      1024    // kinds of one group/version
#define DISCOVERY_UNKNOWN_AGE_MAX_MS 30000   // an unknown kind is looked up again when the list is older
#define DISCOVERY_ABSENT_AGE_MAX_MS  5000    // the same for a group that the server does not have
#define DISCOVERY_UNUSED_AGE_MAX_MS  3600000 // an unused group is removed after this time
// Groups not known to exist that one namespace may look up at once.
#define DISCOVERY_NAMESPACE_UNKNOWN_MAX 32

struct k8s_resource {
	char kind[DISCOVERY_NAME_BYTES], plural[DISCOVERY_NAME_BYTES];
	bool is_namespaced, has_scale;
};
struct k8s_resource_list {
	struct k8s_resource *items; // malloc'ed
	size_t n;
};

// Decodes an APIResourceList. Entries with names of more than 63 bytes are left out. The caller frees ret_list->items.
// Returns 0, or -1 and *e: ERR_PROTOCOL, ERR_LIMIT, ERR_INTERNAL.
int discovery_decode(const char *text, size_t len, struct k8s_resource_list *ret_list, struct err *e);

// Creates the discovery of a client; the client calls this. server: its URL, for messages; not copied. Returns NULL and
// *e when memory is exhausted.
struct discovery *discovery_new(struct k8s_client *c, const struct clock *clock, const char *server, struct err *e);
void discovery_free(struct discovery *d);

// Returns a resource from memory; NULL when it was not looked up yet or does not exist, or has no scale subresource
// although needs_scale. Valid until the loop runs.
const struct k8s_resource *discovery_find(const struct discovery *d, const char *api_version, const char *kind,
                                          bool needs_scale);
typedef void discovery_done_fn(void *arg, const struct k8s_resource *resource, const struct err *error);
// Looks up a target of `namespace_name` at the server; concurrent lookups of one group/version share a request. done is
// called once, from the loop. ERR_NOT_FOUND when the server does not have the kind, or the kind has no scale
// subresource although needs_scale; the message lists the kinds of that group that do. Such a response is cached for a
// while: the function then returns -1 and *e, and done is not called. ERR_LIMIT, with a message that names the
// namespace, when the namespace looks up too many groups that are not known to exist.
int discovery_fetch(struct discovery *d, const char *api_version, const char *kind, bool needs_scale,
                    const char *namespace_name, discovery_done_fn *done, void *arg, struct err *e);
// Frees groups that have not been used for DISCOVERY_UNUSED_AGE_MAX_MS. Call periodically.
void discovery_forget(struct discovery *d);
size_t discovery_count(const struct discovery *d); // group/versions in memory

#endif
