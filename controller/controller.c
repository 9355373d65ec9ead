// SPDX-License-Identifier: Apache-2.0
#include "controller/controller.h"

#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/process/log.h"
#include "base/process/process_trim.h"
#include "controller/controller_private.h"
#include "controller/idle/idle_rules.h"
#include "controller/log_edge.h"
#include "controller/metrics/metrics.h"
#include "controller/price_follower.h"
#include "controller/query_hub.h"
#include "controller/source/file_source.h"
#include "controller/source/policy_watch.h"
#include "controller/status/decision_history.h"
#include "controller/status/state_dir.h"
#include "controller/status/status_writer.h"
#include "k8s/client/discovery.h"
#include "k8s/events/event_recorder.h"
#include "promql/promql_source.h"

#define HOST_BYTES           256
#define CONTROLLER_CROWD     64           // ticks that hang at once, and need much memory
#define CONTROLLER_FORGET_MS (10 * 60000) // queries that no tick asked for this long are dropped

// ---- ticks ----

static void on_skipped(void *arg, struct ticker *t)
{
	struct controller *c = arg;
	metrics_tick_skipped(c->report_env.metrics);
}

// Events are written in the background, so no caller sees their errors.
static void report_events(struct controller *c)
{
	const char *error = c->status_env.events ? event_recorder_error(c->status_env.events) : "";
	if (log_edge(&c->events_failed, error[0] != '\0') == LOG_EDGE_STARTED)
		LOG(c->options.log, LOG_ERROR, "Cannot write Events", LOG_S("err", error));
}

static void report_disagreements(struct controller *c)
{
	const struct promql_sources *sources = query_hub_sources(c->connections->queries);
	for (size_t i = 0; i < promql_sources_count(sources); i++) {
		const struct query_agreement *g = query_hub_agreement(c->connections->queries, i);
		const char *name = promql_source_name(promql_sources_at(sources, i));
		switch (log_edge(&c->sources_disagree[i], g->is_disagreeing)) {
		case LOG_EDGE_STARTED:
			LOG(c->options.log, LOG_WARNING, "Servers of a source disagree", LOG_S("source", name),
			    LOG_S("query", g->detail));
			break;
		case LOG_EDGE_ENDED:
			LOG(c->options.log, LOG_INFO, "Servers of a source agree again", LOG_S("source", name));
			break;
		case LOG_EDGE_NONE:
			break;
		}
	}
}

static void on_interval(void *arg)
{
	controller_look_at_clock(arg);
}

static void on_round(void *arg, int64_t now_ms)
{
	struct controller *c = arg;
	report_events(c);
	report_disagreements(c);
	query_hub_forget(c->connections->queries, now_ms - CONTROLLER_FORGET_MS);
	if (c->connections->k8s)
		discovery_forget(k8s_client_discovery(c->connections->k8s));
}

void controller_on_quiet(struct controller *c)
{
	struct ticks_stats s;
	if (c->stopping)
		return;
	ticks_get_stats(c->ticks, &s);
	// The memory that the start of many policies took, or many ticks that hung, is no longer needed.
	c->policies.was_crowded =
	        c->policies.was_crowded || c->policies.n > 2 * c->policies.n_trimmed || s.slow > CONTROLLER_CROWD;
	if (!c->policies.was_crowded && !c->options.once)
		return;
	if (s.in_progress + s.due + s.awaiting > 0 || !policies_are_known(c))
		return;
	c->policies.was_crowded = false;
	c->policies.n_trimmed = c->policies.n;
	process_trim();
	if (c->options.once)
		event_base_loopbreak(c->connections->loop);
}

// ---- sources of policies ----

bool controller_has_synced(const struct controller *c)
{
	struct policy_watch_state objects;
	if (!controller_pools_are_known(c))
		return false;
	if (!c->watch)
		return !c->options.policies_from_cluster;
	policy_watch_get_state(c->watch, &objects);
	return objects.has_answer;
}

static void on_sync(evutil_socket_t fd, short what, void *arg)
{
	struct controller *c = arg;
	policies_sync(c);
	controller_on_quiet(c);
}

static void on_synced(void *arg)
{
	struct controller *c = arg;
	struct timeval now = {0, 0};
	event_add(c->policies.sync, &now); // the watch may not be changed from its own callback
}

static int read_other_kinds(void *arg, struct err *e)
{
	return controller_pools_read_files(arg, e) < 0 ? -1 : controller_idle_read_files(arg, e);
}

