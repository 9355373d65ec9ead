// SPDX-License-Identifier: Apache-2.0
#include "runtime/metrics/metrics_table.h"

#include <assert.h>

#include "base/buf.h"

#define C METRIC_COUNTER
#define G METRIC_GAUGE
#define H METRIC_HISTOGRAM

// F(id, name, type, unit, labels, help)
#define F(id, ...) [FAMILY_##id] = {__VA_ARGS__}
#define L(...)                                                                                                         \
	{                                                                                                              \
		__VA_ARGS__                                                                                            \
	}
#define NONE                                                                                                           \
	{                                                                                                              \
		0                                                                                                      \
	}

static const struct metric_family families[] = {
        // clang-format off
	F(BUILD_INFO,              "gpuscale_build_info",                           G, "",                        L("version"),                       "Version of this binary; always 1."),
	F(DRY_RUN,                 "gpuscale_dry_run",                              G, "",                        NONE,                               "1 when this process was started with --dry-run."),

	F(POLICIES,                "gpuscale_policies",                             G, "policies",                NONE,                               "Policies in force in this process."),
	F(POLICIES_INVALID,        "gpuscale_policies_invalid",                     G, "policies",                NONE,                               "Policy objects with errors; the last valid version of each stays in force."),
	F(POLICIES_WAITING,        "gpuscale_policies_waiting",                     G, "policies",                NONE,                               "Valid policies that are not in force, because another autoscaler or policy controls their target."),
	F(POLICIES_WITHOUT_SERIES, "gpuscale_policies_without_series",              G, "policies",                NONE,                               "Policies in force without series of their own, because there are more than --metrics-policies."),
	F(POLICY_FILES_INVALID,    "gpuscale_policy_files_invalid",                 G, "files",                   NONE,                               "Policy files with errors; their last valid policies stay in force."),
	F(POLICY_RELOADS,          "gpuscale_policy_reloads_total",                 C, "",                        L("result"),                        "Times that the policy files were read; result: ok or error."),
	F(POLICY_RELOAD_TIMESTAMP, "gpuscale_policy_reload_timestamp_seconds",      G, "seconds since the epoch", NONE,                               "Time when the policy files were last read without an error."),

	F(RECONCILES,              "gpuscale_reconciles_total",                     C, "",                        L("result"),                        "Completed ticks; result: ok, deferred (decided to scale, and waits for its turn to write), scaled or error."),
	F(RECONCILE_DURATION,      "gpuscale_reconcile_duration_seconds",           H, "seconds",                 NONE,                               "Duration of a tick."),
	F(TICK_DELAY,              "gpuscale_tick_delay_seconds",                   H, "seconds",                 NONE,                               "Time by which a tick started after it was due."),
	F(TICKS_SKIPPED,           "gpuscale_ticks_skipped_total",                  C, "",                        NONE,                               "Ticks skipped because an earlier tick of the policy had not ended. A tick that comes due while the policy writes a scale follows the write instead."),
	F(TICKS_EARLY,             "gpuscale_ticks_early_total",                    C, "",                        NONE,                               "Ticks started before their time because a signal had moved."),
	F(DECISIONS,               "gpuscale_decisions_total",                      C, "",                        L("action", "reason"),              "Decisions by action and primary reason."),
	F(SCALES,                  "gpuscale_scales_total",                         C, "",                        L("direction"),                     "Acknowledged writes of a target's replicas; direction: up or down."),
	F(CONFLICTS,               "gpuscale_conflicts_total",                      C, "",                        NONE,                               "Writes refused because another client had changed the target."),

	F(CURRENT_REPLICAS,        "gpuscale_current_replicas",                     G, "replicas",                L("namespace", "policy"),           "spec.replicas of the target."),
	F(READY_REPLICAS,          "gpuscale_ready_replicas",                       G, "replicas",                L("namespace", "policy"),           "Ready replicas of the target; absent when unknown."),
	F(PENDING_REPLICAS,        "gpuscale_pending_replicas",                     G, "replicas",                L("namespace", "policy"),           "Replicas of the target that exist and are not running or not ready."),
	F(DESIRED_REPLICAS,        "gpuscale_desired_replicas",                     G, "replicas",                L("namespace", "policy"),           "Replicas of the last decision."),
	F(MIN_REPLICAS,            "gpuscale_min_replicas",                         G, "replicas",                L("namespace", "policy"),           "minReplicas of the policy."),
	F(MAX_REPLICAS,            "gpuscale_max_replicas",                         G, "replicas",                L("namespace", "policy"),           "maxReplicas of the policy."),
	F(HELD,                    "gpuscale_held",                                 G, "",                        L("namespace", "policy"),           "1 while scaling is on hold because signals are missing or stale."),
	F(VALUES_LIMITED,          "gpuscale_values_limited_total",                 C, "",                        L("namespace", "policy"),           "Values beyond four times what maxReplicas serve, on either side of 0, that a window limited, or that a forecast or an objective did not learn from."),
	F(TARGET_INFO,             "gpuscale_target_info",                          G, "",                        L("namespace", "policy", "workload"), "Name of the target that the policy scales, with which the names of its pods start; always 1."),
	F(GPU_SECONDS,             "gpuscale_gpu_seconds_total",                    C, "seconds",                 L("namespace", "policy"),           "GPU-seconds of the target: replicas times GPUs per replica (spec.gpus.perReplica, or with spec.capacity those of the pod template) times time, while this process runs the policy; absent where these are unknown."),
	F(SAVED_GPU_SECONDS,       "gpuscale_saved_gpu_seconds_total",              C, "seconds",                 L("namespace", "policy", "against"), "GPU-seconds that the target would have used beyond that; against: max (maxReplicas all the time); absent where GPUs per replica are unknown."),
	F(GPUS,                    "gpuscale_gpus",                                 G, "GPUs",                    L("namespace", "policy", "model"),  "GPUs of the current replicas; model is empty where spec.gpus does not name it; absent where GPUs per replica are unknown."),
	F(COST_PER_HOUR,           "gpuscale_cost_per_hour",                        G, "the currency's",          L("namespace", "policy", "currency", "price"), "What the current replicas cost per hour; price: listed in the price book, or assumed (assumedPerGPUHour); absent without a price."),
	F(VARIANT_REPLICAS,        "gpuscale_variant_replicas",                     G, "replicas",                L("namespace", "policy", "variant"), "spec.replicas of the target of a variant; of a policy with variants, the other metrics of replicas count units of capacity."),
	F(VARIANT_DESIRED,         "gpuscale_variant_desired_replicas",             G, "replicas",                L("namespace", "policy", "variant"), "Share of a variant in the last decision."),
	F(VARIANT_COST,            "gpuscale_variant_cost_per_hour",                G, "the currency's",          L("namespace", "policy", "variant"), "What the current replicas of a variant cost per hour."),
	F(SIGNAL_VALUE,            "gpuscale_signal_value",                         G, "the query's",             L("namespace", "policy", "signal"), "Value of a signal after its window, before it is divided among replicas; absent without a value."),
	F(SIGNAL_TARGET,           "gpuscale_signal_target",                        G, "the query's",             L("namespace", "policy", "signal"), "Target that a signal is compared with, or the watermark that it crossed (else the high one), per replica where the target is; absent without a value."),
	F(SIGNAL_REPLICAS,         "gpuscale_signal_desired_replicas",              G, "replicas",                L("namespace", "policy", "signal"), "Replicas that one signal asks for, before signals are combined and limited; absent without a value."),
	F(SIGNAL_CAPACITY,         "gpuscale_signal_capacity_ratio",                G, "",                        L("namespace", "policy", "signal"), "What a replica serves, as learnt, of the work that the demand of an objective takes for one replica; absent until it is learnt."),
	F(SIGNAL_AGE,              "gpuscale_signal_age_seconds",                   G, "seconds",                 L("namespace", "policy", "signal"), "Age of the newest sample of a signal; absent without a sample."),

	F(POOL_GPUS,               "gpuscale_pool_gpus",                            G, "GPUs",                    L("pool", "of"),                    "GPUs of a pool; of: cap, used (held by its members), requested or granted."),
	F(POOL_MEMBER_GPUS,        "gpuscale_pool_member_gpus",                     G, "GPUs",                    L("pool", "namespace", "policy", "of"), "GPUs of one member of a pool; of: used, requested or granted."),
	F(POOL_HOUR,               "gpuscale_pool_cost_per_hour",                   G, "the currency's",          L("pool", "of"),                    "Cost per hour of a pool with a budget; of: cap (as perHour and perMonth allow now; absent while the pool is not shared) or used."),
	F(POOL_MONTH,              "gpuscale_pool_cost_per_month",                  G, "the currency's",          L("pool", "of"),                    "Cost of a pool with a budget in this calendar month (UTC); of: cap (perMonth), spent, assumed (the part of spent without a controller) or projected (at the end of the month)."),
	F(FLEET_TARGETS,           "gpuscale_fleet_targets",                        G, "targets",                 L("namespace", "policy", "of"),     "Targets of a fleet; of: all, ready, idle (or would be, in a dry run), atMax, holding, conflicts (left to others) or failed."),
	F(FLEET_REPLICAS,          "gpuscale_fleet_replicas",                       G, "replicas",                L("namespace", "policy", "of"),     "Replicas of all targets of a fleet; of: current, desired or ready."),


	F(SOURCE_INFO,             "gpuscale_source_info",                          G, "",                        L("source", "type", "version"),     "Type and version of the server behind a source, as far as known; always 1."),
	F(SOURCE_UP,               "gpuscale_source_up",                            G, "",                        L("source"),                        "1 unless the source is down."),
	F(SOURCE_STATE,            "gpuscale_source_state",                         G, "",                        L("source", "state"),               "1 for the state of the source, 0 for the others; state: up, degraded (some of the last queries failed) or down (only probes are sent)."),
	F(SOURCE_QUERIES,          "gpuscale_source_queries_total",                 C, "",                        L("source"),                        "Requests sent; a request may contain several queries."),
	F(SOURCE_FAILURES,         "gpuscale_source_query_failures_total",          C, "",                        L("source", "kind"),                "Failed queries by kind of error."),
	F(SOURCE_PARTIAL,          "gpuscale_source_partial_answers_total",         C, "",                        L("source"),                        "Answers with warnings, which count as missing data."),
	F(SOURCE_REFUSED,          "gpuscale_source_queries_refused_total",         C, "",                        L("source"),                        "Queries not sent because the source was down."),
	F(SOURCE_UNSENT,           "gpuscale_source_queries_unsent_total",          C, "",                        L("source"),                        "Queries not sent because no slot was free within the policy's interval."),
	F(SOURCE_POSTPONED,        "gpuscale_source_queries_postponed_total",       C, "",                        L("source"),                        "Queries not sent because of repeated failures, or because the server requested a pause (Retry-After)."),
	F(SOURCE_APART,            "gpuscale_source_batches_split_total",           C, "",                        L("source"),                        "Requests of several queries that failed or were slow, so that each query was sent alone."),
	F(SOURCE_ISOLATED,         "gpuscale_source_queries_isolated",              G, "queries",                 L("source"),                        "Queries that are sent alone because they failed."),
	F(SOURCE_DISAGREED,        "gpuscale_source_disagreements_total",           C, "",                        L("source"),                        "Queries to which two servers of a source with several URLs gave current values that differ by more than maxDisagreement."),
	F(SOURCE_SLOTS,            "gpuscale_source_slots",                         G, "requests",                L("source"),                        "Maximum number of requests in flight."),
	F(SOURCE_SLOTS_USED,       "gpuscale_source_slots_used",                    G, "requests",                L("source", "class"),               "Requests in flight; class: fast, or slow (took 250 ms or more recently, or unknown), which use at most half of the slots."),
	F(SOURCE_QUEUED,           "gpuscale_source_queued",                        G, "requests",                L("source"),                        "Requests that wait for a slot."),
	F(SOURCE_QUEUE_SECONDS,    "gpuscale_source_queue_duration_seconds",        H, "seconds",                 L("source"),                        "Time that a request waited for a slot."),
	F(SOURCE_SECONDS,          "gpuscale_source_query_duration_seconds",        H, "seconds",                 L("source"),                        "Time from sending a request to its answer or error."),
	F(SOURCE_ANSWER_TIMESTAMP, "gpuscale_source_last_answer_timestamp_seconds", G, "seconds since the epoch", L("source"),                        "Time of the last answer to a query; absent before the first."),
	F(SOURCE_SKEW,             "gpuscale_source_clock_skew_seconds",            G, "seconds",                 L("source"),                        "Minimum by which the source's clock is ahead of this host's clock; negative: behind; 0 while unknown."),
	F(QUERIES_SHARED,          "gpuscale_queries_shared_total",                 C, "",                        NONE,                               "Queries answered by an equal query of another policy."),
	F(QUERIES_FUSED,           "gpuscale_queries_fused_total",                  C, "",                        NONE,                               "Queries sent together with others in one request."),

	F(API_REQUESTS,            "gpuscale_api_requests_total",                   C, "",                        L("verb", "resource", "code"),      "Requests to the API server by HTTP status; code 0: no answer."),
	F(WATCH_SYNCED,            "gpuscale_watch_synced",                         G, "",                        L("resource"),                      "1 once a watched resource was listed completely; resource targets: all kinds of targets."),
	F(WATCH_STREAMING,         "gpuscale_watch_streaming",                      G, "",                        L("resource"),                      "1 while the stream of changes is open."),
	F(WATCH_LISTS,             "gpuscale_watch_lists_total",                    C, "",                        L("resource"),                      "Lists started; more than one per watch is a resync."),
	F(WATCH_STREAMS,           "gpuscale_watch_streams_total",                  C, "",                        L("resource"),                      "Watch streams started."),
	F(WATCH_EVENTS,            "gpuscale_watch_events_total",                   C, "",                        L("resource"),                      "Changes received, without bookmarks."),
	F(WATCH_GONE,              "gpuscale_watch_gone_total",                     C, "",                        L("resource"),                      "Watches that the server could not resume, which led to a new list: it had forgotten the version (410 Gone), or went back to earlier ones."),
	F(STATUS_WRITES,           "gpuscale_status_writes_total",                  C, "",                        L("result"),                        "Completed writes of a policy's status; result: ok or error."),
	F(STATUS_WAITING,          "gpuscale_status_writes_waiting",                G, "writes",                  NONE,                               "Queued writes of a status."),
	F(EVENTS,                  "gpuscale_events_total",                         C, "",                        L("result"),                        "Kubernetes Events; result: ok, error, or dropped (above a limit, never sent)."),


	F(LEADER,                  "gpuscale_leader",                               G, "",                        NONE,                               "1 while this process works on policies: it holds a lease, or needs none."),
	F(SHARDS,                  "gpuscale_shards",                               G, "shards",                  NONE,                               "Number of shards of the policies."),
	F(SHARDS_HELD,             "gpuscale_shards_held",                          G, "shards",                  NONE,                               "Shards whose lease this process holds."),
	F(SHARD_MEMBERS,           "gpuscale_shard_members",                        G, "processes",               NONE,                               "Running processes that share the policies, as far as this process knows."),
	F(SHARD_CHANGES,           "gpuscale_shard_changes_total",                  C, "",                        L("change"),                        "Shards acquired and lost by this process; change: gained or lost."),
	F(CLOCK_STEPS,             "gpuscale_clock_steps_total",                    C, "",                        NONE,                               "Times the wall clock was set by more than 2.5 s while this process ran."),

	F(EXTERNAL_REQUESTS,       "gpuscale_external_metrics_requests_total",      C, "",                        L("code"),                          "Answered requests of the external metrics API, without probes; code 503: a value was not usable."),

	F(HTTP_OPEN,               "gpuscale_http_connections",                     G, "connections",             L("server"),                        "Open connections of this process's servers; server: endpoints or external-metrics."),
	F(HTTP_CLOSED,             "gpuscale_http_connections_closed_total",        C, "",                        L("server", "cause"),               "Connections closed before their client had finished; cause: evicted_silent, evicted_idle or evicted_slow (closed in favor of others), request_late, reply_late, or refused (every place had a request in progress)."),

	F(PROCESS_MEMORY,          "process_resident_memory_bytes",                 G, "bytes",                   NONE,                               "Resident memory size in bytes."),
	F(PROCESS_CPU,             "process_cpu_seconds_total",                     C, "seconds",                 NONE,                               "User and system CPU time spent in seconds."),
	F(PROCESS_START,           "process_start_time_seconds",                    G, "seconds since the epoch", NONE,                               "Start time since the epoch in seconds."),
        // clang-format on
};
#undef F
#undef L
#undef NONE
_Static_assert(sizeof families / sizeof families[0] == FAMILY__COUNT, "one row per family");

