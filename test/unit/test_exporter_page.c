// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a client gets the format and encoding it asks for, and each says the same.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "exporter/page/page.h"

#define PAGE_MAX (8 * 1024 * 1024)

static void format_is_what_accept_likes_best(void **state)
{
	(void)state;
	static const struct {
		const char *accept;
		enum page_format want;
	} cases[] = {
	        {NULL, PAGE_TEXT},
	        {"", PAGE_TEXT},
	        {"*/*", PAGE_TEXT},
	        {"text/html", PAGE_TEXT},
	        {"application/openmetrics-text", PAGE_OPENMETRICS},
	        {"Application/OpenMetrics-Text; Version=1.0.0; charset=utf-8", PAGE_OPENMETRICS},
	        {"application/openmetrics-text;version=2.0.0", PAGE_TEXT},
	        // Prometheus 2.42, 3.0, and one that wants no OpenMetrics.
	        {"application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
	         "text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
	         PAGE_OPENMETRICS},
	        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
	         "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
	         "text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
	         PAGE_OPENMETRICS},
	        {"text/plain;version=0.0.4;q=1,*/*;q=0.1", PAGE_TEXT},
	        {"text/plain , application/openmetrics-text", PAGE_OPENMETRICS}, // equals: the richer one
	        {"text/plain;q=0.9, application/openmetrics-text;q=0.8", PAGE_TEXT},
	        {"application/openmetrics-text;q=0", PAGE_TEXT},
	        {"application/openmetrics-text;q=2, text/plain;q=0.1", PAGE_TEXT},
	        {"application/openmetrics-text;q=x", PAGE_TEXT},
	        {"application/openmetrics-text2", PAGE_TEXT},
	        {",;,;;q=,application/openmetrics-text;;", PAGE_OPENMETRICS},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (page_format_wanted(cases[i].accept) != cases[i].want)
			fail_msg("%s", cases[i].accept ? cases[i].accept : "(none)");
}

static void gzip_is_what_accept_encoding_takes(void **state)
{
	(void)state;
	static const struct {
		const char *accept;
		bool want;
	} cases[] = {
	        {NULL, false},          {"", false},         {"gzip", true},     {"deflate, GZIP;q=0.5, br", true},
	        {"x-gzip", true},       {"gzip;q=0", false}, {"*", true},        {"*;q=0", false},
	        {"gzip;q=0, *", false}, {"identity", false}, {"gzipped", false},
	};
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
		if (page_gzip_wanted(cases[i].accept) != cases[i].want)
			fail_msg("%s", cases[i].accept ? cases[i].accept : "(none)");
}

static const char text[] = "# HELP DCGM_A says \"x\" \\\\ y\n# TYPE DCGM_A counter\nDCGM_A{gpu=\"0\"} 1\n"
                           "# HELP g A gauge.\n# TYPE g gauge\ng{a=\"# TYPE x\",b=\"le=\\\"1\\\"\"} 2.5\n";
static const char self[] = "# HELP c_total Counts.\n# TYPE c_total counter\nc_total 3\n"
                           "# HELP h_seconds Times.\n# TYPE h_seconds histogram\n"
                           "h_seconds_bucket{le=\"0.5\"} 1\nh_seconds_bucket{a=\"b\",le=\"10\"} 1\n"
                           "h_seconds_bucket{le=\"1e+06\"} 1\n"
                           "h_seconds_bucket{le=\"+Inf\"} 1\nh_seconds_sum 0.25\nh_seconds_count 1\n"
                           "# HELP u No type.\n# TYPE u untyped\nu 1\n";
static const char openmetrics[] = "# TYPE DCGM_A unknown\n# HELP DCGM_A says \\\"x\\\" \\\\ y\nDCGM_A{gpu=\"0\"} 1\n"
                                  "# TYPE g gauge\n# HELP g A gauge.\ng{a=\"# TYPE x\",b=\"le=\\\"1\\\"\"} 2.5\n"
                                  "# TYPE c counter\n# HELP c Counts.\nc_total 3\n"
                                  "# TYPE h_seconds histogram\n# HELP h_seconds Times.\n"
                                  "h_seconds_bucket{le=\"0.5\"} 1\nh_seconds_bucket{a=\"b\",le=\"10.0\"} 1\n"
                                  "h_seconds_bucket{le=\"1e+06\"} 1\n"
                                  "h_seconds_bucket{le=\"+Inf\"} 1\nh_seconds_sum 0.25\nh_seconds_count 1\n"
                                  "# TYPE u unknown\n# HELP u No type.\nu 1\n# EOF\n";

