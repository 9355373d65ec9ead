// SPDX-License-Identifier: Apache-2.0
// Names one value in a JSON object: members separated by dots, where [KEY=VALUE] after a member chooses the item of a
// list whose member KEY is the text VALUE, as in spec.workerGroupSpecs[groupName=gpu].replicas. In a pattern, one VALUE
// may be *, which stands for any text.
#ifndef GPUSCALE_BASE_JSON_JSON_PATH_H
#define GPUSCALE_BASE_JSON_JSON_PATH_H

#include "base/json/json_span.h"

struct buf;
struct err;

#define JSON_PATH_BYTES_MAX 253
#define JSON_PATH_STEPS_MAX 16
#define JSON_PATH_NAME_MAX  63 // bytes of a member, a key or a value

bool json_path_is_valid(const char *path);

// Finds the value at a valid path. Writes its JSON pointer (RFC 6901) to `pointer`, which may be NULL. *ret_value is
// absent when only the last member is. Returns 0, or -1 and *e: ERR_INPUT says which step does not exist.
int json_path_find(struct json_span object, const char *path, struct json_span *ret_value, struct buf *pointer,
                   struct err *e);

// Returns whether a path is that of a pattern, and the text for its *; "" where the pattern has none.
bool json_path_match(const char *pattern, const char *path, char ret_item[JSON_PATH_NAME_MAX + 1]);

#endif
