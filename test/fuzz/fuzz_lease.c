// SPDX-License-Identifier: Apache-2.0
// Leases and lists of them on any bytes: what is read has ends, and what is written onto an object that could be read
// is read again as it was meant, with the version that it replaces.
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "k8s/lease/lease_record.h"
#include "runtime/shard/shards_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct lease_record *r)
{
	assert(r->name[0] && r->version[0]);
	assert(memchr(r->name, 0, sizeof r->name) && memchr(r->version, 0, sizeof r->version));
	assert(memchr(r->holder, 0, sizeof r->holder) && memchr(r->renew_stamp, 0, sizeof r->renew_stamp));
	assert(r->duration_ms >= 0 && r->transitions >= 0 && r->n_shards >= 0);
}

static void on_record(void *arg, const struct lease_record *record)
{
	struct lease_cache *b = arg;
	check(record);
	if (!lease_cache_observe(b, record, 1000))
		abort();
}

static void write_onto(const char *text, size_t len, const struct lease_record *before)
{
	struct lease_write w = {.namespace_name = "ns",
	                        .name = before->name,
	                        .group = "g",
	                        .role = "member",
	                        .n_shards = 8,
	                        .holder = "me",
	                        .duration_ms = 15000,
	                        .is_takeover = true};
	struct buf out;
	struct err e = {0};
	struct lease_record after;
	lease_stamp(w.stamp, 1767603600123, 7);
	buf_init(&out, LEASE_OBJECT_BYTES_MAX);
	if (lease_write_encode(&out, &w, text, len, &e) == 0) {
		if (lease_item_decode(buf_str(&out), out.len, &after, &e) < 0)
			abort();
		assert(strcmp(after.name, before->name) == 0 && strcmp(after.version, before->version) == 0);
		assert(strcmp(after.holder, "me") == 0 && strcmp(after.renew_stamp, w.stamp) == 0);
		assert(after.duration_ms == 15000 && after.n_shards == 8 && after.is_member);
	} else {
		assert(e.kind == ERR_LIMIT || e.kind == ERR_INTERNAL);
	}
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct lease_record record;
	struct lease_cache board;
	struct err e = {0};
	if (lease_record_decode(text, size, &record, &e) == 0)
		check(&record);
	else
		assert(e.kind == ERR_PROTOCOL || e.kind == ERR_LIMIT || e.kind == ERR_INTERNAL);
	if (lease_item_decode(text, size, &record, &e) == 0) {
		check(&record);
		write_onto(text, size, &record);
	}
	lease_cache_init(&board, "gpuscale", 15000);
	uint64_t board_list = lease_cache_begin(&board);
	if (lease_list_decode(text, size, on_record, &board, &e) == 0) {
		lease_cache_end(&board, board_list);
		for (struct lease_cache_entry *entry = board.items, *next; entry; entry = next) {
			next = entry->hh.next;
			assert(!next || strcmp(entry->record.name, next->record.name) < 0);
			assert(entry->shard >= -1);
		}
		while (board.items)
			lease_cache_forget(&board, board.items->hh.next ? board.items->hh.next : board.items);
	}
	lease_cache_done(&board);
	return 0;
}
