// SPDX-License-Identifier: Apache-2.0
// The controller's own metrics: the table of them, and the counters. controller/serve/metrics_render.c renders them.
#ifndef GPUSCALE_RUNTIME_METRICS_METRICS_H
#define GPUSCALE_RUNTIME_METRICS_METRICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/exposition.h"
#include "k8s/client/k8s_client.h"
#include "policies/engine/decision.h"

struct http_server;

// ---- the table ----
// /metrics, docs/endpoints.md and the tests come from it. A sample can only be written with the labels that its row
// has.

#define FAMILY_LABELS_MAX 4
#define FAMILY_COUNTS_MAX 9 // counters of one family

// The table: id, name, type, unit of the values ("" for a plain number), labels, help. The last three families are
// those of base/process/process_stat.
// clang-format off
#define METRIC_FAMILIES(ROW) \
	ROW(BUILD_INFO,              "gpuscale_build_info",                           GAUGE,     "",                        L("version"),                       "Version of this binary; always 1.") \
	ROW(DRY_RUN,                 "gpuscale_dry_run",                              GAUGE,     "",                        NONE,                               "1 when this process was started with --dry-run.") \
	ROW(POLICIES,                "gpuscale_policies",                             GAUGE,     "policies",                NONE,                               "Policies in force in this process.") \
	ROW(POLICIES_INVALID,        "gpuscale_policies_invalid",                     GAUGE,     "policies",                NONE,                               "Policy objects with errors; the last valid version of each stays in force.") \
	ROW(POLICIES_WAITING,        "gpuscale_policies_waiting",                     GAUGE,     "policies",                NONE,                               "Valid policies that are not in force, because another autoscaler or policy controls their target.") \
	ROW(POLICIES_WITHOUT_SERIES, "gpuscale_policies_without_series",              GAUGE,     "policies",                NONE,                               "Policies in force without series of their own, because there are more than --metrics-policies.") \
	ROW(POLICY_FILES_INVALID,    "gpuscale_policy_files_invalid",                 GAUGE,     "files",                   NONE,                               "Policy files with errors; their last valid policies stay in force.") \
	ROW(POLICY_RELOADS,          "gpuscale_policy_reloads_total",                 COUNTER,   "",                        L("result"),                        "Times that the policy files were read; result: ok or error.") \
	ROW(POLICY_RELOAD_TIMESTAMP, "gpuscale_policy_reload_timestamp_seconds",      GAUGE,     "seconds since the epoch", NONE,                               "Time when the policy files were last read without an error.") \
	ROW(RECONCILES,              "gpuscale_reconciles_total",                     COUNTER,   "",                        L("result"),                        "Completed ticks; result: ok, deferred (decided to scale, and waits for its turn to write), scaled or error.") \
	ROW(RECONCILE_DURATION,      "gpuscale_reconcile_duration_seconds",           HISTOGRAM, "seconds",                 NONE,                               "Duration of a tick.") \
	ROW(TICK_DELAY,              "gpuscale_tick_delay_seconds",                   HISTOGRAM, "seconds",                 NONE,                               "Time by which a tick started after it was due.") \
	ROW(TICKS_SKIPPED,           "gpuscale_ticks_skipped_total",                  COUNTER,   "",                        NONE,                               "Ticks skipped because an earlier tick of the policy had not ended. A tick that comes due while the policy writes a scale follows the write instead.") \
	ROW(TICKS_EARLY,             "gpuscale_ticks_early_total",                    COUNTER,   "",                        NONE,                               "Ticks started before their time because a signal had moved.") \
	ROW(DECISIONS,               "gpuscale_decisions_total",                      COUNTER,   "",                        L("action", "reason"),              "Decisions by action and primary reason.") \
	ROW(SCALES,                  "gpuscale_scales_total",                         COUNTER,   "",                        L("direction"),                     "Acknowledged writes of a target's replicas; direction: up or down.") \
	ROW(CONFLICTS,               "gpuscale_conflicts_total",                      COUNTER,   "",                        NONE,                               "Writes refused because another client had changed the target.") \
	ROW(CURRENT_REPLICAS,        "gpuscale_current_replicas",                     GAUGE,     "replicas",                L("namespace", "policy"),           "spec.replicas of the target.") \
	ROW(READY_REPLICAS,          "gpuscale_ready_replicas",                       GAUGE,     "replicas",                L("namespace", "policy"),           "Ready replicas of the target; absent when unknown.") \
	ROW(PENDING_REPLICAS,        "gpuscale_pending_replicas",                     GAUGE,     "replicas",                L("namespace", "policy"),           "Replicas of the target that exist and are not running or not ready.") \
	ROW(DESIRED_REPLICAS,        "gpuscale_desired_replicas",                     GAUGE,     "replicas",                L("namespace", "policy"),           "Replicas of the last decision.") \
	ROW(MIN_REPLICAS,            "gpuscale_min_replicas",                         GAUGE,     "replicas",                L("namespace", "policy"),           "minReplicas of the policy.") \
	ROW(MAX_REPLICAS,            "gpuscale_max_replicas",                         GAUGE,     "replicas",                L("namespace", "policy"),           "maxReplicas of the policy.") \
	ROW(HELD,                    "gpuscale_held",                                 GAUGE,     "",                        L("namespace", "policy"),           "1 while scaling is on hold because signals are missing or stale.") \
	ROW(VALUES_LIMITED,          "gpuscale_values_limited_total",                 COUNTER,   "",                        L("namespace", "policy"),           "Values beyond four times what maxReplicas serve, on either side of 0, that a window limited, or that a forecast or an objective did not learn from.") \
	ROW(TARGET_INFO,             "gpuscale_target_info",                          GAUGE,     "",                        L("namespace", "policy", "workload"), "Name of the target that the policy scales, with which the names of its pods start; always 1.") \
	ROW(GPU_SECONDS,             "gpuscale_gpu_seconds_total",                    COUNTER,   "seconds",                 L("namespace", "policy"),           "GPU-seconds of the target: replicas times GPUs per replica (spec.gpus.perReplica, or with spec.capacity those of the pod template) times time, while this process runs the policy; absent where these are unknown.") \
	ROW(SAVED_GPU_SECONDS,       "gpuscale_saved_gpu_seconds_total",              COUNTER,   "seconds",                 L("namespace", "policy", "against"), "GPU-seconds that the target would have used beyond that; against: max (maxReplicas all the time); absent where GPUs per replica are unknown.") \
	ROW(GPUS,                    "gpuscale_gpus",                                 GAUGE,     "GPUs",                    L("namespace", "policy", "model"),  "GPUs of the current replicas; model is empty where spec.gpus does not name it; absent where GPUs per replica are unknown.") \
	ROW(COST_PER_HOUR,           "gpuscale_cost_per_hour",                        GAUGE,     "the currency's",          L("namespace", "policy", "currency", "price"), "What the current replicas cost per hour; price: listed in the price book, or assumed (assumedPerGPUHour); absent without a price.") \
	ROW(VARIANT_REPLICAS,        "gpuscale_variant_replicas",                     GAUGE,     "replicas",                L("namespace", "policy", "variant"), "spec.replicas of the target of a variant; of a policy with variants, the other metrics of replicas count units of capacity.") \
	ROW(VARIANT_DESIRED,         "gpuscale_variant_desired_replicas",             GAUGE,     "replicas",                L("namespace", "policy", "variant"), "Share of a variant in the last decision.") \
	ROW(VARIANT_COST,            "gpuscale_variant_cost_per_hour",                GAUGE,     "the currency's",          L("namespace", "policy", "variant"), "What the current replicas of a variant cost per hour.") \
	ROW(SIGNAL_VALUE,            "gpuscale_signal_value",                         GAUGE,     "the query's",             L("namespace", "policy", "signal"), "Value of a signal after its window, before it is divided among replicas; absent without a value.") \
	ROW(SIGNAL_TARGET,           "gpuscale_signal_target",                        GAUGE,     "the query's",             L("namespace", "policy", "signal"), "Target that a signal is compared with, or the watermark that it crossed (else the high one), per replica where the target is; absent without a value.") \
	ROW(SIGNAL_REPLICAS,         "gpuscale_signal_desired_replicas",              GAUGE,     "replicas",                L("namespace", "policy", "signal"), "Replicas that one signal asks for, before signals are combined and limited; absent without a value.") \
	ROW(SIGNAL_CAPACITY,         "gpuscale_signal_capacity_ratio",                GAUGE,     "",                        L("namespace", "policy", "signal"), "What a replica serves, as learnt, of the work that the demand of an objective takes for one replica; absent until it is learnt.") \
	ROW(SIGNAL_AGE,              "gpuscale_signal_age_seconds",                   GAUGE,     "seconds",                 L("namespace", "policy", "signal"), "Age of the newest sample of a signal; absent without a sample.") \
	ROW(POOL_GPUS,               "gpuscale_pool_gpus",                            GAUGE,     "GPUs",                    L("pool", "of"),                    "GPUs of a pool; of: cap, used (held by its members), requested or granted.") \
	ROW(POOL_MEMBER_GPUS,        "gpuscale_pool_member_gpus",                     GAUGE,     "GPUs",                    L("pool", "namespace", "policy", "of"), "GPUs of one member of a pool; of: used, requested or granted.") \
	ROW(POOL_HOUR,               "gpuscale_pool_cost_per_hour",                   GAUGE,     "the currency's",          L("pool", "of"),                    "Cost per hour of a pool with a budget; of: cap (as perHour and perMonth allow now; absent while the pool is not shared) or used.") \
	ROW(POOL_MONTH,              "gpuscale_pool_cost_per_month",                  GAUGE,     "the currency's",          L("pool", "of"),                    "Cost of a pool with a budget in this calendar month (UTC); of: cap (perMonth), spent, assumed (the part of spent without a controller) or projected (at the end of the month).") \
	ROW(FLEET_TARGETS,           "gpuscale_fleet_targets",                        GAUGE,     "targets",                 L("namespace", "policy", "of"),     "Targets of a fleet; of: all, ready, idle (or would be, in a dry run), atMax, holding, conflicts (left to others) or failed.") \
	ROW(FLEET_REPLICAS,          "gpuscale_fleet_replicas",                       GAUGE,     "replicas",                L("namespace", "policy", "of"),     "Replicas of all targets of a fleet; of: current, desired or ready.") \
	ROW(SOURCE_INFO,             "gpuscale_source_info",                          GAUGE,     "",                        L("source", "type", "version"),     "Type and version of the server behind a source, as far as known; always 1.") \
	ROW(SOURCE_UP,               "gpuscale_source_up",                            GAUGE,     "",                        L("source"),                        "1 unless the source is down.") \
	ROW(SOURCE_STATE,            "gpuscale_source_state",                         GAUGE,     "",                        L("source", "state"),               "1 for the state of the source, 0 for the others; state: up, degraded (some of the last queries failed) or down (only probes are sent).") \
	ROW(SOURCE_QUERIES,          "gpuscale_source_queries_total",                 COUNTER,   "",                        L("source"),                        "Requests sent; a request may contain several queries.") \
	ROW(SOURCE_FAILURES,         "gpuscale_source_query_failures_total",          COUNTER,   "",                        L("source", "kind"),                "Failed queries by kind of error.") \
	ROW(SOURCE_PARTIAL,          "gpuscale_source_partial_answers_total",         COUNTER,   "",                        L("source"),                        "Answers with warnings, which count as missing data.") \
	ROW(SOURCE_REFUSED,          "gpuscale_source_queries_refused_total",         COUNTER,   "",                        L("source"),                        "Queries not sent because the source was down.") \
	ROW(SOURCE_UNSENT,           "gpuscale_source_queries_unsent_total",          COUNTER,   "",                        L("source"),                        "Queries not sent because no slot was free within the policy's interval.") \
	ROW(SOURCE_POSTPONED,        "gpuscale_source_queries_postponed_total",       COUNTER,   "",                        L("source"),                        "Queries not sent because of repeated failures, or because the server requested a pause (Retry-After).") \
	ROW(SOURCE_APART,            "gpuscale_source_batches_split_total",           COUNTER,   "",                        L("source"),                        "Requests of several queries that failed or were slow, so that each query was sent alone.") \
	ROW(SOURCE_ISOLATED,         "gpuscale_source_queries_isolated",              GAUGE,     "queries",                 L("source"),                        "Queries that are sent alone because they failed.") \
	ROW(SOURCE_DISAGREED,        "gpuscale_source_disagreements_total",           COUNTER,   "",                        L("source"),                        "Queries to which two servers of a source with several URLs gave current values that differ by more than maxDisagreement.") \
	ROW(SOURCE_SLOTS,            "gpuscale_source_slots",                         GAUGE,     "requests",                L("source"),                        "Maximum number of requests in flight.") \
	ROW(SOURCE_SLOTS_USED,       "gpuscale_source_slots_used",                    GAUGE,     "requests",                L("source", "class"),               "Requests in flight; class: fast, or slow (took 250 ms or more recently, or unknown), which use at most half of the slots.") \
	ROW(SOURCE_QUEUED,           "gpuscale_source_queued",                        GAUGE,     "requests",                L("source"),                        "Requests that wait for a slot.") \
	ROW(SOURCE_QUEUE_SECONDS,    "gpuscale_source_queue_duration_seconds",        HISTOGRAM, "seconds",                 L("source"),                        "Time that a request waited for a slot.") \
	ROW(SOURCE_SECONDS,          "gpuscale_source_query_duration_seconds",        HISTOGRAM, "seconds",                 L("source"),                        "Time from sending a request to its answer or error.") \
	ROW(SOURCE_ANSWER_TIMESTAMP, "gpuscale_source_last_answer_timestamp_seconds", GAUGE,     "seconds since the epoch", L("source"),                        "Time of the last answer to a query; absent before the first.") \
	ROW(SOURCE_SKEW,             "gpuscale_source_clock_skew_seconds",            GAUGE,     "seconds",                 L("source"),                        "Minimum by which the source's clock is ahead of this host's clock; negative: behind; 0 while unknown.") \
	ROW(QUERIES_SHARED,          "gpuscale_queries_shared_total",                 COUNTER,   "",                        NONE,                               "Queries answered by an equal query of another policy.") \
	ROW(QUERIES_FUSED,           "gpuscale_queries_fused_total",                  COUNTER,   "",                        NONE,                               "Queries sent together with others in one request.") \
	ROW(API_REQUESTS,            "gpuscale_api_requests_total",                   COUNTER,   "",                        L("verb", "resource", "code"),      "Requests to the API server by HTTP status; code 0: no answer.") \
	ROW(WATCH_SYNCED,            "gpuscale_watch_synced",                         GAUGE,     "",                        L("resource"),                      "1 once a watched resource was listed completely; resource targets: all kinds of targets.") \
	ROW(WATCH_STREAMING,         "gpuscale_watch_streaming",                      GAUGE,     "",                        L("resource"),                      "1 while the stream of changes is open.") \
	ROW(WATCH_LISTS,             "gpuscale_watch_lists_total",                    COUNTER,   "",                        L("resource"),                      "Lists started; more than one per watch is a resync.") \
	ROW(WATCH_STREAMS,           "gpuscale_watch_streams_total",                  COUNTER,   "",                        L("resource"),                      "Watch streams started.") \
	ROW(WATCH_EVENTS,            "gpuscale_watch_events_total",                   COUNTER,   "",                        L("resource"),                      "Changes received, without bookmarks.") \
	ROW(WATCH_GONE,              "gpuscale_watch_gone_total",                     COUNTER,   "",                        L("resource"),                      "Watches that the server could not resume, which led to a new list: it had forgotten the version (410 Gone), or went back to earlier ones.") \
	ROW(STATUS_WRITES,           "gpuscale_status_writes_total",                  COUNTER,   "",                        L("result"),                        "Completed writes of a policy's status; result: ok or error.") \
	ROW(STATUS_WAITING,          "gpuscale_status_writes_waiting",                GAUGE,     "writes",                  NONE,                               "Queued writes of a status.") \
	ROW(EVENTS,                  "gpuscale_events_total",                         COUNTER,   "",                        L("result"),                        "Kubernetes Events; result: ok, error, or dropped (above a limit, never sent).") \
	ROW(LEADER,                  "gpuscale_leader",                               GAUGE,     "",                        NONE,                               "1 while this process works on policies: it holds a lease, or needs none.") \
	ROW(SHARDS,                  "gpuscale_shards",                               GAUGE,     "shards",                  NONE,                               "Number of shards of the policies.") \
	ROW(SHARDS_HELD,             "gpuscale_shards_held",                          GAUGE,     "shards",                  NONE,                               "Shards whose lease this process holds.") \
	ROW(SHARD_MEMBERS,           "gpuscale_shard_members",                        GAUGE,     "processes",               NONE,                               "Running processes that share the policies, as far as this process knows.") \
	ROW(SHARD_CHANGES,           "gpuscale_shard_changes_total",                  COUNTER,   "",                        L("change"),                        "Shards acquired and lost by this process; change: gained or lost.") \
	ROW(CLOCK_STEPS,             "gpuscale_clock_steps_total",                    COUNTER,   "",                        NONE,                               "Times the wall clock was set by more than 2.5 s while this process ran.") \
	ROW(EXTERNAL_REQUESTS,       "gpuscale_external_metrics_requests_total",      COUNTER,   "",                        L("code"),                          "Answered requests of the external metrics API, without probes; code 503: a value was not usable.") \
	ROW(HTTP_OPEN,               "gpuscale_http_connections",                     GAUGE,     "connections",             L("server"),                        "Open connections of this process's servers; server: endpoints or external-metrics.") \
	ROW(HTTP_CLOSED,             "gpuscale_http_connections_closed_total",        COUNTER,   "",                        L("server", "cause"),               "Connections closed before their client had finished; cause: evicted_silent, evicted_idle or evicted_slow (closed in favor of others), request_late, reply_late, or refused (every place had a request in progress).") \
	ROW(PROCESS_MEMORY,          "process_resident_memory_bytes",                 GAUGE,     "bytes",                   NONE,                               "Resident memory size in bytes.") \
	ROW(PROCESS_CPU,             "process_cpu_seconds_total",                     COUNTER,   "seconds",                 NONE,                               "User and system CPU time spent in seconds.") \
	ROW(PROCESS_START,           "process_start_time_seconds",                    GAUGE,     "seconds since the epoch", NONE,                               "Start time since the epoch in seconds.")
