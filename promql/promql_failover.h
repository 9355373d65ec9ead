// SPDX-License-Identifier: Apache-2.0
// Queries whose response is used as a whole: the servers of a source with several URLs are queried in order,
// until one has data. The signals of ticks have a stricter rule, which compares the responses of all servers
// (runtime/query/query_failover.h).
#ifndef GPUSCALE_PROMQL_PROMQL_FAILOVER_H
#define GPUSCALE_PROMQL_PROMQL_FAILOVER_H

#include <stdint.h>

#include "promql/promql_source.h"

// Like promql_source_ask, for a source with any number of servers; `first` is as promql_sources_find returns it. The
// next server is queried after an error, a response with warnings, or one without series, but not after the query
// was rejected (ERR_REJECTED), because each server would reject it. If no server has data, `done` receives ERR_PROTOCOL
// if one responded with warnings, else a response without series if one sent it, else the error of a server that was
// reached, or of the first one. Returns -1 and *e if the query cannot be sent to any server.
int promql_failover_ask(struct promql_source *first, const struct promql_question *question,
                        const struct promql_ticket *ticket, promql_done_fn *done, void *arg, struct err *e);

#endif
