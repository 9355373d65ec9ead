// SPDX-License-Identifier: Apache-2.0
// Renders a schema for the API server, from the table alone.

#include "base/base.h"
#include "base/json/json_write.h"
#include "base/schema/schema.h"

#define SIGN          "[+-]?"
#define QUANTITY_BODY "([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?$"
#define DURATION_BODY                                                                                                  \
	"(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)$" // "" is kept out by minLength
#define DESCRIPTION_BYTES_MAX (64 * 1024)
#define OPEN_NUMBER           1e300 // ends of quantities beyond this are open

static void put_range(struct json_writer *w, const struct schema_field *f, double open_end)
{
	if (f->min == 0 && f->max == 0)
		return;
	if (f->min > -open_end)
		json_write_member_f64(w, "minimum", f->min);
	if (f->max < open_end)
		json_write_member_f64(w, "maximum", f->max);
}

static void put_integer(struct json_writer *w, const struct schema_field *f)
{
	json_write_format(w, "type:%s,format:%s", "integer", f->type == SCHEMA_INT64 ? "int64" : "int32");
	put_range(w, f, INT32_MAX);
}

static void put_string(struct json_writer *w, const struct schema_field *f)
{
	json_write_member_str(w, "type", "string");
	if (f->pattern)
		json_write_member_str(w, "pattern", f->pattern);
	if (f->min > 0)
		json_write_member_i64(w, "minLength", (int64_t)f->min);
	if (f->max > 0 && f->max < INT32_MAX)
		json_write_member_i64(w, "maxLength", (int64_t)f->max);
}

// The range applies to integers only: a pattern sees no more of a text than its sign.
static void put_quantity(struct json_writer *w, const struct schema_field *f)
{
	bool has_range = f->min != 0 || f->max != 0;
	json_write_format(w, "x-kubernetes-int-or-string:%i,anyOf:[{type:%s},{type:%s}],pattern:%s", true, "integer",
	                  "string", has_range && f->min >= 0 ? "^[+]?" QUANTITY_BODY : "^" SIGN QUANTITY_BODY);
	put_range(w, f, OPEN_NUMBER);
}

static void put_enum(struct json_writer *w, const struct schema_field *f)
{
	json_write_format(w, "type:%s,enum:[", "string");
	for (size_t i = 0; f->enum_names[i]; i++)
		json_write_str(w, f->enum_names[i]);
	json_write_array_end(w);
}

static void put_list(struct json_writer *w, const struct schema_field *f, bool with_rules)
{
	json_write_member_str(w, "type", "array");
	if (f->min > 0)
		json_write_member_i64(w, "minItems", (int64_t)f->min);
	json_write_member_i64(w, "maxItems", (int64_t)(f->max_items ? f->max_items : SCHEMA_LIST_ITEMS_MAX));
	json_write_member_str(w, "x-kubernetes-list-type", f->list_key ? "map" : "atomic");
	if (f->list_key)
		json_write_format(w, "x-kubernetes-list-map-keys:[%s]", f->list_key);
	json_write_key(w, "items");
	if (f->type == SCHEMA_LIST)
		schema_openapi(f->child, with_rules, w);
	else
		json_write_format(w, "{type:%s}", "string");
}

static void put_object(struct json_writer *w, const struct schema *schema, bool with_rules);

static void put_type(struct json_writer *w, const struct schema_field *f, bool with_rules)
{
	switch (f->type) {
	case SCHEMA_STRING:
		put_string(w, f);
		break;
	case SCHEMA_INT32:
	case SCHEMA_INT64:
	case SCHEMA_SECONDS_MS:
		put_integer(w, f);
		break;
	case SCHEMA_BOOL:
		json_write_member_str(w, "type", "boolean");
		break;
	case SCHEMA_QUANTITY:
		put_quantity(w, f);
		break;
	case SCHEMA_DURATION_MS:
		json_write_format(w, "type:%s,pattern:%s,minLength:%d", "string", "^" DURATION_BODY, 1);
		break;
	case SCHEMA_TIME_MS:
		json_write_format(w, "type:%s,format:%s", "string", "date-time");
		break;
	case SCHEMA_ENUM:
		put_enum(w, f);
		break;
	case SCHEMA_OBJECT:
		put_object(w, f->child, with_rules);
		break;
	case SCHEMA_LIST:
	case SCHEMA_STRING_LIST:
		put_list(w, f, with_rules);
		break;
	case SCHEMA_ANY:
		json_write_member_bool(w, "x-kubernetes-preserve-unknown-fields", true);
		break;
	case SCHEMA_TYPE__COUNT:
		assert(f->type < SCHEMA_TYPE__COUNT);
	}
}

