// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu/diagnose_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/json_write.h"
#include "base/print.h"
#include "cli/term/table.h"
#include "insight/verdict.h"
#include "insight/workload_set.h"
#include "policies/price/price_book.h"

#define CELL_BYTES     64
#define EVIDENCE_BYTES 256

static const double activity_limits[] = {0.5, 0.7, 0.85};
#define N_LIMITS (sizeof activity_limits / sizeof activity_limits[0])

// A selected workload with its costs, in the currency of the book per hour; NaN: unknown.
struct line {
	const struct workload *workload;
	double cost, lost;
};
struct lines {
	struct line *rows;
	size_t n;
};

// ---- selection and costs ----

static bool names_workload(const char *wanted, const struct workload *w)
{
	size_t len = strlen(wanted);
	return strcmp(w->name, wanted) == 0 || strcmp(w->job, wanted) == 0 ||
	       (strncmp(w->name, wanted, len) == 0 && w->name[len] == '-');
}

bool diagnose_selects(const struct diagnose_report *r, size_t workload)
{
	const struct workload *w = &r->set->workloads[workload];
	return (!r->namespace_name || strcmp(w->namespace_name, r->namespace_name) == 0) &&
	       (!r->workload || names_workload(r->workload, w));
}

// A shared GPU counts in even parts, an instance as its share of the GPU. What a model without a price costs is
// unknown.
static double cost_of(const struct diagnose_report *r, const struct workload_gpu *g)
{
	bool is_priced;
	int64_t micro = price_book_micro(r->book, g->model, NULL, &is_priced);
	return is_priced ? (double)micro / 1e6 / g->holders * (g->instance[0] ? g->values[MEASURE_SHARE] : 1) : NAN;
}

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	enum verdict_level xl = verdict_info(x->workload->row->verdict)->level;
	enum verdict_level yl = verdict_info(y->workload->row->verdict)->level;
	if (xl != yl)
		return xl > yl ? -1 : 1;
	double xm = isnan(x->lost) ? 0 : x->lost, ym = isnan(y->lost) ? 0 : y->lost;
	if (xm > ym || xm < ym)
		return xm > ym ? -1 : 1;
	return (x->workload > y->workload) - (x->workload < y->workload);
}

// Returns no rows when memory is exhausted, and out->failed.
static struct lines lines_of(const struct diagnose_report *r, struct buf *out)
{
	const struct workload_set *s = r->set;
	struct lines l = {calloc(s->n ? s->n : 1, sizeof *l.rows), 0};
	if (!l.rows) {
		out->failed = true;
		return l;
	}
	for (size_t i = 0; i < s->n; i++)
		l.rows[i] = (struct line){.workload = &s->workloads[i]};
	for (size_t i = 0; i < s->n_gpus; i++)
		l.rows[s->gpus[i].workload].cost += cost_of(r, &s->gpus[i]);
	for (size_t i = 0; i < s->n; i++) {
		const struct workload *w = &s->workloads[i];
		if (!diagnose_selects(r, i) || (r->only && !r->only[i]))
			continue;
		l.rows[l.n] = l.rows[i];
		l.rows[l.n++].lost = l.rows[i].cost * verdict_lost_ratio(w->row->verdict, w->values);
	}
	qsort(l.rows, l.n, sizeof *l.rows, compare_lines);
	return l;
}

// ---- table ----

static const enum table_tone tones[LEVEL__COUNT] = {
        [LEVEL_OK] = TONE_GOOD, [LEVEL_ADVICE] = TONE_WAITING, [LEVEL_FAULT] = TONE_BAD};

static const char *format_money(char out[CELL_BYTES], double money)
{
	snprintf(out, CELL_BYTES, isnan(money) ? "-" : "%.2f", money);
	return out;
}

static void put_value(struct buf *out, enum verdict_measure m, double value)
{
	const struct verdict_measure_info *info = verdict_measure_info(m);
	if (info->unit == UNIT_RATIO)
		print_to(out, "%s %.0f %%", info->label, 100 * value);
	else if (info->unit == UNIT_BYTES_PER_SECOND)
		print_to(out, "%s %.1f GB/s", info->label, value / 1e9);
	else if (info->unit == UNIT_PER_SECOND)
		print_to(out, "%s %.3g", info->label, value);
	else
		print_to(out, "%s %.0f", info->label, value < 1 ? ceil(value) : value);
}

