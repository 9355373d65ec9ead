// SPDX-License-Identifier: Apache-2.0
#include "k8s/discovery.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/http_client.h"
#include "base/json_read.h"
#include "base/num.h"
#include "k8s/k8s_client.h"

#define KINDS_SHOWN_BYTES 240

struct waiter {
	struct waiter *prev, *next;
	char kind[DISCOVERY_NAME_BYTES];
	discovery_done_fn *done;
	void *arg;
};

struct group {
	char api_version[DISCOVERY_GROUP_BYTES];
	struct k8s_resource_list list;
	bool is_known, is_asking;
	int64_t learnt_mono_ms;
	struct waiter *waiters;
	struct discovery *owner;
};

struct discovery {
	struct k8s_client *client;
	const struct clock *clock;
	struct group *groups[DISCOVERY_GROUPS_MAX];
	size_t n_groups;
};

// ---- decoding ----

// Why the reply is no list of resources; 0 when it is one. A group without resources may say null.
static int check_list(const cJSON *root, struct err *e)
{
	const cJSON *resources = json_get(root, "resources"), *item;
	if (strcmp(json_get_str(root, "kind", ""), "APIResourceList") != 0)
		return err_set(e, ERR_PROTOCOL, "expected an APIResourceList, got kind \"%.60s\"",
		               json_get_str(root, "kind", ""));
	if (!cJSON_IsArray(resources) && !cJSON_IsNull(resources))
		return err_set(e, ERR_PROTOCOL, "an APIResourceList whose resources are not a list");
	int count = cJSON_GetArraySize(resources);
	if (count > DISCOVERY_RESOURCES_MAX)
		return err_set(e, ERR_LIMIT, "%d resources in one API group, the ceiling is %d", count,
		               DISCOVERY_RESOURCES_MAX);
	cJSON_ArrayForEach(item, resources)
	{
		const cJSON *scope = json_get(item, "namespaced");
		if (!json_get_str(item, "name", NULL) || !json_get_str(item, "kind", NULL) ||
		    (scope && !cJSON_IsBool(scope)))
			return err_set(e, ERR_PROTOCOL, "an APIResourceList with an item that is no resource");
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

// A plural goes into URLs: lower-case letters, digits and '-' or '.', nothing that would change the path.
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
		err_set(e, ERR_INTERNAL, "out of memory");
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
	for (size_t i = 0; i < d->n_groups; i++)
		if (strcmp(d->groups[i]->api_version, api_version) == 0)
			return d->groups[i];
	return NULL;
}

const struct k8s_resource *discovery_find(const struct discovery *d, const char *api_version, const char *kind)
{
	const struct group *g = find_group(d, api_version);
	const struct k8s_resource *r = g && g->is_known ? find_kind(g, kind) : NULL;
	return r && r->has_scale ? r : NULL;
}

// The resource, or why not.
static const struct k8s_resource *judge(const struct group *g, const char *kind, struct err *e)
{
	const struct k8s_resource *r = find_kind(g, kind);
	if (r && r->has_scale)
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
	char hint[DISCOVERY_NAME_BYTES + 32] = "";
	if (closest)
		snprintf(hint, sizeof hint, "; did you mean \"%s\"?", closest);
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
			r = judge(g, w->kind, &e);
		discovery_done_fn *done = w->done;
		void *arg = w->arg;
		free(w);
		done(arg, r, r ? NULL : &e);
	}
}

static void on_list(void *arg, const struct http_response *response, const struct err *error)
{
	struct group *g = arg;
	struct err e = {0};
	struct k8s_resource_list list;
	g->is_asking = false;
	if (error && error->kind == ERR_NOT_FOUND) {
		err_set_code(
		        &e, ERR_NOT_FOUND, error->code,
		        "the server has no API %s: check apiVersion, or install the CustomResourceDefinition; is %s a "
		        "Kubernetes API server?",
		        g->api_version, k8s_client_server(g->owner->client));
	} else if (error) {
		e = *error;
		err_wrap(&e, "discovery of %s", g->api_version);
	} else if (discovery_decode(response->body, response->body_len, &list, &e) < 0) {
		err_wrap(&e, "discovery of %s", g->api_version);
	} else {
		free(g->list.items);
		g->list = list;
		g->is_known = true;
		g->learnt_mono_ms = clock_mono_ms(g->owner->clock);
		answer_waiters(g, NULL);
		return;
	}
	answer_waiters(g, &e);
}

// ---- the public face ----

struct discovery *discovery_new(struct k8s_client *c, const struct clock *clock, struct err *e)
{
	struct discovery *d = calloc(1, sizeof *d);
	if (!d) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	d->client = c;
	d->clock = clock;
	return d;
}

void discovery_free(struct discovery *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n_groups; i++) {
		free(d->groups[i]->list.items);
		free(d->groups[i]);
	}
	free(d);
}

static struct group *add_group(struct discovery *d, const char *api_version, struct err *e)
{
	size_t len = strlen(api_version);
	const char *slash = strchr(api_version, '/');
	if (len == 0 || len >= DISCOVERY_GROUP_BYTES || api_version[0] == '/' || api_version[len - 1] == '/' ||
	    (slash && strchr(slash + 1, '/')) || strstr(api_version, "..") ||
	    strspn(api_version, "abcdefghijklmnopqrstuvwxyz0123456789-./") != len) {
		err_set(e, ERR_INPUT, "apiVersion \"%.60s\" is not GROUP/VERSION (apps/v1), or v1", api_version);
		return NULL;
	}
	if (d->n_groups == DISCOVERY_GROUPS_MAX) {
		err_set(e, ERR_LIMIT, "more than %d different apiVersions", DISCOVERY_GROUPS_MAX);
		return NULL;
	}
	struct group *g = calloc(1, sizeof *g);
	if (!g) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	memcpy(g->api_version, api_version, len + 1);
	g->owner = d;
	d->groups[d->n_groups++] = g;
	return g;
}

int discovery_fetch(struct discovery *d, const char *api_version, const char *kind, discovery_done_fn *done, void *arg,
                    struct err *e)
{
	struct group *g = find_group(d, api_version);
	if (!g)
		g = add_group(d, api_version, e);
	if (!g)
		return -1;
	struct waiter *w = calloc(1, sizeof *w);
	if (!w)
		return err_set(e, ERR_INTERNAL, "out of memory");
	if (!copy_name(w->kind, kind, strlen(kind))) {
		free(w);
		return err_set(e, ERR_INPUT, "kind \"%.40s\" is empty or longer than %d bytes", kind,
		               DISCOVERY_NAME_BYTES - 1);
	}
	w->done = done;
	w->arg = arg;
	if (!g->is_asking) {
		// A fresh list that lacks the kind answers at once; it must not cost a request per tick.
		bool is_fresh =
		        g->is_known && clock_mono_ms(d->clock) - g->learnt_mono_ms < DISCOVERY_UNKNOWN_AGE_MAX_MS;
		if (is_fresh && !discovery_find(d, api_version, kind)) {
			free(w);
			struct err why = {0};
			judge(g, kind, &why);
			if (e)
				*e = why;
			return -1;
		}
		char path[DISCOVERY_GROUP_BYTES + 16];
		snprintf(path, sizeof path, "%s%s", strchr(api_version, '/') ? "/apis/" : "/api/", api_version);
		if (k8s_request(d->client, "GET", path, NULL, NULL, 0, on_list, g, e) < 0) {
			free(w);
			return -1;
		}
		g->is_asking = true;
	}
	DL_APPEND(g->waiters, w);
	return 0;
}