static int open_sources(struct controller *c, struct err *e)
{
	const struct controller_options *o = &c->options;
	struct connections *to = c->connections;
	if (o->n_policy_paths) {
		struct file_source_options files = {.loop = to->loop,
		                                    .clock = &to->clock,
		                                    .store = c->store,
		                                    .metrics = c->report_env.metrics,
		                                    .log = o->log,
		                                    .paths = o->policy_paths,
		                                    .n_paths = o->n_policy_paths,
		                                    .before = read_other_kinds,
		                                    .arg = c};
		struct file_source_state state;
		c->folder = file_source_new(&files, e);
		if (!c->folder)
			return -1;
		file_source_get_state(c->folder, &state);
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
	                                       .on_synced = on_synced,
	                                       .arg = c};
	c->watch = policy_watch_new(&objects, e);
	return c->watch ? 0 : -1;
}

// ---- signals ----

static void on_hup(evutil_socket_t fd, short what, void *arg)
{
	struct controller *c = arg;
	if (c->folder)
		file_source_reload(c->folder, "SIGHUP");
}

static void on_stop(evutil_socket_t fd, short what, void *arg)
{
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
	c->policies.sync = event_new(loop, -1, 0, on_sync, c);
	if (!c->on_term || !c->on_int || !c->on_hup || !c->policies.sync || event_add(c->on_term, NULL) < 0 ||
	    event_add(c->on_int, NULL) < 0 || event_add(c->on_hup, NULL) < 0)
		return err_set(e, ERR_INTERNAL, "cannot watch signals");
	return 0;
}

// ---- life ----

