// SPDX-License-Identifier: Apache-2.0
#include "test/support/timeline.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "base/xml_text.h"
#include "test/support/timeline_axis.h"
#include "test/support/timeline_path.h"
#include "test/support/timeline_svg.h"

#define WIDTH_DEFAULT  960
#define HEIGHT_DEFAULT 600
// px
#define MARGIN        24.0
#define MARGIN_LEFT   60.0 // value labels
#define MARGIN_RIGHT  52.0 // mark labels
#define HEADER        30.0 // above each panel: its name, a note, its legend
#define PANEL_GAP     14.0
#define AXIS          48.0 // time labels and caption
#define TITLE         34.0
#define SUBTITLE      20.0
#define NOTE_MIN      700.0 // narrower pictures have no room for notes beside the legends
#define MARK_MIN_GAP  7.0   // between two scale marks of one direction
#define TIME_TICK_GAP 90.0
#define GUIDES_MAX    40 // scale events that get a line through all panels; more would hide the curves

#define TIME_MAX_MS (INT64_C(9000) * 365 * 86400 * 1000)

enum panel { PANEL_DEMAND, PANEL_UTILIZATION, PANEL_REPLICAS, PANEL__COUNT };

static const char style[] =
        "<style>"
        "text{font-family:system-ui,\"Segoe UI\",Helvetica,Arial,sans-serif;font-size:12px;fill:#59636e}"
        ".title{font-size:18px;font-weight:600;fill:#1f2328}.name{font-size:13px;font-weight:600;fill:#1f2328}"
        ".card{fill:#ffffff;stroke:#d1d9e0}.plot{fill:#f6f8fa}.grid{stroke:#d1d9e0;stroke-width:1}"
        ".base{stroke:#818b98;stroke-width:1}.guide{stroke:#818b98;stroke-width:1;stroke-dasharray:2 4;opacity:.6}"
        "path{stroke-linejoin:round;stroke-linecap:round}"
        ".demand{fill:none;stroke:#0969da;stroke-width:1.8}.demand-area{fill:#0969da;opacity:.16}"
        ".util{fill:none;stroke:#1a7f37;stroke-width:1.8}.band{fill:#1a7f37;opacity:.13}"
        ".mark{stroke:#1a7f37;stroke-width:1;stroke-dasharray:5 4;opacity:.7}.mark-label{fill:#1a7f37}"
        ".hot{fill:none;stroke:#cf222e;stroke-width:2.2}.hot-area{fill:#cf222e;opacity:.28}"
        ".desired{fill:none;stroke:#8250df;stroke-width:2}.ready{fill:none;stroke:#bf8700;stroke-width:1.5}"
        ".ready-area{fill:#d4a72c;opacity:.26}.up{fill:#1a7f37}.down{fill:#bc4c00}"
        ".dense .demand,.dense .util,.dense .hot{stroke-width:.9}"
        "@media (prefers-color-scheme:dark){"
        "text{fill:#9198a1}.title,.name{fill:#f0f6fc}.card{fill:#0d1117;stroke:#3d444d}.plot{fill:#151b23}"
        ".grid{stroke:#2a313c}.base,.guide{stroke:#656c76}.demand{stroke:#4493f8}.demand-area{fill:#4493f8}"
        ".util,.mark{stroke:#3fb950}.band{fill:#3fb950;opacity:.18}.mark-label{fill:#3fb950}.hot{stroke:#f85149}"
        ".hot-area{fill:#f85149;opacity:.4}.desired{stroke:#ab7df8}.ready{stroke:#d29922}.ready-area{fill:#d29922}"
        ".up{fill:#3fb950}.down{fill:#f0883e}}"
        "</style>\n";

struct totals {
	double demand_max, utilization_max; // 0 when nothing is known
	int32_t replicas_min, replicas_max; // of desired and ready
	int64_t above_ms;                   // utilisation above the high mark
	size_t ups, downs;
};

