// SPDX-License-Identifier: Apache-2.0
#include "test/support/demo/picture.h"

#include <stdlib.h>

#include "base/buf.h"
#include "cli/replay/svg_chart.h"

#define WIDTH        960
#define PLOT_HEIGHT  110
#define CHART_HEIGHT (PLOT_HEIGHT + 146) // with the title, one line of legend and the axis

enum curve { DEMAND, UTILIZATION, HIGH, LOW, READY, SPEC, CURVE__COUNT };

static void collect(const struct picture *p, double *x, double *y[CURVE__COUNT])
{
	for (size_t i = 0; i < p->n; i++) {
		const struct picture_row *row = &p->rows[i];
		x[i] = row->time_s;
		y[DEMAND][i] = row->demand;
		y[UTILIZATION][i] = 100 * row->utilization_ratio;
		y[HIGH][i] = 100 * p->high_ratio;
		y[LOW][i] = 100 * p->low_ratio;
		y[READY][i] = row->ready_replicas;
		y[SPEC][i] = row->spec_replicas;
	}
}

// Each chart is a document of its own, which is an element of this one.
static void put_charts(struct buf *out, const struct picture *p, const double *x, double *y[CURVE__COUNT])
{
	static const struct {
		const char *id, *description, *unit;
		enum curve first, end;
	} charts[] = {
	        {"demand", "The requests that arrive.", "requests/s", DEMAND, UTILIZATION},
	        {"utilisation", "The mean activity of the GPUs against the watermarks.", "%", UTILIZATION, READY},
	        {"replicas", "The replicas that the policy ordered, and those that are ready.", "replicas", READY,
	         CURVE__COUNT},
	};
	static const struct chart_series looks[CURVE__COUNT] = {
	        [DEMAND] = {.name = "demand", .style = CHART_DEMAND, .mark = CHART_AREA},
	        [UTILIZATION] = {.name = "utilisation", .style = CHART_POLICY, .mark = CHART_STEPS},
	        [HIGH] = {.name = "high watermark", .style = CHART_OTHER, .mark = CHART_STEPS},
	        [LOW] = {.name = "low watermark", .style = CHART_WPA, .mark = CHART_STEPS},
	        [READY] = {.name = "ready", .style = CHART_DEMAND, .mark = CHART_AREA},
	        [SPEC] = {.name = "ordered", .style = CHART_POLICY, .mark = CHART_STEPS},
	};
	struct chart_series series[CURVE__COUNT];
	for (int i = 0; i < CURVE__COUNT; i++) {
		series[i] = looks[i];
		series[i].x = x;
		series[i].y = y[i];
		series[i].n = p->n;
	}
	for (size_t i = 0; i < sizeof charts / sizeof *charts; i++) {
		const struct chart c = {.id = charts[i].id,
		                        .title = p->titles[i],
		                        .description = charts[i].description,
		                        .x = {"seconds since the start", CHART_LINEAR, true},
		                        .y = {charts[i].unit, CHART_LINEAR, true},
		                        .series = &series[charts[i].first],
		                        .n_series = (size_t)(charts[i].end - charts[i].first),
		                        .height = PLOT_HEIGHT};
		buf_printf(out, "<svg y=\"%zu\">\n", i * CHART_HEIGHT);
		svg_chart_put_document(out, &c);
		buf_puts(out, "</svg>\n");
	}
}

void picture_put(struct buf *out, const struct picture *p)
{
	double *all = calloc((CURVE__COUNT + 1) * (p->n + 1), sizeof *all), *y[CURVE__COUNT];
	if (!all) {
		out->failed = true;
		return;
	}
	for (size_t i = 0; i < CURVE__COUNT; i++)
		y[i] = all + (i + 1) * (p->n + 1);
	collect(p, all, y);
	buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
	           WIDTH, 3 * CHART_HEIGHT, WIDTH, 3 * CHART_HEIGHT);
	put_charts(out, p, all, y);
	buf_puts(out, "</svg>\n");
	free(all);
}
