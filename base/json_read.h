// SPDX-License-Identifier: Apache-2.0
// Bounds and positions around cJSON for replies from the network. The tree never leaves the function that parsed it.
#ifndef GPUSCALE_BASE_JSON_READ_H
#define GPUSCALE_BASE_JSON_READ_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define JSON_BYTES_MAX (16 * 1024 * 1024)
#define JSON_DEPTH_MAX 64

// Parses exactly text[0..len) (trailing blanks allowed, trailing garbage not). Caller frees with cJSON_Delete.
// NULL and *e (ERR_PROTOCOL with line:col, ERR_LIMIT for size and depth) otherwise.
cJSON *json_read(const char *text, size_t len, struct err *e);
// Member of an object; NULL when o is no object or has none. Case-sensitive.
const cJSON *json_get(const cJSON *o, const char *key);
// Text of a string member, or fallback.
const char *json_get_str(const cJSON *o, const char *key, const char *fallback);
// Integer member in [min, max]: returns 1 and *ret_value, 0 when absent or null, -1 and *e (ERR_PROTOCOL) when it is
// anything else.
int json_get_i64(const cJSON *o, const char *key, int64_t min, int64_t max, int64_t *ret_value, struct err *e);

#endif
