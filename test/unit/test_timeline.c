// SPDX-License-Identifier: Apache-2.0
// Goal of this test: the timeline is valid XML whatever it is given, shows what happened, and stays bounded in size
// without losing a peak.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/num.h"
#include "test/support/timeline.h"
#include "test/support/timeline_axis.h"

#define SVG_BYTES_MAX ((size_t)8 * 1024 * 1024)
#define XML_DEPTH_MAX 16

// cmocka's assert_float_equal compares as float, which cannot distinguish two timestamps.
static void assert_near(double got, double want, double tolerance)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("got %.17g, want %.17g", got, want);
}

// ---- a reader of the XML we write: elements nest, attributes are quoted and unique per name, text is escaped ----

struct xml {
	const char *at;
	char open[XML_DEPTH_MAX][16];
	int depth;
	int roots;
};

static void check_entity(const char **at)
{
	static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strncmp(*at, known[i], strlen(known[i])) == 0) {
			*at += strlen(known[i]);
			return;
		}
	fail_msg("unknown entity at %.20s", *at);
}

static void check_attributes(struct xml *x)
{
	char seen[16][24];
	int n = 0;
	while (*x->at == ' ') {
		x->at++;
		size_t len = strcspn(x->at, "=");
		assert_in_range(len, 1, sizeof seen[0] - 1);
		assert_true(n < 16);
		snprintf(seen[n], sizeof seen[n], "%.*s", (int)len, x->at);
		for (int i = 0; i < n; i++)
			if (strcmp(seen[i], seen[n]) == 0)
				fail_msg("attribute %s twice", seen[n]);
		n++;
		x->at += len + 1;
		assert_int_equal(*x->at, '"');
		for (x->at++; *x->at != '"';) {
			assert_true(*x->at && *x->at != '<');
			if (*x->at == '&')
				check_entity(&x->at);
			else
				x->at++;
		}
		x->at++;
	}
}

static void check_xml(const char *text)
{
	struct xml x = {.at = text};
	while (*x.at) {
		if (strncmp(x.at, "</", 2) == 0) {
			assert_true(x.depth > 0);
			x.depth--;
			size_t len = strcspn(x.at + 2, ">");
			assert_int_equal(strncmp(x.at + 2, x.open[x.depth], len), 0);
			assert_int_equal(x.open[x.depth][len], '\0');
			x.at += len + 3;
		} else if (*x.at == '<') {
			size_t len = strcspn(++x.at, " >/");
			assert_in_range(len, 1, sizeof x.open[0] - 1);
			assert_true(x.depth < XML_DEPTH_MAX);
			x.roots += x.depth == 0;
			snprintf(x.open[x.depth], sizeof x.open[0], "%.*s", (int)len, x.at);
			x.at += len;
			check_attributes(&x);
			if (*x.at == '/')
				x.at++;
			else
				x.depth++;
			assert_int_equal(*x.at, '>');
			x.at++;
		} else if (*x.at == '&') {
			check_entity(&x.at);
		} else {
			unsigned char c = (unsigned char)*x.at++;
			assert_true(c >= 0x20 || c == '\n' || c == '\t');
			assert_true(x.depth > 0 || c == '\n');
		}
	}
	assert_int_equal(x.depth, 0);
	assert_int_equal(x.roots, 1);
}

// ---- helpers ----

static const struct timeline_options marks = {
        .title = "t", .demand_unit = "requests/s", .high_ratio = 0.8, .low_ratio = 0.4};

static void render(struct buf *out, const struct timeline_point *points, size_t n, const struct timeline_options *o)
{
	struct err e = {0};
	buf_init(out, SVG_BYTES_MAX);
	if (timeline_render(out, points, n, o, &e) < 0)
		fail_msg("%s", e.msg);
	check_xml(out->data);
	// Every value is a finite number, and the picture refers to no other file or site.
	assert_null(strstr(out->data, "nan"));
	assert_null(strstr(out->data, "inf"));
	assert_null(strstr(out->data, "href"));
	assert_null(strstr(out->data, "url(h"));
	const char *namespace = strstr(out->data, "http");
	assert_non_null(namespace);
	assert_null(strstr(namespace + 1, "http"));
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;
	for (const char *at = strstr(text, what); at; at = strstr(at + 1, what))
		n++;
	return n;
}

static void expect(const struct buf *svg, const char *what)
{
	if (!strstr(svg->data, what))
		fail_msg("the picture lacks %s", what);
}

// The path data of the first curve of that class.
static const char *path_of(const struct buf *svg, const char *class)
{
	char key[64];
	snprintf(key, sizeof key, "<path class=\"%s\" d=\"", class);
	const char *at = strstr(svg->data, key);
	assert_non_null(at);
	return at + strlen(key);
}

