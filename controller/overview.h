// SPDX-License-Identifier: Apache-2.0
// The documents behind the status page, from plain values: /api/v1/overview and /api/v1/policy (docs/endpoints.md).
// What is not known is left out; what a decision means is said by controller/render.h alone.
#ifndef GPUSCALE_CONTROLLER_OVERVIEW_H
#define GPUSCALE_CONTROLLER_OVERVIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/render.h"
#include "promql/promql_health.h"

struct history;
struct json_writer;
struct policy;
struct status_facts;
struct trend;

struct overview_source {
	const char *name, *url, *error; // no credentials in any; error "": none
	enum promql_health_state state;
	int64_t last_answer_ms; // 0: none yet
	double last_seconds;    // how long the last request took; not looked at without an answer
};

struct overview_head {
	int64_t time_ms; // as of when all this is
	int64_t start_ms;
	const char *identity; // NULL: there is no election
	bool dry_run;
	int32_t shards_owned, shards_total; // of an election; one shard: it is about the leader
	const struct overview_source *sources;
	size_t n_sources;
	size_t n_policies, n_invalid, n_waiting;
	const char *problems; // that are of no policy alone, a line each; "": none
};

struct overview_policy {
	const char *namespace_name, *name;
	const struct policy *policy;      // in force, or what would be; NULL: no version was ever valid
	struct decided decided;           // the last decision; .decision NULL: there is none
	const struct status_facts *facts; // of the last tick, or of what keeps it from having one; NULL: none
	const struct trend *trend;        // columns as in controller/reconcile.h; NULL: none
	const char *error;                // why there is no decision, or why nothing came of it; "": all is well
	bool dry_run;                     // the process's
	int64_t last_scale_ms;            // -1: not known
};

// The whole overview is head, policies one by one, end.
void overview_begin(struct json_writer *w, const struct overview_head *h);
void overview_add(struct json_writer *w, const struct overview_policy *p, bool with_history);
void overview_end(struct json_writer *w);
// The whole document of one policy. decisions: what was new lately.
void overview_write_detail(struct json_writer *w, const struct overview_policy *p, const struct history *decisions);

#endif
