// SPDX-License-Identifier: Apache-2.0
#include "promql/fair_queue.h"

#include "base/base.h"
#include "base/hash_table.h"

TAILQ_HEAD(fair_items, fair_item);

// A namespace, for as long as it has items.
struct fair_group {
	int used[FAIR_CLASS__COUNT]; // slots
	size_t n;                    // items, started ones included
	struct fair_side {
		struct fair_group *group;
		struct fair_items items;
		TAILQ_ENTRY(fair_side) link; // entry in the class's ring, while it has items
	} sides[FAIR_CLASS__COUNT];
	UT_hash_handle hh;
	char name[];
};

struct fair_queue *fair_queue_new(int slots)
{
	assert(slots >= 1);
	struct fair_queue *q = calloc(1, sizeof *q);
	if (!q)
		return NULL;
	q->slots = slots;
	for (int c = 0; c < FAIR_CLASS__COUNT; c++)
		TAILQ_INIT(&q->rings[c]);
	return q;
}

void fair_queue_free(struct fair_queue *q)
{
	if (!q)
		return;
	assert(!q->groups);
	free(q->first_name);
	free(q);
}

// ---- groups ----

static bool note_name(struct fair_queue *q, const char *name)
{
	if (q->has_many || !name[0])
		return true;
	if (q->first_name)
		q->has_many = strcmp(q->first_name, name) != 0;
	else
		q->first_name = strdup(name);
	return q->first_name != NULL;
}

static struct fair_group *group_of(struct fair_queue *q, const char *name)
{
	struct fair_group *g = NULL;
	HASH_FIND_STR(q->groups, name, g);
	if (g)
		return g;
	size_t len = strlen(name);
	g = note_name(q, name) ? calloc(1, sizeof *g + len + 1) : NULL;
	if (!g)
		return NULL;
	memcpy(g->name, name, len + 1);
	for (int c = 0; c < FAIR_CLASS__COUNT; c++) {
		g->sides[c].group = g;
		TAILQ_INIT(&g->sides[c].items);
	}
	HASH_ADD_KEYPTR(hh, q->groups, g->name, len, g);
	return g;
}

static void release(struct fair_queue *q, struct fair_group *g)
{
	if (--g->n > 0)
		return;
	HASH_DEL(q->groups, g);
	free(g);
}

static int half_of(const struct fair_queue *q)
{
	return q->slots > 1 ? q->slots / 2 : 1;
}

static bool may_start(const struct fair_queue *q, const struct fair_group *g, enum fair_class class)
{
	int half = half_of(q);
	if (!g->name[0])
		return true;
	if (class == FAIR_SLOW && g->used[FAIR_SLOW] > 0 && q->used[FAIR_SLOW] >= half - half / 4)
		return false;
	return !q->has_many || g->used[FAIR_FAST] + g->used[FAIR_SLOW] < q->slots - q->slots / 4;
}

// ---- items ----

bool fair_queue_add(struct fair_queue *q, struct fair_item *item, const char *namespace_name, enum fair_class class)
{
	struct fair_group *g = group_of(q, namespace_name ? namespace_name : "");
	if (!g)
		return false;
	struct fair_side *side = &g->sides[class];
	if (TAILQ_EMPTY(&side->items))
		TAILQ_INSERT_TAIL(&q->rings[class], side, link);
	*item = (struct fair_item){.group = g, .class = class};
	TAILQ_INSERT_TAIL(&side->items, item, link);
	g->n++;
	q->n_waiting++;
	return true;
}

static void unlink_item(struct fair_queue *q, struct fair_item *item)
{
	struct fair_side *side = &item->group->sides[item->class];
	TAILQ_REMOVE(&side->items, item, link);
	q->n_waiting--;
	TAILQ_REMOVE(&q->rings[item->class], side, link);
	if (!TAILQ_EMPTY(&side->items))
		TAILQ_INSERT_TAIL(&q->rings[item->class], side, link); // moves to the back after its turn
}

static struct fair_item *next_of(struct fair_queue *q, enum fair_class class)
{
	if (class == FAIR_SLOW && q->used[FAIR_SLOW] >= half_of(q))
		return NULL;
	struct fair_side *side;
	TAILQ_FOREACH(side, &q->rings[class], link)
	if (may_start(q, side->group, class))
		return TAILQ_FIRST(&side->items);
	return NULL;
}

struct fair_item *fair_queue_next(struct fair_queue *q)
{
	if (q->n_waiting == 0 || q->used[FAIR_FAST] + q->used[FAIR_SLOW] >= q->slots)
		return NULL;
	struct fair_item *item = next_of(q, q->turn);
	if (!item)
		item = next_of(q, q->turn == FAIR_FAST ? FAIR_SLOW : FAIR_FAST);
	if (!item)
		return NULL;
	unlink_item(q, item);
	q->turn = item->class == FAIR_FAST ? FAIR_SLOW : FAIR_FAST;
	item->is_started = true;
	item->group->used[item->class]++;
	q->used[item->class]++;
	return item;
}

void fair_queue_remove(struct fair_queue *q, struct fair_item *item)
{
	if (item->is_started) {
		item->group->used[item->class]--;
		q->used[item->class]--;
	} else {
		struct fair_side *side = &item->group->sides[item->class];
		TAILQ_REMOVE(&side->items, item, link);
		if (TAILQ_EMPTY(&side->items)) // otherwise it keeps its place in the ring
			TAILQ_REMOVE(&q->rings[item->class], side, link);
		q->n_waiting--;
	}
	release(q, item->group);
	item->group = NULL;
}

struct fair_item *fair_queue_any(const struct fair_queue *q)
{
	for (int c = 0; c < FAIR_CLASS__COUNT; c++)
		if (!TAILQ_EMPTY(&q->rings[c]))
			return TAILQ_FIRST(&TAILQ_FIRST(&q->rings[c])->items);
	return NULL;
}