static void put_default(struct json_writer *w, const struct schema_field *f)
{
	if (!f->default_text || f->set_offset != SCHEMA_NO_OFFSET || f->type > SCHEMA_ENUM)
		return;
	bool is_json = f->type == SCHEMA_INT32 || f->type == SCHEMA_INT64 || f->type == SCHEMA_SECONDS_MS ||
	               f->type == SCHEMA_BOOL; // written in the table as JSON writes them
	json_write_key(w, "default");
	if (is_json)
		json_write_raw(w, f->default_text);
	else
		json_write_str(w, f->default_text);
}

static void put_rules(struct json_writer *w, const struct schema *schema)
{
	json_write_member_array(w, "x-kubernetes-validations");
	for (size_t i = 0; i < schema->n_rules; i++)
		json_write_format(w, "{rule:%s,message:%s}", schema->rules[i].cel, schema->rules[i].message);
	json_write_array_end(w);
}

// Inside the object of its caller, who has written the description.
static void put_object(struct json_writer *w, const struct schema *schema, bool with_rules)
{
	bool any_required = false;
	json_write_member_str(w, "type", "object");
	if (with_rules && schema->n_rules > 0)
		put_rules(w, schema);
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct schema_field *f = &schema->fields[i];
		if (!f->required || f->unsupported)
			continue;
		if (!any_required)
			json_write_member_array(w, "required");
		any_required = true;
		json_write_str(w, f->name);
	}
	if (any_required)
		json_write_array_end(w);
	json_write_member_object(w, "properties");
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct schema_field *f = &schema->fields[i];
		if (f->unsupported)
			continue;
		json_write_member_object(w, f->name);
		json_write_member_str(w, "description", f->doc);
		put_type(w, f, with_rules);
		put_default(w, f);
		json_write_object_end(w);
	}
	json_write_object_end(w);
}

// Adds a line per field, for `kubectl explain`.
static void list_fields(struct buf *text, const char *prefix, const struct schema *schema)
{
	for (size_t i = 0; i < schema->n_fields; i++) {
		const struct schema_field *f = &schema->fields[i];
		char below[SCHEMA_PATH_BYTES];
		buf_printf(text, "\n%s%s: %s", prefix, f->name, f->doc);
		if (!f->child)
			continue;
		snprintf(below, sizeof below, "%s%s%s.", prefix, f->name, f->type == SCHEMA_LIST ? "[]" : "");
		list_fields(text, below, f->child);
	}
}

static void put_opaque(struct json_writer *w, const struct schema *schema)
{
	struct buf text;
	buf_init(&text, DESCRIPTION_BYTES_MAX);
	buf_printf(&text, "%s", schema->doc);
	list_fields(&text, "", schema);
	assert(!text.failed);
	json_write_format(w, "description:%s,type:%s,x-kubernetes-map-type:%s,x-kubernetes-preserve-unknown-fields:%i",
	                  buf_str(&text), "object", "atomic", true);
	buf_done(&text);
}

void schema_openapi(const struct schema *schema, bool with_rules, struct json_writer *w)
{
	json_write_object_begin(w);
	if (schema->is_opaque) {
		put_opaque(w, schema);
	} else {
		json_write_member_str(w, "description", schema->doc);
		put_object(w, schema, with_rules);
	}
	json_write_object_end(w);
}
