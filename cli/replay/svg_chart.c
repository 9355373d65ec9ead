// SPDX-License-Identifier: Apache-2.0
// The width of a chart on a page is unknown. Lines are drawn on UNITS horizontal units that the browser stretches, with
// strokes that do not stretch; ticks, points and texts are placed in percent of the width.
#include "cli/replay/svg_chart.h"

#include "cli/term/cli.h"

#define UNITS        1000
#define X_TICKS      9
#define Y_TICKS      5
#define POINTS_MAX   256 // whose labels avoid each other
#define LABEL_PX     7.0 // width of a character, in units of a plot that is 900 px wide
#define LABEL_HEIGHT 14.0
#define POINT_PX     5.0 // from the centre of a point to its edge

// A document.
#define DOCUMENT_WIDTH 960
#define MARGIN_LEFT    64
#define MARGIN_RIGHT   40
#define MARGIN_BOTTOM  52
#define TITLE_HEIGHT   44
#define LEGEND_LINE    22
#define SWATCH_WIDTH   30

// An axis.
#define SECOND_MS  1000.0
#define MINUTE_MS  (60 * SECOND_MS)
#define DAY_MS     (24 * 60 * MINUTE_MS)
#define EPSILON    1e-9
#define VALUE_MAX  1e300 // near the end of double, the axis itself would overflow
#define LOG_SPAN   1e5
#define ZERO_SHARE 0.07
#define TIME_MAX   253402300799000.0 // 9999-12-31T23:59:59Z

// Colours have a contrast of at least 4.5 with the background, light and dark (test_svg_chart).
static const struct {
	const char *name, *light, *dark, *dash, *point;
} styles[] = {
        // clang-format off
        [CHART_POLICY]  = {"policy",  "#0b57d0", "#86b4ff", "",         "M0-5.5A5.5 5.5 0 1 1 0 5.5A5.5 5.5 0 1 1 0-5.5Z"},
        [CHART_ACTUAL]  = {"actual",  "#15181d", "#e8ebf0", "7 3",      "M-4.5-4.5H4.5V4.5H-4.5Z"},
        [CHART_DEMAND]  = {"demand",  "#59616e", "#9ba4b2", "",         "M-5 0H5"},
        [CHART_HPA]     = {"hpa",     "#9a4b00", "#f0a35a", "2 2",      "M0-5.5L5.2 4.5H-5.2Z"},
        [CHART_KEDA]    = {"keda",    "#7434b8", "#c3a6ff", "9 3 2 3",  "M0-6L6 0L0 6L-6 0Z"},
        [CHART_WPA]     = {"wpa",     "#0a6b4b", "#5fd3a3", "4 2",      "M0 5.5L5.2-4.5H-5.2Z"},
        [CHART_KNATIVE] = {"knative", "#ad1f67", "#ff8fc0", "1 3",      "M-4.5-4.5L4.5 4.5M4.5-4.5L-4.5 4.5"},
        [CHART_FIXED]   = {"fixed",   "#665933", "#cfbf8d", "12 3",     "M-5.5 0H5.5M0-5.5V5.5"},
        [CHART_BOUND]   = {"bound",   "#006874", "#4fc8d8", "10 3 1 3", "M0-6L1.8-1.8L6 0L1.8 1.8L0 6L-1.8 1.8L-6 0L-1.8-1.8Z"},
        [CHART_OTHER]   = {"other",   "#b3261e", "#ff9187", "3 5",      "M-5-2.5H5V2.5H-5Z"},
        // clang-format on
};
_Static_assert(sizeof styles / sizeof *styles == CHART_STYLE__COUNT, "one row per style");

const char *chart_style_name(enum chart_style style)
{
	return styles[style].name;
}

// ---- values on an axis ----

void chart_number(char out[CHART_LABEL_BYTES], double value)
{
	static const struct {
		double unit;
		const char *suffix;
	} units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
	char number[NUM_TEXT_BYTES];
	const char *suffix = "";
	for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
		if (isfinite(value) && fabs(value) >= units[i].unit * (1 - EPSILON)) {
			value /= units[i].unit;
			suffix = units[i].suffix;
			break;
		}
	double digits = value == 0 || !isfinite(value) ? 0 : 2 - floor(log10(fabs(value)));
	double power = pow(10, digits), rounded = round(value * power) / power;
	num_format_f64(number, isfinite(rounded) ? rounded + 0.0 : value);
	snprintf(out, CHART_LABEL_BYTES, "%.24s%s", number, suffix);
}

