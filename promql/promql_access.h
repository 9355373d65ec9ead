// SPDX-License-Identifier: Apache-2.0
// Which namespaces may query a source, and which series they may read. A policy names its source and publishes the
// result in its own status, so without this check its author could read whatever the controller's credentials permit.
#ifndef GPUSCALE_PROMQL_PROMQL_ACCESS_H
#define GPUSCALE_PROMQL_PROMQL_ACCESS_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

#define PROMQL_ACCESS_NAMESPACES_MAX 1024
#define PROMQL_ACCESS_LABEL_BYTES    128
#define PROMQL_ACCESS_ALL            "*"

// The access rules as configured for a source.
struct promql_access_options {
	const char *const
	        *namespaces; // policies of these may query the source; NULL-terminated; "*": all. NULL: not configured
	const char *label;   // queries are confined to LABEL="NAMESPACE" (promql/confine.h); NULL: not confined
};

struct promql_access;

// Copies the options. is_open: whether all namespaces or none may query a source without configured namespaces. Returns
// NULL and *e: ERR_INPUT, ERR_LIMIT.
struct promql_access *promql_access_new(const struct promql_access_options *options, bool is_open, struct err *e);
void promql_access_free(struct promql_access *a); // NULL is fine
// Returns the label that queries are confined by; NULL: none. Valid as long as the rules.
const char *promql_access_label(const struct promql_access *a);
// Returns whether no namespace may query the source because none is configured.
bool promql_access_is_closed(const struct promql_access *a);

// Returns the query that a policy of `namespace_name` may send: `query` itself, or the confined query in `out`. Returns
// NULL and *e on refusal:
//   ERR_AUTH: policies of the namespace may not query this source;
//   ERR_INPUT, ERR_LIMIT: the query cannot be confined; *ret_offset (may be NULL) is the position, as in
//   confine_query().
const char *promql_access_admit(const struct promql_access *a, const char *source, const char *namespace_name,
                                const char *query, struct buf *out, size_t *ret_offset, struct err *e);

#endif
