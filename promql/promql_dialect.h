// SPDX-License-Identifier: Apache-2.0
// What the query APIs of Prometheus and of those who speak it differ in, as one table. Private to promql/.
#ifndef GPUSCALE_PROMQL_PROMQL_DIALECT_H
#define GPUSCALE_PROMQL_PROMQL_DIALECT_H

#include <stddef.h>
#include <stdint.h>

#include "promql/promql.h"

struct promql_dialect {
	const char *name;                          // for messages
	const char *instant_params, *range_params; // "&a=b", sent with every query
	const char *lookback_param;                // takes a duration; NULL: there is none
	int64_t lookback_ms;                       // sent when no longer one is asked for; 0: nothing is sent
};
// Never NULL.
const struct promql_dialect *promql_dialect_of(enum promql_kind kind);
// Who answered /api/v1/status/buildinfo so. Whatever is not known to be another is Prometheus.
enum promql_kind promql_kind_of_buildinfo(const char *body, size_t len, char ret_version[static PROMQL_VERSION_BYTES]);

#endif
