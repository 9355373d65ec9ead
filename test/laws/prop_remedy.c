// SPDX-License-Identifier: Apache-2.0
// Goal of this test: laws of the planner of remediation, on random clusters whose GPUs fail, fall silent and move, and
// whose nodes are cordoned, deleted and edited by hand. The laws judge the actions from outside the planner.
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
#include "base/health_table.h"
#include "remedy/plan/remedy_evidence.h"
#include "remedy/plan/remedy_fleet.h"
#include "remedy/plan/remedy_fold.h"
#include "remedy/plan/remedy_plan.h"
#include "remedy/remedy_record.h"
#include "test/laws/prop.h"

#define NODES       8
#define GPUS        3          // of a node
#define PLACES      (2 * GPUS) // and those of GPUs that moved away before the planner took them out of service
#define UUIDS       (NODES * GPUS)
#define PODS        3
#define ACTIONS_MAX 512
#define ATTEMPTS    64
#define DAY_MS      INT64_C(86400000)
#define HOUR_MS     INT64_C(3600000)
#define STALE_MS    INT64_C(300000)
#define NEVER       (-1)

// What the test knows of a GPU in a place, by its own book-keeping.
struct place {
	char uuid[REMEDY_UUID_BYTES];
	int id;                       // number of the GPU in the world
	bool is_out, by_node, by_gpu; // taints on the API server
	int64_t fault_ms;             // last evidence that is to be acted on; of a condition that lasts: now
	int64_t clean_ms;             // neither a fault nor a gap in telemetry since
	int64_t heard_ms, out_ms;
	int32_t reported; // the recovery action that the driver asks for; 0 = none
	int32_t handled;  // the same when a hand lifted the taint: counts again once it has ended or changed
	int32_t lasting;  // the same, if it counts
	int32_t counter;  // of its XIDs
	int32_t attempts; // of its node when it was taken out
	bool is_moved;
	bool shown; // whether a list of taints that lags shows the taint of the GPU
	// Of the reset within this time out of service.
	bool is_reset, is_failed;
	int64_t open_ms; // requested then, and not answered; NEVER = none
};

struct node_truth {
	char name[16];
	bool has_dra, is_cordoned, is_ready, is_gone;
	struct place gpus[PLACES];
	int64_t was_out_ms[UUIDS]; // when each GPU was last taken out of service on this node
	bool has_pod[PODS];
	bool is_refused[PODS];
	int pod_gpu[PODS];
	int64_t evicted_ms[PODS];
	int64_t attempts_ms[ATTEMPTS];
	int n_attempts;
	int64_t heard_ms;
	int64_t fault_ms; // of any of its GPUs, gone or not
};

struct world {
	struct remedy_limits limits;
	struct remedy fleet;
	void *block;
	struct node_truth nodes[NODES];
	int n_nodes;
	int64_t now_ms, step;
	struct remedy_action actions[ACTIONS_MAX];
	size_t n_actions;
	int next_uuid;
	bool may_delete;
	bool may_move;
	bool may_not_lift; // no person removes a taint
	bool has_hook;     // every world has a hook that answers, and GPUs return soon
	long taints, untaints, evictions, resets, holds;
};

static char pod_names[NODES][PODS][16];

static void broken(const char *law, const struct world *w, int node)
{
	for (size_t i = 0; i < w->n_actions; i++) {
		const struct remedy_action *a = &w->actions[i];
		print_error("%s %s: node %s, GPU %s, whole %d, fault %d, reason %d\n", remedy_kind_name(a->kind),
		            health_action_name(a->wanted), w->fleet.nodes[a->node].name,
		            w->fleet.nodes[a->node].gpus[a->gpu].uuid, a->whole_node, a->fault, a->reason);
	}
	fail_msg("PROP_SEED=%llu: step %lld: %s: node %d at %lld s, limits %d nodes, %d %%, %d attempts, clean %lld s",
	         (unsigned long long)prop_seed(), (long long)w->step, law, node, (long long)(w->now_ms / 1000),
	         w->limits.max_nodes, w->limits.max_percent, w->limits.attempts,
	         (long long)(w->limits.clean_ms / 1000));
}

// ---- a random cluster ----

