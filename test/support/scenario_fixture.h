// SPDX-License-Identifier: Apache-2.0
// A policy, and policy tests written as text, in one struct.
#ifndef GPUSCALE_TEST_SUPPORT_SCENARIO_FIXTURE_H
#define GPUSCALE_TEST_SUPPORT_SCENARIO_FIXTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/schema/schema.h"
#include "policies/load/file_set.h"
#include "policies/test/scenario.h"
#include "test/support/engine.h"

#define SCENARIO_HEAD_LINES 4 // of the file, before the first test

// The policy serving/llama of two signals, both ignored when missing: `want` asks for replicas (its samples live 60 s),
// `load` has the target 0.5. No stabilization, no rate limit; 1 to 100 replicas, every 15 s.
struct scenario_fixture {
	struct engine engine;
	const struct policy *policies[1];
	struct file_set set;
	struct arena arena;
	struct schema_errors errors;
	struct scenario_file file;
	struct scenario_result result;
};

// cmocka's setup and teardown: *state is a struct scenario_fixture.
int scenario_setup(void **state);
int scenario_teardown(void **state);
// Decodes and binds the first of the tests in `text`, a YAML list. 0, or -1 with f->errors.
int scenario_read(struct scenario_fixture *f, const char *text);
// Runs it; a test that cannot be read fails. Returns how many findings there are.
size_t scenario_play(struct scenario_fixture *f, const char *text);
// The findings of the last run as text.
const char *scenario_report(struct scenario_fixture *f, bool diff);
void scenario_must_pass(struct scenario_fixture *f, const char *text);
// want: a part of the report.
void scenario_must_fail(struct scenario_fixture *f, const char *text, const char *want);

#endif
