// SPDX-License-Identifier: Apache-2.0
// Asks each distinct query of each source once per tick and shares the answer among all policies that need it.
// Queries that were answered well by themselves travel together from then on (promql/fuse.h), until one of them fails.
#ifndef GPUSCALE_CONTROLLER_QUERY_HUB_H
#define GPUSCALE_CONTROLLER_QUERY_HUB_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/observation.h"

struct err;
struct promql_sources;
struct query_hub;

#define QUERY_DETAIL_BYTES 256

// What a query answered, in the core's terms. Shared: take a reference to keep it.
struct query_answer {
	int refs;
	enum obs_state state;
	const char *detail; // what went wrong, for people; "" when nothing did
	size_t n_series;
	struct obs_series *series; // sample times are those of the newest data behind the query (promql/freshness.h)
	                           // the arrays and texts follow in the same allocation
};

// sources is not owned. NULL when memory ends.
struct query_hub *query_hub_new(struct promql_sources *sources, struct err *e);
// Every ask must have been answered (cancel the sources first, then flush).
void query_hub_free(struct query_hub *hub);

// The answer belongs to the hub; query_answer_ref() keeps it. Never NULL: failures are answers with state OBS_FAILED.
typedef void query_answer_fn(void *arg, struct query_answer *answer);
struct query_question {
	const char *source; // name; NULL or "": the default source
	const char *query;
	int64_t stale_after_ms; // data that is not older than this is wanted, even where the server forgets sooner
};
// Asks as of now_ms. Called back at once when it was already answered for this now_ms, else from the loop.
void query_hub_ask(struct query_hub *hub, const struct query_question *question, int64_t now_ms, query_answer_fn *fn,
                   void *arg);
// Sends what waits for company now. After the sources were canceled: ends it.
void query_hub_flush(struct query_hub *hub);
// Forgets queries nobody asked since before_ms.
void query_hub_forget(struct query_hub *hub, int64_t before_ms);
// Questions answered by the query of another one.
uint64_t query_hub_shared(const struct query_hub *hub);
// Queries that travelled with others in one request.
uint64_t query_hub_fused(const struct query_hub *hub);
const struct promql_sources *query_hub_sources(const struct query_hub *hub);

struct query_answer *query_answer_ref(struct query_answer *a);
void query_answer_unref(struct query_answer *a); // NULL is fine

#endif