static void random_world(struct prop_random *r, struct world *w)
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
		n->heard_ms = n->fault_ms = NEVER;
		for (int i = 0; i < GPUS; i++) {
			struct place *g = &n->gpus[i];
			g->id = w->next_uuid++;
			snprintf(g->uuid, sizeof g->uuid, "GPU-%d", g->id);
			g->fault_ms = g->clean_ms = g->heard_ms = g->out_ms = NEVER;
			g->open_ms = NEVER;
		}
		for (int i = 0; i < UUIDS; i++)
			n->was_out_ms[i] = NEVER;
		for (int i = 0; i < PODS; i++) {
			snprintf(pod_names[k][i], sizeof pod_names[k][i], "ns/p-%d-%d", k, i);
			n->pod_gpu[i] = prop_up_to(r, GPUS - 1);
			n->evicted_ms[i] = NEVER;
		}
	}
}

// ---- inputs, as they are given to one planner or to several ----

enum { SEND_EVENT, SEND_TELEMETRY, SEND_SILENCE, SEND_NODE, SEND_ANSWER, SEND_NOTHING };
struct input {
	int kind, node, gpu;
	int32_t xid;
	const char *condition;
	int64_t value, at_ms;
	uint32_t named; // GPUs that telemetry names
};

static void give_node(struct remedy *fleet, struct node_truth *n, int k, const struct remedy_node *record, bool lags)
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
		        .name = pod_names[k][i], .gpus = &pod_gpus[i], .n_gpus = 1, .is_refused = n->is_refused[i]};
	}
	seen.gpus = gpus;
	seen.taints = taints;
	remedy_fold_node(fleet, &seen, record);
}

static void give(struct remedy *fleet, struct world *w, const struct input *in)
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
		give_node(fleet, n, in->node, NULL, false);
	} else if (in->kind == SEND_ANSWER) {
		remedy_fold_reset(fleet, n->name, n->gpus[in->gpu].uuid, in->at_ms, in->value == 1);
	}
}

// ---- the books ----

static void book_heard(struct world *w, struct node_truth *n, int i)
{
	struct place *g = &n->gpus[i];
	if (g->heard_ms < 0 || w->now_ms - g->heard_ms > STALE_MS)
		g->clean_ms = w->now_ms;
	g->heard_ms = w->now_ms;
	n->heard_ms = w->now_ms;
}

static const int32_t deadly[] = {46, 48, 64, 74, 79, 95, 119}, harmless[] = {13, 31, 43, 45, 92, 162, 163, 999};
static bool is_deadly(int32_t xid)
{
	for (size_t i = 0; i < sizeof deadly / sizeof deadly[0]; i++)
		if (deadly[i] == xid)
			return true;
	return false;
}

static void book_input(struct world *w, const struct input *in)
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
	if (in->condition ? in->value > 0 : is_deadly(in->xid))
		n->fault_ms = g->fault_ms = g->clean_ms = w->now_ms;
}

// The place of the GPU in the node, or NULL. A GPU that moved away has a place while it is out of service.
static struct place *find_place(struct node_truth *n, const char *uuid)
{
	for (int i = 0; i < PLACES; i++)
		if ((i < GPUS || n->gpus[i].is_out) && strcmp(n->gpus[i].uuid, uuid) == 0)
			return &n->gpus[i];
	return NULL;
}

// The same, added when missing: the planner may take a GPU out of service before it learns that the GPU moved away.
static struct place *add_place(struct world *w, struct node_truth *n, const char *uuid)
{
	struct place *g = find_place(n, uuid);
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
	g->fault_ms = g->clean_ms = g->heard_ms = g->out_ms = g->open_ms = NEVER;
	return g;
}

static int truth_of(const struct world *w, const struct remedy_action *a)
{
	for (int k = 0; k < w->n_nodes; k++)
		if (strcmp(w->nodes[k].name, w->fleet.nodes[a->node].name) == 0)
			return k;
	fail_msg("an action for a node that the cluster never had");
	return 0;
}

static bool is_unavailable(const struct node_truth *n)
{
	bool is_out = n->is_cordoned || !n->is_ready;
	for (int i = 0; i < PLACES; i++)
		is_out |= n->gpus[i].is_out;
	return is_out && !n->is_gone;
}

