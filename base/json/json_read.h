// SPDX-License-Identifier: Apache-2.0
// Bounds and positions around cJSON for replies from the network. The tree never leaves the function that parsed it.
#ifndef GPUSCALE_BASE_JSON_JSON_READ_H
#define GPUSCALE_BASE_JSON_JSON_READ_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define JSON_BYTES_MAX (16 * 1024 * 1024)

// Parses exactly text[0..len) with the grammar and the limits of base/json/json_scan.h. A number too large for a
// double becomes infinite. When members share a name, json_get returns the first. The caller frees the result with
// cJSON_Delete. Returns NULL and *e on failure: ERR_PROTOCOL with "JSON line:col: " (col in bytes), ERR_LIMIT for size,
// depth and number length, ERR_INTERNAL when memory is exhausted.
cJSON *json_read(const char *text, size_t len, struct err *e);
// Returns the member `key` (case-sensitive) of `o`, or NULL when `o` is not an object or has no such member.
const cJSON *json_get(const cJSON *o, const char *key);
// Returns whether `item` is absent (NULL), null, or accepted by `is_shape` (cJSON_IsObject, cJSON_IsArray, ..). A value
// of a different type must not be read as empty.
bool json_may_be(const cJSON *item, cJSON_bool (*is_shape)(const cJSON *item));
// Returns the text of a string member, or `fallback`.
const char *json_get_str(const cJSON *o, const char *key, const char *fallback);
// Copies a string member; "" when absent or null. -1 and *e when it is anything else (ERR_PROTOCOL) or does not fit
// with its terminator (ERR_LIMIT).
int json_get_text(const cJSON *o, const char *key, char *out, size_t size, struct err *e);
// Integer member in [min, max]: returns 1 and *ret_value, 0 when absent or null, -1 and *e (ERR_PROTOCOL) when it is
// anything else, including integers of 2^53 and more, which a double cannot represent exactly.
int json_get_i64(const cJSON *o, const char *key, int64_t min, int64_t max, int64_t *ret_value, struct err *e);

#endif