static struct chart_tick *add_tick(struct chart_axis *a, double value)
{
	// Should there be more ticks than room, the last one is replaced.
	a->n_ticks += a->n_ticks < CHART_TICKS_MAX;
	struct chart_tick *t = &a->ticks[a->n_ticks - 1];
	t->value = value;
	chart_number(t->label, value);
	return t;
}

// The smallest of 1, 2 and 5 times a power of ten that is not below v > 0.
static double round_up(double v)
{
	double power = pow(10, floor(log10(v)));
	static const double nice[] = {1, 2, 5};
	for (size_t i = 0; i < sizeof nice / sizeof nice[0]; i++)
		if (nice[i] * power >= v * (1 - EPSILON))
			return nice[i] * power;
	return 10 * power;
}

static double round_down(double v)
{
	double power = pow(10, floor(log10(v)));
	return v >= 5 * power * (1 - EPSILON) ? 5 * power : v >= 2 * power * (1 - EPSILON) ? 2 * power : power;
}

static void set_linear(struct chart_axis *a, double min, double max, bool from_zero, int wanted)
{
	if (from_zero && min > 0)
		min = 0;
	if (from_zero && max < 0)
		max = 0;
	if (!(max - min > EPSILON * fmax(fabs(max), fabs(min)))) { // one value
		double room = max == 0 ? 1 : fabs(max) * 0.1;
		min = from_zero || min == 0 ? min : min - room;
		max += room;
	}
	double step = round_up((max - min) / wanted);
	a->min = floor(min / step + EPSILON) * step;
	a->max = ceil(max / step - EPSILON) * step;
	double n = round((a->max - a->min) / step);
	for (int i = 0; i <= (int)n; i++) {
		double v = a->min + i * step;
		add_tick(a, fabs(v) < step * EPSILON ? 0 : v);
	}
}

// From `min` > 0; with room for 0 when there are smaller values.
static void set_log(struct chart_axis *a, double min, double max, bool has_smaller, int wanted)
{
	if (min < max / LOG_SPAN) {
		min = max / LOG_SPAN;
		has_smaller = true;
	}
	a->min = round_down(min);
	a->max = round_up(max);
	if (a->max <= a->min * (1 + EPSILON))
		a->max = round_up(a->min * 1.5);
	a->zero = has_smaller ? ZERO_SHARE : 0;
	if (has_smaller)
		add_tick(a, 0);
	double decades = log10(a->max / a->min);
	int per_decade = decades * 3 <= wanted ? 3 : 1;
	int last = (int)floor(log10(a->max * (1 + EPSILON)));
	for (int decade = (int)floor(log10(a->min) + EPSILON); decade <= last; decade++) {
		static const double nice[] = {1, 2, 5};
		double power = pow(10, decade);
		for (int i = 0; i < per_decade; i++)
			if (nice[i] * power >= a->min * (1 - EPSILON) && nice[i] * power <= a->max * (1 + EPSILON))
				add_tick(a, nice[i] * power);
	}
}

static double time_step(double span, int wanted)
{
	static const double steps_s[] = {0.001, 0.01, 0.1,  1,    2,    5,     10,    15,    30,    60,     120,   300,
	                                 600,   900,  1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800};
	for (size_t i = 0; i < sizeof steps_s / sizeof steps_s[0]; i++)
		if (span / (steps_s[i] * SECOND_MS) <= wanted)
			return steps_s[i] * SECOND_MS;
	return round_up(span / DAY_MS / wanted) * DAY_MS;
}

// A day that starts is named; other ticks show the time of day.
static void time_label(char out[CHART_LABEL_BYTES], double value, double step)
{
	static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
	                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
	char stamp[NUM_TEXT_BYTES]; // 2026-01-05T09:00:00.123Z
	num_format_rfc3339_ms(stamp, (int64_t)value);
	if (fmod(value, DAY_MS) == 0) {
		int month = 10 * (stamp[5] - '0') + stamp[6] - '0', day = 10 * (stamp[8] - '0') + stamp[9] - '0';
		snprintf(out, CHART_LABEL_BYTES, "%s %d", months[(month - 1) % 12], day);
	} else {
		int len = step >= MINUTE_MS ? 5 : step >= SECOND_MS ? 8 : 12;
		snprintf(out, CHART_LABEL_BYTES, "%.*s", len, stamp + 11);
	}
}

