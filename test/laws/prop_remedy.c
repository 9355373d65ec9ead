// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the planner of remediation: what each of its actions must respect, judged from outside the
// planner, and that every GPU can return.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/health_table.h"
#include "test/laws/remedy_world.h"

static void check_limits(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	int total = 0, unavailable = 0;
	if (a->kind != REMEDY_TAINT || book_has_out(&w->nodes[k]))
		return;
	for (int i = 0; i < w->n_nodes; i++) {
		total += !w->nodes[i].is_gone;
		unavailable += book_is_unavailable(&w->nodes[i]);
	}
	int percent = total * w->limits.max_percent / 100;
	percent = percent == 0 && w->limits.max_percent > 0 ? 1 : percent;
	if (unavailable + 1 > w->limits.max_nodes)
		remedy_world_broken("at most maxUnavailable nodes", w, k);
	if (unavailable + 1 > percent)
		remedy_world_broken("at most maxUnavailablePercent of the nodes", w, k);
}
static void limits_hold(void **state)
{
	remedy_world_run(201, check_limits, NULL);
}

static void check_attempts(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	const struct node_truth *n = &w->nodes[k];
	if (a->kind != REMEDY_TAINT || !g || g->is_out)
		return;
	if ((!book_has_out(n) || book_was_out(w, n, g)) && book_attempts_of_day(w, n) >= w->limits.attempts)
		remedy_world_broken("at most k attempts per node and day", w, k);
}
static void attempts_per_node_and_day(void **state)
{
	remedy_world_run(202, check_attempts, NULL);
}

static void check_evidence(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	const struct node_truth *n = &w->nodes[k];
	if (n->is_gone)
		remedy_world_broken("no action for a node that is gone", w, k);
	if (a->kind == REMEDY_TAINT && n->is_cordoned && !book_has_out(n))
		remedy_world_broken("no taint on a node that a person cordoned", w, k);
	// A GPU that moved is judged by what this node reported of it; whether a condition lasts there is not in the
	// books.
	int64_t fault_ms = g ? n->faults_ms[g->id] : NEVER;
	bool is_old = w->now_ms - fault_ms > HOUR_MS && !(g && !g->is_moved ? g->lasting : a->fault < 0);
	if (a->kind == REMEDY_TAINT && (fault_ms < 0 || is_old))
		remedy_world_broken("no taint without evidence", w, k);
	bool was_tainted = book_has_out(n);
	for (const struct remedy_action *b = w->actions; b < a; b++)
		was_tainted |= b->kind == REMEDY_TAINT && b->node == a->node;
	if ((a->kind == REMEDY_EVICT || a->kind == REMEDY_RESET) && g && !was_tainted)
		remedy_world_broken("no work is moved from a GPU in service", w, k);
	if (a->kind == REMEDY_RESET && !w->limits.can_reset)
		remedy_world_broken("no reset without a hook", w, k);
	for (int i = 0; a->kind == REMEDY_RESET && g && i < PODS; i++)
		if (n->has_pod[i] && &n->gpus[n->pod_gpu[i]] == g && !g->is_moved)
			remedy_world_broken("no reset of a GPU that a pod uses", w, k);
	for (int i = 0; a->kind == REMEDY_EVICT && g && i < PODS; i++)
		if (strcmp(n->pod_names[i], w->fleet.nodes[a->node].pods[a->pod].name) == 0 &&
		    &n->gpus[n->pod_gpu[i]] != g && a->wanted != HEALTH_DRAIN_REBOOT && !g->is_moved &&
		    !(w->limits.drains && w->fleet.nodes[a->node].gpus[a->gpu].has_node_taint))
			remedy_world_broken("only the pods of the GPU are evicted", w, k);
}
static void no_action_without_evidence(void **state)
{
	remedy_world_run(203, check_evidence, NULL);
}

static void check_telemetry(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	const struct node_truth *n = &w->nodes[k];
	bool is_missing = n->heard_ms < 0 || w->now_ms - n->heard_ms > STALE_MS;
	if (a->kind == REMEDY_TAINT && !book_has_out(n) && is_missing)
		remedy_world_broken("no taint while telemetry is missing", w, k);
	if ((a->kind == REMEDY_RESET || a->kind == REMEDY_UNTAINT) && is_missing)
		remedy_world_broken("no reset and no return while telemetry is missing", w, k);
}
static void no_action_on_missing_telemetry(void **state)
{
	remedy_world_run(204, check_telemetry, NULL);
}

