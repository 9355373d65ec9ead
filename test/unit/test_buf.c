// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a buffer holds what was appended, never passes its ceiling, and a refused append changes nothing.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file_open.h"
#include "test/support/alloc_count.h"

static void empty_buffer_is_an_empty_text(void **state)
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

static void appends_add_up_and_stay_terminated(void **state)
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

static void bytes_may_be_any(void **state)
{
	struct buf b;
	buf_init(&b, 10);
	assert_int_equal(buf_put(&b, "a\0b", 3), 0);
	assert_int_equal(buf_put(&b, NULL, 0), 0);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "a\0b", 4);
	buf_done(&b);
}

static void ceiling_is_reached_but_not_passed(void **state)
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

static void refused_append_changes_nothing(void **state)
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

static void sizes_near_the_end_of_size_t_are_refused(void **state)
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

static void printf_of_every_length_around_the_growth_steps(void **state)
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

static void reuse_after_reset_allocates_nothing(void **state)
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

static void growth_takes_few_allocations(void **state)
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

static void file_is_read_whole(void **state)
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

static void file_past_the_ceiling_is_an_error_with_path_and_number(void **state)
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

static void missing_files_and_directories_are_errors_with_the_path(void **state)
{
	struct buf b;
	struct err e;
	buf_init(&b, 10);
	assert_int_equal(buf_read_file(&b, "/nonexistent/x", &e), -1);
	assert_int_equal(e.kind, ERR_NOT_FOUND);
	assert_non_null(strstr(e.msg, "/nonexistent/x"));
	assert_int_equal(buf_read_file(&b, "/tmp", &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	assert_string_equal(e.msg, "cannot read /tmp: expected a regular file, found a folder");
	assert_int_equal(b.len, 0);
	buf_done(&b);
}

static void named_pipe_is_refused_without_waiting_for_its_writer(void **state)
{
	(void)state;
	char dir[] = "/tmp/buf-test-XXXXXX", path[64], want[128];
	struct buf b;
	struct err e;
	buf_init(&b, 10);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof path, "%s/pipe", dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(want, sizeof want, "cannot read %s: expected a regular file, found a named pipe", path);
	assert_int_equal(buf_read_file(&b, path, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	assert_string_equal(e.msg, want);
	assert_int_equal(buf_read_argument(&b, path, &e), -1);
	assert_string_equal(e.msg, want);
	assert_int_equal(file_check_regular(path, &e), -1);
	unlink(path);
	assert_int_equal(file_check_regular(path, &e), 0); // the caller reports that it is missing
	rmdir(dir);
	buf_done(&b);
}

static void inherited_pipe_is_read_as_an_argument_only(void **state)
{
	(void)state;
	int ends[2];
	char path[64];
	struct buf b;
	struct err e;
	buf_init(&b, 10);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "text", 4), 4);
	close(ends[1]);
	snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
	assert_int_equal(buf_read_file(&b, path, &e), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	assert_int_equal(file_inherited_pipe(path), ends[0]);
	assert_int_equal(buf_read_argument(&b, path, &e), 0);
	assert_string_equal(buf_str(&b), "text");
	close(ends[0]);
	assert_int_equal(file_inherited_pipe(path), -1);
	assert_int_equal(file_inherited_pipe("/dev/fd/x"), -1);
	assert_int_equal(file_inherited_pipe("/dev/null"), -1);
	assert_int_equal(buf_read_file(&b, "/dev/null", &e), 0); // reads as an empty file
	buf_done(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(empty_buffer_is_an_empty_text),
	        cmocka_unit_test(named_pipe_is_refused_without_waiting_for_its_writer),
	        cmocka_unit_test(inherited_pipe_is_read_as_an_argument_only),
	        cmocka_unit_test(appends_add_up_and_stay_terminated),
	        cmocka_unit_test(bytes_may_be_any),
	        cmocka_unit_test(ceiling_is_reached_but_not_passed),
	        cmocka_unit_test(refused_append_changes_nothing),
	        cmocka_unit_test(sizes_near_the_end_of_size_t_are_refused),
	        cmocka_unit_test(printf_of_every_length_around_the_growth_steps),
	        cmocka_unit_test(reuse_after_reset_allocates_nothing),
	        cmocka_unit_test(growth_takes_few_allocations),
	        cmocka_unit_test_setup_teardown(file_is_read_whole, make_scratch, remove_scratch),
	        cmocka_unit_test_setup_teardown(file_past_the_ceiling_is_an_error_with_path_and_number, make_scratch,
	                                        remove_scratch),
	        cmocka_unit_test(missing_files_and_directories_are_errors_with_the_path),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
