// SPDX-License-Identifier: Apache-2.0
#include "cli/gpu/cost_report.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/csv_text.h"
#include "base/json/json_write.h"
#include "base/print.h"
#include "cli/gpu/cost_fetch.h"
#include "cli/term/table.h"
#include "insight/gpu_cost.h"
#include "policies/price/price_book.h"

#define CELL_BYTES 48

// ---- figures ----

static const char *format_cents(char out[CELL_BYTES], int64_t cents)
{
	int64_t size = cents < 0 ? -cents : cents;
	snprintf(out, CELL_BYTES, "%s%" PRId64 ".%02d", cents < 0 ? "-" : "", size / 100, (int)(size % 100));
	return out;
}

// Thousandths.
static const char *format_milli(char out[CELL_BYTES], int64_t milli)
{
	snprintf(out, CELL_BYTES, "%" PRId64 ".%03d", milli / 1000, (int)(milli % 1000));
	return out;
}

static const char *format_hours(char out[CELL_BYTES], int64_t milli)
{
	snprintf(out, CELL_BYTES, "%.2f", (double)milli / 3.6e6);
	return out;
}

static const char *format_kwh(char out[CELL_BYTES], int64_t milli_joules)
{
	snprintf(out, CELL_BYTES, "%.2f", (double)milli_joules / 3.6e9);
	return out;
}

static const char *format_co2(char out[CELL_BYTES], const struct gpu_cost *c, int64_t milli_joules)
{
	snprintf(out, CELL_BYTES, "%.3f", (double)milli_joules / 3.6e9 * c->book->electricity.grams_co2_per_kwh / 1000);
	return out;
}

// "-" where it is unknown.
static const char *format_saved(char out[CELL_BYTES], const struct gpu_cost_row *row)
{
	if (row->saved_cents != GPU_COST_UNKNOWN)
		return format_cents(out, row->saved_cents);
	snprintf(out, CELL_BYTES, "-");
	return out;
}

static const char *format_wasted(char out[CELL_BYTES], const struct gpu_cost_row *row)
{
	int64_t wasted = row->milli[GPU_IDLE] + row->milli[GPU_FAKE], all = row->milli[GPU_MEASURED];
	snprintf(out, CELL_BYTES, all ? "%.0f%%" : "-", all ? 100 * (double)wasted / (double)all : 0);
	return out;
}

static int64_t gpus_of(const struct cost_report *r, const char *model)
{
	for (size_t i = 0; i < r->use->n_models; i++)
		if (strcmp(r->use->models[i].model, model) == 0)
			return r->use->models[i].gpus;
	return 0;
}

static int64_t unmeasured(const struct gpu_cost *c)
{
	return c->total.milli[GPU_ALLOCATED] - c->total.milli[GPU_MEASURED];
}

// The first and the last day on which the prices of the book were published.
static void price_days(const struct price_book *b, const char **ret_first, const char **ret_last)
{
	*ret_first = *ret_last = b->models[0].as_of;
	for (size_t i = 1; i < b->n_models; i++) {
		const char *day = b->models[i].as_of;
		*ret_first = strcmp(day, *ret_first) < 0 ? day : *ret_first;
		*ret_last = strcmp(day, *ret_last) > 0 ? day : *ret_last;
	}
}

// ---- notes ----

static void put_unpriced(const struct cost_report *r, const struct gpu_unpriced *u, struct buf *out)
{
	const struct price_book *b = r->cost->book;
	char hours[CELL_BYTES];
	int64_t gpus = gpus_of(r, u->model);
	print_to(out, "No price: %" PRId64 " %s of model \"%s\", %s GPU-hours, ", gpus, gpus == 1 ? "GPU" : "GPUs",
	         u->model, format_hours(hours, u->milli));
	if (b->has_assumed)
		print_to(out, "counted at %.10g %s an hour (assumedPerGPUHour)", b->assumed_per_gpu_hour, b->currency);
	else
		buf_puts(out, "counted as 0");
	buf_puts(out, "; add the model to a file for --prices\n");
}

