// SPDX-License-Identifier: Apache-2.0
#include "k8s/client/discovery.h"

#include <utlist.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/hash_table.h"
#include "base/http/http_client.h"
#include "base/json/json_path.h"
#include "base/json/json_read.h"
#include "k8s/client/k8s_request.h"
#include "k8s/targets/workload_kind.h"

#define KINDS_SHOWN_BYTES 240

struct waiter {
	struct waiter *prev, *next;
	char kind[DISCOVERY_NAME_BYTES];
	bool needs_scale;
	discovery_done_fn *done;
	void *arg;
};

struct group {
	UT_hash_handle hh; // by api_version
	char api_version[DISCOVERY_GROUP_BYTES];
	struct k8s_resource_list list; // valid when is_known
	bool is_known, is_absent;      // the server has the group; does not have it. Neither: no reply yet
	bool is_asking, is_answering;  // while true, must not be freed
	int absent_code;               // HTTP status
	int64_t learnt_mono_ms, used_mono_ms;
	char asked_by[DISCOVERY_NAMESPACE_BYTES]; // the namespace that it counts for while it is unknown
	struct waiter *waiters;
	struct discovery *owner;
};

struct discovery {
	struct k8s_client *client;
	const struct clock *clock;
	const char *server;
	struct group *groups; // hash
};

// ---- decoding ----

// Checks that the reply is an APIResourceList. The resources of a group without any may be null.
static int check_list(const cJSON *root, struct err *e)
{
	const cJSON *resources = json_get(root, "resources"), *item;
	if (strcmp(json_get_str(root, "kind", ""), "APIResourceList") != 0)
		return err_set(e, ERR_PROTOCOL, "expected an APIResourceList, got kind \"%.60s\"",
		               json_get_str(root, "kind", ""));
	if (!cJSON_IsArray(resources) && !cJSON_IsNull(resources))
		return err_set(e, ERR_PROTOCOL, "the resources of an APIResourceList are not a list");
	int count = cJSON_GetArraySize(resources);
	if (count > DISCOVERY_RESOURCES_MAX)
		return err_set(e, ERR_LIMIT, "%d resources in one API group, the ceiling is %d", count,
		               DISCOVERY_RESOURCES_MAX);
	cJSON_ArrayForEach(item, resources)
	{
		const cJSON *scope = json_get(item, "namespaced");
		if (!json_get_str(item, "name", NULL) || !json_get_str(item, "kind", NULL) ||
		    (scope && !cJSON_IsBool(scope)))
			return err_set(e, ERR_PROTOCOL, "an item of an APIResourceList is not a resource");
	}
	return 0;
}

static bool copy_name(char out[DISCOVERY_NAME_BYTES], const char *name, size_t len)
{
	if (len == 0 || len >= DISCOVERY_NAME_BYTES)
		return false;
	memcpy(out, name, len);
	out[len] = '\0';
	return true;
}

// A plural becomes part of URLs: lower-case letters, digits and '-' or '.', no character that would change the path.
static bool is_plural(const char *name)
{
	return name[0] && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == strlen(name) && name[0] != '.';
}

int discovery_decode(const char *text, size_t len, struct k8s_resource_list *ret_list, struct err *e)
{
	*ret_list = (struct k8s_resource_list){0};
	cJSON *root = json_read(text, len, e);
	if (!root)
		return -1;
	const cJSON *resources = json_get(root, "resources"), *item;
	int rc = -1;
	if (check_list(root, e) < 0)
		goto out;
	ret_list->items = calloc((size_t)cJSON_GetArraySize(resources) + 1, sizeof *ret_list->items);
	if (!ret_list->items) {
		err_no_memory(e);
		goto out;
	}
	cJSON_ArrayForEach(item, resources)
	{
		const char *name = json_get_str(item, "name", ""), *kind = json_get_str(item, "kind", "");
		struct k8s_resource *r = &ret_list->items[ret_list->n];
		if (!is_plural(name) || !copy_name(r->plural, name, strlen(name)) ||
		    !copy_name(r->kind, kind, strlen(kind)))
			continue; // subresources ("pods/log") among them
		r->is_namespaced = cJSON_IsTrue(json_get(item, "namespaced"));
		ret_list->n++;
	}
	cJSON_ArrayForEach(item, resources)
	{
		const char *name = json_get_str(item, "name", ""), *slash = strchr(name, '/');
		if (!slash || strcmp(slash, "/scale") != 0)
			continue;
		for (size_t i = 0; i < ret_list->n; i++) {
			struct k8s_resource *r = &ret_list->items[i];
			if (strlen(r->plural) == (size_t)(slash - name) &&
			    strncmp(r->plural, name, (size_t)(slash - name)) == 0)
				r->has_scale = true;
		}
	}
	rc = 0;
out:
	cJSON_Delete(root);
	if (rc < 0) {
		free(ret_list->items);
		*ret_list = (struct k8s_resource_list){0};
	}
	return rc;
}

