// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a buffer holds what was appended, never passes its ceiling, and a refused append changes nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "test/support/alloc_count.h"

static void test_an_empty_buffer_is_an_empty_text(void **state)
{
	struct buf b;
	buf_init(&b, 10);
	assert_string_equal(buf_str(&b), "");
	buf_reset(&b);
	buf_done(&b);
	buf_done(&b);
	assert_string_equal(buf_str(&b), "");
	assert_int_equal(b.max, 10);
}

static void test_appends_add_up_and_stay_terminated(void **state)
{
	struct buf b;
	buf_init(&b, 1000000);
	size_t len = 0;
	for (int i = 0; i < 20000; i++) {
		assert_int_equal(buf_puts(&b, "abc"), 0);
		assert_int_equal(buf_putc(&b, 'd'), 0);
		assert_int_equal(buf_printf(&b, "%d;", i), 0);
		len += 4 + (size_t)snprintf(NULL, 0, "%d;", i);
		assert_int_equal(b.len, len);
		assert_int_equal(b.data[b.len], '\0');
	}
	assert_int_equal(strlen(b.data), len);
	assert_memory_equal(b.data, "abcd0;abcd1;", 12);
	assert_string_equal(b.data + len - 10, "abcd19999;");
	assert_false(b.failed);
	buf_done(&b);
}

static void test_bytes_may_be_any(void **state)
{
	struct buf b;
	buf_init(&b, 10);
	assert_int_equal(buf_put(&b, "a\0b", 3), 0);
	assert_int_equal(buf_put(&b, NULL, 0), 0);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "a\0b", 4);
	buf_done(&b);
}

static void test_the_ceiling_is_reached_but_not_passed(void **state)
{
	for (size_t max = 0; max < 200; max++) {
		struct buf b;
		buf_init(&b, max);
		for (size_t i = 0; i < max; i++)
			assert_int_equal(buf_putc(&b, 'x'), 0);
		assert_false(b.failed);
		assert_int_equal(buf_putc(&b, 'y'), -1);
		assert_true(b.failed);
		assert_int_equal(b.len, max);
		assert_true(b.cap <= max + 1);
		assert_null(strchr(buf_str(&b), 'y'));
		buf_done(&b);
	}
}

static void test_a_refused_append_changes_nothing(void **state)
{
	struct buf b;
	buf_init(&b, 5);
	buf_puts(&b, "abc");
	assert_int_equal(buf_puts(&b, "def"), -1);
	assert_string_equal(buf_str(&b), "abc");
	assert_int_equal(buf_putc(&b, 'd'), -1); // it would fit, but a hole in the text would be worse
	assert_int_equal(buf_printf(&b, "%d", 1), -1);
	assert_string_equal(buf_str(&b), "abc");
	buf_reset(&b);
	assert_false(b.failed);
	assert_int_equal(buf_puts(&b, "de"), 0);
	assert_string_equal(buf_str(&b), "de");
	buf_reset(&b);
	// printf first writes into the free bytes, then finds that it is too long
	buf_puts(&b, "ab");
	assert_int_equal(buf_printf(&b, "%s", "cdefghijklmnop"), -1);
	assert_string_equal(buf_str(&b), "ab");
	assert_int_equal(b.len, 2);
	buf_done(&b);
}

static void test_sizes_near_the_end_of_size_t_are_refused(void **state)
{
	struct buf b;
	buf_init(&b, 100);
	buf_puts(&b, "x");
	assert_int_equal(buf_put(&b, "", SIZE_MAX), -1);
	buf_reset(&b);
	buf_puts(&b, "x");
	assert_int_equal(buf_put(&b, "", SIZE_MAX - 1), -1);
	assert_string_equal(buf_str(&b), "x");
	buf_done(&b);
}

static void test_printf_of_every_length_around_the_growth_steps(void **state)
{
	char text[400];
	for (int n = 0; n < 300; n++) {
		struct buf b;
		buf_init(&b, 1000);
		memset(text, 'z', sizeof text);
		text[n] = '\0';
		assert_int_equal(buf_printf(&b, "%s", text), 0);
		assert_string_equal(buf_str(&b), text);
		assert_int_equal(buf_printf(&b, "%s", text), 0);
		assert_int_equal(b.len, 2 * (size_t)n);
		buf_done(&b);
	}
}