struct drawing {
	struct buf *out;
	const struct timeline_point *points;
	size_t n;
	struct timeline_options o; // with defaults filled in
	struct totals totals;
	struct timeline_frame frames[PANEL__COUNT];
	double steps[PANEL__COUNT]; // between value ticks
	uint32_t *kept;             // scratch of timeline_thin
};

// ---- series ----

static double finite_or_gap(double v)
{
	// Near the end of double the axis itself would overflow.
	return fabs(v) < 1e300 ? v : (double)NAN;
}

static double demand_of(const struct timeline_point *p)
{
	return finite_or_gap(p->demand);
}

static double utilization_of(const struct timeline_point *p)
{
	return finite_or_gap(p->utilization_ratio);
}

static double desired_of(const struct timeline_point *p)
{
	return (double)p->desired_replicas;
}

static double ready_of(const struct timeline_point *p)
{
	return (double)p->ready_replicas;
}

static void take_totals(struct drawing *d)
{
	struct totals *t = &d->totals;
	for (size_t i = 0; i < d->n; i++) {
		const struct timeline_point *p = &d->points[i];
		int32_t low = p->desired_replicas < p->ready_replicas ? p->desired_replicas : p->ready_replicas;
		int32_t high = p->desired_replicas > p->ready_replicas ? p->desired_replicas : p->ready_replicas;
		t->replicas_min = i == 0 || low < t->replicas_min ? low : t->replicas_min;
		t->replicas_max = i == 0 || high > t->replicas_max ? high : t->replicas_max;
		// Comparisons are false for a gap.
		if (demand_of(p) > t->demand_max)
			t->demand_max = p->demand;
		if (utilization_of(p) > t->utilization_max)
			t->utilization_max = p->utilization_ratio;
		if (d->o.high_ratio > 0.0 && utilization_of(p) > d->o.high_ratio && i + 1 < d->n)
			t->above_ms += d->points[i + 1].time_ms - p->time_ms;
		t->ups += p->action == ACTION_SCALE_UP;
		t->downs += p->action == ACTION_SCALE_DOWN;
	}
}

// ---- layout ----

static void lay_out(struct drawing *d)
{
	double upper = MARGIN / 2 + (d->o.title ? TITLE : 0.0) + (d->o.subtitle ? SUBTITLE : 0.0);
	double height = (d->o.height - upper - AXIS - (int)PANEL__COUNT * HEADER - (PANEL__COUNT - 1) * PANEL_GAP) /
	                (int)PANEL__COUNT;
	// A run without length still needs an axis.
	int64_t t0_ms = d->n ? d->points[0].time_ms : 0, t1_ms = d->n ? d->points[d->n - 1].time_ms : 0;
	if (t1_ms <= t0_ms)
		t1_ms = t0_ms + 1000;
	const struct totals *t = &d->totals;
	double utilization_max = t->utilization_max > 1.0 ? t->utilization_max : 1.0;
	if (d->o.high_ratio > utilization_max)
		utilization_max = d->o.high_ratio;
	// Room above the highest step for its mark.
	double max[PANEL__COUNT] = {t->demand_max, utilization_max, (double)t->replicas_max + 0.6};
	for (int i = 0; i < PANEL__COUNT; i++) {
		d->steps[i] = timeline_value_step(max[i], 5, i == PANEL_REPLICAS ? 1.0 : 0.0);
		upper += HEADER;
		d->frames[i] = (struct timeline_frame){
		        .left = MARGIN_LEFT,
		        .right = d->o.width - MARGIN_RIGHT,
		        .upper = upper,
		        .lower = upper + height,
		        .t0_ms = t0_ms,
		        .t1_ms = t1_ms,
		        .top = timeline_value_top(max[i], d->steps[i]),
		};
		upper += height + PANEL_GAP;
	}
}

// ---- panel furniture ----

static void put_heading(struct drawing *d, enum panel panel, const char *name, const char *note)
{
	const struct timeline_frame *f = &d->frames[panel];
	svg_put_heading(d->out, f->left, f->upper - 10.0, name, d->o.width >= NOTE_MIN ? note : "");
}

