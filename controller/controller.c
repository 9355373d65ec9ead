// SPDX-License-Identifier: Apache-2.0
#include "controller/controller.h"

#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

#include "base/base.h"
#include "base/process/log.h"
#include "base/process/process.h"
#include "base/timer.h"
#include "controller/policy/managed_policy.h"
#include "controller/policy/policy_conflicts.h"
#include "controller/policy/policy_report.h"
#include "controller/pool/pools.h"
#include "controller/source/file_source.h"
#include "controller/source/object_watch.h"
#include "controller/source/policy_watch.h"
#include "controller/status/state_dir.h"
#include "controller/status/status_writer.h"
#include "k8s/client/discovery.h"
#include "k8s/client/k8s_client.h"
#include "k8s/events/event_recorder.h"
#include "promql/promql_source.h"
#include "runtime/connections.h"
#include "runtime/log_edge.h"
#include "runtime/metrics/metrics.h"
#include "runtime/query/query_hub.h"
#include "runtime/shard/shards.h"

#define HOST_BYTES           256
#define CONTROLLER_CLOCK_MS  1000 // interval of the checks; a slewed clock moves by less than CLOCK_STEP_MS in it
#define CONTROLLER_CROWD     64   // ticks that hang at once, and need much memory
#define CONTROLLER_FORGET_MS (10 * 60000) // queries that no tick asked for this long are dropped

// ---- the wall clock ----

// With leader election, the shards report the larger steps, after which they release their leases.
static void report_clock_step(const struct controller *c, int64_t step_ms)
{
	int64_t size_ms = step_ms < 0 ? -step_ms : step_ms;
	if (c->connections->shards && size_ms > shards_clock_limit_ms(c->connections->shards))
		return;
	LOG(c->options.log, LOG_WARNING, "Wall clock was set; past actions keep their age, windows are refilled",
	    LOG_I("stepMs", step_ms), LOG_I("limitMs", CLOCK_STEP_MS));
}

void controller_check_clock(struct controller *c)
{
	struct managed_policies *all = &c->policies;
	int64_t step_ms = clock_step_detector_check(&c->clock_detector, &all->connections->clock);
	if (step_ms == 0)
		return;
	metrics_count(all->metrics, FAMILY_CLOCK_STEPS, "");
	report_clock_step(c, step_ms);
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
	promql_sources_clock_was_set(all->connections->promql, step_ms);
	c->start_ms += step_ms;
	managed_policies_changed(all);
}

static void check_clock(void *arg)
{
	controller_check_clock(arg);
}

static void on_clock_timer(evutil_socket_t fd, short what, void *arg)
{
	controller_check_clock(arg);
}

// With --once, the process exits soon, so nothing is checked in the background.
static void watch_clock(struct controller *c)
{
	const struct connections *to = c->connections;
	c->start_ms = clock_wall_ms(&to->clock);
	clock_step_detector_init(&c->clock_detector, &to->clock, CLOCK_STEP_MS);
	if (c->options.once)
		return;
	c->clock_timer = must_alloc(event_new(to->loop, -1, EV_PERSIST, on_clock_timer, c));
	if (timer_start(c->clock_timer, CONTROLLER_CLOCK_MS) < 0)
		abort(); // base/alloc.h
}

// ---- ticks ----

static void on_skipped(void *arg, struct ticker *t)
{
	const struct managed_policies *all = arg;
	metrics_count(all->metrics, FAMILY_TICKS_SKIPPED, "");
}

// Events are written in the background, so no caller sees their errors.
static void report_events(struct controller *c)
{
	const char *error = c->sync.status_env.events ? event_recorder_error(c->sync.status_env.events) : "";
	if (log_edge(&c->events_failed, error[0] != '\0') == LOG_EDGE_STARTED)
		LOG(c->options.log, LOG_ERROR, "Cannot write Events", LOG_S("err", error));
}

