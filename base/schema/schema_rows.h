// SPDX-License-Identifier: Apache-2.0
// The words in which tables of fields and their validate hooks are written.
#ifndef GPUSCALE_BASE_SCHEMA_SCHEMA_ROWS_H
#define GPUSCALE_BASE_SCHEMA_SCHEMA_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/schema/schema.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

// One row of a table of fields, on one line: {ROW(name, type), place, default, limits, DOC(text)}.
#define ROW(text, schema_type) .name = (text), .type = SCHEMA_##schema_type
#define DOC(text)              .doc = text
// place: FIELD_SET also stores in `flag` that the document has the field; the children of an IN_PARENT object are
// stored in the struct of their parent.
#define FIELD(type, member)           .offset = offsetof(type, member), .set_offset = SCHEMA_NO_OFFSET
#define FIELD_SET(type, member, flag) .offset = offsetof(type, member), .set_offset = offsetof(type, flag)
#define FIELD_LIST(type, member, count)                                                                                \
	.offset = offsetof(type, member), .set_offset = SCHEMA_NO_OFFSET, .count_offset = offsetof(type, count)
#define FIELD_LIST_SET(type, member, count, flag)                                                                      \
	.offset = offsetof(type, member), .set_offset = offsetof(type, flag), .count_offset = offsetof(type, count)
#define IN_PARENT                 .set_offset = SCHEMA_NO_OFFSET
#define IN_PARENT_SET(type, flag) .set_offset = offsetof(type, flag)
// default
#define REQUIRED      .required = true
#define OPTIONAL      .required = false
#define DEFAULT(text) .default_text = (text)
// limits: RANGE of a number or of the length of a text, ITEMS of a list
#define RANGE(lowest, highest) .min = (lowest), .max = (highest)
#define ANY_SIZE               .min = -1e300, .max = 1e300
#define ITEMS(fewest, most)    .min = (fewest), .max_items = (most)
#define KEY(text)              .list_key = (text)
#define ONE_OF(names)          .enum_names = (names)
#define PATTERN(text)          .pattern = (text)
#define CHILD(schema)          .child = &(schema)
// A schema, behind its table of fields: {SCHEMA(name, type, fields), VALIDATE(check), RULES(rules), DOC(text)}.
#define SCHEMA(text, type, table)                                                                                      \
	.name = (text), .struct_size = sizeof(type), .fields = (table), .n_fields = COUNT_OF(table)
#define VALIDATE(check) .validate = (check)
#define RULES(table)    .rules = (table), .n_rules = COUNT_OF(table)
// how `gpuscale tune` varies it: LINEAR or LOG from lowest to highest, FACTOR of the present value
#define TUNE(kind, lowest, highest) .tune = {SCHEMA_TUNE_##kind, (lowest), (highest)}

// Defines the names of the values of an enum, for ONE_OF.
#define ENUM_NAMES(table, count, ...)                                                                                  \
	static const char *const table[] = {__VA_ARGS__, [count] = NULL};                                              \
	_Static_assert(COUNT_OF(table) == (count) + 1, "no value beyond the enum")

#endif
