// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a written file is read back, and every other text is refused with the reason.
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
#include "controller/status/state_dir.h"
#include "policies/engine/policy.h"
#include "policies/schema/binding.h"

#define STATUS "{\"status\":{\"currentReplicas\":3,\"lastScaleTime\":\"2026-01-05T09:00:00Z\"}}"

static const struct policy policy = {.namespace_name = "serving", .name = "llama"};
static const struct scale_target target = {"apps/v1", "Deployment", "llama", NULL};
static const struct binding binding = {.policy = &policy, .target = &target};
static const struct state_clock clock_then = {"4b1d-1", -1234567890123};

static void write(struct buf *out, const struct binding *b)
{
	buf_init(out, STATE_FILE_BYTES_MAX);
	state_file_write(out, b, &clock_then, STATUS);
	assert_false(out->failed);
}

static void written_state_is_read_back(void **state)
{
	struct buf text;
	struct state_file file;
	struct err e;
	(void)state;
	write(&text, &binding);
	if (state_file_read(buf_str(&text), text.len, &binding, &file, &e) < 0)
		fail_msg("%s", e.msg);
	assert_string_equal(file.clock.boot_id, clock_then.boot_id);
	assert_true(file.clock.offset_ms == clock_then.offset_ms);
	assert_memory_equal(file.json + file.json_len - 2, "}\n", 2);
	assert_non_null(strstr(file.json, "\"currentReplicas\":3"));
	buf_done(&text);
}

static void whatever_is_changed_or_cut_off_is_noticed(void **state)
{
	struct buf text;
	struct state_file file;
	struct err e;
	(void)state;
	write(&text, &binding);
	for (size_t len = 0; len < text.len; len++) {
		char *cut = malloc(len ? len : 1); // exact size, so that an overread is detected
		assert_non_null(cut);
		memcpy(cut, text.data, len);
		assert_int_equal(state_file_read(cut, len, &binding, &file, &e), -1);
		assert_int_equal(e.kind, ERR_PROTOCOL);
		free(cut);
	}
	for (size_t i = 0; i < text.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			text.data[i] = (char)(text.data[i] ^ 1 << bit);
			assert_int_equal(state_file_read(text.data, text.len, &binding, &file, &e), -1);
			text.data[i] = (char)(text.data[i] ^ 1 << bit);
		}
	buf_done(&text);
}

static void state_of_another_policy_or_target_is_refused(void **state)
{
	(void)state;
	const struct policy elsewhere = {.namespace_name = "other", .name = "llama"},
	                    renamed = {.namespace_name = "serving", .name = "mistral"};
	const struct scale_target targets[] = {{"apps/v1", "Deployment", "mistral", NULL},
	                                       {"apps/v1", "StatefulSet", "llama", NULL},
	                                       {"apps/v2", "Deployment", "llama", NULL}};
	const struct binding others[] = {{.policy = &elsewhere, .target = &target},
	                                 {.policy = &renamed, .target = &target},
	                                 {.policy = &policy, .target = &targets[0]},
	                                 {.policy = &policy, .target = &targets[1]},
	                                 {.policy = &policy, .target = &targets[2]}};
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		struct buf text;
		struct state_file file;
		struct err e;
		write(&text, &others[i]);
		assert_int_equal(state_file_read(buf_str(&text), text.len, &binding, &file, &e), -1);
		assert_int_equal(e.kind, ERR_CONFLICT);
		assert_non_null(strstr(e.msg, "expected"));
		assert_non_null(strstr(e.msg, "found"));
		buf_done(&text);
	}
}

static void another_version_is_named(void **state)
{
	struct buf text;
	struct state_file file;
	struct err e;
	(void)state;
	write(&text, &binding);
	text.data[strlen("gpuscale-state ")] = '7';
	assert_int_equal(state_file_read(buf_str(&text), text.len, &binding, &file, &e), -1);
	assert_int_equal(e.kind, ERR_UNSUPPORTED);
	assert_string_equal(e.msg, "expected format version 1, found 7: another release wrote it");
	buf_done(&text);
}

static void name_that_is_too_long_for_a_file_is_refused(void **state)
{
	char name[260], out[STATE_FILE_NAME_BYTES];
	struct policy p = {.namespace_name = "ns", .name = name};
	const struct binding b = {.policy = &p, .target = &target};
	struct err e;
	(void)state;
	memset(name, 'a', sizeof name);
	name[242] = '\0';
	assert_int_equal(state_file_name(out, &b, &e), 0);
	assert_int_equal(strlen(out), 251);
	name[242] = 'a';
	name[243] = '\0';
	assert_int_equal(state_file_name(out, &b, &e), -1);
	assert_int_equal(e.kind, ERR_LIMIT);
	assert_non_null(strstr(e.msg, "at most 244 characters together"));
	assert_non_null(strstr(e.msg, "got 245"));
}

static void each_of_several_bindings_has_a_file(void **state)
{
	char out[STATE_FILE_NAME_BYTES];
	const struct binding b = {.policy = &policy, .target = &target, .key = "Deployment/llama"};
	struct err e;
	(void)state;
	assert_int_equal(state_file_name(out, &binding, &e), 0);
	assert_string_equal(out, "serving_llama.state");
	assert_int_equal(state_file_name(out, &b, &e), 0);
	assert_string_equal(out, "serving_llama_Deployment_llama.state");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(written_state_is_read_back),
	        cmocka_unit_test(whatever_is_changed_or_cut_off_is_noticed),
	        cmocka_unit_test(state_of_another_policy_or_target_is_refused),
	        cmocka_unit_test(another_version_is_named),
	        cmocka_unit_test(name_that_is_too_long_for_a_file_is_refused),
	        cmocka_unit_test(each_of_several_bindings_has_a_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
