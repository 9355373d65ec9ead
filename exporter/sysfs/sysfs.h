// SPDX-License-Identifier: Apache-2.0
// Reads small files in /sys and /proc.
#ifndef GPUSCALE_EXPORTER_SYSFS_SYSFS_H
#define GPUSCALE_EXPORTER_SYSFS_SYSFS_H

#include <stdbool.h>

#define SYSFS_PATH_BYTES 384
#define SYSFS_TEXT_BYTES 1024 // longer files are truncated

// Reads the file dir/name without trailing spaces. False if it cannot be read or is empty.
bool sysfs_read_text(const char *dir, const char *name, char out[SYSFS_TEXT_BYTES]);

#endif
