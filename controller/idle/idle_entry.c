// SPDX-License-Identifier: Apache-2.0
// A rule with its records, from its first version to the end of its last evaluation.
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/must.h"
#include "base/timer.h"
#include "controller/idle/idle_rules_private.h"
#include "controller/idle/idle_status_schema.h"
#include "k8s/cache/conflict_watch.h"

struct idle_record *idle_entry_add(struct idle_entry *e)
{
	if (e->n == IDLE_RECORDS_MAX)
		return NULL;
	if (!e->records)
		e->records = must_alloc(calloc(IDLE_RECORDS_MAX, sizeof *e->records)); // they do not move
	e->records[e->n] = (struct idle_record){0};
	return &e->records[e->n++];
}

void idle_entry_remove(struct idle_entry *e, size_t i)
{
	conflict_watch_release(e->records[i].interest);
	memmove(&e->records[i], &e->records[i + 1], (e->n - i - 1) * sizeof *e->records);
	e->n--;
}

struct idle_entry *idle_entry_new(struct idle_rules *r, const char *name)
{
	size_t size = strlen(name) + 2;
	struct idle_entry *e = must_alloc(calloc(1, sizeof *e + size));
	snprintf(e->key, size, "/%s", name);
	arena_init(&e->arena, IDLE_RULE_BYTES_MAX);
	e->all = r;
	e->next = r->entries;
	r->entries = e;
	if (!evtimer_pending(r->timer, NULL))
		timer_start(r->timer, IDLE_CHECK_MS);
	return e;
}

void idle_entry_free(struct idle_entry *e)
{
	struct idle_entry **at = &e->all->entries;
	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	status_slot_cancel(&e->slot);
	while (e->n > 0)
		idle_entry_remove(e, e->n - 1);
	arena_done(&e->arena);
	free(e->records);
	free(e);
}

void idle_entry_forget(struct idle_entry *e)
{
	if (e->all->evaluation.entry == e)
		e->is_gone = true;
	else
		idle_entry_free(e);
}

void idle_entry_finished(struct idle_entry *e)
{
	if (e->is_gone)
		idle_entry_free(e);
}
