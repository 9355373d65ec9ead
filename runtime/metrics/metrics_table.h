// SPDX-License-Identifier: Apache-2.0
// The one table of the controller's own metrics: /metrics, docs/endpoints.md and the tests come from it. A sample can
// only be written with the labels that its row has.
#ifndef GPUSCALE_RUNTIME_METRICS_METRICS_TABLE_H
#define GPUSCALE_RUNTIME_METRICS_METRICS_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/exposition.h"

struct buf;

#define FAMILY_LABELS_MAX 4

enum metric_family_id {
	FAMILY_BUILD_INFO,
	FAMILY_DRY_RUN,
	FAMILY_POLICIES,
	FAMILY_POLICIES_INVALID,
	FAMILY_POLICIES_WAITING,
	FAMILY_POLICIES_WITHOUT_SERIES,
	FAMILY_POLICY_FILES_INVALID,
	FAMILY_POLICY_RELOADS,
	FAMILY_POLICY_RELOAD_TIMESTAMP,
	FAMILY_RECONCILES,
	FAMILY_RECONCILE_DURATION,
	FAMILY_TICK_DELAY,
	FAMILY_TICKS_SKIPPED,
	FAMILY_TICKS_EARLY,
	FAMILY_DECISIONS,
	FAMILY_SCALES,
	FAMILY_CONFLICTS,
	FAMILY_CURRENT_REPLICAS,
	FAMILY_READY_REPLICAS,
	FAMILY_PENDING_REPLICAS,
	FAMILY_DESIRED_REPLICAS,
	FAMILY_MIN_REPLICAS,
	FAMILY_MAX_REPLICAS,
	FAMILY_HELD,
	FAMILY_VALUES_LIMITED,
	FAMILY_TARGET_INFO,
	FAMILY_GPU_SECONDS,
	FAMILY_SAVED_GPU_SECONDS,
	FAMILY_GPUS,
	FAMILY_COST_PER_HOUR,
	FAMILY_VARIANT_REPLICAS,
	FAMILY_VARIANT_DESIRED,
	FAMILY_VARIANT_COST,
	FAMILY_SIGNAL_VALUE,
	FAMILY_SIGNAL_TARGET,
	FAMILY_SIGNAL_REPLICAS,
	FAMILY_SIGNAL_CAPACITY,
	FAMILY_SIGNAL_AGE,
	FAMILY_POOL_GPUS,
	FAMILY_POOL_MEMBER_GPUS,
	FAMILY_POOL_HOUR,
	FAMILY_POOL_MONTH,
	FAMILY_FLEET_TARGETS,
	FAMILY_FLEET_REPLICAS,
	FAMILY_SOURCE_INFO,
	FAMILY_SOURCE_UP,
	FAMILY_SOURCE_STATE,
	FAMILY_SOURCE_QUERIES,
	FAMILY_SOURCE_FAILURES,
	FAMILY_SOURCE_PARTIAL,
	FAMILY_SOURCE_REFUSED,
	FAMILY_SOURCE_UNSENT,
	FAMILY_SOURCE_POSTPONED,
	FAMILY_SOURCE_APART,
	FAMILY_SOURCE_ISOLATED,
	FAMILY_SOURCE_DISAGREED,
	FAMILY_SOURCE_SLOTS,
	FAMILY_SOURCE_SLOTS_USED,
	FAMILY_SOURCE_QUEUED,
	FAMILY_SOURCE_QUEUE_SECONDS,
	FAMILY_SOURCE_SECONDS,
	FAMILY_SOURCE_ANSWER_TIMESTAMP,
	FAMILY_SOURCE_SKEW,
	FAMILY_QUERIES_SHARED,
	FAMILY_QUERIES_FUSED,
	FAMILY_API_REQUESTS,
	FAMILY_WATCH_SYNCED,
	FAMILY_WATCH_STREAMING,
	FAMILY_WATCH_LISTS,
	FAMILY_WATCH_STREAMS,
	FAMILY_WATCH_EVENTS,
	FAMILY_WATCH_GONE,
	FAMILY_STATUS_WRITES,
	FAMILY_STATUS_WAITING,
	FAMILY_EVENTS,
	FAMILY_LEADER,
	FAMILY_SHARDS,
	FAMILY_SHARDS_HELD,
	FAMILY_SHARD_MEMBERS,
	FAMILY_SHARD_CHANGES,
	FAMILY_CLOCK_STEPS,
	FAMILY_EXTERNAL_REQUESTS,
	FAMILY_HTTP_OPEN,
	FAMILY_HTTP_CLOSED,
	FAMILY_PROCESS_MEMORY, // these three by base/process/process_stat
	FAMILY_PROCESS_CPU,
	FAMILY_PROCESS_START,
	FAMILY__COUNT
};

struct metric_family {
	const char *name;
	enum metric_type type;
	const char *unit;                      // of the values; "" for a plain number
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
// A family of one sample without labels.
void metric_family_single(struct buf *out, enum metric_family_id id, double v);
// The text between the braces of a sample whose first labels have these values, escaped, for the samples of many
// families: `a="x",b="y"`. n may be less than the row has.
void metric_family_label_text(struct buf *out, enum metric_family_id id, const char *const *values, size_t n);

// The table of metrics in docs/endpoints.md: a row per family.
void metric_family_page(struct buf *out);

#endif
