// SPDX-License-Identifier: Apache-2.0
// Small files of /sys: one number or one line each. A file that is not there, or says something else, gives no value.
#ifndef GPUSCALE_EXPORTER_SYSFS_H
#define GPUSCALE_EXPORTER_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSFS_PATH_BYTES 384
#define SYSFS_TEXT_BYTES 1024 // what is read of a file; longer ones are cut

// The file dir/name without the blanks at its end. False: it cannot be read, or is empty.
bool sysfs_read_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES]);
// Its decimal number.
bool sysfs_read_i64(const char *dir, const char *name, int64_t *ret_value);
// The value of the line "key=value" in a text such as uevent's. False: there is no such line, or it does not fit.
bool sysfs_find_key(const char *text, const char *key, char *out, size_t size);
// The first directory dir/prefixN, N from 0 to max - 1.
bool sysfs_find_dir(const char *dir, const char *prefix, int max, char out[SYSFS_PATH_BYTES]);
bool sysfs_exists(const char *dir, const char *name);

#endif
