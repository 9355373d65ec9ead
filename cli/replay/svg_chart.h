// SPDX-License-Identifier: Apache-2.0
// Charts as SVG: axes with round ticks, lines, step lines, areas and labelled points, each distinguished by colour and
// by dashes or shape. A chart is part of an HTML page, where it is as wide as its container, or a document of its own.
// Both are drawn here and not by a script, because a picture in a README or a report of CI runs none.
#ifndef GPUSCALE_CLI_REPLAY_SVG_CHART_H
#define GPUSCALE_CLI_REPLAY_SVG_CHART_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

// The axis of a chart: its range, round ticks, and where a value is on it.
#define CHART_TICKS_MAX   24
#define CHART_LABEL_BYTES 32

enum chart_scale {
	CHART_LINEAR,
	CHART_LOG,  // of values >= 0; 0 has a place of its own at the start
	CHART_TIME, // milliseconds since the epoch, UTC
};

struct chart_tick {
	double value;
	char label[CHART_LABEL_BYTES];
};

struct chart_axis {
	enum chart_scale scale;
	double min, max; // max > min; of CHART_LOG: both above 0
	double zero;     // CHART_LOG: the share of the axis below min, which holds 0; otherwise 0
	struct chart_tick ticks[CHART_TICKS_MAX];
	size_t n_ticks;
};

// Fits the axis to n values, with at most `wanted` ticks (2 .. 12) where the range permits. NaN and infinity are
// ignored; without a finite value the axis goes from 0 to 1. CHART_LINEAR and CHART_LOG extend the range to round
// values, and CHART_LINEAR starts at 0 when `from_zero` is set and no value is negative. CHART_LOG covers at most five
// decades below the largest value; smaller values have the place of 0.
void chart_axis_fit(struct chart_axis *a, enum chart_scale scale, const double *values, size_t n, bool from_zero,
                    int wanted);
// Returns the position of a finite value, from 0 (start) to 1 (end); values beyond the range are at its ends.
double chart_axis_position(const struct chart_axis *a, double value);

// Writes a number for people, with three significant digits: "0.25", "150", "1.5k", "2M".
void chart_number(char out[CHART_LABEL_BYTES], double value);

// One look for each kind of result, the same in every chart.
enum chart_style {
	CHART_POLICY,
	CHART_ACTUAL,
	CHART_DEMAND,
	CHART_HPA,
	CHART_KEDA,
	CHART_WPA,
	CHART_KNATIVE,
	CHART_FIXED,
	CHART_BOUND,
	CHART_OTHER,
	CHART_STYLE__COUNT
};
const char *chart_style_name(enum chart_style style); // "policy", for class names

enum chart_mark {
	CHART_STEPS, // each value holds until the next x
	CHART_AREA,  // a step line with a surface down to the start of the axis
	CHART_POINTS,
	CHART_LINKED_POINTS, // points that a line joins
};

struct chart_series {
	const char *name; // for the legend and for screen readers; any text
	enum chart_style style;
	enum chart_mark mark;
	const double *x, *y; // n each; NaN: a gap, or no point. Lines have growing x; an x may occur several times
	const char *const *labels; // beside points; n entries of any text; may be NULL, as may its entries
	size_t n;
	bool is_cut; // does not widen the range of y, and is cut off outside of it; not with CHART_AREA
};

struct chart_scale_options {
	const char *title; // "GPU-hours"; any text
	enum chart_scale scale;
	bool from_zero; // CHART_LINEAR starts at 0
};

struct chart {
	const char *id;          // letters, digits and '-'; unique on the page
	const char *title;       // any text
	const char *description; // what a person sees who looks at it, in a sentence; any text
	struct chart_scale_options x, y;
	const struct chart_series *series; // drawn in this order
	size_t n_series;
	int height; // of the plot, px
};

// Appends the rules that charts and swatches need: once per page, inside of a <style> element. They set colours for
// light and dark.
void svg_chart_put_style(struct buf *out);
// Appends the chart as an <svg> element for an HTML page, without a legend. Each series is a group with the class of
// its style ("s-policy") and its name in data-name; data-x and data-y have the ranges of linear axes and of time. Its
// container leaves room for labels: svg_chart_put_style() has the class "plot".
void svg_chart_put(struct buf *out, const struct chart *c);
// Appends a sample of line or point, for a legend.
void svg_chart_put_swatch(struct buf *out, enum chart_style style, enum chart_mark mark);
// Appends the chart as a complete document with title and legend. It needs nothing from outside.
void svg_chart_put_document(struct buf *out, const struct chart *c);

#endif
