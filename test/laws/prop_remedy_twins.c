// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the planner of remediation: another planner that gets a different account of the same
// events, or takes over in the middle, acts the same.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "remedy/remedy_record.h"
#include "test/laws/remedy_world.h"

static bool same_action(const struct remedy_action *a, const struct remedy_action *b)
{
	return a->kind == b->kind && a->reason == b->reason && a->node == b->node && a->gpu == b->gpu &&
	       a->pod == b->pod && a->whole_node == b->whole_node && a->fault == b->fault && a->wanted == b->wanted;
}

static void compare(struct world *w, struct remedy *twin, const char *law)
{
	static struct remedy_action actions[ACTIONS_MAX];
	size_t n = remedy_plan(twin, true, actions, ACTIONS_MAX);
	for (size_t i = 0; i < n && i < w->n_actions; i++)
		if (!same_action(&actions[i], &w->actions[i]))
			remedy_world_broken(law, w, w->actions[i].node);
	if (n != w->n_actions)
		remedy_world_broken(law, w, n > w->n_actions ? actions[w->n_actions].node : w->actions[n].node);
}

static void run_twins(uint64_t seed, const char *law,
                      void (*extra)(struct prop_random *r, struct remedy *twin, struct world *w, struct input *in))
{
	struct prop_random r = {prop_seed() + seed};
	struct world w = {.may_delete = true, .may_move = true};
	int64_t n = prop_ticks();
	while (w.step < n) {
		remedy_world_randomize(&r, &w);
		void *block = calloc(1, remedy_fleet_bytes(NODES));
		struct remedy twin;
		assert_non_null(block);
		remedy_fleet_init(&twin, block, NODES, &w.limits);
		for (int k = -w.n_nodes; k < 4 * PROP_TICKS_A_TRACE; k++) {
			struct input in = k < 0 ? (struct input){.kind = SEND_NODE, .node = k + w.n_nodes}
			                        : remedy_world_random_input(&r, &w);
			remedy_world_give(&twin, &w, &in);
			extra(&r, &twin, &w, &in);
			remedy_world_step(&w, &in, NULL);
			compare(&w, &twin, law);
		}
		free(block);
	}
	free(w.block);
	assert_true(w.taints > n / 2000 && w.untaints > n / 10000);
}

static void repeat(struct prop_random *r, struct remedy *twin, struct world *w, struct input *in)
{
	for (int i = prop_up_to(r, 5); i > 0; i--)
		remedy_world_give(twin, w, in);
	if (in->kind != SEND_TELEMETRY || !(in->named & 1) || !prop_chance(r, 10))
		return;
	struct input third = {.kind = SEND_EVENT, .node = in->node, .xid = 109, .value = -1, .at_ms = w->now_ms};
	remedy_world_give(&w->fleet, w, &third); // counts from the third time on
	for (int i = prop_up_to(r, 5); i >= 0; i--)
		remedy_world_give(twin, w, &third);
}
static void repeats_count_once(void **state)
{
	run_twins(208, "repeats count once", repeat);
}

static void add_harmless(struct prop_random *r, struct remedy *twin, struct world *w, struct input *in)
{
	// Behind telemetry of the same GPU, so that the noise does not give the second planner a sign of life that the
	// first one lacks.
	if (in->kind != SEND_TELEMETRY)
		return;
	for (int i = prop_up_to(r, 3); i > 0; i--) {
		struct input noise = {.kind = SEND_EVENT, .node = in->node, .at_ms = w->now_ms, .value = -1};
		noise.gpu = prop_up_to(r, GPUS - 1);
		noise.xid = remedy_world_harmless[prop_up_to(r, 7)];
		if (in->named >> noise.gpu & 1)
			remedy_world_give(twin, w, &noise);
	}
}
static void faults_never_cancel_each_other(void **state)
{
	run_twins(209, "a harmless fault changes nothing", add_harmless);
}

