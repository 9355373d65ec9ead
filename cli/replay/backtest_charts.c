// SPDX-License-Identifier: Apache-2.0
#include "cli/replay/backtest_charts.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/xml_text.h"
#include "cli/replay/backtest_report.h"
#include "cli/replay/svg_chart.h"
#include "policies/engine/policy.h"
#include "replay/backtest.h"
#include "replay/backtest_history.h"

#define HEIGHT          300
#define FRONTIER_HEIGHT 380

// ---- rows ----

enum chart_style backtest_charts_style(const struct backtest_row *row)
{
	static const enum chart_style of_peer[] = {CHART_HPA, CHART_KEDA, CHART_WPA, CHART_KNATIVE, CHART_FIXED};
	_Static_assert(sizeof of_peer / sizeof *of_peer == PEER__COUNT, "one style per peer");
	static const enum chart_style of_kind[] = {CHART_ACTUAL, CHART_POLICY, CHART_OTHER, CHART_FIXED, CHART_BOUND};
	_Static_assert(sizeof of_kind / sizeof *of_kind == BACKTEST__COUNT, "one style per kind");
	return row->kind == BACKTEST_PEER ? of_peer[row->peer] : of_kind[row->kind];
}

// The settings of a peer that were not its best are in the table and in the frontier, not in the chart over time.
static bool is_shown_over_time(const struct backtest_history *h, const struct backtest *b, size_t i)
{
	return h->has_row[i] && (b->rows[i].kind != BACKTEST_PEER || b->rows[i].is_best);
}

// ---- demand and replicas over time ----

// Peers start hidden, because many curves hide each other; a peer that rises far above the demand does not flatten the
// others.
static bool is_peer(enum chart_style style)
{
	return style >= CHART_HPA && style <= CHART_KNATIVE;
}

void backtest_charts_add(struct chart_tracks *c, const struct track *t, const char *name, enum chart_style style,
                         enum chart_mark mark)
{
	double *x = c->x[c->n], *y = c->y[c->n];
	size_t n = track_points(t, x, y);
	if (n == 0)
		return;
	c->series[c->n++] = (struct chart_series){.name = name, .style = style, .mark = mark, .x = x, .y = y, .n = n};
}

void backtest_charts_put_figure(struct buf *out, const struct chart *c, bool has_boxes)
{
	buf_printf(out, "<figure>\n<div class=\"legend\"%s>", has_boxes ? " role=\"group\" aria-label=\"Curves\"" : "");
	for (size_t i = 0; i < c->n_series; i++) {
		const struct chart_series *s = &c->series[i];
		buf_puts(out, has_boxes ? "<label>" : "<span>");
		if (has_boxes) // the style sheet obeys it
			buf_printf(out, "<input type=\"checkbox\" id=\"t-%s\"%s/>", chart_style_name(s->style),
			           is_peer(s->style) ? "" : " checked=\"\"");
		svg_chart_put_swatch(out, s->style, s->mark);
		xml_put_text(out, s->name);
		buf_puts(out, has_boxes ? "</label>" : "</span>");
	}
	buf_puts(out, "</div>\n<div class=\"frame\">");
	svg_chart_put(out, c);
	buf_puts(out, "</div><output></output></figure>\n");
}

int backtest_charts_put_over_time(struct buf *out, const struct backtest_report *r, const struct backtest_history *h,
                                  struct err *e)
{
	const struct backtest *b = r->backtest;
	struct chart_tracks *o = calloc(1, sizeof *o);
	if (!o)
		return err_set(e, ERR_INTERNAL, "out of memory");
	backtest_charts_add(o, &h->demand, "demand", CHART_DEMAND, CHART_AREA);
	for (size_t i = 0; i < b->n_rows; i++)
		if (is_shown_over_time(h, b, i) && b->rows[i].kind != BACKTEST_POLICY)
			backtest_charts_add(o, &h->rows[i], b->rows[i].name, backtest_charts_style(&b->rows[i]),
			                    CHART_STEPS);
	for (size_t i = 0; i < b->n_rows; i++) // on top
		if (b->rows[i].kind == BACKTEST_POLICY && h->has_row[i])
			backtest_charts_add(o, &h->rows[i], b->rows[i].name, CHART_POLICY, CHART_STEPS);
	for (size_t i = 0; i < o->n; i++)
		o->series[i].is_cut = is_peer(o->series[i].style);
	const struct chart c = {.id = "over-time",
	                        .title = b->config.open_loop ? "Replicas over time" : "Demand and replicas over time",
	                        .description = "The totals of each curve are in the table of results.",
	                        .x = {"UTC", CHART_TIME, false},
	                        .y = {"replicas", CHART_LINEAR, true},
	                        .series = o->series,
	                        .n_series = o->n,
	                        .height = HEIGHT};
	buf_puts(out, "<section id=\"time\" aria-labelledby=\"h-time\"><h2 id=\"h-time\">");
	buf_puts(out, c.title);
	buf_puts(out, "</h2>\n");
	backtest_charts_put_figure(out, &c, true);
	buf_puts(out, "</section>\n");
	free(o);
	return 0;
}

