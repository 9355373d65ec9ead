// SPDX-License-Identifier: Apache-2.0
// A query API on loopback that asks the test for each query how long it takes and which fault it has. Splits requests
// that combine several queries (promql/similar.h), and fails such a request like its first faulty query. Implements
// HTTP on plain TCP, so that replies can be truncated, reset or missing. Runs in the event loop of the test.
#ifndef GPUSCALE_TEST_SUPPORT_QUERY_SERVER_H
#define GPUSCALE_TEST_SUPPORT_QUERY_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

struct event_base;
struct promql_sources;
struct query_hub;
struct query_server;

enum query_fault {
	QUERY_ANSWERED, // a vector of one series with the value 7
	QUERY_400,
	QUERY_422,
	QUERY_403,
	QUERY_404,
	QUERY_429,
	QUERY_429_RETRY, // with Retry-After: 3600
	QUERY_500,
	QUERY_502,
	QUERY_503,
	QUERY_503_RETRY, // with Retry-After: 3600
	QUERY_504,
	QUERY_ERROR_200, // 200 and a body of status "error"
	QUERY_WARNS,     // an answer with a warning
	QUERY_WRONG_TYPE,
	QUERY_MALFORMED,
	QUERY_HTML,
	QUERY_OVERSIZED, // more than QUERY_SERVER_BODY_MAX bytes
	QUERY_TRUNCATED, // closes the connection in the middle of the body
	QUERY_RESET,
	QUERY_HANGS,
	QUERY_FAULT__COUNT
};
extern const char *const query_fault_names[];

#define QUERY_SERVER_BODY_MAX 65536 // for promql_options.max_body_bytes

struct query_reply {
	enum query_fault fault;
	int delay_ms;
};
// Returns what to do with one query. n_together: how many queries the request combines. A request takes as long as its
// slowest query.
typedef struct query_reply query_server_fn(void *arg, const char *query, size_t n_together);

// Returns NULL on failure.
struct query_server *query_server_new(struct event_base *loop, query_server_fn *fn, void *arg);
void query_server_free(struct query_server *s);
const char *query_server_url(const struct query_server *s);
int query_server_requests(const struct query_server *s);
int query_server_hanging(const struct query_server *s);
// Replies to the pending requests with `fault`, or QUERY_ANSWERED.
void query_server_release(struct query_server *s, enum query_fault fault);

// A query hub with one source, "default", that is such a server, on a manual clock.
struct query_world {
	struct event_base *loop;
	struct clock clock;
	struct query_server *server;
	struct promql_sources *sources;
	struct query_hub *hub;
};
// max_in_flight: of the source; 0: its default. The server calls fn(arg, ..) for each query.
void query_world_open(struct query_world *w, int max_in_flight, query_server_fn *fn, void *arg);
// Queries in flight are answered as canceled.
void query_world_close(struct query_world *w);

#endif
