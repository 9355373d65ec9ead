// SPDX-License-Identifier: Apache-2.0
// The charts of a backtest's page: demand and replicas over time, with a checkbox for each curve, and cost against
// lateness.
#ifndef GPUSCALE_CLI_REPLAY_BACKTEST_CHARTS_H
#define GPUSCALE_CLI_REPLAY_BACKTEST_CHARTS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/replay/svg_chart.h"
#include "replay/backtest.h"
#include "replay/backtest_history.h"

struct backtest_history;
struct backtest_report;
struct buf;
struct err;

// Tracks as the series of a chart. Zeroed memory has none.
#define CHART_TRACKS_MAX (BACKTEST_ROWS_MAX + 1)
struct chart_tracks {
	struct chart_series series[CHART_TRACKS_MAX];
	double x[CHART_TRACKS_MAX][TRACK_POINTS_MAX], y[CHART_TRACKS_MAX][TRACK_POINTS_MAX];
	size_t n;
};
// Adds a track, unless it is empty. `name` is not copied.
void backtest_charts_add(struct chart_tracks *c, const struct track *t, const char *name, enum chart_style style,
                         enum chart_mark mark);
// Appends a chart over time with its legend, in which each curve has a checkbox when `has_boxes` is set: once per page.
void backtest_charts_put_figure(struct buf *out, const struct chart *c, bool has_boxes);

// The look of a row, in every chart and in the table.
enum chart_style backtest_charts_style(const struct backtest_row *row);
// Appends a section. Returns 0, or -1 and *e (ERR_INTERNAL).
int backtest_charts_put_over_time(struct buf *out, const struct backtest_report *r, const struct backtest_history *h,
                                  struct err *e);
// Append cost against lateness: as a section, and as a document of its own. Set out->failed without memory.
void backtest_charts_put_frontier(struct buf *out, const struct backtest_report *r);
void backtest_charts_put_document(struct buf *out, const struct backtest_report *r);
// Appends the rules that hide a curve while its checkbox is not checked, for the inside of a <style> element.
void backtest_charts_put_toggle_rules(struct buf *out);

#endif