static void set_time(struct chart_axis *a, double min, double max, int wanted)
{
	a->min = fmin(fmax(min, 0), TIME_MAX - 1);
	a->max = fmin(fmax(max, 0), TIME_MAX);
	if (!(a->max > a->min))
		a->max = a->min + SECOND_MS;
	double step = time_step(a->max - a->min, wanted);
	double first = ceil(a->min / step);
	int n = (int)(floor(a->max / step) - first) + 1;
	for (int i = 0; i < n; i++) {
		struct chart_tick *t = add_tick(a, (first + i) * step);
		time_label(t->label, t->value, step);
	}
}

void chart_axis_fit(struct chart_axis *a, enum chart_scale scale, const double *values, size_t n, bool from_zero,
                    int wanted)
{
	double min = INFINITY, max = -INFINITY;
	bool has_zero = false;
	memset(a, 0, sizeof *a);
	a->scale = scale;
	for (size_t i = 0; i < n; i++) {
		double v = values[i];
		if (!(fabs(v) < VALUE_MAX))
			continue;
		if (scale == CHART_LOG && v <= 0) {
			has_zero = true;
			continue;
		}
		min = fmin(min, v);
		max = fmax(max, v);
	}
	if (min > max) { // no value
		min = scale == CHART_LOG;
		max = 1;
		has_zero = true;
	}
	if (scale == CHART_TIME)
		set_time(a, min, max, wanted);
	else if (scale == CHART_LOG)
		set_log(a, min, max, has_zero, wanted);
	else
		set_linear(a, min, max, from_zero, wanted);
}

double chart_axis_position(const struct chart_axis *a, double value)
{
	double p;
	if (a->scale != CHART_LOG)
		p = (value - a->min) / (a->max - a->min);
	else if (a->zero > 0 && !(value >= a->min * (1 - EPSILON)))
		p = 0;
	else
		p = a->zero + (1 - a->zero) * log(fmax(value, a->min) / a->min) / log(a->max / a->min);
	return p < 0 ? 0 : p > 1 ? 1 : p;
}

// ---- elements ----

// Rounds to one decimal. "%g" writes it without a trailing zero: coordinates have at most five digits in front.
static double tenths(double v)
{
	return (double)llround(v * 10) / 10;
}

// x in percent.
static void put_line(struct buf *out, const char *class, double x1, double x2, double y1, double y2)
{
	print_xml(out, "<line class=\"%s\" x1=\"%g%%\" x2=\"%g%%\" y1=\"%g\" y2=\"%g\"/>\n", class, tenths(x1),
	          tenths(x2), tenths(y1), tenths(y2));
}

// ---- drawn axes ----

struct plot {
	struct buf *out;
	const struct chart *c;
	struct chart_axis x, y;
	double height;
};

// Fits one axis to the values of the series.
static void fit(struct plot *p, struct chart_axis *a, const struct chart_scale_options *o, bool is_y, int ticks)
{
	const struct chart *c = p->c;
	size_t n = 0;
	for (size_t i = 0; i < c->n_series; i++)
		n += c->series[i].n;
	double *all = calloc(n + 1, sizeof *all);
	if (!all) {
		p->out->failed = true;
		return;
	}
	n = 0;
	for (size_t i = 0; i < c->n_series; i++)
		for (size_t j = 0; j < c->series[i].n && !(is_y && c->series[i].is_cut); j++)
			all[n++] = is_y ? c->series[i].y[j] : c->series[i].x[j];
	chart_axis_fit(a, o->scale, all, n, o->from_zero, ticks);
	free(all);
}

static double y_px(const struct plot *p, double value)
{
	return (1 - chart_axis_position(&p->y, value)) * p->height;
}

static void put_x_axis(const struct plot *p)
{
	for (size_t i = 0; i < p->x.n_ticks; i++) {
		double at = 100 * chart_axis_position(&p->x, p->x.ticks[i].value);
		put_line(p->out, "grid", at, at, 0, p->height);
		// Every second one is hidden on narrow screens.
		print_xml(p->out, "<text class=\"%s\" text-anchor=\"%s\" x=\"%g%%\" y=\"%g\">%s</text>\n",
		          i % 2 ? "tick odd" : "tick", at > 99 ? "end" : "middle", tenths(at), tenths(p->height + 16),
		          p->x.ticks[i].label);
	}
	print_xml(p->out, "<text class=\"axis-title\" text-anchor=\"end\" x=\"100%%\" y=\"%g\">%s</text>\n",
	          tenths(p->height + 34), p->c->x.title);
}