// Five ticks of a second: one up, one down.
static const struct timeline_point five[] = {
        {0, 10, 0.5, 1, 1, ACTION_NONE},     {1000, 30, 0.9, 3, 1, ACTION_SCALE_UP},
        {2000, 31, 0.6, 3, 3, ACTION_HOLD},  {3000, 10, 0.3, 2, 3, ACTION_SCALE_DOWN},
        {4000, 10, 0.45, 2, 2, ACTION_NONE},
};

// ---- tests ----

static void test_three_panels_with_their_numbers(void **state)
{
	(void)state;
	struct buf svg;
	render(&svg, five, 5, &marks);
	expect(&svg, ">Demand<");
	expect(&svg, ">peak 31 requests/s<");
	expect(&svg, ">Utilisation<");
	expect(&svg, ">above 80% for 1s, 25% of the time<");
	expect(&svg, ">Replicas<");
	expect(&svg, ">1 to 3, 1 up, 1 down<");
	expect(&svg, ">80%<");
	expect(&svg, ">40%<");
	expect(&svg, "prefers-color-scheme:dark");
	expect(&svg, "sans-serif");
	expect(&svg, "viewBox=\"0 0 960 600\"");
	assert_int_equal(count(svg.data, "class=\"band\""), 2); // the band and its legend
	assert_int_equal(count(svg.data, "<path class=\"up\""), 2);
	assert_int_equal(count(svg.data, "<path class=\"down\""), 2);
	assert_int_equal(count(svg.data, "class=\"guide\""), 6);
	buf_done(&svg);
}

static void test_replicas_are_steps(void **state)
{
	(void)state;
	struct buf svg;
	render(&svg, five, 5, &marks);
	// Every move is level or upright.
	const char *at = path_of(&svg, "desired");
	double last_x = 0, last_y = 0;
	int moves = 0;
	while (*at == 'M' || *at == 'L') {
		double x, y;
		size_t x_len = strcspn(at + 1, " "), y_len = strcspn(at + x_len + 2, "ML\"");
		assert_int_equal(num_parse_f64(at + 1, x_len, &x, NULL), 0);
		assert_int_equal(num_parse_f64(at + x_len + 2, y_len, &y, NULL), 0);
		if (*at == 'L' && x != last_x && y != last_y)
			fail_msg("a slanted step at %.20s", at);
		last_x = x;
		last_y = y;
		at += x_len + y_len + 2;
		moves++;
	}
	assert_int_equal(*at, '"');
	assert_int_equal(moves, 8); // start twice, two corners for each of two changes, the level between, the end
	buf_done(&svg);
}

static void test_empty_input_draws_a_frame_that_says_so(void **state)
{
	(void)state;
	struct buf svg;
	render(&svg, NULL, 0, &marks);
	expect(&svg, ">no data yet<");
	expect(&svg, ">Replicas<");
	expect(&svg, "<path class=\"demand\" d=\"\"/>");
	buf_done(&svg);
}

static void test_single_point_is_drawn(void **state)
{
	(void)state;
	struct buf svg;
	render(&svg, five, 1, &marks);
	assert_int_equal(strncmp(path_of(&svg, "demand"), "M60 ", 4), 0);
	assert_null(strstr(svg.data, "no data"));
	buf_done(&svg);
}

static void test_unknown_values_are_gaps(void **state)
{
	(void)state;
	struct timeline_point p[5];
	memcpy(p, five, sizeof p);
	p[2].demand = (double)NAN;
	p[2].utilization_ratio = (double)INFINITY;
	struct buf svg;
	render(&svg, p, 5, &marks);
	const char *path = path_of(&svg, "demand");
	size_t len = strcspn(path, "\"");
	size_t starts = 0;
	for (size_t i = 0; i < len; i++)
		starts += path[i] == 'M';
	assert_int_equal(starts, 2);
	expect(&svg, ">peak 30 requests/s<");
	buf_done(&svg);
}

static void test_no_value_breaks_the_picture(void **state)
{
	(void)state;
	static const double odd[] = {0, -1, 1e-320, 1e-12, 1, 1e15, 1e300, 1.7e308, -1.7e308};
	for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
		struct timeline_point p[3] = {{.time_ms = 0, .demand = odd[i], .utilization_ratio = odd[i]},
		                              {.time_ms = INT64_C(1) << 40,
		                               .demand = -odd[i],
		                               .utilization_ratio = odd[i] / 2,
		                               .desired_replicas = INT32_MAX,
		                               .ready_replicas = INT32_MIN},
		                              {.time_ms = INT64_C(1) << 47}};
		struct buf svg;
		render(&svg, p, 3, &marks);
		assert_in_range(svg.len, 1000, 100000);
		buf_done(&svg);
		struct timeline_options utc = marks;
		utc.clock = TIMELINE_UTC;
		render(&svg, p, 3, &utc);
		buf_done(&svg);
	}
}

