// SPDX-License-Identifier: Apache-2.0
// SVG elements onto a buffer. Classes, anchors and attributes are names of this project; text comes from the caller and
// is escaped. Private to the timeline. Coordinates in px.
#ifndef GPUSCALE_TEST_SUPPORT_TIMELINE_SVG_H
#define GPUSCALE_TEST_SUPPORT_TIMELINE_SVG_H

#include <stdbool.h>

struct buf;

// class and anchor ("end", "middle") may be NULL.
void svg_put_text(struct buf *out, double x, double y, const char *class, const char *anchor, const char *s);
// name in class "name", note behind it whatever the font's width; note may be "".
void svg_put_heading(struct buf *out, double x, double y, const char *name, const char *note);
void svg_put_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2);
// class may be NULL; extra: more attributes, or NULL.
void svg_put_rect(struct buf *out, const char *class, const char *extra, double x, double y, double width,
                  double height);
// A triangle of 9 px, class "up" or "down", its tip at (x, y).
void svg_put_mark(struct buf *out, double x, double y, bool up);

enum svg_swatch { SVG_SWATCH_LINE, SVG_SWATCH_AREA, SVG_SWATCH_UP, SVG_SWATCH_DOWN };
struct svg_legend_item {
	const char *class; // NULL ends the list
	const char *text;
	enum svg_swatch swatch;
};
// One line of swatches with their texts, set from `right` to the left: the first item stands rightmost.
void svg_put_legend(struct buf *out, double right, double y, const struct svg_legend_item *items);

#endif
