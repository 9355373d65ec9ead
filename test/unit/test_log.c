// SPDX-License-Identifier: Apache-2.0
// Goal of this test: every line is one write, well framed whatever is in it, at most 8 KiB, and costs no allocation.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json/json_read.h"
#include "base/process/log.h"
#include "test/support/alloc_count.h"
#include "test/support/manual_clock.h"

#define START_MS INT64_C(1767603600123) // 2026-01-05T09:00:00.123Z

// A datagram socket pair: one write(2) is one recv(2), so torn lines would show.
struct fixture {
	int in, out;
	struct clock clock;
	char line[4 * LOG_LINE_BYTES_MAX];
	size_t len;
};

static int setup(void **state)
{
	static struct fixture f;
	int fd[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, fd) < 0)
		return -1;
	f.in = fd[0];
	f.out = fd[1];
	clock_init_manual(&f.clock, START_MS);
	*state = &f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	close(f->in);
	close(f->out);
	return 0;
}

// The next line without its line feed; "" when there is none.
static const char *next_line(struct fixture *f)
{
	ssize_t n = recv(f->in, f->line, sizeof f->line - 1, MSG_DONTWAIT);
	f->len = n > 0 ? (size_t)n : 0;
	f->line[f->len] = '\0';
	if (f->len) {
		assert_int_equal(strlen(f->line), f->len);
		assert_int_equal(f->line[f->len - 1], '\n');
		f->line[f->len - 1] = '\0';
		assert_null(strchr(f->line, '\n'));
	}
	return f->line;
}

static cJSON *next_json(struct fixture *f)
{
	struct err e;
	const char *text = next_line(f);
	cJSON *tree = json_read(text, strlen(text), &e);
	if (!tree)
		fail_msg("%s\n%s", e.msg, text);
	return tree;
}

static void text_lines_are_klog_lines(void **state)
{
	struct fixture *f = *state;
	struct log *lg = log_new(f->out, LOG_FORMAT_TEXT, LOG_DEBUG, &f->clock);
	const struct log_kv kv[] = {LOG_S("policy", "serving/llama"),
	                            LOG_I("replicas", -3),
	                            LOG_F("value", 0.7),
	                            LOG_B("dryRun", 1),
	                            LOG_B("paused", 0),
	                            LOG_S("none", NULL),
	                            LOG_F("bad", NAN),
	                            LOG_I("min", INT64_MIN)};
	char expected[400];
	snprintf(
	        expected, sizeof expected,
	        "I0105 09:00:00.123000 %7d loop.c:12] \"Scaled target\" policy=\"serving/llama\" replicas=-3 value=0.7 "
	        "dryRun=true paused=false none=null bad=NaN min=-9223372036854775808",
	        (int)getpid());
	log_write(lg, LOG_INFO, "controller/loop.c", 12, "Scaled target", kv, sizeof kv / sizeof kv[0]);
	assert_string_equal(next_line(f), expected);
	static const char letters[] = "IIWE";
	for (int level = LOG_DEBUG; level < LOG_LEVEL__COUNT; level++) {
		log_write(lg, (enum log_level)level, "a.c", 1, "m", NULL, 0);
		assert_int_equal(next_line(f)[0], letters[level]);
	}
	log_free(lg);
}

static void json_lines_hold_the_same_as_json(void **state)
{
	struct fixture *f = *state;
	struct log *lg = log_new(f->out, LOG_FORMAT_JSON, LOG_INFO, &f->clock);
	const struct log_kv kv[] = {LOG_S("policy", "serving/llama"),
	                            LOG_I("replicas", -3),
	                            LOG_F("value", 0.7),
	                            LOG_B("dryRun", 1),
	                            LOG_S("none", NULL),
	                            LOG_F("bad", INFINITY)};
	log_write(lg, LOG_WARNING, "loop.c", 12, "Scaled \"target\"", kv, sizeof kv / sizeof kv[0]);
	assert_string_equal(next_line(f),
	                    "{\"ts\":1767603600.123,\"level\":\"warning\",\"caller\":\"loop.c:12\","
	                    "\"msg\":\"Scaled \\\"target\\\"\",\"policy\":\"serving/llama\",\"replicas\":-3,"
	                    "\"value\":0.7,\"dryRun\":true,\"none\":null,\"bad\":null}");
	log_free(lg);
}