static bool has_out(const struct node_truth *n)
{
	for (int i = 0; i < PLACES; i++)
		if (n->gpus[i].is_out)
			return true;
	return false;
}

static int attempts_of_day(const struct world *w, const struct node_truth *n)
{
	int count = 0;
	for (int i = 0; i < n->n_attempts; i++)
		count += w->now_ms - n->attempts_ms[i] < DAY_MS;
	return count;
}

// Whether the GPU was taken out of service within a day.
static bool was_out(const struct world *w, const struct node_truth *n, const struct place *g)
{
	return n->was_out_ms[g->id] >= 0 && w->now_ms - n->was_out_ms[g->id] < DAY_MS;
}

// Books a GPU as out of service: with the taint, or because the planner counts it in behind the taint of its node.
static void book_out(struct world *w, struct node_truth *n, struct place *g)
{
	if (g->is_out)
		return;
	if ((!has_out(n) || was_out(w, n, g)) && n->n_attempts < ATTEMPTS)
		n->attempts_ms[n->n_attempts++] = w->now_ms;
	g->is_out = true;
	g->is_reset = g->is_failed = false;
	g->out_ms = n->was_out_ms[g->id] = w->now_ms;
	g->attempts = attempts_of_day(w, n);
}

static void book_in(struct place *g)
{
	g->is_out = g->by_node = g->by_gpu = false;
	g->fault_ms = g->open_ms = NEVER;
}

typedef void check_fn(struct world *w, const struct remedy_action *a, int k, struct place *g);

// Books one action after `check` has judged it. A GPU that joins behind the taint of its node does so without an
// action, so the books follow the planner's own flags there; the laws about it judge what it does afterwards.
static void book_action(struct world *w, const struct remedy_action *a, check_fn *check)
{
	int k = truth_of(w, a);
	struct node_truth *n = &w->nodes[k];
	const char *uuid = w->fleet.nodes[a->node].gpus[a->gpu].uuid; // "" = the node itself
	struct place *g = a->kind == REMEDY_TAINT && *uuid ? add_place(w, n, uuid) : find_place(n, uuid);
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
				book_in(&n->gpus[i]);
	} else if (a->kind == REMEDY_UNTAINT && g) {
		book_in(g);
	} else if (a->kind == REMEDY_EVICT) {
		for (int i = 0; i < PODS; i++)
			if (strcmp(pod_names[k][i], w->fleet.nodes[a->node].pods[a->pod].name) == 0)
				n->evicted_ms[i] = w->now_ms;
	} else if (a->kind == REMEDY_RESET && g) {
		g->lasting = 0;
		g->is_reset = true;
		g->open_ms = w->limits.is_answered ? w->now_ms : NEVER;
	}
}

static void book_joins(struct world *w)
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
	in->xid = prop_chance(r, 50) ? harmless[prop_up_to(r, 7)] : deadly[prop_chance(r, 50) ? 0 : prop_up_to(r, 6)];
	if (prop_chance(r, 5)) // from the future, or long ago
		in->at_ms +=
		        prop_chance(r, 50) ? 61000 + prop_up_to(r, 1000000) : -HOUR_MS - 1 - prop_up_to(r, 1000000);
	else if (prop_chance(r, 30))
		in->value = g->counter += 1 + prop_up_to(r, 3);
}

// Another GPU in this place: it moved here from another node, or is new.
static void change_gpu(struct prop_random *r, struct world *w, struct input *in)
{
	struct place *here = &w->nodes[in->node].gpus[in->gpu];
	int other = prop_up_to(r, w->n_nodes - 1), at = prop_up_to(r, GPUS - 1);
	struct place *there = &w->nodes[other].gpus[at];
	if (other == in->node || here->is_out || there->is_out || w->nodes[other].is_gone || !w->may_move ||
	    find_place(&w->nodes[other], here->uuid) || find_place(&w->nodes[in->node], there->uuid))
		return;
	struct place old = *here;
	memcpy(here->uuid, there->uuid, sizeof here->uuid);
	memcpy(there->uuid, old.uuid, sizeof there->uuid);
	here->id = there->id;
	there->id = old.id;
	struct place *both[] = {here, there};
	for (int i = 0; i < 2; i++) {
		both[i]->fault_ms = both[i]->clean_ms = both[i]->heard_ms = NEVER;
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
				book_in(&n->gpus[i]);
				n->gpus[i].clean_ms = w->now_ms;
				n->gpus[i].handled = n->gpus[i].reported;
				n->gpus[i].lasting = 0;
			}
	if (w->may_delete && prop_chance(r, 5)) {
		n->is_gone = !n->is_gone;
		for (int i = 0; i < PLACES; i++) {
			struct place *g = &n->gpus[i];
			book_in(g);
			g->clean_ms = g->heard_ms = NEVER;
			g->reported = g->handled = g->lasting = 0;
		}
		for (int i = 0; i < UUIDS; i++)
			n->was_out_ms[i] = NEVER;
		n->heard_ms = NEVER;
	}
}

