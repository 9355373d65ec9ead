// SPDX-License-Identifier: Apache-2.0
// Chooses the next query of a source: a fixed number of slots, shared among namespaces. Pure: no clock, no I/O.
//
// - Namespaces take turns: each turn starts one item of one namespace, in the order in which they were added.
// - Slow items use at most half of the slots (the only one, if there is one), so fast items never wait for slow ones.
// - The last quarter of that half is for namespaces that use no slow slot. Without it, the slow items of two
//   namespaces could use all of it for as long as each item takes, which may be longer than an item of a third
//   namespace may wait.
// - Once two namespaces have used the queue, each may use at most three quarters of the slots.
// Items without a namespace are not subject to the limits per namespace.
#ifndef GPUSCALE_PROMQL_FAIR_QUEUE_H
#define GPUSCALE_PROMQL_FAIR_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

struct fair_group;

enum fair_class { FAIR_FAST, FAIR_SLOW, FAIR_CLASS__COUNT };

// Embedded in the caller's structure, which must stay valid while the item is in the queue. Members are private.
struct fair_item {
	TAILQ_ENTRY(fair_item) link;
	struct fair_group *group;
	enum fair_class class;
	bool is_started;
};

TAILQ_HEAD(fair_sides, fair_side);

// Other modules only read the first three members.
struct fair_queue {
	int slots;
	int used[FAIR_CLASS__COUNT]; // slots
	size_t n_waiting;            // queued items
	enum fair_class turn;        // the class whose turn is next
	struct fair_group *groups;
	struct fair_sides rings[FAIR_CLASS__COUNT]; // the front has the next turn
	char *first_name;                           // name of the first namespace ever; NULL: none yet
	bool has_many;                              // more than one namespace has used the queue
};

// Returns NULL when memory is exhausted. slots >= 1.
struct fair_queue *fair_queue_new(int slots);
// Frees an empty queue: no item may be queued or started. NULL is fine.
void fair_queue_free(struct fair_queue *q);
// Queues `item`. namespace_name is copied; NULL or "": no namespace. Returns false when memory is exhausted; the item
// is then not queued.
bool fair_queue_add(struct fair_queue *q, struct fair_item *item, const char *namespace_name, enum fair_class class);
// Removes the next item that may start from the queue and gives it a slot. Returns NULL when no item may start.
struct fair_item *fair_queue_next(struct fair_queue *q);
// Removes `item`, queued or started, and frees its slot.
void fair_queue_remove(struct fair_queue *q, struct fair_item *item);
// Returns any queued item; NULL: none.
struct fair_item *fair_queue_any(const struct fair_queue *q);

#endif
