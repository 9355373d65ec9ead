// SPDX-License-Identifier: Apache-2.0
#include "controller/controller.h"

#include <assert.h>
#include <event2/event.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/http_server.h"
#include "base/log.h"
#include "base/process_trim.h"
#include "controller/commands.h"
#include "controller/endpoints.h"
#include "controller/history.h"
#include "controller/metrics.h"
#include "controller/query_hub.h"
#include "controller/reconcile.h"
#include "policies/policy.h"

#define CONTROLLER_REPORT_MAX (1024 * 1024)
#define CONTROLLER_WATCH_MS   2000         // how often the policy files are looked at
#define CONTROLLER_FORGET_MS  (10 * 60000) // queries nobody asked for this long
// Ticks under way at once. Enough to keep every connection busy through each step of a tick; more would only wait in
// the HTTP clients' queues, and take memory there.
#define CONTROLLER_TICKS_MAX 32

// The policies that tick together: one timer per interval, so that equal queries fall into one tick and are asked once.
struct tick_group {
	struct controller *controller;
	int64_t interval_ms;
	struct event *timer;
};

struct controller {
	struct connections *connections;
	struct controller_options options;
	struct policy_set policies;
	struct policy_set next; // read, waiting for the last tick under way to end
	bool has_next;
	struct reconcile_env env;
	struct reconciler **reconcilers;
	int64_t *due_ms; // per reconciler: the tick it waits for; 0 = none
	size_t n_reconcilers, n_due, n_active, cursor;
	bool starting, trimmed;
	struct tick_group *groups;
	size_t n_groups;
	struct history *history;
	struct http_server *server;
	struct event *on_term, *on_int, *on_hup, *watch;
	struct buf report; // errors of the last reload
	bool reload_failed, stopping;
	uint64_t seen_fingerprint; // of the last reading, good or bad: a bad file is not read again until it changes
};

static void apply_next(struct controller *c);

void controller_get_view(const struct controller *c, struct controller_view *ret_view)
{
	*ret_view = (struct controller_view){
	        .reconcilers = c->reconcilers,
	        .n_reconcilers = c->n_reconcilers,
	        .policies = &c->policies,
	        .history = c->history,
	        .metrics = c->env.metrics,
	        .queries = c->connections->queries,
	        .dry_run = c->options.dry_run,
	        .reload_failed = c->reload_failed,
	        .reload_report = buf_str(&c->report),
	};
}

// ---- ticks ----

// Starts what is due while there is room, in turn.
static void start_due(struct controller *c)
{
	if (c->starting)
		return; // a tick that ended at once: the loop below goes on by itself
	c->starting = true;
	while (c->n_due > 0 && c->n_active < CONTROLLER_TICKS_MAX && !c->has_next && !c->env.stopping) {
		size_t i = c->cursor;
		c->cursor = (c->cursor + 1) % c->n_reconcilers;
		int64_t now_ms = c->due_ms[i];
		if (now_ms == 0)
			continue;
		assert(reconciler_is_idle(c->reconcilers[i])); // on_tick saw to it
		c->due_ms[i] = 0;
		c->n_due--;
		c->n_active++;
		reconciler_tick(c->reconcilers[i], now_ms);
	}
	c->starting = false;
}

static void on_idle(void *arg)
{
	struct controller *c = arg;
	assert(c->n_active > 0);
	c->n_active--;
	if (c->has_next)
		apply_next(c);
	start_due(c);
	if (!c->trimmed && c->n_active == 0) {
		c->trimmed = true; // everything has been up and running once
		process_trim();
	}
	if (c->options.once && !c->stopping && c->n_active == 0 && c->n_due == 0)
		event_base_loopbreak(c->connections->loop);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct tick_group *g = arg;
	struct controller *c = g->controller;
	if (c->has_next)
		return; // the policies are about to change
	int64_t now_ms = clock_wall_ms(&c->connections->clock);
	for (size_t i = 0; i < c->n_reconcilers; i++) {
		if (reconciler_policy(c->reconcilers[i])->interval_ms != g->interval_ms)
			continue;
		if (!reconciler_is_idle(c->reconcilers[i]) || c->due_ms[i] != 0)
			metrics_tick_skipped(c->env.metrics);
		if (!reconciler_is_idle(c->reconcilers[i]))
			continue;
		c->n_due += c->due_ms[i] == 0;
		c->due_ms[i] = now_ms; // one that still waited is asked for the present
	}
	start_due(c);
	query_hub_forget(c->connections->queries, now_ms - CONTROLLER_FORGET_MS);
}

static void drop_groups(struct controller *c)
{
	for (size_t i = 0; i < c->n_groups; i++)
		event_free(c->groups[i].timer);
	free(c->groups);
	c->groups = NULL;
	c->n_groups = 0;
}

