// SPDX-License-Identifier: Apache-2.0
#include "base/schema/schema.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/num.h"
#include "base/schema/schema_private.h"
#include "base/text.h"

static const char *const type_names[] = {
        [SCHEMA_STRING] = "string",
        [SCHEMA_INT32] = "integer",
        [SCHEMA_INT64] = "int64",
        [SCHEMA_BOOL] = "boolean",
        [SCHEMA_QUANTITY] = "quantity",
        [SCHEMA_DURATION_MS] = "duration",
        [SCHEMA_SECONDS_MS] = "integer seconds",
        [SCHEMA_TIME_MS] = "time",
        [SCHEMA_ENUM] = "enum",
        [SCHEMA_OBJECT] = "object",
        [SCHEMA_LIST] = "list of object",
        [SCHEMA_STRING_LIST] = "list of string",
        [SCHEMA_ANY] = "any",
};
_Static_assert(sizeof type_names / sizeof type_names[0] == SCHEMA_TYPE__COUNT, "one name per type");

const char *schema_type_name(enum schema_type t)
{
	assert(t >= 0 && t < SCHEMA_TYPE__COUNT);
	return type_names[t];
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
	out[0] = '\0';
	if (f->min == 0 && f->max == 0)
		return out;
	double open_end = INT32_MAX;
	const char *unit = "";
	switch (f->type) {
	case SCHEMA_STRING:
		unit = " bytes long";
		break;
	case SCHEMA_QUANTITY:
		open_end = 1e300;
		break;
	case SCHEMA_DURATION_MS:
		open_end = 1e15;
		break;
	case SCHEMA_INT32:
	case SCHEMA_INT64:
		break;
	case SCHEMA_SECONDS_MS:
		unit = " seconds";
		break;
	case SCHEMA_LIST:
	case SCHEMA_STRING_LIST:
	case SCHEMA_BOOL:
	case SCHEMA_TIME_MS:
	case SCHEMA_ENUM:
	case SCHEMA_OBJECT:
	case SCHEMA_ANY:
	case SCHEMA_TYPE__COUNT:
		return out;
	}
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
