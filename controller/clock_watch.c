// SPDX-License-Identifier: Apache-2.0
#include "controller/clock_watch.h"

#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "controller/fleet/fleet.h"
#include "controller/policy/early_check.h"
#include "controller/policy/managed_policy.h"
#include "controller/policy/policy_ownership.h"
#include "controller/source/policy_store.h"
#include "controller/status/status.h"
#include "controller/tick/reconcile.h"
#include "promql/promql_source.h"
#include "runtime/connections.h"
#include "runtime/metrics/metrics.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards.h"

// With leader election, the shards report the larger steps, after which they release their leases.
static void report(const struct managed_policies *all, int64_t step_ms)
{
	int64_t size_ms = step_ms < 0 ? -step_ms : step_ms;
	if (all->ownership->shards && size_ms > shards_clock_limit_ms(all->ownership->shards))
		return;
	LOG(all->log, LOG_WARNING, "Wall clock was set; past actions keep their age, windows are refilled",
	    LOG_I("stepMs", step_ms), LOG_I("limitMs", CLOCK_STEP_MS));
}

void clock_watch_check(void *arg)
{
	struct clock_watch *w = arg;
	struct managed_policies *all = w->all;
	int64_t step_ms = clock_step_detector_check(&w->detector, &all->connections->clock);
	if (step_ms == 0)
		return;
	metrics_count(all->metrics, FAMILY_CLOCK_STEPS);
	report(all, step_ms);
	ticks_clock_was_set(all->ticks, step_ms);
	for (size_t i = 0; i < all->n; i++) {
		early_check_forget(all->list[i]); // it would start a tick as of a moment before the step
		reconciler_clock_was_set(all->list[i]->reconciler, step_ms);
	}
	for (struct stored_binding *b = NULL; (b = policy_store_next(all->store, b));) {
		const struct managed_policy *m = b->user;
		if (m->status)
			policy_status_clock_was_set(m->status, step_ms);
	}
	fleets_clock_was_set(all->fleets, step_ms);
	// Answers for the same clock time before the step are not valid now.
	query_hub_forget(all->connections->queries, INT64_MAX);
	promql_sources_clock_was_set(query_hub_sources(all->connections->queries), step_ms);
	w->start_ms += step_ms;
	managed_policies_changed(all);
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
	clock_watch_check(arg);
}

int clock_watch_open(struct clock_watch *w, struct managed_policies *all, bool once, struct err *e)
{
	w->all = all;
	w->start_ms = clock_wall_ms(&all->connections->clock);
	clock_step_detector_init(&w->detector, &all->connections->clock, CLOCK_STEP_MS);
	if (once)
		return 0;
	w->timer = event_new(all->connections->loop, -1, EV_PERSIST, on_timer, w);
	if (w->timer && timer_start(w->timer, CLOCK_WATCH_MS) == 0)
		return 0;
	return err_set(e, ERR_INTERNAL, "cannot create a timer");
}

void clock_watch_close(struct clock_watch *w)
{
	if (w->timer)
		event_free(w->timer);
}