static struct input random_input(struct prop_random *r, struct world *w)
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

static void ask(struct world *w)
{
	w->n_actions = remedy_plan(&w->fleet, true, w->actions, ACTIONS_MAX);
	assert_true(w->n_actions < ACTIONS_MAX);
}

// One input, given and booked; then the actions, judged and booked.
static void step(struct world *w, const struct input *in, check_fn *check)
{
	give(&w->fleet, w, in);
	book_input(w, in);
	ask(w);
	for (size_t i = 0; i < w->n_actions; i++)
		book_action(w, &w->actions[i], check);
	book_joins(w);
	w->step++;
}

static void start(struct world *w)
{
	for (int k = 0; k < w->n_nodes; k++) {
		struct input in = {.kind = SEND_NODE, .node = k};
		step(w, &in, NULL);
	}
}

static void run_in(struct world w, uint64_t seed, check_fn *check,
                   void (*after)(struct world *w, const struct input *in))
{
	struct prop_random r = {prop_seed() + seed};
	int64_t n = prop_ticks();
	while (w.step < n) {
		random_world(&r, &w);
		start(&w);
		for (int i = 0; i < 4 * PROP_TICKS_A_TRACE; i++) {
			struct input in = random_input(&r, &w);
			step(&w, &in, check);
			if (after)
				after(&w, &in);
		}
	}
	free(w.block);
	// the laws were put to the test
	assert_true(w.taints > n / 2000 && w.untaints > n / 10000 && w.evictions > n / 10000);
}

static void run(uint64_t seed, check_fn *check, void (*after)(struct world *w, const struct input *in))
{
	run_in((struct world){.may_delete = true, .may_move = true}, seed, check, after);
}

// ---- the laws ----

static void check_limits(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	int total = 0, unavailable = 0;
	if (a->kind != REMEDY_TAINT || has_out(&w->nodes[k]))
		return;
	for (int i = 0; i < w->n_nodes; i++) {
		total += !w->nodes[i].is_gone;
		unavailable += is_unavailable(&w->nodes[i]);
	}
	int percent = total * w->limits.max_percent / 100;
	percent = percent == 0 && w->limits.max_percent > 0 ? 1 : percent;
	if (unavailable + 1 > w->limits.max_nodes)
		broken("at most maxUnavailable nodes", w, k);
	if (unavailable + 1 > percent)
		broken("at most maxUnavailablePercent of the nodes", w, k);
}
static void limits_hold(void **state)
{
	run(201, check_limits, NULL);
}

static void check_attempts(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	const struct node_truth *n = &w->nodes[k];
	if (a->kind != REMEDY_TAINT || !g || g->is_out)
		return;
	if ((!has_out(n) || was_out(w, n, g)) && attempts_of_day(w, n) >= w->limits.attempts)
		broken("at most k attempts per node and day", w, k);
}
static void attempts_per_node_and_day(void **state)
{
	run(202, check_attempts, NULL);
}

