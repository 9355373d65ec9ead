// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/k8s_user.h"

#include "base/arena.h"
#include "base/base.h"
#include "base/json/json_write.h"

struct extra {
	const char *key, *value;
};

struct k8s_user {
	int refs;
	struct arena arena;
	const char *name, *uid;
	const char *groups[K8S_USER_GROUPS_MAX];
	size_t n_groups;
	struct extra extras[K8S_USER_EXTRAS_MAX];
	size_t n_extras;
};

static int keep(struct k8s_user *u, const char *text, const char **ret_copy, struct err *e)
{
	*ret_copy = arena_strdup(&u->arena, text);
	return *ret_copy ? 0 : err_set(e, ERR_LIMIT, "the names of a user exceed %d bytes", K8S_USER_BYTES_MAX);
}

struct k8s_user *k8s_user_new(const char *name, const char *uid, struct err *e)
{
	if (!name[0]) {
		err_set(e, ERR_INPUT, "the user has no name");
		return NULL;
	}
	struct k8s_user *u = err_calloc(sizeof *u, e);
	if (!u)
		return NULL;
	u->refs = 1;
	arena_init(&u->arena, K8S_USER_BYTES_MAX);
	if (keep(u, name, &u->name, e) < 0 || keep(u, uid, &u->uid, e) < 0) {
		k8s_user_unref(u);
		return NULL;
	}
	return u;
}

int k8s_user_add_group(struct k8s_user *u, const char *group, struct err *e)
{
	if (k8s_user_has_group(u, group))
		return 0;
	if (u->n_groups == K8S_USER_GROUPS_MAX)
		return err_set(e, ERR_LIMIT, "the user has more than %d groups", K8S_USER_GROUPS_MAX);
	return keep(u, group, &u->groups[u->n_groups++], e);
}

int k8s_user_add_extra(struct k8s_user *u, const char *key, const char *value, struct err *e)
{
	if (u->n_extras == K8S_USER_EXTRAS_MAX)
		return err_set(e, ERR_LIMIT, "the user has more than %d extra values", K8S_USER_EXTRAS_MAX);
	struct extra *x = &u->extras[u->n_extras++];
	return keep(u, key, &x->key, e) < 0 || keep(u, value, &x->value, e) < 0 ? -1 : 0;
}

struct k8s_user *k8s_user_ref(struct k8s_user *u)
{
	u->refs++;
	return u;
}

void k8s_user_unref(struct k8s_user *u)
{
	if (!u || --u->refs > 0)
		return;
	arena_done(&u->arena);
	free(u);
}

const char *k8s_user_name(const struct k8s_user *u)
{
	return u->name;
}

bool k8s_user_has_group(const struct k8s_user *u, const char *group)
{
	return text_is_one_of(group, (const char *const *)u->groups, u->n_groups);
}

static bool key_came_before(const struct k8s_user *u, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(u->extras[k].key, u->extras[i].key) == 0)
			return true;
	return false;
}

static void write_extra(const struct k8s_user *u, struct json_writer *w)
{
	json_write_member_object(w, "extra");
	for (size_t i = 0; i < u->n_extras; i++) {
		if (key_came_before(u, i))
			continue;
		json_write_member_array(w, u->extras[i].key);
		for (size_t k = i; k < u->n_extras; k++)
			if (strcmp(u->extras[k].key, u->extras[i].key) == 0)
				json_write_str(w, u->extras[k].value);
		json_write_array_end(w);
	}
	json_write_object_end(w);
}

void k8s_user_write(const struct k8s_user *u, struct json_writer *w)
{
	json_write_member_str(w, "user", u->name);
	if (u->uid[0]) {
		json_write_member_str(w, "uid", u->uid);
	}
	json_write_member_array(w, "groups");
	for (size_t i = 0; i < u->n_groups; i++)
		json_write_str(w, u->groups[i]);
	json_write_array_end(w);
	if (u->n_extras > 0)
		write_extra(u, w);
}