static void report_disagreements(struct controller *c)
{
	const struct promql_sources *sources = c->connections->promql;
	for (size_t i = 0; i < sources->n; i++) {
		const struct query_agreement *g = &c->connections->queries->of[i].agreement;
		const char *name = sources->items[i]->name;
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

static void on_round(void *arg, int64_t now_ms)
{
	struct controller *c = arg; // its policies
	report_events(c);
	report_disagreements(c);
	query_hub_forget(c->connections->queries, now_ms - CONTROLLER_FORGET_MS);
	if (c->connections->k8s)
		discovery_forget(c->connections->k8s->discovery);
}

// Call when a tick or a sync ended. If no work is left, returns memory to the system and, with --once, stops.
static void on_quiet(void *arg)
{
	struct controller *c = arg; // its policies
	struct ticks_stats s;
	if (c->policies.stopping)
		return;
	ticks_get_stats(c->policies.ticks, &s);
	// The memory that the start of many policies took, or many ticks that hung, is no longer needed.
	c->was_crowded = c->was_crowded || c->policies.n > 2 * c->n_trimmed || s.slow > CONTROLLER_CROWD;
	if (!c->was_crowded && !c->options.once)
		return;
	if (s.in_progress + s.due + s.awaiting > 0 || !policy_sync_is_complete(&c->sync))
		return;
	c->was_crowded = false;
	c->n_trimmed = c->policies.n;
	process_trim();
	if (c->options.once)
		event_base_loopbreak(c->connections->loop);
}

// ---- sources of policies ----

static bool has_synced(const void *arg)
{
	const struct controller *c = arg;
	if (c->pools->watch && !c->pools->watch->has_answer)
		return false;
	if (c->options.scaled_objects && (!c->scaled_objects || !c->scaled_objects->objects->has_answer))
		return false;
	return c->watch ? c->watch->objects->has_answer : !c->options.policies_from_cluster;
}

static void on_sync(evutil_socket_t fd, short what, void *arg)
{
	struct controller *c = arg;
	policy_sync(&c->sync);
	on_quiet(&c->policies);
}

static void on_synced(void *arg)
{
	struct controller *c = arg;
	managed_policies_wake(&c->policies); // the watch may not be changed from its own callback
}

static int open_sources(struct controller *c, struct err *e)
{
	const struct controller_options *o = &c->options;
	struct connections *to = c->connections;
	if (o->n_policy_paths) {
		struct file_source_options files = {.loop = to->loop,
		                                    .clock = &to->clock,
		                                    .store = c->policies.store,
		                                    .metrics = c->policies.metrics,
		                                    .log = o->log,
		                                    .paths = o->policy_paths,
		                                    .n_paths = o->n_policy_paths,
		                                    .before = policy_pools_read_files,
		                                    .arg = c->pools};
		c->folder = file_source_new(&files, e);
		if (!c->folder)
			return -1;
		const struct file_set *set = &c->folder->set;
		if (set->n_policies == 0 && !o->policies_from_cluster && (set->n_errors || o->once))
			return err_set(e, ERR_INPUT,
			               set->n_errors ? "no valid policy; the errors are above" : "no policies found");
	}
	const struct policy_watch_options objects = {.client = to->k8s,
	                                             .namespace_name = o->policy_namespace,
	                                             .store = c->policies.store,
	                                             .log = o->log,
	                                             .on_synced = on_synced,
	                                             .arg = c,
	                                             .source = POLICY_FROM_OBJECT};
	struct policy_watch_options scaled_objects = objects;
	scaled_objects.source = POLICY_FROM_SCALED_OBJECT;
	scaled_objects.sources = to->promql;
	scaled_objects.authenticates = o->authenticates_triggers;
	if (o->scaled_objects && !(c->scaled_objects = policy_watch_new(&scaled_objects, e)))
		return -1;
	if (o->policies_from_cluster && !(c->watch = policy_watch_new(&objects, e)))
		return -1;
	return 0;
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
	c->policies.wake = event_new(loop, -1, 0, on_sync, c);
	if (!c->on_term || !c->on_int || !c->on_hup || !c->policies.wake || event_add(c->on_term, NULL) < 0 ||
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

// arg: where the controller keeps the watch of the objects.
static void on_missing(void *arg, const char *namespace_name, const char *name)
{
	struct policy_watch *const *watch = arg;
	if (*watch)
		object_watch_verify((*watch)->objects, namespace_name, name);
}

static void on_keda(void *arg)
{
	struct controller *c = arg;
	// KEDA's operator writes the whole list of conditions itself.
	c->sync.scaled_object_env.is_read_only = c->policies.keda->state == KEDA_RUNS;
	managed_policies_mark_all(&c->policies);
}

static int open_status(struct controller *c, struct err *e)
{
	struct connections *to = c->connections;
	struct policy_sync *s = &c->sync;
	if (c->options.state_dir && !c->options.dry_run) { // a dry run does not scale, so it has nothing to save
		s->file_env.clock = &to->clock;
		s->file_env.dir = state_dir_open(c->options.state_dir, to->loop, e);
		if (!s->file_env.dir)
			return -1;
	}
	if ((!c->options.policies_from_cluster && !c->options.scaled_objects) || c->options.dry_run)
		return 0; // there are no objects, or nothing may be written
	char host[HOST_BYTES] = "";
	if (gethostname(host, sizeof host - 1) < 0)
		host[0] = '\0'; // Events are written without it
	struct event_recorder_options events = {
	        .client = to->k8s, .clock = &to->clock, .component = "gpuscale", .instance = host};
	s->status_env.on_missing = on_missing;
	s->status_env.arg = &c->watch;
	s->status_env.writer = status_writer_new(to->k8s);
	s->status_env.events = event_recorder_new(&events, e);
	s->scaled_object_env = s->status_env;
	s->scaled_object_env.is_scaled_object = s->scaled_object_env.is_read_only = true; // until KEDA's state is known
	s->scaled_object_env.arg = &c->scaled_objects;
	return s->status_env.events ? 0 : -1;
}

static void open_policies(struct controller *c, struct metrics *metrics)
{
	struct connections *to = c->connections;
	struct managed_policies *all = &c->policies;
	struct policy_sync *s = &c->sync;
	struct ticks_options ticks = {.loop = to->loop,
	                              .clock = &to->clock,
	                              .before = check_clock,
	                              .start = policy_sync_start_tick,
	                              .write = policy_sync_write,
	                              .early_check = c->options.once ? NULL : early_check_start,
	                              .skipped = on_skipped,
	                              .round = on_round,
	                              .arg = all};
	*all = (struct managed_policies){.connections = to,
	                                 .metrics = metrics,
	                                 .log = c->options.log,
	                                 .policy_sync = s,
	                                 .fleets = &s->fleet_env,
	                                 .early_checks = &c->early_checks,
	                                 .has_synced = has_synced,
	                                 .arg = c,
	                                 .dry_run = c->options.dry_run};
	*s = (struct policy_sync){.all = all, .check_clock = check_clock, .on_quiet = on_quiet, .arg = all};
	const struct policy_listener listener = policy_sync_init(s);
	c->was_crowded = true; // by the start
	all->changed_ms = clock_wall_ms(&to->clock);
	if (getentropy(&all->revision, sizeof all->revision) < 0) // so that two processes have different ones
		all->revision = (uint64_t)all->changed_ms << 20;
	c->history = decision_history_new();
	all->store = policy_store_new(&listener);
	all->ticks = ticks_new(&ticks);
	s->report_env = (struct policy_report_env){
	        .log = c->options.log,
	        .metrics = metrics,
	        .history = c->history,
	        .dry_run = c->options.dry_run,
	        .keep_sparklines = c->options.keep_sparklines,
	};
	s->restore_env = (struct restore_env){to->k8s, c->options.log, ownership_may_restore, to};
}

static const struct price_book *prices_of(void *arg)
{
	const struct controller *c = arg;
	return price_follower_book(c->prices, clock_wall_ms(&c->connections->clock));
}

static int make_parts(struct controller *c, struct metrics *metrics, struct err *e)
{
	struct connections *to = c->connections;
	const struct controller_options *o = &c->options;
	struct managed_policies *all = &c->policies;
	open_policies(c, metrics);
	c->prices = price_follower_new(o->prices, o->log, e);
	if (!c->prices)
		return err_wrap(e, "--prices");
	// With --once, a single tick per policy is done before a watch is synced.
	if (connections_watch(to, o->once ? NULL : on_target_error, on_capacity_error, c, e) < 0)
		return -1;
	struct reconcile_env *env = &c->sync.env;
	env->sources = (struct observe_sources){
	        .queries = to->queries, .k8s = to->k8s, .targets = to->targets, .fits = to->fits};
	env->promql = to->promql;
	env->log = o->log;
	env->dry_run = o->dry_run;
	const struct keda_watch_options keda = {
	        .client = to->k8s, .namespace_name = o->keda_namespace, .log = o->log, .on_change = on_keda, .arg = c};
	if (o->scaled_objects && !(all->keda = keda_watch_new(&keda, e)))
		return -1;
	env->prices = prices_of;
	env->prices_arg = c;
	watch_clock(c);
	all->conflicts = conflicts_new(all, e);
	if (!all->conflicts || open_status(c, e) < 0 || add_events(c, e) < 0 || ownership_open(all, o->election, e) < 0)
		return -1;
	const struct policy_pools_options pools = {
	        .all = all,
	        // Of the policies of one namespace alone no pool of the cluster could be shared.
	        .watches = o->policies_from_cluster && !o->policy_namespace,
	        .once = o->once,
	        .paths = o->policy_paths,
	        .n_paths = o->n_policy_paths,
	        .writer = c->sync.status_env.writer,
	        .events = c->sync.status_env.events,
	        .dir = c->sync.file_env.dir,
	};
	c->pools = all->policy_pools = policy_pools_new(&pools);
	c->sync.fleet_env.metrics = metrics;
	c->sync.fleet_env.writer = c->sync.status_env.writer;
	c->sync.fleet_env.events = c->sync.status_env.events;
	c->sync.fleet_env.conflicts = all->conflicts->watch;
	c->sync.fleet_env.own_namespace = connections_own_namespace(to);
	c->sync.fleet_env.spans_anywhere = o->cluster_fleets;
	return 0;
}

struct controller *controller_new(struct connections *connections, const struct controller_options *options,
                                  struct metrics *metrics, struct err *e)
{
	struct controller *c = must_alloc(calloc(1, sizeof *c));
	c->connections = connections;
	c->options = *options;
	if (make_parts(c, metrics, e) == 0 && open_sources(c, e) == 0)
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
	for (const struct stored_binding *b = NULL; (b = policy_store_next(c->policies.store, b));)
		n += stored_binding_winner(b) == b;
	return n;
}

// An upgrade can close sources that were open before. Without this log line, only the status of each policy would show
// it.
static void report_closed_sources(const struct controller *c)
{
	const struct promql_sources *sources = c->connections->promql;
	for (size_t i = 0; i < sources->n; i++) {
		const struct promql_source *s = sources->items[i];
		if (s->access->is_closed)
			LOG(c->options.log, LOG_WARNING,
			    "Source is closed to all policies: allowedNamespaces is not set", LOG_S("source", s->name),
			    LOG_S("fix", "name the namespaces in allowedNamespaces of the source, or by "
			                 "--prometheus-namespace; \"*\" is every namespace"));
	}
}

bool controller_run(struct controller *c)
{
	struct ticks_stats s;
	LOG(c->options.log, LOG_INFO, "Starting", LOG_S("version", GPUSCALE_VERSION),
	    LOG_I("policies", (int64_t)policy_store_counts(c->policies.store)->in_force),
	    LOG_B("dryRun", c->options.dry_run));
	report_closed_sources(c);
	policy_sync(&c->sync);
	ticks_get_stats(c->policies.ticks, &s);
	if (!c->options.once || s.in_progress > 0 || !policy_sync_is_complete(&c->sync))
		event_base_dispatch(c->connections->loop);
	c->policies.stopping = c->sync.env.stopping = true;
	ticks_stop(c->policies.ticks);
	size_t failed = c->policies.n == 0 || c->policies.n < count_eligible(c);
	for (size_t i = 0; i < c->policies.n; i++)
		failed += c->policies.list[i]->report.error != NULL;
	return !(c->options.once && failed);
}

void controller_disconnect(struct controller *c)
{
	if (!c)
		return;
	c->policies.stopping = c->sync.env.stopping = true;
	if (c->sync.file_env.dir)
		state_dir_drain(c->sync.file_env.dir); // ticks may wait for it
	policy_watch_free(c->watch);
	c->watch = NULL;
	policy_watch_free(c->scaled_objects);
	c->scaled_objects = NULL;
	keda_watch_free(c->policies.keda);
	c->policies.keda = NULL;
	policy_pools_disconnect(c->pools);
	fleets_disconnect(&c->sync.fleet_env);
	conflicts_free(c->policies.conflicts);
	c->policies.conflicts = NULL;
}

void controller_resign(struct controller *c)
{
	if (c && c->connections->shards)
		shards_stop(c->connections->shards);
}

void controller_free(struct controller *c)
{
	if (!c)
		return;
	if (c->policies.store) {
		policy_sync_flush(&c->sync);
		policy_sync_free(&c->sync);
	}
	policy_pools_free(c->pools); // cancels its writes to the directory
	state_dir_close(c->sync.file_env.dir);
	ticks_free(c->policies.ticks);
	file_source_free(c->folder);
	policy_store_free(c->policies.store);
	status_writer_free(c->sync.status_env.writer);
	event_recorder_free(c->sync.status_env.events);
	struct event *events[] = {c->on_term, c->on_int, c->on_hup, c->policies.wake, c->clock_timer};
	for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
		timer_free(events[i]);
	decision_history_free(c->history);
	price_follower_free(c->prices);
	free(c);
}

// ---- what the endpoints show ----

bool controller_is_ready(struct controller *c, size_t *ret_n_ticked)
{
	size_t n = 0;
	for (size_t i = 0; i < c->policies.n; i++) {
		const struct managed_policy *m = c->policies.list[i];
		n += m->reconciler->decision || m->report.error;
	}
	bool is_synced = !c->watch || c->watch->objects->list > 0;
	bool is_ready = is_synced && policy_sync_is_complete(&c->sync) && n == c->policies.n;
	c->was_ready = c->was_ready || is_ready;
	*ret_n_ticked = n;
	return c->was_ready;
}

const struct price_book *controller_prices(struct controller *c)
{
	size_t i = 0;
	while (i < c->policies.n && !reconciler_gpus(c->policies.list[i]->reconciler).set)
		i++;
	if (i == c->policies.n)
		return NULL;
	const struct price_book *book = prices_of(c);
	if (book != c->shown_prices)
		managed_policies_changed(&c->policies);
	c->shown_prices = book;
	return book;
}

const char *controller_file_report(const struct controller *c)
{
	return c->folder ? buf_str(&c->folder->report) : "";
}

const char *controller_watch_error(const struct controller *c)
{
	return c->watch && c->watch->objects->error ? c->watch->objects->error : "";
}
