// SPDX-License-Identifier: Apache-2.0
// The counters file of dcgm-exporter: which families are served, in which order, with which type and help text. A row
// has three columns, `FIELD, type, help`; spaces around a column are trimmed; `#` starts a comment line; a column may
// be in double quotes, with a quote inside doubled. FIELD is a name of the legacy or
// the 4.9 naming, whichever is served. Types: gauge, counter, label (dcgm-exporter:
// etc/default-counters.csv and internal/pkg/counters).
#ifndef GPUSCALE_EXPORTER_CSV_COUNTERS_H
#define GPUSCALE_EXPORTER_CSV_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "exporter/families.h"

struct buf;
struct err;

#define CSV_COUNTERS_BYTES_MAX      (256 * 1024)
#define CSV_COUNTERS_LINE_BYTES_MAX 4096
#define CSV_COUNTERS_REMARKS_MAX    64 // further remarks are only counted

struct counter_row {
	enum field field;
	enum metric_type type; // from the file, else from the table of families
	const char *help;
};

struct csv_counters {
	struct counter_row rows[FIELD__COUNT]; // each field at most once
	size_t n;
	bool driver_version; // the file has the row `DCGM_FI_DRIVER_VERSION, label`
	size_t skipped;      // rows of the file that are not served
	struct arena arena;  // memory of the help texts
};

// Selects every family of the table, in its order, with the driver's version as a label.
void csv_counters_init_builtin(struct csv_counters *c);
// Parses text[0..len). A row that cannot be served (unknown or repeated field, invalid type, wrong number of columns)
// is skipped, and `ret_remarks` receives a line "name:line: what is wrong and the fix"; reaching its limit is not
// an error. Returns -1 and fills `e` if the text is not a counters file (a NUL byte, ERR_LIMIT above a limit) or no
// row is left; there is nothing to free then.
int csv_counters_parse(struct csv_counters *c, const char *name, const char *text, size_t len, struct buf *ret_remarks,
                       struct err *e);
// Reads the same from the file at `path`; also fails with ERR_NOT_FOUND and ERR_IO.
int csv_counters_read(struct csv_counters *c, const char *path, struct buf *ret_remarks, struct err *e);
void csv_counters_done(struct csv_counters *c);

#endif
