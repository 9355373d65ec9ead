// SPDX-License-Identifier: Apache-2.0
// The documents behind the status page, from plain values: /api/v1/overview and /api/v1/policy (docs/endpoints.md).
// Unknown fields are left out. policies/explain/explain.h alone explains what a decision means.
#ifndef GPUSCALE_CONTROLLER_SERVE_OVERVIEW_H
#define GPUSCALE_CONTROLLER_SERVE_OVERVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/engine/policy.h"
#include "policies/explain/explain.h"
#include "promql/promql_health.h"

struct decision_history;
struct fleet;
struct json_writer;
struct policy;
struct price_book;
struct scale_target;
struct status_facts;
struct sparkline;

struct overview_source {
	const char *name, *url, *error; // no credentials in any; error "": none
	enum promql_health_state state;
	int64_t last_answer_ms; // 0: none yet
	double last_seconds;    // duration of the last request; ignored without an answer
};

struct overview_head {
	int64_t time_ms; // when the controller last changed
	int64_t start_ms;
	const char *identity; // NULL: leader election is off
	const char *leader;   // the identity of the leader; NULL or "": unknown
	bool dry_run;
	int32_t shards_owned, shards_total; // of leader election
	const struct overview_source *sources;
	size_t n_sources;
	size_t n_policies, n_invalid, n_waiting;
	const char *problems; // that concern no single policy, one per line; "": none
};

struct overview_policy {
	const char *namespace_name, *name;
	const char *key;                   // of one of several bindings; NULL: the only one
	const struct policy *policy;       // in force, or the last valid version; NULL: there never was one
	const struct scale_target *target; // of that version; NULL with it
	const struct fleet *fleet;         // of a policy with scaleTargets; NULL: it has one target
	struct decided decided;            // the last decision; .decision NULL: none yet, or a fleet
	const struct status_facts *facts;  // of the last tick, or why there is none; NULL: unknown
	const struct sparkline *trend;     // columns as in controller/status/sparkline.h; NULL: none
	const char *error;                 // why the last tick failed; "": it did not; ignored of a fleet
	bool dry_run;                      // the process's
	int64_t last_scale_ms;             // -1: not known
	const struct price_book *prices;   // NULL: none
	struct policy_gpus gpus;           // of one replica
};

// Write an overview by overview_begin(), overview_add() for each policy, overview_end().
void overview_begin(struct json_writer *w, const struct overview_head *h);
void overview_add(struct json_writer *w, const struct overview_policy *p, bool with_history);
void overview_end(struct json_writer *w);
// Writes the document of one policy. decisions: the recent decisions.
void overview_write_detail(struct json_writer *w, const struct overview_policy *p,
                           const struct decision_history *decisions);

#endif
