// SPDX-License-Identifier: Apache-2.0
#include "insight/kernel_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/hash.h"

#define SLOTS       (4 * KERNEL_NAMES_MAX) // a power of two
#define NAMES_BYTES ((size_t)64 * 1024 * 1024)

void kernel_table_done(struct kernel_table *t)
{
	free(t->rows);
	free(t->slots);
	arena_done(&t->names);
	*t = (struct kernel_table){0};
}

static int prepare(struct kernel_table *t, struct err *e)
{
	if (t->rows)
		return 0;
	arena_init(&t->names, NAMES_BYTES);
	t->rows = calloc(KERNEL_NAMES_MAX + 1, sizeof *t->rows);
	t->slots = calloc(SLOTS, sizeof *t->slots);
	return t->rows && t->slots ? 0 : err_no_memory(e);
}

// Returns the slot of the name: that of its row, or a free one.
static uint32_t *slot_of(const struct kernel_table *t, const char *name)
{
	size_t i = hash_mix(hash_text(HASH_START, name)) & (SLOTS - 1);
	while (t->slots[i] && strcmp(t->rows[t->slots[i] - 1].name, name) != 0)
		i = (i + 1) & (SLOTS - 1);
	return &t->slots[i];
}

int kernel_table_add(struct kernel_table *t, const char *name, int64_t ns, struct err *e)
{
	if (prepare(t, e) < 0)
		return -1;
	uint32_t *slot = slot_of(t, name);
	if (!*slot && t->n >= KERNEL_NAMES_MAX)
		slot = slot_of(t, name = KERNEL_TABLE_OTHER);
	const char *copy = *slot ? NULL : arena_strdup(&t->names, name);
	if (!*slot && !copy)
		slot = slot_of(t, copy = KERNEL_TABLE_OTHER);
	if (!*slot) {
		t->rows[t->n++].name = copy;
		*slot = (uint32_t)t->n;
	}
	struct kernel_time *row = &t->rows[*slot - 1];
	row->total_ns = ns > INT64_MAX - row->total_ns ? INT64_MAX : row->total_ns + ns;
	row->max_ns = ns > row->max_ns ? ns : row->max_ns;
	row->count++;
	return 0;
}

static int by_total(const void *a, const void *b)
{
	const struct kernel_time *x = a, *y = b;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

void kernel_table_sort(struct kernel_table *t)
{
	if (t->n > 0)
		qsort(t->rows, t->n, sizeof *t->rows, by_total);
}