// Another process takes over in the middle, from what the annotations hold.
static void restart(struct prop_random *r, struct remedy *twin, struct world *w, struct input *in)
{
	struct buf text;
	struct remedy fresh;
	if (in->kind != SEND_NODE || !prop_chance(r, 5))
		return;
	void *block = calloc(1, remedy_fleet_bytes(NODES));
	struct remedy_node *record = malloc(sizeof *record);
	assert_non_null(block);
	assert_non_null(record);
	remedy_fleet_init(&fresh, block, NODES, &w->limits);
	remedy_fold_time(&fresh, w->now_ms);
	buf_init(&text, REMEDY_RECORD_BYTES_MAX);
	for (int k = 0; k < w->n_nodes; k++) {
		const struct remedy_node *old = remedy_fleet_find(twin, w->nodes[k].name);
		struct err e;
		if (!old)
			continue;
		buf_reset(&text);
		remedy_record_write(old, &text);
		if (remedy_record_read(buf_str(&text), text.len, w->now_ms, record, &e) < 0)
			fail_msg("a record is not read back: %s", e.msg);
		remedy_world_give_node(&fresh, &w->nodes[k], record, false);
		remedy_world_give_node(&w->fleet, &w->nodes[k], NULL, false);
	}
	memcpy(twin->nodes, fresh.nodes, NODES * sizeof *fresh.nodes);
	memcpy(twin->index, fresh.index, fresh.n_index * sizeof *fresh.index);
	twin->n_nodes = fresh.n_nodes;
	buf_done(&text);
	free(record);
	free(block);
}
static void restart_changes_nothing(void **state)
{
	struct prop_random r = {prop_seed() + 210};
	struct world w = {.may_move = true};
	int64_t n = prop_ticks();
	while (w.step < n) {
		remedy_world_randomize(&r, &w);
		void *block = calloc(1, remedy_fleet_bytes(NODES));
		struct remedy twin;
		assert_non_null(block);
		remedy_fleet_init(&twin, block, NODES, &w.limits);
		for (int k = -w.n_nodes; k < 4 * PROP_TICKS_A_TRACE; k++) {
			struct input in = k < 0 ? (struct input){.kind = SEND_NODE, .node = k + w.n_nodes}
			                        : remedy_world_random_input(&r, &w);
			remedy_world_give(&twin, &w, &in);
			if (k >= 0)
				restart(&r, &twin, &w, &in);
			remedy_world_step(&w, &in, NULL);
			compare(&w, &twin, "a restart changes nothing");
		}
		free(block);
	}
	free(w.block);
	assert_true(w.taints > n / 2000 && w.untaints > n / 10000);
}

// The API server shows the taints of GPUs late: what the planner has changed is neither lifted nor adopted.
static void changes_in_flight_are_not_undone(void **state)
{
	struct prop_random r = {prop_seed() + 214};
	struct world w = {.may_not_lift = true};
	int64_t n = prop_ticks(), n_late = 0;
	while (w.step < n) {
		remedy_world_randomize(&r, &w);
		void *block = calloc(1, remedy_fleet_bytes(NODES));
		struct remedy twin;
		assert_non_null(block);
		remedy_fleet_init(&twin, block, NODES, &w.limits);
		for (int k = -w.n_nodes; k < 4 * PROP_TICKS_A_TRACE; k++) {
			struct input in = k < 0 ? (struct input){.kind = SEND_NODE, .node = k + w.n_nodes}
			                        : remedy_world_random_input(&r, &w);
			struct node_truth *t = &w.nodes[in.node];
			for (int i = 0; i < GPUS; i++) {
				if (prop_chance(&r, 20))
					t->gpus[i].shown = t->gpus[i].by_gpu;
				n_late += t->gpus[i].shown != t->gpus[i].by_gpu && in.kind == SEND_NODE;
			}
			if (in.kind == SEND_NODE) {
				remedy_fold_time(&twin, w.now_ms);
				remedy_world_give_node(&twin, t, NULL, true);
			} else {
				remedy_world_give(&twin, &w, &in);
			}
			remedy_world_step(&w, &in, NULL);
			compare(&w, &twin, "a taint in flight is neither lifted nor adopted");
		}
		free(block);
	}
	free(w.block);
	assert_true(w.taints > n / 2000 && n_late > n / 10000);
}

int main(void)
{
	prop_begin();
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(repeats_count_once),
	        cmocka_unit_test(faults_never_cancel_each_other),
	        cmocka_unit_test(restart_changes_nothing),
	        cmocka_unit_test(changes_in_flight_are_not_undone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
