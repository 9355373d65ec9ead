// SPDX-License-Identifier: Apache-2.0
// The nodes of the cluster for the remediation agent, kept up to date by a watch.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/must.h"
#include "remedy/agent/remedy_agent_private.h"
#include "remedy/plan/remedy_fold.h"

#define NODE_PODS_BYTES_MAX (1024 * 1024)

struct node_store {
	struct informer *informer;
	struct informer_item all; // all nodes
};

static struct node_record *record_of(const struct informer_item *item)
{
	uintptr_t at = (uintptr_t)item - offsetof(struct node_record, item);
	return item ? (struct node_record *)at : NULL;
}

const char *node_store_name(const struct node_record *n)
{
	return n->key + 1;
}

void node_store_forget(struct remedy_agent *a, const struct node_record *n)
{
	const struct remedy_node_seen seen = {.name = node_store_name(n), .is_gone = true};
	remedy_fold_node(&a->fleet, &seen, NULL);
}

static void remove_node(struct node_record *n)
{
	informer_remove(&n->item);
	node_view_done(&n->view);
	arena_done(&n->pod_text);
	free(n);
}

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	struct remedy_agent *a = arg;
	struct node_record *n = record_of(item);
	struct node_view view;
	struct err e;
	if (node_view_read(json, len, &view, &e) < 0)
		return; // the last valid version stays
	if (!n) {
		size_t size = strlen(name) + 2;
		n = must_alloc(calloc(1, sizeof *n + size));
		arena_init(&n->pod_text, NODE_PODS_BYTES_MAX);
		snprintf(n->key, size, "/%s", name);
		(void)informer_put(a->nodes->informer, &n->item, n->key, "", NULL);
	} else if (strcmp(n->view.uid, view.uid) != 0) {
		node_store_forget(a, n); // another machine of the same name
		n->is_known = n->is_bad = false;
	}
	node_view_done(&n->view);
	n->view = view;
}

static void on_absent(void *arg, struct informer_item *item)
{
	struct node_record *n = record_of(item);
	node_store_forget(arg, n);
	remove_node(n);
}

struct node_store *node_store_new(struct remedy_agent *a, node_store_error_fn *on_error, struct err *e)
{
	struct node_store *s = err_calloc(sizeof *s, e);
	if (!s)
		return NULL;
	s->informer = informer_new(&(struct informer_options){.client = a->k8s,
	                                                      .group_path = "/api/v1",
	                                                      .plural = "nodes",
	                                                      .is_cluster_scoped = true,
	                                                      .callbacks = {on_object, on_absent, NULL, NULL, on_error},
	                                                      .arg = a},
	                           e);
	if (s->informer && informer_put(s->informer, &s->all, "/", NULL, e) == 0)
		return s;
	node_store_free(s);
	return NULL;
}

void node_store_free(struct node_store *s)
{
	if (!s)
		return;
	for (struct node_record *n; s->informer && (n = record_of(informer_list(s->informer)));)
		remove_node(n);
	informer_remove(&s->all);
	informer_free(s->informer);
	free(s);
}

struct node_record *node_store_find(const struct node_store *s, const char *name)
{
	return record_of(informer_get(s->informer, "", name));
}

struct node_record *node_store_next(const struct node_store *s, const struct node_record *n)
{
	return record_of(n ? n->item.hh.next : informer_list(s->informer));
}

void node_store_take(struct node_store *s, struct node_record *n, const char *json, size_t len)
{
	struct node_view view;
	struct err e;

	if (node_view_read(json, len, &view, &e) < 0)
		return; // the watch reports the node
	node_view_done(&n->view);
	n->view = view;
	(void)informer_put(s->informer, &n->item, n->key, view.version, NULL);
}

bool node_store_is_synced(const struct node_store *s)
{
	return informer_get_state(s->informer, &s->all).unsynced == 0;
}
