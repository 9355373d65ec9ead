// SPDX-License-Identifier: Apache-2.0
// Handles a wall clock that is set. All stamps that this process remembers are moved by the step: an event a minute ago
// stays a minute ago, and no stamp hours in the future blocks scaling.
#include <event2/event.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process/log.h"
#include "base/timer.h"
#include "controller/controller_private.h"
#include "controller/idle/idle_rules.h"
#include "controller/metrics/metrics.h"
#include "controller/query_hub.h"
#include "promql/promql_source.h"

// With leader election, the shards report the larger steps, after which they release their leases.
static void report(const struct controller *c, int64_t step_ms)
{
	int64_t size_ms = step_ms < 0 ? -step_ms : step_ms;
	if (c->ownership.shards && size_ms > shards_clock_limit_ms(c->ownership.shards))
		return;
	LOG(c->options.log, LOG_WARNING, "Wall clock was set; past actions keep their age, windows are refilled",
	    LOG_I("stepMs", step_ms), LOG_I("limitMs", CLOCK_STEP_MS));
}

void controller_look_at_clock(struct controller *c)
{
	int64_t step_ms = clock_step_detector_check(&c->clock_step_detector, &c->connections->clock);
	if (step_ms == 0)
		return;
	metrics_clock_was_set(c->report_env.metrics);
	report(c, step_ms);
	ticks_clock_was_set(c->ticks, step_ms);
	for (size_t i = 0; i < c->policies.n; i++) {
		managed_policy_forget_look(c->policies.list[i]); // it would start a tick as of a moment before the step
		reconciler_clock_was_set(c->policies.list[i]->reconciler, step_ms);
	}
	for (struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));) {
		const struct managed_policy *m = e->user;
		if (m->status)
			policy_status_clock_was_set(m->status, step_ms);
	}
	if (c->idle)
		idle_rules_clock_was_set(c->idle, step_ms);
	// Answers for the same clock time before the step are not valid now.
	query_hub_forget(c->connections->queries, INT64_MAX);
	promql_sources_clock_was_set(query_hub_sources(c->connections->queries), step_ms);
	c->start_ms += step_ms;
	controller_bump_revision(c);
}

static void on_look(evutil_socket_t fd, short what, void *arg)
{
	controller_look_at_clock(arg);
}

int controller_clock_open(struct controller *c, struct err *e)
{
	clock_step_detector_init(&c->clock_step_detector, &c->connections->clock, CLOCK_STEP_MS);
	if (c->options.once)
		return 0;
	c->clock_look = event_new(c->connections->loop, -1, EV_PERSIST, on_look, c);
	if (c->clock_look && timer_start(c->clock_look, CONTROLLER_CLOCK_LOOK_MS) == 0)
		return 0;
	return err_set(e, ERR_INTERNAL, "cannot create a timer");
}

void controller_clock_close(struct controller *c)
{
	if (c->clock_look)
		event_free(c->clock_look);
}
