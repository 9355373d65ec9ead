// SPDX-License-Identifier: Apache-2.0
// Members of the JSON objects that the line filters `grant` and `spread` read.
#ifndef GPUSCALE_POLICIES_TEST_LINE_FIELDS_H
#define GPUSCALE_POLICIES_TEST_LINE_FIELDS_H

#include <cjson/cJSON.h>
#include <stddef.h>
#include <stdint.h>

struct err;

#define LINE_FIELDS_MAX 32

// Sorts the members of `object` by key: ret_values[k], which the caller sets to NULL, becomes the value of names[k],
// and stays NULL for a null. n <= LINE_FIELDS_MAX. Returns 0, or -1 and *e (ERR_INPUT) for an unknown or repeated
// member; a similar name is suggested.
int line_fields_sort(const cJSON *object, const char *const *names, size_t n, const cJSON **ret_values, struct err *e);
// Reads a whole number from `least` to `most`; *value stays as it is when `item` is NULL. Returns 0, or -1 and *e
// (ERR_INPUT), which states `name` and the range.
int line_fields_whole(const cJSON *item, const char *name, double least, double most, int32_t *value, struct err *e);
// The same for any number.
int line_fields_number(const cJSON *item, const char *name, double least, double most, double *value, struct err *e);

#endif