static int make_groups(struct controller *c, struct err *e)
{
	drop_groups(c);
	c->groups = calloc(c->n_reconcilers ? c->n_reconcilers : 1, sizeof *c->groups);
	if (!c->groups)
		return err_set(e, ERR_INTERNAL, "out of memory");
	for (size_t i = 0; i < c->n_reconcilers; i++) {
		int64_t interval_ms = reconciler_policy(c->reconcilers[i])->interval_ms;
		size_t g = 0;
		while (g < c->n_groups && c->groups[g].interval_ms != interval_ms)
			g++;
		if (g < c->n_groups)
			continue;
		struct tick_group *group = &c->groups[g];
		*group = (struct tick_group){c, interval_ms, NULL};
		group->timer = event_new(c->connections->loop, -1, EV_PERSIST, on_tick, group);
		if (!group->timer)
			return err_set(e, ERR_INTERNAL, "cannot create a timer");
		c->n_groups++;
		struct timeval interval = {interval_ms / 1000, (interval_ms % 1000) * 1000};
		event_add(group->timer, &interval);
	}
	return 0;
}

// ---- policies ----

static void log_report(const struct controller *c, const char *report)
{
	while (*report) { // a line per error
		size_t n = strcspn(report, "\n");
		char line[1024];
		size_t cut = n < sizeof line ? n : sizeof line - 1;
		memcpy(line, report, cut);
		line[cut] = '\0';
		LOG(c->options.log, LOG_ERROR, "Invalid policy", LOG_S("err", line));
		report += n + (report[n] == '\n');
	}
}

static struct reconciler *take_old(struct controller *c, const struct policy *p)
{
	for (size_t i = 0; i < c->n_reconcilers; i++) {
		struct reconciler *r = c->reconcilers[i];
		if (r && strcmp(reconciler_policy(r)->name, p->name) == 0 &&
		    strcmp(reconciler_policy(r)->namespace_name, p->namespace_name) == 0) {
			c->reconcilers[i] = NULL;
			return r;
		}
	}
	return NULL;
}

// Puts c->next in force; nothing may be under way.
static int adopt(struct controller *c, struct err *e)
{
	size_t n = c->next.n_policies;
	struct reconciler **list = calloc(n ? n : 1, sizeof *list);
	int64_t *due_ms = calloc(n ? n : 1, sizeof *due_ms);
	if (!list || !due_ms) {
		free(list);
		free(due_ms);
		return err_set(e, ERR_INTERNAL, "out of memory for %zu policies", n);
	}
	for (size_t i = 0; i < n; i++) {
		const struct policy *p = c->next.policies[i];
		struct reconciler *old = c->n_reconcilers ? take_old(c, p) : NULL;
		if (old && reconciler_set_policy(old, p) < 0) {
			reconciler_free(old);
			old = NULL;
		}
		list[i] = old ? old : reconciler_new(&c->env, p);
		if (!list[i])
			abort(); // no memory for a few kilobytes: the supervisor restarts us
	}
	for (size_t i = 0; i < c->n_reconcilers; i++)
		reconciler_free(c->reconcilers[i]); // policies that are gone
	free(c->reconcilers);
	free(c->due_ms);
	c->reconcilers = list;
	c->due_ms = due_ms; // what waited is left out: its policies may be others now
	c->n_reconcilers = n;
	c->n_due = c->cursor = 0;
	policy_set_done(&c->policies);
	c->policies = c->next;
	c->next = (struct policy_set){0};
	c->has_next = false;
	return make_groups(c, e);
}

static void tick_all(struct controller *c)
{
	for (size_t i = 0; i < c->n_groups; i++)
		on_tick(-1, 0, &c->groups[i]);
}

static void apply_next(struct controller *c)
{
	struct err e;
	if (c->stopping || c->n_active > 0)
		return; // on_idle comes back
	if (adopt(c, &e) < 0) {
		LOG(c->options.log, LOG_ERROR, "Cannot put the new policies in force", LOG_S("err", e.msg));
		return;
	}
	LOG(c->options.log, LOG_INFO, "Policies in force", LOG_I("policies", (int64_t)c->n_reconcilers),
	    LOG_I("invalidFiles", (int64_t)c->policies.n_bad_files));
	tick_all(c); // a new policy does not wait for its interval to pass
}

static void reload(struct controller *c, const char *why)
{
	struct err e;
	struct policy_set set;
	int64_t now_ms = clock_wall_ms(&c->connections->clock);
	buf_reset(&c->report);
	if (policy_set_load(&set, c->options.policy_paths, c->options.n_policy_paths, &c->policies, &c->report, &e) <
	    0) {
		buf_printf(&c->report, "%s\n", e.msg);
		c->reload_failed = true;
		metrics_reloaded(c->env.metrics, now_ms, 0);
		LOG(c->options.log, LOG_ERROR, "Cannot read policies; the last good ones stay in force",
		    LOG_S("err", e.msg));
		return;
	}
	c->seen_fingerprint = set.fingerprint;
	c->reload_failed = set.n_errors > 0;
	metrics_reloaded(c->env.metrics, now_ms, set.n_errors == 0);
	LOG(c->options.log, set.n_errors ? LOG_WARNING : LOG_INFO, "Read policies", LOG_S("why", why),
	    LOG_I("policies", (int64_t)set.n_policies), LOG_I("errors", (int64_t)set.n_errors));
	log_report(c, buf_str(&c->report));
	policy_set_done(&c->next); // an older one that was still waiting
	c->next = set;
	c->has_next = true;
	apply_next(c);
}

