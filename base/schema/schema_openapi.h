// SPDX-License-Identifier: Apache-2.0
// Renders a schema for the API server: structural OpenAPI v3, from the table alone.
#ifndef GPUSCALE_BASE_SCHEMA_SCHEMA_OPENAPI_H
#define GPUSCALE_BASE_SCHEMA_SCHEMA_OPENAPI_H

#include <stdbool.h>

struct json_writer;
struct schema;

// Writes one JSON object: type, description, required, properties. // Quantities are integers or strings, durations
// strings with the grammar as a pattern; what a pattern cannot say (ranges of either, lengths in bytes, rules between
// fields) stays with the decoder. A default is given where being written means nothing in addition to the value: not
// where the table asks whether it was (set_offset), and not for lists, objects and "any". Unsupported fields are left
// out. An opaque object gets one description, a line per field, and no properties. Kubernetes: apiextensions-apiserver,
// "Specifying a structural schema". With `with_rules` also the rules in CEL of each object, which Kubernetes knows
// from 1.25 on ("Validation rules").
void schema_openapi(const struct schema *schema, bool with_rules, struct json_writer *w);

#endif
