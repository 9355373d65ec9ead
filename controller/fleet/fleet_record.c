// SPDX-License-Identifier: Apache-2.0
// What the next process must know about the targets of a fleet, as one text in its status: for each target the replicas
// that the fleet requested, and the scales that cooldowns and rate limits still count. An entry is
// "HASH=REPLICAS" or "HASH=REPLICAS@SECONDS+ADDED-REMOVED", with the hash of the key of the target.
#include "base/base.h"
#include "controller/fleet/fleet_targets.h"

#include <inttypes.h>

#include "base/hash.h"
#include "policies/engine/behavior.h"
#include "policies/engine/decide.h"
#include "policies/engine/number.h"
#include "policies/engine/policy.h"

#define HASH_DIGITS 10

struct record_entry {
	uint64_t key;
	int32_t replicas, added, removed;
	int64_t scaled_ms; // -1: none
};

struct fleet_record {
	struct record_entry *entries; // by key
	size_t n, room;
};

static uint64_t key_of(const struct fleet_target *t)
{
	return hash_mix(hash_text(HASH_START, t->key)) >> (64 - 4 * HASH_DIGITS);
}

// ---- writing ----

void fleet_record_put(struct buf *out, const struct fleet_target *t, const struct policy *policy, const void *state,
                      int64_t now_ms)
{
	struct decide_scale_event events[2 * DECIDE_HISTORY_MAX];
	int64_t scaled_ms = state ? decide_last_scale_ms(policy, state) : -1, added = 0, removed = 0;
	int64_t keep_ms =
	        i64_max(behavior_events_keep_ms(policy), i64_max(policy->cooldown.up_ms, policy->cooldown.down_ms));
	buf_printf(out, "%s%0*" PRIx64 "=%d", out->len ? " " : "", HASH_DIGITS, key_of(t), t->spec_replicas);
	if (scaled_ms < 0 || now_ms - scaled_ms > keep_ms)
		return;
	size_t n = decide_scale_events(policy, state, events, 2 * DECIDE_HISTORY_MAX);
	for (size_t i = 0; i < n; i++) {
		added += events[i].change > 0 ? events[i].change : 0;
		removed -= events[i].change < 0 ? events[i].change : 0;
	}
	buf_printf(out, "@%" PRId64 "+%d-%d", scaled_ms / 1000, i32_from_i64(added), i32_from_i64(removed));
}

// ---- reading ----

// Reads the number from *at up to the first of `ends` or the end; moves *at behind it. Returns -1 without one.
static int64_t take_number(const char **at, const char *end, const char *ends, int64_t max)
{
	const char *from = *at;
	int64_t n;
	struct err e;
	while (*at < end && !strchr(ends, **at))
		++*at;
	int rc = num_parse_i64(from, (size_t)(*at - from), 0, max, &n, &e);
	*at += *at < end;
	return rc < 0 ? -1 : n;
}

static bool read_entry(const char *text, size_t len, struct record_entry *ret)
{
	const char *at = text, *end = text + len;
	*ret = (struct record_entry){.scaled_ms = -1};
	if (len < HASH_DIGITS + 2 || text[HASH_DIGITS] != '=')
		return false;
	for (; at < text + HASH_DIGITS; at++) {
		int digit = num_hex_digit(*at);
		if (digit < 0)
			return false;
		ret->key = ret->key << 4 | (uint64_t)digit;
	}
	at++;
	bool has_scale = memchr(at, '@', (size_t)(end - at)) != NULL;
	int64_t replicas = take_number(&at, end, "@", POLICY_REPLICAS_MAX);
	ret->replicas = (int32_t)replicas;
	if (replicas < 0 || !has_scale)
		return replicas >= 0;
	int64_t seconds = take_number(&at, end, "+", INT64_MAX / 2000),
	        added = take_number(&at, end, "-", POLICY_REPLICAS_MAX),
	        removed = take_number(&at, end, "", POLICY_REPLICAS_MAX);
	ret->scaled_ms = seconds * 1000;
	ret->added = (int32_t)added;
	ret->removed = (int32_t)removed;
	return seconds >= 0 && added >= 0 && removed >= 0;
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = ((const struct record_entry *)a)->key, y = ((const struct record_entry *)b)->key;
	return (x > y) - (x < y);
}

struct fleet_record *fleet_record_read(const char *text, size_t len)
{
	struct fleet_record *r = must_alloc(calloc(1, sizeof *r));
	const char *end = text + len;
	while (text < end && r->n < FLEET_TARGETS_MAX) {
		const char *space = memchr(text, ' ', (size_t)(end - text));
		size_t n = (size_t)((space ? space : end) - text);
		must_reserve(&r->entries, r->n, &r->room, sizeof *r->entries, 64);
		r->n += read_entry(text, n, &r->entries[r->n]);
		text += n + 1;
	}
	if (r->n)
		qsort(r->entries, r->n, sizeof *r->entries, by_key);
	return r;
}

void fleet_record_free(struct fleet_record *r)
{
	if (r)
		free(r->entries);
	free(r);
}

void fleet_record_restore(const struct fleet_record *r, struct fleet_target *t, const struct policy *policy,
                          void *state, int64_t now_ms)
{
	const struct record_entry key = {.key = key_of(t)};
	const struct record_entry *e = r->n ? bsearch(&key, r->entries, r->n, sizeof *r->entries, by_key) : NULL;
	if (!e)
		return;
	if (e->scaled_ms >= 0) {
		// The clock of the process that wrote it may have been ahead.
		int64_t scaled_ms = e->scaled_ms < now_ms ? e->scaled_ms : now_ms;
		decide_record_scale(policy, state, scaled_ms, 0, e->added);
		decide_record_scale(policy, state, scaled_ms, e->removed, 0);
		decide_record_last_scale(policy, state, scaled_ms);
	}
	unacked_write_of_past(&t->unacked, e->replicas);
}