static void check_hold_down(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	struct node_truth *n = &w->nodes[k];
	if (a->kind != REMEDY_UNTAINT)
		return;
	for (int i = 0; i < PLACES; i++) {
		const struct place *p = &n->gpus[i];
		if (!p->is_out || p->is_moved || (a->whole_node ? !p->by_node : p != g))
			continue;
		int64_t need_ms = w->limits.clean_ms;
		for (int t = 1; t < p->attempts && need_ms < DAY_MS / 2; t++)
			need_ms *= 2;
		if (p->lasting)
			remedy_world_broken("a GPU whose condition lasts does not return", w, k);
		if (p->clean_ms < 0 || p->heard_ms - p->clean_ms < need_ms || p->heard_ms - p->out_ms < need_ms)
			remedy_world_broken("a GPU returns after the clean time, which doubles with each attempt", w,
			                    k);
	}
}
static void flapping_is_held_down(void **state)
{
	remedy_world_run(205, check_hold_down, NULL);
}

static void check_flood(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	const struct node_truth *n = &w->nodes[k];
	for (int i = 0; a->kind == REMEDY_EVICT && i < PODS; i++)
		if (strcmp(n->pod_names[i], w->fleet.nodes[a->node].pods[a->pod].name) == 0 && n->evicted_ms[i] >= 0 &&
		    w->now_ms - n->evicted_ms[i] < 30000 && n->evicted_ms[i] > 0 && n->is_refused[i])
			remedy_world_broken("a refused eviction is repeated after 30 s at the earliest", w, k);
	for (size_t i = 0; a->kind == REMEDY_HOLD && &w->actions[i] < a; i++)
		if (w->actions[i].kind == REMEDY_HOLD && w->actions[i].node == a->node && w->actions[i].gpu == a->gpu &&
		    w->actions[i].reason == a->reason)
			remedy_world_broken("a hold is reported once", w, k);
}
static void after_flood(struct world *w, const struct input *in)
{
	remedy_world_ask(w); // the same moment again
	for (size_t i = 0; i < w->n_actions; i++)
		remedy_world_broken("the same moment repeats no action", w, book_node_of(w, &w->actions[i]));
}
static void requests_do_not_flood(void **state)
{
	remedy_world_run(206, check_flood, after_flood);
}

// With room in every limit, a GPU with evidence is out of service at once, whatever else was reported.
static void after_fault(struct world *w, const struct input *in)
{
	struct node_truth *n = &w->nodes[in->node];
	const struct place *g = &n->gpus[in->gpu];
	int total = 0, unavailable = 0;
	for (int i = 0; i < w->n_nodes; i++) {
		total += !w->nodes[i].is_gone;
		unavailable += book_is_unavailable(&w->nodes[i]);
	}
	int percent = total * w->limits.max_percent / 100;
	percent = percent == 0 && w->limits.max_percent > 0 ? 1 : percent;
	bool is_free = unavailable < w->limits.max_nodes && unavailable < percent;
	if (n->is_gone || n->is_cordoned || !n->is_ready || !is_free || n->heard_ms < 0 ||
	    w->now_ms - n->heard_ms > STALE_MS || book_attempts_of_day(w, n) >= w->limits.attempts)
		return;
	if (g->lasting == 0 && !g->is_out && in->kind == SEND_EVENT && !in->condition && book_is_deadly(in->xid) &&
	    n->faults_ms[g->id] == w->now_ms)
		remedy_world_broken("a fault takes its GPU out of service at once", w, in->node);
}
static void every_fault_is_acted_on(void **state)
{
	remedy_world_run(207, NULL, after_fault);
}

