// SPDX-License-Identifier: Apache-2.0
#include "test/laws/remedy_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/health_table.h"

const int32_t remedy_world_deadly[] = {46, 48, 64, 74, 79, 95, 119},
              remedy_world_harmless[] = {13, 31, 43, 45, 92, 162, 163, 999};

void remedy_world_broken(const char *law, const struct world *w, int node)
{
	for (size_t i = 0; i < w->n_actions; i++) {
		const struct remedy_action *a = &w->actions[i];
		print_error("%s %s: node %s, GPU %s, whole %d, fault %d, reason %d\n", remedy_kind_names[a->kind],
		            health_action_name(a->wanted), w->fleet.nodes[a->node].name,
		            w->fleet.nodes[a->node].gpus[a->gpu].uuid, a->whole_node, a->fault, a->reason);
	}
	fail_msg("PROP_SEED=%llu: step %lld: %s: node %d at %lld s, limits %d nodes, %d %%, %d attempts, clean %lld s",
	         (unsigned long long)prop_seed(), (long long)w->step, law, node, (long long)(w->now_ms / 1000),
	         w->limits.max_nodes, w->limits.max_percent, w->limits.attempts,
	         (long long)(w->limits.clean_ms / 1000));
}

// ---- a random cluster ----

void remedy_world_randomize(struct prop_random *r, struct world *w)
{
	free(w->block);
	long counts[5] = {w->taints, w->untaints, w->evictions, w->resets, w->holds};
	bool may_delete = w->may_delete, may_move = w->may_move, may_not_lift = w->may_not_lift;
	bool has_hook = w->has_hook;
	int64_t step = w->step;
	memset(w, 0, sizeof *w);
	w->may_delete = may_delete;
	w->may_move = may_move;
	w->may_not_lift = may_not_lift;
	w->has_hook = has_hook;
	w->step = step;
	w->taints = counts[0], w->untaints = counts[1], w->evictions = counts[2], w->resets = counts[3];
	w->holds = counts[4];
	w->limits = (struct remedy_limits){.max_nodes = prop_up_to(r, 5),
	                                   .max_percent = prop_up_to(r, 100),
	                                   .attempts = 1 + prop_up_to(r, 4),
	                                   .clean_ms = 60000 * (1 + prop_up_to(r, 30)),
	                                   .can_reset = prop_chance(r, 50),
	                                   .is_answered = prop_chance(r, 25),
	                                   .drains = prop_chance(r, 30)};
	if (has_hook) {
		w->limits.can_reset = w->limits.is_answered = true;
		w->limits.clean_ms = 60000;
	}
	w->block = calloc(1, remedy_fleet_bytes(NODES));
	assert_non_null(w->block);
	remedy_fleet_init(&w->fleet, w->block, NODES, &w->limits);
	w->n_nodes = 1 + prop_up_to(r, NODES - 1);
	w->now_ms = INT64_C(1700000000000);
	for (int k = 0; k < w->n_nodes; k++) {
		struct node_truth *n = &w->nodes[k];
		snprintf(n->name, sizeof n->name, "node-%d", k);
		n->has_dra = prop_chance(r, 50);
		n->is_ready = true;
		n->heard_ms = NEVER;
		for (int i = 0; i < GPUS; i++) {
			struct place *g = &n->gpus[i];
			g->id = w->next_uuid++;
			snprintf(g->uuid, sizeof g->uuid, "GPU-%d", g->id);
			g->clean_ms = g->heard_ms = g->out_ms = g->open_ms = NEVER;
		}
		for (int i = 0; i < UUIDS; i++)
			n->was_out_ms[i] = n->faults_ms[i] = NEVER;
		for (int i = 0; i < PODS; i++) {
			snprintf(n->pod_names[i], sizeof n->pod_names[i], "ns/p-%d-%d", k, i);
			n->pod_gpu[i] = prop_up_to(r, GPUS - 1);
			n->evicted_ms[i] = NEVER;
		}
	}
}

// ---- inputs, as they are given to one planner or to several ----

void remedy_world_give_node(struct remedy *fleet, struct node_truth *n, const struct remedy_node *record, bool lags)
{
	const char *gpus[GPUS], *taints[PLACES + 1], *pod_gpus[PODS];
	struct remedy_pod_seen pods[PODS];
	struct remedy_node_seen seen = {.name = n->name,
	                                .is_gone = n->is_gone,
	                                .has_dra = n->has_dra,
	                                .is_cordoned = n->is_cordoned,
	                                .is_ready = n->is_ready,
	                                .has_gpus = true,
	                                .has_taints = true,
	                                .has_pods = true,
	                                .taints_lag = lags,
	                                .pods = pods};
	bool by_node = false;
	for (int i = 0; i < PLACES; i++) {
		if (i < GPUS)
			gpus[seen.n_gpus++] = n->gpus[i].uuid;
		by_node |= n->gpus[i].by_node;
		if (lags ? n->gpus[i].shown : n->gpus[i].by_gpu)
			taints[seen.n_taints++] = n->gpus[i].uuid;
	}
	if (by_node)
		taints[seen.n_taints++] = "node";
	for (int i = 0; i < PODS; i++) {
		if (!n->has_pod[i])
			continue;
		pod_gpus[i] = n->gpus[n->pod_gpu[i]].uuid;
		pods[seen.n_pods++] = (struct remedy_pod_seen){
		        .name = n->pod_names[i], .gpus = &pod_gpus[i], .n_gpus = 1, .is_refused = n->is_refused[i]};
	}
	seen.gpus = gpus;
	seen.taints = taints;
	remedy_fold_node(fleet, &seen, record);
}

