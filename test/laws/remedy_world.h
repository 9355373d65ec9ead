// SPDX-License-Identifier: Apache-2.0
// Random clusters for the laws of the planner of remediation: GPUs fail, fall silent and move, and nodes are cordoned,
// deleted and edited by hand. The cluster keeps its own books (remedy_books.c), which judge the planner from outside.
#ifndef GPUSCALE_TEST_LAWS_REMEDY_WORLD_H
#define GPUSCALE_TEST_LAWS_REMEDY_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remedy/plan/remedy_plan.h"
#include "remedy/plan/remedy_state.h"
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
	char pod_names[PODS][16];
	bool has_pod[PODS];
	bool is_refused[PODS];
	int pod_gpu[PODS];
	int64_t evicted_ms[PODS];
	int64_t attempts_ms[ATTEMPTS];
	int n_attempts;
	int64_t heard_ms;
	int64_t faults_ms[UUIDS]; // last evidence against each GPU on this node that is to be acted on
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
	int moved[4]; // the last two GPUs that moved: node and place of each
	bool may_delete;
	bool may_move;
	bool may_not_lift; // no person removes a taint
	bool has_hook;     // every world has a hook that answers, and GPUs return soon
	long taints, untaints, evictions, resets, holds;
};

extern const int32_t remedy_world_deadly[7], remedy_world_harmless[8]; // XIDs

// An input, as it is given to one planner or to several.
enum { SEND_EVENT, SEND_TELEMETRY, SEND_SILENCE, SEND_NODE, SEND_ANSWER, SEND_NOTHING };
struct input {
	int kind, node, gpu;
	int32_t xid;
	const char *condition;
	int64_t value, at_ms;
	uint32_t named; // GPUs that telemetry names
};

// Ends the law with its name, the seed and the actions. node: an index of world.nodes.
void remedy_world_broken(const char *law, const struct world *w, int node);

// ---- the cluster and what it sends ----

// Begins another cluster; the counts and the members from may_delete to has_hook stay. The caller frees w->block.
void remedy_world_randomize(struct prop_random *r, struct world *w);
struct input remedy_world_random_input(struct prop_random *r, struct world *w);
// Gives one input to a planner. lags: the list of taints is an old one. record: NULL: none.
void remedy_world_give(struct remedy *fleet, struct world *w, const struct input *in);
void remedy_world_give_node(struct remedy *fleet, struct node_truth *n, const struct remedy_node *record, bool lags);

// ---- steps ----

// Judges one action, before it is booked. k: the node in world.nodes; g: the GPU, NULL: not in the books.
typedef void book_check_fn(struct world *w, const struct remedy_action *a, int k, struct place *g);
// Asks the planner of the world for its actions.
void remedy_world_ask(struct world *w);
// One input, given and booked; then the actions, judged and booked. check: NULL: none.
void remedy_world_step(struct world *w, const struct input *in, book_check_fn *check);
// Gives every node to the planner for the first time.
void remedy_world_start(struct world *w);
// Runs a law over random clusters for prop_ticks() steps. w: the permissions to start with; seed: a number per law;
// after: called after each step; NULL: none.
void remedy_world_run_in(struct world w, uint64_t seed, book_check_fn *check,
                         void (*after)(struct world *w, const struct input *in));
// The same with every permission but a hook.
void remedy_world_run(uint64_t seed, book_check_fn *check, void (*after)(struct world *w, const struct input *in));

// ---- the books ----

void book_input(struct world *w, const struct input *in);
// Books one action after `check` has judged it. A GPU that joins behind the taint of its node does so without an
// action, so book_joins() follows the planner's own flags there; the laws about it judge what it does afterwards.
void book_action(struct world *w, const struct remedy_action *a, book_check_fn *check);
void book_joins(struct world *w);
// Books a GPU of the node as in service.
void book_in(struct node_truth *n, struct place *g);
// Returns the place of the GPU in the node, or NULL. A GPU that moved away has a place while it is out of service.
struct place *book_find_place(struct node_truth *n, const char *uuid);
// Returns the index of the node of an action in world.nodes.
int book_node_of(const struct world *w, const struct remedy_action *a);
bool book_is_deadly(int32_t xid);
bool book_is_unavailable(const struct node_truth *n);
bool book_has_out(const struct node_truth *n);
int book_attempts_of_day(const struct world *w, const struct node_truth *n);
// Returns whether the GPU was taken out of service within a day.
bool book_was_out(const struct world *w, const struct node_truth *n, const struct place *g);

#endif
