// SPDX-License-Identifier: Apache-2.0
// Decodes a GPUPool of the API server.
#ifndef GPUSCALE_CONTROLLER_POOL_POOL_OBJECT_H
#define GPUSCALE_CONTROLLER_POOL_POOL_OBJECT_H

#include <stddef.h>
#include <stdint.h>

struct pool_object;
struct schema_errors;

// Returns a version of an object for pools_put_object(), which frees it. Its errors are left in `errors`, and its
// unknown fields, which have no effect, in `unknown`; an object with errors has a fault. Aborts when memory is
// exhausted (base/must.h).
struct pool_object *pool_object_read(const char *name, const char *json, size_t len, struct schema_errors *errors,
                                     struct schema_errors *unknown);
// Writes errors as one line, cut to `size` bytes.
void pool_object_put_errors(const struct schema_errors *errors, char *out, size_t size);

#endif