void remedy_world_give(struct remedy *fleet, struct world *w, const struct input *in)
{
	struct node_truth *n = &w->nodes[in->node];
	remedy_fold_time(fleet, w->now_ms);
	if (in->kind == SEND_EVENT) {
		struct remedy_event event = {.node = n->name,
		                             .gpu = n->gpus[in->gpu].uuid,
		                             .condition = in->condition,
		                             .xid = in->xid,
		                             .value = in->value,
		                             .at_ms = in->at_ms};
		remedy_fold_event(fleet, &event);
	} else if (in->kind == SEND_TELEMETRY) {
		const char *named[GPUS];
		size_t n_named = 0;
		for (int i = 0; i < GPUS; i++)
			if (in->named >> i & 1)
				named[n_named++] = n->gpus[i].uuid;
		remedy_fold_telemetry(fleet, n->name, named, n_named, false);
	} else if (in->kind == SEND_SILENCE) {
		remedy_fold_silence(fleet, n->name);
	} else if (in->kind == SEND_NODE) {
		remedy_world_give_node(fleet, n, NULL, false);
	} else if (in->kind == SEND_ANSWER) {
		remedy_fold_reset(fleet, n->name, n->gpus[in->gpu].uuid, in->at_ms, in->value == 1);
	}
}

// ---- random histories ----

static void random_event(struct prop_random *r, struct world *w, struct input *in)
{
	struct place *g = &w->nodes[in->node].gpus[in->gpu];
	in->kind = SEND_EVENT;
	in->at_ms = w->now_ms;
	in->value = -1;
	if (prop_chance(r, 25)) {
		in->condition = "RecoveryAction";
		in->value = prop_chance(r, 40) ? 0 : 1 + prop_up_to(r, 3);
		if (g->reported > 0 && prop_chance(r, 50)) // the exporter reports a condition as long as it lasts
			in->value = g->reported;
		return;
	}
	in->xid = prop_chance(r, 50) ? remedy_world_harmless[prop_up_to(r, 7)]
	                             : remedy_world_deadly[prop_chance(r, 50) ? 0 : prop_up_to(r, 6)];
	if (prop_chance(r, 5)) // from the future, or long ago
		in->at_ms +=
		        prop_chance(r, 50) ? 61000 + prop_up_to(r, 1000000) : -HOUR_MS - 1 - prop_up_to(r, 1000000);
	else if (prop_chance(r, 30))
		in->value = g->counter += 1 + prop_up_to(r, 3);
}

// Another GPU in this place: it moved here from another node. Often the last two that moved change places again.
static void change_gpu(struct prop_random *r, struct world *w, struct input *in)
{
	int other = prop_up_to(r, w->n_nodes - 1), at = prop_up_to(r, GPUS - 1);
	if (prop_chance(r, 50))
		in->node = w->moved[0], in->gpu = w->moved[1], other = w->moved[2], at = w->moved[3];
	struct place *here = &w->nodes[in->node].gpus[in->gpu];
	struct place *there = &w->nodes[other].gpus[at];
	if (other == in->node || here->is_out || there->is_out || w->nodes[other].is_gone || !w->may_move ||
	    book_find_place(&w->nodes[other], here->uuid) || book_find_place(&w->nodes[in->node], there->uuid))
		return;
	memcpy(w->moved, (int[]){in->node, in->gpu, other, at}, sizeof w->moved);
	struct place old = *here;
	memcpy(here->uuid, there->uuid, sizeof here->uuid);
	memcpy(there->uuid, old.uuid, sizeof there->uuid);
	here->id = there->id;
	there->id = old.id;
	// The list of this node, which comes next, names both: what the nodes reported of the GPUs that left counts no
	// more.
	if (!w->nodes[in->node].is_gone)
		w->nodes[in->node].faults_ms[old.id] = w->nodes[other].faults_ms[here->id] = NEVER;
	struct place *both[] = {here, there};
	for (int i = 0; i < 2; i++) {
		both[i]->clean_ms = both[i]->heard_ms = NEVER;
		both[i]->is_moved = true;
		both[i]->reported = both[i]->handled = both[i]->lasting = 0;
	}
}

