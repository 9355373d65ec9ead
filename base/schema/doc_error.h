// SPDX-License-Identifier: Apache-2.0
// Errors in a text that is not yet a tree, as "name:line:col: what: fix". Private to doc.c.
#ifndef GPUSCALE_BASE_SCHEMA_DOC_ERROR_H
#define GPUSCALE_BASE_SCHEMA_DOC_ERROR_H

#include <stddef.h>

#include "base/err.h"

struct doc_node;
struct yaml_parser_s;

// Fills *e with "name:line:col: " and the message; returns -1.
int doc_error(struct err *e, enum err_kind kind, const char *name, int line, int col, const char *fmt, ...)
        __attribute__((format(printf, 6, 7)));

// Size, encoding and control characters of text[0..len), which the YAML library would report without a place.
int doc_check_text(const char *name, const char *text, size_t len, struct err *e);

// Converts an error of the YAML library about text[0..len) to a place and a fix; returns -1. `inside` is the innermost
// collection that is still open, or NULL.
int doc_yaml_error(const char *name, const char *text, size_t len, const struct yaml_parser_s *parser,
                   const struct doc_node *inside, struct err *e);

#endif