// Background and value ticks.
static void put_plot(struct drawing *d, enum panel panel)
{
	const struct timeline_frame *f = &d->frames[panel];
	svg_put_rect(d->out, "plot", NULL, f->left, f->upper, f->right - f->left, f->lower - f->upper);
	int ticks = (int)lround(f->top / d->steps[panel]);
	for (int i = 0; i <= ticks; i++) {
		double value = i * d->steps[panel], y = timeline_y(f, value);
		char label[TIMELINE_LABEL_BYTES];
		if (panel == PANEL_UTILIZATION)
			timeline_percent_label(label, value);
		else
			timeline_value_label(label, value);
		svg_put_line(d->out, i ? "grid" : "base", f->left, y, f->right, y);
		svg_put_text(d->out, f->left - 8.0, y + 4.0, NULL, "end", label);
	}
}

static void put_legend(struct drawing *d, enum panel panel, const struct svg_legend_item *items)
{
	svg_put_legend(d->out, d->frames[panel].right, d->frames[panel].upper - 10.0, items);
}

static void put_time_axis(struct drawing *d)
{
	const struct timeline_frame *last = &d->frames[PANEL_REPLICAS];
	int64_t span_ms = last->t1_ms - last->t0_ms;
	int wanted = (int)((last->right - last->left) / TIME_TICK_GAP);
	int64_t step_ms = timeline_time_step_ms(span_ms, wanted < 1 ? 1 : wanted);
	// UTC ticks stand on whole steps of the clock, elapsed ones on whole steps since the start.
	int64_t origin_ms = d->o.clock == TIMELINE_UTC ? 0 : last->t0_ms;
	int64_t past_ms = (last->t0_ms - origin_ms) % step_ms;
	int64_t first_ms = last->t0_ms + (past_ms > 0 ? step_ms - past_ms : -past_ms);
	for (int64_t t = first_ms; t <= last->t1_ms; t += step_ms) {
		double x = timeline_x(last, t);
		for (int i = 0; i < PANEL__COUNT; i++)
			svg_put_line(d->out, "grid", x, d->frames[i].upper, x, d->frames[i].lower);
		char label[TIMELINE_LABEL_BYTES];
		timeline_time_label(label, d->o.clock, t - origin_ms, step_ms);
		svg_put_text(d->out, x, last->lower + 18.0, NULL, "middle", label);
	}
	char caption[2 * NUM_TEXT_BYTES + 16];
	if (d->o.clock == TIMELINE_UTC) {
		char from[NUM_TEXT_BYTES], to[NUM_TEXT_BYTES]; // 2026-01-05T09:00:00Z
		num_format_rfc3339_ms(from, last->t0_ms);
		num_format_rfc3339_ms(to, last->t1_ms);
		snprintf(caption, sizeof caption, "%.10s %.5s to %.10s %.5s UTC", from, from + 11, to, to + 11);
	} else {
		bool is_min_s = step_ms >= 1000 && step_ms < 60000;
		snprintf(caption, sizeof caption, "time since start%s", is_min_s ? ", min:s" : "");
	}
	svg_put_text(d->out, (last->left + last->right) / 2.0, last->lower + 38.0, NULL, "middle", caption);
}

// ---- curves ----

static void put_series(struct drawing *d, enum panel panel, timeline_series_fn *value, const char *class, bool step,
                       bool area, double base)
{
	const struct timeline_frame *f = &d->frames[panel];
	size_t n_kept = timeline_thin(f, d->points, d->n, value, d->kept);
	buf_printf(d->out, "<path class=\"%s\" d=\"", class);
	timeline_put_path(d->out, f, d->points, d->kept, n_kept, value, step, area, base);
	buf_puts(d->out, "\"/>\n");
}

