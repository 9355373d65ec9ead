// SPDX-License-Identifier: Apache-2.0
#include "controller/controller.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/process_trim.h"
#include "controller/controller_private.h"
#include "controller/history.h"
#include "controller/metrics.h"
#include "controller/policy_folder.h"
#include "controller/policy_watch.h"
#include "controller/query_hub.h"
#include "controller/serving.h"
#include "controller/status_writer.h"
#include "k8s/event_recorder.h"

#define HOST_BYTES           256
#define CONTROLLER_CROWD     64           // ticks that hang at once, and leave memory behind
#define CONTROLLER_FORGET_MS (10 * 60000) // queries nobody asked for this long

// ---- ticks ----

static void on_skipped(void *arg, struct ticker *t)
{
	(void)t;
	struct controller *c = arg;
	metrics_tick_skipped(c->env.metrics);
}

// Events are written in the background: nobody else would say that they are not.
static void report_events(struct controller *c)
{
	const char *error = c->status_env.events ? event_recorder_error(c->status_env.events) : "";
	if (error[0] && !c->said_events_error)
		LOG(c->options.log, LOG_ERROR, "Cannot write Events", LOG_S("err", error));
	c->said_events_error = error[0] != '\0';
}

static void on_round(void *arg, int64_t now_ms)
{
	struct controller *c = arg;
	report_events(c);
	query_hub_forget(c->connections->queries, now_ms - CONTROLLER_FORGET_MS);
}

void controller_on_quiet(struct controller *c)
{
	struct ticks_stats s;
	if (c->stopping)
		return;
	ticks_get_stats(c->ticks, &s);
	// What many policies needed to begin, or many ticks that hung, is not needed any more.
	c->was_crowded = c->was_crowded || c->n_members > 2 * c->n_trimmed || s.slow > CONTROLLER_CROWD;
	if (!c->was_crowded && !c->options.once)
		return;
	if (s.under_way + s.due > 0 || c->dirty || !controller_is_settled(c) || rivals_are_waited_for(c))
		return;
	c->was_crowded = false;
	c->n_trimmed = c->n_members;
	process_trim();
	if (c->options.once)
		event_base_loopbreak(c->connections->loop);
}

// ---- sources of policies ----

bool controller_is_settled(const struct controller *c)
{
	struct policy_watch_state objects;
	if (!c->watch)
		return !c->options.policies_from_cluster;
	policy_watch_get_state(c->watch, &objects);
	return objects.is_settled;
}

static void on_soon(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct controller *c = arg;
	members_settle(c);
	controller_on_quiet(c);
}

static void on_settled(void *arg)
{
	struct controller *c = arg;
	struct timeval now = {0, 0};
	event_add(c->soon, &now); // not from within the watch
}

static int open_sources(struct controller *c, struct err *e)
{
	const struct controller_options *o = &c->options;
	struct connections *to = c->connections;
	if (o->n_policy_paths) {
		struct policy_folder_options files = {.loop = to->loop,
		                                      .clock = &to->clock,
		                                      .store = c->store,
		                                      .metrics = c->env.metrics,
		                                      .log = o->log,
		                                      .paths = o->policy_paths,
		                                      .n_paths = o->n_policy_paths};
		struct policy_folder_state state;
		c->folder = policy_folder_new(&files, e);
		if (!c->folder)
			return -1;
		policy_folder_get_state(c->folder, &state);
		if (state.n_policies == 0 && !o->policies_from_cluster && (state.n_errors || o->once))
			return err_set(e, ERR_INPUT,
			               state.n_errors ? "no valid policy; the errors are above" : "no policies found");
	}
	if (!o->policies_from_cluster)
		return 0;
	struct policy_watch_options objects = {.client = to->k8s,
	                                       .namespace_name = o->policy_namespace,
	                                       .store = c->store,
	                                       .log = o->log,
	                                       .on_settled = on_settled,
	                                       .arg = c};
	c->watch = policy_watch_new(&objects, e);
	return c->watch ? 0 : -1;
}

// ---- signals ----

static void on_hup(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	struct controller *c = arg;
	if (c->folder)
		policy_folder_reload(c->folder, "SIGHUP");
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct controller *c = arg;
	LOG(c->options.log, LOG_INFO, "Stopping", LOG_S("signal", fd == SIGTERM ? "SIGTERM" : "SIGINT"));
	event_base_loopbreak(c->connections->loop);
}

static int add_events(struct controller *c, struct err *e)
{
	struct event_base *loop = c->connections->loop;
	c->on_term = evsignal_new(loop, SIGTERM, on_stop, c);
	c->on_int = evsignal_new(loop, SIGINT, on_stop, c);
	c->on_hup = evsignal_new(loop, SIGHUP, on_hup, c);
	c->soon = event_new(loop, -1, 0, on_soon, c);
	if (!c->on_term || !c->on_int || !c->on_hup || !c->soon || event_add(c->on_term, NULL) < 0 ||
	    event_add(c->on_int, NULL) < 0 || event_add(c->on_hup, NULL) < 0)
		return err_set(e, ERR_INTERNAL, "cannot watch signals");
	return 0;
}

// ---- life ----

