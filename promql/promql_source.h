// SPDX-License-Identifier: Apache-2.0
// Sources: Prometheus-compatible servers by name. Each source has its own connections and deadline, so that a source
// that hangs does not delay the others; its own queue, in which namespaces take turns (promql/fair_queue.h); and its
// own health (promql/promql_health.h): a source that is down receives only probes, and its queries fail at once with
// the reason. A source with several URLs is a chain of such servers under one name: promql_sources_find returns the
// first, and their `next` the others.
#ifndef GPUSCALE_PROMQL_PROMQL_SOURCE_H
#define GPUSCALE_PROMQL_PROMQL_SOURCE_H

#include "base/clock.h"
#include "base/err.h"
#include "base/exposition.h"
#include "promql/promql.h"
#include "promql/promql_health.h"

struct buf;
struct event_base;
struct fair_queue;
struct http_client;

#define PROMQL_SOURCES_MAX       64 // servers: the URLs of all sources together
#define PROMQL_URLS_MAX          4  // servers of one source
#define PROMQL_SOURCE_NAME_MAX   63
#define PROMQL_SOURCE_DEFAULT    "default" // the source of a signal that names none
#define PROMQL_CONCURRENCY       16
#define PROMQL_CONCURRENCY_MAX   256
#define PROMQL_ADDED_CONCURRENCY 4     // of a source that promql_sources_add() adds
#define PROMQL_WAIT_MS           30000 // the time a query may be queued, when the ticket does not set it
#define PROMQL_QUEUED_MAX        16384 // queued queries of one source
#define PROMQL_PROBE             "vector(1)"
#define PROMQL_PROBE_TIMEOUT_MS  2000
#define PROMQL_PROBE_INTERVAL_MS 1000   // minimum time between two probes of a source that is down
#define PROMQL_PROBE_WAIT_MS     100    // how long queries wait for the probe of a source that is down
#define PROMQL_SETTLES_MS        60000  // after an outage: Prometheus scrapes once a minute by default
#define PROMQL_RETRY_AFTER_MS    300000 // the longest Retry-After that is honoured
#define PROMQL_NOT_SENT          (-1) // err.code of a query that was not sent: its failure is not evidence against the query

// ---- access ----

// Which namespaces may query a source, and which series they may read. A policy names its source and publishes the
// result in its own status, so without this check its author could read whatever the controller's credentials permit.

#define PROMQL_ACCESS_NAMESPACES_MAX 1024
#define PROMQL_ACCESS_LABEL_BYTES    128
#define PROMQL_ACCESS_ALL            "*"

// The access rules as configured for a source.
struct promql_access_options {
	const char *const
	        *namespaces; // policies of these may query the source; NULL-terminated; "*": all. NULL: not configured
	const char *label;   // queries are confined to LABEL="NAMESPACE" (promql/confine.h); NULL: not confined
};

struct promql_access {
	bool is_closed;          // no namespace may query the source because none is configured
	bool is_open, is_stated; // open to all namespaces; namespaces were configured
	char **namespaces;
	size_t n;
	char label[PROMQL_ACCESS_LABEL_BYTES]; // queries are confined by it; "": none
};

// Copies the options. is_open: whether all namespaces or none may query a source without configured namespaces. Returns
// NULL and *e: ERR_INPUT, ERR_LIMIT.
struct promql_access *promql_access_new(const struct promql_access_options *options, bool is_open, struct err *e);
void promql_access_free(struct promql_access *a); // NULL is fine

// Returns the query that a policy of `namespace_name` may send: `query` itself, or the confined query in `out`. Returns
// NULL and *e on refusal:
//   ERR_AUTH: policies of the namespace may not query this source;
//   ERR_INPUT, ERR_LIMIT: the query cannot be confined; *ret_offset (may be NULL) is the position, as in
//   confine_query().
const char *promql_access_admit(const struct promql_access *a, const char *source, const char *namespace_name,
                                const char *query, struct buf *out, size_t *ret_offset, struct err *e);