// clang-format on

enum metric_family_id {
#define ID(id, ...) FAMILY_##id,
	METRIC_FAMILIES(ID)
#undef ID
	        FAMILY__COUNT
};

struct metric_family {
	const char *name;
	enum metric_type type;
	const char *unit;
	const char *labels[FAMILY_LABELS_MAX]; // NULL-terminated when fewer
	const char *help;
};
const struct metric_family *metric_family_of(enum metric_family_id id);

void metric_family_begin(struct buf *out, enum metric_family_id id); // HELP and TYPE
// One sample; values: one per label of the row.
void metric_family_f64(struct buf *out, enum metric_family_id id, const char *const *values, double v);
void metric_family_i64(struct buf *out, enum metric_family_id id, const char *const *values, int64_t v);
void metric_family_histogram(struct buf *out, enum metric_family_id id, const char *const *values,
                             const struct exposition_histogram *h);
// A counter for each value that the last label may have (sample_labels in metrics.c); labels: the values of the others.
void metric_family_counts(struct buf *out, enum metric_family_id id, const char *const *labels, const uint64_t *n);
// A family of one sample without labels.
void metric_family_single(struct buf *out, enum metric_family_id id, double v);
// The text between the braces of a sample whose first labels have these values, escaped, for the samples of many
// families: `a="x",b="y"`. n may be less than the row has.
void metric_family_label_text(struct buf *out, enum metric_family_id id, const char *const *values, size_t n);

