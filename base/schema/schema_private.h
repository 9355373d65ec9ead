// SPDX-License-Identifier: Apache-2.0
// Shared by the schema_*.c files.
#ifndef GPUSCALE_BASE_SCHEMA_SCHEMA_PRIVATE_H
#define GPUSCALE_BASE_SCHEMA_SCHEMA_PRIVATE_H

#include <stdarg.h>

#include "base/schema/schema.h"

#define SCHEMA_SHOWN_BYTES 56  // longest key or value from the file in a message
#define SCHEMA_RANGE_BYTES 120 // enough for every schema_format_range

// One row per type.
struct schema_type_info {
	const char *name;       // the user's word for it
	const char *wanted;     // for "must be .."; SCHEMA_ENUM: its choices follow
	const char *range_unit; // behind a range; NULL: the type has no ranges
	double open_end;        // an end of a range at or beyond it is open
};
const struct schema_type_info *schema_type_info(enum schema_type t);
static inline bool schema_is_list(const struct schema_field *f)
{
	return f->type == SCHEMA_LIST || f->type == SCHEMA_STRING_LIST;
}

void schema_vreport_at(struct schema_errors *e, int line, int col, const char *path, const char *fmt, va_list ap)
        __attribute__((format(printf, 5, 0)));
// The field called name[0..len), or NULL.
const struct schema_field *schema_field_by_name(const struct schema *schema, const char *name, size_t len);
// The name of a field of `schema` that may have been meant by `word`, or NULL.
const char *schema_closest_field(const struct schema *schema, const char *word);
// "a, b, c": the fields of `schema` that may be written, cut with "..." when they are too many for out. Returns out.
const char *schema_list_fields(const struct schema *schema, char *out, size_t cap);
// "between 1 and 16", "at least 1s", "at most 63 bytes long", "" when unchecked. out has SCHEMA_RANGE_BYTES.
const char *schema_format_range(const struct schema_field *f, char *out);

#endif
