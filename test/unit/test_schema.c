// SPDX-License-Identifier: Apache-2.0
// Goal of this test: a document becomes a struct with every default in place, or all that is wrong with it is reported
// at once, each with its place, its path and what to write instead.
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/schema/doc.h"
#include "base/schema/schema.h"
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

static void absent_fields_get_their_defaults_at_every_depth(void **state)
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

static void partly_written_object_gets_the_other_defaults(void **state)
{
	struct decoded d;
	decode(&d, "spec: {maxReplicas: 2, signals: [{name: q, value: 1, window: {duration: 30s}}]}");
	assert_string_equal(buf_str(&d.printed), "");
	assert_true(d.value.signals[0].window_set);
	assert_int_equal(d.value.signals[0].window.duration_ms, 30000);
	assert_int_equal(d.value.signals[0].window.min_samples, 4);
	done(&d);
}

// doc_parse_yaml never gives such trees; one made from an API reply may hold anything.
static void tree_without_positions_is_checked_too(void **state)
{
	struct doc_node spec_again = {.kind = DOC_MAP, .text = "", .key = "spec"};
	struct doc_node spec = {.kind = DOC_SCALAR, .text = "x", .text_len = 1, .key = "spec", .next = &spec_again};
	struct doc_node root = {.kind = DOC_MAP, .text = "", .child = &spec, .n_children = 2};
	struct sample value = {.name = NULL};
	struct schema_errors errors;
	struct arena a;
	struct buf out;
	arena_init(&a, ARENA_MAX_BYTES);
	buf_init(&out, 4096);
	schema_errors_init(&errors, NULL);
	assert_int_equal(schema_decode(&sample_schema, &root, &value, &a, &errors, "items[3]"), -1);
	schema_errors_print(&errors, &out);
	assert_string_equal(buf_str(&out), "items[3].spec: is here a second time: remove one of them\n"
	                                   "items[3].spec: must be a map, found x\n");
	buf_done(&out);
	arena_done(&a);
}

static void errors_past_the_ceiling_are_counted(void **state)
{
	struct decoded d;
	struct buf text;
	buf_init(&text, 65536);
	buf_puts(&text, "spec: {maxReplicas: 1, signals: [{name: q, value: 1}]}\n");
	for (int i = 0; i < SCHEMA_ERRORS_MAX + 36; i++)
		buf_printf(&text, "unknown%d: 1\n", i);
	decode(&d, buf_str(&text));
	assert_int_equal(d.errors.n, SCHEMA_ERRORS_MAX);
	assert_int_equal(d.errors.dropped, 36);
	const char *last = strstr(buf_str(&d.printed), "t:65:1: unknown63: ");
	assert_non_null(last);
	assert_non_null(strstr(last, "\nt: 36 more errors\n"));
	buf_done(&text);
	done(&d);
}

static void errors_are_printed_in_the_order_of_the_file(void **state)
{
	struct schema_errors errors;
	struct buf out;
	buf_init(&out, 4096);
	schema_errors_init(&errors, "f.yaml");
	schema_report_at(&errors, 7, 2, "c", "third");
	schema_report_at(&errors, 2, 9, "b", "second, reported first");
	schema_report_at(&errors, 2, 9, "b", "second, reported later");
	schema_report_at(&errors, 2, 1, "", "first: %d", 1);
	schema_report(&errors, NULL, "d", "no place, control \x01\n");
	schema_errors_print(&errors, &out);
	assert_string_equal(buf_str(&out), "f.yaml: d: no place, control \\x01\\n\n"
	                                   "f.yaml:2:1: first: 1\n"
	                                   "f.yaml:2:9: b: second, reported first\n"
	                                   "f.yaml:2:9: b: second, reported later\n"
	                                   "f.yaml:7:2: c: third\n");
	buf_done(&out);
}