static void put_y_axis(const struct plot *p)
{
	for (size_t i = 0; i < p->y.n_ticks; i++) {
		double at = y_px(p, p->y.ticks[i].value);
		put_line(p->out, "grid", 0, 100, at, at);
		print_xml(p->out, "<text class=\"tick\" text-anchor=\"end\" x=\"-7\" y=\"%g\">%s</text>\n",
		          tenths(at + 4), p->y.ticks[i].label);
	}
	put_line(p->out, "base", 0, 100, p->height, p->height);
	print_xml(p->out, "<text class=\"axis-title\" x=\"-40\" y=\"-12\">%s</text>\n", p->c->y.title);
}

// ---- lines ----

// The pen in tenths of a unit; what does not move it is not written.
struct pen {
	struct buf *out;
	int64_t x, y, start_x;
	bool down;
};

static void pen_to(struct pen *pen, int64_t x, int64_t y, bool is_step)
{
	bool is_move = !pen->down, is_line = !is_step && x != pen->x && y != pen->y;
	if (!is_move && is_step && y == pen->y)
		return; // the next point that differs draws the way to here
	if (is_move)
		pen->start_x = x;
	if (is_move || is_line) {
		buf_printf(pen->out, "%c%g %g", is_move ? 'M' : 'L', (double)x / 10, (double)y / 10);
	} else {
		if (x != pen->x)
			buf_printf(pen->out, "H%g", (double)x / 10);
		if (y != pen->y)
			buf_printf(pen->out, "V%g", (double)y / 10);
	}
	pen->x = x;
	pen->y = y;
	pen->down = true;
}

// Ends a line at the last x that it had.
static void pen_up(struct pen *pen, int64_t last_x, bool is_area, int64_t base)
{
	if (!pen->down)
		return;
	if (last_x != pen->x)
		buf_printf(pen->out, "H%g", (double)last_x / 10);
	else if (last_x == pen->start_x && !is_area)
		buf_puts(pen->out, "h0"); // one point alone: a dot, by its round caps
	if (is_area)
		buf_printf(pen->out, "V%gH%gZ", (double)base / 10, (double)pen->start_x / 10);
	pen->down = false;
}

static bool has_place(const struct chart_series *s, size_t i)
{
	return isfinite(s->x[i]) && isfinite(s->y[i]);
}

static void put_path_data(const struct plot *p, const struct chart_series *s, bool is_area)
{
	struct pen pen = {.out = p->out};
	int64_t x = 0, base = llround(10 * p->height);
	bool is_step = s->mark == CHART_STEPS || s->mark == CHART_AREA;
	for (size_t i = 0; i < s->n; i++) {
		if (isfinite(s->x[i])) // a gap ends where it starts
			x = llround(10 * UNITS * chart_axis_position(&p->x, s->x[i]));
		if (has_place(s, i))
			pen_to(&pen, x, llround(10 * y_px(p, s->y[i])), is_step);
		else
			pen_up(&pen, is_step ? x : pen.x, is_area, base);
	}
	pen_up(&pen, x, is_area, base);
}

static void put_lines(const struct plot *p, const struct chart_series *s)
{
	buf_printf(p->out, "<svg width=\"100%%\" height=\"%g\" viewBox=\"0 0 %d %g\" preserveAspectRatio=\"none\"%s>",
	           p->height, UNITS, p->height, s->is_cut ? " class=\"cut\"" : "");
	if (s->mark == CHART_AREA) {
		buf_puts(p->out, "<path class=\"surface\" d=\"");
		put_path_data(p, s, true);
		buf_puts(p->out, "\"/>");
	}
	buf_puts(p->out, "<path class=\"line\" vector-effect=\"non-scaling-stroke\" d=\"");
	put_path_data(p, s, false);
	buf_puts(p->out, "\"/></svg>\n");
}

// ---- points ----

struct box {
	double left, top, right, bottom; // px on a plot of UNITS width
};

struct labels {
	struct box taken[2 * POINTS_MAX];
	size_t n;
};

