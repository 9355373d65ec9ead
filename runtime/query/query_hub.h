// SPDX-License-Identifier: Apache-2.0
// Sends each distinct query of each source once per tick and shares the answer among all policies that need it. Queries
// that succeeded alone are combined into one request from then on (promql/similar.h). When such a request fails and its
// source is up, each of its queries is sent alone in the same tick; queries that fail alone are isolated
// (runtime/query/query_record.h). A bad query therefore costs the others at most one tick, whatever its error.
#ifndef GPUSCALE_RUNTIME_QUERY_QUERY_HUB_H
#define GPUSCALE_RUNTIME_QUERY_QUERY_HUB_H

#include <event2/event_struct.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/query/query_answer.h"

struct early_group;
struct promql_source;
struct promql_sources;
struct query_entry;
struct query_hub;

// Limit for a signal that takes one series: with more, the answer is ambiguous anyway.
#define QUERY_SERIES_SINGLE 8
// The latest answers that the hub keeps for further policies of the same tick; at most QUERY_ANSWER_SMALL_BYTES each.
#define QUERY_RECENT_MAX 1024

// Does not own sources. Ends the process without memory.
struct query_hub *query_hub_new(struct promql_sources *sources);
// Every question must have been answered: cancel the sources first, then flush.
void query_hub_free(struct query_hub *hub);

// The answer belongs to the hub; query_answer_ref() keeps it. Never NULL: failures are answers with state OBS_FAILED.
typedef void query_answer_fn(void *arg, struct query_answer *answer);
struct query_question {
	const char *source; // name; NULL or "": the default source
	const char *query;
	int64_t stale_after_ms;     // data up to this age is wanted, even where the server's lookback is shorter
	size_t max_series;          // the most series that the signal can use; 0: PROMQL_SERIES_MAX
	const char *namespace_name; // namespace of the policy that asks; namespaces take turns; NULL or "": none
	int64_t wait_ms; // the longest time the query may be queued: the policy's interval; 0: PROMQL_WAIT_MS
};
// Sends `question` as of now_ms to the first server of the source. Calls fn at
// once if the response for this now_ms is known, else from the loop.
void query_hub_ask(struct query_hub *hub, const struct query_question *question, int64_t now_ms, query_answer_fn *fn,
                   void *arg);
// The same for one server of the source, whatever question->source is.
void query_hub_ask_server(struct query_hub *hub, const struct promql_source *server,
                          const struct query_question *question, int64_t now_ms, query_answer_fn *fn, void *arg);

// ---- sources with several servers (query_failover.c) ----

// After the first answer with current data, the time that the other servers have to respond as well.
#define QUERY_FAILOVER_GRACE_MS 500
// Servers are treated as disagreeing until no answers differed for this time.
#define QUERY_DISAGREEMENT_MS 60000
// Answers to the same query that differ in a row before the servers are treated as disagreeing.
#define QUERY_DISAGREEMENTS 3

// As query_hub_ask, for a source with any number of servers: queries all of them, and chooses one of the responses, of
// those with data the one with the newest sample, otherwise the most informative one. A server that fails or hangs
// therefore costs no tick while another server responds. Requests that are still in flight when fn is called continue;
// their answers are not used for this call.
void query_failover_ask(struct query_hub *hub, const struct query_question *question, int64_t now_ms,
                        query_answer_fn *fn, void *arg);

// ---- early checks ----

#define QUERY_PEEKS_TOGETHER 64   // queries in one request: as many as a full slot has policies
#define EARLY_QUERY_MS       2000 // the longest that a request may be queued, and the longest that it may take

enum early_query_outcome {
	EARLY_QUERY_ANSWERED,
	EARLY_QUERY_FAILED, // by the source; later questions may succeed
	EARLY_QUERY_UNFIT,  // the combined query was refused, or its answer cannot be used: send the query alone
	EARLY_QUERY_OUTCOME__COUNT
};
// n_series: of this query; value: of the first series, for EARLY_QUERY_ANSWERED with n_series > 0.
typedef void early_query_fn(void *arg, enum early_query_outcome outcome, size_t n_series, double value);
// Requests from the source the present value of question->query, without the age of its data, which is enough to notice
// that the value has moved. Queries that differ only in label values (promql/similar.h) are sent as one: for the
// server, the queries of 64 policies cost about as much as one query. Calls fn from the loop, or before this function
// returns; copies the query. Returns false, and does not call fn, when it has to be sent with query_hub_ask(): it
// cannot be combined with others, or the source has several servers.
bool query_hub_check_early(struct query_hub *hub, const struct query_question *question, int64_t now_ms,
                           early_query_fn *fn, void *arg);

// For the hub: sends the queued queries now.
void query_hub_flush_early(struct query_hub *hub);

// ---- the queue and its counters ----

// Sends the queued queries now, instead of waiting for more. After the sources were canceled, ends them.
void query_hub_flush(struct query_hub *hub);
// Forgets queries that no policy requested since before_ms.
void query_hub_forget(struct query_hub *hub, int64_t before_ms);

struct query_hub_stats {
	uint64_t apart;     // requests with several queries that failed, so that each query was sent alone
	uint64_t postponed; // queries skipped at a tick because of earlier failures
	size_t isolated;    // queries that failed alone and are currently not combined with others
	uint64_t disagreed; // as in struct query_agreement; of the first server of a source
};
// Returns the counters of the source with this index.
struct query_hub_stats query_hub_source_stats(const struct query_hub *hub, size_t source);

// Whether the servers of one source agree; runtime/query/query_failover.c keeps it. Zeroed: they do, so far.
struct query_agreement {
	uint64_t disagreed;  // answers that differed by more than the source's max_disagreement
	int64_t disagree_ms; // the time of the last one; 0: none
	bool is_disagreeing;
	uint64_t query_hash;             // hash of the query that differed
	int n_in_row;                    // times that it did
	char detail[QUERY_DETAIL_BYTES]; // query and values of the first difference in a row
};
// Returns the agreement of the source with this first server.
struct query_agreement *query_hub_agreement_of(struct query_hub *hub, const struct promql_source *first);

// Other files read it; query_hub.c alone changes it, and early_query.c `early`.
struct query_hub {
	struct promql_sources *sources;
	uint64_t shared; // questions that shared the query of an equal one
	uint64_t fused;  // queries that were sent together with others in one request
	struct query_memory *memory;
	struct event flush;
	struct early_group *early;                    // queries of early checks, queued in early_query.c; NULL: none
	struct query_entry *recent[QUERY_RECENT_MAX]; // a ring of those whose answers are kept; NULL: unused
	size_t n_recent;                              // ever
	size_t n;
	struct hub_source {
		struct query_hub *hub;
		struct promql_source *source;
		struct query_entry *entries; // uthash by query
		struct query_entry *first_waiting,
		        **waiting; // queued to be sent together at the next turn of the loop; the end of that list
		uint64_t apart, postponed;
		struct query_agreement agreement; // agreement of the first server of a source
	} of[];                                   // by the index of the source
};

#endif