static void random_change(struct prop_random *r, struct world *w, struct input *in)
{
	struct node_truth *n = &w->nodes[in->node];
	in->kind = SEND_NODE;
	if (prop_chance(r, 10))
		n->is_cordoned = !n->is_cordoned;
	if (prop_chance(r, 10))
		n->is_ready = !n->is_ready;
	for (int i = 0; i < PODS; i++) {
		bool is_evicted = n->has_pod[i] && n->evicted_ms[i] >= 0;
		n->is_refused[i] = is_evicted && prop_chance(r, 70);
		if (is_evicted ? !n->is_refused[i] : prop_chance(r, 20)) {
			n->has_pod[i] = !n->has_pod[i];
			n->evicted_ms[i] = NEVER;
		}
	}
	if (prop_chance(r, 5) && !w->may_not_lift) // a person removes every taint
		for (int i = 0; i < PLACES; i++)
			if (n->gpus[i].is_out) {
				book_in(n, &n->gpus[i]);
				n->gpus[i].clean_ms = w->now_ms;
				n->gpus[i].handled = n->gpus[i].reported;
				n->gpus[i].lasting = 0;
			}
	if (w->may_delete && prop_chance(r, 5)) {
		n->is_gone = !n->is_gone;
		for (int i = 0; i < PLACES; i++) {
			struct place *g = &n->gpus[i];
			book_in(n, g);
			g->clean_ms = g->heard_ms = NEVER;
			g->reported = g->handled = g->lasting = 0;
		}
		for (int i = 0; i < UUIDS; i++)
			n->was_out_ms[i] = n->faults_ms[i] = NEVER;
		n->heard_ms = NEVER;
	}
}

struct input remedy_world_random_input(struct prop_random *r, struct world *w)
{
	struct input in = {.node = prop_up_to(r, w->n_nodes - 1), .gpu = prop_up_to(r, GPUS - 1)};
	int32_t pick = prop_up_to(r, 99);
	w->now_ms += 1000 * (prop_chance(r, 3) ? prop_up_to(r, 4000) : prop_up_to(r, 40));
	if (pick < 8) {
		random_event(r, w, &in);
	} else if (pick < 75) {
		in.kind = SEND_TELEMETRY;
		in.named = prop_chance(r, 10) ? (uint32_t)prop_up_to(r, 7) : 7;
	} else if (pick < 77) {
		in.kind = SEND_SILENCE;
	} else if (pick < 78) {
		in.kind = SEND_ANSWER;
		for (int at = 0; at < w->n_nodes * GPUS; at++) // prefers a reset that has no answer
			if (w->nodes[at / GPUS].gpus[at % GPUS].open_ms >= 0) {
				in.node = at / GPUS;
				in.gpu = at % GPUS;
			}
		in.at_ms = w->nodes[in.node].gpus[in.gpu].open_ms + (prop_chance(r, 10) ? 1 : 0);
		in.value = prop_chance(r, 70);
	} else if (pick < 97) {
		random_change(r, w, &in);
	} else {
		in.kind = SEND_NODE;
		change_gpu(r, w, &in);
	}
	return in;
}

void remedy_world_ask(struct world *w)
{
	w->n_actions = remedy_plan(&w->fleet, true, w->actions, ACTIONS_MAX);
	assert_true(w->n_actions < ACTIONS_MAX);
}

// One input, given and booked; then the actions, judged and booked.
void remedy_world_step(struct world *w, const struct input *in, book_check_fn *check)
{
	remedy_world_give(&w->fleet, w, in);
	book_input(w, in);
	remedy_world_ask(w);
	for (size_t i = 0; i < w->n_actions; i++)
		book_action(w, &w->actions[i], check);
	book_joins(w);
	w->step++;
}

void remedy_world_start(struct world *w)
{
	for (int k = 0; k < w->n_nodes; k++) {
		struct input in = {.kind = SEND_NODE, .node = k};
		remedy_world_step(w, &in, NULL);
	}
}

void remedy_world_run_in(struct world w, uint64_t seed, book_check_fn *check,
                         void (*after)(struct world *w, const struct input *in))
{
	struct prop_random r = {prop_seed() + seed};
	int64_t n = prop_ticks();
	while (w.step < n) {
		remedy_world_randomize(&r, &w);
		remedy_world_start(&w);
		for (int i = 0; i < 4 * PROP_TICKS_A_TRACE; i++) {
			struct input in = remedy_world_random_input(&r, &w);
			remedy_world_step(&w, &in, check);
			if (after)
				after(&w, &in);
		}
	}
	free(w.block);
	// the laws were put to the test
	assert_true(w.taints > n / 2000 && w.untaints > n / 10000 && w.evictions > n / 10000);
}

void remedy_world_run(uint64_t seed, book_check_fn *check, void (*after)(struct world *w, const struct input *in))
{
	remedy_world_run_in((struct world){.may_delete = true, .may_move = true}, seed, check, after);
}