// A checkbox that is not checked hides its curve.
void backtest_charts_put_toggle_rules(struct buf *out)
{
	for (int i = 0; i < CHART_STYLE__COUNT; i++) {
		const char *name = chart_style_name((enum chart_style)i);
		buf_printf(out, "#time:has(#t-%s:not(:checked)) .plot .s-%s{display:none}\n", name, name);
	}
}

// ---- frontier ----

struct points {
	double x[BACKTEST_ROWS_MAX], y[BACKTEST_ROWS_MAX];
	const char *labels[BACKTEST_ROWS_MAX];
};

static const char *series_name(const struct backtest_report *r, const struct backtest_row *row)
{
	static const char *const names[BACKTEST__COUNT] = {
	        [BACKTEST_FIXED] = "fixed", [BACKTEST_BOUND] = "clairvoyant"};
	if (row->kind == BACKTEST_PEER)
		return peer_name(row->peer);
	if (r->backtest->config.sweep_threads == 0 || row->kind == BACKTEST_ACTUAL)
		return row->name;
	return row->kind == BACKTEST_POLICY ? r->policy->name : names[row->kind];
}

// One series per style; the settings of a peer are joined by a line, in a sweep those of each kind. A sweep has too
// many points for a label at each.
static size_t collect_points(const struct backtest_report *r, struct chart_series series[CHART_STYLE__COUNT],
                             struct points points[CHART_STYLE__COUNT])
{
	size_t n_series = 0;
	bool is_sweep = r->backtest->config.sweep_threads > 0;
	for (int style = CHART_STYLE__COUNT - 1; style >= 0; style--) { // the policy on top
		struct points *p = &points[style];
		const struct backtest_row *first = NULL;
		size_t n = 0;
		for (size_t i = 0; i < r->backtest->n_rows; i++) {
			const struct backtest_row *row = &r->backtest->rows[i];
			if ((int)backtest_charts_style(row) != style)
				continue;
			first = first ? first : row;
			p->x[n] = isnan(r->price) ? backtest_gpu_hours(r, row) : backtest_cost(r, row);
			p->y[n] = score_late_percent(&row->score);
			p->labels[n++] = is_sweep && row->kind != BACKTEST_POLICY && row->kind != BACKTEST_FIXED
			                         ? NULL
			                         : row->name;
		}
		if (n == 0)
			continue;
		series[n_series++] = (struct chart_series){
		        .name = series_name(r, first),
		        .style = (enum chart_style)style,
		        .mark = is_sweep || first->kind == BACKTEST_PEER ? CHART_LINKED_POINTS : CHART_POINTS,
		        .x = p->x,
		        .y = p->y,
		        .labels = p->labels,
		        .n = n};
	}
	return n_series;
}

static void put_frontier(struct buf *out, const struct backtest_report *r,
                         void (*put)(struct buf *, const struct chart *))
{
	struct chart_series series[CHART_STYLE__COUNT];
	struct points *points = calloc(CHART_STYLE__COUNT, sizeof *points);
	if (!points) {
		out->failed = true;
		return;
	}
	const struct chart c = {.id = "frontier",
	                        .title = "Cost against lateness",
	                        .description = "Each point is a row of the table of results.",
	                        .x = {isnan(r->price) ? "GPU-hours" : "cost", CHART_LINEAR, false},
	                        .y = {"late, %", CHART_LOG, false},
	                        .series = series,
	                        .n_series = collect_points(r, series, points),
	                        .height = FRONTIER_HEIGHT};
	put(out, &c);
	free(points);
}

void backtest_charts_put_document(struct buf *out, const struct backtest_report *r)
{
	put_frontier(out, r, svg_chart_put_document);
}

void backtest_charts_put_frontier(struct buf *out, const struct backtest_report *r)
{
	buf_puts(out, "<section aria-labelledby=\"h-frontier\"><h2 id=\"h-frontier\">Cost against lateness</h2>\n"
	              "<p>Lower is less late, further left is cheaper. Lines join the settings of one autoscaler.</p>\n"
	              "<figure class=\"wide\"><div class=\"scroll\" tabindex=\"0\" role=\"region\" "
	              "aria-labelledby=\"h-frontier\"><div class=\"frame\">");
	put_frontier(out, r, svg_chart_put);
	buf_puts(out, "</div></div></figure></section>\n");
}