// ---- sources ----

struct promql_source_options {
	const char *name;             // letters, digits, '_', '-' and '.'
	struct promql_options query;  // .http and .clock are filled in
	const char *tenant;           // tenant of Mimir and Thanos: sent as X-Scope-OrgID; NULL: none
	int max_in_flight;            // slots: concurrent queries; 0: PROMQL_CONCURRENCY
	bool never_fuse;              // one query a request, always
	const char *const *more_urls; // servers with the same data as .query.url, NULL-terminated; NULL: none
	double max_disagreement;      // difference between two servers of the source, relative; more is reported
	// Without configured namespaces, every namespace may query the source if it is the only one and has no
	// credentials; otherwise none may.
	struct promql_access_options access;
};

struct promql_source_stats {
	uint64_t queries;                          // requests sent, probes and refills included
	uint64_t failed[ERR__COUNT];               // failed queries, by kind of error
	uint64_t partial;                          // responses with warnings
	uint64_t refused;                          // not sent: the source was down
	uint64_t unsent;                           // not sent: no slot became free in time
	int64_t last_answer_wall_ms;               // 0: never
	double last_seconds;                       // duration of the last query that ended
	struct exposition_histogram seconds;       // from request to response or error
	struct exposition_histogram queue_seconds; // from submission to sending
};

TAILQ_HEAD(promql_source_calls, source_call);

// One server. Other modules only read the members above "private", whose values are valid until the loop runs.
struct promql_source {
	char *name;                 // of the n-th server of a source with several URLs NAME#N, from NAME#2 on
	char *url;                  // base URL
	struct promql_source *next; // server of the next URL of the same source; NULL: none
	double max_disagreement;
	struct promql_access *access;
	const struct clock *clock;
	struct fair_queue *queue;
	struct promql_health health;
	struct promql_source_stats stats;
	char error[ERR_MSG_BYTES]; // the last failure since it was up; "" when it is
	uint64_t epoch;            // changes each time the source recovers
	int64_t took_ms;           // in a promql_done_fn: the time since the query was sent

	// ---- private ----
	struct event_base *loop;
	size_t fuse_bytes;
	struct http_client *http;
	struct promql *promql;
	int64_t answered_us;
	int64_t recovered_mono_ms; // when it last recovered; not set while epoch is 0
	bool closing;
	// The probe.
	bool probing;
	int64_t probed_us;
	struct promql_source_calls parked; // batches that failed and wait for the outcome of the probe
	// While the source is down.
	int64_t probe_after_mono_ms;
	bool wants_lone;    // send one query alone along with the probe
	uint64_t lone_hash; // the last query sent alone in place of a probe that does not count
	bool others_since;  // another query was submitted since then
};

// How to queue a query. Zeroed: a query without a namespace.
struct promql_ticket {
	const char *namespace_name; // copied; NULL or "": none
	int64_t wait_ms; // the longest time in the queue; 0: PROMQL_WAIT_MS. Does not count against the deadline
	bool is_slow;    // was slow recently, or its duration is unknown
	bool is_batch; // several queries: its failure is not evidence against any of them, so it is reported only after
	               // the probe of the source
};

// The servers of all sources. Other modules only read the first three members.
struct promql_sources {
	struct event_base *loop;
	struct promql_source *items[PROMQL_SOURCES_MAX]; // in the order of the list
	size_t n;
	size_t n_configured; // those that promql_sources_add() added follow
	struct clock clock;
	struct promql_budget budget; // budget for the answers of all sources
};

// Creates all sources. Returns NULL and *e, which names the source: as promql_new, or ERR_INPUT, ERR_LIMIT for names
// and numbers.
struct promql_sources *promql_sources_new(struct event_base *loop, const struct clock *clock,
                                          const struct promql_source_options *list, size_t n, struct err *e);