static void long_paths_and_messages_are_cut_visibly(void **state)
{
	char text[1000];
	memset(text, 'x', sizeof text);
	text[sizeof text - 1] = '\0';
	struct schema_errors errors;
	schema_errors_init(&errors, "f");
	schema_report(&errors, NULL, text, "%s", text);
	assert_int_equal(strlen(errors.items[0].path), SCHEMA_PATH_BYTES - 1);
	assert_string_equal(errors.items[0].path + SCHEMA_PATH_BYTES - 5, "x...");
	assert_int_equal(strlen(errors.items[0].message), SCHEMA_MESSAGE_BYTES - 1);
	assert_string_equal(errors.items[0].message + SCHEMA_MESSAGE_BYTES - 5, "x...");
}

static void arena_that_is_too_small_is_an_error_like_any_other(void **state)
{
	const char *text = "spec: {maxReplicas: 1, signals: [{name: q, value: 1}], tags: [a, b, c]}";
	struct arena tree_arena;
	struct doc_file file;
	arena_init(&tree_arena, ARENA_MAX_BYTES);
	assert_int_equal(doc_parse_yaml(&tree_arena, "t", text, strlen(text), &file, NULL), 0);
	int n_refused = 0;
	for (size_t max = 0; max < 4096; max += 16) { // each allocation on the way fails once
		struct sample value = {.name = NULL};
		struct schema_errors errors;
		struct arena a;
		arena_init(&a, max);
		schema_errors_init(&errors, "t");
		if (schema_decode(&sample_schema, file.roots[0], &value, &a, &errors, "") < 0) {
			assert_non_null(strstr(errors.items[0].message, "bytes set aside for it"));
			n_refused++;
		} else {
			assert_int_equal(value.n_zones, 2);
		}
		arena_done(&a);
	}
	assert_in_range(n_refused, 10, 255);
	arena_done(&tree_arena);
}

static void fault_below(const void *value, struct fault_list *l)
{
	fault_add(l, "spec.signals", 1, "an element of a list below");
	fault_add(l, "spec.signals", 7, "an element that is not there");
	fault_add(l, "metadata.name", -1, "a field of an object that is not there");
}

static void rule_can_point_below_its_object(void **state)
{
	struct schema schema = sample_schema;
	schema.validate = fault_below;
	const char *text = "\nspec:\n  maxReplicas: 1\n  signals:\n  - {name: a, value: 1}\n  - {name: b, value: 1}\n";
	struct sample value = {.name = NULL};
	struct schema_errors errors;
	struct doc_file file;
	struct arena a;
	struct buf out;
	arena_init(&a, ARENA_MAX_BYTES);
	buf_init(&out, 4096);
	schema_errors_init(&errors, "t");
	assert_int_equal(doc_parse_yaml(&a, "t", text, strlen(text), &file, NULL), 0);
	assert_int_equal(schema_decode(&schema, file.roots[0], &value, &a, &errors, ""), -1);
	schema_errors_print(&errors, &out);
	assert_string_equal(buf_str(&out), "t:2:1: metadata.name: a field of an object that is not there\n"
	                                   "t:5:3: spec.signals[7]: an element that is not there\n"
	                                   "t:6:5: spec.signals[1]: an element of a list below\n");
	buf_done(&out);
	arena_done(&a);
}

// A default that its own field would refuse is a bug of the table, not of the file.
static void bad_default_asserts(void **state)
{
	static const char *const bad_defaults[] = {"0", "4000000000", "four", "4.0"};
	for (size_t i = 0; i < sizeof bad_defaults / sizeof bad_defaults[0]; i++) {
		fflush(NULL);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			fclose(stderr); // the assertion's own line
			signal(SIGABRT, SIG_DFL);
			struct schema_field f = sample_window_fields[1];
			f.default_text = bad_defaults[i];
			struct schema schema = {.name = "x", .struct_size = 64, .fields = &f, .n_fields = 1};
			struct doc_node root = {.kind = DOC_MAP, .text = ""};
			unsigned char value[64] = {0};
			struct schema_errors errors;
			struct arena a;
			arena_init(&a, ARENA_MAX_BYTES);
			schema_errors_init(&errors, "t");
			schema_decode(&schema, &root, value, &a, &errors, "");
			_exit(0);
		}
		int status = 0;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}

