// SPDX-License-Identifier: Apache-2.0
// Reports what a policy does: each result of a tick to the log, the metrics, the history and the status; and keeps what
// the endpoints show of the last tick.
#ifndef GPUSCALE_CONTROLLER_POLICY_POLICY_REPORT_H
#define GPUSCALE_CONTROLLER_POLICY_POLICY_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "controller/status/status_conditions.h"

struct decided;
struct decision_history;
struct log;
struct metrics;
struct policy;
struct policy_gpus;
struct reconciler;
struct sparkline;
struct tick_result;
struct json_writer;

// The GPU time of one policy: what its replicas used, and what maxReplicas would have used beyond that.
struct gpu_time {
	int64_t used_ms;  // GPU-milliseconds: replicas x GPUs per replica x time
	int64_t saved_ms; // likewise, of maxReplicas minus the replicas
	int64_t last_ms;  // when `replicas` was known last; 0: never
	int32_t replicas; // since then
};

// The target has `replicas` from now_ms on (ms of the wall clock). Adds the time since the last call with the replicas
// of that call, if `gpus` is set. A clock that was set back adds nothing, and a gap of more than four intervals of the
// policy adds four: nothing is known about the rest.
void gpu_time_add(struct gpu_time *t, const struct policy *p, const struct policy_gpus *gpus, int64_t now_ms,
                  int32_t replicas);

struct policy_report_env { // owns nothing
	struct log *log;
	struct metrics *metrics;
	struct decision_history *history;
	bool dry_run;         // --dry-run
	bool keep_sparklines; // record the last hour of each policy for the status page
};

// One per policy. Initialize it before use; it owns its pointers.
struct policy_report {
	char *error;                 // why the last tick made no decision; NULL: it made one, or there was none
	struct sparkline *sparkline; // NULL: not kept, or nothing recorded yet
	struct gpu_time gpu_time;
	int64_t values_limited;  // values that a decision reported as limited, or as not learnt from
	enum status_phase phase; // outcome of the last tick; STATUS_PHASE__COUNT: there was none
	bool status_failed;      // the last status was not written, and that was logged
};

void policy_report_init(struct policy_report *p);
// Frees what it keeps, and initializes it again.
void policy_report_reset(struct policy_report *p);
// The policy has another version now: discards what does not apply to it.
void policy_report_set_policy(struct policy_report *p, const struct policy *before, const struct policy *after);

// Logs and counts `result`, which r has just returned, and updates the history and *p. Does not touch the
// status.
void policy_report_tick(struct policy_report *p, const struct policy_report_env *env, const struct reconciler *r,
                        const struct tick_result *result);
// Describes the last tick for the conditions, apart from conflicts and faults of the policy; *ret_facts refers to
// *ret_decided. Returns false before the first tick.
bool policy_report_facts(const struct policy_report *p, const struct policy_report_env *env, const struct reconciler *r,
                         struct decided *ret_decided, struct status_facts *ret_facts);

// ---- decision_history.c ----

#define HISTORY_MAX       256
#define HISTORY_BYTES_MAX (64 * 1024) // of one rendered decision

struct decision_history *decision_history_new(void);
void decision_history_free(struct decision_history *h);
// Adds the decision of a binding of that key, which may be NULL.
void decision_history_add(struct decision_history *h, const char *key, const struct decided *d);
// Writes the entries as JSON values, oldest first, into an open array. policy: "namespace/name" to keep only those of
// that policy, with "/" and a key behind it of one of its bindings; NULL = all.
void decision_history_write(const struct decision_history *h, struct json_writer *w, const char *policy);

#endif
