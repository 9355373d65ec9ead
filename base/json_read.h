// SPDX-License-Identifier: Apache-2.0
// Bounds and positions around cJSON for replies from the network. The tree never leaves the function that parsed it.
#ifndef GPUSCALE_BASE_JSON_READ_H
#define GPUSCALE_BASE_JSON_READ_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define JSON_BYTES_MAX (16 * 1024 * 1024)
#define JSON_DEPTH_MAX 64

// Parses exactly text[0..len) as RFC 8259 says (blanks around it allowed, a byte order mark or anything else after the
// end not). Stricter than cJSON: valid UTF-8 only, no raw control characters, no \u0000, numbers up to 63 bytes. A
// number too large for a double becomes infinite. Of members with one name, json_get finds the first.
// Caller frees with cJSON_Delete. NULL and *e otherwise: ERR_PROTOCOL with "JSON line:col: " (col in bytes), ERR_LIMIT
// for size, depth and number length, ERR_INTERNAL when memory ends.
cJSON *json_read(const char *text, size_t len, struct err *e);
// Member of an object; NULL when o is no object or has none. Case-sensitive.
const cJSON *json_get(const cJSON *o, const char *key);
// Is item absent (NULL), null, or what is_shape (cJSON_IsObject, cJSON_IsArray, ..) takes? What is of another shape
// must not be read as empty.
bool json_may_be(const cJSON *item, cJSON_bool (*is_shape)(const cJSON *item));
// Text of a string member, or fallback.
const char *json_get_str(const cJSON *o, const char *key, const char *fallback);
// Copies a string member; "" when absent or null. -1 and *e when it is anything else (ERR_PROTOCOL) or does not fit
// with its terminator (ERR_LIMIT).
int json_get_text(const cJSON *o, const char *key, char *out, size_t size, struct err *e);
// Integer member in [min, max]: returns 1 and *ret_value, 0 when absent or null, -1 and *e (ERR_PROTOCOL) when it is
// anything else, 2^53 and beyond included: a double cannot tell those apart.
int json_get_i64(const cJSON *o, const char *key, int64_t min, int64_t max, int64_t *ret_value, struct err *e);

#endif
