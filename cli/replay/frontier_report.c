// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/frontier_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/csv_text.h"
#include "base/json/json_write.h"
#include "base/num.h"
#include "base/print.h"
#include "cli/replay/svg_chart.h"
#include "cli/term/table.h"
#include "policies/engine/policy.h"
#include "replay/frontier.h"
#include "replay/peers.h"

#define P95         0.95
#define TITLE_BYTES 512

static double gpu_hours(const struct frontier_report *r, const struct frontier_point *p)
{
	return p->score.replica_s / 3600 * r->gpus_per_replica;
}

// ---- table ----

static void number_cell(struct table *t, double v, const char *unit)
{
	if (isnan(v))
		table_cell(t, "-");
	else if (isinf(v))
		table_cell(t, "never served");
	else
		table_cell(t, "%.2f%s", v, unit);
}

static const char *mark_of(const struct frontier_point *p)
{
	return p->is_chosen ? "present" : p->kind == BACKTEST_BOUND && !p->is_reached ? "not reached" : "";
}

void frontier_report_table(const struct frontier_report *r, struct buf *out)
{
	static const char *const head[] = {"NAME",     "KIND",    "GPU-HOURS", "COST", "LATE",
	                                   "P95-WAIT", "CHANGES", "",          NULL};
	const struct backtest *b = &r->frontier->scene;
	char time[NUM_TEXT_BYTES], span[NUM_TEXT_BYTES], wait[NUM_TEXT_BYTES];
	struct table t;
	num_format_rfc3339_ms(time, b->recording->time_ms[0]);
	num_format_duration_ms(span, b->recording->time_ms[b->recording->n_rows - 1] - b->recording->time_ms[0]);
	num_format_duration_ms(wait, llround(b->config.wait_s * 1000));
	print_to(out, "Closed loop (simulated): %s, %s, mean demand %.2f, requests are late after %s\n\n", time, span,
	         b->demand.mean, wait);
	table_init(&t, head);
	for (size_t i = 0; i < r->frontier->n_points; i++) {
		const struct frontier_point *p = &r->frontier->points[i];
		table_cell(&t, "%s", p->name);
		table_cell(&t, "%s", backtest_kind_name(p->kind));
		number_cell(&t, gpu_hours(r, p), "");
		number_cell(&t, gpu_hours(r, p) * r->price, "");
		number_cell(&t, score_late_percent(&p->score), "%");
		number_cell(&t, score_wait_quantile_s(&p->score, P95), "s");
		table_cell(&t, "%d", p->score.changes);
		table_cell(&t, "%s", mark_of(p));
	}
	table_print(&t, out, 0, true);
	out->failed = out->failed || t.cells.failed;
	table_done(&t);
}

// ---- JSON, CSV ----

static void member_f64(struct json_writer *w, const char *key, double v)
{
	json_write_key(w, key);
	if (isfinite(v))
		json_write_f64(w, v);
	else
		json_write_null(w);
}

static void put_json_point(const struct frontier_report *r, const struct frontier_point *p, struct json_writer *w)
{
	json_write_object_begin(w);
	json_write_member_str(w, "name", p->name);
	json_write_member_str(w, "kind", backtest_kind_name(p->kind));
	member_f64(w, "setting", p->setting);
	json_write_member_bool(w, "present", p->is_chosen);
	if (p->kind == BACKTEST_BOUND)
		json_write_member_bool(w, "reached", p->is_reached);
	member_f64(w, "gpuHours", gpu_hours(r, p));
	member_f64(w, "cost", gpu_hours(r, p) * r->price);
	member_f64(w, "latePercent", score_late_percent(&p->score));
	member_f64(w, "p95WaitSeconds", score_wait_quantile_s(&p->score, P95));
	json_write_member_i64(w, "directionChanges", p->score.changes);
	json_write_object_end(w);
}

void frontier_report_json(const struct frontier_report *r, struct buf *out)
{
	const struct backtest *b = &r->frontier->scene;
	struct json_writer w;
	json_write_init(&w, out, 2);
	json_write_object_begin(&w);
	json_write_member_str(&w, "mode", "closed-loop");
	json_write_member_str(&w, "file", b->file);
	json_write_member_str(&w, "namespace", r->policy->namespace_name);
	json_write_member_str(&w, "policy", r->policy->name);
	json_write_member_time(&w, "from", b->recording->time_ms[0]);
	json_write_member_time(&w, "to", b->recording->time_ms[b->recording->n_rows - 1]);
	member_f64(&w, "meanDemand", b->demand.mean);
	member_f64(&w, "waitSeconds", b->config.wait_s);
	json_write_key(&w, "points");
	json_write_array_begin(&w);
	for (size_t i = 0; i < r->frontier->n_points; i++)
		put_json_point(r, &r->frontier->points[i], &w);
	json_write_array_end(&w);
	json_write_object_end(&w);
	buf_putc(out, '\n');
}

void frontier_report_csv(const struct frontier_report *r, struct buf *out)
{
	buf_puts(out, "mode,kind,name,present,gpu_hours,cost,late_percent,p95_wait_s,direction_changes\n");
	for (size_t i = 0; i < r->frontier->n_points; i++) {
		const struct frontier_point *p = &r->frontier->points[i];
		print_to(out, "closed-loop,%s,", backtest_kind_name(p->kind));
		csv_put_text(out, p->name);
		print_to(out, ",%d", p->is_chosen);
		csv_put_number(out, gpu_hours(r, p));
		csv_put_number(out, gpu_hours(r, p) * r->price);
		csv_put_number(out, score_late_percent(&p->score));
		csv_put_number(out, score_wait_quantile_s(&p->score, P95));
		print_to(out, ",%d\n", p->score.changes);
	}
}

