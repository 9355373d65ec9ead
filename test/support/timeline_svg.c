// SPDX-License-Identifier: Apache-2.0
#include "test/support/timeline_svg.h"

#include <string.h>

#include "base/buf.h"
#include "base/xml_text.h"
#include "test/support/timeline_path.h"

static void put_attribute(struct buf *out, const char *name, double v)
{
	buf_printf(out, " %s=\"", name);
	timeline_put_coord(out, v);
	buf_putc(out, '"');
}

void svg_put_text(struct buf *out, double x, double y, const char *class, const char *anchor, const char *s)
{
	buf_puts(out, "<text");
	put_attribute(out, "x", x);
	put_attribute(out, "y", y);
	if (class)
		buf_printf(out, " class=\"%s\"", class);
	if (anchor)
		buf_printf(out, " text-anchor=\"%s\"", anchor);
	buf_putc(out, '>');
	xml_put_text(out, s);
	buf_puts(out, "</text>\n");
}

void svg_put_heading(struct buf *out, double x, double y, const char *name, const char *note)
{
	buf_puts(out, "<text");
	put_attribute(out, "x", x);
	put_attribute(out, "y", y);
	buf_puts(out, "><tspan class=\"name\">");
	xml_put_text(out, name);
	buf_puts(out, "</tspan>");
	if (note[0]) {
		buf_puts(out, "<tspan dx=\"12\">");
		xml_put_text(out, note);
		buf_puts(out, "</tspan>");
	}
	buf_puts(out, "</text>\n");
}

void svg_put_line(struct buf *out, const char *class, double x1, double y1, double x2, double y2)
{
	buf_printf(out, "<line class=\"%s\"", class);
	put_attribute(out, "x1", x1);
	put_attribute(out, "y1", y1);
	put_attribute(out, "x2", x2);
	put_attribute(out, "y2", y2);
	buf_puts(out, "/>\n");
}

void svg_put_rect(struct buf *out, const char *class, const char *extra, double x, double y, double width,
                  double height)
{
	buf_puts(out, "<rect");
	if (class)
		buf_printf(out, " class=\"%s\"", class);
	put_attribute(out, "x", x);
	put_attribute(out, "y", y);
	put_attribute(out, "width", width);
	put_attribute(out, "height", height);
	buf_printf(out, "%s%s/>\n", extra ? " " : "", extra ? extra : "");
}

void svg_put_mark(struct buf *out, double x, double y, bool up)
{
	double base_y = up ? y + 8.0 : y - 8.0;
	buf_printf(out, "<path class=\"%s\" d=\"M", up ? "up" : "down");
	timeline_put_coord(out, x);
	buf_putc(out, ' ');
	timeline_put_coord(out, y);
	buf_putc(out, 'L');
	timeline_put_coord(out, x - 4.5);
	buf_putc(out, ' ');
	timeline_put_coord(out, base_y);
	buf_putc(out, 'L');
	timeline_put_coord(out, x + 4.5);
	buf_putc(out, ' ');
	timeline_put_coord(out, base_y);
	buf_puts(out, "Z\"/>\n");
}

// Width of the small text in a wide font, in px: where another is narrower, the items only stand further apart.
static double text_width(const char *s)
{
	double width = 0.0;
	for (; *s; s++)
		width += strchr("fijlrtI.,:;!'|()[] ", *s) ? 4.6 : strchr("mwMW%@", *s) ? 11.5 : 7.6;
	return width;
}

void svg_put_legend(struct buf *out, double right, double y, const struct svg_legend_item *items)
{
	double x = right;
	for (const struct svg_legend_item *item = items; item->class; item++) {
		x -= text_width(item->text);
		svg_put_text(out, x, y, NULL, NULL, item->text);
		bool is_mark = item->swatch == SVG_SWATCH_UP || item->swatch == SVG_SWATCH_DOWN;
		double width = is_mark ? 9.0 : 16.0;
		x -= width + 5.0;
		if (item->swatch == SVG_SWATCH_LINE)
			svg_put_line(out, item->class, x, y - 4.0, x + width, y - 4.0);
		else if (item->swatch == SVG_SWATCH_AREA)
			svg_put_rect(out, item->class, NULL, x, y - 9.0, width, 10.0);
		else
			svg_put_mark(out, x + width / 2, item->swatch == SVG_SWATCH_UP ? y - 9.0 : y,
			             item->swatch == SVG_SWATCH_UP);
		x -= 12.0;
	}
}