static void check_evidence(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	const struct node_truth *n = &w->nodes[k];
	if (n->is_gone)
		broken("no action for a node that is gone", w, k);
	if (a->kind == REMEDY_TAINT && n->is_cordoned && !has_out(n))
		broken("no taint on a node that a person cordoned", w, k);
	bool is_known = g && !g->is_moved; // else the planner may not have noticed yet that it moved
	int64_t fault_ms = is_known ? g->fault_ms : n->fault_ms;
	bool is_old = w->now_ms - fault_ms > HOUR_MS && !(is_known ? g->lasting : a->fault < 0);
	if (a->kind == REMEDY_TAINT && (fault_ms < 0 || is_old))
		broken("no taint without evidence", w, k);
	bool was_tainted = has_out(n);
	for (const struct remedy_action *b = w->actions; b < a; b++)
		was_tainted |= b->kind == REMEDY_TAINT && b->node == a->node;
	if ((a->kind == REMEDY_EVICT || a->kind == REMEDY_RESET) && g && !was_tainted)
		broken("no work is moved from a GPU in service", w, k);
	if (a->kind == REMEDY_RESET && !w->limits.can_reset)
		broken("no reset without a hook", w, k);
	for (int i = 0; a->kind == REMEDY_RESET && g && i < PODS; i++)
		if (n->has_pod[i] && &n->gpus[n->pod_gpu[i]] == g && !g->is_moved)
			broken("no reset of a GPU that a pod uses", w, k);
	for (int i = 0; a->kind == REMEDY_EVICT && g && i < PODS; i++)
		if (strcmp(pod_names[k][i], w->fleet.nodes[a->node].pods[a->pod].name) == 0 &&
		    &n->gpus[n->pod_gpu[i]] != g && a->wanted != HEALTH_DRAIN_REBOOT && !g->is_moved &&
		    !(w->limits.drains && w->fleet.nodes[a->node].gpus[a->gpu].has_node_taint))
			broken("only the pods of the GPU are evicted", w, k);
}
static void no_action_without_evidence(void **state)
{
	run(203, check_evidence, NULL);
}

static void check_telemetry(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	const struct node_truth *n = &w->nodes[k];
	bool is_missing = n->heard_ms < 0 || w->now_ms - n->heard_ms > STALE_MS;
	if (a->kind == REMEDY_TAINT && !has_out(n) && is_missing)
		broken("no taint while telemetry is missing", w, k);
	if ((a->kind == REMEDY_RESET || a->kind == REMEDY_UNTAINT) && is_missing)
		broken("no reset and no return while telemetry is missing", w, k);
}
static void no_action_on_missing_telemetry(void **state)
{
	run(204, check_telemetry, NULL);
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
			broken("a GPU whose condition lasts does not return", w, k);
		if (p->clean_ms < 0 || w->now_ms - p->clean_ms < need_ms || w->now_ms - p->out_ms < need_ms)
			broken("a GPU returns after the clean time, which doubles with each attempt", w, k);
	}
}
static void flapping_is_held_down(void **state)
{
	run(205, check_hold_down, NULL);
}

static void check_flood(struct world *w, const struct remedy_action *a, int k, struct place *g)
{
	const struct node_truth *n = &w->nodes[k];
	for (int i = 0; a->kind == REMEDY_EVICT && i < PODS; i++)
		if (strcmp(pod_names[k][i], w->fleet.nodes[a->node].pods[a->pod].name) == 0 && n->evicted_ms[i] >= 0 &&
		    w->now_ms - n->evicted_ms[i] < 30000 && n->evicted_ms[i] > 0 && n->is_refused[i])
			broken("a refused eviction is repeated after 30 s at the earliest", w, k);
	for (size_t i = 0; a->kind == REMEDY_HOLD && &w->actions[i] < a; i++)
		if (w->actions[i].kind == REMEDY_HOLD && w->actions[i].node == a->node && w->actions[i].gpu == a->gpu &&
		    w->actions[i].reason == a->reason)
			broken("a hold is reported once", w, k);
}
static void after_flood(struct world *w, const struct input *in)
{
	ask(w); // the same moment again
	for (size_t i = 0; i < w->n_actions; i++)
		broken("the same moment repeats no action", w, truth_of(w, &w->actions[i]));
}
static void requests_do_not_flood(void **state)
{
	run(206, check_flood, after_flood);
}