static void put_notes(const struct cost_report *r, struct buf *out)
{
	const struct gpu_cost *c = r->cost;
	char hours[CELL_BYTES], cost[CELL_BYTES];
	const char *first, *last;
	price_days(c->book, &first, &last);
	print_to(out, "Prices: %s, published %s to %s, %s\n", r->prices ? r->prices : "as shipped", first, last,
	         c->discount ? c->discount->name : "on demand");
	if (c->unallocated.milli[GPU_ALLOCATED] > 0)
		print_to(out, "Not allocated: %s GPU-hours that no pod held, %s %s\n",
		         format_hours(hours, c->unallocated.milli[GPU_ALLOCATED]),
		         format_cents(cost, c->unallocated.cents[COST_TOTAL]), c->book->currency);
	if (unmeasured(c) > 0)
		print_to(out, "No utilization: it is unknown how much of %s GPU-hours was wasted\n",
		         format_hours(hours, unmeasured(c)));
	for (size_t i = 0; i < c->n_unpriced; i++)
		put_unpriced(r, &c->unpriced[i], out);
	buf_puts(out, r->savings);
}

// ---- table ----

#define COLUMNS_WIDE 10

static void put_row(struct table *t, const char *name, const struct gpu_cost_row *row, const struct cost_report *r,
                    bool is_wide)
{
	char cell[CELL_BYTES];
	table_cell(t, "%s", name);
	table_cell(t, "%s", format_hours(cell, row->milli[GPU_ALLOCATED]));
	table_cell(t, "%s", format_cents(cell, row->cents[COST_TOTAL]));
	table_cell(t, "%s", format_cents(cell, row->cents[COST_IDLE]));
	table_cell(t, "%s", format_cents(cell, row->cents[COST_FAKE]));
	table_cell(t, "%s", format_wasted(cell, row));
	if (r->shows_savings)
		table_cell(t, "%s", format_saved(cell, row));
	if (is_wide) {
		table_cell(t, "%s", format_kwh(cell, row->milli[GPU_ENERGY]));
		table_cell(t, "%s", format_cents(cell, row->cents[COST_ELECTRICITY]));
	}
	if (is_wide && r->cost->book->electricity.has_grams_co2)
		table_cell(t, "%s", format_co2(cell, r->cost, row->milli[GPU_ENERGY]));
}

static void print_table(const struct cost_report *r, bool is_wide, struct buf *out)
{
	const struct gpu_cost *c = r->cost;
	char by[CELL_BYTES], cost[CELL_BYTES];
	const char *head[COLUMNS_WIDE + 1] = {by, "GPU-HOURS", cost, "IDLE", "FAKE-LOAD", "WASTED", NULL};
	size_t n = 6;
	if (r->shows_savings)
		head[n++] = "SAVED";
	if (is_wide) {
		head[n++] = "KWH";
		head[n++] = "ELECTRICITY";
	}
	if (is_wide && c->book->electricity.has_grams_co2)
		head[n++] = "CO2(KG)";
	snprintf(cost, sizeof cost, "COST(%s)", c->book->currency);
	snprintf(by, sizeof by, "%.*s", (int)sizeof by - 1, strchr(r->by, '=') ? strchr(r->by, '=') + 1 : r->by);
	for (char *p = by; *p; p++)
		*p = (char)toupper((unsigned char)*p);
	struct table t;
	table_init(&t, head);
	for (size_t i = 0; i < c->n; i++)
		put_row(&t, c->rows[i].key, &c->rows[i], r, is_wide);
	put_row(&t, "TOTAL", &c->total, r, is_wide); // what it saved is not known: its policies may not be all
	table_finish(&t, out, 0, true);
	buf_putc(out, '\n');
	put_notes(r, out);
}

// ---- JSON ----

static void put_figure(struct json_writer *w, const char *key, const char *figure)
{
	json_write_key(w, key);
	json_write_raw(w, figure);
}

