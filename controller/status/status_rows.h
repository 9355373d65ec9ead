// SPDX-License-Identifier: Apache-2.0
// Macros of the tables of statuses (status_schema.c, pool_status_schema.c): a row is a member of
// struct `type_`.
#ifndef GPUSCALE_CONTROLLER_STATUS_STATUS_ROWS_H
#define GPUSCALE_CONTROLLER_STATUS_STATUS_ROWS_H

#include "base/schema/schema.h"

#define N(a) (sizeof(a) / sizeof((a)[0]))

#define FIELD_SET(type_, key, kind, member, set, text, ...)                                                            \
	{                                                                                                              \
		.name = key, .type = kind, .doc = text, .offset = offsetof(type_, member), .set_offset = set,          \
		.count_offset = SCHEMA_NO_OFFSET, __VA_ARGS__                                                          \
	}
#define FIELD(type_, key, kind, member, text, ...)                                                                     \
	FIELD_SET(type_, key, kind, member, SCHEMA_NO_OFFSET, text, __VA_ARGS__)
#define LIST(type_, key, member, count, text, most, schema_, ...)                                                      \
	{                                                                                                              \
		.name = key, .type = SCHEMA_LIST, .doc = text, .offset = offsetof(type_, member),                      \
		.set_offset = SCHEMA_NO_OFFSET, .count_offset = offsetof(type_, count), .max_items = most,             \
		.child = &schema_, __VA_ARGS__                                                                         \
	}
#define OBJECT(name_, path, type_, fields_, doc_)                                                                      \
	static const struct schema name_ = {                                                                           \
	        .name = path, .doc = doc_, .struct_size = sizeof(type_), .fields = fields_, .n_fields = N(fields_)}

#endif