static void draw_demand(struct drawing *d)
{
	char peak[TIMELINE_LABEL_BYTES], note[TIMELINE_TEXT_BYTES_MAX + 64] = "";
	timeline_value_label(peak, d->totals.demand_max);
	if (d->totals.demand_max > 0.0)
		snprintf(note, sizeof note, "peak %s%s%s", peak, d->o.demand_unit ? " " : "",
		         d->o.demand_unit ? d->o.demand_unit : "");
	put_heading(d, PANEL_DEMAND, "Demand", note);
	put_series(d, PANEL_DEMAND, demand_of, "demand-area", false, true, 0.0);
	put_series(d, PANEL_DEMAND, demand_of, "demand", false, false, 0.0);
}

static void put_watermark(struct drawing *d, double ratio)
{
	const struct timeline_frame *f = &d->frames[PANEL_UTILIZATION];
	double y = timeline_y(f, ratio);
	char label[TIMELINE_LABEL_BYTES];
	timeline_percent_label(label, ratio);
	svg_put_line(d->out, "mark", f->left, y, f->right, y);
	svg_put_text(d->out, f->right + 6.0, y + 4.0, "mark-label", NULL, label);
}

// What is above the high mark is drawn a second time, in another colour, through a window that ends at the mark.
static void draw_above_high(struct drawing *d)
{
	const struct timeline_frame *f = &d->frames[PANEL_UTILIZATION];
	double y = timeline_y(f, d->o.high_ratio);
	buf_puts(d->out, "<clipPath id=\"above-high\">");
	svg_put_rect(d->out, NULL, NULL, f->left - 2.0, f->upper - 2.0, f->right - f->left + 4.0, y - f->upper + 2.0);
	buf_puts(d->out, "</clipPath>\n<g clip-path=\"url(#above-high)\">\n");
	put_series(d, PANEL_UTILIZATION, utilization_of, "hot-area", false, true, d->o.high_ratio);
	put_series(d, PANEL_UTILIZATION, utilization_of, "hot", false, false, 0.0);
	buf_puts(d->out, "</g>\n");
}

static void draw_utilization(struct drawing *d)
{
	static const struct svg_legend_item with_marks[] = {{"hot-area", "above the high mark", SVG_SWATCH_AREA},
	                                                    {"band", "between the marks", SVG_SWATCH_AREA},
	                                                    {"util", "utilisation", SVG_SWATCH_LINE},
	                                                    {0}};
	static const struct svg_legend_item with_high[] = {
	        {"hot-area", "above the high mark", SVG_SWATCH_AREA}, {"util", "utilisation", SVG_SWATCH_LINE}, {0}};
	const struct svg_legend_item *legend = d->o.high_ratio > 0.0 && d->o.low_ratio > 0.0 ? with_marks
	                                       : d->o.high_ratio > 0.0                       ? with_high
	                                                                                     : with_high + 1;
	const struct timeline_frame *f = &d->frames[PANEL_UTILIZATION];
	char note[96] = "";
	if (d->o.high_ratio > 0.0 && d->n > 1) {
		char time[NUM_TEXT_BYTES], mark[TIMELINE_LABEL_BYTES];
		timeline_percent_label(mark, d->o.high_ratio);
		num_format_duration_ms(time, (d->totals.above_ms + 500) / 1000 * 1000);
		snprintf(note, sizeof note, "above %s for %s, %.0f%% of the time", mark, time,
		         100.0 * (double)d->totals.above_ms / (double)(f->t1_ms - f->t0_ms));
	}
	put_heading(d, PANEL_UTILIZATION, "Utilisation", note);
	put_legend(d, PANEL_UTILIZATION, legend);
	if (d->o.high_ratio > 0.0 && d->o.low_ratio > 0.0) {
		double high_y = timeline_y(f, d->o.high_ratio), low_y = timeline_y(f, d->o.low_ratio);
		svg_put_rect(d->out, "band", NULL, f->left, high_y, f->right - f->left, low_y - high_y);
	}
	if (d->o.high_ratio > 0.0)
		put_watermark(d, d->o.high_ratio);
	if (d->o.low_ratio > 0.0)
		put_watermark(d, d->o.low_ratio);
	put_series(d, PANEL_UTILIZATION, utilization_of, "util", false, false, 0.0);
	if (d->o.high_ratio > 0.0)
		draw_above_high(d);
}