// The table of metrics in docs/endpoints.md: a row per family.
void metric_family_page(struct buf *out);

// ---- the counters ----

// The policies with series of their own, by default. A policy has 7 series, 4 more
// per signal, and 4 with spec.gpus.
#define METRICS_POLICIES_MAX 2000

// What is counted, for the file that renders it.
#define METRICS_API_COUNTS_MAX 128
#define METRICS_SERVERS_MAX    2 // the endpoints, the external metrics

struct metrics {
	struct exposition_histogram duration_seconds;
	struct exposition_histogram delay_seconds; // how long after its time a tick started
	uint64_t decisions[ACTION__COUNT][REASON__COUNT];
	uint64_t counts[FAMILY__COUNT][FAMILY_COUNTS_MAX]; // as of metric_family_counts()
	int64_t reloaded_ms;
	struct {
		char verb[8], resource[K8S_RESOURCE_CLASS_BYTES];
		int code;
		uint64_t n;
	} api[METRICS_API_COUNTS_MAX];
	size_t n_api;
	struct {
		const char *name;
		const struct http_server *server;
	} servers[METRICS_SERVERS_MAX];
	size_t n_servers;
	size_t max_policies; // with series of their own, the first by namespace and name; METRICS_POLICIES_MAX at first
	bool serves_external; // the family of the external metrics API is served
};

struct metrics *metrics_new(void); // free() releases it; NULL when memory is exhausted

// Records the duration of a tick, and counts its result: "ok", "deferred", "scaled", "error", or "" for none.
void metrics_reconciled(struct metrics *m, const char *result, double seconds);
void metrics_scaled(struct metrics *m, int32_t from, int32_t to);
// Adds one to the counter with that value of its last label; "": of a family without labels. Other values count
// nothing.
void metrics_count(struct metrics *m, enum metric_family_id id, const char *label);
void metrics_reloaded(struct metrics *m, int64_t wall_ms, int ok);
// Counts one attempt of an API request. resource: as k8s_path_class names it; code 0: no answer.
void metrics_api_request(struct metrics *m, const char *verb, const char *resource, int code);

// Counts one request of the external metrics API that was answered with `code`.
void metrics_external_request(struct metrics *m, int code);

// Counts the server's connections under `name`, which is not copied. The server must outlive the last metrics_render.
void metrics_add_server(struct metrics *m, const char *name, const struct http_server *server);

#endif