// ---- chart ----

// The points of one series, one after the other in the result.
struct drawn {
	double x[FRONTIER_POINTS_MAX], y[FRONTIER_POINTS_MAX];
	char texts[FRONTIER_POINTS_MAX][CHART_LABEL_BYTES];
	const char *labels[FRONTIER_POINTS_MAX];
	struct chart_series series[FRONTIER_POINTS_MAX];
	size_t n_series;
};

static enum chart_style style_of(const struct frontier_point *p)
{
	static const enum chart_style peers[] = {CHART_HPA, CHART_KEDA, CHART_WPA, CHART_KNATIVE};
	_Static_assert(sizeof peers / sizeof *peers == PEER_FIXED, "one style per peer");
	for (int kind = 0; p->kind == BACKTEST_PEER && kind < PEER_FIXED; kind++)
		if (strncmp(p->name, peer_name((enum peer_kind)kind), strlen(peer_name((enum peer_kind)kind))) == 0)
			return peers[kind];
	return p->kind == BACKTEST_POLICY ? CHART_POLICY : p->kind == BACKTEST_FIXED ? CHART_FIXED : CHART_BOUND;
}

static const char *series_name(const struct frontier_report *r, enum chart_style style)
{
	switch (style) {
	case CHART_POLICY:
		return r->policy->name;
	case CHART_HPA:
		return peer_name(PEER_HPA);
	case CHART_KEDA:
		return peer_name(PEER_KEDA);
	case CHART_WPA:
		return peer_name(PEER_WPA);
	case CHART_KNATIVE:
		return peer_name(PEER_KNATIVE);
	case CHART_FIXED:
		return "fixed";
	default:
		return "clairvoyant";
	}
}

static void label(const struct frontier_report *r, const struct frontier_point *p, char out[CHART_LABEL_BYTES])
{
	bool is_percent = p->kind == BACKTEST_POLICY && r->policy->objective.set;
	out[0] = '\0';
	if (p->kind == BACKTEST_POLICY || p->kind == BACKTEST_FIXED)
		snprintf(out, CHART_LABEL_BYTES, "%s%g%s%s", is_percent || p->kind == BACKTEST_FIXED ? "" : "x ",
		         p->setting, is_percent ? "%" : "", p->is_chosen ? " (present)" : "");
}

static void collect(const struct frontier_report *r, struct drawn *d)
{
	const struct frontier *f = r->frontier;
	for (size_t i = 0; i < f->n_points; i++) {
		const struct frontier_point *p = &f->points[i];
		enum chart_style style = style_of(p);
		bool is_known = isfinite(score_late_percent(&p->score)) && (p->kind != BACKTEST_BOUND || p->is_reached);
		d->x[i] = is_known ? gpu_hours(r, p) : NAN;
		d->y[i] = score_late_percent(&p->score);
		label(r, p, d->texts[i]);
		d->labels[i] = d->texts[i][0] ? d->texts[i] : NULL;
		if (i == 0 || style != style_of(&f->points[i - 1]))
			d->series[d->n_series++] = (struct chart_series){.name = series_name(r, style),
			                                                 .style = style,
			                                                 .mark = CHART_LINKED_POINTS,
			                                                 .x = &d->x[i],
			                                                 .y = &d->y[i],
			                                                 .labels = &d->labels[i]};
		d->series[d->n_series - 1].n++;
	}
}

static void swap_points(struct drawn *d, size_t i, size_t k)
{
	double x = d->x[i], y = d->y[i];
	const char *l = d->labels[i];
	d->x[i] = d->x[k];
	d->y[i] = d->y[k];
	d->labels[i] = d->labels[k];
	d->x[k] = x;
	d->y[k] = y;
	d->labels[k] = l;
}

// Lines have growing x.
static void sort_by_cost(struct drawn *d, size_t from, size_t n)
{
	for (size_t i = from + 1; i < from + n; i++)
		for (size_t k = i; k > from && d->x[k] < d->x[k - 1]; k--)
			swap_points(d, k, k - 1);
}

void frontier_report_svg(const struct frontier_report *r, struct buf *out)
{
	const struct backtest *b = &r->frontier->scene;
	char title[TITLE_BYTES], y_title[TITLE_BYTES];
	struct drawn d = {.n_series = 0};
	collect(r, &d);
	for (size_t i = 0, from = 0; i < d.n_series; from += d.series[i++].n)
		sort_by_cost(&d, from, d.series[i].n);
	snprintf(title, sizeof title, "%s on %s", r->policy->name, b->file);
	snprintf(y_title, sizeof y_title, "late (wait above %g s), %%", b->config.wait_s);
	const struct chart c = {
	        .id = "frontier",
	        .title = title,
	        .description = "GPU-hours against late requests: left is cheaper, down is earlier.",
	        .x = {.title = "GPU-hours", .scale = CHART_LINEAR},
	        .y = {.title = y_title, .scale = CHART_LOG},
	        .series = d.series,
	        .n_series = d.n_series,
	        .height = 420,
	};
	svg_chart_put_document(out, &c);
}