const struct metric_family *metric_family_of(enum metric_family_id id)
{
	return &families[id];
}

// Returns the number of labels.
static size_t count_labels(enum metric_family_id id)
{
	size_t n = 0;
	while (n < FAMILY_LABELS_MAX && families[id].labels[n])
		n++;
	return n;
}

void metric_family_begin(struct buf *out, enum metric_family_id id)
{
	exposition_family(out, families[id].name, families[id].help, families[id].type);
}

static size_t take_labels(enum metric_family_id id, const char *const *values, struct exposition_label *ret_labels)
{
	size_t n = count_labels(id);
	assert(n == 0 || values);
	for (size_t i = 0; i < n; i++)
		ret_labels[i] = (struct exposition_label){families[id].labels[i], values[i]};
	return n;
}

void metric_family_f64(struct buf *out, enum metric_family_id id, const char *const *values, double v)
{
	struct exposition_label labels[FAMILY_LABELS_MAX];
	exposition_sample_f64(out, families[id].name, labels, take_labels(id, values, labels), v);
}

void metric_family_i64(struct buf *out, enum metric_family_id id, const char *const *values, int64_t v)
{
	struct exposition_label labels[FAMILY_LABELS_MAX];
	exposition_sample_i64(out, families[id].name, labels, take_labels(id, values, labels), v);
}