// Adds a source of the servers of `like`, with other credentials: only policies of `namespace_name` may query it, with
// the same confinement. Several clients may load one server now, so it has at most PROMQL_ADDED_CONCURRENCY slots.
// Returns 0, or -1 and *e: ERR_INPUT for a name that is in use, ERR_LIMIT above PROMQL_SOURCES_MAX servers, or as
// promql_set_credentials.
int promql_sources_add(struct promql_sources *s, const struct promql_source *like, const char *name,
                       const char *namespace_name, const struct promql_credentials *c, struct err *e);
// Replaces the credentials of a source, as promql_set_credentials for each of its servers.
int promql_source_set_credentials(struct promql_source *s, const struct promql_credentials *c, struct err *e);
// Ends all outstanding queries with ERR_CANCELED and accepts no more. Names and statistics stay available.
void promql_sources_cancel(struct promql_sources *s);
// Calls promql_clock_was_set for each source.
void promql_sources_clock_was_set(const struct promql_sources *s, int64_t step_ms);
// Cancels outstanding queries and frees the sources. NULL is fine.
void promql_sources_free(struct promql_sources *s);
// Returns the source called `name`; for NULL or "" the one called "default", or the only one. Returns NULL and *e
// (ERR_NOT_FOUND) with the most similar name.
struct promql_source *promql_sources_find(const struct promql_sources *s, const char *name, struct err *e);

// Returns the query that a policy of `namespace_name` may send to `source` (as in promql_sources_find): `query` itself,
// or the rewritten query in `out` (promql_access_admit). Every query of a policy must pass through this function,
// and only the result may be sent. Returns NULL and *e as promql_sources_find, or as promql_access_admit with
// *ret_offset, which may be NULL.
const char *promql_sources_admit(const struct promql_sources *s, const char *source, const char *namespace_name,
                                 const char *query, struct buf *out, size_t *ret_offset, struct err *e);

int64_t promql_source_skew_ms(const struct promql_source *s); // as promql_skew_ms; 0 while it is being closed
int64_t promql_source_unexplained_skew_ms(const struct promql_source *s); // as promql_unexplained_skew_ms; likewise
enum promql_kind promql_source_kind(const struct promql_source *s, const char **ret_version);
// Returns whether queries are failing because of the source.
bool promql_source_is_down(const struct promql_source *s);
// Returns whether the source recovered less than PROMQL_SETTLES_MS ago: a server that starts anew may not have scraped
// its targets yet, so that the absence of a series proves nothing.
bool promql_source_has_just_recovered(const struct promql_source *s);
// Returns the limit on the text of a request that combines several queries (promql/similar.h); 0: queries must not be
// combined.
size_t promql_source_fuse_bytes(const struct promql_source *s);

// Like promql_ask, but queues the query, a range query in a slow slot; copies question and ticket. While the source is
// down: returns -1 and *e (ERR_UNREACHABLE) with the reason, or queues the query for PROMQL_PROBE_WAIT_MS while a probe
// is in flight. A query that was not sent fails with the code PROMQL_NOT_SENT.
int promql_source_ask(struct promql_source *s, const struct promql_question *question,
                      const struct promql_ticket *ticket, promql_done_fn *done, void *arg, struct err *e);

// For queries whose response is used as a whole; the signals of ticks have a stricter rule, which compares the
// responses of all servers (runtime/query/query_failover.c). Like promql_source_ask, for a source with any number of
// servers; `first` is as promql_sources_find returns it. The next server is queried after an error, a response with
// warnings, or one without series, but not after the query was rejected (ERR_REJECTED), because each server would
// reject it. If no server has data, `done` receives ERR_PROTOCOL if one responded with warnings, else a response
// without series if one sent it, else the error of a server that was reached, or of the first one. Returns -1 and *e if
// the query cannot be sent to any server.
int promql_failover_ask(struct promql_source *first, const struct promql_question *question,
                        const struct promql_ticket *ticket, promql_done_fn *done, void *arg, struct err *e);

#endif