// A reset without an answer counts as failed after ten minutes.
static void check_resets(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	struct node_truth *n = &w->nodes[k];
	for (int i = 0; i < PLACES; i++) {
		struct place *p = &n->gpus[i];
		if (p->open_ms >= 0 && w->now_ms - p->open_ms >= 600000) {
			p->open_ms = NEVER;
			p->is_failed = true;
		}
		if (a->kind == REMEDY_RESET && p->open_ms >= 0 && p->is_out)
			remedy_world_broken("one GPU of a node is reset at a time", w, k);
		bool returns = a->kind == REMEDY_UNTAINT && (a->whole_node ? p->by_node : p == g) && !p->is_moved;
		if (returns && p->open_ms >= 0)
			remedy_world_broken("no return while a reset has no answer", w, k);
		bool wants = a->wanted == HEALTH_RESET_IDLE || a->wanted == HEALTH_DRAIN_RESET;
		if (returns && p == g && p->is_failed && wants)
			remedy_world_broken("no return after a reset that failed", w, k);
	}
	if (a->kind == REMEDY_RESET && g && g->is_out && g->is_reset && !g->is_moved)
		remedy_world_broken("a GPU is reset at most once while it is out of service", w, k);
}
static void resets_are_bounded(void **state)
{
	remedy_world_run_in((struct world){.may_delete = true, .has_hook = true}, 212, check_resets, NULL);
}

static void after_drain(struct world *w, const struct input *in)
{
	(void)in;
	for (size_t t = 0; w->limits.drains && t < w->n_actions; t++) {
		const struct remedy_action *a = &w->actions[t];
		if (a->kind != REMEDY_TAINT || !a->whole_node || a->wanted < HEALTH_DRAIN)
			continue;
		int k = book_node_of(w, a);
		for (int i = 0; i < PODS; i++)
			if (w->nodes[k].has_pod[i] && w->nodes[k].evicted_ms[i] < 0)
				remedy_world_broken("every pod with GPUs leaves a node that is drained", w, k);
	}
}
static void drain_moves_every_pod(void **state)
{
	remedy_world_run(213, NULL, after_drain);
}

// Every limit is closed, and nothing fails any more: all taints go but those of hardware that must be replaced.
static void returning_is_never_limited(void **state)
{
	struct prop_random r = {prop_seed() + 211};
	struct world w = {.may_move = true};
	int64_t n = prop_ticks(), returned = 0;
	while (w.step < n) {
		remedy_world_randomize(&r, &w);
		remedy_world_start(&w);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++) {
			struct input in = remedy_world_random_input(&r, &w);
			remedy_world_step(&w, &in, NULL);
		}
		long before = w.untaints;
		w.fleet.limits.max_nodes = w.fleet.limits.max_percent = w.limits.max_nodes = w.limits.max_percent = 0;
		for (int k = 0; k < w.n_nodes; k++) {
			for (int i = 0; i < GPUS; i++) {
				struct input clear = {.kind = SEND_EVENT,
				                      .node = k,
				                      .gpu = i,
				                      .condition = "RecoveryAction",
				                      .at_ms = w.now_ms};
				remedy_world_step(&w, &clear, NULL);
			}
			memset(w.nodes[k].has_pod, 0, sizeof w.nodes[k].has_pod);
			struct input in = {.kind = SEND_NODE, .node = k};
			remedy_world_step(&w, &in, NULL);
		}
		for (int64_t end_ms = w.now_ms + DAY_MS + 2 * STALE_MS; w.now_ms < end_ms; w.now_ms += 240000)
			for (int k = 0; k < w.n_nodes; k++) {
				struct input in = {.kind = SEND_TELEMETRY, .node = k, .named = 7};
				remedy_world_step(&w, &in, NULL);
			}
		returned += w.untaints - before;
		for (int k = 0; k < w.n_nodes; k++) {
			const struct remedy_node *node = remedy_fleet_find(&w.fleet, w.nodes[k].name);
			bool needs_hardware = false;
			for (int i = 0; i < node->n_faults; i++)
				needs_hardware |= node->faults[i].id == 64 && !node->faults[i].is_handled;
			for (int i = 0; i < node->n_gpus; i++)
				needs_hardware |= node->gpus[i].is_reset_failed; // needs a person
			if (!needs_hardware && (node->n_out > 0 || book_has_out(&w.nodes[k])))
				remedy_world_broken("returning is never limited", &w, k);
		}
	}
	free(w.block);
	assert_true(returned > n / 20000);
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(limits_hold),
	        cmocka_unit_test(attempts_per_node_and_day),
	        cmocka_unit_test(no_action_without_evidence),
	        cmocka_unit_test(no_action_on_missing_telemetry),
	        cmocka_unit_test(flapping_is_held_down),
	        cmocka_unit_test(requests_do_not_flood),
	        cmocka_unit_test(every_fault_is_acted_on),
	        cmocka_unit_test(returning_is_never_limited),
	        cmocka_unit_test(resets_are_bounded),
	        cmocka_unit_test(drain_moves_every_pod),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
