// SPDX-License-Identifier: Apache-2.0
// What the line filters `step`, `grant` and `spread` share: members of the JSON objects of a line, and its errors.
#ifndef GPUSCALE_POLICIES_TEST_LINE_FIELDS_H
#define GPUSCALE_POLICIES_TEST_LINE_FIELDS_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

// Bytes of a name as messages show it.
#define LINE_SHOWN_BYTES 80

// A member of the JSON object of a line. The numbers are stored by line_fields_numbers(), the rest is read by the
// caller.
struct line_field {
	const char *name;
	enum { LINE_OTHER, LINE_WHOLE, LINE_NUMBER } type;
	double least, most;
	size_t offset; // of the int32_t (LINE_WHOLE) or the double in the struct
};
// The table, and the number of its fields.
#define LINE_FIELDS(table) table, sizeof(table) / sizeof(table)[0]

// Reports that `word` is none of the names, as "unknown WHAT "WORD"", with a similar name. Returns -1.
int line_fields_unknown(const char *what, const char *word, const char *const *names, size_t n, struct err *e);
// Returns the value of the member; NULL when it is absent or null.
const cJSON *line_field_of(const cJSON *object, const char *name);
// Checks that every member of `object` is one of the n fields, and given once. Returns 0, or -1 and *e (ERR_INPUT);
// `what` is what messages call a member.
int line_fields_check(const cJSON *object, const char *what, const struct line_field *fields, size_t n, struct err *e);
// Stores the numbers of the n fields in *ret, from `least` to `most` each; what is absent or null stays as it is.
// Returns 0, or -1 and *e (ERR_INPUT), which states the name, behind `prefix`, and the range.
int line_fields_numbers(const cJSON *object, const char *prefix, const struct line_field *fields, size_t n, void *ret,
                        struct err *e);
// Sorts n items of `size` bytes, which begin with a pointer to their name, by name: so duplicates are adjacent, and the
// order in the line has no effect. Returns whether a name occurs twice, and then writes it to `shown`.
bool line_fields_sort_names(void *items, size_t n, size_t size, char shown[LINE_SHOWN_BYTES]);

// Reports that the arena of a line is full. Returns -1.
int line_fields_no_memory(struct err *e);
// Appends {"error": msg} and a line end.
void line_fields_put_error(struct buf *out, const char *msg);

#endif