static void put_evidence(struct table *t, const struct workload *w)
{
	enum verdict_measure measures[VERDICT_EVIDENCE_MAX];
	size_t n = verdict_evidence(w->row, w->values, measures);
	struct buf text;
	buf_init(&text, EVIDENCE_BYTES);
	for (size_t i = 0; i < n; i++) {
		buf_puts(&text, i ? ", " : "");
		put_value(&text, measures[i], w->values[measures[i]]);
	}
	table_cell(t, "%s", n ? buf_str(&text) : "-");
	buf_done(&text);
}

void diagnose_print_table(const struct diagnose_report *r, bool with_head, struct buf *out)
{
	static const char *const head[] = {"NAMESPACE", "WORKLOAD", "GPUS",   "VERDICT", "COST/H",
	                                   "LOST/H",    "EVIDENCE", "ADVICE", NULL};
	struct lines l = lines_of(r, out);
	struct table t;
	char cell[CELL_BYTES];
	table_init(&t, head);
	for (size_t i = 0; i < l.n; i++) {
		const struct workload *w = l.rows[i].workload;
		const struct verdict_info *v = verdict_info(w->row->verdict);
		table_cell(&t, "%s", w->namespace_name[0] ? w->namespace_name : "-");
		table_cell(&t, "%s", w->name);
		table_cell(&t, "%zu", w->n_gpus);
		table_state(&t, tones[v->level], v->name);
		table_cell(&t, "%s", format_money(cell, l.rows[i].cost));
		table_cell(&t, "%s", format_money(cell, l.rows[i].lost));
		put_evidence(&t, w);
		table_cell(&t, "%s", v->advice);
	}
	table_finish(&t, out, 0, with_head);
	free(l.rows);
}

// ---- summary ----

struct totals {
	size_t workloads[VERDICT__COUNT];
	double cost[VERDICT__COUNT], lost[VERDICT__COUNT]; // of the known ones
	size_t below[N_LIMITS], measured, gpus;
};

static void count_gpus(const struct diagnose_report *r, struct totals *t)
{
	const struct workload_set *s = r->set;
	for (size_t i = 0; i < s->n_gpus; i++) {
		const struct workload_gpu *g = &s->gpus[i];
		bool is_first = i == 0 || strcmp(g[-1].uuid, g->uuid) != 0 || strcmp(g[-1].instance, g->instance) != 0;
		// A shared device counts once, for the first of its holders that is selected.
		for (size_t k = i; !is_first && k-- > 0 && strcmp(s->gpus[k].uuid, g->uuid) == 0 &&
		                   strcmp(s->gpus[k].instance, g->instance) == 0;)
			is_first |= !diagnose_selects(r, s->gpus[k].workload);
		if (!is_first || !diagnose_selects(r, g->workload))
			continue;
		double activity = isnan(g->values[MEASURE_SM]) ? g->values[MEASURE_BUSY] : g->values[MEASURE_SM];
		t->gpus++;
		t->measured += isnan(activity) ? 0 : 1;
		for (size_t k = 0; k < N_LIMITS; k++)
			t->below[k] += activity < activity_limits[k];
	}
}

static struct totals totals_of(const struct diagnose_report *r, const struct lines *l)
{
	struct totals t = {0};
	count_gpus(r, &t);
	for (size_t i = 0; i < l->n; i++) {
		enum verdict v = l->rows[i].workload->row->verdict;
		t.workloads[v]++;
		t.cost[v] += isnan(l->rows[i].cost) ? 0 : l->rows[i].cost;
		t.lost[v] += isnan(l->rows[i].lost) ? 0 : l->rows[i].lost;
	}
	return t;
}