// One mark per event, or per MARK_MIN_GAP pixels where events are denser than that.
static void draw_events(struct drawing *d)
{
	const struct timeline_frame *f = &d->frames[PANEL_REPLICAS];
	double last_x[2] = {-HUGE_VAL, -HUGE_VAL};
	for (size_t i = 0; i < d->n; i++) {
		const struct timeline_point *p = &d->points[i];
		bool up = p->action == ACTION_SCALE_UP;
		double x = timeline_x(f, p->time_ms), y = timeline_y(f, (double)p->desired_replicas);
		if ((!up && p->action != ACTION_SCALE_DOWN) || x - last_x[up] < MARK_MIN_GAP)
			continue;
		last_x[up] = x;
		svg_put_mark(d->out, x, up ? y - 12.0 : y + 12.0 > f->lower ? f->lower : y + 12.0, up);
	}
}

static void draw_guides(struct drawing *d)
{
	if (d->totals.ups + d->totals.downs > GUIDES_MAX)
		return;
	for (size_t i = 0; i < d->n; i++) {
		if (d->points[i].action != ACTION_SCALE_UP && d->points[i].action != ACTION_SCALE_DOWN)
			continue;
		double x = timeline_x(&d->frames[0], d->points[i].time_ms);
		for (int j = 0; j < PANEL__COUNT; j++)
			svg_put_line(d->out, "guide", x, d->frames[j].upper, x, d->frames[j].lower);
	}
}

static void draw_replicas(struct drawing *d)
{
	static const struct svg_legend_item legend[] = {{"down", "scale down", SVG_SWATCH_DOWN},
	                                                {"up", "scale up", SVG_SWATCH_UP},
	                                                {"ready-area", "ready", SVG_SWATCH_AREA},
	                                                {"desired", "desired", SVG_SWATCH_LINE},
	                                                {0}};
	const struct totals *t = &d->totals;
	char note[96] = "";
	if (d->n)
		snprintf(note, sizeof note, "%d to %d, %zu up, %zu down", t->replicas_min, t->replicas_max, t->ups,
		         t->downs);
	put_heading(d, PANEL_REPLICAS, "Replicas", note);
	put_legend(d, PANEL_REPLICAS, legend);
	put_series(d, PANEL_REPLICAS, ready_of, "ready-area", true, true, 0.0);
	put_series(d, PANEL_REPLICAS, ready_of, "ready", true, false, 0.0);
	put_series(d, PANEL_REPLICAS, desired_of, "desired", true, false, 0.0);
	draw_events(d);
}

static void draw(struct drawing *d)
{
	struct buf *out = d->out;
	const char *title = d->o.title ? d->o.title : "Timeline";
	buf_printf(out,
	           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
	           "role=\"img\">\n<title>",
	           d->o.width, d->o.height, d->o.width, d->o.height);
	xml_put_text(out, title);
	buf_printf(out,
	           "</title>\n<desc>Demand, utilisation and replicas over time: %zu points, %zu scale-ups, %zu "
	           "scale-downs.</desc>\n",
	           d->n, d->totals.ups, d->totals.downs);
	buf_puts(out, style);
	svg_put_rect(out, "card", "rx=\"10\"", 0.5, 0.5, d->o.width - 1.0, d->o.height - 1.0);
	if (d->o.title)
		svg_put_text(out, MARGIN, MARGIN / 2 + 26.0, "title", NULL, d->o.title);
	if (d->o.subtitle)
		svg_put_text(out, MARGIN, MARGIN / 2 + (d->o.title ? TITLE : 0.0) + 14.0, NULL, NULL, d->o.subtitle);
	for (int i = 0; i < PANEL__COUNT; i++)
		put_plot(d, (enum panel)i);
	put_time_axis(d);
	draw_guides(d);
	// Curves of more points than pixels are drawn finer, or they become a solid bar.
	buf_printf(out, "<g%s>\n", d->n > (size_t)d->o.width ? " class=\"dense\"" : "");
	draw_demand(d);
	draw_utilization(d);
	draw_replicas(d);
	buf_puts(out, "</g>\n");
	if (d->n == 0)
		svg_put_text(out, d->o.width / 2.0, (d->frames[1].upper + d->frames[1].lower) / 2.0, "name", "middle",
		             "no data yet");
	buf_puts(out, "</svg>\n");
}

