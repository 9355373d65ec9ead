// SPDX-License-Identifier: Apache-2.0
// Goal of this test: an error keeps its kind, grows context from the outside in, and never overflows its message.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"

static void set_fills_every_field_and_returns_minus_one(void **state)
{
	struct err e = {.kind = ERR_TLS, .code = 7, .retry_after_ms = 9, .msg = "old"};
	assert_int_equal(err_set(&e, ERR_INPUT, "line %d", 3), -1);
	assert_int_equal(e.kind, ERR_INPUT);
	assert_int_equal(e.code, 0);
	assert_int_equal(e.retry_after_ms, 0);
	assert_string_equal(e.msg, "line 3");
	assert_int_equal(err_set_code(&e, ERR_THROTTLED, 429, "slow"), -1);
	assert_int_equal(e.kind, ERR_THROTTLED);
	assert_int_equal(e.code, 429);
	err_clear(&e);
	assert_int_equal(e.kind, ERR_NONE);
	assert_string_equal(e.msg, "");
}

static void wrap_puts_context_in_front_and_keeps_the_rest(void **state)
{
	struct err e;
	err_set_code(&e, ERR_IO, ENOSPC, "disk full");
	e.retry_after_ms = 250;
	assert_int_equal(err_wrap(&e, "writing %s", "status"), -1);
	assert_int_equal(err_wrap(&e, "serving/llama"), -1);
	assert_string_equal(e.msg, "serving/llama: writing status: disk full");
	assert_int_equal(e.kind, ERR_IO);
	assert_int_equal(e.code, ENOSPC);
	assert_int_equal(e.retry_after_ms, 250);
}

static void null_is_accepted_by_who_does_not_care(void **state)
{
	assert_int_equal(err_set(NULL, ERR_INPUT, "x"), -1);
	assert_int_equal(err_set_code(NULL, ERR_INPUT, 1, "x"), -1);
	assert_int_equal(err_wrap(NULL, "x"), -1);
	err_clear(NULL);
}

static void message_cannot_steer_a_terminal_or_end_a_line(void **state)
{
	struct err e;
	err_set(&e, ERR_INPUT, "%s: bad", "a\x1b[2J\nb\xc2\x9b\xff.yaml");
	assert_string_equal(e.msg, "a\\x1b[2J\\nb\\u009b\\xff.yaml: bad");
	err_set(&e, ERR_INPUT, "gr\xc3\xbc\xc3\x9f");
	assert_string_equal(e.msg, "gr\xc3\xbc\xc3\x9f");
	err_wrap(&e, "a\tb");
	assert_string_equal(e.msg, "a\\tb: gr\xc3\xbc\xc3\x9f");
}

static void message_may_be_formatted_from_itself(void **state)
{
	struct err e;
	err_set(&e, ERR_INPUT, "inner");
	err_set(&e, ERR_LIMIT, "outer (%s)", e.msg);
	assert_string_equal(e.msg, "outer (inner)");
	err_wrap(&e, "again %s", e.msg);
	assert_string_equal(e.msg, "again outer (inner): outer (inner)");
}

static void long_messages_are_cut_at_the_end(void **state)
{
	char text[2 * ERR_MSG_BYTES];
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	struct err e;
	err_set(&e, ERR_INPUT, "%s", text);
	assert_int_equal(strlen(e.msg), ERR_MSG_BYTES - 1);
	err_wrap(&e, "ctx");
	assert_int_equal(strlen(e.msg), ERR_MSG_BYTES - 1);
	assert_memory_equal(e.msg, "ctx: xxx", 8);
	err_wrap(&e, "%s", text); // context alone fills it
	assert_int_equal(strlen(e.msg), ERR_MSG_BYTES - 1);
	assert_memory_equal(e.msg, "xxx", 3);
}

static void cut_falls_between_characters(void **state)
{
	for (size_t pad = 0; pad < 4; pad++) {
		char text[2 * ERR_MSG_BYTES] = "aaa";
		text[pad] = '\0';
		while (strlen(text) < ERR_MSG_BYTES + 8)
			memcpy(text + strlen(text), "\xf0\x9f\x98\x80", 5);
		struct err e;
		err_set(&e, ERR_INPUT, "%s", text);
		size_t len = strlen(e.msg);
		assert_true(len > ERR_MSG_BYTES - 5);
		assert_int_equal((len - pad) % 4, 0);
		err_wrap(&e, "c");
		assert_int_equal((strlen(e.msg) - pad - strlen("c: ")) % 4, 0);
	}
}

static void every_kind_has_a_row_with_a_name_of_its_own(void **state)
{
	for (int k = 0; k < ERR__COUNT; k++) {
		const struct err_kind_info *info = err_kind_info((enum err_kind)k);
		assert_non_null(info->name);
		assert_true(info->name[0] >= 'A' && info->name[0] <= 'Z');
		assert_int_equal(info->exit_code, k == ERR_NONE ? 0 : k == ERR_USAGE ? 2 : 1);
		for (int other = 0; other < k; other++)
			assert_string_not_equal(info->name, err_kind_info((enum err_kind)other)->name);
	}
}

static void retry_helps_only_against_passing_faults(void **state)
{
	static const enum err_kind retryable[] = {ERR_IO,       ERR_UNREACHABLE, ERR_TIMEOUT,
	                                          ERR_CONFLICT, ERR_THROTTLED,   ERR_SERVER};
	for (int k = 0; k < ERR__COUNT; k++) {
		int expected = 0;
		for (size_t i = 0; i < sizeof retryable / sizeof retryable[0]; i++)
			expected |= (int)retryable[i] == k;
		assert_int_equal(err_kind_info((enum err_kind)k)->retryable, expected);
	}
}

static void http_status_gives_the_kind(void **state)
{
	static const struct {
		int status;
		enum err_kind kind;
	} rows[] = {
	        {400, ERR_REJECTED},  {401, ERR_AUTH},     {403, ERR_AUTH},      {404, ERR_NOT_FOUND},
	        {408, ERR_TIMEOUT},   {409, ERR_CONFLICT}, {410, ERR_NOT_FOUND}, {422, ERR_REJECTED},
	        {429, ERR_THROTTLED}, {500, ERR_SERVER},   {502, ERR_SERVER},    {503, ERR_SERVER},
	        {504, ERR_TIMEOUT},   {599, ERR_SERVER},   {600, ERR_PROTOCOL},  {0, ERR_PROTOCOL},
	        {302, ERR_PROTOCOL},  {-1, ERR_PROTOCOL},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (err_kind_of_http_status(rows[i].status) != rows[i].kind)
			fail_msg("status %d: kind %s", rows[i].status,
			         err_kind_info(err_kind_of_http_status(rows[i].status))->name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(set_fills_every_field_and_returns_minus_one),
	        cmocka_unit_test(wrap_puts_context_in_front_and_keeps_the_rest),
	        cmocka_unit_test(null_is_accepted_by_who_does_not_care),
	        cmocka_unit_test(message_cannot_steer_a_terminal_or_end_a_line),
	        cmocka_unit_test(message_may_be_formatted_from_itself),
	        cmocka_unit_test(long_messages_are_cut_at_the_end),
	        cmocka_unit_test(cut_falls_between_characters),
	        cmocka_unit_test(every_kind_has_a_row_with_a_name_of_its_own),
	        cmocka_unit_test(retry_helps_only_against_passing_faults),
	        cmocka_unit_test(http_status_gives_the_kind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
