// SPDX-License-Identifier: Apache-2.0
#include "test/support/timeline_path.h"

#include <math.h>
#include <stdlib.h>

#include "base/buf.h"

double timeline_x(const struct timeline_frame *f, int64_t time_ms)
{
	return f->left + (f->right - f->left) * (double)(time_ms - f->t0_ms) / (double)(f->t1_ms - f->t0_ms);
}

double timeline_y(const struct timeline_frame *f, double value)
{
	double share = value / f->top;
	share = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
	return f->lower - (f->lower - f->upper) * share;
}

void timeline_put_coord(struct buf *out, double v)
{
	long tenths = lround(v * 10.0);
	const char *sign = tenths < 0 ? "-" : "";
	tenths = labs(tenths);
	if (tenths % 10)
		buf_printf(out, "%s%ld.%ld", sign, tenths / 10, tenths % 10);
	else
		buf_printf(out, "%s%ld", sign, tenths / 10);
}

// ---- thinning ----

#define NOT_SEEN UINT32_MAX

struct column {
	uint32_t first, last, lowest, highest, gap;
};

static const struct column empty_column = {NOT_SEEN, NOT_SEEN, NOT_SEEN, NOT_SEEN, NOT_SEEN};

static size_t put_column(const struct column *c, uint32_t *ret)
{
	uint32_t all[TIMELINE_KEPT_PER_COLUMN] = {c->first, c->lowest, c->highest, c->gap, c->last};
	for (size_t i = 1; i < TIMELINE_KEPT_PER_COLUMN; i++)
		for (size_t j = i; j > 0 && all[j] < all[j - 1]; j--) {
			uint32_t swap = all[j];
			all[j] = all[j - 1];
			all[j - 1] = swap;
		}
	size_t n = 0;
	for (size_t i = 0; i < TIMELINE_KEPT_PER_COLUMN && all[i] != NOT_SEEN; i++)
		if (n == 0 || ret[n - 1] != all[i])
			ret[n++] = all[i];
	return n;
}

size_t timeline_thin(const struct timeline_frame *f, const struct timeline_point *points, size_t n,
                     timeline_series_fn *value, uint32_t *ret_kept)
{
	struct column c = empty_column;
	size_t n_kept = 0;
	double column_x = 0.0, low = 0.0, high = 0.0;
	for (uint32_t i = 0; i < n; i++) {
		double x = floor(timeline_x(f, points[i].time_ms)), v = value(&points[i]);
		if (i == 0 || x > column_x) {
			n_kept += put_column(&c, ret_kept + n_kept);
			c = empty_column;
			c.first = i;
			column_x = x;
		}
		c.last = i;
		if (isnan(v)) {
			c.gap = i;
			continue;
		}
		if (c.lowest == NOT_SEEN || v < low) {
			c.lowest = i;
			low = v;
		}
		if (c.highest == NOT_SEEN || v > high) {
			c.highest = i;
			high = v;
		}
	}
	return n_kept + put_column(&c, ret_kept + n_kept);
}

// ---- drawing ----

struct pen {
	struct buf *out;
	double x, y, start_x;
	bool down;
};

static void put_xy(struct buf *out, char command, double x, double y)
{
	buf_putc(out, command);
	timeline_put_coord(out, x);
	buf_putc(out, ' ');
	timeline_put_coord(out, y);
}

static void lift(struct pen *pen, bool area, double base_y)
{
	if (pen->down && area) {
		put_xy(pen->out, 'L', pen->x, base_y);
		put_xy(pen->out, 'L', pen->start_x, base_y);
		buf_putc(pen->out, 'Z');
	}
	pen->down = false;
}

static void move_to(struct pen *pen, double x, double y, bool step)
{
	if (!pen->down) {
		put_xy(pen->out, 'M', x, y);
		put_xy(pen->out, 'L', x, y); // so that a point alone is drawn
		pen->start_x = x;
		pen->down = true;
	} else if (step && y != pen->y) {
		put_xy(pen->out, 'L', x, pen->y);
		put_xy(pen->out, 'L', x, y);
	} else {
		put_xy(pen->out, 'L', x, y);
	}
	pen->x = x;
	pen->y = y;
}

void timeline_put_path(struct buf *out, const struct timeline_frame *f, const struct timeline_point *points,
                       const uint32_t *kept, size_t n_kept, timeline_series_fn *value, bool step, bool area,
                       double base)
{
	struct pen pen = {.out = out};
	double base_y = timeline_y(f, base);
	for (size_t i = 0; i < n_kept; i++) {
		const struct timeline_point *p = &points[kept[i]];
		double v = value(p), x = timeline_x(f, p->time_ms);
		if (isnan(v)) {
			// A value holds until the point that no longer knows it.
			if (pen.down && step)
				move_to(&pen, x, pen.y, true);
			lift(&pen, area, base_y);
			continue;
		}
		// Inside a run of equal values only the ends matter.
		double y = timeline_y(f, v);
		bool same = pen.down && y == pen.y && i + 1 < n_kept && value(&points[kept[i + 1]]) == v;
		if (!same)
			move_to(&pen, x, y, step);
	}
	lift(&pen, area, base_y);
}