static void unzip(const struct buf *in, struct buf *out)
{
	unsigned char chunk[512];
	z_stream z = {.next_in = (unsigned char *)in->data, .avail_in = (uInt)in->len};
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK); // a gzip header and checksum are asked for
	int rc = Z_OK;
	while (rc == Z_OK) {
		z.next_out = chunk;
		z.avail_out = sizeof chunk;
		rc = inflate(&z, Z_NO_FLUSH);
		buf_put(out, chunk, sizeof chunk - z.avail_out);
	}
	assert_int_equal(rc, Z_STREAM_END); // and they hold
	assert_int_equal(z.avail_in, 0);    // one member, nothing behind it
	inflateEnd(&z);
}

static void fill(struct buf *b, const char *s)
{
	buf_reset(b);
	buf_puts(b, s);
}

static int make(struct page *p, enum page_format format, bool gzip, const struct buf *front, const struct buf *tail,
                struct err *e)
{
	buf_put(page_text(p, format), buf_str(front), front->len);
	return page_make(p, format, gzip, tail, e);
}

// Makes the page in every form and compares.
static void check_page(struct page *p, const struct buf *front, const struct buf *tail, const char *want_text,
                       const char *want_openmetrics)
{
	struct err e = {.kind = ERR_NONE};
	for (int f = 0; f < PAGE_FORMAT__COUNT; f++) {
		const char *want = f == PAGE_TEXT ? want_text : want_openmetrics;
		struct buf plain;
		buf_init(&plain, PAGE_MAX);
		assert_int_equal(make(p, (enum page_format)f, false, front, tail, &e), 0);
		assert_string_equal(buf_str(&p->out), want);
		assert_int_equal(make(p, (enum page_format)f, true, front, tail, &e), 0);
		unzip(&p->out, &plain);
		assert_string_equal(buf_str(&plain), want);
		buf_done(&plain);
	}
}

static void every_form_says_the_same(void **state)
{
	(void)state;
	struct page p;
	struct buf front, tail, both;
	page_init(&p, PAGE_MAX);
	buf_init(&front, PAGE_MAX);
	buf_init(&tail, PAGE_MAX);
	buf_init(&both, PAGE_MAX);
	fill(&front, text);
	fill(&tail, self);
	buf_puts(&both, text);
	buf_puts(&both, self);
	check_page(&p, &front, &tail, both.data, openmetrics);
	check_page(&p, &front, &tail, both.data, openmetrics); // with memory that was used before
	// The tail is new each time, also within a round.
	fill(&tail, "# HELP d_total D.\n# TYPE d_total counter\nd_total 9\n");
	fill(&both, text);
	buf_puts(&both, tail.data);
	struct err e;
	assert_int_equal(make(&p, PAGE_TEXT, false, &front, &tail, &e), 0);
	assert_string_equal(p.out.data, both.data);
	// A new round, and an empty one.
	fill(&front, "# HELP e E.\n# TYPE e gauge\ne 1\n");
	check_page(&p, &front, &tail,
	           "# HELP e E.\n# TYPE e gauge\ne 1\n# HELP d_total D.\n# TYPE d_total counter\nd_total 9\n",
	           "# TYPE e gauge\n# HELP e E.\ne 1\n# TYPE d counter\n# HELP d D.\nd_total 9\n# EOF\n");
	buf_reset(&front);
	buf_reset(&tail);
	check_page(&p, &front, &tail, "", "# EOF\n");
	page_done(&p);
	buf_done(&front);
	buf_done(&tail);
	buf_done(&both);
}