static void macro_adds_file_and_line(void **state)
{
	struct fixture *f = *state;
	struct log *lg = log_new(f->out, LOG_FORMAT_JSON, LOG_INFO, &f->clock);
	char caller[64];
	snprintf(caller, sizeof caller, "test_log.c:%d", __LINE__ + 1);
	LOG(lg, LOG_INFO, "Started", LOG_S("version", "1"), LOG_I("shards", 2));
	cJSON *tree = next_json(f);
	assert_string_equal(json_get_str(tree, "caller", ""), caller);
	assert_string_equal(json_get_str(tree, "version", ""), "1");
	cJSON_Delete(tree);
	log_free(lg);
}

static void lines_below_the_level_and_a_null_log_write_nothing(void **state)
{
	struct fixture *f = *state;
	struct log *lg = log_new(f->out, LOG_FORMAT_TEXT, LOG_WARNING, &f->clock);
	LOG(lg, LOG_DEBUG, "m", LOG_I("k", 1));
	LOG(lg, LOG_INFO, "m", LOG_I("k", 1));
	LOG(NULL, LOG_ERROR, "m", LOG_I("k", 1));
	assert_string_equal(next_line(f), "");
	LOG(lg, LOG_WARNING, "m", LOG_I("k", 1));
	assert_string_not_equal(next_line(f), "");
	log_free(lg);
	log_free(NULL);
}

// No value may start a new line, close its quotes, or send a control sequence to a terminal.
static void hostile_values_stay_inside_their_quotes(void **state)
{
	struct fixture *f = *state;
	static const char hostile[] = "a\"b\\c\nd\te\rf\x01\x1b[31m\x7f\xff\xc3\xa9";
	struct log *lg = log_new(f->out, LOG_FORMAT_TEXT, LOG_INFO, &f->clock);
	LOG(lg, LOG_INFO, hostile, LOG_S("k", hostile));
	const char *quoted = "\"a\\\"b\\\\c\\nd\\te\\rf\\x01\\x1b[31m\\x7f\\xff\xc3\xa9\"";
	char expected[200];
	snprintf(expected, sizeof expected, "] %s k=%s", quoted, quoted);
	const char *body = strstr(next_line(f), "] ");
	assert_non_null(body);
	assert_string_equal(body, expected);
	log_free(lg);

	lg = log_new(f->out, LOG_FORMAT_JSON, LOG_INFO, &f->clock);
	LOG(lg, LOG_INFO, hostile, LOG_S("k", hostile));
	cJSON *tree = next_json(f);
	assert_string_equal(json_get_str(tree, "k", ""), "a\"b\\c\nd\te\rf\x01\x1b[31m\x7f\xef\xbf\xbd\xc3\xa9");
	assert_string_equal(json_get_str(tree, "msg", ""), json_get_str(tree, "k", "x"));
	for (const char *p = f->line; *p; p++)
		assert_true((unsigned char)*p >= 0x20 && *p != 0x7f);
	cJSON_Delete(tree);
	log_free(lg);
}

