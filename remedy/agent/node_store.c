// SPDX-License-Identifier: Apache-2.0
// The nodes of the cluster for the remediation agent, kept up to date by a watch.

#include "base/base.h"
#include "remedy/agent/remedy_agent_private.h"
#include "remedy/plan/remedy_state.h"

#define NODE_PODS_BYTES_MAX (1024 * 1024)

const char *node_store_name(const struct node_record *n)
{
	return (const char *)n->item.hh.key + 1;
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
	struct node_record *n = (struct node_record *)item;
	struct node_view view;
	struct err e;
	if (node_view_read(json, len, &view, &e) < 0)
		return; // the last valid version stays
	if (!n) {
		n = informer_keep(a->nodes, sizeof *n, "", name);
		arena_init(&n->pod_text, NODE_PODS_BYTES_MAX);
	} else if (strcmp(n->view.uid, view.uid) != 0) {
		node_store_forget(a, n); // another machine of the same name
		n->is_known = n->is_bad = false;
	}
	node_view_done(&n->view);
	n->view = view;
}

static void on_absent(void *arg, struct informer_item *item)
{
	struct node_record *n = (struct node_record *)item;
	node_store_forget(arg, n);
	remove_node(n);
}

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct remedy_agent *a = arg;
	agent_report_edge(a, &a->is_watch_broken, "Cannot watch nodes", "Watch of nodes recovered", error);
}

int node_store_open(struct remedy_agent *a, struct err *e)
{
	a->nodes = informer_new(&(struct informer_options){.client = a->k8s,
	                                                   .group_path = "/api/v1",
	                                                   .plural = "nodes",
	                                                   .is_cluster_scoped = true,
	                                                   .callbacks = {on_object, on_absent, NULL, NULL, on_error},
	                                                   .arg = a},
	                        e);
	return a->nodes ? informer_put(a->nodes, &a->all_nodes, "/", NULL, e) : -1;
}

void node_store_close(struct remedy_agent *a)
{
	for (struct node_record *n; a->nodes && (n = node_store_next(a, NULL));)
		remove_node(n);
	informer_remove(&a->all_nodes);
	informer_free(a->nodes);
	a->nodes = NULL;
}

struct node_record *node_store_find(const struct remedy_agent *a, const char *name)
{
	return a->nodes ? (struct node_record *)informer_get(a->nodes, "", name) : NULL;
}

struct node_record *node_store_next(const struct remedy_agent *a, const struct node_record *n)
{
	return n ? n->item.hh.next : (struct node_record *)informer_list(a->nodes);
}

void node_store_take(struct remedy_agent *a, struct node_record *n, const char *json, size_t len)
{
	struct node_view view;
	struct err e;

	if (node_view_read(json, len, &view, &e) < 0)
		return; // the watch reports the node
	node_view_done(&n->view);
	n->view = view;
	(void)informer_put(a->nodes, &n->item, n->item.hh.key, view.version, NULL);
}

bool node_store_is_synced(const struct remedy_agent *a)
{
	return informer_get_state(a->nodes, &a->all_nodes).unsynced == 0;
}
