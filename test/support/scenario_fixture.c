// SPDX-License-Identifier: Apache-2.0
#include "test/support/scenario_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "policies/test/test_report.h"

#define ARENA_MAX (64 << 20)
#define HEAD      "apiVersion: gpuscale.dev/v1alpha1\nkind: PolicyTest\npolicyFiles: [p.yaml]\ntests:\n"

int scenario_setup(void **state)
{
	struct scenario_fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	engine_init(&f->engine, 1);
	engine_add_replicas(&f->engine, "want");
	engine_add_value(&f->engine, "load", 0.5);
	f->engine.signals[0].on_missing = ON_MISSING_IGNORE;
	f->engine.signals[1].on_missing = ON_MISSING_IGNORE;
	f->engine.signals[0].stale_after_ms = 60000;
	f->engine.policy.namespace_name = "serving";
	f->engine.policy.name = "llama";
	f->engine.policy.max_replicas = 100;
	f->policies[0] = &f->engine.policy;
	f->set = (struct file_set){.policies = f->policies, .n_policies = 1};
	arena_init(&f->arena, ARENA_MAX);
	*state = f;
	return 0;
}

int scenario_teardown(void **state)
{
	struct scenario_fixture *f = *state;
	arena_done(&f->arena);
	free(f);
	return 0;
}

int scenario_read(struct scenario_fixture *f, const char *text)
{
	struct doc_file doc;
	struct err e;
	char *whole = arena_printf(&f->arena, HEAD "%s", text);
	schema_errors_init(&f->errors, "x_test.yaml");
	if (doc_parse_yaml(&f->arena, "x_test.yaml", whole, strlen(whole), &doc, &e) < 0)
		fail_msg("%s", e.msg);
	memset(&f->file, 0, sizeof f->file);
	if (schema_decode(&scenario_schema, doc.roots[0], &f->file, &f->arena, &f->errors, "") < 0)
		return -1;
	return scenario_bind(f->file.tests, doc_get(doc.roots[0], "tests")->child, 0, f->file.interval_ms, &f->set,
	                     &f->arena, &f->errors);
}

const char *scenario_report(struct scenario_fixture *f, bool diff)
{
	struct buf out;
	struct test_style style = {.diff = diff};
	buf_init(&out, 1 << 20);
	test_report_findings(&out, &style, "x_test.yaml", &f->result);
	const char *text = arena_strdup(&f->arena, buf_str(&out));
	buf_done(&out);
	return text;
}

size_t scenario_play(struct scenario_fixture *f, const char *text)
{
	struct err e;
	if (scenario_read(f, text) < 0)
		fail_msg("%s\n%s: %s", text, f->errors.items[0].path, f->errors.items[0].message);
	if (scenario_run(f->file.tests, NULL, &f->arena, &f->result, &e) < 0)
		fail_msg("%s", e.msg);
	return f->result.n + f->result.dropped;
}

void scenario_must_pass(struct scenario_fixture *f, const char *text)
{
	if (scenario_play(f, text) > 0)
		fail_msg("%s\n%s", text, scenario_report(f, false));
}

void scenario_must_fail(struct scenario_fixture *f, const char *text, const char *want)
{
	if (scenario_play(f, text) == 0)
		fail_msg("passes, but must not:\n%s", text);
	if (!strstr(scenario_report(f, false), want))
		fail_msg("%s\n  want: %s\n  got:\n%s", text, want, scenario_report(f, false));
}