// ---- lookup ----

static const struct k8s_resource *find_kind(const struct group *g, const char *kind)
{
	for (size_t i = 0; i < g->list.n; i++)
		if (strcmp(g->list.items[i].kind, kind) == 0)
			return &g->list.items[i];
	return NULL;
}

static struct group *find_group(const struct discovery *d, const char *api_version)
{
	struct group *g;
	HASH_FIND_STR(d->groups, api_version, g);
	return g;
}

const struct k8s_resource *discovery_find(const struct discovery *d, const char *api_version, const char *kind,
                                          bool needs_scale)
{
	struct group *g = find_group(d, api_version);
	const struct k8s_resource *r = g && g->is_known ? find_kind(g, kind) : NULL;
	if (!r || (needs_scale && !r->has_scale))
		return NULL;
	g->used_mono_ms = clock_mono_ms(d->clock);
	return r;
}

// Reports the resource, or why there is none.
static const struct k8s_resource *classify(const struct group *g, const char *kind, bool needs_scale, struct err *e)
{
	const struct k8s_resource *r = find_kind(g, kind);
	if (r && (r->has_scale || !needs_scale))
		return r;
	const char *names[DISCOVERY_RESOURCES_MAX];
	size_t n_names = 0;
	struct buf shown;
	buf_init(&shown, KINDS_SHOWN_BYTES);
	for (size_t i = 0; i < g->list.n; i++) {
		if (!g->list.items[i].has_scale)
			continue;
		buf_printf(&shown, "%s%s", n_names ? ", " : "", g->list.items[i].kind);
		names[n_names++] = g->list.items[i].kind;
	}
	const char *closest = r ? NULL : num_closest_name(kind, names, n_names);
	const char *path = workload_kind_find(g->api_version, kind, NULL)->path;
	char hint[DISCOVERY_NAME_BYTES + JSON_PATH_BYTES_MAX] = "";
	if (closest)
		snprintf(hint, sizeof hint, "; did you mean \"%s\"?", closest);
	else if (r)
		snprintf(hint, sizeof hint, ": name the place of its replicas in scaleTargetRef.path, such as %s",
		         path ? path : "spec.replicas");
	err_set(e, ERR_NOT_FOUND, "%s %s \"%s\"%s%s%s %s", g->api_version,
	        r ? "has no scale subresource for" : "has no kind", kind, hint, closest ? "" : ".",
	        n_names ? " Kinds with a scale subresource:" : " None of its kinds has a scale subresource",
	        buf_str(&shown));
	buf_done(&shown);
	return NULL;
}

static void answer_waiters(struct group *g, const struct err *error)
{
	// Detached first: a callback may look up again.
	struct waiter *list = g->waiters, *w, *next;
	g->waiters = NULL;
	DL_FOREACH_SAFE(list, w, next)
	{
		struct err e = {0};
		const struct k8s_resource *r = NULL;
		if (error)
			e = *error;
		else
			r = classify(g, w->kind, w->needs_scale, &e);
		discovery_done_fn *done = w->done;
		void *arg = w->arg;
		free(w);
		done(arg, r, r ? NULL : &e);
	}
}

