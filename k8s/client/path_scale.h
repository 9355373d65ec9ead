// SPDX-License-Identifier: Apache-2.0
// The scale of objects without /scale: the number at a JSON path (base/json/json_path.h) of the object itself, and a
// JSON patch (RFC 6902) of it.
#ifndef GPUSCALE_K8S_CLIENT_PATH_SCALE_H
#define GPUSCALE_K8S_CLIENT_PATH_SCALE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json/json_span.h"

struct buf;
struct err;
struct scale;
struct scale_ref;

// Reads the scale of an object at ref->path. status_replicas is -1 when the object does not report them. Returns 0, or
// -1 and *e: ERR_PROTOCOL for an object without a resourceVersion, ERR_INPUT when the path does not lead to a number of
// replicas.
int path_scale_read(const struct scale_ref *ref, struct json_span object, struct scale *ret_scale, struct err *e);

// Reads the replicas that an object of any kind reports as ready: -1 when it reports none. *ret_is_stale:
// status.observedGeneration shows that they were counted before the last change of its spec.
int32_t path_scale_ready(const struct scale_ref *ref, struct json_span object, bool *ret_is_stale);

// Writes the patch that sets the replicas of `object`, and that the server refuses with a conflict when the object has
// changed since. Returns as path_scale_read; ERR_CONFLICT when `object` is not of that resourceVersion.
int path_scale_write_patch(const struct scale_ref *ref, struct json_span object, const char *resource_version,
                           int32_t replicas, struct buf *body, struct err *e);

#endif
