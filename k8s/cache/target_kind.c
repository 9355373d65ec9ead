// SPDX-License-Identifier: Apache-2.0
// The kinds of the wanted targets, each with an informer.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "k8s/cache/target_store_private.h"
#include "k8s/client/k8s_client.h"

struct target_kind *target_kind_find(const struct target_store *s, const struct scale_ref *ref)
{
	for (size_t i = 0; i < s->n_kinds; i++) {
		struct target_kind *k = s->kinds[i];
		if (k && strcmp(k->name, ref->kind) == 0 && strcmp(k->api_version, ref->api_version) == 0 &&
		    strcmp(k->path ? k->path : "", ref->path ? ref->path : "") == 0)
			return k;
	}
	return NULL;
}

struct target_kind *target_kind_add(struct target_store *s, const char *api_version, const char *name, const char *path)
{
	size_t version_size = strlen(api_version) + 1, name_size = strlen(name) + 1;
	size_t at = 0;
	while (at < s->n_kinds && s->kinds[at])
		at++;
	if (at == TARGET_KINDS_MAX || version_size > DISCOVERY_GROUP_BYTES || name_size > DISCOVERY_NAME_BYTES)
		return NULL;
	struct target_kind *k = calloc(1, sizeof *k);
	if (!k || (path && !(k->path = strdup(path)))) {
		free(k);
		return NULL;
	}
	memcpy(k->api_version, api_version, version_size);
	memcpy(k->name, name, name_size);
	k->store = s;
	k->workload = workload_kind_find(api_version, name, path);
	k->contains_scale = path || k->workload->plural;
	k->number = (int)at;
	s->kinds[at] = k;
	s->n_kinds += at == s->n_kinds;
	return k;
}

void target_kind_drop(struct target_store *s, struct target_kind *k)
{
	assert(k->n_records == 0);
	informer_free(k->informer);
	s->kinds[k->number] = NULL; // for the next one
	free(k->path);
	free(k);
}

static bool has_plural(const struct target_store *s, struct target_kind *k)
{
	if (!k->plural[0]) {
		const struct k8s_resource *resource =
		        discovery_find(k8s_client_discovery(s->options.client), k->api_version, k->name, !k->path);
		if (resource && resource->is_namespaced)
			snprintf(k->plural, sizeof k->plural, "%s", resource->plural);
	}
	return k->plural[0] != '\0';
}

struct informer *target_kind_informer(struct target_kind *k, struct err *e)
{
	char path[DISCOVERY_GROUP_BYTES + 8];
	err_clear(e);
	if (k->informer || !has_plural(k->store, k))
		return k->informer;
	snprintf(path, sizeof path, "%s%s", strchr(k->api_version, '/') ? "/apis/" : "/api/", k->api_version);
	k->informer = informer_new(&(struct informer_options){.client = k->store->options.client,
	                                                      .group_path = path,
	                                                      .plural = k->plural,
	                                                      .own_watches = TARGET_NAMESPACES_MAX,
	                                                      .callbacks = *k->store->callbacks,
	                                                      .arg = k},
	                           e);
	return k->informer;
}

int target_kinds_init(struct target_store *s, struct err *e)
{
	const struct workload_kind *row;
	for (size_t i = 0; (row = workload_kind_at(i)); i++) {
		if (!row->plural)
			continue;
		struct target_kind *k = target_kind_add(s, "apps/v1", row->kind, NULL);
		if (!k)
			return err_set(e, ERR_INTERNAL, "out of memory");
		snprintf(k->plural, sizeof k->plural, "%s", row->plural);
	}
	return 0;
}

void target_kinds_done(struct target_store *s)
{
	while (s->n_kinds > 0) {
		struct target_kind *k = s->kinds[--s->n_kinds];
		if (k)
			informer_free(k->informer);
		free(k ? k->path : NULL);
		free(k);
	}
}