// With room in every limit, a GPU with evidence is out of service at once, whatever else was reported.
static void after_fault(struct world *w, const struct input *in)
{
	struct node_truth *n = &w->nodes[in->node];
	const struct place *g = &n->gpus[in->gpu];
	int total = 0, unavailable = 0;
	for (int i = 0; i < w->n_nodes; i++) {
		total += !w->nodes[i].is_gone;
		unavailable += is_unavailable(&w->nodes[i]);
	}
	int percent = total * w->limits.max_percent / 100;
	percent = percent == 0 && w->limits.max_percent > 0 ? 1 : percent;
	bool is_free = unavailable < w->limits.max_nodes && unavailable < percent;
	if (n->is_gone || n->is_cordoned || !n->is_ready || !is_free || n->heard_ms < 0 ||
	    w->now_ms - n->heard_ms > STALE_MS || attempts_of_day(w, n) >= w->limits.attempts)
		return;
	if (g->fault_ms >= 0 && w->now_ms - g->fault_ms < HOUR_MS - 1000 && g->lasting == 0 && !g->is_moved &&
	    !g->is_out && in->kind == SEND_EVENT && !in->condition && is_deadly(in->xid) && g->fault_ms == w->now_ms)
		broken("a fault takes its GPU out of service at once", w, in->node);
}
static void every_fault_is_acted_on(void **state)
{
	run(207, NULL, after_fault);
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
			broken("one GPU of a node is reset at a time", w, k);
		bool returns = a->kind == REMEDY_UNTAINT && (a->whole_node ? p->by_node : p == g) && !p->is_moved;
		if (returns && p->open_ms >= 0)
			broken("no return while a reset has no answer", w, k);
		bool wants = a->wanted == HEALTH_RESET_IDLE || a->wanted == HEALTH_DRAIN_RESET;
		if (returns && p == g && p->is_failed && wants)
			broken("no return after a reset that failed", w, k);
	}
	if (a->kind == REMEDY_RESET && g && g->is_out && g->is_reset && !g->is_moved)
		broken("a GPU is reset at most once while it is out of service", w, k);
}
static void resets_are_bounded(void **state)
{
	run_in((struct world){.may_delete = true, .has_hook = true}, 212, check_resets, NULL);
}

static void after_drain(struct world *w, const struct input *in)
{
	(void)in;
	for (size_t t = 0; w->limits.drains && t < w->n_actions; t++) {
		const struct remedy_action *a = &w->actions[t];
		if (a->kind != REMEDY_TAINT || !a->whole_node || a->wanted < HEALTH_DRAIN)
			continue;
		int k = truth_of(w, a);
		for (int i = 0; i < PODS; i++)
			if (w->nodes[k].has_pod[i] && w->nodes[k].evicted_ms[i] < 0)
				broken("every pod with GPUs leaves a node that is drained", w, k);
	}
}
static void drain_moves_every_pod(void **state)
{
	run(213, NULL, after_drain);
}

// ---- twins: another planner gets a different account of the same events ----

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
			broken(law, w, w->actions[i].node);
	if (n != w->n_actions)
		broken(law, w, n > w->n_actions ? actions[w->n_actions].node : w->actions[n].node);
}