void metric_family_histogram(struct buf *out, enum metric_family_id id, const char *const *values,
                             const struct exposition_histogram *h)
{
	struct exposition_label labels[FAMILY_LABELS_MAX];
	exposition_sample_histogram(out, families[id].name, labels, take_labels(id, values, labels), h);
}

void metric_family_single(struct buf *out, enum metric_family_id id, double v)
{
	assert(count_labels(id) == 0);
	metric_family_begin(out, id);
	metric_family_f64(out, id, NULL, v);
}

void metric_family_label_text(struct buf *out, enum metric_family_id id, const char *const *values, size_t n)
{
	assert(n <= count_labels(id));
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_putc(out, ',');
		buf_puts(out, families[id].labels[i]);
		buf_puts(out, "=\"");
		exposition_label_value(out, values[i]);
		buf_putc(out, '"');
	}
}

void metric_family_page(struct buf *out)
{
	buf_puts(out, "| name | type | labels | unit | what |\n|---|---|---|---|---|\n");
	for (int id = 0; id < FAMILY__COUNT; id++) {
		const struct metric_family *f = &families[id];
		buf_printf(out, "| `%s` | %s | ", f->name, metric_type_name(f->type));
		size_t n = count_labels((enum metric_family_id)id);
		for (size_t i = 0; i < n; i++)
			buf_printf(out, "%s`%s`", i ? ", " : "", f->labels[i]);
		buf_printf(out, " | %s | %s |\n", f->unit, f->help);
	}
}
