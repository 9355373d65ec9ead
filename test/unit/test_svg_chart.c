// SPDX-License-Identifier: Apache-2.0
// Axes have round ticks whatever the range; charts survive no data, NaN and one point; outside text cannot become
// markup; every colour is readable on light and on dark ground.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/xml_text.h"
#include "cli/replay/svg_chart.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

// ---- axes ----

static void expect_ticks(const struct chart_axis *a, const char *want)
{
	struct buf got;
	buf_init(&got, 4096);
	for (size_t i = 0; i < a->n_ticks; i++)
		buf_printf(&got, "%s%s", i ? " " : "", a->ticks[i].label);
	assert_string_equal(buf_str(&got), want);
	buf_done(&got);
}

static void ticks_are_round(void **state)
{
	(void)state;
	static const struct {
		enum chart_scale scale;
		double min, max;
		bool from_zero;
		const char *want;
	} rows[] = {
	        // clang-format off
	        {CHART_LINEAR, 0, 9.3, true, "0 2 4 6 8 10"},
	        {CHART_LINEAR, 3, 9.3, true, "0 2 4 6 8 10"},
	        {CHART_LINEAR, 43, 51, false, "42 44 46 48 50 52"},
	        {CHART_LINEAR, -1, 1, true, "-1 -0.5 0 0.5 1"},
	        {CHART_LINEAR, 0, 0, true, "0 0.2 0.4 0.6 0.8 1"},
	        {CHART_LINEAR, 7, 7, false, "6 6.5 7 7.5 8"},
	        {CHART_LINEAR, 0, 12345678, true, "0 5M 10M 15M"},
	        {CHART_LINEAR, 0, 0.00031, true, "0 0.0001 0.0002 0.0003 0.0004"},
	        {CHART_LOG, 0.02, 43, false, "0.1 1 10"},
	        {CHART_LOG, 0, 43, false, "0 20 50"},
	        {CHART_LOG, 0, 0, false, "0 1 2"},
	        {CHART_LOG, 1e-9, 100, false, "0 0.001 0.01 0.1 1 10 100"},
	        {CHART_LOG, 3, 4, false, "2 5"},
	        {CHART_TIME, 0, 3600e3, false, "Jan 1 00:15 00:30 00:45 01:00"},
	        {CHART_TIME, 1767600000e3, 1767600090e3, false, "08:00:00 08:00:30 08:01:00 08:01:30"},
	        {CHART_TIME, 1767571200e3, 1767571200e3 + 4 * 86400e3, false, "Jan 5 Jan 6 Jan 7 Jan 8 Jan 9"},
	        {CHART_TIME, 1767571200e3, 1767571200e3, false, "Jan 5 00:00:01"},
	        // clang-format on
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct chart_axis a;
		const double range[] = {rows[i].min, rows[i].max};
		chart_axis_fit(&a, rows[i].scale, range, 2, rows[i].from_zero, 5);
		assert_true(a.max > a.min);
		expect_ticks(&a, rows[i].want);
	}
}

static void positions_grow_from_0_to_1(void **state)
{
	(void)state;
	static const double huge[] = {-1e308, -1e299, 0, 1e299, NAN, INFINITY, -INFINITY};
	static const double tiny[] = {0, 5e-324, 1e-300, 1e-12, 1, 1e15};
	for (int scale = CHART_LINEAR; scale <= CHART_TIME; scale++)
		for (int k = 0; k < 2; k++) {
			struct chart_axis a;
			double before = 0;
			chart_axis_fit(&a, (enum chart_scale)scale, k ? tiny : huge, k ? COUNT(tiny) : COUNT(huge),
			               true, 5);
			assert_true(a.n_ticks > 0 && a.n_ticks < CHART_TICKS_MAX);
			for (int j = 0; j < (k ? 6 : 4); j++) {
				double p = chart_axis_position(&a, k ? tiny[j] : huge[j]);
				assert_true(p >= before && p <= 1);
				before = p;
			}
		}
}

static void zero_has_its_place_on_a_logarithmic_axis(void **state)
{
	(void)state;
	static const double late[] = {0, 0.5, 40};
	struct chart_axis a;
	chart_axis_fit(&a, CHART_LOG, late, 3, false, 5);
	expect_ticks(&a, "0 1 10");
	assert_true(chart_axis_position(&a, 0) == 0);
	assert_true(chart_axis_position(&a, 0.5) > 0);
	assert_true(chart_axis_position(&a, a.max) == 1);
}

