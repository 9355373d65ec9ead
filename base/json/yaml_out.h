// SPDX-License-Identifier: Apache-2.0
// JSON text -> block-style YAML, for -o yaml.
#ifndef GPUSCALE_BASE_JSON_YAML_OUT_H
#define GPUSCALE_BASE_JSON_YAML_OUT_H

#include <stddef.h>

struct buf;

// Appends json[0..len) as YAML. Strings that another reader could take for something else are quoted.
// -1 when json is not valid JSON or out is full.
int yaml_from_json(struct buf *out, const char *json, size_t len);

// Appends one string as a double-quoted scalar that a reader takes for exactly that string.
void yaml_put_quoted(struct buf *out, const char *s);
// Appends one string as a scalar: plain where no reader of YAML 1.1 or 1.2 could take it for something else, else
// quoted.
void yaml_put_string(struct buf *out, const char *s);

#endif
