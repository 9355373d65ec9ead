// SPDX-License-Identifier: Apache-2.0
// The table of verdicts as a page of documentation.
#include "insight/verdict.h"

#include <string.h>

#include "base/buf.h"

#define COLUMNS 120

// clang-format off
static const char *const losses[] = {
	[LOSS_NONE]  = "0: no measure shows how much is lost.",
	[LOSS_ALL]   = "the whole price of the GPUs.",
	[LOSS_SM]    = "the price times the share of time in which the SMs were not active.",
	[LOSS_CLOCK] = "the price times the share by which the clock is below its model's median; unknown without clocks.",
};
// clang-format on

static void put_paragraph(struct buf *out, const char *text)
{
	size_t column = 0;
	for (const char *word = text; *word;) {
		size_t len = strcspn(word, " \n");
		if (column > 0 && column + 1 + len > COLUMNS) {
			buf_putc(out, '\n');
			column = 0;
		} else if (column > 0) {
			buf_putc(out, ' ');
			column++;
		}
		buf_put(out, word, len);
		column += len;
		word += len;
		if (*word == '\n') {
			buf_putc(out, '\n');
			column = 0;
		}
		word += *word ? 1 : 0;
	}
}

static void put_limit(struct buf *out, const struct verdict_measure_info *info, double limit)
{
	if (info->unit == UNIT_RATIO)
		buf_printf(out, "%.12g %%", 100 * limit);
	else if (info->unit == UNIT_BYTES_PER_SECOND)
		buf_printf(out, "%.12g GB/s", limit / 1e9);
	else
		buf_printf(out, "%.12g", limit);
}

static void put_condition(struct buf *out, const struct verdict_row *row)
{
	if (row->n_terms == 0)
		buf_puts(out, "nothing else matches");
	for (size_t i = 0; i < row->n_terms; i++) {
		const struct verdict_term *t = &row->terms[i];
		const struct verdict_measure_info *info = verdict_measure_info(t->measure);
		buf_printf(out, "%s%s`%s` %s ", i ? ", " : "", t->op == OP_NOT_AT_LEAST ? "not " : "", info->name,
		           verdict_op_sign(t->op));
		put_limit(out, info, t->limit);
	}
}

static void put_section(struct buf *out, enum verdict v)
{
	const struct verdict_info *info = verdict_info(v);
	size_t n;
	const struct verdict_row *rows = verdict_rows(&n);
	buf_printf(out, "\n### %s\n\n", info->name);
	put_paragraph(out, info->meaning);
	buf_puts(out, "\n\n**Evidence:** ");
	const char *sep = "";
	for (size_t i = 0; i < n; i++)
		if (rows[i].verdict == v) {
			buf_puts(out, sep);
			put_condition(out, &rows[i]);
			sep = "; or\n";
		}
	buf_printf(out, ".\n\n**Do:** %s\n\n", info->advice);
	put_paragraph(out, info->action);
	buf_printf(out, "\n**Cost per hour:** %s\n", losses[info->loss]);
}

static void put_measures(struct buf *out)
{
	static const char *const scopes[] = {[SCOPE_DEVICE] = "GPU or MIG instance",
	                                     [SCOPE_GPU] = "GPU",
	                                     [SCOPE_POD] = "pod",
	                                     [SCOPE_NODE] = "node"};
	static const char *const folds[] = {[FOLD_AVG] = "average", [FOLD_MAX] = "largest", [FOLD_MIN] = "smallest"};
	buf_puts(out, "\n## The measures\n\nThe recording rule `workload:NAME:diagnosed` has the measure `NAME` of "
	              "each pod.\n"
	              "`gpuscale diagnose --print rules` shows the query of each.\n\n"
	              "| measure | in the evidence | measured for each | value of a pod |\n|---|---|---|---|\n");
	for (int m = 0; m < MEASURE__COUNT; m++) {
		const struct verdict_measure_info *info = verdict_measure_info((enum verdict_measure)m);
		bool is_folded = info->scope != SCOPE_POD;
		buf_printf(out, "| `%s` | %s | %s | %s%s |\n", info->name, info->label, scopes[info->scope],
		           is_folded ? "the " : "", is_folded ? folds[info->fold] : "");
	}
}

void verdict_page_print(struct buf *out)
{
	size_t n;
	const struct verdict_row *rows = verdict_rows(&n);
	buf_puts(out, "## The table\n\nThe first row whose conditions all hold gives the verdict. A condition on a "
	              "missing measure does not hold.\n\n| # | conditions | verdict | level | summary |\n"
	              "|---|---|---|---|---|\n");
	for (size_t i = 0; i < n; i++) {
		const struct verdict_info *info = verdict_info(rows[i].verdict);
		buf_printf(out, "| %zu | ", i + 1);
		put_condition(out, &rows[i]);
		buf_printf(out, " | [%s](#%s) | %s | %s |\n", info->name, info->name, verdict_level_name(info->level),
		           info->summary);
	}
	buf_puts(out, "\n## The verdicts\n");
	for (int v = 0; v < VERDICT__COUNT; v++)
		put_section(out, (enum verdict)v);
	put_measures(out);
}