static int set_absent_error(const struct group *g, struct err *e)
{
	return err_set_code(
	        e, ERR_NOT_FOUND, g->absent_code,
	        "the server has no API %s: check apiVersion, or install the CustomResourceDefinition; is %s a "
	        "Kubernetes API server?",
	        g->api_version, g->owner->server);
}

static void group_free(struct group *g)
{
	HASH_DEL(g->owner->groups, g);
	free(g->list.items);
	free(g);
}

static void set_absent(struct group *g, int code)
{
	free(g->list.items);
	g->list = (struct k8s_resource_list){0};
	g->is_known = false;
	g->is_absent = true;
	g->absent_code = code;
}

static void on_list(void *arg, const struct http_response *response, const struct err *error)
{
	struct group *g = arg;
	struct err e = {0};
	struct k8s_resource_list list;
	int rc = -1;
	if (error && error->kind == ERR_NOT_FOUND) {
		set_absent(g, error->code);
		set_absent_error(g, &e);
	} else if (error) {
		e = *error;
		err_wrap(&e, "discovery of %s", g->api_version);
	} else if (discovery_decode(response->body, response->body_len, &list, &e) < 0) {
		err_wrap(&e, "discovery of %s", g->api_version);
	} else {
		free(g->list.items);
		g->list = list;
		g->is_known = true;
		g->is_absent = false;
		rc = 0;
	}
	g->is_asking = false;
	if (g->is_absent || rc == 0)
		g->learnt_mono_ms = g->used_mono_ms = clock_mono_ms(g->owner->clock);
	g->is_answering = true;
	answer_waiters(g, rc == 0 ? NULL : &e);
	g->is_answering = false;
	// The lookup failed; the next one sends a request again.
	if (!g->is_known && !g->is_absent && !g->is_asking)
		group_free(g);
}

// ---- the public face ----

struct discovery *discovery_new(struct k8s_client *c, const struct clock *clock, const char *server, struct err *e)
{
	struct discovery *d = err_calloc(sizeof *d, e);
	if (!d)
		return NULL;
	d->client = c;
	d->clock = clock;
	d->server = server;
	return d;
}

void discovery_free(struct discovery *d)
{
	struct group *g, *next;
	if (!d)
		return;
	HASH_ITER(hh, d->groups, g, next)
	{
		group_free(g);
	}
	free(d);
}

size_t discovery_count(const struct discovery *d)
{
	return HASH_COUNT(d->groups);
}

static bool is_in_use(const struct group *g)
{
	return g->is_asking || g->is_answering;
}

static bool is_expired(const struct group *g, int64_t now)
{
	if (is_in_use(g))
		return false;
	return g->is_known ? now - g->used_mono_ms >= DISCOVERY_UNUSED_AGE_MAX_MS
	                   : now - g->learnt_mono_ms >= DISCOVERY_ABSENT_AGE_MAX_MS;
}

void discovery_forget(struct discovery *d)
{
	struct group *g, *next;
	int64_t now = clock_mono_ms(d->clock);
	HASH_ITER(hh, d->groups, g, next)
	{
		if (is_expired(g, now))
			group_free(g);
	}
}

static int check_version(const char *api_version, struct err *e)
{
	size_t len = strlen(api_version);
	const char *slash = strchr(api_version, '/');
	if (len == 0 || len >= DISCOVERY_GROUP_BYTES || api_version[0] == '/' || api_version[len - 1] == '/' ||
	    (slash && strchr(slash + 1, '/')) || strstr(api_version, "..") ||
	    strspn(api_version, "abcdefghijklmnopqrstuvwxyz0123456789-./") != len)
		return err_set(e, ERR_INPUT, "apiVersion \"%.60s\" is not GROUP/VERSION (apps/v1), or v1", api_version);
	return 0;
}

// Limits the unknown groups that a namespace requests.
static int check_share(const struct discovery *d, const char *namespace_name, struct err *e)
{
	const struct group *g, *one = NULL;
	int n = 0;
	for (g = d->groups; g; g = g->hh.next) {
		if (!g->is_known && strcmp(g->asked_by, namespace_name) == 0) {
			one = g;
			n++;
		}
	}
	if (n < DISCOVERY_NAMESPACE_UNKNOWN_MAX)
		return 0;
	return err_set(e, ERR_LIMIT,
	               "policies of namespace \"%s\" name %d other apiVersions that the server is not known to have "
	               "(%s is one), and no more are looked up: correct the apiVersion of their targets",
	               namespace_name, n, one->api_version);
}