static void test_title_is_escaped(void **state)
{
	(void)state;
	struct timeline_options o = marks;
	o.title = "<script>alert(\"1\" && '2')</script>\x01\xff\xef\xbf\xbf caf\xc3\xa9 ]]>";
	o.subtitle = "a & b";
	o.demand_unit = "<b>";
	struct buf svg;
	render(&svg, five, 5, &o);
	assert_null(strstr(svg.data, "<script"));
	expect(&svg, "&lt;script&gt;alert(&quot;1&quot; &amp;&amp; &#39;2&#39;)&lt;/script&gt;\xef\xbf\xbd\xef\xbf\xbd"
	             "\xef\xbf\xbd caf\xc3\xa9 ]]&gt;<");
	expect(&svg, ">a &amp; b<");
	expect(&svg, "peak 31 &lt;b&gt;<");
	buf_done(&svg);
}

static void test_many_points_are_thinned_and_every_peak_stays(void **state)
{
	(void)state;
	enum { N = 100000 };
	struct timeline_point *p = calloc(N, sizeof *p);
	assert_non_null(p);
	for (int i = 0; i < N; i++)
		p[i] = (struct timeline_point){.time_ms = i * INT64_C(15000),
		                               .demand = 50 + i % 7,
		                               .utilization_ratio = i % 13 ? 0.5 : (double)NAN,
		                               .desired_replicas = 1 + i % 3,
		                               .ready_replicas = 1,
		                               .action = i % 3 ? ACTION_SCALE_UP : ACTION_SCALE_DOWN};
	p[77777].demand = 100; // one lone spike: 5 * 20 is the top of its axis
	struct buf svg;
	render(&svg, p, N, &marks);
	assert_in_range(svg.len, 10000, 1000000);
	// The spike touches the top of the panel: y of its frame's upper edge.
	const char *plot = strstr(svg.data, "class=\"plot\"");
	assert_non_null(plot);
	const char *top = strstr(plot, " y=\"");
	assert_non_null(top);
	char upper[16];
	snprintf(upper, sizeof upper, " %.*sL", (int)strcspn(top + 4, "\""), top + 4);
	const char *path = path_of(&svg, "demand");
	const char *spike = strstr(path, upper);
	assert_non_null(spike);
	assert_true(spike < path + strcspn(path, "\""));
	// Marks keep their distance, guides are left out.
	assert_in_range(count(svg.data, "<path class=\"up\""), 10, 200);
	assert_int_equal(count(svg.data, "class=\"guide\""), 0);
	buf_done(&svg);
	free(p);
}

static void test_equal_input_gives_equal_bytes(void **state)
{
	(void)state;
	struct buf a, b;
	render(&a, five, 5, &marks);
	render(&b, five, 5, &marks);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.data, b.data, a.len);
	buf_done(&a);
	buf_done(&b);
}