static double overlap(const struct labels *l, const struct box *b)
{
	double sum = 0;
	for (size_t i = 0; i < l->n; i++) {
		const struct box *t = &l->taken[i];
		double w = fmin(b->right, t->right) - fmax(b->left, t->left);
		double h = fmin(b->bottom, t->bottom) - fmax(b->top, t->top);
		sum += w > 0 && h > 0 ? w * h : 0;
	}
	return sum;
}

static void take(struct labels *l, const struct box *b)
{
	if (l->n < sizeof l->taken / sizeof l->taken[0])
		l->taken[l->n++] = *b;
}

static struct box box_of(double x, double y, double width, const char *anchor)
{
	double left = anchor[0] == 's' ? x : anchor[0] == 'e' ? x - width : x - width / 2;
	return (struct box){left, y - LABEL_HEIGHT + 3, left + width, y + 3};
}

// Puts the label where it covers the fewest other labels and points, as near to its own point as possible.
static void put_label(const struct plot *p, struct labels *l, double x, double y, const char *text)
{
	static const struct {
		double dx, dy;
		const char *anchor;
	} places[] = {
	        {9, 4, "start"},  {-9, 4, "end"},    {0, -9, "middle"}, {0, 19, "middle"}, {8, -7, "start"},
	        {-8, -7, "end"},  {8, 16, "start"},  {-8, 16, "end"},   {6, -21, "start"}, {-6, -21, "end"},
	        {6, 30, "start"}, {-6, 30, "end"},   {4, -35, "start"}, {-4, -35, "end"},  {4, 44, "start"},
	        {-4, 44, "end"},  {0, -49, "start"}, {0, -49, "end"},   {0, -63, "start"}, {0, -63, "end"},
	};
	double width = (double)strlen(text) * LABEL_PX, least = INFINITY;
	size_t best = 0;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		struct box b = box_of(x + places[i].dx, y + places[i].dy, width, places[i].anchor);
		double cost = overlap(l, &b) + (double)i;
		if (b.left < 0 || b.right > UNITS || b.top < -LABEL_HEIGHT || b.bottom > p->height + 4)
			cost += 1e4;
		if (cost < least) {
			least = cost;
			best = i;
		}
	}
	struct box b = box_of(x + places[best].dx, y + places[best].dy, width, places[best].anchor);
	take(l, &b);
	if (fabs(places[best].dy) > 20) // far away: a thin line leads to it
		buf_printf(p->out, "<path class=\"lead\" d=\"M0 %d V%g\"/>", places[best].dy < 0 ? -6 : 6,
		           places[best].dy < 0 ? places[best].dy + 4 : places[best].dy - 11);
	print_xml(p->out, "<text class=\"label\" x=\"%g\" y=\"%g\" text-anchor=\"%s\">%s</text>", places[best].dx,
	          places[best].dy, places[best].anchor, text);
}

static void put_points(const struct plot *p, const struct chart_series *s, struct labels *l)
{
	for (size_t i = 0; i < s->n; i++) {
		if (!has_place(s, i))
			continue;
		double x = chart_axis_position(&p->x, s->x[i]), y = y_px(p, s->y[i]);
		const char *label = s->labels ? s->labels[i] : NULL;
		char number[2][CHART_LABEL_BYTES];
		chart_number(number[0], s->x[i]);
		chart_number(number[1], s->y[i]);
		print_xml(p->out,
		          "<svg overflow=\"visible\" x=\"%g%%\" y=\"%g\"><title>%s: %s %s, %s %s</title><path "
		          "class=\"point\" d=\"%s\"/>",
		          tenths(100 * x), tenths(y), label ? label : s->name, p->c->x.title, number[0], p->c->y.title,
		          number[1], styles[s->style].point);
		if (label)
			put_label(p, l, x * UNITS, y, label);
		buf_puts(p->out, "</svg>\n");
	}
}

static bool has_points(const struct chart_series *s)
{
	return s->mark == CHART_POINTS || s->mark == CHART_LINKED_POINTS;
}

// Labels avoid the points of every series.
static void take_points(const struct plot *p, struct labels *l)
{
	for (size_t k = 0; k < p->c->n_series; k++) {
		const struct chart_series *s = &p->c->series[k];
		for (size_t i = 0; has_points(s) && i < s->n && l->n < POINTS_MAX; i++) {
			if (!has_place(s, i))
				continue;
			double x = chart_axis_position(&p->x, s->x[i]) * UNITS, y = y_px(p, s->y[i]);
			take(l, &(struct box){x - POINT_PX, y - POINT_PX, x + POINT_PX, y + POINT_PX});
		}
	}
}

