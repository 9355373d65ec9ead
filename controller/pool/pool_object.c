// SPDX-License-Identifier: Apache-2.0
#include "controller/pool/pool_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json/json_span.h"
#include "base/must.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
#include "controller/pool/pools.h"
#include "policies/schema/pool_schema.h"

#define TREE_BYTES_MAX ((size_t)16 * 1024 * 1024)
#define POOL_BYTES_MAX ((size_t)4 * 1024 * 1024)

void pool_object_put_errors(const struct schema_errors *errors, char *out, size_t size)
{
	size_t used = 0;
	out[0] = '\0';
	for (size_t i = 0; i < errors->n && used < size; i++) {
		const struct schema_error *s = &errors->items[i];
		int n = snprintf(out + used, size - used, "%s%s%s%s", i ? "; " : "", s->path, s->path[0] ? ": " : "",
		                 s->message);
		used += n > 0 ? (size_t)n : 0;
	}
}

// Decodes what defines the pool.
static void decode(const char *name, const char *json, size_t len, struct pool_object *o, struct schema_errors *errors,
                   struct schema_errors *unknown)
{
	struct arena tree;
	struct doc_node *root;
	struct err e;
	arena_init(&o->arena, POOL_BYTES_MAX);
	arena_init(&tree, TREE_BYTES_MAX);
	o->pool.name = must_alloc(arena_strdup(&o->arena, name));
	o->pool.turn_every_ms = 1; // also of a pool that cannot be decoded
	if (doc_from_json(&tree, json, len, &root, &e) < 0)
		schema_report(errors, NULL, "", "%s", e.msg);
	else if (!doc_get(root, "spec"))
		schema_report(errors, NULL, "spec", "is required");
	else
		pool_decode_spec(doc_get(root, "spec"), &o->pool, &o->arena, errors, unknown);
	if (o->pool.turn_every_ms <= 0)
		o->pool.turn_every_ms = 1;
	arena_done(&tree);
}

struct pool_object *pool_object_read(const char *name, const char *json, size_t len, struct schema_errors *errors,
                                     struct schema_errors *unknown)
{
	struct pool_object *o = must_alloc(calloc(1, sizeof *o));
	const struct json_span metadata = json_span_get((struct json_span){json, len}, "metadata");
	schema_errors_init(errors, "");
	schema_errors_init(unknown, "");
	decode(name, json, len, o, errors, unknown);
	json_span_text(json_span_get(metadata, "uid"), o->uid, sizeof o->uid);
	json_span_i64(json_span_get(metadata, "generation"), 0, INT64_MAX, &o->generation);
	if (errors->n + errors->dropped > 0)
		pool_object_put_errors(errors, o->fault, sizeof o->fault);
	return o;
}
