// SPDX-License-Identifier: Apache-2.0
// The differences between the query APIs of Prometheus and compatible servers, as one table. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_DIALECT_H
#define GPUSCALE_PROMQL_PROMQL_DIALECT_H

#include <stddef.h>
#include <stdint.h>

#include "promql/promql_config.h"

struct promql_dialect {
	const char *name;                          // for messages
	const char *instant_params, *range_params; // "&a=b", sent with every query
	const char *lookback_param;                // parameter with a duration; NULL: not supported
	int64_t lookback_ms;                       // sent when the question requests no longer one; 0: not sent
};
// Returns the row of a kind; never NULL.
const struct promql_dialect *promql_dialect_of(enum promql_kind kind);
// Returns the kind of the server that sent body[0..len) as its reply to /api/v1/status/buildinfo. An unknown server
// is treated as Prometheus.
enum promql_kind promql_kind_of_buildinfo(const char *body, size_t len, char ret_version[static PROMQL_VERSION_BYTES]);

#endif