// Evicts one group: absent before known, then the least recently used.
static int make_room(struct discovery *d, struct err *e)
{
	struct group *g, *victim = NULL;
	if (HASH_COUNT(d->groups) < DISCOVERY_GROUPS_MAX)
		return 0;
	for (g = d->groups; g; g = g->hh.next) {
		if (is_in_use(g))
			continue;
		if (!victim || g->is_known < victim->is_known ||
		    (g->is_known == victim->is_known && g->used_mono_ms < victim->used_mono_ms))
			victim = g;
	}
	if (!victim)
		return err_set(e, ERR_LIMIT, "%d API groups are being looked up, and no more at once",
		               DISCOVERY_GROUPS_MAX);
	group_free(victim);
	return 0;
}

static struct group *add_group(struct discovery *d, const char *api_version, const char *namespace_name, struct err *e)
{
	if (check_version(api_version, e) < 0)
		return NULL;
	discovery_forget(d);
	if (check_share(d, namespace_name, e) < 0 || make_room(d, e) < 0)
		return NULL;
	struct group *g = err_calloc(sizeof *g, e);
	if (!g)
		return NULL;
	snprintf(g->api_version, sizeof g->api_version, "%s", api_version);
	snprintf(g->asked_by, sizeof g->asked_by, "%s", namespace_name);
	g->owner = d;
	HASH_ADD_STR(d->groups, api_version, g);
	return g;
}

static int request_list(struct group *g, struct err *e)
{
	char path[DISCOVERY_GROUP_BYTES + 16];
	snprintf(path, sizeof path, "%s%s", strchr(g->api_version, '/') ? "/apis/" : "/api/", g->api_version);
	if (k8s_request(g->owner->client, "GET", path, NULL, NULL, 0, on_list, g, e) < 0)
		return -1;
	g->is_asking = true;
	return 0;
}

// A kind that is known not to exist costs no request per tick. Returns 1 when the server must be queried.
static int answer_from_memory(const struct group *g, const char *kind, bool needs_scale, struct err *e)
{
	struct err why = {0};
	int64_t age_ms = clock_mono_ms(g->owner->clock) - g->learnt_mono_ms;
	if (g->is_asking)
		return 1;
	if (g->is_absent && age_ms < DISCOVERY_ABSENT_AGE_MAX_MS)
		return set_absent_error(g, e);
	if (!g->is_known || age_ms >= DISCOVERY_UNKNOWN_AGE_MAX_MS || classify(g, kind, needs_scale, &why))
		return 1;
	if (e)
		*e = why;
	return -1;
}

int discovery_fetch(struct discovery *d, const char *api_version, const char *kind, bool needs_scale,
                    const char *namespace_name, discovery_done_fn *done, void *arg, struct err *e)
{
	char name[DISCOVERY_NAME_BYTES];
	if (!copy_name(name, kind, strlen(kind)))
		return err_set(e, ERR_INPUT, "kind \"%.40s\" is empty or longer than %d bytes", kind,
		               DISCOVERY_NAME_BYTES - 1);
	struct group *g = find_group(d, api_version);
	if (g && answer_from_memory(g, kind, needs_scale, e) < 0)
		return -1;
	if (!g)
		g = add_group(d, api_version, namespace_name, e);
	if (!g)
		return -1;
	struct waiter *w = calloc(1, sizeof *w);
	int rc = w ? 0 : err_no_memory(e);
	if (rc == 0 && !g->is_asking)
		rc = request_list(g, e);
	if (rc < 0) {
		free(w);
		if (!g->is_known && !g->is_absent && !is_in_use(g))
			group_free(g);
		return -1;
	}
	memcpy(w->kind, name, sizeof name);
	w->needs_scale = needs_scale;
	w->done = done;
	w->arg = arg;
	DL_APPEND(g->waiters, w);
	return 0;
}