// ---- charts ----

static void plot_init(struct plot *p, struct buf *out, const struct chart *c)
{
	*p = (struct plot){.out = out, .c = c, .height = c->height};
	fit(p, &p->x, &c->x, false, X_TICKS);
	fit(p, &p->y, &c->y, true, Y_TICKS);
}

static void begin_series(struct buf *out, const struct chart_series *s)
{
	print_xml(out, "<g class=\"series s-%s\" data-name=\"%s\">\n", styles[s->style].name, s->name);
}

static void put_plot(const struct plot *p)
{
	struct buf *out = p->out;
	const struct chart *c = p->c;
	struct labels l = {.n = 0};
	put_x_axis(p);
	put_y_axis(p);
	take_points(p, &l);
	bool is_empty = true;
	for (size_t k = 0; k < c->n_series; k++) {
		const struct chart_series *s = &c->series[k];
		for (size_t i = 0; i < s->n; i++)
			is_empty = is_empty && !has_place(s, i);
		if (s->mark == CHART_POINTS)
			continue;
		begin_series(out, s);
		put_lines(p, s);
		buf_puts(out, "</g>\n");
	}
	for (size_t k = 0; k < c->n_series; k++) { // above all lines
		if (!has_points(&c->series[k]))
			continue;
		begin_series(out, &c->series[k]);
		put_points(p, &c->series[k], &l);
		buf_puts(out, "</g>\n");
	}
	if (is_empty)
		buf_printf(out, "<text class=\"tick\" text-anchor=\"middle\" x=\"50%%\" y=\"%g\">no data</text>\n",
		           p->height / 2);
}

static void put_description(struct buf *out, const struct chart *c)
{
	print_xml(out, "<desc id=\"%s-desc\">%s</desc>\n", c->id, c->description);
}

// For scripts that read values from the paths.
static void put_range(struct buf *out, const char *name, const struct chart_axis *a)
{
	char min[NUM_TEXT_BYTES], max[NUM_TEXT_BYTES];
	num_format_f64(min, a->min);
	num_format_f64(max, a->max);
	buf_printf(out, " data-%s=\"%s %s\"", name, min, max);
}

void svg_chart_put(struct buf *out, const struct chart *c)
{
	struct plot p;
	plot_init(&p, out, c);
	buf_printf(out, "<svg id=\"%s\" class=\"plot\" width=\"100%%\" height=\"%g\"", c->id, p.height);
	if (c->x.scale != CHART_LOG && c->y.scale != CHART_LOG) {
		put_range(out, "x", &p.x);
		put_range(out, "y", &p.y);
	}
	// A <title> would hang over the chart as a tooltip.
	print_xml(out, " role=\"img\" aria-describedby=\"%s-desc\" aria-label=\"%s\">\n", c->id, c->title);
	put_description(out, c);
	put_plot(&p);
	buf_puts(out, "</svg>\n");
}

static void put_sample(struct buf *out, enum chart_style style, enum chart_mark mark)
{
	buf_printf(out, "<g class=\"series s-%s\">", chart_style_name(style));
	if (mark == CHART_AREA)
		buf_puts(out, "<path class=\"surface\" d=\"M0 2H24V12H0Z\"/>");
	if (mark != CHART_POINTS)
		buf_printf(out, "<path class=\"line\" d=\"M0 %dH24\"/>", mark == CHART_AREA ? 2 : 6);
	if (mark == CHART_POINTS || mark == CHART_LINKED_POINTS)
		buf_printf(out, "<path class=\"point\" transform=\"translate(12 6)\" d=\"%s\"/>", styles[style].point);
	buf_puts(out, "</g>");
}

void svg_chart_put_swatch(struct buf *out, enum chart_style style, enum chart_mark mark)
{
	buf_puts(out, "<svg class=\"swatch\" width=\"24\" height=\"12\" viewBox=\"0 0 24 12\" aria-hidden=\"true\">");
	put_sample(out, style, mark);
	buf_puts(out, "</svg>");
}

static void put_colours(struct buf *out, bool dark)
{
	for (int i = 0; i < CHART_STYLE__COUNT; i++)
		buf_printf(out, ".s-%s{color:%s}", styles[i].name, dark ? styles[i].dark : styles[i].light);
}