static void numbers_have_three_digits(void **state)
{
	(void)state;
	static const struct {
		double value;
		const char *want;
	} rows[] = {{0, "0"},           {0.25, "0.25"},     {1.0 / 3, "0.333"}, {150, "150"},
	            {1500, "1.5k"},     {2e6, "2M"},        {-3, "-3"},         {12345, "12.3k"},
	            {5e-324, "5e-324"}, {INFINITY, "+Inf"}, {0.1 + 0.2, "0.3"}};
	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[CHART_LABEL_BYTES];
		chart_number(text, rows[i].value);
		assert_string_equal(text, rows[i].want);
	}
}

// ---- charts ----

static struct chart chart_of(const struct chart_series *series, size_t n)
{
	return (struct chart){.id = "c",
	                      .title = "title",
	                      .description = "description",
	                      .x = {.title = "hours"},
	                      .y = {.title = "replicas", .from_zero = true},
	                      .series = series,
	                      .n_series = n,
	                      .height = 100};
}

// Every element is closed, and what stands between elements has no markup left.
static void expect_well_formed(const struct buf *b)
{
	int depth = 0;
	assert_false(b->failed);
	for (const char *p = buf_str(b); (p = strchr(p, '<')); p++) {
		const char *end = strchr(p, '>');
		assert_non_null(end);
		assert_true(memchr(p + 1, '<', (size_t)(end - p - 1)) == NULL);
		depth += p[1] == '/' ? -1 : end[-1] == '/' ? 0 : 1;
		assert_true(depth >= 0);
	}
	assert_int_equal(depth, 0);
	assert_null(strstr(buf_str(b), "nan"));
	assert_null(strstr(buf_str(b), "inf"));
}

static void draw(const struct chart *c, struct buf *ret)
{
	buf_init(ret, 1 << 20);
	svg_chart_put(ret, c);
	expect_well_formed(ret);
}

static void expect_path(const struct chart *c, const char *want)
{
	struct buf b;
	draw(c, &b);
	if (!strstr(buf_str(&b), want))
		fail_msg("no %s in\n%s", want, buf_str(&b));
	buf_done(&b);
}

static void steps_hold_their_value(void **state)
{
	(void)state;
	static const double x[] = {0, 1, 2, 3, 10}, y[] = {0, 5, 5, 10, 10};
	static const struct chart_series s = {.name = "s", .mark = CHART_STEPS, .x = x, .y = y, .n = 5};
	struct chart c = chart_of(&s, 1);
	expect_path(&c, "d=\"M0 100H100V50H300V0H1000\"");
}

static void area_is_closed_at_the_start_of_the_axis(void **state)
{
	(void)state;
	static const double x[] = {0, 5, 10}, y[] = {10, 5, 5};
	static const struct chart_series s = {.name = "s", .mark = CHART_AREA, .x = x, .y = y, .n = 3};
	struct chart c = chart_of(&s, 1);
	expect_path(&c, "class=\"surface\" d=\"M0 0H500V50H1000V100H0Z\"");
}

static void gap_interrupts_a_line(void **state)
{
	(void)state;
	static const double x[] = {0, 2, 4, 6, 10}, y[] = {10, NAN, NAN, 5, 5};
	static const struct chart_series s = {.name = "s", .mark = CHART_STEPS, .x = x, .y = y, .n = 5};
	struct chart c = chart_of(&s, 1);
	expect_path(&c, "d=\"M0 0H200M600 50H1000\"");
}

static void point_alone_is_a_dot(void **state)
{
	(void)state;
	static const double x[] = {3}, y[] = {3};
	for (int mark = CHART_STEPS; mark <= CHART_LINKED_POINTS; mark++) {
		const struct chart_series s = {.name = "s", .mark = (enum chart_mark)mark, .x = x, .y = y, .n = 1};
		struct chart c = chart_of(&s, 1);
		expect_path(&c, mark == CHART_POINTS ? "class=\"point\"" : "h0\"");
	}
}

static void chart_without_data_says_so(void **state)
{
	(void)state;
	static const double x[] = {0, 1}, y[] = {NAN, INFINITY};
	static const struct chart_series s = {.name = "s", .mark = CHART_STEPS, .x = x, .y = y, .n = 2};
	struct chart c = chart_of(NULL, 0);
	expect_path(&c, ">no data<");
	c = chart_of(&s, 1);
	expect_path(&c, ">no data<");
}