struct find_row {
	const char *path, *field, *parent, *closest; // field NULL = not found
};
static const struct find_row find_rows[] = {
        {"spec", "spec", "Sample", NULL},
        {"spec.signals", "signals", "Sample.spec", NULL},
        {"spec.signals[]", "signals", "Sample.spec", NULL},
        {"spec.signals.window.duration", "duration", "Sample.spec.signals[].window", NULL},
        {"spec.signals[].window", "window", "Sample.spec.signals[]", NULL},
        {"spec.signals[12].window", "window", "Sample.spec.signals[]", NULL},
        {"spec.tags[0]", "tags", "Sample.spec", NULL},
        {"spec.forecast.name", "name", "Sample.metadata", NULL},
        {"spce", NULL, "Sample", "spec"},
        {"spec.signals.windw.duration", NULL, "Sample.spec.signals[]", "window"},
        {"spec.signals.window.duratoin", NULL, "Sample.spec.signals[].window", "duration"},
        {"spec.DRYRUN", NULL, "Sample.spec", "dryRun"},
        {"spec.nonsense", NULL, "Sample.spec", NULL},
        {"spec.step.more", NULL, NULL, NULL},
        {"spec.tags.more", NULL, NULL, NULL},
        {"spec[0]", NULL, "Sample", NULL},
        {"spec.signals[", NULL, "Sample.spec", NULL},
        {"spec.signals[x]", NULL, "Sample.spec", NULL},
        {"spec.signals[]x", NULL, "Sample.spec", NULL},
        {"spec.", NULL, "Sample", NULL},
        {".spec", NULL, "Sample", NULL},
        {"spec..step", NULL, "Sample.spec", NULL},
        {"", NULL, "Sample", NULL},
};

static void field_is_found_by_its_path(void **state)
{
	for (size_t i = 0; i < sizeof find_rows / sizeof find_rows[0]; i++) {
		const struct find_row *row = &find_rows[i];
		const struct schema *parent = &sample_schema;
		const char *closest = "untouched";
		const struct schema_field *f = schema_find(&sample_schema, row->path, &parent, &closest);
		if (!f != !row->field || !parent != !row->parent || !closest != !row->closest)
			fail_msg("%s: field %s, parent %s, closest %s", row->path, f ? f->name : "NULL",
			         parent ? parent->name : "NULL", closest ? closest : "NULL");
		if (f)
			assert_string_equal(f->name, row->field);
		if (parent)
			assert_string_equal(parent->name, row->parent);
		if (closest)
			assert_string_equal(closest, row->closest);
		assert_ptr_equal(schema_find(&sample_schema, row->path, NULL, NULL), f);
	}
}

static void every_type_has_a_name_of_its_own(void **state)
{
	for (int i = 0; i < SCHEMA_TYPE__COUNT; i++) {
		assert_true(schema_type_name((enum schema_type)i)[0] != '\0');
		for (int j = 0; j < i; j++)
			assert_string_not_equal(schema_type_name((enum schema_type)i),
			                        schema_type_name((enum schema_type)j));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(every_type_reaches_its_place),
	        cmocka_unit_test(absent_fields_get_their_defaults_at_every_depth),
	        cmocka_unit_test(partly_written_object_gets_the_other_defaults),
	        cmocka_unit_test(tree_without_positions_is_checked_too),
	        cmocka_unit_test(errors_past_the_ceiling_are_counted),
	        cmocka_unit_test(errors_are_printed_in_the_order_of_the_file),
	        cmocka_unit_test(long_paths_and_messages_are_cut_visibly),
	        cmocka_unit_test(arena_that_is_too_small_is_an_error_like_any_other),
	        cmocka_unit_test(rule_can_point_below_its_object),
	        cmocka_unit_test(bad_default_asserts),
	        cmocka_unit_test(field_is_found_by_its_path),
	        cmocka_unit_test(every_type_has_a_name_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
