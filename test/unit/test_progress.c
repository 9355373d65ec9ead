// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a command that takes long reports it where there is no terminal, at most every ten seconds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <event2/event.h>

#include "cli/term/progress.h"

// Redirects standard error to a file; returns it. *ret_before takes the earlier descriptor.
static FILE *redirect(int *ret_before)
{
	FILE *file = tmpfile();
	assert_non_null(file);
	*ret_before = dup(STDERR_FILENO);
	assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
	return file;
}

static void restore(int before)
{
	dup2(before, STDERR_FILENO);
	close(before);
}

// Asserts that the next line starts with `want`; NULL: that there is none.
static void expect_line(FILE *file, const char *want)
{
	char text[256];
	const char *line = fgets(text, sizeof text, file);
	if (!want)
		assert_null(line);
	else
		assert_true(line && strncmp(line, want, strlen(want)) == 0);
}

static void line_is_written_every_ten_seconds(void **state)
{
	(void)state;
	struct progress p = {.what = "reading"};
	int before;
	FILE *file = redirect(&before);
	progress_show(&p, 1, 4, "demand"); // too early
	p.started_ms -= 2 * PROGRESS_LINE_MS;
	progress_show(&p, 2, 4, "demand");
	progress_show(&p, 3, 4, "demand"); // too early again
	p.shown_ms -= PROGRESS_LINE_MS;
	progress_show(&p, 3, 4, "demand");
	progress_clear(&p);
	restore(before);
	rewind(file);
	expect_line(file, "reading: 50 % after 2");
	expect_line(file, "reading: 75 % after 2");
	expect_line(file, NULL);
	fclose(file);
}

static void command_that_waits_for_a_reply_reports_it(void **state)
{
	(void)state;
	struct progress p = {.what = "querying"};
	struct event_base *loop = event_base_new();
	int before;
	FILE *file = redirect(&before);
	progress_watch(&p, loop);
	p.started_ms -= PROGRESS_LINE_MS;
	while (p.shown_ms == 0)
		event_base_loop(loop, EVLOOP_ONCE);
	progress_clear(&p);
	assert_null(p.timer);
	event_base_free(loop);
	restore(before);
	rewind(file);
	expect_line(file, "querying: not complete after 1");
	fclose(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(line_is_written_every_ten_seconds),
	        cmocka_unit_test(command_that_waits_for_a_reply_reports_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