static void on_hup(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	reload(arg, "SIGHUP");
}

static void on_watch(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct controller *c = arg;
	uint64_t now = policy_set_fingerprint(c->options.policy_paths, c->options.n_policy_paths);
	if (now != 0 && now != c->seen_fingerprint)
		reload(c, "files changed");
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct controller *c = arg;
	LOG(c->options.log, LOG_INFO, "Stopping", LOG_S("signal", fd == SIGTERM ? "SIGTERM" : "SIGINT"));
	event_base_loopbreak(c->connections->loop);
}

// ---- life ----

static int add_events(struct controller *c, struct err *e)
{
	struct event_base *loop = c->connections->loop;
	c->on_term = evsignal_new(loop, SIGTERM, on_stop, c);
	c->on_int = evsignal_new(loop, SIGINT, on_stop, c);
	c->on_hup = evsignal_new(loop, SIGHUP, on_hup, c);
	c->watch = event_new(loop, -1, EV_PERSIST, on_watch, c);
	struct timeval every = {CONTROLLER_WATCH_MS / 1000, (CONTROLLER_WATCH_MS % 1000) * 1000};
	if (!c->on_term || !c->on_int || !c->on_hup || !c->watch || event_add(c->on_term, NULL) < 0 ||
	    event_add(c->on_int, NULL) < 0 || event_add(c->on_hup, NULL) < 0 || event_add(c->watch, &every) < 0)
		return err_set(e, ERR_INTERNAL, "cannot watch signals and files");
	return 0;
}

static int add_server(struct controller *c, struct err *e)
{
	if (!c->options.listen || !c->options.listen[0] || c->options.once)
		return 0;
	struct http_server_options options = {.loop = c->connections->loop, .listen = c->options.listen};
	c->server = http_server_new(&options, e);
	if (!c->server || endpoints_add(c->server, c, e) < 0)
		return -1;
	LOG(c->options.log, LOG_INFO, "Serving", LOG_S("listen", c->options.listen),
	    LOG_I("port", http_server_port(c->server)));
	return 0;
}

struct controller *controller_new(struct connections *connections, const struct controller_options *options,
                                  struct metrics *metrics, struct err *e)
{
	struct controller *c = calloc(1, sizeof *c);
	if (!c) {
		err_set(e, ERR_INTERNAL, "out of memory");
		return NULL;
	}
	c->connections = connections;
	c->options = *options;
	buf_init(&c->report, CONTROLLER_REPORT_MAX);
	c->history = history_new();
	c->env = (struct reconcile_env){
	        .sources = {.queries = connections->queries, .k8s = connections->k8s},
	        .promql = connections->promql,
	        .log = options->log,
	        .metrics = metrics,
	        .history = c->history,
	        .dry_run = options->dry_run,
	        .on_idle = on_idle,
	        .on_idle_arg = c,
	};
	if (!c->history) {
		err_set(e, ERR_INTERNAL, "out of memory");
		goto fail;
	}
	if (policy_set_load(&c->next, options->policy_paths, options->n_policy_paths, NULL, &c->report, e) < 0)
		goto fail;
	log_report(c, buf_str(&c->report));
	c->seen_fingerprint = c->next.fingerprint;
	c->reload_failed = c->next.n_errors > 0;
	metrics_reloaded(metrics, clock_wall_ms(&connections->clock), c->next.n_errors == 0);
	if (c->next.n_policies == 0 && (c->next.n_errors || options->once)) {
		err_set(e, ERR_INPUT, c->next.n_errors ? "no valid policy; the errors are above" : "no policies found");
		goto fail;
	}
	if (adopt(c, e) < 0 || add_events(c, e) < 0 || add_server(c, e) < 0)
		goto fail;
	return c;
fail:
	controller_free(c);
	return NULL;
}

int controller_run(struct controller *c)
{
	LOG(c->options.log, LOG_INFO, "Starting", LOG_S("version", GPUSCALE_VERSION),
	    LOG_I("policies", (int64_t)c->n_reconcilers), LOG_B("dryRun", c->options.dry_run));
	tick_all(c);
	if (!c->options.once || c->n_active > 0)
		event_base_dispatch(c->connections->loop);
	c->stopping = c->env.stopping = true;
	int failed = 0;
	for (size_t i = 0; i < c->n_reconcilers; i++)
		failed += reconciler_error(c->reconcilers[i])[0] != '\0';
	return c->options.once && failed ? EXIT_FAILED : EXIT_OK;
}

void controller_free(struct controller *c)
{
	if (!c)
		return;
	assert(c->n_active == 0);
	http_server_free(c->server);
	drop_groups(c);
	struct event *events[] = {c->on_term, c->on_int, c->on_hup, c->watch};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
		if (events[i])
			event_free(events[i]);
	for (size_t i = 0; i < c->n_reconcilers; i++)
		reconciler_free(c->reconcilers[i]);
	free(c->reconcilers);
	free(c->due_ms);
	policy_set_done(&c->next);
	policy_set_done(&c->policies);
	history_free(c->history);
	buf_done(&c->report);
	free(c);
}
