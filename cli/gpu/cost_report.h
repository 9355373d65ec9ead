// SPDX-License-Identifier: Apache-2.0
// Prints the cost of GPU time for `gpuscale cost`.
#ifndef GPUSCALE_CLI_GPU_COST_REPORT_H
#define GPUSCALE_CLI_GPU_COST_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policies/explain/explain.h"

struct buf;
struct cost_use;
struct gpu_cost;

struct cost_report {
	const struct gpu_cost *cost;
	const struct cost_use *use;
	const char *by;         // as on the command line: "namespace", "label=team"
	bool shows_savings;     // rows are policies: their saved_cents
	const char *against;    // with shows_savings: what the cost is compared with, as on the command line
	const char *savings;    // notes on how the savings came about, one per line; "": none
	const char *prices;     // file of the prices; NULL: the shipped ones
	int64_t start_s, end_s; // of the period
};

// Appends the report to `out`. `notes` gets what the format has no place for, one note per line: all notes of a
// CSV, and the notes on savings of the JSON.
void cost_report_print(const struct cost_report *r, enum output_format format, struct buf *out, struct buf *notes);

#endif