static void run_twins(uint64_t seed, const char *law,
                      void (*extra)(struct prop_random *r, struct remedy *twin, struct world *w, struct input *in))
{
	struct prop_random r = {prop_seed() + seed};
	struct world w = {.may_delete = true, .may_move = true};
	int64_t n = prop_ticks();
	while (w.step < n) {
		random_world(&r, &w);
		void *block = calloc(1, remedy_fleet_bytes(NODES));
		struct remedy twin;
		assert_non_null(block);
		remedy_fleet_init(&twin, block, NODES, &w.limits);
		for (int k = -w.n_nodes; k < 4 * PROP_TICKS_A_TRACE; k++) {
			struct input in =
			        k < 0 ? (struct input){.kind = SEND_NODE, .node = k + w.n_nodes} : random_input(&r, &w);
			give(&twin, &w, &in);
			extra(&r, &twin, &w, &in);
			step(&w, &in, NULL);
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
		give(twin, w, in);
	if (in->kind != SEND_TELEMETRY || !(in->named & 1) || !prop_chance(r, 10))
		return;
	struct input third = {.kind = SEND_EVENT, .node = in->node, .xid = 109, .value = -1, .at_ms = w->now_ms};
	give(&w->fleet, w, &third); // counts from the third time on
	for (int i = prop_up_to(r, 5); i >= 0; i--)
		give(twin, w, &third);
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
		noise.xid = harmless[prop_up_to(r, 7)];
		if (in->named >> noise.gpu & 1)
			give(twin, w, &noise);
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
		give_node(&fresh, &w->nodes[k], k, record, false);
		give_node(&w->fleet, &w->nodes[k], k, NULL, false);
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
		random_world(&r, &w);
		void *block = calloc(1, remedy_fleet_bytes(NODES));
		struct remedy twin;
		assert_non_null(block);
		remedy_fleet_init(&twin, block, NODES, &w.limits);
		for (int k = -w.n_nodes; k < 4 * PROP_TICKS_A_TRACE; k++) {
			struct input in =
			        k < 0 ? (struct input){.kind = SEND_NODE, .node = k + w.n_nodes} : random_input(&r, &w);
			give(&twin, &w, &in);
			if (k >= 0)
				restart(&r, &twin, &w, &in);
			step(&w, &in, NULL);
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
		random_world(&r, &w);
		void *block = calloc(1, remedy_fleet_bytes(NODES));
		struct remedy twin;
		assert_non_null(block);
		remedy_fleet_init(&twin, block, NODES, &w.limits);
		for (int k = -w.n_nodes; k < 4 * PROP_TICKS_A_TRACE; k++) {
			struct input in =
			        k < 0 ? (struct input){.kind = SEND_NODE, .node = k + w.n_nodes} : random_input(&r, &w);
			struct node_truth *t = &w.nodes[in.node];
			for (int i = 0; i < GPUS; i++) {
				if (prop_chance(&r, 20))
					t->gpus[i].shown = t->gpus[i].by_gpu;
				n_late += t->gpus[i].shown != t->gpus[i].by_gpu && in.kind == SEND_NODE;
			}
			if (in.kind == SEND_NODE) {
				remedy_fold_time(&twin, w.now_ms);
				give_node(&twin, t, in.node, NULL, true);
			} else {
				give(&twin, &w, &in);
			}
			step(&w, &in, NULL);
			compare(&w, &twin, "a taint in flight is neither lifted nor adopted");
		}
		free(block);
	}
	free(w.block);
	assert_true(w.taints > n / 2000 && n_late > n / 10000);
}

// Every limit is closed, and nothing fails any more: all taints go but those of hardware that must be replaced.
static void returning_is_never_limited(void **state)
{
	struct prop_random r = {prop_seed() + 211};
	struct world w = {.may_move = true};
	int64_t n = prop_ticks(), returned = 0;
	while (w.step < n) {
		random_world(&r, &w);
		start(&w);
		for (int i = 0; i < PROP_TICKS_A_TRACE; i++) {
			struct input in = random_input(&r, &w);
			step(&w, &in, NULL);
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
				step(&w, &clear, NULL);
			}
			memset(w.nodes[k].has_pod, 0, sizeof w.nodes[k].has_pod);
			struct input in = {.kind = SEND_NODE, .node = k};
			step(&w, &in, NULL);
		}
		for (int64_t end_ms = w.now_ms + DAY_MS + 2 * STALE_MS; w.now_ms < end_ms; w.now_ms += 240000)
			for (int k = 0; k < w.n_nodes; k++) {
				struct input in = {.kind = SEND_TELEMETRY, .node = k, .named = 7};
				step(&w, &in, NULL);
			}
		returned += w.untaints - before;
		for (int k = 0; k < w.n_nodes; k++) {
			const struct remedy_node *node = remedy_fleet_find(&w.fleet, w.nodes[k].name);
			bool needs_hardware = false;
			for (int i = 0; i < node->n_faults; i++)
				needs_hardware |= node->faults[i].id == 64 && !node->faults[i].is_handled;
			for (int i = 0; i < node->n_gpus; i++)
				needs_hardware |= node->gpus[i].is_reset_failed; // needs a person
			if (!needs_hardware && (node->n_out > 0 || has_out(&w.nodes[k])))
				broken("returning is never limited", &w, k);
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
	        cmocka_unit_test(repeats_count_once),
	        cmocka_unit_test(faults_never_cancel_each_other),
	        cmocka_unit_test(restart_changes_nothing),
	        cmocka_unit_test(returning_is_never_limited),
	        cmocka_unit_test(resets_are_bounded),
	        cmocka_unit_test(drain_moves_every_pod),
	        cmocka_unit_test(changes_in_flight_are_not_undone),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
