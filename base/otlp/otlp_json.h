// SPDX-License-Identifier: Apache-2.0
// The parts that all requests of OTLP 1.x in JSON share (opentelemetry-proto, "JSON Protobuf Encoding"): the
// resource, the scope, and attributes.
#ifndef GPUSCALE_BASE_OTLP_OTLP_JSON_H
#define GPUSCALE_BASE_OTLP_OTLP_JSON_H

#include <stdint.h>

struct json_writer;

#define OTLP_RESOURCE_ATTRIBUTES_MAX 8

// What the items of a request share. Strings are not copied.
struct otlp_envelope {
	const char *resources, *scopes, *items; // the names of the three arrays: "resourceSpans", "scopeSpans", "spans"
	const char *service;                    // resource attribute service.name, and the scope
	const char *hostname;                   // host.name and service.instance.id; "" leaves both out
	const char *schema_url;                 // of the semantic conventions; NULL: none
	struct {
		const char *key, *value;
	} attributes[OTLP_RESOURCE_ATTRIBUTES_MAX]; // further attributes of the resource, up to the first without a key
};

// Writes a request up to its array of items. Write the items, then call otlp_envelope_end().
void otlp_envelope_begin(struct json_writer *w, const struct otlp_envelope *e);
void otlp_envelope_end(struct json_writer *w, const struct otlp_envelope *e);

// Writes one item of an array of attributes. A text of "" or NULL is left out.
void otlp_put_text(struct json_writer *w, const char *key, const char *value);
void otlp_put_i64(struct json_writer *w, const char *key, int64_t value);

// Writes `value` as a member, in quotes, as the JSON encoding of Protobuf writes a 64-bit integer.
void otlp_member_i64(struct json_writer *w, const char *key, int64_t value);

#endif