static void test_unusable_input_is_refused(void **state)
{
	(void)state;
	char lengthy[TIMELINE_TEXT_BYTES_MAX + 2];
	memset(lengthy, 'a', sizeof lengthy - 1);
	lengthy[sizeof lengthy - 1] = '\0';
	const struct timeline_point back[] = {{.time_ms = 2}, {.time_ms = 1}};
	const struct timeline_point far[] = {{.time_ms = INT64_MAX}};
	const struct {
		struct timeline_options o;
		const struct timeline_point *points;
		size_t n;
		enum err_kind kind;
		const char *says;
	} rows[] = {
	        {{.width = 319}, five, 5, ERR_INPUT, "319 x 600"},
	        {{.height = 5000}, five, 5, ERR_INPUT, "960 x 5000"},
	        {{.width = -1}, five, 5, ERR_INPUT, "-1 x 600"},
	        {{.high_ratio = (double)NAN}, five, 5, ERR_INPUT, "marks"},
	        {{.high_ratio = (double)INFINITY}, five, 5, ERR_INPUT, "marks"},
	        {{.low_ratio = -0.1}, five, 5, ERR_INPUT, "marks"},
	        {{.low_ratio = 0.9, .high_ratio = 0.8}, five, 5, ERR_INPUT, "low one below"},
	        {{.title = lengthy}, five, 5, ERR_LIMIT, "title of the timeline has 201 bytes; the ceiling is 200"},
	        {{.subtitle = lengthy}, five, 5, ERR_LIMIT, "subtitle"},
	        {{.demand_unit = lengthy}, five, 5, ERR_LIMIT, "demand unit"},
	        {{.width = 0}, back, 2, ERR_INPUT, "point 1 goes back"},
	        {{.width = 0}, far, 1, ERR_INPUT, "point 0 lies outside"},
	        {{.width = 0}, five, TIMELINE_POINTS_MAX + 1, ERR_LIMIT, "2000001 points; the ceiling is 2000000"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct buf svg;
		struct err e = {0};
		buf_init(&svg, SVG_BYTES_MAX);
		assert_int_equal(timeline_render(&svg, rows[i].points, rows[i].n, &rows[i].o, &e), -1);
		if (e.kind != rows[i].kind || !strstr(e.msg, rows[i].says))
			fail_msg("row %zu: got %s \"%s\", want \"...%s...\"", i, err_kind_info(e.kind)->name, e.msg,
			         rows[i].says);
		assert_int_equal(svg.len, 0);
		buf_done(&svg);
	}
}

static void test_buffer_too_small_is_an_error(void **state)
{
	(void)state;
	struct buf svg;
	struct err e = {0};
	buf_init(&svg, 5000);
	assert_int_equal(timeline_render(&svg, five, 5, &marks, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "5000"));
	buf_done(&svg);
}

static void test_value_axis_has_round_steps(void **state)
{
	(void)state;
	static const struct {
		double max, min_step, step, top;
	} rows[] = {
	        {0, 0, 1, 1},      {1, 0, 0.2, 1},    {1.4, 0, 0.5, 1.5},       {100, 0, 20, 100},
	        {101, 0, 25, 125}, {9.6, 1, 2, 10},   {1.6, 1, 1, 2},           {12.6, 1, 5, 15},
	        {0.6, 1, 1, 1},    {31.6, 1, 10, 40}, {0.003, 0, 0.001, 0.003},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		double step = timeline_value_step(rows[i].max, 5, rows[i].min_step);
		assert_near(step, rows[i].step, rows[i].step * 1e-9);
		assert_near(timeline_value_top(rows[i].max, step), rows[i].top, rows[i].top * 1e-9);
	}
}

static void test_axis_labels_read_well(void **state)
{
	(void)state;
	static const struct {
		enum timeline_clock clock;
		int64_t offset_ms, step_ms;
		const char *label;
	} times[] = {
	        {TIMELINE_ELAPSED, 0, 10000, "0:00"},
	        {TIMELINE_ELAPSED, 90000, 30000, "1:30"},
	        {TIMELINE_ELAPSED, 250, 100, "250 ms"},
	        {TIMELINE_ELAPSED, 5400000, 1800000, "90 min"},
	        {TIMELINE_ELAPSED, 10800000, 3600000, "3 h"},
	        {TIMELINE_ELAPSED, 172800000, 86400000, "2 d"},
	        {TIMELINE_UTC, 1735689645000, 15000, "00:00:45"},
	        {TIMELINE_UTC, 1735722000000, 3600000, "09:00"},
	        {TIMELINE_UTC, 1735689600000, 86400000, "01-01"},
	        {TIMELINE_UTC, 1735689600100, 100, "00:00:00.100"},
	};
	static const struct {
		double value;
		const char *label;
	} values[] = {{0, "0"}, {0.25, "0.25"}, {150, "150"}, {1500, "1.5k"}, {2e6, "2M"}, {1000, "1k"}};
	char out[TIMELINE_LABEL_BYTES];
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		timeline_time_label(out, times[i].clock, times[i].offset_ms, times[i].step_ms);
		assert_string_equal(out, times[i].label);
	}
	for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
		timeline_value_label(out, values[i].value);
		assert_string_equal(out, values[i].label);
	}
	assert_int_equal(timeline_time_step_ms(90000, 9), 10000);
	assert_int_equal(timeline_time_step_ms(INT64_C(30) * 86400000, 9), INT64_C(7) * 86400000);
	assert_int_equal(timeline_time_step_ms(5, 9), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_three_panels_with_their_numbers),
	        cmocka_unit_test(test_replicas_are_steps),
	        cmocka_unit_test(test_empty_input_draws_a_frame_that_says_so),
	        cmocka_unit_test(test_single_point_is_drawn),
	        cmocka_unit_test(test_unknown_values_are_gaps),
	        cmocka_unit_test(test_no_value_breaks_the_picture),
	        cmocka_unit_test(test_title_is_escaped),
	        cmocka_unit_test(test_many_points_are_thinned_and_every_peak_stays),
	        cmocka_unit_test(test_equal_input_gives_equal_bytes),
	        cmocka_unit_test(test_unusable_input_is_refused),
	        cmocka_unit_test(test_buffer_too_small_is_an_error),
	        cmocka_unit_test(test_value_axis_has_round_steps),
	        cmocka_unit_test(test_axis_labels_read_well),
	};
	return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
