// SPDX-License-Identifier: Apache-2.0
// The one table of the fields of a GPUPool. Decoder, defaults, ranges, `check`, the CRD and the reference page are
// generated from it.
#ifndef GPUSCALE_POLICIES_SCHEMA_POOL_SCHEMA_H
#define GPUSCALE_POLICIES_SCHEMA_POOL_SCHEMA_H

struct arena;
struct doc_node;
struct gpu_pool;
struct schema;
struct schema_errors;

#define POOL_KIND "GPUPool"

// The table of the whole document: apiVersion, kind, metadata, spec.
extern const struct schema pool_schema;

// Decodes `node` into `pool`, which the caller has zeroed. Strings and lists of the pool live in `a`; the document may
// be freed afterwards. Returns 0, or -1 with every fault appended to `errors`.
int pool_decode(const struct doc_node *node, struct gpu_pool *pool, struct arena *a, struct schema_errors *errors);

// As pool_decode, for an object of an API server, whose metadata the caller reads: decodes only `spec` and leaves the
// name unset. Fields that this version does not know are reported to `unknown`. An entry without a namespace is not an
// error: it matches no policy. Fills the pool as far as possible even
// when it returns -1.
int pool_decode_spec(const struct doc_node *spec, struct gpu_pool *pool, struct arena *a, struct schema_errors *errors,
                     struct schema_errors *unknown);

#endif
