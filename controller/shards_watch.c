// SPDX-License-Identifier: Apache-2.0
// The leases of the group, watched: others are seen to renew, to leave and to come the moment they do, so that a holder
// that died is succeeded when its lease is over, not at the next look after that.
#include <event2/event.h>

#include "base/buf.h"
#include "base/clock.h"
#include "controller/shards_private.h"
#include "k8s/watch.h"

#define FRESH_PERIODS 3 // retry periods without a word: it is not relied on

#define GATHER_MS 5 // acted on once for all that comes at once

static void changed(struct shards *s)
{
	static const struct timeval soon = {0, GATHER_MS * 1000};
	if (!evtimer_pending(s->changed, NULL))
		evtimer_add(s->changed, &soon);
}

static void on_list(void *arg)
{
	struct shards *s = arg;
	lease_board_begin(&s->board);
}

static void on_object(void *arg, const char *json, size_t len)
{
	struct shards *s = arg;
	struct lease_record record;
	struct err e;
	// One that cannot be read, or for which there is no memory, is not seen to be renewed. That costs a request
	// when its time seems to be over, and nothing else.
	if (lease_item_decode(json, len, &record, &e) == 0 &&
	    lease_board_saw(&s->board, &record, shards_now_ms(s)) == 0)
		changed(s);
}

static void on_deleted(void *arg, const char *json, size_t len)
{
	struct shards *s = arg;
	struct lease_record record;
	struct err e;
	if (lease_item_decode(json, len, &record, &e) < 0)
		return;
	lease_board_forget(&s->board, record.name);
	changed(s);
}

static void on_synced(void *arg)
{
	struct shards *s = arg;
	lease_board_end(&s->board);
	changed(s);
}

static void on_error(void *arg, const struct err *error)
{
	struct shards *s = arg;
	struct err e;
	if (error) {
		e = *error;
		err_wrap(&e, "leases in namespace %s", s->namespace_name);
	}
	shards_report(s, &s->watch_has_error, error ? &e : NULL);
}

void shards_watch_keep(struct shards *s, bool is_needed)
{
	if (!is_needed) {
		k8s_watch_free(s->watch);
		s->watch = NULL;
		shards_report(s, &s->watch_has_error, NULL);
		evtimer_del(s->changed);
		return;
	}
	if (s->watch)
		return;
	struct buf path, selector;
	struct err e;
	buf_init(&path, K8S_PATH_BYTES_MAX);
	buf_init(&selector, K8S_PATH_BYTES_MAX);
	buf_printf(&path, "/apis/coordination.k8s.io/v1/namespaces/%s/leases", s->namespace_name);
	buf_printf(&selector, LEASE_LABEL_GROUP "=%s", s->lease_name);
	const struct k8s_watch_options o = {.client = s->client,
	                                    .path = buf_str(&path),
	                                    .label_selector = buf_str(&selector),
	                                    .callbacks = {on_list, on_object, on_deleted, on_synced, on_error},
	                                    .arg = s};
	s->watch = k8s_watch_new(&o, &e);
	if (!s->watch)
		shards_report(s, &s->watch_has_error, &e); // and the leases are listed instead
	buf_done(&path);
	buf_done(&selector);
}

bool shards_watch_is_fresh(const struct shards *s)
{
	struct k8s_watch_stats stats;
	if (!s->watch)
		return false;
	k8s_watch_get_stats(s->watch, &stats);
	int64_t silent_ms = clock_mono_ms(s->options.clock) - stats.last_heard_mono_ms;
	return stats.is_synced && stats.is_streaming && silent_ms <= FRESH_PERIODS * s->options.timing.retry_period_ms;
}
