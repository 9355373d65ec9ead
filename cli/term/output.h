// SPDX-License-Identifier: Apache-2.0
// The flag -o of all commands: the formats, and one way to write a document. A command renders JSON; YAML is converted
// from it.
#ifndef GPUSCALE_CLI_TERM_OUTPUT_H
#define GPUSCALE_CLI_TERM_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "policies/explain/explain.h"

struct buf;
struct err;

#define OUTPUT_MAX ((size_t)512 * 1024 * 1024) // of what a command prints
#define REPORT_MAX ((size_t)16 * 1024 * 1024)  // of errors and notes about its input

// What a command supports, as sets of formats: a list of objects, a list of figures, a report.
#define OUTPUT_SET(format) (1U << OUTPUT_##format)
#define OUTPUTS_REPORT     (OUTPUT_SET(TABLE) | OUTPUT_SET(WIDE) | OUTPUT_SET(JSON) | OUTPUT_SET(YAML))
#define OUTPUTS_LIST       (OUTPUTS_REPORT | OUTPUT_SET(NAME))

// Returns whether the format is a document, JSON or YAML.
bool output_is_document(enum output_format format);
// Writes a complete report to standard output, and frees it. JSON gets the end of its last line; for OUTPUT_YAML,
// `report` is JSON and is converted. Returns 0, or -1 and *e (ERR_IO) when the report has failed or cannot be written.
int output_write(struct buf *report, enum output_format format, struct err *e);
// The same, with an error message of `command` on standard error.
int output_print(const char *command, struct buf *report, enum output_format format);

#endif
