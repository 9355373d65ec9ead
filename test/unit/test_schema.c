// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a document becomes a struct with every default in place, or all that is wrong with it is said at
// once, each with its place, its path and what to write instead.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/doc.h"
#include "base/err.h"
#include "base/schema.h"
#include "test/support/sample_schema.h"

#define ARENA_MAX_BYTES ((size_t)16 * 1024 * 1024)

struct decoded {
	struct arena arena;
	struct sample value;
	struct schema_errors errors;
	struct buf printed;
	int rc;
};

static void decode(struct decoded *d, const char *text)
{
	struct doc_file file;
	struct err e;
	err_clear(&e);
	arena_init(&d->arena, ARENA_MAX_BYTES);
	if (doc_parse_yaml(&d->arena, "t", text, strlen(text), &file, &e) < 0)
		fail_msg("%s", e.msg);
	schema_errors_init(&d->errors, "t");
	memset(&d->value, 0, sizeof d->value);
	d->rc = schema_decode(&sample_schema, file.n_roots ? file.roots[0] : NULL, &d->value, &d->arena, &d->errors,
	                      "");
	buf_init(&d->printed, 65536);
	schema_errors_print(&d->errors, &d->printed);
	assert_int_equal(d->rc, d->errors.n ? -1 : 0);
}

static void done(struct decoded *d)
{
	buf_done(&d->printed);
	arena_done(&d->arena);
}

static void every_type_reaches_its_place(void **state)
{
	struct decoded d;
	decode(&d, "metadata: {name: llama}\n"
	           "spec:\n"
	           "  minReplicas: 0\n"
	           "  maxReplicas: 16\n"
	           "  step: -7\n"
	           "  dryRun: true\n"
	           "  interval: 1m30s\n"
	           "  periodSeconds: 120\n"
	           "  tags: [a, \"1\", 'yes']\n"
	           "  zones: []\n"
	           "  signals:\n"
	           "  - {name: sm, value: \"0.7\", tolerance: 50m, type: Pods, window: {duration: 5m, minSamples: 9}}\n"
	           "  - name: queue\n"
	           "    value: 8\n"
	           "  extra: {free: [form]}\n");
	assert_string_equal(buf_str(&d.printed), "");
	const struct sample *s = &d.value;
	assert_string_equal(s->name, "llama");
	assert_int_equal(s->min_replicas, 0);
	assert_int_equal(s->max_replicas, 16);
	assert_int_equal(s->step, -7);
	assert_true(s->dry_run && s->dry_run_set);
	assert_int_equal(s->interval_ms, 90000);
	assert_int_equal(s->period_ms, 120000);
	assert_int_equal(s->n_tags, 3);
	assert_string_equal(s->tags[1], "1");
	assert_string_equal(s->tags[2], "yes");
	assert_int_equal(s->n_zones, 0);
	assert_int_equal(s->n_signals, 2);
	assert_string_equal(s->signals[0].name, "sm");
	assert_true(s->signals[0].value == 0.7);
	assert_true(s->signals[0].tolerance_ratio == 0.05);
	assert_int_equal(s->signals[0].kind, 2);
	assert_true(s->signals[0].window_set);
	assert_int_equal(s->signals[0].window.duration_ms, 300000);
	assert_int_equal(s->signals[0].window.min_samples, 9);
	assert_true(s->signals[1].value == 8);
	assert_true(s->extra_set);
	assert_string_equal(doc_get(s->extra, "free")->child->text, "form");
	done(&d);
}

static void what_is_absent_gets_its_default_at_every_depth(void **state)
{
	struct decoded d;
	decode(&d, "spec: {maxReplicas: 2, dryRun: null, interval: ~, signals: [{name: q, value: 1}]}");
	assert_string_equal(buf_str(&d.printed), "");
	const struct sample *s = &d.value;
	assert_string_equal(s->name, "unnamed"); // metadata is not there at all
	assert_int_equal(s->min_replicas, 1);
	assert_int_equal(s->step, 0);
	assert_false(s->dry_run || s->dry_run_set);
	assert_int_equal(s->interval_ms, 15000);
	assert_int_equal(s->period_ms, 60000);
	assert_int_equal(s->n_tags, 0);
	assert_null(s->tags);
	assert_int_equal(s->n_zones, 2);
	assert_string_equal(s->zones[0], "a");
	assert_string_equal(s->zones[1], "b");
	assert_true(s->signals[0].tolerance_ratio == 0.1);
	assert_int_equal(s->signals[0].kind, 1);
	assert_false(s->signals[0].window_set);
	assert_int_equal(s->signals[0].window.duration_ms, 120000);
	assert_int_equal(s->signals[0].window.min_samples, 4);
	assert_null(s->extra);
	assert_false(s->extra_set);
	done(&d);
}

static void a_partly_written_object_gets_the_other_defaults(void **state)
{
	struct decoded d;
	decode(&d, "spec: {maxReplicas: 2, signals: [{name: q, value: 1, window: {duration: 30s}}]}");
	assert_string_equal(buf_str(&d.printed), "");
	assert_true(d.value.signals[0].window_set);
	assert_int_equal(d.value.signals[0].window.duration_ms, 30000);
	assert_int_equal(d.value.signals[0].window.min_samples, 4);
	done(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_type_reaches_its_place),
	        cmocka_unit_test(what_is_absent_gets_its_default_at_every_depth),
	        cmocka_unit_test(a_partly_written_object_gets_the_other_defaults),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