// Around the ceiling, with values of one byte and of six: the framing must hold at every length.
static void long_lines_are_cut_and_stay_well_formed(void **state)
{
	struct fixture *f = *state;
	static char value[3 * LOG_LINE_BYTES_MAX];
	struct log *json = log_new(f->out, LOG_FORMAT_JSON, LOG_INFO, &f->clock);
	struct log *text = log_new(f->out, LOG_FORMAT_TEXT, LOG_INFO, &f->clock);
	for (size_t n = LOG_LINE_BYTES_MAX - 250; n < LOG_LINE_BYTES_MAX + 50; n++) {
		for (int wide = 0; wide < 2; wide++) {
			size_t len = wide ? n / 6 : n;
			memset(value, wide ? '\x01' : 'v', len);
			value[len] = '\0';
			LOG(json, LOG_INFO, "m", LOG_S("long", value), LOG_S("after", "x"), LOG_I("n", INT64_MIN));
			cJSON *tree = next_json(f);
			assert_true(f->len <= LOG_LINE_BYTES_MAX);
			int cut = cJSON_IsTrue(json_get(tree, "truncated"));
			int whole = strlen(json_get_str(tree, "long", "")) == len && json_get(tree, "after") &&
			            json_get(tree, "n");
			if (cut == whole)
				fail_msg("%zu: truncated %d, whole %d", n, cut, whole);
			cJSON_Delete(tree);

			LOG(text, LOG_INFO, "m", LOG_S("long", value), LOG_S("after", "x"), LOG_I("n", INT64_MIN));
			const char *line = next_line(f), *mark = strstr(line, " truncated=true");
			assert_true(f->len <= LOG_LINE_BYTES_MAX);
			size_t quotes = 0;
			for (const char *p = line; *p; p++)
				quotes += *p == '"';
			assert_int_equal(quotes % 2, 0);
			if (mark)
				assert_string_equal(mark, " truncated=true");
			else
				assert_non_null(strstr(line, "after=\"x\" n=-9223372036854775808"));
		}
	}
	memset(value, 'k', sizeof value - 1);
	LOG(json, LOG_INFO, value, LOG_S("k", "v")); // the message alone
	cJSON *tree = next_json(f);
	assert_true(cJSON_IsTrue(json_get(tree, "truncated")));
	cJSON_Delete(tree);
	LOG(json, LOG_INFO, "m", LOG_S(value, "v")); // a key
	tree = next_json(f);
	assert_true(cJSON_IsTrue(json_get(tree, "truncated")));
	cJSON_Delete(tree);
	log_free(json);
	log_free(text);
}

static void line_allocates_nothing(void **state)
{
	if (!alloc_count_works())
		skip();
	struct fixture *f = *state;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct log *lg = log_new(null, LOG_FORMAT_JSON, LOG_INFO, &f->clock);
	size_t before = alloc_count;
	for (int i = 0; i < 1000; i++)
		LOG(lg, LOG_INFO, "m", LOG_S("s", "text"), LOG_F("f", 0.1 * i), LOG_I("i", i), LOG_B("b", 1));
	assert_int_equal(alloc_count, before);
	log_free(lg);
	close(null);
}

// A full pipe must not block the controller, and the log must go on when the pipe is read again.
static void lines_that_cannot_be_written_are_dropped(void **state)
{
	struct fixture *f = *state;
	struct log *lg = log_new(-1, LOG_FORMAT_TEXT, LOG_INFO, &f->clock);
	LOG(lg, LOG_INFO, "m", LOG_I("k", 1));
	log_free(lg);

	static char text[1024 * 1024];
	int fd[2], size;
	assert_int_equal(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
	assert_true((size = fcntl(fd[1], F_GETPIPE_SZ)) > 0 && size < (int)sizeof text);
	lg = log_new(fd[1], LOG_FORMAT_TEXT, LOG_INFO, &f->clock);
	for (int i = 0; i < size / 64; i++) // a line is longer than that
		LOG(lg, LOG_INFO, "some text that fills the pipe", LOG_I("k", i));
	ssize_t len = read(fd[0], text, sizeof text - 1);
	assert_in_range(len, size / 2, size);
	LOG(lg, LOG_INFO, "after", LOG_I("k", 1));
	len = read(fd[0], text, sizeof text - 1);
	assert_true(len > 0 && text[len - 1] == '\n');
	text[len] = '\0';
	assert_non_null(strstr(text, "\"after\" k=1"));
	assert_null(strstr(text, "some text"));
	log_free(lg);
	close(fd[0]);
	close(fd[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test_setup_teardown(text_lines_are_klog_lines, setup, teardown),
	        cmocka_unit_test_setup_teardown(json_lines_hold_the_same_as_json, setup, teardown),
	        cmocka_unit_test_setup_teardown(macro_adds_file_and_line, setup, teardown),
	        cmocka_unit_test_setup_teardown(lines_below_the_level_and_a_null_log_write_nothing, setup, teardown),
	        cmocka_unit_test_setup_teardown(hostile_values_stay_inside_their_quotes, setup, teardown),
	        cmocka_unit_test_setup_teardown(long_lines_are_cut_and_stay_well_formed, setup, teardown),
	        cmocka_unit_test_setup_teardown(line_allocates_nothing, setup, teardown),
	        cmocka_unit_test_setup_teardown(lines_that_cannot_be_written_are_dropped, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
