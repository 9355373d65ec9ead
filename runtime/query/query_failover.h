// SPDX-License-Identifier: Apache-2.0
// Queries all servers of a source with several URLs, and chooses one of the responses: of those with data the one with
// the newest sample, otherwise the most informative one. A server that fails or hangs therefore costs no tick while
// another server responds.
#ifndef GPUSCALE_RUNTIME_QUERY_QUERY_FAILOVER_H
#define GPUSCALE_RUNTIME_QUERY_QUERY_FAILOVER_H

#include <stdint.h>

#include "runtime/query/query_hub.h"

// After the first answer with current data, the time that the other servers have to respond as well.
#define QUERY_FAILOVER_GRACE_MS 500
// Servers are treated as disagreeing until no answers differed for this time.
#define QUERY_DISAGREEMENT_MS 60000
// Answers to the same query that differ in a row before the servers are treated as disagreeing.
#define QUERY_DISAGREEMENTS 3

// As query_hub_ask, for a source with any number of servers. Requests that are still in flight when fn
// is called continue; their answers are not used for this call.
void query_failover_ask(struct query_hub *hub, const struct query_question *question, int64_t now_ms,
                        query_answer_fn *fn, void *arg);

#endif