static void outside_text_is_escaped(void **state)
{
	(void)state;
	static const char hostile[] = "</svg><script>alert(1)</script>\" onload='x' & \x01\xff";
	static const double x[] = {1, 2}, y[] = {1, 2};
	static const char *const labels[] = {hostile, NULL};
	const struct chart_series s = {
	        .name = hostile, .mark = CHART_LINKED_POINTS, .x = x, .y = y, .labels = labels, .n = 2};
	struct chart c = chart_of(&s, 1);
	c.title = c.description = c.x.title = c.y.title = hostile;
	for (int document = 0; document < 2; document++) {
		struct buf b;
		buf_init(&b, 1 << 20);
		if (document)
			svg_chart_put_document(&b, &c);
		else
			svg_chart_put(&b, &c);
		expect_well_formed(&b);
		assert_null(strstr(buf_str(&b), "<script"));
		assert_null(strstr(buf_str(&b), " onload='"));
		assert_non_null(strstr(buf_str(&b),
		                       "&lt;script&gt;alert(1)&lt;/script&gt;&quot; onload=&#39;x&#39; &amp; "
		                       "\xef\xbf\xbd\xef\xbf\xbd"));
		buf_done(&b);
	}
}

static void labels_of_near_points_have_different_places(void **state)
{
	(void)state;
	static const double x[] = {5, 5, 5, 5}, y[] = {5, 5, 5, 5};
	static const char *const labels[] = {"first", "second", "third", "fourth"};
	const struct chart_series s = {.name = "s", .mark = CHART_POINTS, .x = x, .y = y, .labels = labels, .n = 4};
	struct chart c = chart_of(&s, 1);
	struct buf b;
	const char *places[4], *p;
	size_t n = 0;
	draw(&c, &b);
	for (p = buf_str(&b); (p = strstr(p, "<text class=\"label\"")); p++)
		places[n++] = p;
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < i; j++)
			assert_true(strncmp(places[i], places[j], strcspn(places[i], ">")) != 0);
	buf_done(&b);
}

static void document_fails_when_memory_does(void **state)
{
	(void)state;
	struct chart c = chart_of(NULL, 0);
	struct buf b;
	buf_init(&b, 500);
	svg_chart_put_document(&b, &c);
	assert_true(b.failed);
	buf_done(&b);
}

// ---- colours: WCAG 2 contrast ----

static double channel(const char *hex)
{
	static const char digits[] = "0123456789abcdef";
	double v = (double)(16 * (strchr(digits, hex[0]) - digits) + (strchr(digits, hex[1]) - digits)) / 255;
	return v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
}

static double luminance(const char *colour) // "#rrggbb"
{
	return 0.2126 * channel(colour + 1) + 0.7152 * channel(colour + 3) + 0.0722 * channel(colour + 5);
}

static double contrast(const char *a, const char *b)
{
	double x = luminance(a), y = luminance(b);
	return (fmax(x, y) + 0.05) / (fmin(x, y) + 0.05);
}

static void every_colour_is_readable(void **state)
{
	(void)state;
	struct buf b;
	size_t n = 0;
	buf_init(&b, 1 << 20);
	svg_chart_put_style(&b);
	const char *dark = strstr(buf_str(&b), "prefers-color-scheme");
	assert_non_null(dark);
	for (const char *p = buf_str(&b); (p = strstr(p, "{color:#")); p++, n++) {
		const char *ground = p < dark ? "#f5f6f8" : "#191d23"; // the darker ground, and the lighter one
		double c = contrast(p + strlen("{color:"), ground);
		if (c < 4.5)
			fail_msg("%.14s on %s: %.2f", p, ground, c);
	}
	assert_int_equal(n, 2 * CHART_STYLE__COUNT);
	buf_done(&b);
}

static void styles_differ_without_colour(void **state)
{
	(void)state;
	struct buf b[CHART_STYLE__COUNT];
	for (int i = 0; i < CHART_STYLE__COUNT; i++) {
		buf_init(&b[i], 4096);
		svg_chart_put_swatch(&b[i], (enum chart_style)i, CHART_POINTS);
		const char *shape = strstr(buf_str(&b[i]), " d=\"");
		assert_non_null(shape);
		for (int j = 0; j < i; j++)
			assert_string_not_equal(shape, strstr(buf_str(&b[j]), " d=\""));
	}
	for (int i = 0; i < CHART_STYLE__COUNT; i++)
		buf_done(&b[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(ticks_are_round),
	        cmocka_unit_test(positions_grow_from_0_to_1),
	        cmocka_unit_test(zero_has_its_place_on_a_logarithmic_axis),
	        cmocka_unit_test(numbers_have_three_digits),
	        cmocka_unit_test(steps_hold_their_value),
	        cmocka_unit_test(area_is_closed_at_the_start_of_the_axis),
	        cmocka_unit_test(gap_interrupts_a_line),
	        cmocka_unit_test(point_alone_is_a_dot),
	        cmocka_unit_test(chart_without_data_says_so),
	        cmocka_unit_test(outside_text_is_escaped),
	        cmocka_unit_test(labels_of_near_points_have_different_places),
	        cmocka_unit_test(document_fails_when_memory_does),
	        cmocka_unit_test(every_colour_is_readable),
	        cmocka_unit_test(styles_differ_without_colour),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