// ---- entry ----

static int check_text(const char *name, const char *text, struct err *e)
{
	if (text && strlen(text) > TIMELINE_TEXT_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "the %s of the timeline has %zu bytes; the ceiling is %d", name,
		               strlen(text), TIMELINE_TEXT_BYTES_MAX);
	return 0;
}

static int check_options(const struct timeline_options *o, struct err *e)
{
	if (o->width < TIMELINE_WIDTH_MIN || o->width > TIMELINE_WIDTH_MAX || o->height < TIMELINE_HEIGHT_MIN ||
	    o->height > TIMELINE_HEIGHT_MAX)
		return err_set(e, ERR_INPUT, "a timeline of %d x %d px is outside %d..%d x %d..%d", o->width, o->height,
		               TIMELINE_WIDTH_MIN, TIMELINE_WIDTH_MAX, TIMELINE_HEIGHT_MIN, TIMELINE_HEIGHT_MAX);
	// Negated so that NaN is refused too.
	if (!(o->low_ratio >= 0.0 && o->high_ratio >= 0.0 && o->high_ratio < 1e6) ||
	    !(o->low_ratio == 0.0 || o->high_ratio == 0.0 || o->low_ratio < o->high_ratio) || !(o->low_ratio < 1e6))
		return err_set(e, ERR_INPUT,
		               "the marks of the timeline must be 0 or more, the low one below the high one");
	if (check_text("title", o->title, e) < 0 || check_text("subtitle", o->subtitle, e) < 0 ||
	    check_text("demand unit", o->demand_unit, e) < 0)
		return -1;
	return 0;
}

static int check_points(const struct timeline_point *points, size_t n, struct err *e)
{
	if (n > TIMELINE_POINTS_MAX)
		return err_set(e, ERR_LIMIT, "the timeline has %zu points; the ceiling is %d", n, TIMELINE_POINTS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (points[i].time_ms < -TIME_MAX_MS || points[i].time_ms > TIME_MAX_MS)
			return err_set(e, ERR_INPUT, "the timeline's point %zu lies outside the years 1970 +- 9000", i);
		if (i && points[i].time_ms < points[i - 1].time_ms)
			return err_set(e, ERR_INPUT, "the timeline's point %zu goes back in time", i);
	}
	return 0;
}

int timeline_render(struct buf *out, const struct timeline_point *points, size_t n,
                    const struct timeline_options *options, struct err *e)
{
	struct drawing d = {.out = out, .points = points, .n = n, .o = *options};
	d.o.width = options->width ? options->width : WIDTH_DEFAULT;
	d.o.height = options->height ? options->height : HEIGHT_DEFAULT;
	if (check_options(&d.o, e) < 0 || check_points(points, n, e) < 0)
		return -1;
	// One column more than pixels: a point may lie on the right edge.
	d.kept = malloc(((size_t)d.o.width + 2) * TIMELINE_KEPT_PER_COLUMN * sizeof *d.kept);
	if (!d.kept)
		return err_set(e, ERR_INTERNAL, "out of memory");
	take_totals(&d);
	lay_out(&d);
	draw(&d);
	free(d.kept);
	if (out->failed)
		return err_set(e, ERR_LIMIT, "the timeline needs more than the ceiling of %zu bytes", out->max);
	return 0;
}
