// SPDX-License-Identifier: Apache-2.0
#include "controller/metrics_table.h"

#include <assert.h>

#include "base/buf.h"

#define C METRIC_COUNTER
#define G METRIC_GAUGE
#define H METRIC_HISTOGRAM

static const struct metric_family families[] = {
        [FAMILY_BUILD_INFO] = {"gpuscale_build_info", G, "", {"version"}, "Version of this binary; always 1."},
        [FAMILY_DRY_RUN] = {"gpuscale_dry_run", G, "", {0}, "1 when this process was started with --dry-run."},

        [FAMILY_POLICIES] =
                {"gpuscale_policies", G, "policies", {0}, "Policies in force, those of other processes left out."},
        [FAMILY_POLICIES_INVALID] = {"gpuscale_policies_invalid",
                                     G,
                                     "policies",
                                     {0},
                                     "Objects with faults; the last good version of each stays in force."},
        [FAMILY_POLICIES_WAITING] = {"gpuscale_policies_waiting",
                                     G,
                                     "policies",
                                     {0},
                                     "Valid policies that are not worked on: somebody else drives their target."},
        [FAMILY_POLICY_FILES_INVALID] = {"gpuscale_policy_files_invalid",
                                         G,
                                         "files",
                                         {0},
                                         "Policy files with errors; their last good policies stay in force."},
        [FAMILY_POLICY_RELOADS] = {"gpuscale_policy_reloads_total",
                                   C,
                                   "",
                                   {"result"},
                                   "Times the policies were read; result: ok or error."},
        [FAMILY_POLICY_RELOAD_TIMESTAMP] = {"gpuscale_policy_reload_timestamp_seconds",
                                            G,
                                            "seconds since the epoch",
                                            {0},
                                            "When the policies were last read without error."},

        [FAMILY_RECONCILES] =
                {"gpuscale_reconciles_total", C, "", {"result"}, "Ticks that ended; result: ok, scaled or error."},
        [FAMILY_RECONCILE_DURATION] = {"gpuscale_reconcile_duration_seconds",
                                       H,
                                       "seconds",
                                       {0},
                                       "Time from the start of a tick to its last answer."},
        [FAMILY_TICKS_SKIPPED] =
                {"gpuscale_ticks_skipped_total", C, "", {0}, "Ticks skipped because the one before had not ended."},
        [FAMILY_DECISIONS] =
                {"gpuscale_decisions_total", C, "", {"action", "reason"}, "Decisions by action and primary reason."},
        [FAMILY_SCALES] = {"gpuscale_scales_total",
                           C,
                           "",
                           {"direction"},
                           "Acknowledged writes of a target's replicas; direction: up or down."},
        [FAMILY_CONFLICTS] =
                {"gpuscale_conflicts_total", C, "", {0}, "Writes refused because somebody else changed the target."},

        [FAMILY_CURRENT_REPLICAS] =
                {"gpuscale_current_replicas", G, "replicas", {"namespace", "policy"}, "spec.replicas of the target."},
        [FAMILY_READY_REPLICAS] = {"gpuscale_ready_replicas",
                                   G,
                                   "replicas",
                                   {"namespace", "policy"},
                                   "Ready pods of the target; absent when not known."},
        [FAMILY_PENDING_REPLICAS] =
                {"gpuscale_pending_replicas", G, "replicas", {"namespace", "policy"}, "Pending pods of the target."},
        [FAMILY_DESIRED_REPLICAS] = {"gpuscale_desired_replicas",
                                     G,
                                     "replicas",
                                     {"namespace", "policy"},
                                     "Replicas the last decision wants."},
        [FAMILY_MIN_REPLICAS] =
                {"gpuscale_min_replicas", G, "replicas", {"namespace", "policy"}, "minReplicas of the policy."},
        [FAMILY_MAX_REPLICAS] =
                {"gpuscale_max_replicas", G, "replicas", {"namespace", "policy"}, "maxReplicas of the policy."},
        [FAMILY_HELD] =
                {"gpuscale_held", G, "", {"namespace", "policy"}, "1 while the policy holds because it cannot see."},
        [FAMILY_SIGNAL_VALUE] = {"gpuscale_signal_value",
                                 G,
                                 "the query's",
                                 {"namespace", "policy", "signal"},
                                 "A signal after its window, before it is shared among replicas; absent without one."},
        [FAMILY_SIGNAL_TARGET] =
                {"gpuscale_signal_target",
                 G,
                 "the query's",
                 {"namespace", "policy", "signal"},
                 "What a signal is held against: its target, or the mark that it crossed (else the high "
                 "one); of one replica where the target is. Absent without a value."},
        [FAMILY_SIGNAL_REPLICAS] =
                {"gpuscale_signal_desired_replicas",
                 G,
                 "replicas",
                 {"namespace", "policy", "signal"},
                 "Replicas that one signal asks for, before signals are combined and limited; absent "
                 "without a value."},
        [FAMILY_SIGNAL_AGE] = {"gpuscale_signal_age_seconds",
                               G,
                               "seconds",
                               {"namespace", "policy", "signal"},
                               "Age of the newest sample behind a signal; absent without one."},

        [FAMILY_SOURCE_INFO] = {"gpuscale_source_info",
                                G,
                                "",
                                {"source", "type", "version"},
                                "Whose query API a source has, as far as known; always 1."},
        [FAMILY_SOURCE_UP] = {"gpuscale_source_up", G, "", {"source"}, "1 unless the source is down."},
        [FAMILY_SOURCE_STATE] = {"gpuscale_source_state",
                                 G,
                                 "",
                                 {"source", "state"},
                                 "1 for the state the source is in, 0 for the others; state: up, degraded (some of "
                                 "the last queries failed) or down (only probes are sent)."},
        [FAMILY_SOURCE_QUERIES] =
                {"gpuscale_source_queries_total", C, "", {"source"}, "Requests sent; one may carry several queries."},
        [FAMILY_SOURCE_FAILURES] = {"gpuscale_source_query_failures_total",
                                    C,
                                    "",
                                    {"source", "kind"},
                                    "Queries that failed, by kind of error."},
        [FAMILY_SOURCE_PARTIAL] = {"gpuscale_source_partial_answers_total",
                                   C,
                                   "",
                                   {"source"},
                                   "Answers with warnings, which count as missing data."},
        [FAMILY_SOURCE_REFUSED] = {"gpuscale_source_queries_refused_total",
                                   C,
                                   "",
                                   {"source"},
                                   "Queries not sent because the source was down."},
        [FAMILY_SOURCE_SECONDS] = {"gpuscale_source_query_duration_seconds",
                                   H,
                                   "seconds",
                                   {"source"},
                                   "Time from a request to its answer or error, waiting for its turn included."},
        [FAMILY_SOURCE_ANSWER_TIMESTAMP] = {"gpuscale_source_last_answer_timestamp_seconds",
                                            G,
                                            "seconds since the epoch",
                                            {"source"},
                                            "When a query was last answered; absent before the first."},
        [FAMILY_QUERIES_SHARED] =
                {"gpuscale_queries_shared_total", C, "", {0}, "Questions answered by the query of another policy."},
        [FAMILY_QUERIES_FUSED] =
                {"gpuscale_queries_fused_total", C, "", {0}, "Queries that travelled with others in one request."},

        [FAMILY_API_REQUESTS] = {"gpuscale_api_requests_total",
                                 C,
                                 "",
                                 {"verb", "resource", "code"},
                                 "Answered requests to the API server; code 0 = no answer."},
        [FAMILY_WATCH_SYNCED] =
                {"gpuscale_watch_synced",
                 G,
                 "",
                 {"resource"},
                 "1 once a watched resource was listed completely; targets: all the kinds that are scaled."},
        [FAMILY_WATCH_STREAMING] =
                {"gpuscale_watch_streaming", G, "", {"resource"}, "1 while the stream of changes is open."},
        [FAMILY_WATCH_LISTS] = {"gpuscale_watch_lists_total",
                                C,
                                "",
                                {"resource"},
                                "Lists begun; more than one per watch is a resynchronization."},
        [FAMILY_WATCH_STREAMS] = {"gpuscale_watch_streams_total", C, "", {"resource"}, "Streams begun."},
        [FAMILY_WATCH_EVENTS] =
                {"gpuscale_watch_events_total", C, "", {"resource"}, "Changes received, bookmarks left out."},
        [FAMILY_WATCH_GONE] = {"gpuscale_watch_gone_total",
                               C,
                               "",
                               {"resource"},
                               "Times the server had forgotten where we were (410), which led to a new list."},
        [FAMILY_STATUS_WRITES] = {"gpuscale_status_writes_total",
                                  C,
                                  "",
                                  {"result"},
                                  "Writes of a policy's status that ended; result: ok or error."},
        [FAMILY_STATUS_WAITING] =
                {"gpuscale_status_writes_waiting", G, "writes", {0}, "Writes of a status that wait for their turn."},
        [FAMILY_EVENTS] = {"gpuscale_events_total",
                           C,
                           "",
                           {"result"},
                           "Kubernetes Events; result: ok, error, or dropped (over a ceiling, never sent)."},

        [FAMILY_LEADER] = {"gpuscale_leader",
                           G,
                           "",
                           {0},
                           "1 while this process works on policies: it holds a lease, or needs none."},
        [FAMILY_SHARDS] = {"gpuscale_shards", G, "shards", {0}, "Shards that the policies are spread over."},
        [FAMILY_SHARDS_HELD] =
                {"gpuscale_shards_held", G, "shards", {0}, "Of these, those whose lease this process holds."},
        [FAMILY_SHARD_MEMBERS] = {"gpuscale_shard_members",
                                  G,
                                  "processes",
                                  {0},
                                  "Processes that share the policies, as far as this one knows."},
        [FAMILY_SHARD_CHANGES] = {"gpuscale_shard_changes_total",
                                  C,
                                  "",
                                  {"change"},
                                  "Shards that came to this process and left it; change: gained or lost."},
        [FAMILY_CLOCK_STEPS] = {"gpuscale_clock_steps_total",
                                C,
                                "",
                                {0},
                                "Times the wall clock was set by so much that everything was given up."},

        [FAMILY_EXTERNAL_REQUESTS] = {"gpuscale_external_metrics_requests_total",
                                      C,
                                      "",
                                      {"code"},
                                      "Answered requests for external metrics, probes left out; code 503: a value that "
                                      "may not be gone by."},

        [FAMILY_PROCESS_MEMORY] = {"process_resident_memory_bytes", G, "bytes", {0}, "Resident memory size in bytes."},
        [FAMILY_PROCESS_CPU] =
                {"process_cpu_seconds_total", C, "seconds", {0}, "User and system CPU time spent in seconds."},
        [FAMILY_PROCESS_START] = {"process_start_time_seconds",
                                  G,
                                  "seconds since the epoch",
                                  {0},
                                  "Start time since the epoch in seconds."},
};
_Static_assert(sizeof families / sizeof families[0] == FAMILY__COUNT, "one row per family");

const struct metric_family *metric_family_of(enum metric_family_id id)
{
	return &families[id];
}

size_t metric_family_labels(enum metric_family_id id)
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
	size_t n = metric_family_labels(id);
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
	assert(metric_family_labels(id) == 0);
	metric_family_begin(out, id);
	metric_family_f64(out, id, NULL, v);
}

void metric_family_label_text(struct buf *out, enum metric_family_id id, const char *const *values, size_t n)
{
	assert(n <= metric_family_labels(id));
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
		size_t n = metric_family_labels((enum metric_family_id)id);
		for (size_t i = 0; i < n; i++)
			buf_printf(out, "%s`%s`", i ? ", " : "", f->labels[i]);
		buf_printf(out, " | %s | %s |\n", f->unit, f->help);
	}
}
