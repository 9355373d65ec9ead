// SPDX-License-Identifier: Apache-2.0
// Reads mock scripts: YAML files that describe GPUs and what happens to them (docs/exporter.md).
#ifndef GPUSCALE_EXPORTER_MOCK_MOCK_SCRIPT_H
#define GPUSCALE_EXPORTER_MOCK_MOCK_SCRIPT_H

#include <stddef.h>

#include "exporter/mock/mock_schema.h"

struct arena;
struct buf;
struct err;

#define MOCK_SCRIPT_BYTES_MAX (32 * 1024 * 1024) // memory of a script, with its CSV columns

// Decodes text[0..len). `name` is used in messages; relative file names in the script start at `base_dir` ("" is the
// current directory). All memory comes from `a`. Returns -1 and fills `e` on failure; for errors in the script
// itself, `ret_errors` receives one line for each: "file:line:col: path: what is wrong and the fix".
int mock_script_parse(struct arena *a, const char *name, const char *base_dir, const char *text, size_t len,
                      struct mock_script *ret_script, struct buf *ret_errors, struct err *e);
// Reads the same from the file at `path`; NULL selects the built-in script.
int mock_script_read(struct arena *a, const char *path, struct mock_script *ret_script, struct buf *ret_errors,
                     struct err *e);

#endif
