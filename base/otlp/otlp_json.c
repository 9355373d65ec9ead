// SPDX-License-Identifier: Apache-2.0
#include "base/otlp/otlp_json.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json/json_write.h"

static void begin_attribute(struct json_writer *w, const char *key)
{
	json_write_object_begin(w);
	json_write_member_str(w, "key", key);
	json_write_member_object(w, "value");
}

static void end_attribute(struct json_writer *w)
{
	json_write_object_end(w);
	json_write_object_end(w);
}

void otlp_put_text(struct json_writer *w, const char *key, const char *value)
{
	if (!value || !value[0])
		return;
	begin_attribute(w, key);
	json_write_member_str(w, "stringValue", value);
	end_attribute(w);
}

void otlp_put_i64(struct json_writer *w, const char *key, int64_t value)
{
	begin_attribute(w, key);
	otlp_member_i64(w, "intValue", value);
	end_attribute(w);
}

void otlp_member_i64(struct json_writer *w, const char *key, int64_t value)
{
	char text[24];
	snprintf(text, sizeof text, "%" PRId64, value);
	json_write_member_str(w, key, text);
}

static void begin_array(struct json_writer *w, const char *name)
{
	json_write_member_array(w, name);
}

static void put_resource(struct json_writer *w, const struct otlp_envelope *e)
{
	json_write_member_object(w, "resource");
	begin_array(w, "attributes");
	otlp_put_text(w, "service.name", e->service);
	otlp_put_text(w, "service.version", GPUSCALE_VERSION);
	otlp_put_text(w, "service.instance.id", e->hostname);
	otlp_put_text(w, "host.name", e->hostname);
	for (size_t i = 0; i < OTLP_RESOURCE_ATTRIBUTES_MAX && e->attributes[i].key; i++)
		otlp_put_text(w, e->attributes[i].key, e->attributes[i].value);
	json_write_array_end(w);
	json_write_object_end(w);
}

void otlp_envelope_begin(struct json_writer *w, const struct otlp_envelope *e)
{
	json_write_object_begin(w);
	begin_array(w, e->resources);
	json_write_object_begin(w);
	put_resource(w, e);
	begin_array(w, e->scopes);
	json_write_object_begin(w);
	json_write_member_object(w, "scope");
	json_write_member_str(w, "name", e->service);
	json_write_member_str(w, "version", GPUSCALE_VERSION);
	json_write_object_end(w);
	if (e->schema_url)
		json_write_member_str(w, "schemaUrl", e->schema_url);
	begin_array(w, e->items);
}

void otlp_envelope_end(struct json_writer *w, const struct otlp_envelope *e)
{
	json_write_array_end(w); // items
	json_write_object_end(w);
	json_write_array_end(w); // scopes
	if (e->schema_url)
		json_write_member_str(w, "schemaUrl", e->schema_url);
	json_write_object_end(w);
	json_write_array_end(w); // resources
	json_write_object_end(w);
}