static void put_figures(struct json_writer *w, const struct gpu_cost *c, const struct gpu_cost_row *row)
{
	char cell[CELL_BYTES];
	put_figure(w, "gpuSeconds", format_milli(cell, row->milli[GPU_ALLOCATED]));
	put_figure(w, "cost", format_cents(cell, row->cents[COST_TOTAL]));
	put_figure(w, "idle", format_cents(cell, row->cents[COST_IDLE]));
	put_figure(w, "fakeLoad", format_cents(cell, row->cents[COST_FAKE]));
	put_figure(w, "measuredGPUSeconds", format_milli(cell, row->milli[GPU_MEASURED]));
	put_figure(w, "kWh", format_kwh(cell, row->milli[GPU_ENERGY]));
	put_figure(w, "electricity", format_cents(cell, row->cents[COST_ELECTRICITY]));
	if (c->book->electricity.has_grams_co2)
		put_figure(w, "kgCO2", format_co2(cell, c, row->milli[GPU_ENERGY]));
}

static void print_json(const struct cost_report *r, struct buf *out)
{
	const struct gpu_cost *c = r->cost;
	char cell[CELL_BYTES];
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_member_str(&w, "currency", c->book->currency);
	json_write_member_time(&w, "from", r->start_s * 1000);
	json_write_member_time(&w, "to", r->end_s * 1000);
	json_write_member_str(&w, "by", r->by);
	if (r->shows_savings)
		json_write_member_str(&w, "savedAgainst", r->against);
	json_write_member_str(&w, "discount", c->discount ? c->discount->name : NULL);
	json_write_member_array(&w, "rows");
	for (size_t i = 0; i < c->n; i++) {
		json_write_object_begin(&w);
		json_write_member_str(&w, "name", c->rows[i].key);
		put_figures(&w, c, &c->rows[i]);
		if (c->rows[i].saved_cents != GPU_COST_UNKNOWN)
			put_figure(&w, "saved", format_cents(cell, c->rows[i].saved_cents));
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_member_object(&w, "total");
	put_figures(&w, c, &c->total);
	json_write_object_end(&w);
	json_write_member_object(&w, "unallocated");
	put_figures(&w, c, &c->unallocated);
	json_write_object_end(&w);
	json_write_member_array(&w, "unpriced");
	for (size_t i = 0; i < c->n_unpriced; i++) {
		json_write_object_begin(&w);
		json_write_member_str(&w, "model", c->unpriced[i].model);
		json_write_member_i64(&w, "gpus", gpus_of(r, c->unpriced[i].model));
		put_figure(&w, "gpuSeconds", format_milli(cell, c->unpriced[i].milli));
		json_write_object_end(&w);
	}
	json_write_array_end(&w);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

// ---- CSV ----

static void print_csv(const struct cost_report *r, struct buf *out, struct buf *notes)
{
	const struct gpu_cost *c = r->cost;
	char cell[CELL_BYTES];
	buf_puts(out, "name,gpu_seconds,cost,idle,fake_load,measured_gpu_seconds,kwh,electricity,currency");
	buf_puts(out, r->shows_savings ? ",saved\n" : "\n");
	for (size_t i = 0; i < c->n; i++) {
		const struct gpu_cost_row *row = &c->rows[i];
		csv_put_text(out, row->key);
		print_to(out, ",%s", format_milli(cell, row->milli[GPU_ALLOCATED]));
		print_to(out, ",%s", format_cents(cell, row->cents[COST_TOTAL]));
		print_to(out, ",%s", format_cents(cell, row->cents[COST_IDLE]));
		print_to(out, ",%s", format_cents(cell, row->cents[COST_FAKE]));
		print_to(out, ",%s", format_milli(cell, row->milli[GPU_MEASURED]));
		print_to(out, ",%s", format_kwh(cell, row->milli[GPU_ENERGY]));
		print_to(out, ",%s,", format_cents(cell, row->cents[COST_ELECTRICITY]));
		csv_put_text(out, c->book->currency);
		if (r->shows_savings)
			print_to(out, ",%s", row->saved_cents == GPU_COST_UNKNOWN ? "" : format_saved(cell, row));
		buf_putc(out, '\n');
	}
	put_notes(r, notes);
}

void cost_report_print(const struct cost_report *r, enum output_format format, struct buf *out, struct buf *notes)
{
	if (format == OUTPUT_JSON || format == OUTPUT_YAML) {
		print_json(r, out);
		buf_puts(notes, r->savings);
	} else if (format == OUTPUT_CSV) {
		print_csv(r, out, notes);
	} else {
		print_table(r, format == OUTPUT_WIDE, out);
	}
}