static void on_target_error(void *arg, const char *what, const struct err *error)
{
	struct controller *c = arg;
	if (error)
		LOG(c->options.log, LOG_WARNING, "Cannot watch targets; reading them one by one", LOG_S("what", what),
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else
		LOG(c->options.log, LOG_INFO, "Target watch recovered", LOG_S("what", what));
}

static void on_capacity_error(void *arg, const struct err *error)
{
	struct controller *c = arg;
	if (error)
		LOG(c->options.log, LOG_WARNING, "Cannot watch nodes and pods; capacity limits nothing",
		    LOG_S("kind", err_kind_info(error->kind)->name), LOG_S("err", error->msg));
	else
		LOG(c->options.log, LOG_INFO, "Watch of nodes and pods recovered",
		    LOG_S("effect", "capacity limits orders"));
}

static void on_missing(void *arg, const char *namespace_name, const char *name)
{
	struct controller *c = arg;
	if (c->watch)
		policy_watch_verify(c->watch, namespace_name, name);
}

static int make_parts(struct controller *c, struct metrics *metrics, struct err *e)
{
	struct connections *to = c->connections;
	struct policy_listener listener = policies_listener;
	struct ticks_options ticks = {.loop = to->loop,
	                              .clock = &to->clock,
	                              .before = on_interval,
	                              .start = managed_policy_start_tick,
	                              .write = managed_policy_write,
	                              .look = c->options.once ? NULL : managed_policy_look,
	                              .skipped = on_skipped,
	                              .round = on_round,
	                              .arg = c};
	listener.arg = c;
	c->policies.was_crowded = true; // by the start
	c->start_ms = c->view.changed_ms = clock_wall_ms(&to->clock);
	if (getentropy(&c->view.revision, sizeof c->view.revision) < 0) // so that two processes have different ones
		c->view.revision = (uint64_t)c->start_ms << 20;
	c->prices = price_follower_new(c->options.prices, c->options.log, e);
	if (!c->prices) {
		err_wrap(e, "--prices");
		return -1;
	}
	c->history = decision_history_new();
	c->store = policy_store_new(&listener);
	c->ticks = ticks_new(&ticks, e);
	if (!c->history || !c->store || !c->ticks)
		return err_set(e, ERR_INTERNAL, "out of memory");
	// With --once, a single tick per policy is done before a watch is synced.
	if (!c->options.once && connections_watch_targets(to, on_target_error, c, e) < 0)
		return -1;
	if (connections_read_capacity(to, on_capacity_error, c, e) < 0)
		return -1;
	c->env = (struct reconcile_env){
	        .sources = {.queries = to->queries, .k8s = to->k8s, .targets = to->targets, .fits = to->fits},
	        .promql = to->promql,
	        .log = c->options.log,
	        .dry_run = c->options.dry_run,
	        .permit = managed_policy_permit,
	        .seat = controller_pools_seat,
	        .yield = conflicts_yield,
	        .take_turn = managed_policy_take_turn,
	        .finished = managed_policy_finished,
	};
	c->report_env = (struct policy_report_env){
	        .log = c->options.log,
	        .metrics = metrics,
	        .history = c->history,
	        .dry_run = c->options.dry_run,
	        .keep_sparklines = c->options.keep_sparklines,
	};
	if (conflicts_open(c, e) < 0)
		return -1;
	if (c->options.state_dir && !c->options.dry_run) { // a dry run does not scale, so it has nothing to save
		c->file_env.clock = &to->clock;
		c->file_env.dir = state_dir_open(c->options.state_dir, to->loop, e);
		if (!c->file_env.dir)
			return -1;
	}
	c->restore_env = (struct restore_env){to->k8s, c->options.log, ownership_may_restore, c};
	if (!c->options.policies_from_cluster || c->options.dry_run)
		return 0; // there are no objects, or nothing may be written
	char host[HOST_BYTES] = "";
	if (gethostname(host, sizeof host - 1) < 0)
		host[0] = '\0'; // Events are written without it
	struct event_recorder_options events = {
	        .client = to->k8s, .clock = &to->clock, .component = "gpuscale", .instance = host};
	c->status_env.on_missing = on_missing;
	c->status_env.arg = c;
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
	if (make_parts(c, metrics, e) == 0 && controller_clock_open(c, e) == 0 && add_events(c, e) == 0 &&
	    ownership_open(c, e) == 0 && controller_pools_open(c, e) == 0 && controller_idle_open(c, e) == 0 &&
	    open_sources(c, e) == 0)
		return c;
	controller_disconnect(c);
	connections_cancel(connections); // the parts below may be freed only when no request is in flight
	controller_free(c);
	return NULL;
}

// Returns the number of policies that tick unless another autoscaler controls their target.
static size_t count_eligible(const struct controller *c)
{
	size_t n = 0;
	for (const struct policy_entry *e = NULL; (e = policy_store_next(c->store, e));)
		n += e->body && policy_entry_winner(e) == e;
	return n;
}

// An upgrade can close sources that were open before. Without this log line, only the status of each policy would show
// it.
static void report_closed_sources(const struct controller *c)
{
	const struct promql_sources *sources = c->connections->promql;
	for (size_t i = 0; i < promql_sources_count(sources); i++) {
		const struct promql_source *s = promql_sources_at(sources, i);
		if (promql_access_is_closed(promql_source_access(s)))
			LOG(c->options.log, LOG_WARNING,
			    "Source is closed to all policies: allowedNamespaces is not set",
			    LOG_S("source", promql_source_name(s)),
			    LOG_S("fix", "name the namespaces in allowedNamespaces of the source, or by "
			                 "--prometheus-namespace; \"*\" is every namespace"));
	}
}

bool controller_run(struct controller *c)
{
	struct policy_counts counts;
	struct ticks_stats s;
	policy_store_get_counts(c->store, &counts);
	LOG(c->options.log, LOG_INFO, "Starting", LOG_S("version", GPUSCALE_VERSION),
	    LOG_I("policies", (int64_t)counts.in_force), LOG_B("dryRun", c->options.dry_run));
	report_closed_sources(c);
	policies_sync(c);
	ticks_get_stats(c->ticks, &s);
	if (!c->options.once || s.in_progress > 0 || !policies_are_known(c))
		event_base_dispatch(c->connections->loop);
	c->stopping = c->env.stopping = true;
	ticks_stop(c->ticks);
	size_t failed = c->policies.n == 0 || c->policies.n < count_eligible(c);
	for (size_t i = 0; i < c->policies.n; i++)
		failed += c->policies.list[i]->report.error != NULL;
	return !(c->options.once && failed);
}

void controller_disconnect(struct controller *c)
{
	if (!c)
		return;
	c->stopping = c->env.stopping = true;
	if (c->file_env.dir)
		state_dir_drain(c->file_env.dir); // ticks may wait for it
	policy_watch_free(c->watch);
	c->watch = NULL;
	controller_pools_disconnect(c);
	idle_rules_disconnect(c->idle);
	conflicts_close(c);
}

void controller_free(struct controller *c)
{
	if (!c)
		return;
	if (c->store) {
		policies_flush(c);
		policies_free(c);
	}
	controller_pools_close(c); // cancels its writes to the directory
	state_dir_close(c->file_env.dir);
	ticks_free(c->ticks);
	file_source_free(c->folder);
	policy_store_free(c->store);
	idle_rules_free(c->idle);
	status_writer_free(c->status_env.writer);
	event_recorder_free(c->status_env.events);
	ownership_close(c);
	controller_clock_close(c);
	struct event *events[] = {c->on_term, c->on_int, c->on_hup, c->policies.sync};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
		if (events[i])
			event_free(events[i]);
	decision_history_free(c->history);
	price_follower_free(c->prices);
	free(c);
}