static void large_page_shrinks_and_ceiling_is_reported(void **state)
{
	(void)state;
	struct page p;
	struct buf front, tail, plain;
	struct err e = {.kind = ERR_NONE};
	buf_init(&front, PAGE_MAX);
	buf_init(&tail, PAGE_MAX);
	buf_init(&plain, PAGE_MAX);
	for (int i = 0; i < 20000; i++)
		buf_printf(&front, "m{gpu=\"%d\",uuid=\"GPU-%08x\"} %d\n", i % 64, (unsigned)i * 2654435761u, i);
	buf_puts(&tail, self);
	page_init(&p, PAGE_MAX);
	assert_int_equal(make(&p, PAGE_TEXT, true, &front, &tail, &e), 0);
	assert_true(p.out.len < front.len / 2);
	unzip(&p.out, &plain);
	assert_int_equal(plain.len, front.len + tail.len);
	assert_memory_equal(plain.data, front.data, front.len);
	page_done(&p);
	for (int gzip = 0; gzip < 2; gzip++) {
		page_init(&p, 1000);
		assert_int_equal(make(&p, PAGE_TEXT, gzip, &front, &tail, &e), -1);
		assert_int_equal(e.kind, ERR_LIMIT);
		page_done(&p);
	}
	buf_done(&front);
	buf_done(&tail);
	buf_done(&plain);
}

static void page_keeps_only_the_listed_families(void **state)
{
	(void)state;
	static const char some[] = "# HELP a one\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n"
	                           "# HELP ab two\n# TYPE ab gauge\nab 3\n# HELP c three\n# TYPE c gauge\nc 4\n";
	static const struct {
		const char *list, *want;
	} rows[] = {
	        {"a", "# HELP a one\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n"},
	        {"unknown,ab", "# HELP ab two\n# TYPE ab gauge\nab 3\n"},
	        {"self,c", "# HELP c three\n# TYPE c gauge\nc 4\nself 5\n"},
	        {"b", ""},
	        {"", ""},
	        {",,", ""},
	};
	struct page p;
	struct buf tail;
	struct err e;
	page_init(&p, PAGE_MAX);
	buf_init(&tail, PAGE_MAX);
	buf_puts(&tail, "self 5");
	buf_putc(&tail, '\n');
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		buf_puts(page_text(&p, PAGE_TEXT), some);
		assert_int_equal(page_make(&p, PAGE_TEXT, false, &tail, &e), 0);
		assert_int_equal(page_keep_families(&p, rows[i].list, &e), 0);
		assert_string_equal(buf_str(&p.out), rows[i].want);
	}
	buf_done(&tail);
	page_done(&p);
}

// A slow client keeps the page that it was sent, whatever is made for others meanwhile.
static void lent_page_stays_as_it_was(void **state)
{
	(void)state;
	struct page p;
	struct buf tail, first, second;
	struct err e;
	page_init(&p, PAGE_MAX);
	buf_init(&tail, PAGE_MAX);
	buf_puts(page_text(&p, PAGE_TEXT), "a 1\n");
	assert_int_equal(page_make(&p, PAGE_TEXT, false, &tail, &e), 0);
	page_lend(&p, &first);
	buf_puts(page_text(&p, PAGE_TEXT), "a 2\n");
	assert_int_equal(page_make(&p, PAGE_TEXT, false, &tail, &e), 0);
	page_lend(&p, &second);
	assert_string_equal(buf_str(&first), "a 1\n");
	assert_string_equal(buf_str(&second), "a 2\n");
	const char *memory = second.data;
	page_take_back(&p, &second);
	page_take_back(&p, &first); // freed: there is one already
	buf_puts(page_text(&p, PAGE_TEXT), "a 3\n");
	assert_ptr_equal(p.out.data, memory);
	buf_done(&tail);
	page_done(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(page_keeps_only_the_listed_families),
	        cmocka_unit_test(lent_page_stays_as_it_was),
	        cmocka_unit_test(format_is_what_accept_likes_best),
	        cmocka_unit_test(gzip_is_what_accept_encoding_takes),
	        cmocka_unit_test(every_form_says_the_same),
	        cmocka_unit_test(large_page_shrinks_and_ceiling_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
