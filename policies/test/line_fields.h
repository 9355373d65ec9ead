// SPDX-License-Identifier: Apache-2.0
// What the line filters `step`, `grant` and `spread` share: members of the JSON objects of a line, and its errors.
#ifndef GPUSCALE_POLICIES_TEST_LINE_FIELDS_H
#define GPUSCALE_POLICIES_TEST_LINE_FIELDS_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

#define LINE_FIELDS_MAX 32

// Reports that `word` is none of the names, as "unknown WHAT "WORD"", with a similar name. Returns -1.
int line_fields_unknown(const char *what, const char *word, const char *const *names, size_t n, struct err *e);
// Sorts the members of `object` by key: ret_values[k], which the caller sets to NULL, becomes the value of names[k],
// and stays NULL for a null. n <= LINE_FIELDS_MAX. Returns 0, or -1 and *e (ERR_INPUT) for an unknown or repeated
// member; `what` is what messages call it.
int line_fields_sort(const cJSON *object, const char *what, const char *const *names, size_t n,
                     const cJSON **ret_values, struct err *e);

// A whole number from `least` to `most`, by its index among the sorted values; *value stays as it is when it is absent.
struct line_whole {
	int key;
	double least, most;
	int32_t *value;
};
// Reads n numbers from the sorted `values`. Returns 0, or -1 and *e (ERR_INPUT), which states the name and the range.
int line_fields_whole(const cJSON *const *values, const char *const *names, const struct line_whole *list, size_t n,
                      struct err *e);
// Reads any number; *value stays as it is when `item` is NULL. Returns as line_fields_whole().
int line_fields_number(const cJSON *item, const char *name, double least, double most, double *value, struct err *e);

// Reports that the arena of a line is full. Returns -1.
int line_fields_no_memory(struct err *e);
// Appends {"error": msg} and a line end.
void line_fields_put_error(struct buf *out, const char *msg);

#endif