void svg_chart_put_style(struct buf *out)
{
	buf_puts(out, ".plot,.plot svg{display:block;overflow:visible}.plot svg.cut{overflow:hidden}"
	              ".plot text{font-size:11px;fill:#59616e}"
	              ".plot .label{fill:currentColor;stroke:#fff;stroke-width:3px;paint-order:stroke}"
	              ".grid{stroke:#e2e5ea}.base{stroke:#858d99}.series{fill:none;stroke:none}"
	              ".line{stroke:currentColor;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}"
	              ".s-policy .line{stroke-width:2.5}.s-demand .line{stroke-width:1}"
	              ".surface{fill:currentColor;opacity:.16}.lead{stroke:currentColor;opacity:.6}"
	              ".point{fill:currentColor;stroke:currentColor;stroke-width:2;stroke-linejoin:round}"
	              ".s-policy .label{font-weight:650}");
	put_colours(out, false);
	for (int i = 0; i < CHART_STYLE__COUNT; i++)
		if (styles[i].dash[0])
			buf_printf(out, ".s-%s .line{stroke-dasharray:%s;stroke-linecap:butt}", styles[i].name,
			           styles[i].dash);
	buf_puts(out, "@media (max-width:40rem){.odd{display:none}}"
	              "@media screen and (prefers-color-scheme:dark){.plot text{fill:#9ba4b2}"
	              ".plot .label{fill:currentColor;stroke:#111418}.grid{stroke:#2a3038}.base{stroke:#6c7583}");
	put_colours(out, true);
	buf_puts(out, "}");
}

// Swatches and names from left to right, in as many lines as they need; returns their height.
static double put_legend(struct buf *out, const struct chart *c, double top)
{
	double x = MARGIN_LEFT, y = top;
	for (size_t i = 0; i < c->n_series; i++) {
		const struct chart_series *s = &c->series[i];
		double width = SWATCH_WIDTH + (double)strlen(s->name) * LABEL_PX + 18;
		if (x > MARGIN_LEFT && x + width > DOCUMENT_WIDTH - MARGIN_RIGHT) {
			x = MARGIN_LEFT;
			y += LEGEND_LINE;
		}
		buf_printf(out, "<g transform=\"translate(%g %g)\">", x, y);
		put_sample(out, s->style, s->mark);
		print_xml(out, "<text x=\"%d\" y=\"10\">%s</text></g>\n", SWATCH_WIDTH, s->name);
		x += width;
	}
	return c->n_series ? y + LEGEND_LINE - top : 0;
}

void svg_chart_put_document(struct buf *out, const struct chart *c)
{
	struct plot p;
	struct buf legend = BUF(out->max);
	plot_init(&p, out, c);
	double legend_height = put_legend(&legend, c, TITLE_HEIGHT);
	double top = TITLE_HEIGHT + legend_height + 28, height = top + c->height + MARGIN_BOTTOM;
	buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%g\" viewBox=\"0 0 %d %g\"",
	           DOCUMENT_WIDTH, height, DOCUMENT_WIDTH, height);
	print_xml(out, " role=\"img\" aria-labelledby=\"%s-title %s-desc\">\n<title id=\"%s-title\">%s</title>\n",
	          c->id, c->id, c->id, c->title);
	put_description(out, c);
	buf_puts(out, "<style>text{font-family:system-ui,sans-serif;font-size:12px;fill:#15181d}"
	              ".heading{font-size:16px;font-weight:650}.ground{fill:#fff}");
	svg_chart_put_style(out);
	buf_puts(out, "@media screen and (prefers-color-scheme:dark){text,.heading{fill:#e8ebf0}.ground{fill:#111418}}"
	              "</style>\n<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n");
	print_xml(out, "<text class=\"heading\" x=\"%d\" y=\"28\">%s</text>\n", MARGIN_LEFT, c->title);
	buf_put(out, buf_str(&legend), legend.len);
	buf_printf(out, "<svg class=\"plot\" x=\"%d\" y=\"%g\" width=\"%d\" height=\"%g\" overflow=\"visible\">\n",
	           MARGIN_LEFT, top, DOCUMENT_WIDTH - MARGIN_LEFT - MARGIN_RIGHT, p.height);
	put_plot(&p);
	buf_puts(out, "</svg>\n</svg>\n");
	out->failed = out->failed || legend.failed;
	buf_done(&legend);
}
