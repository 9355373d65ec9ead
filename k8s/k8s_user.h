// SPDX-License-Identifier: Apache-2.0
// Who makes a request, as the API server's reviews know people and programs: name, groups, extra. Immutable once made,
// and shared by reference.
#ifndef GPUSCALE_K8S_K8S_USER_H
#define GPUSCALE_K8S_K8S_USER_H

#include <stdbool.h>
#include <stddef.h>

struct err;
struct json_writer;
struct k8s_user;

#define K8S_USER_BYTES_MAX      65536 // of all its texts
#define K8S_USER_GROUPS_MAX     256
#define K8S_USER_EXTRAS_MAX     256 // values, of all keys together
#define K8S_GROUP_AUTHENTICATED "system:authenticated"

// name must not be empty. NULL and *e past a ceiling, or when memory ends.
struct k8s_user *k8s_user_new(const char *name, const char *uid, struct err *e);
// Both only before the user is shared. -1 and *e past a ceiling.
int k8s_user_add_group(struct k8s_user *u, const char *group, struct err *e); // one that is there already is left out
int k8s_user_add_extra(struct k8s_user *u, const char *key, const char *value, struct err *e);
struct k8s_user *k8s_user_ref(struct k8s_user *u);
void k8s_user_unref(struct k8s_user *u); // NULL is fine

const char *k8s_user_name(const struct k8s_user *u);
bool k8s_user_has_group(const struct k8s_user *u, const char *group);
// The members user, uid, groups and extra of the spec of a SubjectAccessReview, inside the object that is open.
void k8s_user_write(const struct k8s_user *u, struct json_writer *w);

#endif