static void test_reuse_after_reset_allocates_nothing(void **state)
{
	if (!alloc_count_works())
		skip();
	struct buf b;
	buf_init(&b, 100000);
	for (int i = 0; i < 10000; i++)
		buf_puts(&b, "12345");
	size_t before = alloc_count;
	for (int round = 0; round < 10; round++) {
		buf_reset(&b);
		for (int i = 0; i < 10000; i++)
			buf_puts(&b, "12345");
	}
	assert_int_equal(alloc_count, before);
	assert_int_equal(b.len, 50000);
	buf_done(&b);
}

static void test_growth_takes_few_allocations(void **state)
{
	if (!alloc_count_works())
		skip();
	struct buf b;
	buf_init(&b, 1024 * 1024);
	size_t before = alloc_count;
	for (int i = 0; i < 1024 * 1024; i++)
		buf_putc(&b, 'x');
	assert_false(b.failed);
	assert_in_range(alloc_count - before, 1, 30);
	buf_done(&b);
}

struct scratch {
	char path[64];
};

static int make_scratch(void **state)
{
	static struct scratch s;
	snprintf(s.path, sizeof s.path, "/tmp/gpuscale-test-buf.XXXXXX");
	int fd = mkstemp(s.path);
	if (fd < 0)
		return -1;
	char text[40000];
	memset(text, 'f', sizeof text);
	ssize_t n = write(fd, text, sizeof text);
	close(fd);
	*state = &s;
	return n == (ssize_t)sizeof text ? 0 : -1;
}

static int remove_scratch(void **state)
{
	return unlink(((struct scratch *)*state)->path);
}

static void test_a_file_is_read_whole(void **state)
{
	const char *path = ((struct scratch *)*state)->path;
	struct buf b;
	struct err e;
	buf_init(&b, 40002);
	buf_puts(&b, "ab");
	assert_int_equal(buf_read_file(&b, path, &e), 0);
	assert_int_equal(b.len, 40002);
	assert_memory_equal(b.data, "abff", 4);
	buf_done(&b);
}

static void test_a_file_past_the_ceiling_is_an_error_with_path_and_number(void **state)
{
	const char *path = ((struct scratch *)*state)->path;
	struct buf b;
	struct err e;
	buf_init(&b, 39999);
	assert_int_equal(buf_read_file(&b, path, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, path));
	assert_non_null(strstr(e.msg, "39999"));
	assert_true(b.len <= 39999 && b.failed);
	buf_done(&b);
}

static void test_missing_files_and_directories_are_errors_with_the_path(void **state)
{
	struct buf b;
	struct err e;
	buf_init(&b, 10);
	assert_int_equal(buf_read_file(&b, "/nonexistent/x", &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(e.msg, "/nonexistent/x"));
	assert_int_equal(buf_read_file(&b, "/tmp", &e), -1);
	assert_int_equal(e.kind, ERR_IO);
	assert_non_null(strstr(e.msg, "/tmp"));
	assert_int_equal(b.len, 0);
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_an_empty_buffer_is_an_empty_text),
	        cmocka_unit_test(test_appends_add_up_and_stay_terminated),
	        cmocka_unit_test(test_bytes_may_be_any),
	        cmocka_unit_test(test_the_ceiling_is_reached_but_not_passed),
	        cmocka_unit_test(test_a_refused_append_changes_nothing),
	        cmocka_unit_test(test_sizes_near_the_end_of_size_t_are_refused),
	        cmocka_unit_test(test_printf_of_every_length_around_the_growth_steps),
	        cmocka_unit_test(test_reuse_after_reset_allocates_nothing),
	        cmocka_unit_test(test_growth_takes_few_allocations),
	        cmocka_unit_test_setup_teardown(test_a_file_is_read_whole, make_scratch, remove_scratch),
	        cmocka_unit_test_setup_teardown(test_a_file_past_the_ceiling_is_an_error_with_path_and_number,
	                                        make_scratch, remove_scratch),
	        cmocka_unit_test(test_missing_files_and_directories_are_errors_with_the_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
