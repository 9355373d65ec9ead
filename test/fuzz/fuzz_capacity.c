// SPDX-License-Identifier: Apache-2.0
// The account of capacity on any objects: {"nodes":[..],"pods":[..],"template":{..},"slices":[..],"classes":[..],
// "claims":[..],"claimTemplate":{..}}. What pods hold adds up, a fit is within its bounds and gives each node one
// reason, and nothing stays when all objects are removed.
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "k8s/capacity/capacity.h"
#include "k8s/capacity/capacity_groups.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OBJECTS_MAX 16

struct world {
	struct capacity *c;
	struct capacity_pod pods[OBJECTS_MAX];
	struct capacity_claim claims[OBJECTS_MAX];
};

static void name_of(char name[16], size_t i)
{
	snprintf(name, 16, "n%zu", i);
}

// Twice: an object that is reported again changes nothing.
static void enter(struct world *w, struct json_span nodes, struct json_span pods)
{
	struct json_span_iter it = {.rest = nodes};
	char name[16];
	for (size_t i = 0; i < OBJECTS_MAX && json_span_next(&it); i++) {
		name_of(name, i);
		capacity_set_object(w->c, CAPACITY_NODE, name, it.value.text, it.value.len);
	}
	it = (struct json_span_iter){.rest = pods};
	for (size_t i = 0; i < OBJECTS_MAX && json_span_next(&it); i++)
		capacity_set_pod(w->c, &w->pods[i], "ns", "pod", it.value.text, it.value.len, 1);
}

static void enter_devices(struct world *w, struct json_span slices, struct json_span classes, struct json_span claims)
{
	struct json_span_iter it = {.rest = slices};
	char name[16];
	for (size_t i = 0; i < OBJECTS_MAX && json_span_next(&it); i++) {
		name_of(name, i);
		capacity_set_object(w->c, CAPACITY_SLICE, name, it.value.text, it.value.len);
	}
	it = (struct json_span_iter){.rest = classes};
	for (size_t i = 0; i < OBJECTS_MAX && json_span_next(&it); i++) {
		name_of(name, i);
		capacity_set_object(w->c, CAPACITY_CLASS, name, it.value.text, it.value.len);
	}
	it = (struct json_span_iter){.rest = claims};
	for (size_t i = 0; i < OBJECTS_MAX && json_span_next(&it); i++)
		capacity_set_claim(w->c, &w->claims[i], it.value.text, it.value.len);
}

static void check_sums(const struct world *w)
{
	const struct capacity_node *n;
	int32_t pods = 0;
	for (n = w->c->nodes; n; n = n->hh.next) {
		assert(n->is_known || n->pods > 0 || n->slices > 0);
		pods += n->pods;
		for (size_t k = 0; k < n->n_resources; k++) {
			int64_t used = 0;
			for (size_t i = 0; i < OBJECTS_MAX; i++) {
				for (size_t r = 0; w->pods[i].node == n && r < w->pods[i].n_requests; r++) {
					if (w->pods[i].requests[r].id == n->resources[k].id)
						used += w->pods[i].requests[r].amount;
				}
			}
			assert(n->resources[k].used == used && n->resources[k].allocatable >= 0);
		}
	}
	for (size_t i = 0; i < OBJECTS_MAX; i++)
		pods -= w->pods[i].node != NULL;
	assert(pods == 0);
}

static void check_fit(struct world *w, struct json_span template, struct json_span claim_template)
{
	struct replica_shape shape;
	struct fit_result fit;
	struct err e = {0};
	char why[FIT_WHY_BYTES];
	if (replica_shape_read(&shape, &w->c->names, RESOURCE_NEEDED, template, &e) == 0 &&
	    (!claim_template.text || replica_shape_add_claim(&shape, &w->c->names, claim_template, &e) == 0) &&
	    capacity_fit(w->c, &shape, &fit, &e) == 0) {
		size_t nodes = 0, lacking = 0;
		fit_explain(w->c, &fit, why);
		for (int i = 0; i < FIT_REASON__COUNT; i++)
			nodes += fit.nodes_of[i];
		for (size_t i = 0; i < RESOURCE_NAMES_MAX; i++)
			lacking += fit.lacking[i];
		assert(nodes == fit.nodes && fit.replicas >= 0 && fit.replicas <= FIT_REPLICAS_MAX);
		assert(lacking == fit.nodes_of[FIT_NO_RESOURCE] + fit.nodes_of[FIT_RESOURCE]);
		assert((fit.taint != NULL) == (fit.nodes_of[FIT_TAINT] > 0) && why[0]);
	} else {
		assert(e.kind != ERR_NONE && e.msg[0]);
	}
	replica_shape_done(&shape);
}

static void check_groups(const struct world *w)
{
	struct capacity_groups g;
	struct capacity_faults faults;
	assert(capacity_groups_read(w->c, "rack", &g) == 0);
	for (size_t i = 0; i < g.n; i++) {
		const struct capacity_group *row = &g.items[i];
		assert(row->free >= row->tainted && row->tainted >= 0 && row->unready >= 0);
		assert(row->free + row->unready <= row->allocatable);
	}
	capacity_groups_done(&g);
	capacity_get_faults(w->c, &faults);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct world w = {.c = capacity_new(NULL)};
	struct json_span o = {(const char *)data, size}, nodes = json_span_get(o, "nodes"),
	                 pods = json_span_get(o, "pods");
	char name[16];
	assert(w.c);
	for (int pass = 0; pass < 2; pass++) {
		enter(&w, nodes, pods);
		enter_devices(&w, json_span_get(o, "slices"), json_span_get(o, "classes"), json_span_get(o, "claims"));
		check_sums(&w);
		check_fit(&w, json_span_get(o, "template"), json_span_get(o, "claimTemplate"));
		check_groups(&w);
	}
	for (size_t i = 0; i < OBJECTS_MAX; i++) {
		name_of(name, i);
		capacity_remove_object(w.c, CAPACITY_NODE, name);
		capacity_remove_object(w.c, CAPACITY_SLICE, name);
		if (i % 2) // the account frees the others
			capacity_remove_object(w.c, CAPACITY_CLASS, name);
		capacity_remove_claim(w.c, &w.claims[i]);
	}
	check_sums(&w);
	for (size_t i = 0; i < OBJECTS_MAX; i++)
		capacity_remove_pod(w.c, &w.pods[i]);
	assert(!w.c->nodes && !w.c->waiting);
	capacity_free(w.c);
	return 0;
}
