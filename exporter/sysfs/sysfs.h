// SPDX-License-Identifier: Apache-2.0
// Reads small files in /sys: one number or one line each. A missing or invalid file has no value.
#ifndef GPUSCALE_EXPORTER_SYSFS_SYSFS_H
#define GPUSCALE_EXPORTER_SYSFS_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSFS_PATH_BYTES 384
#define SYSFS_TEXT_BYTES 1024 // longer files are truncated

// Reads the file dir/name without trailing spaces. False if it cannot be read or is empty.
bool sysfs_read_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES]);
// Reads the decimal number in the file dir/name. False if there is none.
bool sysfs_read_i64(const char *dir, const char *name, int64_t *ret_value);
// Copies the value of the line "key=value" of a text such as uevent to `out`. False if the line is missing or does
// not fit.
bool sysfs_find_key(const char *text, const char *key, char *out, size_t size);
// Finds the first directory dir/prefixN with N from 0 to max - 1. False if there is none.
bool sysfs_find_dir(const char *dir, const char *prefix, int max, char out[SYSFS_PATH_BYTES]);

#endif
