// SPDX-License-Identifier: Apache-2.0
#include "k8s/server/access_review.h"

#include "base/base.h"
#include "base/json/json_read.h"
#include "base/json/json_write.h"
#include "k8s/server/k8s_user.h"

void token_review_write(struct buf *out, const char *token)
{
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{apiVersion:%s,kind:%s,spec:{token:%s}}", "authentication.k8s.io/v1", "TokenReview",
	                  token);
}

void subject_access_review_write(struct buf *out, const struct k8s_user *user,
                                 const struct access_attributes *attributes)
{
	const struct access_attributes *a = attributes;
	struct json_writer w;
	json_write_init(&w, out, 0);
	json_write_format(&w, "{apiVersion:%s,kind:%s,spec:{", "authorization.k8s.io/v1", "SubjectAccessReview");
	k8s_user_write(user, &w);
	if (!a->resource) {
		json_write_format(&w, "nonResourceAttributes:{verb:%s,path:%s}}}", a->verb, a->path);
		return;
	}
	json_write_format(&w, "resourceAttributes:{verb:%s,group:%s,version:%s,resource:%s,namespace:%s", a->verb,
	                  a->group, a->version, a->resource, a->namespace_name);
	if (a->name)
		json_write_member_str(&w, "name", a->name);
	if (a->subresource)
		json_write_member_str(&w, "subresource", a->subresource);
	json_write_format(&w, "}}}");
}

// ---- responses ----

// The status of a review; NULL and *e when there is none.
static const cJSON *status_of(const cJSON *root, const char *kind, struct err *e)
{
	const cJSON *status = json_get(root, "status");
	if (strcmp(json_get_str(root, "kind", ""), kind) == 0 && cJSON_IsObject(status))
		return status;
	err_set(e, ERR_PROTOCOL, "expected a %s with a status, got kind \"%.60s\"", kind,
	        json_get_str(root, "kind", ""));
	return NULL;
}

// An absent boolean is false: the API leaves false out.
static int read_bool(const cJSON *o, const char *key, struct err *e)
{
	const cJSON *item = json_get(o, key);
	if (!item || cJSON_IsFalse(item))
		return 0;
	return cJSON_IsTrue(item) ? 1 : err_set(e, ERR_PROTOCOL, "status.%s is not true or false", key);
}

static int add_groups(struct k8s_user *u, const cJSON *groups, struct err *e)
{
	const cJSON *group;
	if (!json_may_be(groups, cJSON_IsArray))
		return err_set(e, ERR_PROTOCOL, "groups is not a list");
	cJSON_ArrayForEach(group, groups)
	{
		if (!cJSON_IsString(group))
			return err_set(e, ERR_PROTOCOL, "a group is not a string");
		if (k8s_user_add_group(u, group->valuestring, e) < 0)
			return -1;
	}
	return k8s_user_add_group(u, K8S_GROUP_AUTHENTICATED, e);
}

static int add_extra(struct k8s_user *u, const cJSON *extra, struct err *e)
{
	const cJSON *values, *value;
	if (!json_may_be(extra, cJSON_IsObject)) // the items of a list have no keys
		return err_set(e, ERR_PROTOCOL, "extra is not a map");
	cJSON_ArrayForEach(values, extra)
	{
		if (!json_may_be(values, cJSON_IsArray))
			return err_set(e, ERR_PROTOCOL, "extra values are not a list");
		cJSON_ArrayForEach(value, values)
		{
			if (!cJSON_IsString(value))
				return err_set(e, ERR_PROTOCOL, "an extra value is not a string");
			if (k8s_user_add_extra(u, values->string, value->valuestring, e) < 0)
				return -1;
		}
	}
	return 0;
}

static int read_user(const cJSON *user, struct k8s_user **ret_user, struct err *e)
{
	if (!json_may_be(json_get(user, "uid"), cJSON_IsString))
		return err_set(e, ERR_PROTOCOL, "uid is not a string");
	struct k8s_user *u = k8s_user_new(json_get_str(user, "username", ""), json_get_str(user, "uid", ""), e);
	if (!u)
		return -1;
	if (add_groups(u, json_get(user, "groups"), e) < 0 || add_extra(u, json_get(user, "extra"), e) < 0) {
		k8s_user_unref(u);
		return -1;
	}
	*ret_user = u;
	return 1;
}

int token_review_read(const char *text, size_t len, struct k8s_user **ret_user, struct err *e)
{
	*ret_user = NULL;
	cJSON *root = json_read(text, len, e);
	const cJSON *status = root ? status_of(root, "TokenReview", e) : NULL;
	int rc = status ? read_bool(status, "authenticated", e) : -1;
	if (rc == 1)
		rc = read_user(json_get(status, "user"), ret_user, e);
	cJSON_Delete(root);
	return rc < 0 ? err_wrap(e, "answer to a token review") : rc;
}

int subject_access_review_read(const char *text, size_t len, char reason[ACCESS_REASON_BYTES], struct err *e)
{
	reason[0] = '\0';
	cJSON *root = json_read(text, len, e);
	const cJSON *status = root ? status_of(root, "SubjectAccessReview", e) : NULL;
	int allowed = status ? read_bool(status, "allowed", e) : -1;
	int denied = allowed >= 0 ? read_bool(status, "denied", e) : -1;
	if (denied >= 0) {
		const char *text_of_reason = json_get_str(status, "reason", "");
		text_show(reason, ACCESS_REASON_BYTES, text_of_reason, strlen(text_of_reason));
	}
	cJSON_Delete(root);
	return denied < 0 ? err_wrap(e, "answer to an access review") : allowed && !denied;
}
