// SPDX-License-Identifier: Apache-2.0
// The leases of the group, as the watch and the polled lists report them.
//
// Watches the leases of the group through an informer, so that renewals, releases and new leases are known when they
// happen: the leases of a process that died are taken over when they expire, not at the next poll after that.
// The polled lists are a second source of the same leases. The informer decides when a lease is absent from the watch;
// shards_watch_match reports the results of the polled lists to it.
#include <event2/event.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/process/log.h"
#include "k8s/cache/informer.h"
#include "k8s/client/k8s_client.h"
#include "runtime/shard/shards_private.h"

// ---- the cache ----

#define SHARD_NUMBER_MAX 100000

void lease_cache_init(struct lease_cache *b, const char *prefix, int64_t duration_ms)
{
	*b = (struct lease_cache){.prefix = prefix, .duration_ms = duration_ms};
}

void lease_cache_done(struct lease_cache *b)
{
	while (b->items)
		lease_cache_forget(b, b->items);
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

uint64_t lease_cache_begin(struct lease_cache *b)
{
	return ++b->n_requested;
}

static int by_name(const struct lease_cache_entry *a, const struct lease_cache_entry *b)
{
	return strcmp(a->record.name, b->record.name);
}

struct lease_cache_entry *lease_cache_observe(struct lease_cache *b, const struct lease_record *record, int64_t now_ms)
{
	struct lease_cache_entry *entry;
	HASH_FIND_STR(b->items, record->name, entry);
	bool is_new = !entry;
	if (is_new)
		entry = must_alloc(calloc(1, sizeof *entry));
	if (is_new || strcmp(entry->record.version, record->version) != 0) {
		entry->was_renewed = !is_new || !b->is_listed;
		entry->seen_ms = now_ms;
	}
	entry->record = *record;
	entry->shown = b->n_requested;
	if (is_new) {
		entry->shard = record->is_member ? -1 : shard_number(b, record->name);
		HASH_ADD_KEYPTR_INORDER(hh, b->items, entry->record.name, strlen(entry->record.name), entry, by_name);
	}
	return entry;
}

void lease_cache_end(struct lease_cache *b, uint64_t list)
{
	struct lease_cache_entry *entry, *next;
	HASH_ITER(hh, b->items, entry, next)
	{
		if (entry->shown < list)
			lease_cache_forget(b, entry);
	}
	b->is_listed = true;
}

void lease_cache_forget(struct lease_cache *b, struct lease_cache_entry *entry)
{
	informer_remove(&entry->item);
	HASH_DELETE(hh, b->items, entry);
	free(entry);
}

const struct lease_cache_entry *lease_cache_find_shard(const struct lease_cache *b, int32_t shard)
{
	const struct lease_cache_entry *entry = b->items;
	while (entry && entry->shard != shard)
		entry = entry->hh.next;
	return entry;
}

bool lease_cache_is_live(const struct lease_cache *b, const struct lease_cache_entry *entry, int64_t now_ms)
{
	int64_t wait_ms = entry->record.duration_ms > b->duration_ms ? entry->record.duration_ms : b->duration_ms;
	return entry->record.holder[0] && now_ms < entry->seen_ms + wait_ms;
}

// ---- what is reported ----

_Static_assert(ERR__COUNT <= 32, "logged_kinds has one bit per error kind");

int64_t shards_now_ms(const struct shards *s)
{
	return clock_boot_ms(s->options.clock);
}

void shards_report(struct shards *s, bool *has_error, const struct err *error)
{
	*has_error = error != NULL;
	bool was_good = !s->error[0], is_good = !s->list_has_error && !s->member.has_error && !s->watch_has_error;
	for (int32_t k = 0; k < s->options.n_shards; k++)
		is_good = is_good && !s->shards[k].has_error;
	if (error)
		snprintf(s->error, sizeof s->error, "%s", error->msg);
	else if (is_good)
		s->error[0] = '\0';
	// One line per kind for all leases, because they have the same cause. A timeout must not hide a missing right.
	uint32_t kind_bit = error ? UINT32_C(1) << error->kind : 0;
	bool is_new = (kind_bit & ~s->logged_kinds) != 0;
	s->logged_kinds = s->error[0] ? s->logged_kinds | kind_bit : 0;
	if (is_new)
		LOG(s->options.log, LOG_ERROR, "Cannot read or write leases; retrying",
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else if (!was_good && is_good)
		LOG(s->options.log, LOG_INFO, "Lease access recovered", LOG_S("namespace", s->namespace_name));
}

// ---- the watch ----

#define FRESH_PERIODS 3 // after this many retry periods without data, the watch is not relied on
#define GATHER_MS     5 // reports that arrive together are processed together

static void changed(struct shards *s)
{
	static const struct timeval soon = {0, GATHER_MS * 1000};
	if (!evtimer_pending(&s->changed, NULL))
		evtimer_add(&s->changed, &soon);
}

// Adds the lease to the informer, or sets its version there.
static void watch_entry(struct shards *s, struct lease_cache_entry *entry, const char *version)
{
	if (!entry->item.space) {
		entry->item = (struct informer_item){0};
		snprintf(entry->key, sizeof entry->key, "%s/%s", s->namespace_name, entry->record.name);
	}
	(void)informer_put(s->informer, &entry->item, entry->key, version, NULL);
}

// ---- the informer ----

static void on_object(void *arg, struct informer_item *item, const char *namespace_name, const char *name,
                      const char *json, size_t len)
{
	struct shards *s = arg;
	struct lease_record record;
	struct err e;
	// A lease that cannot be read is treated as not renewed. That costs a request when the lease appears to have
	// expired.
	if (lease_item_decode(json, len, &record, &e) < 0)
		return;
	struct lease_cache_entry *entry = lease_cache_observe(&s->board, &record, shards_now_ms(s));
	changed(s);
	watch_entry(s, entry, "");
}

static void on_absent(void *arg, struct informer_item *item)
{
	struct shards *s = arg;
	lease_cache_forget(&s->board, (struct lease_cache_entry *)item);
	changed(s);
}

static void on_change(void *arg)
{
	struct shards *s = arg;
	if (!s->watch.space || informer_get_state(s->informer, &s->watch).unsynced > 0)
		return;
	s->board.is_listed = true;
	changed(s);
}

static void on_error(void *arg, const char *what, const struct err *error)
{
	struct shards *s = arg;
	struct err e;
	if (error) {
		e = *error;
		err_wrap(&e, "leases in namespace %s", s->namespace_name);
	}
	shards_report(s, &s->watch_has_error, error ? &e : NULL);
}

// ---- start and stop ----

static struct informer *new_informer(struct shards *s, struct err *e)
{
	char selector[sizeof LEASE_LABEL_GROUP + SHARDS_LEASE_NAME_BYTES];
	snprintf(selector, sizeof selector, LEASE_LABEL_GROUP "=%s", s->lease_name);
	return informer_new(&(struct informer_options){.client = s->client,
	                                               .group_path = "/apis/coordination.k8s.io/v1",
	                                               .plural = "leases",
	                                               .label_selector = selector,
	                                               .callbacks = {.on_object = on_object,
	                                                             .on_absent = on_absent,
	                                                             .on_change = on_change,
	                                                             .on_error = on_error},
	                                               .arg = s},
	                    e);
}

// The cache keeps its entries: they say how long each lease has been unchanged.
void shards_watch_free(struct shards *s)
{
	for (struct lease_cache_entry *entry = s->board.items; entry; entry = entry->hh.next)
		informer_remove(&entry->item);
	informer_remove(&s->watch);
	informer_free(s->informer);
	s->informer = NULL;
}

void shards_watch_keep(struct shards *s, bool is_needed)
{
	struct err e;
	char key[INFORMER_KEY_BYTES];
	if (!is_needed) {
		shards_watch_free(s);
		shards_report(s, &s->watch_has_error, NULL);
		evtimer_del(&s->changed);
		return;
	}
	if (s->watch.space)
		return;
	snprintf(key, sizeof key, "%s/", s->namespace_name);
	s->informer = new_informer(s, &e);
	if (s->informer && informer_put(s->informer, &s->watch, key, NULL, &e) == 0) {
		shards_watch_match(s);
		return;
	}
	shards_watch_free(s);
	shards_report(s, &s->watch_has_error, &e); // the leases are polled instead
}

void shards_watch_match(struct shards *s)
{
	for (struct lease_cache_entry *entry = s->board.items; entry && s->watch.space; entry = entry->hh.next)
		watch_entry(s, entry, entry->record.version);
}

bool shards_watch_is_fresh(const struct shards *s)
{
	if (!s->watch.space)
		return false;
	const struct informer_state state = informer_get_state(s->informer, &s->watch);
	int64_t silent_ms = clock_mono_ms(s->client->options.clock) - state.last_heard_mono_ms;
	return state.streaming > 0 && silent_ms <= FRESH_PERIODS * s->options.timing.retry_period_ms;
}
