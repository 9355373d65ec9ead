// SPDX-License-Identifier: Apache-2.0
#include "base/schema/schema.h"

#include "base/base.h"
#include "base/schema/schema_private.h"

// clang-format off
static const struct schema_type_info types[] = {
	[SCHEMA_STRING]      = {"string",          "text",                                    " bytes long", INT32_MAX},
	[SCHEMA_INT32]       = {"integer",         "a whole number",                          "",            INT32_MAX},
	[SCHEMA_INT64]       = {"int64",           "a whole number",                          "",            INT32_MAX},
	[SCHEMA_BOOL]        = {"boolean",         "true or false",                           NULL,          0},
	[SCHEMA_QUANTITY]    = {"quantity",        "a quantity such as \"0.7\", 700m or 8",   "",            1e300},
	[SCHEMA_DURATION_MS] = {"duration",        "a duration such as 90s or 1h30m",         "",            1e15},
	[SCHEMA_SECONDS_MS]  = {"integer seconds", "a whole number of seconds",               " seconds",    INT32_MAX},
	[SCHEMA_TIME_MS]     = {"time",            "a time such as 2026-01-05T09:00:00Z",     NULL,          0},
	[SCHEMA_ENUM]        = {"enum",            "one of ",                                 NULL,          0},
	[SCHEMA_OBJECT]      = {"object",          "a map",                                   NULL,          0},
	[SCHEMA_LIST]        = {"list of object",  "a list",                                  NULL,          0},
	[SCHEMA_STRING_LIST] = {"list of string",  "a list",                                  NULL,          0},
	[SCHEMA_ANY]         = {"any",             "a value",                                 NULL,          0},
};
// clang-format on
_Static_assert(sizeof types / sizeof types[0] == SCHEMA_TYPE__COUNT, "one row per type");

const struct schema_type_info *schema_type_info(enum schema_type t)
{
	assert(t >= 0 && t < SCHEMA_TYPE__COUNT);
	return &types[t];
}

const char *schema_type_name(enum schema_type t)
{
	return schema_type_info(t)->name;
}

const struct schema_field *schema_field_by_name(const struct schema *schema, const char *name, size_t len)
{
	for (size_t i = 0; i < schema->n_fields; i++) {
		const char *known = schema->fields[i].name;
		if (strncmp(known, name, len) == 0 && known[len] == '\0')
			return &schema->fields[i];
	}
	return NULL;
}

const char *schema_closest_field(const struct schema *schema, const char *word)
{
	assert(schema->n_fields <= SCHEMA_FIELDS_MAX);
	const char *names[SCHEMA_FIELDS_MAX];
	for (size_t i = 0; i < schema->n_fields; i++)
		names[i] = schema->fields[i].name;
	return num_closest_name(word, names, schema->n_fields);
}

const char *schema_list_fields(const struct schema *schema, char *out, size_t cap)
{
	char all[2 * SCHEMA_MESSAGE_BYTES] = "";
	size_t used = 0;
	for (size_t i = 0; i < schema->n_fields && used < sizeof all; i++)
		if (!schema->fields[i].unsupported)
			used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "",
			                         schema->fields[i].name);
	text_show(out, cap, all, strlen(all));
	return out;
}

// One end of a range in the user's notation.
static void format_end(const struct schema_field *f, double value, char *out)
{
	if (f->type == SCHEMA_DURATION_MS)
		num_format_duration_ms(out, (int64_t)value);
	else
		num_format_f64(out, value);
}

const char *schema_format_range(const struct schema_field *f, char *out)
{
	const char *unit = schema_type_info(f->type)->range_unit;
	double open_end = schema_type_info(f->type)->open_end;
	out[0] = '\0';
	if (!unit || (f->min == 0 && f->max == 0))
		return out;
	bool has_min = f->min > -open_end && !(f->type == SCHEMA_STRING && f->min == 0), has_max = f->max < open_end;
	char min[NUM_TEXT_BYTES] = "", max[NUM_TEXT_BYTES] = "";
	if (has_min)
		format_end(f, f->min, min);
	if (has_max)
		format_end(f, f->max, max);
	if (has_min && has_max)
		snprintf(out, SCHEMA_RANGE_BYTES, "between %s and %s%s", min, max, unit);
	else if (has_min)
		snprintf(out, SCHEMA_RANGE_BYTES, "at least %s%s", min, unit);
	else if (has_max)
		snprintf(out, SCHEMA_RANGE_BYTES, "at most %s%s", max, unit);
	return out;
}

// Cuts "name[]", "name[12]" or "name" off *path, and the dot after it. False when it is none of these.
static bool next_segment(const char **path, const char **ret_name, size_t *ret_len, bool *ret_indexed)
{
	const char *p = *path;
	*ret_name = p;
	*ret_len = strcspn(p, ".[");
	*ret_indexed = p[*ret_len] == '[';
	p += *ret_len;
	if (*ret_indexed) {
		p++;
		p += strspn(p, "0123456789");
		if (*p++ != ']')
			return false;
	}
	if (*ret_len == 0 || (*p && *p != '.') || (p[0] == '.' && p[1] == '\0'))
		return false;
	*path = *p ? p + 1 : p;
	return true;
}

const struct schema_field *schema_find(const struct schema *root, const char *path, const struct schema **ret_parent,
                                       const char **ret_closest)
{
	const struct schema *level = root;
	const struct schema_field *f = NULL;
	const char *closest = NULL;
	do {
		const char *name;
		size_t len;
		bool is_indexed;
		f = NULL;
		if (!level || !next_segment(&path, &name, &len, &is_indexed))
			break;
		f = schema_field_by_name(level, name, len);
		if (!f) {
			char word[SCHEMA_PATH_BYTES];
			snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word), name);
			closest = schema_closest_field(level, word);
			break;
		}
		if (is_indexed && f->type != SCHEMA_LIST && f->type != SCHEMA_STRING_LIST) {
			f = NULL;
			break;
		}
		if (*path)
			level = f->child;
	} while (*path);
	if (ret_parent)
		*ret_parent = level;
	if (ret_closest)
		*ret_closest = closest;
	return f;
}
