// SPDX-License-Identifier: Apache-2.0
// The books of a cluster: what it knows of its GPUs from the inputs and the actions alone.
#include "test/laws/remedy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void book_heard(struct world *w, struct node_truth *n, int i)
{
	struct place *g = &n->gpus[i];
	if (g->heard_ms < 0 || w->now_ms - g->heard_ms > STALE_MS)
		g->clean_ms = w->now_ms;
	g->heard_ms = w->now_ms;
	n->heard_ms = w->now_ms;
}

bool book_is_deadly(int32_t xid)
{
	for (size_t i = 0; i < sizeof remedy_world_deadly / sizeof remedy_world_deadly[0]; i++)
		if (remedy_world_deadly[i] == xid)
			return true;
	return false;
}

void book_input(struct world *w, const struct input *in)
{
	struct node_truth *n = &w->nodes[in->node];
	if (n->is_gone)
		return;
	if (in->kind == SEND_ANSWER && in->at_ms >= 0 && in->at_ms == n->gpus[in->gpu].open_ms) {
		n->gpus[in->gpu].is_failed = in->value == 0;
		n->gpus[in->gpu].open_ms = NEVER;
	}
	if (in->kind == SEND_TELEMETRY) {
		n->heard_ms = w->now_ms;
		for (int i = 0; i < GPUS; i++)
			if (in->named >> i & 1)
				book_heard(w, n, i);
	}
	if (in->kind == SEND_SILENCE) {
		n->heard_ms = NEVER;
		for (int i = 0; i < GPUS; i++)
			n->gpus[i].heard_ms = NEVER;
	}
	if (in->kind != SEND_EVENT || in->at_ms > w->now_ms + 60000 || w->now_ms - in->at_ms > HOUR_MS)
		return;
	struct place *g = &n->gpus[in->gpu];
	book_heard(w, n, in->gpu);
	if (in->condition) {
		g->reported = (int32_t)in->value;
		if (g->reported > 0 && g->reported == g->handled)
			return;
		g->lasting = g->reported;
		g->handled = 0;
	}
	if (in->condition ? in->value > 0 : book_is_deadly(in->xid))
		n->faults_ms[g->id] = g->clean_ms = w->now_ms;
}

struct place *book_find_place(struct node_truth *n, const char *uuid)
{
	for (int i = 0; i < PLACES; i++)
		if ((i < GPUS || n->gpus[i].is_out) && strcmp(n->gpus[i].uuid, uuid) == 0)
			return &n->gpus[i];
	return NULL;
}

// The same, added when missing: the planner may take a GPU out of service before it learns that the GPU moved away.
static struct place *add_place(struct world *w, struct node_truth *n, const char *uuid)
{
	struct place *g = book_find_place(n, uuid);
	if (g)
		return g;
	for (int i = GPUS; !g && i < PLACES; i++)
		if (!n->gpus[i].is_out)
			g = &n->gpus[i];
	assert_non_null(g);
	for (int k = 0; k < w->n_nodes; k++)
		for (int i = 0; i < GPUS; i++)
			if (strcmp(w->nodes[k].gpus[i].uuid, uuid) == 0)
				*g = w->nodes[k].gpus[i];
	*g = (struct place){.id = g->id, .is_moved = true};
	memcpy(g->uuid, uuid, strlen(uuid));
	g->clean_ms = g->heard_ms = g->out_ms = g->open_ms = NEVER;
	return g;
}

int book_node_of(const struct world *w, const struct remedy_action *a)
{
	for (int k = 0; k < w->n_nodes; k++)
		if (strcmp(w->nodes[k].name, w->fleet.nodes[a->node].name) == 0)
			return k;
	fail_msg("an action for a node that the cluster never had");
	return 0;
}

bool book_is_unavailable(const struct node_truth *n)
{
	bool is_out = n->is_cordoned || !n->is_ready;
	for (int i = 0; i < PLACES; i++)
		is_out |= n->gpus[i].is_out;
	return is_out && !n->is_gone;
}

bool book_has_out(const struct node_truth *n)
{
	for (int i = 0; i < PLACES; i++)
		if (n->gpus[i].is_out)
			return true;
	return false;
}

int book_attempts_of_day(const struct world *w, const struct node_truth *n)
{
	int count = 0;
	for (int i = 0; i < n->n_attempts; i++)
		count += w->now_ms - n->attempts_ms[i] < DAY_MS;
	return count;
}

bool book_was_out(const struct world *w, const struct node_truth *n, const struct place *g)
{
	return n->was_out_ms[g->id] >= 0 && w->now_ms - n->was_out_ms[g->id] < DAY_MS;
}

// Books a GPU as out of service: with the taint, or because the planner counts it in behind the taint of its node.
static void book_out(struct world *w, struct node_truth *n, struct place *g)
{
	if (g->is_out)
		return;
	if ((!book_has_out(n) || book_was_out(w, n, g)) && n->n_attempts < ATTEMPTS)
		n->attempts_ms[n->n_attempts++] = w->now_ms;
	g->is_out = true;
	g->is_reset = g->is_failed = false;
	g->out_ms = n->was_out_ms[g->id] = w->now_ms;
	g->attempts = book_attempts_of_day(w, n);
}

void book_in(struct node_truth *n, struct place *g)
{
	g->is_out = g->by_node = g->by_gpu = false;
	g->open_ms = n->faults_ms[g->id] = NEVER;
}

void book_action(struct world *w, const struct remedy_action *a, book_check_fn *check)
{
	int k = book_node_of(w, a);
	struct node_truth *n = &w->nodes[k];
	const char *uuid = w->fleet.nodes[a->node].gpus[a->gpu].uuid; // "" = the node itself
	struct place *g = a->kind == REMEDY_TAINT && *uuid ? add_place(w, n, uuid) : book_find_place(n, uuid);
	if (check)
		check(w, a, k, g);
	w->taints += a->kind == REMEDY_TAINT;
	w->untaints += a->kind == REMEDY_UNTAINT;
	w->evictions += a->kind == REMEDY_EVICT;
	w->resets += a->kind == REMEDY_RESET;
	w->holds += a->kind == REMEDY_HOLD;
	if (a->kind == REMEDY_TAINT && g) {
		book_out(w, n, g);
		g->by_node |= a->whole_node;
		g->by_gpu |= !a->whole_node;
	} else if (a->kind == REMEDY_UNTAINT && a->whole_node) {
		for (int i = 0; i < PLACES; i++)
			if (n->gpus[i].by_node)
				book_in(n, &n->gpus[i]);
	} else if (a->kind == REMEDY_UNTAINT && g) {
		book_in(n, g);
	} else if (a->kind == REMEDY_EVICT) {
		for (int i = 0; i < PODS; i++)
			if (strcmp(n->pod_names[i], w->fleet.nodes[a->node].pods[a->pod].name) == 0)
				n->evicted_ms[i] = w->now_ms;
	} else if (a->kind == REMEDY_RESET && g) {
		g->lasting = 0;
		g->is_reset = true;
		g->open_ms = w->limits.is_answered ? w->now_ms : NEVER;
	}
}

void book_joins(struct world *w)
{
	for (int k = 0; k < w->n_nodes; k++) {
		const struct remedy_node *n = remedy_fleet_find(&w->fleet, w->nodes[k].name);
		for (int i = 1; n && !n->is_gone && i < n->n_gpus; i++) {
			if (!n->gpus[i].has_node_taint)
				continue;
			struct place *g = add_place(w, &w->nodes[k], n->gpus[i].uuid);
			book_out(w, &w->nodes[k], g);
			g->by_node = true;
		}
	}
}