static int add_server(struct controller *c, struct err *e)
{
	if (c->options.once)
		return 0;
	const struct serving_options options = {.flags = c->options.serve,
	                                        .listen = c->options.listen,
	                                        .connections = c->connections,
	                                        .controller = c,
	                                        .log = c->options.log,
	                                        .metrics = c->env.metrics};
	c->serving = serving_new(&options, e);
	return c->serving ? 0 : -1;
}

static void on_target_error(void *arg, const char *what, const struct err *error)
{
	struct controller *c = arg;
	if (error)
		LOG(c->options.log, LOG_WARNING, "Cannot watch targets; they are read one by one until it works again",
		    LOG_S("what", what), LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else
		LOG(c->options.log, LOG_INFO, "Watching targets again", LOG_S("what", what));
}

static int make_parts(struct controller *c, struct metrics *metrics, struct err *e)
{
	struct connections *to = c->connections;
	struct policy_listener listener = member_listener;
	struct ticks_options ticks = {.loop = to->loop,
	                              .clock = &to->clock,
	                              .start = member_start_tick,
	                              .skipped = on_skipped,
	                              .round = on_round,
	                              .arg = c};
	listener.arg = c;
	c->was_crowded = true; // the start itself
	c->start_ms = c->changed_ms = clock_wall_ms(&to->clock);
	if (getentropy(&c->revision, sizeof c->revision) < 0) // so that no two processes have the same
		c->revision = (uint64_t)c->start_ms << 20;
	c->history = history_new();
	c->store = policy_store_new(&listener);
	c->ticks = ticks_new(&ticks, e);
	if (!c->history || !c->store || !c->ticks)
		return err_set(e, ERR_INTERNAL, "out of memory");
	// One tick each is done before a watch would have paid off.
	if (!c->options.once && connections_watch_targets(to, on_target_error, c, e) < 0)
		return -1;
	c->env = (struct reconcile_env){
	        .sources = {.queries = to->queries, .k8s = to->k8s, .targets = to->targets},
	        .promql = to->promql,
	        .log = c->options.log,
	        .metrics = metrics,
	        .history = c->history,
	        .dry_run = c->options.dry_run,
	        .trends = !c->options.once && c->options.listen && c->options.listen[0],
	        .is_current = member_is_current,
	        .may_write = member_may_write,
	        .fault = member_fault,
	        .rival = member_rival,
	        .unseen = member_unseen,
	        .on_idle = member_on_idle,
	};
	if (rivals_open(c, e) < 0)
		return -1;
	c->restore_env = (struct restore_env){to->k8s, c->options.log, controller_may_write, c};
	if (!c->options.policies_from_cluster || c->options.dry_run)
		return 0; // nobody to tell, or nothing to be written
	char host[HOST_BYTES] = "";
	if (gethostname(host, sizeof host - 1) < 0)
		host[0] = '\0'; // nothing depends on it
	struct event_recorder_options events = {
	        .client = to->k8s, .clock = &to->clock, .component = "gpuscale", .instance = host};
	c->status_env.writer = status_writer_new(to->k8s, e);
	c->status_env.events = c->status_env.writer ? event_recorder_new(&events, e) : NULL;
	return c->status_env.events ? 0 : -1;
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
	if (make_parts(c, metrics, e) == 0 && add_events(c, e) == 0 && ownership_open(c, e) == 0 &&
	    open_sources(c, e) == 0 && add_server(c, e) == 0)
		return c;
	controller_disconnect(c);
	connections_cancel(connections); // what was begun ends, as the parts to be freed demand
	controller_free(c);
	return NULL;
}

// Policies that have a tick unless somebody else drives their target.
static size_t n_to_work_on(const struct controller *c)
{
	size_t n = 0;
	for (const struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));)
		n += e->body && policy_entry_winner(e) == e;
	return n;
}

bool controller_run(struct controller *c)
{
	struct policy_counts counts;
	struct ticks_stats s;
	policy_store_get_counts(c->store, &counts);
	LOG(c->options.log, LOG_INFO, "Starting", LOG_S("version", GPUSCALE_VERSION),
	    LOG_I("policies", (int64_t)counts.in_force), LOG_B("dryRun", c->options.dry_run));
	members_settle(c);
	ticks_get_stats(c->ticks, &s);
	if (!c->options.once || s.under_way > 0 || !controller_is_settled(c) || rivals_are_waited_for(c))
		event_base_dispatch(c->connections->loop);
	c->stopping = c->env.stopping = true;
	ticks_stop(c->ticks);
	size_t failed = c->n_members == 0 || c->n_members < n_to_work_on(c);
	for (size_t i = 0; i < c->n_members; i++)
		failed += reconciler_error(c->members[i]->reconciler)[0] != '\0';
	return !(c->options.once && failed);
}

void controller_disconnect(struct controller *c)
{
	if (!c)
		return;
	c->stopping = c->env.stopping = true;
	serving_disconnect(c->serving);
	policy_watch_free(c->watch);
	c->watch = NULL;
	rivals_close(c);
}

void controller_free(struct controller *c)
{
	if (!c)
		return;
	serving_free(c->serving);
	if (c->store)
		members_free(c);
	ticks_free(c->ticks);
	policy_folder_free(c->folder);
	policy_store_free(c->store);
	status_writer_free(c->status_env.writer);
	event_recorder_free(c->status_env.events);
	ownership_close(c);
	struct event *events[] = {c->on_term, c->on_int, c->on_hup, c->soon};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
		if (events[i])
			event_free(events[i]);
	history_free(c->history);
	free(c);
}
