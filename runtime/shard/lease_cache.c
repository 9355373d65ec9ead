// SPDX-License-Identifier: Apache-2.0
#include "runtime/shard/lease_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define SHARD_NUMBER_MAX 100000

void lease_cache_init(struct lease_cache *b, const char *prefix, int64_t duration_ms)
{
	*b = (struct lease_cache){.prefix = prefix, .duration_ms = duration_ms};
}

void lease_cache_done(struct lease_cache *b)
{
	free(b->items);
	*b = (struct lease_cache){0};
}

static int32_t shard_number(const struct lease_cache *b, const char *name)
{
	size_t len = strlen(b->prefix);
	int64_t n = 0;
	if (strncmp(name, b->prefix, len) != 0 || name[len] != '-' || (name[len + 1] == '0' && name[len + 2]) ||
	    num_parse_i64(name + len + 1, strlen(name + len + 1), 0, SHARD_NUMBER_MAX, &n, NULL) < 0)
		return -1;
	return (int32_t)n;
}

// Returns the index of the entry called name, or the index at which to insert it.
static size_t place_of(const struct lease_cache *b, const char *name)
{
	size_t low = 0, high = b->n;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (strcmp(b->items[middle].record.name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint64_t lease_cache_begin(struct lease_cache *b)
{
	return ++b->n_requested;
}

int lease_cache_observe(struct lease_cache *b, const struct lease_record *record, int64_t now_ms)
{
	size_t i = place_of(b, record->name);
	if (i < b->n && strcmp(b->items[i].record.name, record->name) == 0) {
		struct lease_cache_entry *entry = &b->items[i];
		if (strcmp(entry->record.version, record->version) != 0) {
			entry->was_renewed = true;
			entry->seen_ms = now_ms;
		}
		entry->record = *record;
		entry->shown = b->n_requested;
		return 0;
	}
	if (b->n == b->room) {
		size_t room = b->room ? 2 * b->room : 16;
		struct lease_cache_entry *grown = realloc(b->items, room * sizeof *grown);
		if (!grown)
			return -1;
		b->items = grown;
		b->room = room;
	}
	memmove(&b->items[i + 1], &b->items[i], (b->n - i) * sizeof *b->items);
	b->n++;
	b->items[i] = (struct lease_cache_entry){.record = *record,
	                                         .shard = record->is_member ? -1 : shard_number(b, record->name),
	                                         .seen_ms = now_ms,
	                                         .was_renewed = !b->is_listed,
	                                         .shown = b->n_requested};
	return 0;
}

void lease_cache_end(struct lease_cache *b, uint64_t list)
{
	size_t kept = 0;
	for (size_t i = 0; i < b->n; i++) {
		if (b->items[i].shown >= list)
			b->items[kept++] = b->items[i];
	}
	b->n = kept;
	b->is_listed = true;
}

void lease_cache_forget(struct lease_cache *b, const char *name)
{
	size_t i = place_of(b, name);
	if (i == b->n || strcmp(b->items[i].record.name, name) != 0)
		return;
	b->n--;
	memmove(&b->items[i], &b->items[i + 1], (b->n - i) * sizeof *b->items);
}

const struct lease_cache_entry *lease_cache_find(const struct lease_cache *b, const char *name)
{
	size_t i = place_of(b, name);
	return i < b->n && strcmp(b->items[i].record.name, name) == 0 ? &b->items[i] : NULL;
}

const struct lease_cache_entry *lease_cache_find_shard(const struct lease_cache *b, int32_t shard)
{
	for (size_t i = 0; i < b->n; i++) {
		if (b->items[i].shard == shard)
			return &b->items[i];
	}
	return NULL;
}

bool lease_cache_is_live(const struct lease_cache *b, const struct lease_cache_entry *entry, int64_t now_ms)
{
	int64_t wait_ms = entry->record.duration_ms > b->duration_ms ? entry->record.duration_ms : b->duration_ms;
	return entry->record.holder[0] && now_ms < entry->seen_ms + wait_ms;
}