void diagnose_print_summary(const struct diagnose_report *r, struct buf *out)
{
	static const char *const head[] = {"VERDICT", "LEVEL", "WORKLOADS", "COST/H", "LOST/H", "MEANS", NULL};
	struct lines l = lines_of(r, out);
	struct totals totals = totals_of(r, &l);
	struct table t;
	char cell[CELL_BYTES];
	for (size_t k = 0; k < N_LIMITS; k++)
		print_to(out, "GPUs below %.0f %% of activity: %zu of %zu (%.0f %%)\n", 100 * activity_limits[k],
		         totals.below[k], totals.measured,
		         totals.measured ? 100.0 * (double)totals.below[k] / (double)totals.measured : 0);
	if (totals.measured < totals.gpus)
		print_to(out, "GPUs without a measured activity: %zu\n", totals.gpus - totals.measured);
	buf_putc(out, '\n');
	table_init(&t, head);
	for (int v = 0; v < VERDICT__COUNT; v++) {
		const struct verdict_info *info = verdict_info((enum verdict)v);
		if (totals.workloads[v] == 0)
			continue;
		table_cell(&t, "%s", info->name);
		table_state(&t, tones[info->level], verdict_level_name(info->level));
		table_cell(&t, "%zu", totals.workloads[v]);
		table_cell(&t, "%s", format_money(cell, totals.cost[v]));
		table_cell(&t, "%s", format_money(cell, totals.lost[v]));
		table_cell(&t, "%s", info->summary);
	}
	table_finish(&t, out, 0, true);
	free(l.rows);
}

// ---- JSON ----

static void put_item(struct json_writer *w, const struct line *l)
{
	const struct workload *it = l->workload;
	const struct verdict_info *v = verdict_info(it->row->verdict);
	enum verdict_measure evidence[VERDICT_EVIDENCE_MAX];
	size_t n = verdict_evidence(it->row, it->values, evidence);
	json_write_object_begin(w);
	json_write_member_str(w, "namespace", it->namespace_name);
	json_write_member_str(w, "workload", it->name);
	json_write_member_str(w, "job", it->job);
	json_write_member_str(w, "rank", it->rank);
	json_write_member_i64(w, "gpus", (int64_t)it->n_gpus);
	json_write_member_str(w, "verdict", v->name);
	json_write_member_str(w, "level", verdict_level_name(v->level));
	json_write_member_str(w, "summary", v->summary);
	json_write_member_str(w, "advice", v->advice);
	json_write_member_f64(w, "costPerHour", l->cost);
	json_write_member_f64(w, "lostPerHour", l->lost);
	json_write_member_array(w, "evidence");
	for (size_t i = 0; i < n; i++)
		json_write_str(w, verdict_measure_info(evidence[i])->name);
	json_write_array_end(w);
	json_write_member_object(w, "measures");
	for (int m = 0; m < MEASURE__COUNT; m++)
		if (!isnan(it->values[m]))
			json_write_member_f64(w, verdict_measure_info((enum verdict_measure)m)->name, it->values[m]);
	json_write_object_end(w);
	json_write_object_end(w);
}

static void put_summary(struct json_writer *w, const struct totals *t)
{
	json_write_member_object(w, "summary");
	json_write_member_i64(w, "gpus", (int64_t)t->gpus);
	json_write_member_i64(w, "measuredGPUs", (int64_t)t->measured);
	json_write_member_object(w, "gpusBelow");
	for (size_t k = 0; k < N_LIMITS; k++) {
		char key[CELL_BYTES];
		snprintf(key, sizeof key, "%.0f", 100 * activity_limits[k]);
		json_write_member_i64(w, key, (int64_t)t->below[k]);
	}
	json_write_object_end(w);
	json_write_member_object(w, "verdicts");
	for (int v = 0; v < VERDICT__COUNT; v++)
		if (t->workloads[v] > 0)
			json_write_member_i64(w, verdict_info((enum verdict)v)->name, (int64_t)t->workloads[v]);
	json_write_object_end(w);
	json_write_object_end(w);
}

void diagnose_print_json(const struct diagnose_report *r, struct buf *out)
{
	struct lines l = lines_of(r, out);
	struct totals totals = totals_of(r, &l);
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_member_time(&w, "time", r->now_ms);
	json_write_member_i64(&w, "windowSeconds", r->window_s);
	json_write_member_str(&w, "currency", r->book->currency);
	json_write_member_array(&w, "items");
	for (size_t i = 0; i < l.n; i++)
		put_item(&w, &l.rows[i]);
	json_write_array_end(&w);
	put_summary(&w, &totals);
	json_write_object_end(&w);
	buf_putc(out, '\n');
	free(l.rows);
}
