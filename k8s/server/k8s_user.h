// SPDX-License-Identifier: Apache-2.0
// The user of a request, as in the API server's reviews: name, groups, extra. Immutable after its creation, and shared
// by reference.
#ifndef GPUSCALE_K8S_SERVER_K8S_USER_H
#define GPUSCALE_K8S_SERVER_K8S_USER_H

#include <stdbool.h>

struct err;
struct json_writer;
struct k8s_user;

#define K8S_USER_BYTES_MAX      65536 // size of all its texts
#define K8S_USER_GROUPS_MAX     256
#define K8S_USER_EXTRAS_MAX     256 // values, of all keys together
#define K8S_GROUP_AUTHENTICATED "system:authenticated"

// Creates a user with one reference. name must not be empty. Returns NULL and *e: ERR_INPUT, ERR_LIMIT, ERR_INTERNAL.
struct k8s_user *k8s_user_new(const char *name, const char *uid, struct err *e);
// Call both only before the user is shared. They return 0, or -1 and *e: ERR_LIMIT.
int k8s_user_add_group(struct k8s_user *u, const char *group, struct err *e); // a duplicate is ignored
int k8s_user_add_extra(struct k8s_user *u, const char *key, const char *value, struct err *e);
struct k8s_user *k8s_user_ref(struct k8s_user *u);
void k8s_user_unref(struct k8s_user *u); // NULL is fine

const char *k8s_user_name(const struct k8s_user *u);
bool k8s_user_has_group(const struct k8s_user *u, const char *group);
// Writes the members user, uid, groups and extra of the spec of a SubjectAccessReview into the open object.
void k8s_user_write(const struct k8s_user *u, struct json_writer *w);

#endif
