// SPDX-License-Identifier: Apache-2.0
// Which families are served, in which order, with which type and help: dcgm-exporter's counters file. Three columns,
// `FIELD, type, help`; blanks around a column are trimmed; `#` begins a comment line; a column may stand in double
// quotes, a quote inside it doubled. Types: gauge, counter, label (dcgm-exporter: etc/default-counters.csv and
// internal/pkg/counters).
#ifndef GPUSCALE_EXPORTER_CSV_COUNTERS_H
#define GPUSCALE_EXPORTER_CSV_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "exporter/families.h"

struct buf;
struct err;

#define COUNTERS_BYTES_MAX      (256 * 1024)
#define COUNTERS_LINE_BYTES_MAX 4096
#define COUNTERS_REMARKS_MAX    64 // more are only counted

struct counter_row {
	enum field field;
	enum metric_type type; // as the file says, else as the table of families does
	const char *help;
};

struct counters {
	struct counter_row rows[FIELD__COUNT]; // a field stands at most once
	size_t n;
	bool driver_version; // the row `DCGM_FI_DRIVER_VERSION, label` is there
	size_t skipped;      // rows of the file that are not served
	struct arena arena;  // holds the helps
};

// Every family of the table, in its order, with the driver's version as a label.
void counters_init_builtin(struct counters *c);
// Reads text[0..len). A row that cannot be served (unknown or repeated field, a type that is none, not three columns)
// is skipped, and ret_remarks gets a line "name:line: what is wrong and the fix" for it, without the ceilings of
// ret_remarks being an error. -1 and *e: the text is no counters file at all (a NUL byte, ERR_LIMIT past the ceilings)
// or no row is left. After -1 there is nothing to free.
int counters_parse(struct counters *c, const char *name, const char *text, size_t len, struct buf *ret_remarks,
                   struct err *e);
// The same from a file: also ERR_NOT_FOUND, ERR_IO.
int counters_read(struct counters *c, const char *path, struct buf *ret_remarks, struct err *e);
void counters_done(struct counters *c);

#endif
